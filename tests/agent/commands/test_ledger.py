"""What the agent keeps of its commands."""

from pathlib import Path

import pytest

from agent.commands.ledger import ENTRIES_MAX, Entry, Ledger, Phase
from agent.wire import CommandOutcome, CommandResult


def entry(number: int, phase: Phase = Phase.RUNNING) -> Entry:
    return Entry(f"cmd_{number}", number, "diag.nvml", phase, "run", "boot-1")


def test_entries_outlive_a_restart_in_a_file_for_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    ledger = Ledger(folder)
    ledger.note(entry(2))
    done = Entry("cmd_1", 1, "diag.nvml", Phase.DONE, "run", "boot-1", CommandResult(outcome=CommandOutcome.SUCCEEDED))
    ledger.note(done)
    again = Ledger(folder)
    assert (again.find("cmd_1"), again.find("cmd_2")) == (done, entry(2))
    assert again.in_phase(Phase.DONE, Phase.RUNNING) == (done, entry(2))
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_oldest_that_are_over_are_forgotten_and_what_is_not_is_kept(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.note(entry(0))
    for number in range(1, 10):
        ledger.note(entry(number, Phase.TOLD))
    many = {f"cmd_{number}": entry(number, Phase.TOLD) for number in range(10, ENTRIES_MAX)}
    ledger._entries.update(many)
    ledger.note(entry(ENTRIES_MAX))
    assert ledger.find("cmd_1") is None
    assert ledger.find("cmd_2") is not None
    assert Ledger(tmp_path).in_phase(Phase.RUNNING) == (entry(0), entry(ENTRIES_MAX))


@pytest.mark.parametrize("content", [b"", b"{", b'[{"command_id": 1}]', b"\xff"])
def test_a_file_that_cannot_be_read_is_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "commands.json").write_bytes(content)
    ledger = Ledger(tmp_path)
    assert ledger.in_phase(*Phase) == ()
    ledger.note(entry(1))
    assert Ledger(tmp_path).find("cmd_1") == entry(1)


def test_what_cannot_be_written_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder would be")
    ledger = Ledger(tmp_path / "state")
    with pytest.raises(OSError, match="state"):
        ledger.note(entry(1))
    assert ledger.find("cmd_1") is None
