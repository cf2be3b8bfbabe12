"""What the agent keeps of a boot's faults."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.kernel.fault_file import FaultFile
from agent.kernel.sources import KMSG
from domain.fault_book import FaultBook
from domain.kernel_log import read_record
from domain.known_faults import KnownFaults
from tests.agent.kernel.records import BOOT, HERE_PCI, frame, xid

NVLINK5 = "145, RLW_REMAP Nonfatal XC0 i0 Link 03 (0x00000001 0x00000000 0x00000000)"


@pytest.fixture
def known() -> KnownFaults:
    book = FaultBook(KnownFaults(boot_id=BOOT, gpus={HERE_PCI: "GPU-1"}))
    lines = [
        frame(7, xid(79)),
        frame(8, "NVRM: Xid (PCI:0000:18:00 GPU-I:01 GPU-CI:02): 13, pid=4, name=a, Graphics"),
        frame(9, f"NVRM: Xid (PCI:0000:3b:00): {NVLINK5}"),
    ]
    for line in lines:
        record = read_record(line)
        assert record is not None
        book.read(record)
    return replace(book.known, gaps=2)


def test_a_restart_in_the_same_boot_knows_everything_again(tmp_path: Path, known: KnownFaults) -> None:
    FaultFile(tmp_path / "state", KMSG, BOOT).write(known)
    assert FaultFile(tmp_path / "state", KMSG, BOOT).read() == known
    assert (tmp_path / "state" / "faults.json").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in (tmp_path / "state").iterdir()] == ["faults.json"]


@pytest.mark.parametrize(("log", "boot"), [(KMSG, "another"), ("/var/log/kern.log", BOOT), (KMSG, None)])
def test_another_boot_or_another_log_begins_with_nothing(
    tmp_path: Path, known: KnownFaults, log: str, boot: str | None
) -> None:
    FaultFile(tmp_path, KMSG, BOOT).write(known)
    assert FaultFile(tmp_path, log, boot).read() == KnownFaults(boot_id=boot)


def test_without_a_boots_id_nothing_is_kept(tmp_path: Path, known: KnownFaults) -> None:
    FaultFile(tmp_path, KMSG, None).write(known)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"boot_id": 7}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, content: bytes, known: KnownFaults) -> None:
    (tmp_path / "faults.json").write_bytes(content)
    with capture_logs() as logs:
        assert FaultFile(tmp_path, KMSG, BOOT).read() == KnownFaults(boot_id=BOOT)
    assert [entry["log_level"] for entry in logs] == ["warning"]
    assert (tmp_path / "faults.json.damaged").read_bytes() == content
    FaultFile(tmp_path, KMSG, BOOT).write(known)
    assert FaultFile(tmp_path, KMSG, BOOT).read() == known


def test_a_file_that_cannot_be_read_is_said_and_left(tmp_path: Path) -> None:
    (tmp_path / "faults.json").mkdir()
    with capture_logs() as logs:
        assert FaultFile(tmp_path, KMSG, BOOT).read() == KnownFaults(boot_id=BOOT)
    assert [entry["event"] for entry in logs] == ["the faults that were kept cannot be read"]
