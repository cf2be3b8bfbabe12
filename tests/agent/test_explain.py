"""Explaining a recorded kernel log."""

from io import BytesIO
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import explain as module
from agent.arguments import Output
from agent.explain import explain, explain_log
from domain.kernel_log import LINE_LENGTH_MAX

HERE = "0000:18:00"
XID = f"NVRM: Xid (PCI:{HERE}): "


def test_faults_are_told_in_the_order_they_began_with_their_verdicts() -> None:
    found = explain(
        [
            f"{XID}119",
            "other",
            f"{XID}45, Ch 1",
            f"{XID}119",
            "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, x",
        ]
    )
    assert [(each.line, each.code, each.count, each.verdict, each.caused_by) for each in found.faults] == [
        (1, 119, 2, "quarantine", None),
        (3, 45, 1, "event", 119),
        (5, 20034, 1, "event", None),
    ]
    assert [(each.scope, each.fatal) for each in found.faults[1:]] == [("gpu", None), ("switch", True)]
    assert (found.lines, found.gaps, found.left_out) == (5, (), 0)


def test_the_driver_is_the_one_given_else_the_one_that_the_log_names() -> None:
    link = f"{XID}145, RLW_REMAP Nonfatal XC0 i0 Link 10 (0x00000082 0x00000080)"
    loaded = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.10.01  Thu Jan 23"
    assert [explain([link], driver).faults[0].verdict for driver in (None, "570.1", "580.1")] == [
        "quarantine",
        "quarantine",
        "unknown",
    ]
    assert explain([loaded, link]).faults[0].verdict == "unknown"


def test_more_faults_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAULTS_MAX", 2)
    found = explain([f"{XID}{code}" for code in (13, 31, 43, 48, 13)])
    assert ([each.code for each in found.faults], found.faults[0].count, found.left_out) == ([13, 31], 2, 2)


def test_a_line_is_read_no_further_than_its_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = b"x" * 3 * LINE_LENGTH_MAX + XID.encode() + b"79\r\n" + XID.encode() + b"13\r\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(log)))
    explain_log(file="-", output=Output.JSON)  # type: ignore[arg-type]
    (line,) = capsys.readouterr().out.splitlines()
    told = msgspec.json.decode(line)
    assert (told["line"], told["code"]) == (2, 13)


@given(st.lists(st.binary(max_size=60), max_size=5))
@settings(max_examples=100)
def test_whatever_bytes_a_log_has_they_are_read_and_printed(lines: list[bytes]) -> None:
    texts = [(XID.encode() + b"13, " + line).decode("utf-8", "replace") for line in lines]
    for fault in explain(texts).faults:
        assert msgspec.json.decode(msgspec.json.encode(fault))["code"] == 13
        assert all("\x1b" not in told for told in module._told(fault))


def test_a_journals_half_characters_are_printed() -> None:
    entry = '{"_TRANSPORT":"kernel","MESSAGE":"' + XID + '13, \\ud800"}'
    assert len([msgspec.json.encode(fault) for fault in explain([entry]).faults]) <= 1
