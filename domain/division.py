"""What a node's pool makes bookable of its hardware."""

from dataclasses import dataclass
from typing import Final

from domain.pool import PoolClass, Sharing
from domain.pool_policy import PoolPolicy, slots_per_gpu

_METAL: Final = frozenset({PoolClass.METAL_HOST, PoolClass.METAL_DEDICATED})


@dataclass(frozen=True, slots=True)
class Division:
    """How a pool divides its nodes: GPUs whole, by MIG instances or by `slots` each, and the node as one atom."""

    sharing: Sharing = Sharing.EXCLUSIVE
    slots: int = 0
    whole_node: bool = False


UNPOOLED: Final = Division()
"""How a node in no pool is divided."""


def division_of(pool_class: PoolClass, sharing: Sharing, policy: PoolPolicy) -> Division:
    """Return how a pool divides its nodes."""
    return Division(sharing, slots_per_gpu(sharing, policy), pool_class in _METAL)
