"""Programs are run within a time, with their output bounded."""

import sys
import time

import pytest

from agent.program import run_within


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def test_status_and_output_are_told() -> None:
    program = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    ended = run_within(python(program), 30, output_bytes_max=100, errors_too=True)
    assert (ended.status, ended.output, ended.cut) == (3, b"out\nerr\n", False)


def test_of_much_output_the_last_is_kept() -> None:
    ended = run_within(python("print('x' * 200_000 + 'end')"), 30, output_bytes_max=10)
    assert (ended.status, ended.output, ended.cut) == (0, b"xxxxxxend\n", True)


def test_a_program_that_does_not_end_is_ended() -> None:
    started = time.monotonic()
    ended = run_within(python("import time; print('so far', flush=True); time.sleep(600)"), 1, output_bytes_max=100)
    assert time.monotonic() - started < 10
    assert (ended.status, ended.output) == (None, b"so far\n")


def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(FileNotFoundError):
        run_within(("/nowhere/reboot",), 1, output_bytes_max=100)
