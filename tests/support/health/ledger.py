"""What must hold of faults, by what was told and done: kept beside the server, and compared with what it wrote.

The ledger knows what each kind of line means by a table of its own. A fault that the server has ended needs a reason
that the ledger knows of; one that the server has must have been told.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.support.health.rack import Kind, Line
from tests.support.health.written import Found, State, moment

BOARD, INSTANCE, NODE, NOTHING, OVER = "board", "instance", "node", "nothing", "over"

Place = tuple[str, str, int, object, object, object]
"""The node, the boot, the Xid, where it is, the MIG instance and the Xid that it follows."""


@dataclass(frozen=True)
class Effect:
    """What a fault does: to what, by which condition, and what ends it by itself."""

    scope: str
    condition: str | None = None
    remedy: str | None = None


_EFFECTS: Final = {
    13: Effect(NOTHING),
    45: Effect(NOTHING),
    48: Effect(BOARD, "Xid48", "gpu_reset"),
    63: Effect(BOARD, "RowRemapPending", "gpu_reset"),
    64: Effect(BOARD, "RowRemapFailed", "gpu_reset"),
    74: Effect(BOARD, "Xid74", "gpu_reset"),
    79: Effect(NODE, "Xid79", "reboot"),
    95: Effect(NODE, "Xid95", "reboot"),
    119: Effect(BOARD, "Xid119", "gpu_reset"),
}
_ACTIONS: Final = {
    "0x0": Effect(OVER),
    "0x1": Effect(BOARD, "Xid154", "gpu_reset"),
    "0x2": Effect(NODE, "Xid154", "reboot"),
}
_IN_POOLS: Final = {
    ("13", "quarantine"): Effect(BOARD, "Xid13", "gpu_reset"),
    ("63", "node_no_schedule"): Effect(NODE, "RowRemapPending", "reboot"),
    ("64", "node_no_schedule"): Effect(NODE, "RowRemapFailed", "reboot"),
}


def effect_of(kind: Kind, *, of_instance: bool, pending: bool | None, policy: dict[str, str]) -> Effect:
    """Return what a line does in a pool with this policy, when this is known of a pending row remap."""
    if kind.caused_by is not None:
        return Effect(NOTHING)
    if kind.code == 154:
        return _ACTIONS[kind.words.rsplit(" to ", 1)[1].split(" ")[0]]
    word = policy.get(str(kind.code))
    if word is not None:
        effect = _IN_POOLS[str(kind.code), word]
        return replace(effect, scope=INSTANCE) if of_instance else effect
    if kind.code == 63 and pending is False:
        return Effect(NOTHING)
    return _EFFECTS[kind.code]


@dataclass(frozen=True)
class Entry:
    """A fault that was told: by its newest line, of which GPU, and what it does while it `holds`."""

    number: int
    device: str | None
    instance: str | None
    effect: Effect
    holds: bool
    tick: int


@dataclass
class Ledger:
    """All faults that were told, and what was done since."""

    entries: dict[Place, Entry] = field(default_factory=dict)
    quarantined: set[str] = field(default_factory=set)
    done: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Commands that an agent did: when, and up to which line of its log."""
    tick: int = 0

    def tell(self, node_id: str, line: Line, state: State, *, is_short: bool = False) -> None:
        """Note a line that a server in this state was told; `is_short` as a condition, which says no more of it."""
        self.tick += 1
        node = state.nodes[node_id]
        boot = node["boot_id"] or "" if is_short else line.boot
        # Which boot a node is in that a tenant had is not known before its next hello.
        if node["trust"] == "tenant-controlled" or node["boot_id"] not in {None, boot}:
            return
        device = line.uuid
        pci = None if is_short or line.slot is None else f"0000{line.slot}.0"
        if device is None and pci is not None:
            there = [g["id"] for g in state.gpus(node_id) if g["pci_bus_id"] == pci and not g["missing"]]
            device = there[0] if len(there) == 1 else None
        instance = None if line.instance is None else "gi{}/ci{}".format(*line.instance)
        cause = None if line.kind.caused_by is None else f"Xid{line.kind.caused_by}"
        number = 0 if is_short else line.number
        where = device if is_short else pci or number
        place = (node_id, boot, line.kind.code, where, instance, cause)
        before = self.entries.get(place)
        is_same = before is None or device in {None, before.device} or before.device is None
        if before is not None and is_same and number <= before.number:
            return
        effect = self._effect(line, state, node, device)
        self.entries[place] = self._after(before if is_same else None, effect, number, device, instance)

    def _effect(self, line: Line, state: State, node: Found, device: str | None) -> Effect:
        pool = state.pools.get(node["pool_id"] or "")
        gpu = state.devices.get(device or "")
        remap = {} if gpu is None or gpu["node_id"] != node["id"] else gpu["attributes"].get("health", {})
        return effect_of(
            line.kind,
            of_instance=line.instance is not None,
            pending=remap.get("rowRemap", {}).get("pending"),
            policy={} if pool is None else pool["policy"].get("xids", {}),
        )

    def _after(
        self, before: Entry | None, effect: Effect, number: int, device: str | None, instance: str | None
    ) -> Entry:
        if before is not None and before.holds and effect.scope == NOTHING:
            return replace(before, number=number, tick=self.tick)
        kept = device or (before.device if before is not None else None)
        return Entry(number, kept, instance, effect, effect.condition is not None, self.tick)

    def clear(self, device_id: str, state: State) -> None:
        """Note that an operator cleared a device, with its parts."""
        parts = {device_id, *(d["id"] for d in state.devices.values() if d["parent_id"] == device_id)}
        self.quarantined -= parts
        for place, entry in self.entries.items():
            is_of_part = entry.effect.scope == INSTANCE and f"{entry.device}/{entry.instance}" in parts
            if entry.device in parts or is_of_part:
                self.entries[place] = replace(entry, holds=False)

    def clear_node(self, node_id: str) -> None:
        """Note that an operator cleared all that a node's kernel log told."""
        for place, entry in self.entries.items():
            if place[0] == node_id:
                self.entries[place] = replace(entry, holds=False)

    def compare(self, state: State) -> None:
        """See that what the server has is what was told, as far as it was not ended for a reason; note what was."""
        written = {_place(row): row for row in state.faults}
        for place, known in self.entries.items():
            row = written.get(place)
            if row is None:
                assert not known.holds, f"{place} was told and is not there"
                continue
            entry = self.entries[place] = _found(known, row, state)
            is_held = row["condition"] is not None and row["ended_at"] is None
            if entry.holds and not is_held:
                assert self._may_end(place, entry, row, state), f"{place} has ended without a reason: {row}"
                self.entries[place] = replace(entry, holds=False)
            assert entry.holds or not is_held, f"{place} came back: {row}"
            if is_held:
                assert row["condition"] == entry.effect.condition, place
                assert row["device_id"] == entry.device, place
        unknown = [row for place, row in written.items() if place not in self.entries]
        assert not unknown, "a fault that nobody told"
        rows = {row["device_id"] for row in state.health if row["source"] == "operator"}
        self.quarantined &= state.devices.keys()
        assert rows == self.quarantined

    def _may_end(self, place: Place, entry: Entry, row: dict[str, Any], state: State) -> bool:
        node_id, boot, *_ = place
        match row["end"]:
            case "rebooted":
                return bool(boot != state.nodes[node_id]["boot_id"])
            case "reset":
                resets = [run for run in state.runs if run["state"] == "succeeded" and run["device_id"] == entry.device]
                done = [self.done.get(run["command_id"], (0, 0)) for run in resets]
                is_before = any(tick > entry.tick or number >= entry.number for tick, number in done)
                return entry.effect.scope != NODE and is_before
            case "replaced":
                return entry.effect.scope != NODE and _is_replaced(entry, row, state)
        return False

    def compare_at_rest(self, state: State) -> None:
        """See that what must have ended has, and that quarantines are those of what holds, and no others."""
        holding = {place: entry for place, entry in self.entries.items() if entry.holds}
        for place, entry in holding.items():
            node_id, boot, *_ = place
            node, inventory = state.nodes[node_id], state.inventory[node_id]
            if node["boot_id"] not in {None, boot} and boot:
                is_left = node["trust"] == "tenant-controlled" or state.open_runs([node_id])
                assert is_left, f"{place} holds, and its boot is over"
            row = next(row for row in state.faults if _place(row) == place)
            is_newer = moment(inventory["reported_at"] or row["last_at"]) > moment(row["last_at"])
            is_seen = inventory["is_applied"] and not inventory["is_advisory"] and is_newer
            is_over = entry.effect.scope != NODE and is_seen and _is_replaced(entry, row, state)
            assert not is_over, f"{place} holds, and another card is in its place"
        wanted = {
            (device, f"Xid{place[2]}")
            for place, entry in holding.items()
            for device in _targets(entry, state, place[0])
        }
        rows = {(row["device_id"], row["cause"]) for row in state.health if row["source"] == "xid"}
        assert rows == wanted


def _found(entry: Entry, row: Found, state: State) -> Entry:
    """Let a fault have the GPU that the server has found by its address."""
    if entry.device is not None or row["device_id"] is None:
        return entry
    gpu = state.devices.get(row["device_id"])
    assert gpu is None or gpu["pci_bus_id"] == row["pci"], f"{row} is that of another GPU"
    return replace(entry, device=row["device_id"])


def _is_replaced(entry: Entry, row: Found, state: State) -> bool:
    gpus = state.gpus(row["node_id"])
    is_gone = entry.device is not None and entry.device not in {gpu["id"] for gpu in gpus}
    taken = {gpu["pci_bus_id"] for gpu in gpus if not gpu["missing"]}
    return is_gone and row["pci"] in taken


def _targets(entry: Entry, state: State, node_id: str) -> Iterable[str]:
    among = {d["id"] for d in state.devices.values() if d["node_id"] == node_id}
    if entry.effect.scope == BOARD:
        return among & {str(entry.device)}
    return among & {f"{entry.device}/{entry.instance}"} if entry.effect.scope == INSTANCE else ()


def _place(row: Found) -> Place:
    # Only what a condition told has no number, and no address of its own.
    where = row["device_id"] if not row["sequence"] else row["pci"] or row["sequence"]
    return row["node_id"], row["boot_id"], row["code"], where, row["mig"], row["caused_by"]
