"""Clients that no one here wrote follow the feed: npm's graphql-ws and graphql-sse, and a browser's own EventSource."""

import asyncio
import hashlib
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from db.database import Database
from tests.support.cable import Cable, cable_to
from tests.support.events import FOLLOW, commit_numbers
from tests.support.server import RunningServer, feed_cursor, listening_server, revoke_tokens
from tests.support.waiting import until
from web.connections import TOO_SLOW
from web.settings import Settings

FOLDER: Final = Path(__file__).parent
MODULES: Final = FOLDER / "node_modules"
INSTALL_SECONDS_MAX: Final = 120
SAID_SECONDS_MAX: Final = 20
UNREACHABLE: Final = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH")
Served = tuple[RunningServer, str]


@pytest.fixture(scope="module")
def packages() -> None:
    """Install what the lock file says, once; skips where there is no npm or it reaches no registry."""
    lock = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    installed = MODULES / ".installed"
    if installed.exists() and installed.read_text() == lock:
        return
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: install Debian's package `npm`")
    command = (npm, "ci", "--ignore-scripts", "--no-progress", "--loglevel=error", "--fetch-retries=1")
    ended = subprocess.run(
        command, cwd=FOLDER, timeout=INSTALL_SECONDS_MAX, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        if any(code in ended.stderr for code in UNREACHABLE):
            pytest.skip(f"npm reaches no registry: {ended.stderr.strip().splitlines()[-1]}")
        pytest.fail(ended.stderr)
    installed.write_text(lock)


@dataclass(frozen=True, slots=True)
class Program:
    """A client's program: it takes orders and says what it sees."""

    process: asyncio.subprocess.Process

    async def order(self, order: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{order}\n".encode())
        await self.process.stdin.drain()

    async def says(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(SAID_SECONDS_MAX):
            line = await self.process.stdout.readline()
        assert line, "the program has ended"
        return dict(json.loads(line))

    async def numbers(self, count: int) -> list[int]:
        """Return the numbers of the next events, past what it says of its connections."""
        found: list[int] = []
        while len(found) < count:
            said = await self.says()
            assert "n" in said or "closed" in said, said
            found += [said["n"]] if "n" in said else []
        return found


@asynccontextmanager
async def _program(name: str, *arguments: str) -> AsyncIterator[Program]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("node", FOLDER / name, *arguments, stdin=pipe, stdout=pipe)
    try:
        yield Program(process)
    finally:
        process.kill()
        await process.wait()


async def _until_cut(cable: Cable, is_open: Callable[[], bool]) -> None:
    await until(is_open)
    assert cable.cut() >= 1
    await until(lambda: not is_open())


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", ["ws.mjs", "sse.mjs"])
async def test_npm_clients_resume_unsubscribe_and_are_told_when_their_token_ends(
    database: Database, served: Served, name: str
) -> None:
    server, address = served
    feed, tenant_id = server.services.feed, server.operator.tenant_id
    async with (
        cable_to(address) as cable,
        _program(name, cable.address, server.operator.token, FOLLOW, await feed_cursor(server.operator)) as program,
    ):
        await program.order("subscribe")
        await commit_numbers(database, tenant_id, range(3))
        seen = await program.numbers(3)
        await _until_cut(cable, lambda: feed.subscribers == 1)
        await commit_numbers(database, tenant_id, range(3, 6))
        seen += await program.numbers(3)
        assert seen == list(range(6))

        await program.order("unsubscribe")
        assert await program.says() == {"complete": True}
        await until(lambda: feed.subscribers == 0)
        await program.order("subscribe")
        await until(lambda: feed.subscribers == 1)
        await revoke_tokens(database, server.operator)
        said = await program.says()
        while said.get("closed") == 1000:  # graphql-ws closes a socket that has no subscription left
            said = await program.says()
        expected = {"closed": 4403, "reason": "Forbidden: this token was revoked"}
        assert said == (expected if name == "ws.mjs" else {"errors": ["UNAUTHENTICATED"]})
        await until(lambda: feed.subscribers == 0)


@pytest.mark.usefixtures("packages")
async def test_graphql_ws_comes_again_after_it_was_too_slow_and_misses_nothing(database: Database) -> None:
    settings = Settings(port=0, slow_client_seconds=0.5)
    async with listening_server(database, settings) as (server, address):
        feed, tenant_id, token = server.services.feed, server.operator.tenant_id, server.operator.token
        async with _program("ws.mjs", address, token, FOLLOW, await feed_cursor(server.operator)) as program:
            await program.order("subscribe")
            await commit_numbers(database, tenant_id, [0])
            assert await program.numbers(1) == [0]
            await program.order("sleep")
            await until(lambda: feed.subscribers == 0)
            await commit_numbers(database, tenant_id, [1, 2])
            closed = await program.says()
            assert closed["closed"] == TOO_SLOW
            assert closed["reason"].startswith("too slow; after=")
            assert await program.numbers(2) == [1, 2]
