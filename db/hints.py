"""Hints between processes, over `broadcaster`: that the log has grown, and that there is work. Any may be lost.

One channel, one subscription per process, a tiny message: the newest position, and names of reconcilers that have
something to do. Who misses it finds the event by polling the log, and the work by looking at the state (see
`docs/decisions/0003-hints.md`). What broadcaster 0.3.1 does wrong stays in here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import structlog
from broadcaster import Broadcast
from broadcaster._base import Subscriber

from db.together import together

CHANNEL: Final = "fleetgraph_feed"
PING_SECONDS: Final = 2.0
_PINGS_MISSED_MAX: Final = 3
_RETRY_SECONDS_MIN: Final = 0.1
_RETRY_SECONDS_MAX: Final = 5.0
_BACKEND_SECONDS_MAX: Final = 2.0
"""How long a connection may take to be made, to take a message, and to be closed."""

_log = structlog.get_logger("hints")


class Hints:
    """This process's connection to the fan-out backend (`memory://`, `postgres://…`, `redis://…`).

    A process tells its newest position again every `ping_seconds` and hears itself: so it knows of a connection that
    died without a word, which no backend of broadcaster notices.
    """

    def __init__(self, url: str, *, ping_seconds: float = PING_SECONDS) -> None:
        self._url = url
        self._ping_seconds = ping_seconds
        self._position = 0
        self._due: set[str] = set()
        self._wakes: Mapping[str, asyncio.Event] = {}
        self._news = asyncio.Event()
        self._connected = False

    @property
    def connected(self) -> bool:
        """Whether a subscription is up, as far as is known."""
        return self._connected

    def publish(self, position: int) -> None:
        """Tell other processes the newest position soon; nobody waits for it, and of several the last is told."""
        self._position = position
        self._news.set()

    def wake(self, name: str) -> None:
        """Tell other processes soon that those of their reconcilers have something to do; nobody waits for it."""
        self._due.add(name)
        self._news.set()

    def woken_by(self, wakes: Mapping[str, asyncio.Event]) -> None:
        """Set an event of these whenever another process tells its name."""
        self._wakes = wakes

    async def run(self, on_hint: Callable[[int], None]) -> None:
        """Keep one subscription alive until cancelled, calling `on_hint` with every position heard."""
        delay = _RETRY_SECONDS_MIN
        while True:
            try:
                async with _subscription(self._url) as (broadcast, subscriber):
                    delay = _RETRY_SECONDS_MIN
                    await self._converse(broadcast, subscriber, on_hint)
            except Exception as error:  # noqa: BLE001 - whatever the backend raises, the log's poll is the guarantee
                _log.warning("hints interrupted", error=repr(error), retry_seconds=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_SECONDS_MAX)

    async def _converse(self, broadcast: Broadcast, subscriber: Subscriber, on_hint: Callable[[int], None]) -> None:
        self._connected = True
        self._news.set()  # what could not be told meanwhile
        try:
            await together(self._hear(subscriber, on_hint), self._tell(broadcast))
        finally:
            self._connected = False

    async def _hear(self, subscriber: Subscriber, on_hint: Callable[[int], None]) -> None:
        while True:
            async with asyncio.timeout(self._ping_seconds * _PINGS_MISSED_MAX):
                event = await subscriber.get()
            position, *due = event.message.split()
            for name in due:
                if name in self._wakes:
                    self._wakes[name].set()
            on_hint(int(position))

    async def _tell(self, broadcast: Broadcast) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._ping_seconds):
                    await self._news.wait()
            self._news.clear()
            due, self._due = self._due, set()
            try:
                async with asyncio.timeout(_BACKEND_SECONDS_MAX):
                    await broadcast.publish(CHANNEL, " ".join([str(self._position), *sorted(due)]))
            except BaseException:
                self._due |= due
                raise


@contextlib.asynccontextmanager
async def _subscription(url: str) -> AsyncIterator[tuple[Broadcast, Subscriber]]:
    broadcast = Broadcast(url)
    subscription = broadcast.subscribe(CHANNEL)
    try:
        async with asyncio.timeout(_BACKEND_SECONDS_MAX):
            await broadcast.connect()
            subscriber = await _entered(subscription)
        try:
            yield broadcast, subscriber
        finally:
            await _attempt(subscription.__aexit__(None, None, None))
    finally:
        await _close(broadcast)


async def _entered(subscription: AbstractAsyncContextManager[Subscriber]) -> Subscriber:
    try:
        return await subscription.__aenter__()
    except KeyError as error:
        # Its clean-up trips over the subscription that was not made, and hides why: it may be a cancellation.
        raise error.__context__ or error from None


async def _close(broadcast: Broadcast) -> None:
    """Close a connection; broadcaster's own `disconnect` leaves tasks and sockets of one that failed."""
    backend = broadcast._backend  # noqa: SLF001
    await _attempt(backend.disconnect())
    listeners = (getattr(broadcast, "_listener_task", None), getattr(backend, "_listener", None))
    # The name is a method where the backend has no such task.
    tasks = [listener for listener in listeners if isinstance(listener, asyncio.Task)]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _attempt(farewell: Awaitable[object]) -> None:
    # A dead backend cannot say goodbye.
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_BACKEND_SECONDS_MAX):
            await farewell
