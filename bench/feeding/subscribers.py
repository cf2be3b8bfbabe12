"""A process full of subscribers: `python -m bench.feeding.subscribers TARGET` (JSON), told by a line of JSON at a time.

`connect` opens more of them, `until` waits for a number, `report` says what came; a subscriber whose socket ends is
an error, of which every answer tells.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from itertools import chain
from typing import Any, Final

import uvloop

from bench.feeding.latency import latency_of
from bench.feeding.sequence import Sequence
from bench.feeding.subscriber import Subscriber, Target
from bench.feeding.times import kept_times
from bench.stand.talk import Words, answer, told

_AT_ONCE: Final = 25
_LOOK_SECONDS: Final = 0.05
_CONNECT_SECONDS_MAX: Final = 60


class Subscribers:
    """All of this process."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._all: list[Subscriber] = []
        self._wrong = ""

    async def connect(self, count: int) -> Words:
        """Open so many more, a few at a time, and return when each has sent its subscription."""
        for begun in range(0, count, _AT_ONCE):
            opened = await asyncio.gather(*(self._open() for _ in range(min(_AT_ONCE, count - begun))))
            self._all.extend(opened)
            await self._when(lambda opened=opened: all(each.subscribed for each in opened), _CONNECT_SECONDS_MAX)
        return {"subscribers": len(self._all)}

    async def until(self, number: int | None, patience: float) -> Words:
        """Wait until each has seen a number, or with None any at all; returns how many have not."""

        def late() -> int:
            least = 0 if number is None else number
            return sum(each.sequence.first is None or each.sequence.following <= least for each in self._all)

        await self._when(lambda: not late(), patience)
        return {"late": late()}

    async def report(self, first: int, last: int, sent: str) -> Words:
        """Say what came of the numbers from first to last, whose times of commit are in a file, in nanoseconds."""
        now = time.monotonic_ns()
        committed = kept_times(sent)
        sequences = [each.sequence for each in self._all]
        arrived = [[sequence.arrived(number) for sequence in sequences] for number in range(first, last + 1)]
        # What has not come has waited until now, at least.
        waits = [(at or now) - then for then, row in zip(committed, arrived, strict=True) for at in row]
        delivered = sum(map(bool, chain.from_iterable(arrived)))
        last_at = max(map(max, arrived)) if delivered == len(waits) else now
        return {
            "subscribers": len(sequences),
            "committed": len(committed),
            "delivered": delivered,
            "lost": sum(each.lost for each in sequences),
            "doubled": sum(each.again for each in sequences),
            "disordered": sum(each.disordered for each in sequences),
            "commit_seconds": (committed[-1] - committed[0]) / 1e9,
            "deliver_seconds": (last_at - committed[0]) / 1e9,
            "latency": asdict(latency_of(waits)),
        }

    async def _open(self) -> Subscriber:
        target = self._target
        _, subscriber = await asyncio.get_running_loop().create_connection(
            lambda: Subscriber(target, Sequence(), self._ended), target.host, target.port
        )
        return subscriber

    def _ended(self, subscriber: Subscriber) -> None:
        self._wrong = self._wrong or subscriber.wrong

    async def _when(self, done: Callable[[], bool], seconds_max: float) -> None:
        deadline = time.monotonic() + seconds_max
        while not done() and not self._wrong and time.monotonic() < deadline:  # noqa: ASYNC110 - an event a message would cost more
            await asyncio.sleep(_LOOK_SECONDS)

    async def follow(self) -> None:
        """Do what is told, until nothing more is."""
        deeds: dict[str, Callable[..., Awaitable[Words]]] = {
            "connect": self.connect,
            "until": self.until,
            "report": self.report,
        }
        async for words in told():
            given: dict[str, Any] = dict(words)
            said = await deeds[given.pop("do")](**given)
            answer({**said, "wrong": self._wrong})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Subscribers(Target(**json.loads(sys.argv[1]))).follow())
