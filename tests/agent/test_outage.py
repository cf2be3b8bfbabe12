"""Agents and the simulator's fleet at a real server that is stopped for a while and started again."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from agent.client import Client, Connection, connected
from agent.introduction import introduction
from agent.loop import Agent, Timing
from agent.simulator.fleet import Fleet, Pace
from agent.wire import Greeting, HashAnswer, HashReport, Hello
from db.database import Database
from tests.agent.test_loop import FakeHost
from tests.support.server import RunningServer, listening_server
from tests.support.waiting import until
from web.settings import Settings

AGENTS: Final = 24
SPREAD_SECONDS: Final = 1.0
OUTAGE_SECONDS: Final = 1.0


class Recording(Client):
    """Knows when it was heard: by hellos, and by heartbeats."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]  # as `connected` calls it
        self.greeted: list[float] = []
        self.heard: list[float] = []

    async def hello(self, hello: Hello) -> Greeting:
        answer = await super().hello(hello)
        self.greeted.append(asyncio.get_running_loop().time())
        return answer

    async def record_hashes(self, entries: Sequence[HashReport]) -> tuple[HashAnswer, ...]:
        answer = await super().record_hashes(entries)
        self.heard.append(asyncio.get_running_loop().time())
        return answer


class Server:
    """A server at one address, which is started again and again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._port = 0

    @asynccontextmanager
    async def up(self) -> AsyncIterator[tuple[RunningServer, str]]:
        async with listening_server(self._database, Settings(port=self._port)) as (running, address):
            self._port = urlsplit(address).port or 0
            yield running, address


class Host(FakeHost):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def hello(self) -> Hello:
        return introduction(self._name, hostname=self._name, boot_id=self.boot)


def _timing(number: int) -> Timing:
    return Timing(heartbeat=SPREAD_SECONDS, settle=0.01, fraction=random.Random(number).random)  # noqa: S311


async def test_agents_come_back_bit_by_bit_with_the_sessions_they_had(database: Database) -> None:
    server, loop = Server(database), asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        async with server.up() as (running, address):
            to = Connection(address, running.agent.token)
            clients = [await stack.enter_async_context(connected(Recording, to)) for _ in range(AGENTS)]
            made = [Agent(client, Host(f"n{number}"), _timing(number)) for number, client in enumerate(clients)]
            agents = [asyncio.create_task(agent.run()) for agent in made]
            await until(lambda: all(agent.session_id for agent in made))
        await asyncio.sleep(OUTAGE_SECONDS)
        counted = [len(client.heard) for client in clients]
        began = loop.time()
        async with server.up() as (running, _):
            await until(
                lambda: all(len(client.heard) > before for client, before in zip(clients, counted, strict=True))
            )
            back = sorted(client.heard[before] for client, before in zip(clients, counted, strict=True))
            found = await running.operator.data("{ nodes(first: 100) { edges { node { connectivity } } } }")
            for agent in agents:
                agent.cancel()
            await asyncio.gather(*agents, return_exceptions=True)
    assert all(len(client.greeted) == 1 for client in clients), "a session outlives an outage"
    assert back[0] >= began
    assert back[-1] - back[0] > SPREAD_SECONDS / 2, "they do not come back together"
    assert [edge["node"]["connectivity"] for edge in found["nodes"]["edges"]] == ["CONNECTED"] * AGENTS


async def test_the_simulators_fleet_outlives_an_outage(database: Database) -> None:
    server = Server(database)
    # A second of the fleet's is a twentieth of one.
    pace = Pace(sleep=lambda seconds: asyncio.sleep(seconds / 20), fraction=lambda: 0.5)
    async with AsyncExitStack() as stack:
        async with server.up() as (running, address):
            client = await stack.enter_async_context(connected(Recording, Connection(address, running.agent.token)))
            fleet = Fleet(client, 1, 10, pace)
            await fleet.report(_Silent())
            living = asyncio.create_task(fleet.keep_alive())
            await until(lambda: bool(client.heard))
        await asyncio.sleep(OUTAGE_SECONDS)
        greeted, heard = len(client.greeted), len(client.heard)
        async with server.up():
            await until(lambda: len(client.heard) > heard)
            assert not living.done()
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)
    assert len(client.greeted) == greeted == 10


class _Silent:
    def reported(self, nodes: int) -> None:
        """Show nothing."""

    def applied(self, nodes: int) -> None:
        """Show nothing."""
