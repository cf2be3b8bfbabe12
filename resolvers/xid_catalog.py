"""The rules for faults of the kernel log, asked by people and tools."""

from collections.abc import Sequence

from domain.access import Permission
from domain.kernel_faults import RECOVERY_CODE
from domain.xid_rules import XID_RULES, Nvlink5Rule, RecoveryAction, XidRule
from resolvers.context import Context


def xid_catalog(context: Context, code: int | None) -> Sequence[XidRule]:
    """Return the rules by code, or the one of this code; none for a code without a rule."""
    context.require(Permission.READ)
    return [rule for rule in XID_RULES.codes if code in {None, rule.code}]


def rules_version() -> int:
    """Return the version of the rules."""
    return XID_RULES.version


def recovery_actions(rule: XidRule) -> Sequence[RecoveryAction]:
    """Return the values that decide what a code does: those of Xid 154."""
    return XID_RULES.recovery if rule.code == RECOVERY_CODE else ()


def nvlink5_rules(rule: XidRule) -> Sequence[Nvlink5Rule]:
    """Return the rows by which a code is decoded: Xids 144 to 150 have some."""
    return [row for row in XID_RULES.nvlink5 if row.code == rule.code]
