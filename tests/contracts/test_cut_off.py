"""Whatever is lost between any two statements, the rerun ends where an undisturbed run ends.

Each request and each activation of a scenario is attempted again and again, and loses its connection one statement
later each time, before and after each commit too, until it runs through. Clients repeat their requests, reconcilers
look anew: what is written in the end, and what events told, is the same as without any of it.
"""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
import pytest

from db.connections import TRANSIENT
from db.database import Database
from domain.liveness import Patience
from reconcilers.acceptance import acceptance
from reconcilers.commands import commands
from reconcilers.faults import faults
from reconcilers.inventory import inventory
from reconcilers.liveness import liveness
from reconcilers.loop import Reconciler
from reconcilers.remediation import remediation
from tests.support.cut import Cuts, cut_connections, cut_everywhere
from tests.support.health.stage import (
    ALLOCATE,
    ASSIGN,
    AXIS,
    CLEAR,
    COMPLETE,
    POOL,
    QUARANTINE,
    RELEASE,
    REPORT,
    SITE,
    START,
    TAKE,
)
from tests.support.server import HELLO, INGEST, Client, RunningServer, running_server, section
from tests.support.silence import listened, silence
from web.app import utc_now

GPU: Final = "GPU-one"
STATE: Final = """
select jsonb_build_object(
    'nodes', (select jsonb_agg(jsonb_build_array(n.identity_key, n.provision_state, n.generation, n.maintenance,
        n.no_schedule_reasons, n.boot_id) order by n.id) from nodes n),
    'conditions', (select jsonb_agg(jsonb_build_array(c.type, c.status, c.reason, c.no_schedule) order by c.type)
        from node_conditions c),
    'health', (select jsonb_agg(jsonb_build_array(h.device_id, h.source, h.cause, h.reason, h.rule)
        order by h.device_id, h.source, h.cause) from device_health h),
    'devices', (select jsonb_agg(jsonb_build_array(d.id, d.healthy, d.missing) order by d.id) from devices d),
    'faults', (select jsonb_agg(jsonb_build_array(f.boot_id, f.key, f.sequence, f.count, f.condition, f."end",
        f.ended_at is null) order by f.boot_id, f.key) from node_faults f),
    'runs', (select jsonb_agg(jsonb_build_array(r.remedy, r.device_id, r.faults, r.attempt, r.state, r.reason)
        order by r.id) from remediation_runs r),
    'attempts', (select jsonb_agg(jsonb_build_array(a.attempt, a.state, a.reason) order by a.attempt)
        from acceptance_attempts a),
    'commands', (select jsonb_agg(jsonb_build_array(c.sequence, c.kind, c.payload, c.state, c.reason)
        order by c.sequence) from commands c),
    'held', (select jsonb_agg(jsonb_build_array(b.device_id, upper(b.during) is null) order by b.device_id)
        from bookings b),
    'snapshots', (select count(*) from inventory_snapshots),
    'away', (select jsonb_agg(l.away) from node_liveness l),
    'events', (select jsonb_agg(jsonb_build_array(o.type, o.payload) order by o.sequence) from outbox o)
)
"""
_ID: Final = re.compile(r"\b(node|cmd|run|alloc|inv|sess|req|pool|site)_[0-9a-z]{20,}\b")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)")


@dataclass
class Play:
    """A server, and its clients and reconcilers, each of which is cut off wherever it can be when `cuts` are given."""

    database: Database
    server: RunningServer
    cuts: Cuts | None

    async def take(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Do something, as often as it takes."""
        if self.cuts is None:
            await attempt()
        else:
            await cut_everywhere(self.database, self.cuts, attempt)

    async def ask(self, client: Client, query: str, **variables: object) -> Any:  # noqa: ANN401 - any field
        """Return what a request is answered in the end."""
        answers: list[dict[str, Any]] = []

        async def attempt() -> None:
            answers.append(await client.send(query, **variables))
            codes = [each["extensions"]["code"] for each in answers[-1].get("errors", [])]
            assert set(codes) <= {"UNAVAILABLE"}, answers[-1]

        await self.take(attempt)
        assert "errors" not in answers[-1], answers[-1]
        return next(iter(answers[-1]["data"].values()))

    async def agent(self, query: str, **variables: object) -> Any:  # noqa: ANN401
        """Ask as an agent."""
        return await self.ask(self.server.agent, query, **variables)

    async def operator(self, query: str, **variables: object) -> Any:  # noqa: ANN401
        """Ask as an operator."""
        return await self.ask(self.server.operator, query, **variables)

    async def settle(self) -> None:
        """Let reconcilers look until none has anything to do."""
        loops = (
            inventory(self.database, utc_now),
            liveness(self.database, Patience(), utc_now),
            commands(self.database, utc_now),
            faults(self.database, utc_now),
            acceptance(self.database, utc_now),
            remediation(self.database, utc_now),
        )
        for loop in loops:
            await self.take(partial(_look, loop))
        while any([(await loop.activate()).done for loop in loops]):
            pass

    async def hello(self, boot: str = "b1") -> str:
        """Say hello."""
        given = {"identityKey": "n1", "hostname": "n1", "bootId": boot}
        return str((await self.agent(HELLO, input=given))["nodeId"])

    async def report(self, node_id: str, **status: object) -> None:
        """Report a status."""
        assert await self.agent(REPORT, entries=[{"nodeId": node_id, **status}]) == [{"error": None}]

    async def look(self, node_id: str, *, pending: bool = False, index: int = 0) -> None:
        """Report one GPU, and have it applied."""
        gpu = {"uuid": GPU, "index": index, "health": {"rowRemap": {"pending": pending, "failure": False}}}
        given = section("gpus", {"enumeration": "complete", "gpus": [{**gpu, "pciBusId": "00000000:10:00.0"}]})
        await self.agent(INGEST, entries=[{"nodeId": node_id, "sections": [given]}])
        await self.take(partial(_look, inventory(self.database, utc_now)))

    async def pool(self, node_id: str, **policy: object) -> None:
        """Put the node into a pool."""
        site = (await self.server.operator.data(SITE))["createSite"]["id"]
        given = {"name": "p", "siteId": site, "class": "VPS_HOST", "policy": policy}
        pool = (await self.server.operator.data(POOL, input=given))["createPool"]["id"]
        await self.operator(ASSIGN, id=node_id, pool=pool)

    async def obey(
        self, node_id: str, meanwhile: Callable[[], Awaitable[object]] | None = None, **result: object
    ) -> None:
        """Do the one thing that the node is told."""
        (command,) = await self.agent(TAKE, id=node_id)
        ref = {"nodeId": node_id, "commandId": command["id"]}
        await self.agent(START, input={**ref, "runId": "r"})
        if meanwhile is not None:
            await meanwhile()
        await self.agent(COMPLETE, input={**ref, "outcome": "SUCCEEDED", "result": result})


def _xid(code: int, sequence: int, *, address: str = "0000:10:00") -> dict[str, object]:
    return {"code": code, "address": address, "message": "told", "sequence": str(sequence), "bootId": "b1"}


async def _xids_and_a_clear(play: Play) -> None:
    node_id = await play.hello()
    await play.look(node_id)
    await play.operator(ALLOCATE, input={"shardId": "s", "deviceIds": [GPU]})
    await play.report(node_id, xids=[_xid(48, 7), _xid(13, 8), _xid(79, 9)])
    await play.report(node_id, xids=[_xid(48, 7)])
    await play.operator(QUARANTINE, id=GPU)
    await play.operator(CLEAR, id=GPU)
    await play.report(node_id, xids=[_xid(48, 7)])
    await play.operator(RELEASE, shard="s")
    await play.settle()


async def _an_inventory_that_raises_and_lifts(play: Play) -> None:
    node_id = await play.hello()
    await play.look(node_id)
    await play.operator(ALLOCATE, input={"shardId": "s", "deviceIds": [GPU]})
    await play.look(node_id, pending=True)
    await play.look(node_id)


async def _an_acceptance(play: Play) -> None:
    node_id = await play.hello()
    await play.pool(node_id, acceptance=["diag.nvml"])
    await play.operator(AXIS.format("adoptNode"), id=node_id)
    await play.settle()
    await play.look(node_id)
    await play.settle()
    await play.obey(node_id, passed=True)
    await play.settle()


async def _a_remediation_by_reboot(play: Play) -> None:
    node_id = await play.hello()
    await play.look(node_id)
    await play.report(node_id, xids=[_xid(79, 7)])
    await play.settle()
    await play.obey(node_id, lambda: play.hello("b2"))
    await play.settle()


async def _a_remediation_by_reset(play: Play) -> None:
    node_id = await play.hello()
    await play.look(node_id, pending=True)
    await play.report(node_id, xids=[_xid(119, 7)])
    await play.settle()
    await play.obey(node_id)
    await play.look(node_id, index=1)
    await play.settle()


async def _pressure_and_silence(play: Play) -> None:
    node_id = await play.hello()
    await play.pool(node_id)
    for cpu in (90, 70, 50):
        await play.report(node_id, pressure={"cpu": cpu})
    await listened(play.database, 3600)
    await silence(play.database, 200, node_id)
    await play.settle()
    await silence(play.database, 1000, node_id)
    await play.settle()
    await play.report(node_id)
    await play.settle()


async def _look(reconciler: Reconciler) -> None:
    with suppress(*TRANSIENT):
        await reconciler.activate()


async def _end(database: Database) -> Any:  # noqa: ANN401 - JSON
    """Return what is written in the end, with the ids in the order in which they came about, and without times."""
    async with database.session() as session:
        text = orjson.dumps(await session.value(STATE)).decode()
    names: dict[str, str] = {}
    text = _ID.sub(lambda found: names.setdefault(found[0], f"{found[1]}-{len(names)}"), text)
    return orjson.loads(_TIME.sub("then", text))


@pytest.mark.parametrize(
    "scenario",
    [
        _xids_and_a_clear,
        _an_inventory_that_raises_and_lifts,
        _an_acceptance,
        _a_remediation_by_reboot,
        _a_remediation_by_reset,
        _pressure_and_silence,
    ],
)
async def test_what_is_cut_off_anywhere_and_repeated_ends_as_what_was_not(
    database: Database,
    another_database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    scenario: Callable[[Play], Awaitable[None]],
) -> None:
    async with running_server(database, reconcile=False) as server:
        await scenario(Play(database, server, None))
    undisturbed = await _end(database)
    cuts = cut_connections(monkeypatch)
    other = await Database.connect(another_database_url)
    try:
        async with running_server(other, reconcile=False) as server:
            await scenario(Play(other, server, cuts))
        assert await _end(other) == undisturbed
    finally:
        await other.close()
    assert cuts.count > 30
