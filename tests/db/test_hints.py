"""Hints over every backend, and what happens when the backend or the way to it dies."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from db.hints import Hints
from tests.support.proxy import Proxy, proxy, to_path, to_port
from tests.support.redis import Redis, running_redis
from tests.support.waiting import until

PING_SECONDS = 0.1
# redis-py forgets connections that failed before they are closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def redis() -> Iterator[Redis]:
    with running_redis() as server:
        yield server


@asynccontextmanager
async def _listening(*all_hints: Hints) -> AsyncIterator[list[int]]:
    """Run them while the block lasts, and give what the last one hears."""
    heard: list[int] = []
    running = [asyncio.create_task(hints.run(heard.append)) for hints in all_hints]
    try:
        await until(lambda: all(hints.connected for hints in all_hints))
        yield heard
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def _through_proxy(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """Give a proxy and the URL that leads through it."""
    if url.startswith("redis"):
        async with proxy(to_port(urlsplit(url).port or 0)) as between:
            yield between, f"redis://127.0.0.1:{between.port}"
        return
    (folder,) = parse_qs(urlsplit(url).query)["host"]
    with tempfile.TemporaryDirectory(prefix="fg-proxy-") as here:
        name = ".s.PGSQL.5432"
        async with proxy(to_path(Path(folder) / name), Path(here) / name) as between:
            yield between, url.replace(quote(folder, safe=""), quote(here, safe=""))


async def _hears(speaker: Hints, heard: list[int], position: int) -> None:
    speaker.publish(position)
    await until(lambda: position in heard)


@pytest.fixture(params=["postgres", "redis"])
def backend_url(request: pytest.FixtureRequest) -> str:
    if request.param == "redis":
        return str(request.getfixturevalue("redis").url)
    return str(request.getfixturevalue("database_url"))


async def test_a_hint_crosses_processes(backend_url: str) -> None:
    speaker = Hints(backend_url)
    async with _listening(speaker, Hints(backend_url)) as heard:
        await _hears(speaker, heard, 7)


async def test_of_several_positions_at_once_the_last_is_told(backend_url: str) -> None:
    speaker = Hints(backend_url)
    async with _listening(speaker, Hints(backend_url)) as heard:
        for position in range(1, 1001):
            speaker.publish(position)
        await until(lambda: 1000 in heard)
    assert len(heard) < 10


async def test_what_there_is_to_do_crosses_processes_also_when_it_came_before_the_connection(backend_url: str) -> None:
    speaker, listener = Hints(backend_url), Hints(backend_url)
    due, other = asyncio.Event(), asyncio.Event()
    listener.woken_by({"inventory": due, "liveness": other})
    async with _listening(listener):
        speaker.wake("inventory")
        speaker.wake("of a newer version")
        async with _listening(speaker) as heard:
            await until(due.is_set)
            due.clear()
            await _hears(speaker, heard, 3)
            speaker.wake("inventory")
            await until(due.is_set)
    assert not other.is_set()


async def test_what_there_is_to_do_is_told_when_there_is_a_backend_again(redis: Redis) -> None:
    speaker, listener = (Hints(redis.url, ping_seconds=PING_SECONDS) for _ in range(2))
    due = asyncio.Event()
    listener.woken_by({"inventory": due})
    async with _listening(speaker, listener):
        redis.kill()
        await until(lambda: not speaker.connected and not listener.connected)
        speaker.wake("inventory")
        redis.start()
        await until(lambda: listener.connected)
        speaker.wake("inventory")  # what it told before somebody listened is lost
        await until(due.is_set)


async def test_hints_come_back_after_their_connections_were_cut(backend_url: str) -> None:
    async with _through_proxy(backend_url) as (between, url):
        speaker = Hints(backend_url)
        async with _listening(speaker, Hints(url, ping_seconds=PING_SECONDS)) as heard:
            await _hears(speaker, heard, 1)
            made = between.connections
            between.cut()
            await until(lambda: between.connections > made)
            await _hears(speaker, heard, 2)


async def test_a_connection_that_died_without_a_word_is_noticed_and_made_anew(backend_url: str) -> None:
    async with _through_proxy(backend_url) as (between, url):
        speaker, listener = Hints(backend_url), Hints(url, ping_seconds=PING_SECONDS)
        async with _listening(speaker, listener) as heard:
            await _hears(speaker, heard, 1)
            between.fall_silent()
            await until(lambda: not listener.connected)
            between.speak()
            await _hears(speaker, heard, 2)


async def test_publishing_waits_for_no_backend(backend_url: str) -> None:
    async with _through_proxy(backend_url) as (between, url):
        speaker = Hints(url, ping_seconds=PING_SECONDS)
        async with _listening(speaker, Hints(backend_url)) as heard:
            between.fall_silent()
            for position in range(1, 101):
                speaker.publish(position)  # not awaited: the relay goes on
            await until(lambda: not speaker.connected)
            between.speak()
            await until(lambda: 100 in heard)


async def test_a_process_that_stops_while_it_connects_does_not_go_on(backend_url: str) -> None:
    async with _through_proxy(backend_url) as (between, url):
        between.fall_silent()
        running = asyncio.create_task(Hints(url).run(lambda _position: None))
        await until(lambda: between.connections > 0)
        running.cancel()
        await asyncio.wait([running], timeout=10)
        assert running.cancelled()


async def test_hints_come_back_after_redis_did(redis: Redis) -> None:
    hints = Hints(redis.url, ping_seconds=PING_SECONDS)
    async with _listening(hints) as heard:
        redis.kill()
        await until(lambda: not hints.connected)
        hints.publish(2)  # there is nobody to tell; it is told when there is
        redis.start()
        await until(lambda: 2 in heard)


def test_publishing_without_a_connection_is_no_error() -> None:
    Hints("memory://").publish(1)


@pytest.mark.parametrize("turns", range(8))
async def test_who_is_cancelled_as_its_connection_fails_ends(turns: int) -> None:
    hints = Hints("memory://", ping_seconds=0.01)
    running = asyncio.create_task(hints.run(lambda _: None))
    await until(lambda: hints.connected)
    time.sleep(0.1)  # noqa: ASYNC251 - a process that was stopped finds that its time is up, turns later
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    done, _ = await asyncio.wait([running], timeout=2)
    running.cancel()
    assert done == {running}
