"""The server's command line: what a person can put right is one line."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from db.embedded import EmbeddedPostgres


async def migrate(database_url: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("fleetgraph"),
        "migrate",
        env={**os.environ, "DATABASE_URL": database_url},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    return process.returncode, errors.decode()


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
