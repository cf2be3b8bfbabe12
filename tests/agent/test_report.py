import asyncio
import time

import pytest

from agent.client import Connection, connect
from agent.failures import NotApplied, Refused
from agent.introduction import introduction
from agent.inventory import Inventory, inventory_of
from agent.report import ApplyFailed, Reported, Waiting, judge, report_once
from agent.wire import InventoryStatus, NodeStatus, SnapshotRef, StatusState
from domain.documents.cpu import CpuSection
from domain.documents.system import SystemSection
from tests.agent.fake_server import TOKEN, FakeServer, until

INVENTORY = inventory_of({"system": SystemSection(vendor="Example"), "cpu": CpuSection(threads=8)})


async def report(server: FakeServer, inventory: Inventory = INVENTORY, seconds_max: float = 5) -> Reported:
    async with connect(Connection("http://fleet.test", TOKEN), server.transport()) as client:
        hello = introduction("key", hostname="one")
        return await report_once(
            client, hello, inventory, seconds_max=seconds_max, clock=time.monotonic, sleep=asyncio.sleep
        )


async def test_a_report_ends_when_the_server_has_applied_it() -> None:
    server = FakeServer()
    server.polls_until_applied = 3
    reported = await report(server)
    assert reported.digest == INVENTORY.digest
    assert reported.node_id == server.only.id
    assert server.only.contents == dict(INVENTORY.contents)
    assert server.only.polls == 4


async def test_what_the_server_has_is_not_sent_again() -> None:
    server = FakeServer()
    first = await report(server)
    assert await report(server) == first
    assert server.sections_received == 2
    changed = inventory_of({"system": SystemSection(vendor="Example"), "cpu": CpuSection(threads=16)})
    assert (await report(server, changed)).digest == changed.digest
    assert server.sections_received == 3


async def test_a_failed_apply_is_told_in_the_servers_words() -> None:
    server = FakeServer()
    server.apply_error = "section 'gpus' at gpus.3: two owners"
    with pytest.raises(NotApplied, match="two owners"):
        await report(server)


async def test_waiting_ends_with_what_was_waited_for() -> None:
    server = FakeServer()
    server.polls_until_applied = 1_000_000
    with pytest.raises(NotApplied, match=r"not applied within 0\.2 s: the inventory is pending"):
        await report(server, seconds_max=0.2)


async def test_a_refused_section_ends_the_report() -> None:
    server = FakeServer()
    server.refuse_sections = "section 'system' at vendor: expected a text"
    with pytest.raises(Refused, match="at vendor"):
        await report(server)


async def test_a_server_that_restarts_while_it_applies_is_waited_for() -> None:
    server = FakeServer()
    server.polls_until_applied = 4
    waiting = asyncio.create_task(report(server))
    await until(lambda: server.sections_received)
    server.failing = 503
    await asyncio.sleep(0.2)
    server.failing = None
    assert (await waiting).digest == INVENTORY.digest


def status(state: StatusState, *, reported: str = "d", applied: str | None = None, newest: str = "d") -> NodeStatus:
    inventory = InventoryStatus(state=state, reported_digest=reported, applied_digest=applied)
    return NodeStatus(inventory_status=inventory, latest_snapshot=SnapshotRef(id="inv_1", digest=newest))


def test_an_advisory_inventory_counts_as_applied() -> None:
    advisory = status(StatusState.ADVISORY, applied="advisory:d")
    assert judge("node_1", advisory, "d") == Reported(node_id="node_1", snapshot_id="inv_1", digest="d")


def test_an_older_inventory_does_not_count() -> None:
    assert isinstance(judge("node_1", status(StatusState.PENDING, applied="old", newest="old"), "d"), Waiting)
    assert isinstance(judge("node_1", status(StatusState.FAILED, reported="old", newest="old"), "d"), Waiting)
    assert isinstance(judge("node_1", status(StatusState.APPLIED, applied="d", newest="old"), "d"), Waiting)
    assert isinstance(judge("node_1", status(StatusState.FAILED, newest="old"), "d"), ApplyFailed)


def test_another_agents_report_is_pointed_out() -> None:
    found = judge("node_1", status(StatusState.APPLIED, reported="other", applied="other", newest="other"), "d")
    assert isinstance(found, Waiting)
    assert "share its identity" in found.why
