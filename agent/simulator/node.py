"""The state of a made-up node: what can change about it, beside what its model and seed fix."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, assert_never
from uuid import UUID, uuid5

from agent.simulator.material import Material
from agent.simulator.models import DRIVERS, KERNELS, OLD_DRIVER, Server, server_of
from agent.simulator.troubles import COURSES, PARTS_OF_GPU, Ending, Trouble, messages
from domain.identity_key import NAMESPACE

LOG_RECORDS_MAX: Final = 64
"""Of the faults of a boot the newest are kept, as an agent's file does."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A fault in the kernel log of the present boot. The GPU is the card that is in the slot; None for a switch."""

    sequence: int
    slot: int | None
    message: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """What can change. Parts that were replaced count in `cards`, `disks` and `nics`, by (slot, generation).

    `troubles` are what is wrong now, each with its slot (0 for the node as a whole), `log` what the kernel log told of
    this boot that still counts, `records` how many records it had.
    """

    index: int
    boots: int = 1
    driver: int = 0
    bios: int = 0
    kernel: int = 0
    lost_gpus: frozenset[int] = frozenset()
    cut_short: bool = False
    lost_dimms: frozenset[int] = frozenset()
    cards: tuple[tuple[int, int], ...] = ()
    disks: tuple[tuple[int, int], ...] = ()
    nics: tuple[tuple[int, int], ...] = ()
    mig: tuple[tuple[int, int], ...] = ()
    troubles: frozenset[tuple[Trouble, int]] = frozenset()
    log: tuple[LogRecord, ...] = ()
    records: int = 0

    def has(self, trouble: Trouble, slot: int = 0) -> bool:
        """Say whether this is wrong with that part now."""
        return (trouble, slot) in self.troubles

    @property
    def is_calm(self) -> bool:
        """Whether there is nothing to say of the node beside its inventory."""
        return not self.troubles and not self.log

    @property
    def versions(self) -> tuple[str, str]:
        """The driver's version and that of the newest CUDA it serves."""
        return OLD_DRIVER if self.has(Trouble.OLD_DRIVER) else DRIVERS[self.driver]

    @property
    def server(self) -> Server:
        """The kind of machine."""
        return server_of(self.index)


class ChangeKind(StrEnum):
    """What happens to nodes."""

    GPU_LOST = "gpu lost"
    GPU_BACK = "gpu back"
    GPU_REPLACED = "gpu replaced"
    DISK_REPLACED = "disk replaced"
    NIC_REPLACED = "nic replaced"
    DIMM_LOST = "dimm lost"
    DIMM_BACK = "dimm back"
    DRIVER_UPGRADED = "driver upgraded"
    BIOS_UPGRADED = "bios upgraded"
    KERNEL_UPGRADED = "kernel upgraded"
    MIG_CHANGED = "mig layout changed"
    ENUMERATION_CUT = "gpu enumeration incomplete"
    ENUMERATION_WHOLE = "gpu enumeration complete again"
    AGENT_RESTARTED = "agent restarted"
    REBOOTED = "rebooted"
    GPU_RESET = "gpu reset"
    TROUBLE = "trouble"
    TROUBLE_OVER = "trouble over"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happens to one node; `slot` is the part's, where it is about a part.

    `trouble` is what begins or is over, for the two kinds that say so.
    """

    node: int
    kind: ChangeKind
    slot: int = field(default=0)
    trouble: Trouble | None = field(default=None)

    def __str__(self) -> str:
        """Say it in words."""
        what = self.kind if self.trouble is None else self.trouble
        over = " over" if self.kind is ChangeKind.TROUBLE_OVER else ""
        return f"{what}{over} on {hostname(self.node)}"


_ENDS: Final = {
    ChangeKind.GPU_LOST: ChangeKind.GPU_BACK,
    ChangeKind.DIMM_LOST: ChangeKind.DIMM_BACK,
    ChangeKind.ENUMERATION_CUT: ChangeKind.ENUMERATION_WHOLE,
}
_ENDED_BY_RESET: Final = frozenset({Ending.RESET})
_ENDED_BY_REBOOT: Final = frozenset({Ending.RESET, Ending.REBOOT})
_ENDED_BY_CARD: Final = frozenset({Ending.RESET, Ending.REBOOT, Ending.NEW_CARD})
_MENDING: Final = {
    Ending.RESET: ChangeKind.GPU_RESET,
    Ending.REBOOT: ChangeKind.REBOOTED,
    Ending.NEW_CARD: ChangeKind.GPU_REPLACED,
}


def applied(state: NodeState, change: Change) -> NodeState:  # noqa: C901, PLR0911, PLR0912 - one case per kind
    """Return the node after the change."""
    slot, server = change.slot, state.server
    match change.kind:
        case ChangeKind.GPU_LOST:
            return replace(state, lost_gpus=state.lost_gpus | {slot})
        case ChangeKind.GPU_BACK:
            return replace(state, lost_gpus=state.lost_gpus - {slot})
        case ChangeKind.GPU_REPLACED:
            return replace(_freed(state, slot, _ENDED_BY_CARD), cards=_raised(state.cards, slot))
        case ChangeKind.DISK_REPLACED:
            return replace(state, disks=_raised(state.disks, slot))
        case ChangeKind.NIC_REPLACED:
            return replace(state, nics=_raised(state.nics, slot))
        case ChangeKind.DIMM_LOST:
            return replace(rebooted(state), lost_dimms=state.lost_dimms | {slot})
        case ChangeKind.DIMM_BACK:
            return replace(rebooted(state), lost_dimms=state.lost_dimms - {slot})
        case ChangeKind.DRIVER_UPGRADED:
            return replace(state, driver=(state.driver + 1) % len(DRIVERS))
        case ChangeKind.BIOS_UPGRADED:
            return replace(rebooted(state), bios=(state.bios + 1) % len(server.bios))
        case ChangeKind.KERNEL_UPGRADED:
            return replace(rebooted(state), kernel=(state.kernel + 1) % len(KERNELS))
        case ChangeKind.MIG_CHANGED:
            layouts = len(server.gpu.mig_layouts) if server.gpu else 1
            return replace(state, mig=_raised(state.mig, slot, layouts))
        case ChangeKind.ENUMERATION_CUT:
            return replace(state, cut_short=True)
        case ChangeKind.ENUMERATION_WHOLE:
            return replace(state, cut_short=False)
        case ChangeKind.AGENT_RESTARTED:
            return state
        case ChangeKind.REBOOTED:
            return rebooted(state)
        case ChangeKind.GPU_RESET:
            return _freed(state, slot, _ENDED_BY_RESET)
        case ChangeKind.TROUBLE:
            return _troubled(state, _named(change), slot)
        case ChangeKind.TROUBLE_OVER:
            return _untroubled(state, _named(change), slot)
        case _:
            assert_never(change.kind)


def ending_of(change: Change) -> Change | None:
    """Return what puts right what a change brought about; None for what stays as it is."""
    if change.kind is not ChangeKind.TROUBLE:
        kind = _ENDS.get(change.kind)
        return None if kind is None else Change(change.node, kind, change.slot)
    match COURSES[_named(change)].ending:
        case Ending.AT_ONCE:
            return None
        case Ending.BY_ITSELF:
            return replace(change, kind=ChangeKind.TROUBLE_OVER)
        case Ending.RESET | Ending.REBOOT | Ending.NEW_CARD as ending:
            return Change(change.node, _MENDING[ending], change.slot)
        case unknown:
            assert_never(unknown)


def rebooted(state: NodeState) -> NodeState:
    """Return the node in its next boot: what a reset ends is over too, and the kernel log begins anew."""
    left = {each for each in state.troubles if not _ends(each[0], _ENDED_BY_REBOOT) and each[0] is not Trouble.SILENCE}
    return replace(state, boots=state.boots + 1, troubles=frozenset(left), log=(), records=0)


def _troubled(state: NodeState, trouble: Trouble, slot: int) -> NodeState:
    course = COURSES[trouble]
    lasting = state.troubles if course.ending is Ending.AT_ONCE else state.troubles | {(trouble, slot)}
    return replace(_told(state, trouble, slot, course.lines), troubles=lasting)


def _untroubled(state: NodeState, trouble: Trouble, slot: int) -> NodeState:
    if not state.has(trouble, slot):  # a reboot was quicker
        return state
    told = _told(state, trouble, slot, COURSES[trouble].last_lines)
    return replace(told, troubles=state.troubles - {(trouble, slot)})


def _told(state: NodeState, trouble: Trouble, slot: int, lines: tuple[str, ...]) -> NodeState:
    place = None if trouble is Trouble.SWITCH else slot
    texts = messages(lines, state.server, slot, state.versions[0])
    told = (LogRecord(number, place, text) for number, text in enumerate(texts, state.records))
    return replace(state, log=(*state.log, *told)[-LOG_RECORDS_MAX:], records=state.records + len(texts))


def _freed(state: NodeState, slot: int, ended: frozenset[Ending]) -> NodeState:
    """End what is wrong with a GPU that way; the log's word about a GPU without fault counts no longer."""
    of_gpu = {each for each in state.troubles if each[1] == slot and COURSES[each[0]].part in PARTS_OF_GPU}
    over = {each for each in of_gpu if _ends(each[0], ended)}
    log = state.log if of_gpu - over else tuple(record for record in state.log if record.slot != slot)
    return replace(state, troubles=state.troubles - over, log=log)


def _ends(trouble: Trouble, ended: frozenset[Ending]) -> bool:
    """Say whether what puts right such troubles ends this one; with a GPU what ends by itself ends, too."""
    course = COURSES[trouble]
    return course.ending in ended or (course.ending is Ending.BY_ITSELF and course.part in PARTS_OF_GPU)


def _named(change: Change) -> Trouble:
    if change.trouble is None:
        raise ValueError(f"a {change.kind} names none")
    return change.trouble


def first_state(material: Material) -> NodeState:
    """Return a node as the fleet begins: a fleet is never all of one version."""
    server = server_of(material.node)
    return NodeState(
        index=material.node,
        driver=_pick(material, "driver", len(DRIVERS) - 1),
        bios=_pick(material, "bios", len(server.bios) - 1),
        kernel=_pick(material, "kernel", len(KERNELS) - 1),
    )


def generation(parts: tuple[tuple[int, int], ...], slot: int) -> int:
    """Return how often the part in a slot was replaced."""
    return dict(parts).get(slot, 0)


def identity_key(material: Material) -> str:
    """Return the key the node is known by."""
    return str(uuid5(NAMESPACE, f"simulator:{material.seed}:{material.node}"))


def boot_id(material: Material, boots: int, run: str = "") -> str:
    """Return the id of a boot; what a simulator of another `run` reports is of other boots, and its log begins anew."""
    return str(UUID(material.uuid(f"boot {boots} {run}".rstrip())))


def hostname(node: int) -> str:
    """Return the node's name."""
    return f"sim-{server_of(node).key}-{node:05}"


def _raised(parts: tuple[tuple[int, int], ...], slot: int, modulus: int | None = None) -> tuple[tuple[int, int], ...]:
    raised = generation(parts, slot) + 1
    return tuple(sorted({**dict(parts), slot: raised if modulus is None else raised % modulus}.items()))


def _pick(material: Material, what: str, most: int) -> int:
    return int(material.hexadecimal(what, 8), 16) % max(1, most)
