import asyncio

import asyncpg
import psutil
import pytest

from bench.stand.postgres import OwnPostgres
from db.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def own(postgres: EmbeddedPostgres) -> OwnPostgres:
    async def postmaster() -> psutil.Process | None:
        connection = await asyncpg.connect(postgres.dsn("postgres"))
        try:
            return psutil.Process(connection.get_server_pid()).parent()
        finally:
            await connection.close()

    found = asyncio.run(postmaster())
    assert found is not None
    return OwnPostgres(postgres, found)
