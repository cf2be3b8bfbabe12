"""What a fault does to placement, and which rule says so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.fault_scan import FaultScan, SeenFault
from domain.kernel_log import Record
from domain.nvlink5 import driver_branch
from domain.xid_rules import XID_RULES, XidPolicy, XidRemedy
from domain.xid_verdict import Circumstances, Scope, Verdict, judge

HERE = "PCI:0000:18:00"
V = XID_RULES.version
NOTHING_KNOWN = Circumstances()


def seen(message: str) -> SeenFault:
    (fault,) = FaultScan("boot").read(Record(message=message))
    assert isinstance(fault, SeenFault)
    return fault


def verdict(rest: str, known: Circumstances = NOTHING_KNOWN, instance: str = "") -> Verdict:
    return judge(seen(f"NVRM: Xid ({HERE}{instance}): {rest}"), known)


@pytest.mark.parametrize(
    ("rest", "policy", "scope", "condition", "remedy"),
    [
        ("13, Graphics", XidPolicy.EVENT, Scope.GPU, None, None),
        ("43, Ch 1", XidPolicy.EVENT, Scope.GPU, None, None),
        ("45, Ch 1", XidPolicy.EVENT, Scope.GPU, None, None),
        ("94, Contained", XidPolicy.EVENT, Scope.GPU, None, None),
        ("121", XidPolicy.EVENT, Scope.GPU, None, None),
        ("48, DBE", XidPolicy.QUARANTINE, Scope.GPU, "Xid48", XidRemedy.GPU_RESET),
        ("74", XidPolicy.QUARANTINE, Scope.GPU, "Xid74", XidRemedy.GPU_RESET),
        ("119", XidPolicy.QUARANTINE, Scope.GPU, "Xid119", XidRemedy.GPU_RESET),
        ("64", XidPolicy.QUARANTINE, Scope.GPU, "RowRemapFailed", XidRemedy.GPU_RESET),
        ("63", XidPolicy.QUARANTINE, Scope.GPU, "RowRemapPending", XidRemedy.GPU_RESET),
        ("79", XidPolicy.NODE_NO_SCHEDULE, Scope.NODE, "Xid79", XidRemedy.REBOOT),
        ("95", XidPolicy.NODE_NO_SCHEDULE, Scope.NODE, "Xid95", XidRemedy.REBOOT),
        ("54", XidPolicy.NODE_ALERT, Scope.NODE, "Xid54", None),
        ("14", XidPolicy.UNKNOWN, Scope.GPU, None, None),
    ],
)
def test_the_default_policy_of_a_code(
    rest: str, policy: XidPolicy, scope: Scope, condition: str | None, remedy: XidRemedy | None
) -> None:
    found = verdict(rest)
    assert (found.policy, found.scope, found.condition, found.remedy) == (policy, scope, condition, remedy)
    code = rest.partition(",")[0]
    assert (found.rule, found.cause, found.boot_id, found.count) == (f"xid.{code}/{V}", f"Xid{code}", "boot", 1)


def test_a_code_without_a_row_is_an_event_and_unknown() -> None:
    found = verdict("999, new")
    assert (found.policy, found.rule, found.condition) == (XidPolicy.UNKNOWN, f"xid.unknown/{V}", None)


def test_a_row_remap_that_is_not_pending_is_an_event() -> None:
    assert verdict("63", Circumstances(remap_pending=False)).policy is XidPolicy.EVENT
    assert verdict("63", Circumstances(remap_pending=True)).policy is XidPolicy.QUARANTINE


def test_a_gpu_that_fell_off_the_bus_without_an_xid_is_judged_as_xid_79() -> None:
    found = judge(seen("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."), NOTHING_KNOWN)
    assert (found.condition, found.policy, found.rule) == ("Xid79", XidPolicy.NODE_NO_SCHEDULE, f"xid.79/{V}")


@pytest.mark.parametrize("rest", ["45, Ch 1 caused by previous Xid 149", "79, x caused by previous Xid 119"])
def test_a_consequence_is_linked_and_no_second_verdict(rest: str) -> None:
    found = verdict(rest, Circumstances(overrides={"45": XidPolicy.QUARANTINE}))
    assert (found.policy, found.rule, found.condition) == (XidPolicy.EVENT, f"xid.consequence/{V}", None)
    assert found.caused_by in {"Xid149", "Xid119"}


def test_a_fault_of_a_program_touches_its_instance_and_one_of_hardware_the_board() -> None:
    instance = " GPU-I:05 GPU-CI:00"
    scopes = {code: verdict(str(code), instance=instance).scope for code in (13, 45, 94, 48, 119, 999)}
    assert scopes == {
        13: Scope.INSTANCE,
        45: Scope.INSTANCE,
        94: Scope.INSTANCE,
        48: Scope.GPU,
        119: Scope.GPU,
        999: Scope.GPU,
    }
    strict = Circumstances(overrides={"13": XidPolicy.QUARANTINE})
    assert verdict("13", strict, instance).scope is Scope.INSTANCE


def test_a_switchs_error_is_the_switchs_whatever_a_pool_says() -> None:
    known = Circumstances(overrides={"20034": XidPolicy.QUARANTINE})
    found = judge(seen("nvidia-nvswitch1: SXid (PCI:0000:18:00.0): 20034, Fatal, Link 30 x"), known)
    assert (found.policy, found.scope, found.rule) == (XidPolicy.EVENT, Scope.SWITCH, f"sxid.20034/{V}")
    assert (found.cause, found.note) == ("SXid20034", "the switch calls it fatal")
    unknown = judge(seen("nvidia-nvswitch1: SXid (PCI:0000:18:00.0): 28006, Severity 0"), NOTHING_KNOWN)
    assert (unknown.policy, unknown.scope, unknown.note) == (XidPolicy.UNKNOWN, Scope.SWITCH, None)


@pytest.mark.parametrize(
    ("to", "policy", "scope"),
    [
        ("0x0", XidPolicy.CLEAR, Scope.GPU),
        ("0x1", XidPolicy.QUARANTINE, Scope.GPU),
        ("0x2", XidPolicy.NODE_NO_SCHEDULE, Scope.NODE),
        ("0x3", XidPolicy.QUARANTINE_AND_DRAIN, Scope.GPU),
        ("0x4", XidPolicy.QUARANTINE_AND_DRAIN, Scope.GPU),
        ("0x5", XidPolicy.NODE_ALERT, Scope.NODE),
        ("0x6", XidPolicy.QUARANTINE, Scope.GPU),
        ("0x7", XidPolicy.NODE_NO_SCHEDULE, Scope.NODE),
        ("0x8", XidPolicy.UNKNOWN, Scope.GPU),
    ],
)
def test_the_number_that_the_recovery_action_changed_to_decides(to: str, policy: XidPolicy, scope: Scope) -> None:
    # The label is another one's on purpose: labels changed with the driver.
    found = verdict(f"154, GPU recovery action changed from 0x1 (None) to {to} (Drain P2P)")
    assert (found.policy, found.scope) == (policy, scope)
    assert found.condition == (None if to == "0x8" else "Xid154")


def test_a_change_of_the_recovery_action_that_was_cut_decides_nothing() -> None:
    assert verdict("154, GPU recovery action changed from 0x1 (").policy is XidPolicy.UNKNOWN


def test_a_pools_policy_stands_before_the_rules_but_not_before_a_recovery() -> None:
    lax = Circumstances(overrides={"109": XidPolicy.EVENT, "999": XidPolicy.NODE_ALERT, "64": XidPolicy.QUARANTINE})
    found = verdict("109", lax)
    assert (found.policy, found.rule, found.condition, found.remedy) == (
        XidPolicy.EVENT,
        f"pool.xid109/{V}",
        None,
        None,
    )
    assert (verdict("999", lax).condition, verdict("999", lax).scope) == ("Xid999", Scope.NODE)
    assert verdict("64", lax).condition == "RowRemapFailed"
    strict = Circumstances(overrides={"13": XidPolicy.NODE_NO_SCHEDULE, "154": XidPolicy.QUARANTINE})
    assert verdict("13", strict).remedy is XidRemedy.REBOOT
    clear = verdict("154, GPU recovery action changed from 0x1 (x) to 0x0 (None)", strict)
    assert clear.policy is XidPolicy.CLEAR


def nvlink(code: int, rest: str, driver: str | None) -> tuple[str, str, bool]:
    found = verdict(f"{code}, {rest}", Circumstances(driver_version=driver))
    return found.policy.value, found.rule.removesuffix(f"/{V}"), found.note is not None


OLD, NEW = "570.86.15", "575.57.08"


@pytest.mark.parametrize(
    ("code", "rest", "driver", "expected"),
    [
        # The same bits under two drivers.
        (145, "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000080)", OLD, ("quarantine", "RLW_REMAP.00000080")),
        (145, "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000080)", NEW, ("unknown", "")),
        (145, "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000080)", OLD, ("unknown", "")),
        (145, "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000080)", NEW, ("quarantine", "RLW_REMAP.00000080")),
        # A row that leaves it to Xid 154; the driver's severity where a row has two actions.
        (145, "RLW_REMAP Nonfatal XC0 i0 Link 10 (0x00000082 0x00000001)", OLD, ("event", "RLW_REMAP.00000001")),
        (145, "RLW_RXPIPE Nonfatal XC0 i0 Link 10 (0x000000c2 0x00000002)", OLD, ("event", "RLW_RXPIPE.00000002")),
        (145, "RLW_RXPIPE Fatal XC0 i0 Link 10 (0x000000c2 0x00000002)", OLD, ("quarantine", "RLW_RXPIPE.00000002")),
        # Several bits of a status: the most careful; a code whose status is a number.
        (144, "SAW_MVB Fatal XC0 i0 Link 1 (0x00000021 0x00000003)", OLD, ("quarantine", "SAW_MVB.00000002")),
        (
            149,
            "NETIR_MFDE_EVT Nonfatal XC0 i0 Link 1 (0x00000246 0x00000003)",
            OLD,
            ("event", "NETIR_MFDE_EVENT.00000003"),
        ),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 1 (0x028001c6 0x00000000)", OLD, ("event", "NETIR_LINK_DOWN.40")),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 1 (0x021001c6 0x00000000)", OLD, ("quarantine", "NETIR_LINK_DOWN.33")),
        # Another unit with these bits.
        (146, "TLW_CTRL Fatal XC0 i0 Link 1 (0x00000143 0x00000004)", OLD, ("unknown", "")),
        (
            146,
            "TLW_RX/TLW_RX_PIPE1 Fatal XC0 i0 Link 1 (0x0000000b 0x00000004)",
            NEW,
            ("quarantine", "TLW_RX_PIPE1.00000004"),
        ),
    ],
)
def test_nvlink5_is_decoded_by_unit_bits_status_severity_and_driver(
    code: int, rest: str, driver: str, expected: tuple[str, str]
) -> None:
    policy, rule, is_doubted = nvlink(code, rest, driver)
    assert (policy, rule) == (expected[0], f"xid.{code}.{expected[1]}".removesuffix("."))
    assert is_doubted == (policy == "unknown" or rule.endswith("RLW_REMAP.00000001"))


@pytest.mark.parametrize(
    ("rest", "driver"),
    [
        ("RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000040)", None),
        ("RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000040)", "unknown"),
        ("RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082", OLD),
        ("RLW_REMAP Non", OLD),
        ("", OLD),
        ("", None),
    ],
)
def test_what_is_not_known_takes_the_careful_row_and_says_so(rest: str, driver: str | None) -> None:
    policy, _, is_doubted = nvlink(145, rest, driver)
    assert (policy, is_doubted) == ("quarantine", True)


def test_an_injected_error_is_recorded_only() -> None:
    found = verdict("145, RLW_REMAP Fatal XC1 i1 Link 10 (0x00000082 0x00000040)", Circumstances(driver_version=OLD))
    assert (found.policy, found.rule) == (XidPolicy.EVENT, f"xid.injected/{V}")


@pytest.mark.parametrize(
    ("version", "branch"),
    [("575.57.08", 575), ("575", 575), ("", None), (None, None), ("x.1", None), ("99999.1", None)],
)
def test_a_drivers_branch_is_its_first_number(version: str | None, branch: int | None) -> None:
    assert driver_branch(version) == branch


@given(
    st.integers(0, 200),
    st.text(max_size=30),
    st.sampled_from([None, OLD, NEW, "?"]),
    st.dictionaries(st.sampled_from(["13", "145", "154"]), st.sampled_from([XidPolicy.EVENT, XidPolicy.QUARANTINE])),
)
@settings(max_examples=150)
def test_every_fault_has_a_verdict_whose_rule_is_named(
    code: int, rest: str, driver: str | None, overrides: dict[str, XidPolicy]
) -> None:
    for each in FaultScan().read(Record(message=f"NVRM: Xid ({HERE}): {code}, {rest}")):
        assert isinstance(each, SeenFault)
        found = judge(each, Circumstances(driver_version=driver, overrides=overrides))
        assert found.rule.endswith(f"/{V}")
        assert found.policy not in {XidPolicy.ROW_REMAP, XidPolicy.NVLINK5, XidPolicy.RECOVERY_ACTION}
