"""Where records come from: the kernel's device, a file that grows, is cut or replaced, and a FIFO."""

import errno
import os
from pathlib import Path

import pytest

from agent.kernel.sources import KMSG, Device, Lines, Records, reason_of, records_of
from domain.fault_book import FaultBook
from domain.kernel_log import read_record
from domain.known_faults import KnownFaults
from tests.agent.kernel.records import frame, xid


def can_read_kmsg() -> bool:
    try:
        os.close(os.open(KMSG, os.O_RDWR | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def all_of(records: Records) -> list[str]:
    found: list[str] = []
    while texts := records.read():
        found += texts
    return found


@pytest.mark.skipif(not can_read_kmsg(), reason="reading and writing /dev/kmsg takes root and a kernel log")
def test_the_kernels_device_is_read_whole_and_then_as_it_grows_and_users_records_are_no_faults() -> None:
    device = Device()
    before = all_of(device)
    assert device.read() == ()
    mark = xid(79, f", written by a test, {os.getpid()}")
    with open(KMSG, "wb", buffering=0) as log:  # noqa: PTH123 - one write is one record
        # Without an end of line the kernel waits for more of it.
        log.write(f"<12>{mark}\n".encode())
    (text,) = [each for each in all_of(device) if mark in each]
    device.close()
    record = read_record(text)
    assert record is not None
    assert (record.message, record.facility, record.is_of_kernel) == (mark, 1, False)
    book = FaultBook(KnownFaults())
    for each in [*before, text]:
        if (read := read_record(each)) is not None:
            book.read(read)
    assert not [known for known in book.known.faults.values() if "written by a test" in known.fault.message]


@pytest.fixture
def packets() -> tuple[str, int]:
    """Return a pipe that gives a packet for each read, as the kernel's device does, and where to write to it."""
    out, into = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
    # Both ends stay open as long as the test runs; the path opens the first once more.
    return f"/proc/self/fd/{out}", into


def test_each_read_of_a_device_is_a_record_and_none_is_waited_for(packets: tuple[str, int]) -> None:
    path, into = packets
    device = Device(path)
    assert device.read() == ()
    records = [frame(1, "a\n SUBSYSTEM=pci"), frame(2, xid(79))]
    for record in records:
        os.write(into, record.encode())
    assert list(device.read()) == records
    assert device.read() == ()


def test_an_overrun_costs_what_was_overwritten_and_nothing_else(
    packets: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, into = packets
    failing = [OSError(errno.EPIPE, "Broken pipe")]
    read = os.read

    def overrun(descriptor: int, count: int) -> bytes:
        if failing:
            raise failing.pop()
        return read(descriptor, count)

    monkeypatch.setattr("agent.kernel.sources.os.read", overrun)
    os.write(into, frame(9, xid(79)).encode())
    assert list(Device(path).read()) == [frame(9, xid(79))]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOENT, "does not exist"),
        (errno.EACCES, "give CAP_SYSLOG"),
        (errno.EPERM, "give CAP_SYSLOG"),
        (errno.EINVAL, "refuses"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_why_a_log_cannot_be_read_is_said_with_what_would_help(number: int, said: str) -> None:
    assert said in reason_of(KMSG, OSError(number, os.strerror(number)))


def test_a_file_is_read_and_followed_as_it_grows(tmp_path: Path) -> None:
    file = tmp_path / "kernel.log"
    file.write_text("one\ntwo\nthr")
    lines = records_of(str(file))
    assert all_of(lines) == ["one", "two"]
    with file.open("a") as log:
        log.write("ee\n\nfour\r\n")
    assert all_of(lines) == ["three", "four"]


def test_a_file_that_is_cut_or_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "kernel.log"
    file.write_text("one\ntwo\nunfinished")
    lines = Lines(file)
    assert all_of(lines) == ["one", "two"]
    file.write_text("3\n")
    assert all_of(lines) == ["unfinished", "3"]
    file.rename(tmp_path / "kernel.log.1")
    assert all_of(lines) == []
    file.write_text("four\n")
    assert lines.read() == ()
    assert all_of(lines) == ["four"]


def test_a_line_that_nobody_ends_is_taken_after_a_while(tmp_path: Path) -> None:
    file, times = tmp_path / "kernel.log", [0.0]
    file.write_text("the last")
    lines = Lines(file, lambda: times[0])
    assert all_of(lines) == []
    times[0] = 2.5
    assert all_of(lines) == ["the last"]


def test_of_a_line_without_an_end_only_its_start_is_held(tmp_path: Path) -> None:
    file = tmp_path / "kernel.log"
    file.write_bytes(b"x" * 2_000_000 + b"\nnext\n")
    lines = Lines(file)
    found: list[str] = []
    for _ in range(64):
        found += lines.read()
    assert [len(line) < 400_000 for line in found] == [True, True]
    assert found[1] == "next"


def test_a_fifo_is_read_from_whoever_writes_to_it_next(tmp_path: Path) -> None:
    fifo = tmp_path / "kernel.fifo"
    os.mkfifo(fifo)
    lines = records_of(str(fifo))
    assert lines.read() == ()
    for text in ("one\n", "two\n"):
        with fifo.open("w") as writer:
            writer.write(text)
            writer.flush()
            assert lines.read() == (text.strip(),)
        assert lines.read() == ()


def test_a_log_that_is_not_there_yet_is_read_when_it_is(tmp_path: Path) -> None:
    lines = records_of(str(tmp_path / "kernel.log"))
    with pytest.raises(FileNotFoundError):
        lines.read()
    (tmp_path / "kernel.log").write_text("one\n")
    assert all_of(lines) == ["one"]
