"""Queries are read from a real standby when it has seen enough, and from the primary whenever it has not."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from db import replica as replica_module
from db.connections import TRANSIENT
from db.embedded import EmbeddedPostgres
from db.events import RELAY_LOCK, NewEvent, write_events
from db.migrate import migrate
from db.replica import Replica
from domain.cursor import FeedCursor, decode_feed, encode_feed
from resolvers.context import Context
from tests.conftest import FAST, copied
from tests.support.replicated import STRONG, Pair, Replicated, connected, replicated
from tests.support.server import hello, running_server
from tests.support.socket import open_socket
from tests.support.standby import Standby
from tests.support.waiting import until, until_seen
from web.metrics import Metrics
from web.server import listening
from web.settings import Settings

TEMPLATE = "template_fleetgraph"


def after(cursor: str) -> dict[str, str]:
    return {"Fleetgraph-After": cursor}


@asynccontextmanager
async def relay_held(running: Replicated) -> AsyncIterator[None]:
    """Let no event get its position while the block lasts."""
    async with running.database.session() as held:
        await held.execute("select pg_advisory_lock($1)", RELAY_LOCK)
        try:
            yield
        finally:
            await held.execute("select pg_advisory_unlock_all()")


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    base = Path(tempfile.mkdtemp(prefix="fg-pair-"))
    base.chmod(0o755)
    # A commit is sent at once; what is vacuumed, the test vacuums.
    settings = {**FAST, "synchronous_commit": "on", "autovacuum": "off", "wal_receiver_status_interval": "1s"}
    primary = EmbeddedPostgres(base / "primary", settings)
    primary.start()

    async def make_template() -> None:
        connection = await asyncpg.connect(primary.dsn("postgres"))
        await connection.execute(f"create database {TEMPLATE}")
        await connection.close()
        await migrate(primary.dsn(TEMPLATE))

    asyncio.run(make_template())
    standby = Standby(
        base / "standby",
        primary,
        {**FAST, "max_standby_streaming_delay": "100ms", "wal_retrieve_retry_interval": "100ms"},
    )
    standby.start()
    try:
        yield Pair(primary, TEMPLATE, standby)
    finally:
        standby.stop()
        primary.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(params=[True, False], ids=["front", "graph"])
async def running(pair: Pair, request: pytest.FixtureRequest) -> AsyncIterator[Replicated]:
    """A server that answers by the front, and one that executes every field."""
    async with replicated(pair, compiled_reads=request.param) as found:
        yield found


@pytest.fixture
async def one(pair: Pair) -> AsyncIterator[Replicated]:
    async with replicated(pair) as found:
        yield found


async def test_a_query_reads_the_standby_unless_it_asks_for_the_primary(running: Replicated) -> None:
    await hello(running.server.agent, "old")
    await running.caught_up()
    async with running.paused():
        await hello(running.server.agent, "young")
        replica, primary = running.read_from("replica"), running.read_from("primary")
        assert await running.hosts() == ["old"]
        assert await running.hosts({"Fleetgraph-Consistency": "eventual"}) == ["old"]
        assert await running.hosts(STRONG) == ["old", "young"]
        assert (running.read_from("replica"), running.read_from("primary")) == (replica + 2, primary + 1)


async def test_a_client_reads_what_its_cursor_has_seen(running: Replicated) -> None:
    await running.caught_up()
    async with running.paused():
        await running.report("n1")
        cursor = await running.cursor()
        assert await running.hosts() == []
        behind = running.read_from("fallback", "behind")
        assert await running.hosts(after(cursor)) == ["n1"]
        assert running.read_from("fallback", "behind") == behind + 1
    await running.caught_up()
    replica = running.read_from("replica")
    assert await running.hosts(after(cursor)) == ["n1"]
    assert running.read_from("replica") == replica + 1


async def test_a_cursor_with_waiting_events_needs_every_change_that_it_may_have_seen(one: Replicated) -> None:
    await one.caught_up()
    async with relay_held(one):
        async with one.paused():
            await one.report("n1")
            cursor = await one.ask("{ feedCursor }", STRONG)
            assert decode_feed(cursor["feedCursor"]).waiting
            # The positions are equal here and there: only the change is not there yet.
            assert await one.hosts(after(cursor["feedCursor"])) == ["n1"]
            assert one.read_from("fallback", "behind") == 1
        await one.caught_up()
        replica = one.read_from("replica")
        assert await one.hosts(after(cursor["feedCursor"])) == ["n1"]
        assert one.read_from("replica") == replica + 1


async def test_the_standbys_cursor_misses_no_event_of_a_transaction_in_progress(one: Replicated) -> None:
    """PostgreSQL's own text of a standby's snapshot takes such a transaction for seen."""
    tenant = one.server.operator.tenant_id
    async with relay_held(one):
        async with one.database.transaction() as early:
            await write_events(early, [NewEvent(tenant, None, "early", {})])
            async with one.database.transaction() as late:
                await write_events(late, [NewEvent(tenant, None, "late", {})])
            await one.caught_up()
            number = await early.value("select pg_current_xact_id()::text")
            assert await one.on_standby("select pg_visible_in_snapshot($1::text::xid8, pg_current_snapshot())", number)
            replica = one.read_from("replica")
            cursor = (await one.ask("{ feedCursor }"))["feedCursor"]
            assert one.read_from("replica") == replica + 1
        assert decode_feed(cursor).waiting == 1
    await one.cursor()
    told = await one.ask("query ($c: Cursor) { events(after: $c) { nodes { type } } }", STRONG, c=cursor)
    assert [event["type"] for event in told["events"]["nodes"]] == ["early"]


async def test_the_log_behind_a_cursor_that_the_standby_does_not_know_is_read_from_the_primary(
    running: Replicated,
) -> None:
    await running.caught_up()
    async with running.paused():
        await running.report("n1")
        cursor = await running.cursor()
        query = """
        query ($c: Cursor, $s: Cursor) {
          nodes { totalCount } events(after: $c) { nodes { type } } start: events(after: $s) { totalCount } feedCursor
        }
        """
        found = await running.ask(query, c=cursor, s=encode_feed(FeedCursor(0)))
        # All of one operation reads one state: the siblings go to the primary too.
        assert found == {
            "nodes": {"totalCount": 1},
            "events": {"nodes": []},
            "start": {"totalCount": decode_feed(cursor).position},
            "feedCursor": cursor,
        }
        assert running.read_from("fallback", "behind") == 1


async def test_a_cursor_of_no_log_is_expired_wherever_it_is_read(running: Replicated) -> None:
    answer = await running.send(
        "query ($c: Cursor) { events(after: $c) { totalCount } }", c=encode_feed(FeedCursor(10**9))
    )
    assert answer.json()["errors"][0]["extensions"]["code"] == "CURSOR_EXPIRED"


async def test_payloads_and_events_are_read_from_the_primary(one: Replicated) -> None:
    cursor = await one.cursor()
    await one.caught_up()
    async with one.paused(), listening(one.server.services, Settings(port=0)) as (_, address):
        said = await one.server.agent.data(
            "mutation ($i: HelloInput!) { hello(input: $i) { node { hostname } } }",
            i={"identityKey": "n1", "hostname": "n1"},
        )
        assert said["hello"]["node"]["hostname"] == "n1"
        await one.report("n1")
        async with open_socket(address, one.server.operator.token) as socket:
            await socket.subscribe(
                "subscription ($c: Cursor) { nodeInventoryChanged(after: $c) { node { hostname } } }", c=cursor
            )
            assert (await socket.next())["nodeInventoryChanged"]["node"]["hostname"] == "n1"


async def test_a_socket_says_for_all_its_queries_what_they_read(one: Replicated) -> None:
    await one.caught_up()
    async with one.paused(), listening(one.server.services, Settings(port=0)) as (_, address):
        await hello(one.server.agent, "n1")
        for asked, count in (({}, 0), ({"fleetgraph-consistency": "strong"}, 1)):
            async with open_socket(address, one.server.operator.token, **asked) as socket:
                await socket.subscribe("{ nodes { totalCount } }")
                assert (await socket.next())["nodes"]["totalCount"] == count


async def test_a_large_page_comes_from_the_standby_in_pieces(one: Replicated) -> None:
    async with one.database.transaction() as tx:
        await tx.execute(
            "insert into sites (id, tenant_id, name, iam_region) "
            "select 'site_' || lpad(g::text, 26, '0'), $1, 'site ' || g, 'eu' from generate_series(1, 700) g",
            one.server.operator.tenant_id,
        )
    await one.caught_up()
    replica = one.read_from("replica")
    found = await one.ask("{ sites(first: 700) { totalCount nodes { name } } }")
    assert len({site["name"] for site in found["sites"]["nodes"]}) == found["sites"]["totalCount"] == 700
    assert one.read_from("replica") == replica + 1


async def test_a_standby_that_dies_costs_no_first_statement_and_is_used_again_when_it_is_back(
    running: Replicated, pair: Pair
) -> None:
    await hello(running.server.agent, "n1")
    await running.caught_up()
    answered = asyncio.Event()
    codes: set[str] = set()

    async def ask_on() -> int:
        count = 0
        while not answered.is_set():
            assert await running.hosts() == ["n1"]
            found = (await running.send("{ nodes { totalCount } sites { totalCount } feedCursor }")).json()
            if errors := found.get("errors"):
                codes.update(error["extensions"]["code"] for error in errors)
            else:
                assert found["data"]["nodes"]["totalCount"] == 1
            count += 1
            await asyncio.sleep(0.01)
        return count

    asking = [asyncio.create_task(ask_on()) for _ in range(3)]
    await asyncio.sleep(0.2)
    await asyncio.to_thread(pair.standby.kill)
    before = running.read_from("fallback", "away")
    await until(lambda: running.read_from("fallback", "away") > before + 5)
    await asyncio.to_thread(pair.standby.start)
    replica = running.read_from("replica")
    await until(lambda: running.read_from("replica") > replica + 5)
    answered.set()
    assert all(await asyncio.gather(*asking))
    assert codes <= {"UNAVAILABLE"}  # of those that had read a state from it that is nowhere else


async def test_a_standby_that_hangs_is_cut_off(one: Replicated, pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "ANSWER_SECONDS_MAX", 0.3)
    await hello(one.server.agent, "n1")
    await one.caught_up()
    with pair.standby.frozen():
        async with asyncio.timeout(5):
            assert await asyncio.gather(*(one.hosts() for _ in range(20))) == [["n1"]] * 20
        assert one.read_from("fallback", "failed")
    await one.in_use()


async def test_a_conflict_with_recovery_repeats_the_first_statement_and_fails_a_later_one(one: Replicated) -> None:
    async def primary(*statements: str) -> None:
        async with one.database.session() as session:
            for statement in statements:
                await session.execute(statement)

    insert = "insert into sites (id, tenant_id, name, iam_region) select 's', id, 's', 'eu' from tenants limit 1"
    reads = Context(one.server.services, "req").query()
    await primary(insert)
    await one.caught_up()
    reading = asyncio.create_task(reads.reader.value("select count(*) from sites, pg_sleep(1)"))
    await asyncio.sleep(0.2)
    await primary("delete from sites", "vacuum sites")
    assert await reading == 0
    assert await reads.reader.value("select pg_is_in_recovery()") is False
    await reads.end()
    assert one.read_from("fallback", "failed") == 1

    reads = Context(one.server.services, "req").query()
    await primary(insert)
    await one.caught_up()
    assert await reads.reader.value("select count(*) from sites where pg_is_in_recovery()") == 1
    await primary("delete from sites", "vacuum sites")
    await one.caught_up()
    with pytest.raises(TRANSIENT):
        await reads.reader.value("select count(*) from sites")
    await reads.end()
    assert one.read_from("fallback", "failed") == 1
    await one.in_use()


async def test_a_statement_that_takes_too_long_is_not_repeated(one: Replicated) -> None:
    async with one.database.session() as session:
        await session.execute(
            "create function too_long() returns int language plpgsql as $$ begin raise sqlstate '57014'; end $$"
        )
    await one.caught_up()
    replica = one.read_from("replica")
    reads = Context(one.server.services, "req").query()
    with pytest.raises(asyncpg.QueryCanceledError):
        await reads.reader.fetch("select too_long()")
    await reads.end()
    assert (one.read_from("replica"), one.read_from("fallback", "failed")) == (replica + 1, 0)


async def test_a_standby_that_is_far_behind_is_not_read_by_default(pair: Pair) -> None:
    async with replicated(pair, lag_seconds_max=0.5) as running:
        async with running.paused():
            await hello(running.server.agent, "n1")

            async def is_seen() -> bool:
                return await running.hosts() == ["n1"]

            await until_seen(is_seen)
            assert running.read_from("fallback", "behind")
        await running.in_use()


@pytest.mark.parametrize("wrong", ["postgresql://127.0.0.1:1/nobody", "not a url", "PRIMARY", "POSTGRES"])
async def test_a_replica_that_is_none_stops_nothing(pair: Pair, wrong: str) -> None:
    metrics = Metrics()
    async with copied(pair.primary, pair.template) as primary_dsn, connected(primary_dsn) as database:
        dsn = {"PRIMARY": primary_dsn, "POSTGRES": pair.standby.dsn("postgres")}.get(wrong, wrong)
        replica = Replica(primary_dsn, dsn, look_seconds=0.01)
        async with running_server(database, meter=metrics, replica=replica, reconcile=False) as server:
            await hello(server.agent, "n1")
            for _ in range(10):
                assert (await server.operator.data("{ nodes { totalCount } }"))["nodes"]["totalCount"] == 1
                await asyncio.sleep(0.05)
            labels = {"source": "fallback", "reason": "away"}
            assert metrics.registry.get_sample_value("fleetgraph_queries_read_total", labels) == 10
            assert (await server.operator.http.get("/readyz")).status_code == 200
