"""Migrations at start: many processes at once, and only on a database that can serve."""

import asyncio
from urllib.parse import quote

import asyncpg
import pytest

from db import migrate as migrating
from db.embedded import EmbeddedPostgres
from db.migrate import UnreachableDatabase, UnsupportedDatabase, check, migrate


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


@pytest.mark.parametrize(
    "parameters",
    ["sslmode=disable", "sslmode=prefer", "application_name=x", "target_session_attrs=any&options=-c%20a.b=c"],
)
async def test_ordinary_parameters_of_a_url_are_taken(database_url: str, parameters: str) -> None:
    await migrate(f"{database_url}&{parameters}")


async def test_the_next_of_several_hosts_is_tried(database_url: str) -> None:
    await migrate(database_url.replace("host=", "host=%2Fmissing,").replace("port=5432", "port=5432,5432"))


async def test_a_name_with_special_characters_is_decoded(postgres: EmbeddedPostgres) -> None:
    name = "sm@ll: 50% [a/b]?#"
    connection = await asyncpg.connect(postgres.dsn("postgres"))
    try:
        await connection.execute(f'create role "{name}" superuser login')
        await connection.execute(f'create database "{name}"')
        dsn = postgres.dsn(name).replace("postgres@", f"{quote(name, safe='')}:{quote(name, safe='')}@")
        await migrate(dsn)
        await connection.execute(f'drop database "{name}" with (force)')
        await connection.execute(f'drop role "{name}"')
    finally:
        await connection.close()


async def test_what_a_person_can_put_right_in_the_url_is_said_in_one_line(
    database_url: str, postgres: EmbeddedPostgres
) -> None:
    for dsn, said in (
        (f"{database_url}&connect_timeout=5", '"connect_timeout".*must be left out'),
        (f"{database_url}&sslmode=sometimes", "`sslmode` parameter must be one of"),
        (f"{database_url}&flag", "not a PostgreSQL URL"),
        (postgres.dsn("missing"), 'database "missing" does not exist'),
        (database_url.replace("postgres@", "stranger@"), 'role "stranger" does not exist'),
        ("postgresql://a@127.0.0.1:1/x", "cannot be reached: .*127.0.0.1"),
        ("mysql://a@127.0.0.1/x", "got 'mysql'"),
        ("postgresql://a@,/x", "not a PostgreSQL URL"),
    ):
        with pytest.raises(UnreachableDatabase, match=said) as refusal:
            await migrate(dsn)
        assert "\n" not in str(refusal.value)


async def test_half_a_password_is_not_shown_as_a_port() -> None:
    with pytest.raises(UnreachableDatabase, match="%2F") as refusal:
        await migrate("postgresql://a:hunter/2@127.0.0.1/x")
    assert "hunter" not in str(refusal.value)


async def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrating, "_CONNECT_SECONDS_MAX", 0.1)
    hung_up = asyncio.Event()

    async def keep_silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hung_up.wait()
        writer.close()

    async with await asyncio.start_server(keep_silent, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        with pytest.raises(UnreachableDatabase, match=r"does not answer for 0\.1 s"):
            await migrate(f"postgresql://a@127.0.0.1:{port}/x?sslmode=disable")
        hung_up.set()


async def test_a_role_that_may_change_nothing_is_refused_in_one_line(postgres: EmbeddedPostgres) -> None:
    connection = await asyncpg.connect(postgres.dsn("postgres"))
    try:
        await connection.execute("create role visitor login")
        await connection.execute("create database strange")
        dsn = postgres.dsn("strange").replace("postgres@", "visitor@")
        with pytest.raises(UnsupportedDatabase, match="cannot be set up: permission denied") as refusal:
            await migrate(dsn)
        assert "\n" not in str(refusal.value)
        await connection.execute("drop database strange with (force)")
        await connection.execute("drop role visitor")
    finally:
        await connection.close()
