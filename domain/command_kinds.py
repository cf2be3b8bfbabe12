"""What nodes can be told to do, with the parameters of each kind, read strictly (rule 10).

An agent that cannot do what it is told answers so: a kind is known here, not everywhere.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from domain.errors import InvalidInput

INVENTORY_REFRESH: Final = "inventory.refresh"
DIAG_NVML: Final = "diag.nvml"
DIAG_DCGM: Final = "diag.dcgm"
NODE_REBOOT: Final = "node.reboot"
GPU_RESET: Final = "gpu.reset"
UNSUPPORTED: Final = "unsupported"
"""The reason of an agent that cannot do what it is told."""

_PLACE: Final = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")
Place = Annotated[str, Meta(pattern=r"^-?[0-9]{1,19}\Z")]
# It may become an argument of a program: no leading dash, no blank.
DeviceName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")]


class Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The parameters of a command; those of most kinds are none."""


class DiagNvml(Payload, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """How many GPUs are to be found; left out, as many as answer.

    `cleared` says of GPUs up to which place in this boot's kernel log an operator called their faults over.
    """

    gpu_count: Annotated[int, Meta(ge=0, le=256)] | None = None
    cleared: Annotated[dict[str, Place], Meta(max_length=256)] = {}


class DiagDcgm(Payload, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """How long and hard NVIDIA's DCGM looks, as `dcgmi diag --run` counts it; from 2 on the GPUs must be idle."""

    level: Annotated[int, Meta(ge=1, le=4)] = 1


class GpuReset(Payload, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The GPU, by its UUID."""

    device_id: DeviceName


@dataclass(frozen=True, slots=True)
class CommandKind:
    """A kind of command: its parameters, and how many seconds after it was started its result is waited for."""

    payload: type[Payload]
    run_seconds_max: int


KINDS: Final[Mapping[str, CommandKind]] = {
    INVENTORY_REFRESH: CommandKind(Payload, 900),
    DIAG_NVML: CommandKind(DiagNvml, 300),
    # The longest level takes an hour and a half on a machine of eight GPUs.
    DIAG_DCGM: CommandKind(DiagDcgm, 4 * 3600),
    NODE_REBOOT: CommandKind(Payload, 3600),
    GPU_RESET: CommandKind(GpuReset, 900),
}


def read_payload(kind: str, document: Mapping[str, Any]) -> Payload:
    """Read the parameters of a command; raises InvalidInput naming the kinds, or the place and what would be right."""
    known = KINDS.get(kind)
    if known is None:
        raise InvalidInput(f"kind: {kind[:64]!r} is none; the kinds are {', '.join(KINDS)}")
    try:
        return msgspec.convert(document, known.payload)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PLACE.search(text)
        place = f".{found['place']}" if found and found["place"] else ""
        raise InvalidInput(f"payload{place}: {_PLACE.sub('', text)}") from error
