"""What ended long ago is forgotten, and what is open, newest or still counted is not."""

from datetime import timedelta

import pytest

from db import remediation
from db.database import Database
from reconcilers.retention import retention
from tests.support.server import RunningServer, hello
from web.app import utc_now

KEPT = timedelta(days=7)
COMMAND = """
insert into commands (id, tenant_id, node_id, sequence, idempotency_key, kind, request, state, not_after, expires_at,
    issued_by, request_id, finished_at)
select $1, tenant_id, id, $3, $1, 'node.reboot', '{}', 'succeeded', now(), now(), 'test', 'test', now() - $4::interval
from nodes where id = $2
"""
RUN = """
insert into remediation_runs (
    id, tenant_id, node_id, remedy, faults, attempt, state, command_id, started_at, finished_at
)
select $1, tenant_id, id, 'reboot', '[]', 1, 'succeeded', $3, now() - interval '9 days', now() - $4::interval
from nodes where id = $2
"""
ATTEMPT = """
insert into acceptance_attempts (node_id, attempt, tenant_id, state, checks, finished_at)
select id, $2, tenant_id, $3, $4, now() - $5::interval from nodes where id = $1
"""
LONG_AGO, LATELY = timedelta(days=8), timedelta(days=6)
OPEN: timedelta | None = None


@pytest.fixture
async def node(server: RunningServer) -> str:
    return await hello(server.agent, "n1")


async def _add(database: Database, statement: str, *args: object) -> None:
    async with database.transaction() as tx:
        await tx.execute(statement, *args)


async def _left(database: Database, table: str, column: str) -> list[object]:
    await retention(database, KEPT, utc_now).activate()
    async with database.session() as session:
        return [row[0] for row in await session.fetch(f"select {column} from {table} order by 1")]  # noqa: S608 - ours


async def test_commands_that_ended_long_ago_are_forgotten_but_the_newest_and_those_not_finished(
    database: Database, node: str
) -> None:
    for sequence, age in enumerate((LONG_AGO, OPEN, LATELY, LONG_AGO, LONG_AGO), 1):
        await _add(database, COMMAND, f"cmd_{sequence}", node, sequence, age)
    assert await _left(database, "commands", "id") == ["cmd_2", "cmd_3", "cmd_5"]


async def test_the_number_of_the_next_command_goes_on_when_all_were_forgotten(
    database: Database, server: RunningServer, node: str
) -> None:
    for sequence in (1, 2):
        await _add(database, COMMAND, f"cmd_{sequence}", node, sequence, LONG_AGO)
    assert await _left(database, "commands", "id") == ["cmd_2"]
    issued = await server.operator.data("mutation ($id: ID!) { refreshInventory(id: $id) { sequence } }", id=node)
    assert issued["refreshInventory"]["sequence"] == 3


async def test_runs_that_decisions_count_are_kept_with_their_commands(
    database: Database, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remediation, "_RUNS_EACH", 2)
    for number in range(1, 6):
        await _add(database, COMMAND, f"cmd_{number}", node, number, LONG_AGO)
        await _add(database, RUN, f"run_{number}", node, f"cmd_{number}", LONG_AGO if number > 1 else LATELY)
    # The newest two, and what ended lately.
    assert await _left(database, "remediation_runs", "id") == ["run_1", "run_4", "run_5"]
    assert await _left(database, "commands", "id") == ["cmd_1", "cmd_4", "cmd_5"]


async def test_an_open_run_is_kept_however_many_came_after(
    database: Database, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remediation, "_RUNS_EACH", 1)
    await _add(database, RUN, "run_0", node, None, OPEN)
    for number in (1, 2, 3):
        await _add(database, RUN, f"run_{number}", node, None, LONG_AGO)
    assert await _left(database, "remediation_runs", "id") == ["run_0", "run_3"]


async def test_of_old_attempts_the_newest_is_kept_with_its_commands(database: Database, node: str) -> None:
    for number in (1, 2):
        await _add(database, COMMAND, f"cmd_{number}", node, number, LONG_AGO)
        checks = [{"kind": "diag.nvml", "commandId": f"cmd_{number}", "state": "passed", "reason": None}]
        await _add(database, ATTEMPT, node, number, "passed", checks, LONG_AGO)
    await _add(database, COMMAND, "cmd_3", node, 3, OPEN)
    assert await _left(database, "acceptance_attempts", "attempt") == [2]
    assert await _left(database, "commands", "id") == ["cmd_2", "cmd_3"]


async def test_an_attempt_under_way_keeps_what_it_waits_for(database: Database, node: str) -> None:
    checks = [{"kind": "diag.nvml", "commandId": "cmd_1", "state": "running", "reason": None}]
    await _add(database, ATTEMPT, node, 1, "running", checks, OPEN)
    await _add(database, COMMAND, "cmd_1", node, 1, LONG_AGO)
    await _add(database, COMMAND, "cmd_2", node, 2, LATELY)
    assert await _left(database, "commands", "id") == ["cmd_1", "cmd_2"]
    assert await _left(database, "acceptance_attempts", "attempt") == [1]


async def test_snapshots_are_kept_however_old(database: Database, owner: Database, node: str) -> None:
    async with owner.transaction() as tx:
        await tx.execute(
            "insert into inventory_snapshots (id, tenant_id, node_id, digest, sections, received_at) "
            "select 'inv_1', tenant_id, id, 'd', '{}', now() - interval '10 years' from nodes where id = $1",
            node,
        )
    assert await _left(database, "inventory_snapshots", "id") == ["inv_1"]
