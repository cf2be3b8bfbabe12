"""The state of a made-up node: what can change about it, beside what its model and seed fix."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import assert_never
from uuid import UUID, uuid5

from agent.simulator.material import Material
from agent.simulator.models import DRIVERS, KERNELS, Server, server_of
from domain.identity_key import NAMESPACE


@dataclass(frozen=True, slots=True)
class NodeState:
    """What can change. Parts that were replaced count in `cards`, `disks` and `nics`, by (slot, generation)."""

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


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happens to one node; `slot` is the part's, where it is about a part."""

    node: int
    kind: ChangeKind
    slot: int = field(default=0)

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.kind} on {hostname(self.node)}"


def applied(state: NodeState, change: Change) -> NodeState:  # noqa: C901, PLR0911, PLR0912 - one case per kind
    """Return the node after the change."""
    slot, server = change.slot, state.server
    match change.kind:
        case ChangeKind.GPU_LOST:
            return replace(state, lost_gpus=state.lost_gpus | {slot})
        case ChangeKind.GPU_BACK:
            return replace(state, lost_gpus=state.lost_gpus - {slot})
        case ChangeKind.GPU_REPLACED:
            return replace(state, cards=_raised(state.cards, slot))
        case ChangeKind.DISK_REPLACED:
            return replace(state, disks=_raised(state.disks, slot))
        case ChangeKind.NIC_REPLACED:
            return replace(state, nics=_raised(state.nics, slot))
        case ChangeKind.DIMM_LOST:
            return replace(state, lost_dimms=state.lost_dimms | {slot}, boots=state.boots + 1)
        case ChangeKind.DIMM_BACK:
            return replace(state, lost_dimms=state.lost_dimms - {slot}, boots=state.boots + 1)
        case ChangeKind.DRIVER_UPGRADED:
            return replace(state, driver=(state.driver + 1) % len(DRIVERS))
        case ChangeKind.BIOS_UPGRADED:
            return replace(state, bios=(state.bios + 1) % len(server.bios), boots=state.boots + 1)
        case ChangeKind.KERNEL_UPGRADED:
            return replace(state, kernel=(state.kernel + 1) % len(KERNELS), boots=state.boots + 1)
        case ChangeKind.MIG_CHANGED:
            layouts = len(server.gpu.mig_layouts) if server.gpu else 1
            return replace(state, mig=_raised(state.mig, slot, layouts))
        case ChangeKind.ENUMERATION_CUT:
            return replace(state, cut_short=True)
        case ChangeKind.ENUMERATION_WHOLE:
            return replace(state, cut_short=False)
        case ChangeKind.AGENT_RESTARTED:
            return state
        case _:
            assert_never(change.kind)


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


def boot_id(material: Material, boots: int) -> str:
    """Return the id of a boot."""
    return str(UUID(material.uuid(f"boot {boots}")))


def hostname(node: int) -> str:
    """Return the node's name."""
    return f"sim-{server_of(node).key}-{node:05}"


def _raised(parts: tuple[tuple[int, int], ...], slot: int, modulus: int | None = None) -> tuple[tuple[int, int], ...]:
    raised = generation(parts, slot) + 1
    return tuple(sorted({**dict(parts), slot: raised if modulus is None else raised % modulus}.items()))


def _pick(material: Material, what: str, most: int) -> int:
    return int(material.hexadecimal(what, 8), 16) % max(1, most)
