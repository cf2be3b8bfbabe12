"""Reports of nodes that are written in groups: heartbeats and status reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from db.connections import Row
from db.database import Database, Transaction
from db.inventory import HashReport, record_reports
from db.liveness import SignOfLife, hear
from db.node_spec import save_observed
from db.standings import save_changes, standings_of
from domain.conditions import Observed
from domain.daemon_conditions import DAEMON_TYPES, daemon_conditions
from domain.ids import NodeId
from domain.node import Trust
from domain.standing import Changed, Standing, observe
from resolvers.group_commit import GroupCommit


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What a node says of itself; what is None it says nothing of."""

    sign: SignOfLife
    conditions: tuple[Observed, ...] | None
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
    statuses: GroupCommit[StatusReport, bool]
    """Answers whether the tenant has such a node."""

    @classmethod
    def to(cls, database: Database, now: Callable[[], datetime]) -> Self:
        """Write to a database."""

        async def record(reports: Sequence[HashReport]) -> list[Row | None]:
            async with database.transaction() as tx:
                rows = await record_reports(tx, reports)
            if any(row.changed and not row.missing for row in rows.values()):
                database.inventory_pending.set()
            if any(row.is_back for row in rows.values()):
                database.heard_again.set()
            return [rows.get(report.node_id) for report in reports]

        async def take(reports: Sequence[StatusReport]) -> list[bool]:
            async with database.transaction() as tx:
                heard = await _take(tx, reports, now())
            if any(row.is_back for row in heard.values()):
                database.heard_again.set()
            return [report.node_id in heard for report in reports]

        return cls(GroupCommit(record, lambda report: report.node_id), GroupCommit(take, lambda report: report.node_id))


async def _take(tx: Transaction, reports: Sequence[StatusReport], now: datetime) -> dict[NodeId, Row]:
    """Write what reports change; returns the nodes that were heard of. Only nodes that change are locked."""
    said = {report.node_id: daemon_conditions(report.conditions) for report in reports if report.conditions is not None}
    nodes = [(report.sign.tenant_id, report.node_id) for report in reports if report.node_id in said]
    changing = _changes(await standings_of(tx, nodes, DAEMON_TYPES, locked=False), said, now)
    if changing:
        again = [(standing.tenant_id, standing.node_id) for standing, _ in changing]
        await save_changes(tx, _changes(await standings_of(tx, again, DAEMON_TYPES, locked=True), said, now))
    observed = {
        (report.sign.tenant_id, report.node_id): report.observed_generation
        for report in reports
        if report.observed_generation is not None
    }
    if observed:
        await save_observed(tx, observed)
    # After the nodes: whoever locks a node and its liveness locks the node first.
    return {NodeId(row.node_id): row for row in await hear(tx, [report.sign for report in reports])}


def _changes(
    standings: Mapping[NodeId, Standing], said: Mapping[NodeId, Sequence[Observed]], now: datetime
) -> list[tuple[Standing, Changed]]:
    found = []
    for node_id, standing in standings.items():
        advisory = standing.trust is Trust.TENANT_CONTROLLED
        changed = observe(standing, said[node_id], now, advisory=advisory)
        if changed is not None:
            found.append((standing, changed))
    return found
