"""The tables of docs/health.md: conditions and events, from the data that the code goes by.

`python -m web.health_catalog` writes them into the document, between their marks.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from db.declared.events import GRAPH_TYPES, OTHER
from domain.condition_types import CONDITION_TYPES, ConditionPolicy
from domain.event_types import EVENT_TYPES
from domain.xid_rules import XID_RULES, XidPolicy, XidRemedy

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "health.md"
_EFFECTS: Final = {
    ConditionPolicy.NO_SCHEDULE: "NoSchedule",
    ConditionPolicy.NO_SCHEDULE_ON_VPS_HOST: "NoSchedule in `vps-host` pools, else an alert",
    ConditionPolicy.DEVICE: "the GPU is quarantined, the node stays",
    ConditionPolicy.ALERT: "an alert",
}
_XID_EFFECTS: Final = {
    XidPolicy.QUARANTINE: "the GPU is quarantined, the node stays",
    XidPolicy.QUARANTINE_AND_DRAIN: "the GPU is quarantined, and NoSchedule",
    XidPolicy.NODE_NO_SCHEDULE: "NoSchedule",
    XidPolicy.NODE_ALERT: "an alert",
    XidPolicy.ROW_REMAP: "the GPU is quarantined, the node stays",
}
_XID_ENDS: Final = {
    XidRemedy.GPU_RESET: "a GPU reset or a reboot by remediation, `clearDeviceHealth`, another card",
    XidRemedy.REBOOT: "a reboot by remediation, or one that came about; `clearDeviceHealth`",
    XidRemedy.IMEX_RESTART: "another boot, `clearDeviceHealth`",
    None: "another boot, `clearDeviceHealth`",
}


def condition_table() -> str:
    """Return the table of the conditions that are no Xids."""
    rows = (
        (f"`{each.name}`", each.source.value, each.raised, each.cleared, _EFFECTS[each.policy])
        for each in CONDITION_TYPES
    )
    return _table(("condition", "from", "raised by", "cleared by", "scheduling effect"), rows)


def xid_table() -> str:
    """Return the table of the conditions that Xids raise by default."""
    rows = [
        (
            f"`{rule.condition}`",
            f"Xid {rule.code}: {_sentence(rule.meaning)}",
            _XID_ENDS[rule.remedy],
            _XID_EFFECTS[rule.policy],
        )
        for rule in XID_RULES.codes
        if rule.condition is not None
    ]
    rows += [
        (
            f"`Xid{code}`",
            f"Xid {code}: a row of the NVLink 5 table that asks for a reset",
            _XID_ENDS[XidRemedy.GPU_RESET],
            _XID_EFFECTS[XidPolicy.QUARANTINE],
        )
        for code in sorted({rule.code for rule in XID_RULES.nvlink5})
    ]
    rows += [
        (
            "`Xid154`",
            f"its last value is {each.value}: {_sentence(each.meaning)}",
            f"its value 0; {_XID_ENDS[each.remedy]}",
            _XID_EFFECTS[each.policy],
        )
        for each in XID_RULES.recovery
        if each.policy is not XidPolicy.CLEAR
    ]
    return _table(("condition", "raised by", "cleared by", "scheduling effect"), rows)


def event_table() -> str:
    """Return the table of the types of events."""
    rows = (
        (
            f"`{each.name}`",
            f"`{GRAPH_TYPES.get(each.name, OTHER)}`",
            each.told,
            each.ended_by or "-",
            each.effect or "none",
        )
        for each in EVENT_TYPES
    )
    return _table(("event", "in the graph", "told when", "ended by", "scheduling effect"), rows)


TABLES: Final = {"conditions": condition_table, "xids": xid_table, "events": event_table}


def written(document: str) -> str:
    """Return the document with the tables as they are now between their marks; raises ValueError without a mark."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, found, rest = document.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            message = f"{name}: no place for this table in the document"
            raise ValueError(message)
        document = f"{head}{begin}{table()}{end}{tail}"
    return document


def _sentence(text: str) -> str:
    return text.removesuffix(".")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (head, ["---"] * len(head), *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
