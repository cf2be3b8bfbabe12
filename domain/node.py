"""What a node is: several independent axes, and the one word for people that follows from them."""

from enum import StrEnum
from typing import Final

LEASE_SECONDS: Final = 40
"""A session is connected while its last sign of life is not older than this (rule 15 of the product's rules)."""


class ProvisionState(StrEnum):
    """Where a node is in its life."""

    ADOPTING = "adopting"
    ADOPTED = "adopted"
    ENROLLING = "enrolling"
    INSPECTING = "inspecting"
    COMMISSIONING = "commissioning"
    READY = "ready"
    DEPLOYING = "deploying"
    DEPLOYED = "deployed"
    RELEASING = "releasing"
    RESCUE = "rescue"
    FAILED = "failed"
    RETIRING = "retiring"
    RETIRED = "retired"


class Power(StrEnum):
    """Whether the machine has power."""

    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


class Connectivity(StrEnum):
    """Whether the node's agent is heard."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"
    LOST = "lost"


class NodeRole(StrEnum):
    """What the node is for."""

    UNASSIGNED = "unassigned"
    HOST = "host"
    DEDICATED = "dedicated"
    SITE = "site"


class Trust(StrEnum):
    """Whose word the node's reports are."""

    PLATFORM = "platform"
    TENANT_OWNED = "tenant-owned"
    TENANT_CONTROLLED = "tenant-controlled"


class NodeState(StrEnum):
    """The node's state for people, derived from its axes; the first that applies, in this order."""

    RETIRED = "retired"
    LOST = "lost"
    UNREACHABLE = "unreachable"
    DISCONNECTED = "disconnected"
    MAINTENANCE = "maintenance"
    DRAINING = "draining"
    CORDONED = "cordoned"
    READY = "ready"
    PROVISIONING = "provisioning"


SETTLED_STATES: Final = frozenset({ProvisionState.ADOPTED, ProvisionState.READY, ProvisionState.DEPLOYED})
"""Provision states in which a connected node reads READY."""


PLACEABLE_STATES: Final = frozenset({ProvisionState.ADOPTED, ProvisionState.DEPLOYED})
"""Provision states in which work may be placed on a node (rule 8 of the product's rules)."""


def provision_state_at_join(*, checks: int) -> ProvisionState:
    """Return where a new node starts: with no acceptance check to pass, it is adopted at once."""
    return ProvisionState.ADOPTING if checks else ProvisionState.ADOPTED


def generation_at_join(state: ProvisionState) -> int:
    """Return the generation of what a new node is to be: what is adopted has its first, anything else none yet."""
    return 1 if state is ProvisionState.ADOPTED else 0


class InventoryState(StrEnum):
    """Where a node's inventory stands."""

    NONE = "none"
    PENDING = "pending"
    APPLIED = "applied"
    ADVISORY = "advisory"
    FAILED = "failed"
