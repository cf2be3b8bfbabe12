"""Hints between processes that the log has grown, over `broadcaster`: none of its faults can lose an event.

One channel, one subscription per process, one publisher (the relay), a tiny message: the newest position. Who misses
a hint finds the event by polling the log (see `docs/decisions/0003-hints.md`).
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import structlog
from broadcaster import Broadcast
from broadcaster._base import Subscriber

CHANNEL: Final = "fleetgraph_feed"
_RETRY_SECONDS_MAX: Final = 5.0
_PUBLISH_SECONDS_MAX: Final = 2.0

_log = structlog.get_logger("hints")


class Hints:
    """This process's connection to the fan-out backend (`memory://`, `postgres://…`, `redis://…`)."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._broadcast: Broadcast | None = None
        self._rebuild = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether a subscription is up, as far as the backend has said."""
        return self._broadcast is not None

    async def publish(self, position: int) -> None:
        """Tell other processes the newest position; a failure is logged and asks for a new connection."""
        broadcast = self._broadcast
        if broadcast is None:
            return
        try:
            async with asyncio.timeout(_PUBLISH_SECONDS_MAX):
                await broadcast.publish(CHANNEL, str(position))
        except Exception as error:  # noqa: BLE001 - whatever the backend raises, the log's poll is the guarantee
            _log.warning("hint not published", error=repr(error))
            self.suspect()

    def suspect(self) -> None:
        """Ask for a new connection: the present one seems dead, which the backends do not notice by themselves."""
        self._rebuild.set()

    async def run(self, on_hint: Callable[[int], None]) -> None:
        """Keep one subscription alive until cancelled, calling `on_hint` with every position heard."""
        delay = 0.1
        while True:
            self._rebuild.clear()
            try:
                await self._listen(on_hint)
                delay = 0.1
            except Exception as error:  # noqa: BLE001 - as in `publish`
                _log.warning("hints interrupted", error=repr(error), retry_seconds=delay)
                await asyncio.sleep(delay)
                delay = min(delay * 2, _RETRY_SECONDS_MAX)

    async def _listen(self, on_hint: Callable[[int], None]) -> None:
        broadcast = Broadcast(self._url)
        await broadcast.connect()
        try:
            async with broadcast.subscribe(CHANNEL) as subscriber:
                self._broadcast = broadcast
                hearing = asyncio.create_task(_hear(subscriber, on_hint))
                rebuild = asyncio.create_task(self._rebuild.wait())
                try:
                    done, _ = await asyncio.wait({hearing, rebuild}, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                finally:
                    hearing.cancel()
                    rebuild.cancel()
                    await asyncio.gather(hearing, rebuild, return_exceptions=True)
        finally:
            self._broadcast = None
            with contextlib.suppress(Exception):  # a dead backend cannot say goodbye
                await broadcast.disconnect()


async def _hear(subscriber: Subscriber, on_hint: Callable[[int], None]) -> None:
    while True:
        event = await subscriber.get()
        on_hint(int(event.message))
