"""The operator's programs as the command line gives them."""

import pytest
import typer

from agent.arguments import programs_of
from agent.commands.handlers import Programs


def test_programs_are_argument_vectors_and_none_where_nothing_is_said() -> None:
    assert programs_of(None, None, 5) == Programs(None, None, 5)
    found = programs_of("systemctl reboot", "nvidia-smi --gpu-reset -i '{gpu}' 'a b'", 5)
    assert found.reboot == ("systemctl", "reboot")
    assert found.gpu_reset == ("nvidia-smi", "--gpu-reset", "-i", "{gpu}", "a b")


@pytest.mark.parametrize(
    ("reboot", "reset", "said"),
    [
        ("", None, "names no program"),
        ("sh -c 'reboot", None, "quotation"),
        (None, "nvidia-smi --gpu-reset", "has to stand"),
        (None, "{gpu}", "has to stand"),
    ],
)
def test_a_program_that_cannot_be_is_refused(reboot: str | None, reset: str | None, said: str) -> None:
    with pytest.raises(typer.BadParameter, match=said):
        programs_of(reboot, reset, 5)
