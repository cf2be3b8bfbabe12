"""The rules' data: complete, and its rows agree with each other and with the rules of the domain."""

from domain.xid_rules import XID_RULES, XidClass, XidPolicy, XidRemedy

POLICIES = {
    XidPolicy.QUARANTINE: {46, 48, 62, 64, 74, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 171, 172},
    XidPolicy.NODE_NO_SCHEDULE: {79, 95},
    XidPolicy.NODE_ALERT: {54},
    XidPolicy.ROW_REMAP: {63},
    XidPolicy.NVLINK5: set(range(144, 151)),
    XidPolicy.RECOVERY_ACTION: {154},
}


def test_the_codes_with_a_policy_are_these_and_all_others_are_events() -> None:
    found: dict[XidPolicy, set[int]] = {}
    for rule in XID_RULES.codes:
        found.setdefault(rule.policy, set()).add(rule.code)
    events = found.pop(XidPolicy.EVENT)
    not_in_use = found.pop(XidPolicy.UNKNOWN)
    assert found == POLICIES
    assert {13, 31, 43, 45, 94} <= events
    classes = {XID_RULES.by_code[code].xid_class for code in not_in_use}
    assert classes == {XidClass.UNUSED, XidClass.UNLISTED}


def test_every_code_up_to_the_last_is_there_once() -> None:
    codes = [rule.code for rule in XID_RULES.codes]
    assert codes == sorted(set(codes)) == list(range(1, 177))


def test_what_raises_a_condition_says_which_and_what_ends_it() -> None:
    for rule in XID_RULES.codes:
        raises = rule.policy in POLICIES and rule.policy not in {XidPolicy.NVLINK5, XidPolicy.RECOVERY_ACTION}
        assert (rule.condition is not None) == raises, rule.code
        assert rule.meaning
        assert rule.recommended_action
    assert XID_RULES.by_code[63].condition == "RowRemapPending"
    assert XID_RULES.by_code[64].condition == "RowRemapFailed"
    assert XID_RULES.by_code[79].remedy is XidRemedy.REBOOT
    assert XID_RULES.by_code[74].remedy is XidRemedy.GPU_RESET


def test_the_recovery_actions_are_all_there() -> None:
    assert [action.policy for action in XID_RULES.recovery] == [
        XidPolicy.CLEAR,
        XidPolicy.QUARANTINE,
        XidPolicy.NODE_NO_SCHEDULE,
        XidPolicy.QUARANTINE_AND_DRAIN,
        XidPolicy.QUARANTINE_AND_DRAIN,
        XidPolicy.NODE_ALERT,
        XidPolicy.QUARANTINE,
        XidPolicy.NODE_NO_SCHEDULE,
    ]
    assert list(XID_RULES.by_recovery_action) == list(range(8))


def test_rows_of_nvlink5_have_ids_bits_and_actions() -> None:
    rows = XID_RULES.nvlink5
    assert len({row.id for row in rows}) == len(rows) == 94
    assert {row.code for row in rows} == set(range(144, 151))
    for row in rows:
        assert len(row.bits_before_575) == len(row.bits_since_575) == 32
        assert {*row.bits_before_575, *row.bits_since_575} <= set("01-")
        assert {row.action, row.action_if_fatal or row.action} <= {"IGNORE", "RESET_GPU", "XID_154_EVAL"}


def test_codes_of_switches_are_there_once() -> None:
    assert len(XID_RULES.by_sxid) == len(XID_RULES.sxids)
