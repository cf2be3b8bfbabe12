"""Real PostgreSQL for every test that needs one: a server per run, a template migrated once, a copy per test."""

import asyncio
import itertools
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
import structlog
from hypothesis import settings

from db.database import Database
from db.embedded import EmbeddedPostgres
from db.migrate import migrate
from db.privileges import APPLICATION_ROLE
from tests.support.server import RunningServer, listening_server, running_server

# No test asserts how long something takes: another one may run beside it.
settings.register_profile("fleetgraph", deadline=None)
settings.load_profile("fleetgraph")
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.ExceptionRenderer(),
        structlog.processors.JSONRenderer(),
    ],
    wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
)

# A test's data need not survive a crash of the machine.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    # Not pytest's tmp_path: its names are too long for a socket, and the unprivileged server could not enter it.
    base = Path(tempfile.mkdtemp(prefix="fg-test-"))
    base.chmod(0o755)
    server = EmbeddedPostgres(base / "pg", FAST)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def template(postgres: EmbeddedPostgres) -> str:
    async def make() -> None:
        await _execute(postgres.dsn("postgres"), "create database template_fleetgraph")
        await migrate(postgres.dsn("template_fleetgraph"))

    asyncio.run(make())
    return "template_fleetgraph"


@pytest.fixture
async def database_url(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """The DSN of a fresh, migrated database."""
    async with copied(postgres, template) as dsn:
        yield dsn


@pytest.fixture
async def another_database_url(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """A second one, to compare with the first."""
    async with copied(postgres, template) as dsn:
        yield dsn


@asynccontextmanager
async def copied(postgres: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    """Copy the template for as long as the block lasts; gives the copy's DSN."""
    name = f"test_{next(_numbers)}"
    await _execute(postgres.dsn("postgres"), f"create database {name} template {template} strategy file_copy")
    yield postgres.dsn(name)
    await _execute(postgres.dsn("postgres"), f"drop database {name} with (force)")


@pytest.fixture(scope="session")
def postgres_url(postgres: EmbeddedPostgres) -> str:
    """The DSN of the maintenance database."""
    return postgres.dsn("postgres")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """As the server has it: what only the owner of the tables may do, a test does through `owner`."""
    opened = await Database.connect(database_url, role=APPLICATION_ROLE)
    yield opened
    await opened.close()


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Database]:
    """The same database for who owns its tables."""
    opened = await Database.connect(database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    """A server with its reconcilers and three clients: an operator, an agent, and another tenant's operator."""
    async with running_server(database) as running:
        yield running


@pytest.fixture
async def served(database: Database) -> AsyncIterator[tuple[RunningServer, str]]:
    """The same with a listener; gives the server and its address."""
    async with listening_server(database) as running:
        yield running


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
