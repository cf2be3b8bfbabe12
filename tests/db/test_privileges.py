"""What the server's role may not do: the database itself refuses it."""

import asyncpg
import pytest

from db.database import Database
from db.migrate import _with_connection, migrate
from db.privileges import APPLICATION_ROLE, WANTED, prepare_role
from tests.support.documents import Given, example
from tests.support.server import RunningServer, report
from tests.support.waiting import until

HISTORY = ("events", "inventory_snapshots", "inventory_sections")
GRANTED = """
select c.relname, a.privilege_type from pg_class c cross join aclexplode(c.relacl) a
where c.relnamespace = current_schema()::regnamespace and a.grantee = $1::text::regrole
"""


async def _refused(database: Database, statement: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with database.transaction() as tx:
            await tx.execute(statement)


async def test_history_is_written_and_read_and_never_changed(database: Database, server: RunningServer) -> None:
    node_id = await report(server.agent, "n1", {"os": example("os", Given.LEAST)})
    await until(lambda: server.services.feed.head > 0)
    async with database.session() as session:
        for table in HISTORY:
            assert await session.value(f"select count(*) from {table}")  # noqa: S608 - ours
    for table in HISTORY:
        await _refused(database, f"delete from {table}")  # noqa: S608
        await _refused(database, f"update {table} set tenant_id = 'another'")  # noqa: S608
        await _refused(database, f"truncate {table}")
        await _refused(database, f"drop table {table}")
        await _refused(database, f"alter table {table} disable trigger all")
        await _refused(database, f"select * from {table} for update")  # noqa: S608
    # Nor by another way: with what it belongs to, or in the partition that it lies in.
    await _refused(database, f"delete from nodes where id = '{node_id}'")  # noqa: S608
    await _refused(database, "delete from tenants")
    await _refused(database, "delete from events_p1")
    await _refused(database, "insert into events_p1 select * from events")
    await _refused(database, "drop table events_p1")
    await _refused(database, "alter table events detach partition events_p1")


async def test_the_schema_is_the_owners(database: Database) -> None:
    await _refused(database, "create table another (n int)")
    await _refused(database, "update alembic_version set version_num = '0000'")
    await _refused(database, "create or replace function log_follows(place bigint) returns boolean return true")


async def test_who_has_not_the_role_cannot_have_the_log_forgotten(postgres_url: str, database_url: str) -> None:
    maintenance = await asyncpg.connect(postgres_url)
    try:
        await maintenance.execute("create role passer_by login")
        connection = await asyncpg.connect(database_url.replace("postgres@", "passer_by@"))
        try:
            for call in ("drop_event_partitions(now())", "make_event_partition(1)"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(f"select {call}")
        finally:
            await connection.close()
        await maintenance.execute("drop role passer_by")
    finally:
        await maintenance.close()


async def test_each_start_gives_the_role_what_it_needs_and_takes_what_is_too_much(
    database_url: str, owner: Database
) -> None:
    async with owner.transaction() as tx:
        await tx.execute(f"revoke insert on nodes from {APPLICATION_ROLE}")
        await tx.execute(f"grant delete, truncate on events to {APPLICATION_ROLE}")
        await tx.execute(f"grant update on events_p1 to {APPLICATION_ROLE}")
    assert await migrate(database_url) == APPLICATION_ROLE
    async with owner.session() as session:
        assert {(row.relname, row.privilege_type) for row in await session.fetch(GRANTED, APPLICATION_ROLE)} == WANTED


async def test_a_login_that_only_has_the_role_serves_what_its_owner_migrated(
    postgres_url: str, database_url: str
) -> None:
    maintenance = await asyncpg.connect(postgres_url)
    try:
        await maintenance.execute(f"create role web login in role {APPLICATION_ROLE}")
        dsn = database_url.replace("postgres@", "web@")
        assert await migrate(dsn) == APPLICATION_ROLE
        serving = await Database.connect(dsn, role=APPLICATION_ROLE)
        async with serving.transaction() as tx:
            await tx.execute("insert into tenants (id, name) values ('tenant', 'tenant')")
        await _refused(serving, "delete from events")
        await serving.close()
        # Without taking the role it is no owner either.
        unroled = await Database.connect(dsn)
        await _refused(unroled, "delete from events")
        await unroled.close()
        await maintenance.execute("drop role web")
    finally:
        await maintenance.close()


async def test_an_owner_that_may_make_no_role_is_told_that_nothing_holds_it_back(postgres_url: str) -> None:
    maintenance = await asyncpg.connect(postgres_url)
    try:
        await maintenance.execute("create role landlord login")
        await maintenance.execute("create database let owner landlord")
        dsn = postgres_url.replace("postgres@", "landlord@").replace("/postgres?", "/let?")
        # The role is there, by another database of this server, and not the landlord's to take.
        assert await migrate(dsn) is None
        await maintenance.execute(f"grant {APPLICATION_ROLE} to landlord")
        assert await migrate(dsn) == APPLICATION_ROLE
        await maintenance.execute("drop database let with (force)")
        await maintenance.execute("drop role landlord")
    finally:
        await maintenance.close()


async def test_a_role_is_made_by_who_may_and_taken_at_once(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    maintenance = await asyncpg.connect(postgres_url)
    try:
        await maintenance.execute("create role founder login createrole")
        await maintenance.execute("create database founded owner founder")
        dsn = postgres_url.replace("postgres@", "founder@").replace("/postgres?", "/founded?")
        monkeypatch.setattr("db.privileges.APPLICATION_ROLE", "fleetgraph_other")
        assert await migrate(dsn) == "fleetgraph_other"
        assert await _with_connection(dsn, prepare_role) == "fleetgraph_other"
        await maintenance.execute("drop database founded with (force)")
        await maintenance.execute("drop role fleetgraph_other")
        await maintenance.execute("drop role founder")
    finally:
        await maintenance.close()
