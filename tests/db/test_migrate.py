"""Migrations at start: many processes at once, and only on a database that can serve."""

import asyncio

import asyncpg
import pytest

from db import migrate as migrating
from db.embedded import EmbeddedPostgres
from db.migrate import UnsupportedDatabase, check, migrate


async def test_processes_that_start_at_once_migrate_an_empty_database_once(postgres: EmbeddedPostgres) -> None:
    connection = await asyncpg.connect(postgres.dsn("postgres"))
    try:
        await connection.execute("create database empty")
        dsn = postgres.dsn("empty")
        await asyncio.gather(*(migrate(dsn) for _ in range(4)))
        await check(dsn)
        await connection.execute("drop database empty with (force)")
    finally:
        await connection.close()


async def test_a_database_that_is_too_old_is_refused_by_its_version(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "VERSION_MIN", 990000)
    with pytest.raises(UnsupportedDatabase, match="leads to 1"):
        await migrate(database_url)
