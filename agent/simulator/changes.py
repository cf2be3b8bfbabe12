"""What happens to the made-up fleet, in an order that the seed alone decides."""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.simulator.material import Material
from agent.simulator.node import Change, ChangeKind, NodeState, applied, ending_of, first_state
from agent.simulator.troubles import Trouble, slots_of

# How often each happens, in parts of their sum: what machines do by themselves, and what people do to them.
_WEIGHTS: Final = {
    ChangeKind.AGENT_RESTARTED: 12,
    ChangeKind.MIG_CHANGED: 12,
    ChangeKind.DRIVER_UPGRADED: 10,
    ChangeKind.KERNEL_UPGRADED: 10,
    ChangeKind.DISK_REPLACED: 8,
    ChangeKind.GPU_LOST: 8,
    ChangeKind.ENUMERATION_CUT: 6,
    ChangeKind.GPU_REPLACED: 6,
    ChangeKind.BIOS_UPGRADED: 5,
    ChangeKind.DIMM_LOST: 4,
    ChangeKind.NIC_REPLACED: 4,
    ChangeKind.TROUBLE: 40,
}
# What programs do to GPUs is everyday; what takes a whole node out is rare.
_TROUBLES: Final = {
    trouble: {Trouble.PROGRAM_FAULT: 6, Trouble.CONTAINED: 3, Trouble.SILENCE: 1, Trouble.UNCONTAINED: 1}.get(
        trouble, 2
    )
    for trouble in Trouble
}
_ENDS_AFTER_MIN, _ENDS_AFTER_MAX = 5, 30
_TRIES_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class _End:
    due: int
    change: Change


def changes(seed: int, nodes: int) -> Iterator[tuple[Change, NodeState]]:
    """Yield changes for ever, each with its node's state after it. Faults end 5 to 30 changes after they began.

    A node with a fault is left alone until the fault ends, so that every change is one that can be told from others.
    """
    chance = random.Random(f"{seed}/changes")  # noqa: S311 - made-up faults, no secrets
    touched: dict[int, NodeState] = {}
    faults: deque[_End] = deque()
    faulty: set[int] = set()
    count = 0
    while True:
        count += 1
        node = _healthy_node(chance, nodes, faulty)
        if faults and (node is None or faults[0].due <= count):
            change = faults.popleft().change
            faulty.discard(change.node)
        elif node is None:
            raise AssertionError("a fleet without a healthy node has faults")
        else:
            change = _new_change(chance, touched.get(node) or first_state(Material(seed, node)))
            if (end := ending_of(change)) is not None:
                faulty.add(node)
                due = count + chance.randint(_ENDS_AFTER_MIN, _ENDS_AFTER_MAX)
                faults.append(_End(due, end))
                faults = deque(sorted(faults, key=lambda end: end.due))
        state = applied(touched.get(change.node) or first_state(Material(seed, change.node)), change)
        touched[change.node] = state
        yield change, state


def _healthy_node(chance: random.Random, nodes: int, faulty: set[int]) -> int | None:
    for _ in range(_TRIES_MAX):
        node = chance.randrange(nodes)
        if node not in faulty:
            return node
    return None


def _new_change(chance: random.Random, state: NodeState) -> Change:
    sizes = {kind: _slots(state, kind) for kind in _WEIGHTS}
    kinds = [kind for kind, size in sizes.items() if size]
    (kind,) = chance.choices(kinds, [_WEIGHTS[kind] for kind in kinds])
    if kind is ChangeKind.TROUBLE:
        return _new_trouble(chance, state)
    return Change(state.index, kind, chance.randrange(sizes[kind]))


def _new_trouble(chance: random.Random, state: NodeState) -> Change:
    sizes = {trouble: slots_of(state.server, trouble) for trouble in _TROUBLES}
    possible = [trouble for trouble, size in sizes.items() if size]
    (trouble,) = chance.choices(possible, [_TROUBLES[trouble] for trouble in possible])
    return Change(state.index, ChangeKind.TROUBLE, chance.randrange(sizes[trouble]), trouble)


def _slots(state: NodeState, kind: ChangeKind) -> int:
    """Return how many parts of the node a change of that kind can be about; 1 for the node as a whole, 0 for none."""
    server = state.server
    gpus = len(server.gpu_places)
    sizes = {
        ChangeKind.GPU_LOST: gpus,
        ChangeKind.GPU_REPLACED: gpus,
        ChangeKind.MIG_CHANGED: gpus if server.gpu and server.gpu.mig_layouts else 0,
        ChangeKind.DRIVER_UPGRADED: min(gpus, 1),
        ChangeKind.ENUMERATION_CUT: min(gpus, 1),
        ChangeKind.DISK_REPLACED: len(server.disks),
        ChangeKind.NIC_REPLACED: len(server.nics),
        ChangeKind.DIMM_LOST: server.dimms,
    }
    return sizes.get(kind, 1)
