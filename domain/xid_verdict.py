"""What a fault of the kernel log means for placement (rules 10 and 16): pure, and told with the rule that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, assert_never

from domain.fault_scan import SeenFault
from domain.kernel_faults import RECOVERY_CODE, Fault, FaultKind, NvlinkError
from domain.nvlink5 import FOLLOW_154, RESET, Decoded, decode, driver_branch
from domain.xid_rules import XID_RULES, XidClass, XidPolicy, XidRemedy, XidRule

CONSEQUENCE: Final = "xid.consequence"
INJECTED: Final = "xid.injected"
UNKNOWN: Final = "xid.unknown"
_UNKNOWN_SXID: Final = "sxid.unknown"
_WHAT_UNKNOWN: Final = "no rule has this code"
_OF_PROGRAMS: Final = frozenset({XidClass.APPLICATION, XidClass.CONSEQUENCE})


class Scope(StrEnum):
    """What a fault touches."""

    INSTANCE = "instance"
    """One MIG instance."""
    GPU = "gpu"
    """A board with all its atoms."""
    NODE = "node"
    SWITCH = "switch"
    """An NVSwitch: never the GPU whose address looks alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known beside the log.

    `driver_version` of the node (None: what the log tells), `remap_pending` as the GPU's last inventory says,
    `overrides` the pool's policies by code.
    """

    driver_version: str | None = None
    remap_pending: bool | None = None
    overrides: Mapping[str, XidPolicy] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a fault does.

    `rule` is the id and version of the rule that says so, `cause` the fault by its code, `caused_by` the one that it
    follows. `condition` is the type that it raises, or with CLEAR lowers; `note` says what was not certain.
    """

    policy: XidPolicy
    scope: Scope
    rule: str
    cause: str
    meaning: str
    recommended_action: str | None = None
    condition: str | None = None
    remedy: XidRemedy | None = None
    caused_by: str | None = None
    note: str | None = None
    boot_id: str | None = None
    count: int = 1


_RAISES: Final = {
    XidPolicy.QUARANTINE: XidRemedy.GPU_RESET,
    XidPolicy.QUARANTINE_AND_DRAIN: XidRemedy.GPU_RESET,
    XidPolicy.NODE_NO_SCHEDULE: XidRemedy.REBOOT,
    XidPolicy.NODE_ALERT: None,
}
"""The policies that raise a condition, with what ends it where a pool's policy does not say."""


def judge(seen: SeenFault, circumstances: Circumstances) -> Verdict:
    """Return what a fault does under these circumstances."""
    fault = seen.fault
    known = replace(circumstances, driver_version=circumstances.driver_version or seen.driver_version)
    verdict = _switch(fault) if fault.kind is FaultKind.SXID else _xid(fault, known)
    return replace(verdict, scope=_scope(fault, verdict), boot_id=seen.boot_id, count=seen.count)


def _xid(fault: Fault, known: Circumstances) -> Verdict:
    rule = XID_RULES.by_code.get(fault.code)
    verdict = Verdict(
        policy=XidPolicy.EVENT,
        scope=Scope.GPU,
        rule=_versioned(rule.id if rule else UNKNOWN),
        cause=f"Xid{fault.code}",
        meaning=rule.meaning if rule else _WHAT_UNKNOWN,
        recommended_action=rule.recommended_action if rule else None,
    )
    if fault.caused_by is not None:
        cause = f"Xid{fault.caused_by}"
        return replace(verdict, rule=_versioned(CONSEQUENCE), caused_by=cause, note=f"a consequence of {cause}")
    if fault.nvlink is not None and fault.nvlink.is_injected:
        return replace(verdict, rule=_versioned(INJECTED), note="injected for a test: recorded only")
    override = known.overrides.get(str(fault.code))
    if override is not None and not _clears(fault):
        return _overridden(verdict, override, rule)
    return replace(verdict, policy=XidPolicy.UNKNOWN) if rule is None else _by_rule(verdict, rule, fault, known)


def _by_rule(verdict: Verdict, rule: XidRule, fault: Fault, known: Circumstances) -> Verdict:
    match rule.policy:
        case XidPolicy.NVLINK5:
            return _nvlink5(verdict, fault, known.driver_version)
        case XidPolicy.RECOVERY_ACTION:
            return _recovery(verdict, fault)
        case XidPolicy.ROW_REMAP if known.remap_pending is False:
            return replace(verdict, note="no remap is pending")
        case XidPolicy.ROW_REMAP:
            return replace(verdict, policy=XidPolicy.QUARANTINE, condition=rule.condition, remedy=rule.remedy)
        case _:
            return replace(verdict, policy=rule.policy, condition=rule.condition, remedy=rule.remedy)


def _nvlink5(verdict: Verdict, fault: Fault, driver_version: str | None) -> Verdict:
    found = decode(fault.code, fault.nvlink or NvlinkError(), driver_version)
    if found.row is None:
        return replace(verdict, policy=XidPolicy.UNKNOWN, note="no row for this unit, its bits and this driver")
    decoded = replace(verdict, rule=_versioned(found.row.id), note=_doubt(found, driver_version))
    if found.action == RESET:
        return replace(decoded, policy=XidPolicy.QUARANTINE, condition=verdict.cause, remedy=XidRemedy.GPU_RESET)
    return decoded


def _doubt(found: Decoded, driver_version: str | None) -> str | None:
    told = [
        "the driver is not known" if driver_branch(driver_version) is None else "",
        "" if found.is_certain else "the most careful of the rows that may hold",
        "the Xid 154 that comes with it decides" if found.action == FOLLOW_154 else "",
    ]
    return "; ".join(filter(None, told)) or None


def _recovery(verdict: Verdict, fault: Fault) -> Verdict:
    """Let the last value decide: the number, as labels differ between drivers."""
    action = None if fault.recovery is None else XID_RULES.by_recovery_action.get(fault.recovery)
    if action is None:
        what = "the line was cut before it" if fault.recovery is None else f"0x{fault.recovery:x} has no rule"
        return replace(verdict, policy=XidPolicy.UNKNOWN, note=f"the action asked for is not known: {what}")
    return replace(
        verdict,
        policy=action.policy,
        rule=_versioned(action.id),
        meaning=action.meaning,
        condition=verdict.cause,
        remedy=action.remedy,
    )


def _switch(fault: Fault) -> Verdict:
    rule = XID_RULES.by_sxid.get(fault.code)
    fatal = {None: "", True: "the switch calls it fatal", False: "the switch calls it non-fatal"}[fault.is_fatal]
    return Verdict(
        policy=XidPolicy.EVENT if rule else XidPolicy.UNKNOWN,
        scope=Scope.SWITCH,
        rule=_versioned(f"sxid.{rule.code}" if rule else _UNKNOWN_SXID),
        cause=f"SXid{fault.code}",
        meaning=f"{rule.name} (fatal: {rule.fatal.value})" if rule else _WHAT_UNKNOWN,
        note=fatal or None,
    )


def _overridden(verdict: Verdict, policy: XidPolicy, rule: XidRule | None) -> Verdict:
    is_raised = policy in _RAISES
    return replace(
        verdict,
        policy=policy,
        rule=_versioned(f"pool.{verdict.cause.lower()}"),
        condition=((rule.condition if rule else None) or verdict.cause) if is_raised else None,
        remedy=(rule.remedy if rule and rule.policy is policy else _RAISES[policy]) if is_raised else None,
        note="by the pool's policy",
    )


def _clears(fault: Fault) -> bool:
    """Say whether it is a recovery: no pool's policy holds a GPU that its driver calls healthy."""
    return fault.code == RECOVERY_CODE and fault.recovery == 0


def _scope(fault: Fault, verdict: Verdict) -> Scope:
    match verdict.policy:
        case _ if verdict.scope is Scope.SWITCH:
            return Scope.SWITCH
        case XidPolicy.NODE_NO_SCHEDULE | XidPolicy.NODE_ALERT:
            return Scope.NODE
        case (
            XidPolicy.EVENT
            | XidPolicy.UNKNOWN
            | XidPolicy.QUARANTINE
            | XidPolicy.QUARANTINE_AND_DRAIN
            | XidPolicy.CLEAR
            | XidPolicy.ROW_REMAP
            | XidPolicy.RECOVERY_ACTION
            | XidPolicy.NVLINK5
        ):
            rule = XID_RULES.by_code.get(fault.code)
            is_of_program = rule is not None and rule.xid_class in _OF_PROGRAMS
            return Scope.INSTANCE if fault.mig is not None and is_of_program else Scope.GPU
        case _:
            assert_never(verdict.policy)


def _versioned(rule: str) -> str:
    return f"{rule}/{XID_RULES.version}"
