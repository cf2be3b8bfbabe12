"""Measuring one side: its memory, its latency while nothing else goes on, and under load."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any, Final

import httpx

from bench.applying.meter import Meter
from bench.feeding.figures import OTHER_PROCESS, OWN_MUTATION, Load, Memory, SideSeen
from bench.feeding.latency import Latency
from bench.feeding.sides import TOKEN, Kind, Side
from bench.feeding.times import keep_times
from bench.stand.errors import CannotMeasure
from bench.stand.processes import cpu_seconds
from bench.stand.progress import say
from bench.stand.talk import Helper, helper

_IDLE_RATE: Final = 20
_WARM: Final = 10
_IDLE_SECONDS_MAX: Final = 30
_WAKES_MAX: Final = 20
_WAKE_SECONDS: Final = 3
_CONNECT_SECONDS_MAX: Final = 300
_QUIET_SECONDS_MAX: Final = 60
_LOWER: Final = 0.7
_MAINTAINED: Final = """
subscription { event: events(filter: {type: ["node.maintenance.changed"]}) {
    id cursor type at nodeId ... on NodeAxisChanged { reason }
} }
"""
_MAINTAIN: Final = (
    "mutation($id: ID!, $on: Boolean!, $reason: String) { setMaintenance(id: $id, on: $on, reason: $reason) { id } }"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    subscribers: int
    rate: float
    seconds: float
    """How long events are committed; the bench waits `drain` seconds more for them to come."""
    drain: float
    idle: int
    """How many events, one at a time, to one subscriber."""
    light: int
    """How many events, one a second, to all subscribers: what each side can do."""
    beside: int
    """How many idle subscribers more, for their memory alone."""
    again: bool
    """Whether a rate that was too much is followed by a lower one."""
    begin_seconds_max: float
    """A peer is left out when the bench has run for longer."""


class Meters:
    """Measures one side by the plan; `folder` is for logs and times of commits."""

    def __init__(self, side: Side, plan: Plan, folder: Path, postmaster: int, writer: Helper) -> None:
        self._side = side
        self._plan = plan
        self._folder = folder
        self._postmaster = postmaster
        self._writer = writer
        self._number = 0

    def seen(self) -> SideSeen:
        """Measure all of it."""
        plan, kind = self._plan, self._side.kind
        idle = self._idle()
        with self._subscribers() as client:
            say(f"{kind}: {plan.subscribers:,} subscribers …")
            before, at = self._side.rss_mib(), {}
            self._join(client, plan.subscribers)
            at[plan.subscribers] = self._side.rss_mib()
            if plan.beside:
                at[plan.subscribers + plan.beside] = self._more()
            light = self._load(client, 1, plan.light)
            loads = [self._load(client, plan.rate, plan.seconds)]
        if plan.again and not loads[0].kept_up:
            self._settle()
            with self._subscribers() as client:
                self._join(client, plan.subscribers)
                loads.append(self._load(client, max(1.0, _LOWER * loads[0].rate), plan.seconds))
        return SideSeen(idle, Memory(before, at), light, loads)

    def _more(self) -> float:
        """Return the server's memory with more subscribers for a while."""
        with self._subscribers() as client:
            self._join(client, self._plan.beside)
            rss = self._side.rss_mib()
        self._settle()
        return rss

    def _idle(self) -> dict[str, Latency]:
        say(f"{self._side.kind}: {self._plan.idle} events, one at a time …")
        with self._subscribers() as client:
            self._join(client, 1)
            self._written(client, _WARM, _IDLE_RATE, jitter=0.5)
            found = {OTHER_PROCESS: self._written(client, self._plan.idle, _IDLE_RATE, jitter=0.5)}
        if self._side.kind is Kind.OURS:
            with self._subscribers(_MAINTAINED) as client:
                client.ask(do="connect", count=1)
                found[OWN_MUTATION] = self._maintained(client)
        return found

    def _written(self, client: Helper, count: int, rate: float, jitter: float) -> Latency:
        first, sent = self._numbers(count)
        self._writer.ask(first=first, count=count, rate=rate, jitter=jitter, sent=sent, seconds_max=10 * count / rate)
        self._await(client, first + count - 1, _IDLE_SECONDS_MAX)
        return Latency(**client.ask(do="report", first=first, last=first + count - 1, sent=sent)["latency"])

    def _maintained(self, client: Helper) -> Latency:
        """Commit by mutations of this server; each counts from before its request is sent."""
        url = f"http://{self._side.target.host}:{self._side.target.port}{self._side.target.path}"
        first, sent = self._numbers(self._plan.idle)
        draw = random.Random(first)  # noqa: S311 - a time to wait
        begun = []
        with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            for place in range(self._plan.idle):
                variables = {"id": self._side.fleet.node_id, "on": place % 2 == 0, "reason": f"bench-{first + place}"}
                begun.append(time.monotonic_ns())
                answered = http.post(url, json={"query": _MAINTAIN, "variables": variables}).json()
                if "errors" in answered:
                    raise CannotMeasure(f"a mutation failed: {answered['errors']}")
                time.sleep((0.5 + draw.random()) / _IDLE_RATE)
        keep_times(sent, begun)
        last = first + self._plan.idle - 1
        self._await(client, last, _IDLE_SECONDS_MAX)
        return Latency(**client.ask(do="report", first=first, last=last, sent=sent)["latency"])

    def _load(self, client: Helper, rate: float, seconds: float) -> Load:
        plan, kind = self._plan, self._side.kind
        say(f"{kind}: {plan.subscribers:,} subscribers, {rate:.1f} events/s for {seconds:g} s …")
        count = max(1, round(rate * seconds))
        first, sent = self._numbers(count)
        meter = Meter(self._postmaster)
        server, clients = cpu_seconds([self._side.process]), cpu_seconds([client.process])
        with meter.span():
            self._writer.tell(first=first, count=count, rate=rate, jitter=0, sent=sent)
            wait = seconds + plan.drain
            client.tell(do="until", number=first + count - 1, patience=wait)
            self._writer.hear(10 * wait)
            client.hear(2 * wait + 60)
        server = cpu_seconds([self._side.process]) - server
        clients = cpu_seconds([client.process]) - clients
        rss = self._side.rss_mib()
        said = client.ask(do="report", first=first, last=first + count - 1, sent=sent, seconds_max=300)
        said.pop("wrong")
        load = Load(
            **{**said, "latency": Latency(**said["latency"])},
            offered=rate,
            server_cpu_seconds=server,
            client_cpu_seconds=clients,
            database_cpu_seconds=meter.spent().database_cpu,
            rss_mib=rss,
        )
        say(f"{kind}: {load.rate:.2f} events/s at each, p99 {load.latency.p99_ms:,.0f} ms, {load.complete:.1%} came")
        return load

    def _join(self, client: Helper, count: int) -> None:
        """Subscribe so many, and see that each gets events: the protocol does not say when a subscription stands."""
        client.ask(do="connect", count=count, seconds_max=_CONNECT_SECONDS_MAX)
        for _ in range(_WAKES_MAX):
            first, sent = self._numbers(1)
            self._writer.ask(first=first, count=1, rate=1, jitter=0, sent=sent)
            if not self._await(client, None, _WAKE_SECONDS):
                self._await(client, first, _CONNECT_SECONDS_MAX)
                return
        raise CannotMeasure(f"{self._side.kind}: not every subscriber gets events")

    def _await(self, client: Helper, number: int | None, patience: float) -> int:
        """Wait until all have seen a number, or any; returns how many have not."""
        return int(client.ask(do="until", number=number, patience=patience, seconds_max=patience + 60)["late"])

    def _settle(self) -> None:
        """Wait until the server has nothing more to do for who has left."""
        deadline = time.monotonic() + _QUIET_SECONDS_MAX
        used = cpu_seconds([self._side.process])
        while time.monotonic() < deadline:
            time.sleep(0.5)
            before, used = used, cpu_seconds([self._side.process])
            if used - before < 0.1:  # noqa: PLR2004 - a fifth of a core
                return

    def _numbers(self, count: int) -> tuple[int, str]:
        """Return the first of so many new numbers, and the file for their times."""
        first = self._number + 1
        self._number += count
        return first, str(self._folder / f"{self._side.kind}-{first}.times")

    @contextmanager
    def _subscribers(self, document: str | None = None) -> Iterator[Helper]:
        arguments: dict[str, Any] = self._side.arguments(document)
        with helper("bench.feeding.subscribers", self._folder / "subscribers.log", dumps(arguments)) as client:
            yield client
