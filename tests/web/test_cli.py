"""The server's command line: what a person can put right is one line."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from db.embedded import EmbeddedPostgres
from domain.ids import has_prefix


async def fleetgraph(*arguments: str, **env: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("fleetgraph"),
        *arguments,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


async def migrate(database_url: str) -> tuple[int | None, str]:
    status, _, errors = await fleetgraph("migrate", DATABASE_URL=database_url)
    return status, errors


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("/fleetgraph?", "/missing?"), 'database "missing" does not exist'),
        (("postgres@", "stranger@"), 'role "stranger" does not exist'),
        (("port=5432", "port=1"), "cannot be reached: "),
        (("port=5432", "port=5432&connect_timeout=[5]"), "must be left out"),
        (("postgresql:", "mysql:"), "got 'mysql'"),
    ],
)
async def test_a_wrong_database_url_is_one_line_and_status_1(
    postgres: EmbeddedPostgres, change: tuple[str, str], said: str
) -> None:
    status, errors = await migrate(postgres.dsn("fleetgraph").replace(*change))
    assert status == 1
    assert said in errors
    assert errors.count("\n") == 1


async def test_a_token_is_made_listed_by_its_whole_id_and_revoked(database_url: str) -> None:
    async def run(*arguments: str) -> tuple[int | None, str, str]:
        return await fleetgraph("token", *arguments, DATABASE_URL=database_url)

    status, token, _ = await run("create", "agent", "--name", "of the test")
    assert status == 0
    assert token.startswith("fg_agent_")
    _, listed, _ = await run("list")
    assert token.strip() not in listed
    token_id = listed.split()[0]
    assert has_prefix(token_id, "tok")
    assert (await run("revoke", token_id))[0] == 0
    assert "revoked" in (await run("list"))[1]
    assert (await run("revoke", token_id))[0] == 1


async def test_listing_tokens_where_there_is_no_data_makes_none(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    status, _, errors = await fleetgraph("token", "list", DATABASE_URL="", FLEETGRAPH_DATA_DIR=str(folder))
    assert status == 1
    assert f"no data in {folder}" in errors
    assert not folder.exists()


@pytest.mark.parametrize(
    ("variable", "value"),
    [("FLEETGRAPH_PORT", "abc"), ("BROADCAST_URL", "foo://"), ("FLEETGRAPH_LOG_LEVEL", "loud")],
)
async def test_a_wrong_setting_is_named_with_its_value(variable: str, value: str) -> None:
    status, _, errors = await fleetgraph("token", "list", **{variable: value})
    assert status == 1
    assert f"{variable}={value}" in errors


async def test_a_manifest_of_trusted_documents_that_cannot_be_used_stops_the_start(
    database_url: str, tmp_path: Path
) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text('{"role-1": "{ nowhere }"}')
    env = {"DATABASE_URL": database_url, "FLEETGRAPH_PORT": "0", "FLEETGRAPH_TRUSTED_DOCUMENTS": str(manifest)}
    status, _, errors = await fleetgraph("serve", **env)
    assert status == 1
    assert f"FLEETGRAPH_TRUSTED_DOCUMENTS={manifest}: entry 'role-1': Cannot query field 'nowhere'" in errors
    assert "Traceback" not in errors
