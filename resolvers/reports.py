"""Where reports of nodes wait to be written: in groups, or for their turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Final, Self

from db.connections import Row
from db.database import Database, Transaction
from db.health_states import health_states_of, save_health_changes
from db.inventory import HashReport, ReceivedSection, record_reports, store_sections
from db.liveness import SignOfLife, hear
from db.node_spec import observing, save_observed
from db.standings import lock_nodes, save_changes, standings_of
from domain.admission import Work
from domain.fault_effects import HealthChange
from domain.fault_intake import ToldFault, record
from domain.ids import NodeId
from domain.standing import Changed, Standing, Statement, take
from resolvers.group_commit import Bounds, GroupCommit
from resolvers.late_signs import LateSigns
from resolvers.slots import SECTIONS_MAX
from resolvers.turns import Turns

_CHANGED: Final = itemgetter("changed")
_IS_BACK: Final = itemgetter("is_back")
_SECTIONS: Final = Bounds(entries_max=SECTIONS_MAX)


@dataclass(frozen=True, slots=True)
class NodeSections:
    """Verified sections of one node."""

    node_id: NodeId
    sections: tuple[ReceivedSection, ...]

    @property
    def bytes(self) -> int:
        """The size of their contents."""
        return sum(len(section.content) for section in self.sections)


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What a node says of itself; of what it has no statement, or None, it says nothing."""

    sign: SignOfLife
    statements: tuple[Statement, ...]
    faults: tuple[ToldFault, ...] = ()
    observed_generation: int | None = None

    @property
    def node_id(self) -> NodeId:
        """Whose report it is."""
        return self.sign.node_id


@dataclass(frozen=True, slots=True)
class Reports:
    """Where a process's requests bring what is written in groups."""

    heartbeats: GroupCommit[HashReport, Row | None]
    """Answers the row of `record_reports`, None where the tenant has no such node."""
    statuses: GroupCommit[StatusReport, int | None]
    """Answers the generation of the node's desired state, None where the tenant has no such node."""
    sections: GroupCommit[NodeSections, list[str] | None]
    """Answers the names stored, None where the tenant has no such node."""
    late_signs: LateSigns
    """Of heartbeats that were turned away."""
    hellos: Turns
    """Hellos are not written in groups: each is many statements, and locks one node."""

    @classmethod
    def to(cls, database: Database, now: Callable[[], datetime]) -> Self:
        """Write to a database."""

        async def record(reports: Sequence[HashReport]) -> list[Row | None]:
            async with database.transaction() as tx:
                rows = await record_reports(tx, reports)
            if any(not row.missing for row in filter(_CHANGED, rows.values())):
                database.inventory_pending.set()
            if any(map(_IS_BACK, rows.values())):
                database.heard_again.set()
            return [rows.get(report.node_id) for report in reports]

        async def hear_all(reports: Sequence[StatusReport]) -> list[int | None]:
            async with database.transaction() as tx:
                heard = await _take(tx, reports, now())
            if any(row.is_back for row in heard.values()):
                database.heard_again.set()
            generations = {node_id: int(row.generation) for node_id, row in heard.items()}
            return [generations.get(report.node_id) for report in reports]

        async def store(entries: Sequence[NodeSections]) -> list[list[str] | None]:
            async with database.transaction() as tx:
                stored = await store_sections(tx, [section for entry in entries for section in entry.sections])
            database.inventory_pending.set()
            return [stored.get(entry.node_id) for entry in entries]

        async def hear_late(signs: Sequence[SignOfLife]) -> Sequence[SignOfLife]:
            async with database.transaction() as tx:
                heard = await hear(tx, signs)
            if any(row.is_back for row in heard):
                database.heard_again.set()
            return signs

        return cls(
            GroupCommit(record, _node_of),
            GroupCommit(hear_all, _node_of),
            GroupCommit(store, _node_of, bytes_of=lambda entry: entry.bytes, bounds=_SECTIONS),
            LateSigns(GroupCommit(hear_late, _node_of).submit),
            Turns(Work.HELLO),
        )


def _node_of(entry: HashReport | StatusReport | NodeSections | SignOfLife) -> NodeId:
    return entry.node_id


async def _take(tx: Transaction, reports: Sequence[StatusReport], now: datetime) -> dict[NodeId, Row]:
    """Write what reports change; returns the nodes that were heard of. Only nodes that change are locked."""
    speaking = [report for report in reports if report.statements]
    failing = [report for report in reports if report.faults]
    changing = await _changes(tx, speaking, now, locked=False) if speaking else []
    worsening = await _worsened(tx, failing, now, locked=False) if failing else []
    observed = {
        (report.sign.tenant_id, report.node_id): report.observed_generation
        for report in reports
        if report.observed_generation is not None
    }
    ids = {standing.node_id for standing, _ in (*changing, *worsening)}
    ids.update(await observing(tx, observed) if observed else ())
    if ids:
        # All of them before any is decided again: whoever takes several nodes takes them in the order of their ids.
        await lock_nodes(tx, ids)
        await save_changes(tx, await _changes(tx, [each for each in speaking if each.node_id in ids], now, locked=True))
        await save_health_changes(
            tx, await _worsened(tx, [each for each in failing if each.node_id in ids], now, locked=True)
        )
        if observed:
            await save_observed(tx, observed)
    # After the nodes: whoever locks a node and its liveness locks the node first.
    return {NodeId(row.node_id): row for row in await hear(tx, [report.sign for report in reports])}


async def _changes(
    tx: Transaction, reports: Sequence[StatusReport], now: datetime, *, locked: bool
) -> list[tuple[Standing, Changed]]:
    """Decide all that reports say of their nodes at once: a node is looked at, and locked, once for all sources."""
    statements = {report.node_id: report.statements for report in reports}
    types = {kind for said in statements.values() for statement in said for kind in statement.types}
    nodes = [(report.sign.tenant_id, report.node_id) for report in reports]
    found = []
    for node_id, standing in (await standings_of(tx, nodes, sorted(types), locked=locked)).items():
        changed = take(standing, statements[node_id], now)
        if changed is not None:
            found.append((standing, changed))
    return found


async def _worsened(
    tx: Transaction, reports: Sequence[StatusReport], now: datetime, *, locked: bool
) -> list[tuple[Standing, HealthChange]]:
    """Decide what reported faults change of their nodes."""
    told = {report.node_id: report.faults for report in reports}
    found = []
    nodes = [(report.sign.tenant_id, report.node_id) for report in reports]
    for node_id, state in (await health_states_of(tx, nodes, locked=locked)).items():
        change = record(state, told[node_id], now)
        if change is not None:
            found.append((state.standing, change))
    return found
