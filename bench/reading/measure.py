"""Measuring: short rounds of one request, the sides in turn, after a load that only warms."""

import json
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.reading.asked import Asked
from bench.reading.errors import CannotMeasure
from bench.reading.load import CONNECTIONS, Load, load
from bench.reading.processes import cpu_seconds
from bench.reading.progress import say
from bench.reading.rounds import Figure, Round, figure_of, in_turn
from bench.reading.sides import TOKEN, Kind, Side

_ANSWERS_MIN: Final = 1.5
"""How often each connection must be answered in a round, by what one answer takes alone."""
_LONG: Final = 2
"""A round that must be longer than that many usual ones is the only one."""
_IDLE_SHARE: Final = 0.1
_IDLE_POLL_SECONDS: Final = 0.05
_IDLE_SECONDS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """How long: so many rounds of so many seconds, and no round longer than `seconds_max`.

    `plain` names the requests of which plain execution is measured too; None: all.
    """

    rounds: int
    seconds: int
    seconds_max: int
    plain: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """How often and how long one side is measured."""

    rounds: int
    seconds: int


class Meter:
    """Measures servers on the databases of one PostgreSQL, whose first process is `postmaster`."""

    def __init__(self, plan: Plan, folder: Path, postmaster: psutil.Process) -> None:
        self._plan = plan
        self._folder = folder
        self._postmaster = postmaster

    def measure(self, sides: Sequence[Side], asked: Asked) -> dict[Side, Figure]:
        """Return each side's figure for a request; a side that is too slow to be measured in the time has none."""
        say(f"measuring {asked.name} …")
        turns = {side: found for side in sides if (found := self._turns(side, asked))}
        if not turns:
            raise CannotMeasure(f"no side answers {asked.name} fast enough to be measured; give more --seconds")
        self._warm([side for side in turns if side.kind is not Kind.PLAIN], asked)
        seen: dict[Side, list[Round]] = {side: [] for side in turns}
        for number in range(self._plan.rounds):
            for side in in_turn([side for side in turns if number < turns[side].rounds], number):
                seen[side].append(self._round(side, asked, turns[side].seconds))
        empty = next((side for side in turns if not sum(each.requests for each in seen[side])), None)
        if empty:
            raise CannotMeasure(f"{empty.kind} answered no {asked.name} in {turns[empty].seconds} s")
        return {side: figure_of(rounds) for side, rounds in seen.items()}

    def _turns(self, side: Side, asked: Asked) -> Turns | None:
        left_out = self._plan.plain is not None and asked.name not in self._plan.plain
        if side.kind is Kind.PLAIN and left_out:
            return None
        begun = time.monotonic()
        side.answer(asked)
        needed = math.ceil((time.monotonic() - begun) * CONNECTIONS * _ANSWERS_MIN)
        if needed > self._plan.seconds_max:
            return None
        seconds = max(needed, self._plan.seconds)
        once = side.kind is Kind.PLAIN or seconds > _LONG * self._plan.seconds
        return Turns(1 if once else self._plan.rounds, seconds)

    def _warm(self, sides: Sequence[Side], asked: Asked) -> None:
        """Load all sides at once: plans are made, caches filled, and what compiles at run time has compiled."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda side: self._load(side, asked, self._plan.seconds), sides))
        for side in sides:
            self._wait_until_idle(side)

    def _load(self, side: Side, asked: Asked, seconds: int) -> Load:
        body = self._folder / f"{asked.name}-{side.kind}.json"
        body.write_text(json.dumps(side.body(asked).json()))
        return load(side.url, TOKEN, body, seconds)

    def _round(self, side: Side, asked: Asked, seconds: int) -> Round:
        backends = self._postmaster.children()
        before = cpu_seconds([side.process]), cpu_seconds(backends)
        seen = self._load(side, asked, seconds)
        after = cpu_seconds([side.process]), cpu_seconds(backends)
        self._wait_until_idle(side)
        return Round(seen.requests, seen.seconds, seen.p50_ms, seen.p95_ms, after[0] - before[0], after[1] - before[1])

    def _wait_until_idle(self, side: Side) -> None:
        """Return when what wrk no longer waits for is done: the next side's round is not to pay for it."""
        processes = [side.process, *self._postmaster.children()]
        deadline = time.monotonic() + _IDLE_SECONDS_MAX
        used = cpu_seconds(processes)
        while time.monotonic() < deadline:
            time.sleep(_IDLE_POLL_SECONDS)
            before, used = used, cpu_seconds(processes)
            if used - before < _IDLE_SHARE * _IDLE_POLL_SECONDS:
                return
        raise CannotMeasure(f"{side.kind} still works {_IDLE_SECONDS_MAX} s after its last request")
