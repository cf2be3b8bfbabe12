"""A pool's policy document: what its machines are held to, read strictly, so that a slip of the pen is told.

Source: rules 5, 8, 10 and 12 of the product's rules. Unknown keys are refused: a misspelled one would be a policy that
silently does not hold.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from domain.errors import InvalidInput
from domain.pool import Sharing
from domain.xid_rules import XidPolicy

SLOTS_BY_TIMESLICE: Final = 4
SLOTS_BY_MPS: Final = 10
"""Slots of a GPU where the policy does not say: MPS takes up to 48 clients, and NVIDIA's device plugin sets none."""
_PLACE: Final = re.compile(r" - at (?:`key` in )?`\$\.?(?P<place>[^`]*)`$")

Name = Annotated[str, Meta(min_length=1, max_length=255)]
Scalar = Annotated[str, Meta(pattern="^[a-z][A-Za-z0-9.]{0,63}$")]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[int, Meta(ge=1, le=31_536_000)]
XidCode = Annotated[str, Meta(pattern="^[1-9][0-9]{0,4}$")]
XidOverride = Literal["event", "quarantine", "node_no_schedule", "node_alert"]


class Check(StrEnum):
    """A kind of acceptance check."""

    NVML = "diag.nvml"
    DCGM = "diag.dcgm"
    INVENTORY = "inventory.refresh"


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A part of the document."""


class SharingPolicy(_Part, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """How many slots a GPU has in pools that share it."""

    replicas: Annotated[int, Meta(ge=1, le=48)] | None = None


class Expected(_Part, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """What each machine of the pool has."""

    gpu_count: Annotated[int, Meta(ge=0, le=64)] | None = None


class Admission(_Part, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """What is asked before work is taken."""

    budget_check: bool = False


class PoolPolicy(_Part, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """The whole document; everything may be left out.

    `overcommit` says by scalar (`memory`, `cores`) how much more than a host has may be given away, `lost_after` after
    how many seconds of silence a node is lost, `disruption_budget` which share of the pool may be out for remediation
    at once, `mig_layout` the profiles of each GPU as NVML names them, `xids` what a fault does here, by its code.
    """

    sharing: SharingPolicy = SharingPolicy()
    expect: Expected = Expected()
    admission: Admission = Admission()
    overcommit: Annotated[dict[Scalar, Annotated[float, Meta(ge=1, le=16)]], Meta(max_length=16)] = {}
    acceptance: Annotated[tuple[Check, ...], Meta(max_length=16)] = ()
    disruption_budget: Share = 0.05
    lost_after: Seconds | None = None
    max_pending: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    hardware_profile: Name | None = None
    mig_layout: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    tenant_root: Name | None = None
    xids: Annotated[dict[XidCode, XidOverride], Meta(max_length=256)] = {}

    @property
    def xid_policies(self) -> dict[str, XidPolicy]:
        """What faults do in this pool, by code, where it differs from the rules."""
        return {code: XidPolicy(word) for code, word in self.xids.items()}


def read_policy(document: Mapping[str, Any]) -> PoolPolicy:
    """Read a policy document; raises InvalidInput naming the place and what would be right."""
    try:
        policy = msgspec.convert(document, PoolPolicy)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PLACE.search(text)
        place = (
            found["place"].replace("[...]", "").replace("[", ".").replace("]", "").removeprefix(".") if found else ""
        )
        raise InvalidInput(f"policy{'.' if place else ''}{place}: {_PLACE.sub('', text)}") from error
    repeated = [kind for number, kind in enumerate(policy.acceptance) if kind in policy.acceptance[:number]]
    if repeated:
        raise InvalidInput(f"policy.acceptance: {repeated[0].value!r} stands there twice; each kind is checked once")
    return policy


def slots_per_gpu(sharing: Sharing, policy: PoolPolicy) -> int:
    """Return how many slots each GPU of a pool has: none where GPUs are not shared by time."""
    default = {Sharing.TIMESLICE: SLOTS_BY_TIMESLICE, Sharing.MPS: SLOTS_BY_MPS}.get(sharing, 0)
    return (policy.sharing.replicas or default) if default else 0
