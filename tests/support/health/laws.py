"""What holds of health at any moment, and what once everything is at rest, by the rows alone."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from tests.support.health.written import Found, State, moment

OF_FAULTS: Final = frozenset(
    {"Xid13", "Xid48", "Xid74", "Xid79", "Xid95", "Xid119", "Xid154", "RowRemapPending", "RowRemapFailed"}
)
DAY: Final = timedelta(hours=24)


@dataclass
class Laws:
    """The laws, with what they remember of the look before."""

    runs: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    """Nodes that an operator said to adopt since the last look."""

    def hold_now(self, state: State) -> None:
        """Check what holds at any moment."""
        for node in state.nodes.values():
            reasons = {c["type"] for c in _true(state, node["id"]) if c["no_schedule"]}
            assert set(node["no_schedule_reasons"]) == reasons, node["identity_key"]
        _devices(state)
        self._begun(state)
        self._failures(state)
        for row in state.health:
            if row["source"] == "xid":
                causes = [f for f in _held_faults(state, row["node_id"]) if f["cause"] == row["cause"]]
                assert causes, f"{row} has no cause"

    def _begun(self, state: State) -> None:
        """Of the runs that began: nobody holds the node, the budget is kept, and it was not tried too often."""
        for run in state.runs:
            if run["id"] in self.runs:
                continue
            self.runs.add(run["id"])
            if run["command_id"] is None:
                continue
            node = state.nodes[run["node_id"]]
            assert not [h for h in state.held if h["node_id"] == node["id"] and h["is_soon"]], "somebody holds it"
            out = state.open_runs(state.in_pool(node["pool_id"]))
            assert len(out) <= _budget(state, node["pool_id"]), "more are out than the pool's budget"
            assert node["trust"] != "tenant-controlled"
            for fault in run["faults"]:
                assert len(_tries(state, run, fault)) <= 1, "tried too often"

    def _failures(self, state: State) -> None:
        failed = {c["node_id"] for c in state.conditions if c["type"] == "AcceptanceFailed" and c["status"] == "true"}
        lost = self.failed - failed - self.asked
        assert not lost, "a failed acceptance ended by itself"
        self.failed, self.asked = failed, set()


def hold_at_rest(state: State) -> None:
    """Check what holds once the reconcilers have nothing to do."""
    for node in state.nodes.values():
        faults = _held_faults(state, node["id"])
        rows = [row for row in state.health if row["node_id"] == node["id"] and row["source"] != "operator"]
        conditions = {c["type"]: c for c in _true(state, node["id"])}
        assert conditions.keys() & OF_FAULTS == {f["condition"] for f in faults} | {row["reason"] for row in rows}
        keeping = {f["condition"] for f in faults if f["policy"] == "node_no_schedule"}
        assert {kind for kind in conditions.keys() & OF_FAULTS if conditions[kind]["no_schedule"]} == keeping
        assert ("Remediating" in conditions) == bool(state.open_runs([node["id"]]))
    pending = {
        gpu["id"]
        for gpu in state.devices.values()
        if gpu["device_class"] == "gpu"
        and not gpu["missing"]
        and not gpu["attributes"].get("lost")
        and gpu["attributes"].get("health", {}).get("rowRemap", {}).get("pending") is True
    }
    missing = {d["id"] for d in state.devices.values() if d["missing"]}
    shown = {row["device_id"] for row in state.health if row["source"] == "inventory"}
    assert shown - missing >= pending - missing


def _devices(state: State) -> None:
    """A device is healthy when it is there and nothing is said of it, nor of what it is a part of."""
    faulty = {row["device_id"] for row in state.health}
    for device in state.devices.values():
        whole = state.devices.get(device["parent_id"] or "")
        for each in filter(None, (device, whole)):
            if each["id"] in faulty or each["attributes"].get("lost"):
                assert not device["healthy"], device["id"]
        is_fine = device["id"] not in faulty and not device["attributes"].get("lost") and not device["missing"]
        if is_fine and (whole is None or whole["healthy"]):
            assert device["healthy"], device["id"]


def _true(state: State, node_id: str) -> list[Found]:
    return [c for c in state.conditions if c["node_id"] == node_id and c["status"] == "true"]


def _held_faults(state: State, node_id: str) -> list[Found]:
    return [f for f in state.faults if f["node_id"] == node_id and f["condition"] and f["ended_at"] is None]


def _budget(state: State, pool_id: str | None) -> int:
    if pool_id is None:
        return 1
    share = Fraction(str(state.pools[pool_id]["policy"].get("disruptionBudget", 0.05)))
    return max(1, int(share * len(state.in_pool(pool_id))))


def _tries(state: State, run: Found, fault: Any) -> list[Found]:  # noqa: ANN401 - JSON
    """Return the runs of a day before this one that were for the same and were done, since an operator was asked."""
    found: list[Found] = []
    for other in state.runs:
        if other["node_id"] != run["node_id"] or other["id"] >= run["id"]:
            continue
        is_done = other["command_id"] and other["state"] in {"succeeded", "uncleared"}
        is_late = other["finished_at"] and moment(other["finished_at"]) > moment(run["started_at"]) - DAY
        if is_done and is_late and other["reason"] != "boot-over" and fault in other["faults"]:
            found.append(other)
        if other["escalated_at"]:
            found = []
    return found


def counted(state: State) -> Counter[str]:
    """Count what came about: a walk that meets nothing proves nothing."""
    runs = Counter(f"run {run['remedy']} {run['state']} {run['reason'] or ''}" for run in state.runs)
    ends = Counter(
        f"fault {fault['end'] or 'holds' if fault['condition'] else 'fault event'}" for fault in state.faults
    )
    attempts = Counter(f"attempt {attempt['state']}" for attempt in state.attempts)
    return runs + ends + attempts
