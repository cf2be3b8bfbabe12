"""How a node's reports are taken while a tenant controls it, and when that ends (rule 9)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from domain.inventory import InventoryOutcome, NodeState, Report, Unchanged, advisory_report, apply_report
from domain.node import Trust

ADVISORY: Final = "advisory:"
"""Marks the digest of a set that was noted and not applied."""


def take_report(
    state: NodeState, report: Report, trust: Trust, applied_digest: str | None, now: datetime
) -> InventoryOutcome | Unchanged:
    """Apply a report, or only note it under a tenant's control.

    What a tenant said last is never planned from: it waits for the next report after `endAdvisoryInventory`.
    """
    if trust is Trust.TENANT_CONTROLLED:
        return advisory_report(state, report)
    if not is_advisory(applied_digest):
        return apply_report(state, report, now)
    if _same(state.applied, report.hashes):
        return Unchanged()
    return apply_report(replace(state, applied=None, sections={}), report, now)


def marked(digest: str, *, advisory: bool) -> str:
    """Return a digest as it is stored."""
    return f"{ADVISORY}{digest}" if advisory else digest


def is_advisory(applied_digest: str | None) -> bool:
    """Say whether a stored digest is that of a set that was only noted."""
    return (applied_digest or "").startswith(ADVISORY)


def _same(applied: Mapping[str, str] | None, hashes: Mapping[str, str]) -> bool:
    return applied is not None and dict(applied) == dict(hashes)
