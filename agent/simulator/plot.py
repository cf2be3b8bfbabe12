"""The plot of the demo: what happens to which machine when, and what its operator does; what follows is the server's.

A round takes `ROUND_SECONDS` and is the same each time, with other machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent.simulator.models import server_of
from agent.simulator.node import Change, ChangeKind, hostname
from agent.simulator.troubles import Trouble

NODES_MIN: Final = 20
"""A fleet of so many has every kind of machine in its cast."""
ROUND_SECONDS: Final = 120.0
GPUS: Final = 8
_CHANCE_SHARE: Final = 5
_ROLES: Final = 3


class Act(StrEnum):
    """What the operator does with a machine, or with a GPU of it."""

    ALLOCATE = "allocate"
    RELEASE = "release"
    CLEAR = "clearDeviceHealth"
    ADOPT = "adoptNode"


@dataclass(frozen=True, slots=True)
class Request:
    """Something that the operator does; `slot` is the GPU's."""

    act: Act
    node: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """What happens at a time of the round, in seconds, and what is said of it."""

    at: float
    says: str
    play: Change | Request


@dataclass(frozen=True, slots=True)
class Cast:
    """The machines of the plot, by the pool that each is in; to the first `by_chance` of the fleet come other changes.

    Most of a fleet is its cast, and each round has others of it: of a small pool two faults a round would be more than
    the tenth within ten minutes at which remediation pauses, and one machine with the same fault again and again would
    be left to its operator.
    """

    by_chance: int
    training: tuple[int, ...]
    hosts: tuple[int, ...]


def cast_of(nodes: int) -> Cast:
    """Return the cast of a fleet of so many, at least `NODES_MIN`."""
    by_chance = nodes // _CHANCE_SHARE
    members = range(by_chance, nodes)
    training = tuple(index for index in members if len(server_of(index).gpu_places) == GPUS)
    return Cast(by_chance, training, tuple(sorted({*members} - {*training})))


def scenes(cast: Cast, number: int) -> tuple[Scene, ...]:
    """Return a round, by time."""
    broken, lost, returned = (_turn(cast.training, _ROLES * number + role) for role in range(_ROLES))
    pressed = _turn(cast.hosts, number)
    return (
        Scene(6, f"a job takes two GPUs of {hostname(broken)}", Request(Act.ALLOCATE, broken)),
        Scene(
            10,
            f"Xid 48 on GPU 0 of {hostname(broken)}, which its job keeps",
            Change(broken, ChangeKind.TROUBLE, 0, Trouble.DOUBLE_BIT_ERROR),
        ),
        Scene(
            20,
            f"Xid 79 on {hostname(lost)}: GPU 3 fell off the bus, and a reboot brings it back",
            Change(lost, ChangeKind.TROUBLE, 3, Trouble.FALLEN_OFF),
        ),
        Scene(28, f"{hostname(returned)} comes back from repair with a GPU less", _gpu(returned, ChangeKind.GPU_LOST)),
        Scene(30, f"the operator adopts {hostname(returned)}", Request(Act.ADOPT, returned)),
        Scene(34, f"GPU 0 of {hostname(broken)} is reset by hand", Change(broken, ChangeKind.GPU_RESET, 0)),
        Scene(35, "the operator clears its fault", Request(Act.CLEAR, broken)),
        Scene(38, "the job ends", Request(Act.RELEASE, broken)),
        Scene(40, f"{hostname(pressed)} is short of CPU", _press(pressed, ChangeKind.TROUBLE)),
        Scene(60, f"{hostname(returned)} has all its GPUs again", _gpu(returned, ChangeKind.GPU_BACK)),
        Scene(64, f"the operator adopts {hostname(returned)} again", Request(Act.ADOPT, returned)),
        Scene(70, f"{hostname(pressed)} is at rest again", _press(pressed, ChangeKind.TROUBLE_OVER)),
    )


def _turn(members: Sequence[int], number: int) -> int:
    return members[number % len(members)]


def _gpu(node: int, kind: ChangeKind) -> Change:
    return Change(node, kind, GPUS - 1)


def _press(node: int, kind: ChangeKind) -> Change:
    return Change(node, kind, trouble=Trouble.CPU_PRESSURE)
