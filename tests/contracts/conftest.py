"""What the comparisons of compiled and executed reads share: a world that is made once."""

from collections.abc import AsyncIterator

import pytest_asyncio

from db.database import Database
from db.embedded import EmbeddedPostgres
from db.privileges import APPLICATION_ROLE
from tests.conftest import copied
from tests.support.both import Both, both_servers


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def both(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[Both]:
    """The world behind two servers. Nothing in it changes, so that tests may share it."""
    async with copied(postgres, template) as dsn:
        database = await Database.connect(dsn, role=APPLICATION_ROLE)
        try:
            async with both_servers(database) as servers:
                yield servers
        finally:
            await database.close()
