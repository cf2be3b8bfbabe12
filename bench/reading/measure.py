"""Measuring: short rounds, the sides in turn, after a load that only warms."""

import json
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.reading.asked import FAR_PAGE, FIRST_PAGE, Asked
from bench.reading.load import CONNECTIONS, Load, load
from bench.reading.rounds import Figure, Round, figure_of, in_turn
from bench.reading.sides import TOKEN, Kind, Side
from bench.stand.errors import CannotMeasure
from bench.stand.processes import cpu_seconds, end_of
from bench.stand.progress import elapsed

_ANSWERS_MIN: Final = 1.5
"""How often each connection must be answered in a round, by what one answer takes alone."""
_LONG: Final = 2
"""A round that must be longer than that many usual ones is the only one."""
_HURRY_SECONDS: Final = 75
_LATE_SECONDS: Final = 100
_IDLE_SHARE: Final = 0.1
_IDLE_POLL_SECONDS: Final = 0.05
_IDLE_SECONDS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """How long: so many rounds of so many seconds, and no round longer than `seconds_max`.

    `quick` leaves out what no ratio that is to be reached needs, and further rounds when it has taken long already.
    """

    rounds: int
    seconds: int
    seconds_max: int
    quick: bool

    def hurried(self) -> bool:
        """Say whether one round must do from now on."""
        return self.quick and elapsed() > _HURRY_SECONDS

    def late(self) -> bool:
        """Say whether nothing more is to be begun."""
        return self.quick and elapsed() > _LATE_SECONDS

    def takes(self, kind: Kind, asked: Asked) -> bool:
        """Say whether such a side takes part in a request."""
        if not self.quick or kind is Kind.COMPILED:
            return True
        if kind is Kind.PLAIN:
            return asked.name == "list_100"
        return asked.name not in {FIRST_PAGE, FAR_PAGE}


@dataclass(frozen=True, slots=True)
class Turns:
    """How often and how long one side is asked."""

    rounds: int
    seconds: int


Turn = tuple[Side, Asked]


class Meter:
    """Measures servers on the databases of one PostgreSQL, whose first process is `postmaster`."""

    def __init__(self, plan: Plan, folder: Path, postmaster: psutil.Process) -> None:
        self._plan = plan
        self._folder = folder
        self._postmaster = postmaster

    def measure(self, asked: Sequence[Turn]) -> dict[Turn, Figure]:
        """Return the figure of each side and its request, measured in turn; plain execution may be too slow for one."""
        turns = {turn: found for turn in asked if (found := self._turns(*turn))}
        self._warm([turn for turn in turns if turn[0].kind is not Kind.PLAIN])
        seen: dict[Turn, list[Round]] = {turn: [] for turn in turns}
        for number in range(self._plan.rounds):
            if number and self._plan.hurried():
                break
            for turn in in_turn([turn for turn in turns if number < turns[turn].rounds], number):
                seen[turn].append(self._round(turn, turns[turn].seconds))
        return {turn: figure_of(rounds) for turn, rounds in seen.items()}

    def _turns(self, side: Side, asked: Asked) -> Turns | None:
        begun = time.monotonic()
        side.answer(asked)
        needed = math.ceil((time.monotonic() - begun) * CONNECTIONS * _ANSWERS_MIN)
        # Without plain execution a run still tells what it is for; without another side it does not.
        if side.kind is Kind.PLAIN and needed > self._plan.seconds_max:
            return None
        seconds = min(max(needed, self._plan.seconds), self._plan.seconds_max)
        once = side.kind is Kind.PLAIN or seconds > _LONG * self._plan.seconds
        return Turns(1 if once else self._plan.rounds, seconds)

    def _warm(self, turns: Sequence[Turn]) -> None:
        """Load all sides at once: plans are made, caches filled, and what compiles at run time has compiled."""
        if turns:
            with ThreadPoolExecutor(len(turns)) as pool:
                list(pool.map(lambda turn: self._load(turn, self._plan.seconds), turns))
        for side, _ in turns:
            self._wait_until_idle(side)

    def _load(self, turn: Turn, seconds: int) -> Load:
        side, asked = turn
        # Its own file: another side of this kind may be loading, which reads its file when it starts.
        body = self._folder / f"{asked.name}-{side.process.pid}.json"
        body.write_text(json.dumps(side.body(asked).json()))
        try:
            return load(side.url, TOKEN, body, seconds)
        except CannotMeasure as error:
            raise CannotMeasure(f"{side.kind}: {error}; its log ends:\n{end_of(side.log)}") from None

    def _round(self, turn: Turn, seconds: int) -> Round:
        side, asked = turn
        backends = self._postmaster.children()
        before = cpu_seconds([side.process]), cpu_seconds(backends)
        seen = self._load(turn, seconds)
        after = cpu_seconds([side.process]), cpu_seconds(backends)
        self._wait_until_idle(side)
        if not seen.requests:
            raise CannotMeasure(f"{side.kind} answered no {asked.name} in {seconds} s")
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
