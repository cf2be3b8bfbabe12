"""A process of followers that come, go, come back and stall: `python -m bench.feeding.churn TARGET` (JSON).

Each follower is to get every number once and in order over all its connections: it resumes with the cursor of the
last event that it got. Told by a line of JSON at a time: `begin` opens so many and lets them churn, `finish` lets all
of them read on and says what they got up to a number.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import uvloop

from bench.feeding.sequence import Sequence
from bench.feeding.subscriber import Subscriber, Target
from bench.stand.talk import Words, answer, told

_TURN_SECONDS: Final = 0.25
_LEAVE: Final = 0.01
"""The share of those who read that leave in a turn, so that one stays for 25 seconds in the mean."""
_STALL: Final = 0.002
_STALL_SECONDS_MAX: Final = 60.0
_OPEN_AGAIN_SECONDS: Final = 1.0


class Follower:
    """Follows over one connection after the other."""

    def __init__(self, target: Target, away_seconds_max: float, draw: random.Random, seen: Counter[str]) -> None:
        self.sequence = Sequence(keeps=False)
        self.wrong = ""
        self._target = target
        self._away_seconds_max = away_seconds_max
        self._draw = draw
        self._seen = seen
        self._after: str | None = None
        self._subscriber: Subscriber | None = None
        self._stalled = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def settled(self) -> bool:
        """Whether it has got something to resume from, and reads."""
        return self._subscriber is not None and self._subscriber.after is not None and not self._stalled

    async def open(self) -> None:
        """Connect, behind what it got."""
        loop, target = asyncio.get_running_loop(), self._target
        try:
            _, subscriber = await loop.create_connection(
                lambda: Subscriber(target, self.sequence, self._ended), target.host, target.port
            )
        except OSError:
            self._seen["not let in"] += 1
            self._later(_OPEN_AGAIN_SECONDS, self.open)
            return
        subscriber.after = self._after
        self._subscriber = subscriber
        self._seen["connections"] += 1

    def turn(self) -> None:
        """Go on, or leave, or stall."""
        drawn = self._draw.random()
        if not self.settled or self._subscriber is None or self._subscriber.transport is None:
            return
        if drawn < _LEAVE:
            self._seen["left"] += 1
            self._subscriber.transport.abort()
        elif drawn < _LEAVE + _STALL:
            self._seen["stalled"] += 1
            self._stalled = True
            self._subscriber.transport.pause_reading()
            self._later(_STALL_SECONDS_MAX * self._draw.random(), self.read_on)

    async def read_on(self) -> None:
        """Read again, if it did not."""
        if self._stalled and self._subscriber is not None and self._subscriber.transport is not None:
            self._subscriber.transport.resume_reading()
        self._stalled = False

    def _ended(self, subscriber: Subscriber) -> None:
        self._after, self._subscriber, self._stalled = subscriber.after, None, False
        if subscriber.refused:
            self.wrong = subscriber.wrong
            return
        if subscriber.closed:
            self._seen[f"closed with {subscriber.closed}"] += 1
        self._later(self._away_seconds_max * self._draw.random(), self.open)

    def _later(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            await do()

        task = asyncio.create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Churn:
    """All of this process."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._draw = random.Random(seed)  # noqa: S311 - who leaves
        self._seen: Counter[str] = Counter()
        self._all: list[Follower] = []
        self._turning: asyncio.Task[None] | None = None

    async def begin(self, followers: int, away_seconds_max: float) -> Words:
        """Open them, and let them churn from then on."""
        self._all = [Follower(self._target, away_seconds_max, self._draw, self._seen) for _ in range(followers)]
        for each in self._all:
            await each.open()
        self._turning = asyncio.create_task(self._turn())
        return {}

    async def finish(self, number: int, patience: float) -> Words:
        """Let all read on until each has seen a number; says what they got."""
        if self._turning is not None:
            self._turning.cancel()
        for each in self._all:
            await each.read_on()
        deadline = time.monotonic() + patience
        while (late := self._late(number)) and time.monotonic() < deadline:  # noqa: ASYNC110 - an event costs more
            await asyncio.sleep(_TURN_SECONDS)
        sequences = [each.sequence for each in self._all]
        return {
            "late": late,
            "got": sum(each.following - each.first for each in sequences if each.first is not None),
            "lost": sum(each.lost for each in sequences),
            "doubled": sum(each.again for each in sequences),
            "disordered": sum(each.disordered for each in sequences),
            **self._seen,
        }

    def _late(self, number: int) -> int:
        return sum(each.sequence.first is None or each.sequence.following <= number for each in self._all)

    async def _turn(self) -> None:
        while True:
            await asyncio.sleep(_TURN_SECONDS)
            for each in self._all:
                each.turn()

    async def follow(self) -> None:
        """Do what is told, until nothing more is."""
        deeds: dict[str, Callable[..., Awaitable[Words]]] = {"begin": self.begin, "finish": self.finish}
        async for words in told():
            given = dict(words)
            said = await deeds[given.pop("do")](**given)
            answer({**said, "wrong": next((each.wrong for each in self._all if each.wrong), "")})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Churn(Target(**json.loads(sys.argv[1])), int(sys.argv[2])).follow())
