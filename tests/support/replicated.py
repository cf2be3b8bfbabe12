"""A server that reads from a real standby, and clients that say what they want."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx

from db.database import Database
from db.embedded import EmbeddedPostgres
from db.replica import Replica
from tests.conftest import copied
from tests.support.server import STATUS, RunningServer, hello, ingest, running_server
from tests.support.standby import Standby
from tests.support.waiting import until_seen
from web.metrics import Metrics

LOOK_SECONDS = 0.05
STRONG = {"Fleetgraph-Consistency": "strong"}


@dataclass(frozen=True, slots=True)
class Pair:
    """A primary with a migrated template, and its standby."""

    primary: EmbeddedPostgres
    template: str
    standby: Standby


@dataclass(frozen=True, slots=True)
class Replicated:
    """A running server on a database of its own, which the standby copies."""

    server: RunningServer
    database: Database
    standby: Standby
    metrics: Metrics

    def read_from(self, source: str, reason: str = "") -> float:
        """Return how many queries were read there."""
        labels = {"source": source, "reason": reason}
        return self.metrics.registry.get_sample_value("fleetgraph_queries_read_total", labels) or 0.0

    async def ask(self, query: str, headers: Mapping[str, str] | None = None, **variables: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the data of an answer to the operator, which has no errors."""
        response = await self.send(query, headers, **variables)
        answer = response.json()
        assert "errors" not in answer, answer["errors"]
        return dict(answer["data"])

    async def send(self, query: str, headers: Mapping[str, str] | None = None, **variables: Any) -> httpx.Response:  # noqa: ANN401
        """Return the answer to the operator."""
        operator = self.server.operator
        return await operator.http.post(
            "/graphql",
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {operator.token}", **(headers or {})},
        )

    async def hosts(self, headers: Mapping[str, str] | None = None) -> list[str]:
        """Return the host names that the operator sees."""
        found = await self.ask("{ nodes(orderBy: HOSTNAME) { nodes { hostname } } }", headers)
        return [node["hostname"] for node in found["nodes"]["nodes"]]

    async def report(self, identity: str, kernel: str = "6.1.0") -> str:
        """Bring a node's inventory in, wait until the primary has applied it, and return the node's id."""
        node_id = await hello(self.server.agent, identity)
        await ingest(self.server.agent, node_id, {"os": {"kernel": kernel}})

        async def is_applied() -> bool:
            found = (await self.ask(STATUS, STRONG, id=node_id))["computeNode"]
            return bool(found["inventoryStatus"]["state"] == "APPLIED")

        await until_seen(is_applied)
        return node_id

    async def cursor(self) -> str:
        """Return the primary's feed cursor once no event waits for its position."""

        async def is_settled() -> bool:
            async with self.database.session() as session:
                return not await session.value("select count(*) from outbox")

        await until_seen(is_settled)
        return str((await self.ask("{ feedCursor }", STRONG))["feedCursor"])

    async def in_use(self) -> None:
        """Wait until queries are read from the standby, with everything that the primary has now."""
        await self.caught_up()
        before = self.read_from("replica")

        async def is_in_use() -> bool:
            await self.hosts()
            return self.read_from("replica") > before

        await until_seen(is_in_use)

    async def caught_up(self) -> None:
        """Wait until the standby has replayed what the primary has written."""
        async with self.database.session() as session:
            written = await session.value("select pg_current_wal_lsn()::text")
        await self.until_on_standby("pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written)

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Keep the standby at the state that it has now."""
        await self.on_standby("select pg_wal_replay_pause()")
        try:
            await self.until_on_standby("pg_get_wal_replay_pause_state() = 'paused'")
            yield
        finally:
            await self.on_standby("select pg_wal_replay_resume()")

    async def until_on_standby(self, condition: str, *args: object) -> None:
        """Wait until a condition holds on the standby."""

        async def holds() -> bool:
            return bool(await self.on_standby(f"select {condition}", *args))

        await until_seen(holds)

    async def on_standby(self, statement: str, *args: object) -> Any:  # noqa: ANN401 - the value
        """Run a statement on the standby and return its value."""
        connection = await asyncpg.connect(self.standby.dsn("postgres"))
        try:
            return await connection.fetchval(statement, *args)
        finally:
            await connection.close()


@asynccontextmanager
async def replicated(
    pair: Pair, *, compiled_reads: bool = True, lag_seconds_max: float = 60.0, in_use: bool = True
) -> AsyncIterator[Replicated]:
    """Run a server on a new database of the pair while the block lasts."""
    async with copied(pair.primary, pair.template) as dsn, connected(dsn) as database:
        copy = pair.standby.dsn(urlsplit(dsn).path.removeprefix("/"))
        replica = Replica(dsn, copy, lag_seconds_max=lag_seconds_max, look_seconds=LOOK_SECONDS)
        metrics = Metrics()
        async with running_server(database, compiled_reads=compiled_reads, meter=metrics, replica=replica) as server:
            running = Replicated(server, database, pair.standby, metrics)
            if in_use:
                await running.in_use()
            yield running


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[Database]:
    """Open a database while the block lasts."""
    database = await Database.connect(dsn)
    try:
        yield database
    finally:
        await database.close()
