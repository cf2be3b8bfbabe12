"""The made-up fleet at a server: all its agents in one process, through the same mutations as theirs."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from time import monotonic
from typing import Final, TypeVar

import structlog
from msgspec.structs import replace

from agent.batches import in_batches
from agent.client import REQUESTS_AT_ONCE_MAX, Client
from agent.failures import NotApplied, Refused
from agent.introduction import introduction
from agent.inventory import Inventory, inventory_of
from agent.parallel import in_parallel
from agent.report import ApplyFailed, Reported, Waiting, introduce, judge, refused_slot
from agent.retry import ALONE, Backoff, persist
from agent.simulator.changes import changes
from agent.simulator.material import Material
from agent.simulator.node import Change, ChangeKind, NodeState, applied, boot_id, first_state, hostname, identity_key
from agent.simulator.progress import Meter
from agent.simulator.sections import sections_of
from agent.simulator.status import status_of
from agent.simulator.troubles import Trouble
from agent.wire import HashAnswer, HashReport, Hello, IngestAnswer, SectionHash, Sections
from agent.wire_status import StatusAnswer, StatusReport
from domain.errors import Code

T = TypeVar("T")
A = TypeVar("A", HashAnswer, IngestAnswer, StatusAnswer)

CHUNK: Final = 50
STATUSES_AT_ONCE: Final = 40
"""Nodes asked for in one query; the server takes 50 aliases."""
HEARTBEAT_SECONDS: Final = 10.0
HEARTBEAT_BATCH: Final = 500
TICK_SECONDS: Final = 0.2
TICK_SECONDS_MAX: Final = 60.0
CHANGES_AT_ONCE_MAX: Final = 200
STALL_SECONDS_MAX: Final = 120.0
PATIENCE_SECONDS: Final = 120.0
_PAUSE_SECONDS_MIN, _PAUSE_SECONDS_MAX = 0.1, 1.0
_SHOWN_MAX: Final = 4

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Node:
    """A node that was reported: how the server knows it, and what it knows of it."""

    node_id: str
    state: NodeState
    hashes: tuple[SectionHash, ...]
    digest: str
    generation: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What the first report of the fleet took."""

    nodes: int
    sections: int
    seconds: float

    def __str__(self) -> str:
        """Say it in one line."""
        rate = self.nodes / self.seconds if self.seconds else 0.0
        return f"{self.nodes} nodes applied, {self.sections} sections sent, {self.seconds:.1f} s, {rate:.0f} nodes/s"


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock and the randomness of the edge; the fleet itself follows its seed."""

    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    fraction: Callable[[], float] = random.random
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Fleet:
    """A seed's fleet of `size` nodes at a server. Its machines boot anew with each `run` of a simulator."""

    def __init__(self, client: Client, seed: int, size: int, pace: Pace, run: str = "") -> None:
        self._client = client
        self._seed = seed
        self._size = size
        self._pace = pace
        self._run = run
        self._nodes: dict[int, Node] = {}
        self._indexes: dict[str, int] = {}
        self._troubled: set[int] = set()
        self._heard = False
        self._sections_sent = 0
        # One report at a time while the fleet lives: an old heartbeat must not arrive after a change.
        self._reporting = asyncio.Lock()

    @property
    def troubled(self) -> frozenset[int]:
        """The nodes with which something is wrong now."""
        return frozenset(self._troubled)

    def node(self, index: int) -> Node:
        """Return a node that was reported."""
        return self._nodes[index]

    def index_of(self, node_id: str) -> int | None:
        """Return which of the fleet's nodes the server knows by that id, if any."""
        return self._indexes.get(node_id)

    def material(self, index: int) -> Material:
        """Return what a node's identities are made of."""
        return Material(self._seed, index)

    async def report(self, meter: Meter) -> Summary:
        """Report every node and wait until all are applied; raises NotApplied when one cannot be."""
        started = self._pace.clock()
        chunks = (range(first, min(first + CHUNK, self._size)) for first in range(0, self._size, CHUNK))

        async def report_chunk(indexes: range) -> None:
            states = [first_state(self.material(index)) for index in indexes]
            await self._introduce(states)
            # Whatever a simulator before this one said of them is over.
            await self._report_statuses(states)
            meter.reported(len(indexes))

        await in_parallel(chunks, report_chunk)
        await self._until_applied(meter)
        return Summary(self._size, self._sections_sent, self._pace.clock() - started)

    async def keep_alive(self) -> None:
        """Report the hashes of every node that was reported about every ten seconds, until cancelled."""
        while True:
            batches = in_groups(sorted(self._nodes), HEARTBEAT_BATCH)
            await self._pace.sleep(0 if batches else TICK_SECONDS)
            for batch in batches:
                await self._pace.sleep(HEARTBEAT_SECONDS / len(batches))
                async with self._reporting:
                    heard = [state for state in (self._nodes[index].state for index in batch) if not _is_silent(state)]
                    await self._report_hashes(heard)
                    await self._report_statuses([state for state in heard if state.troubles])

    async def change(self, rate: float, nodes: int | None = None) -> None:
        """Let things happen to the reported fleet (to its first `nodes`), `rate` a second, until cancelled."""
        sequence = changes(self._seed, nodes or self._size)
        due = 0.0
        before = self._pace.clock()
        while True:
            await self._pace.sleep(max(TICK_SECONDS, min(1 / rate, TICK_SECONDS_MAX) if rate else TICK_SECONDS_MAX))
            now = self._pace.clock()
            due = min(due + (now - before) * rate, CHANGES_AT_ONCE_MAX)
            before = now
            happened = list(islice(sequence, int(due)))
            due -= len(happened)
            for group in without_repeats(change for change, _ in happened):
                await self.happen(group)

    async def _introduce(self, states: Sequence[NodeState]) -> None:
        """Say hello for each node, send what the server asks for, and know them from then on."""

        async def introduce_one(state: NodeState) -> tuple[Node, Inventory, Sequence[str]]:
            inventory = self._inventory(state)
            greeting = await self.persist(lambda: introduce(self._client, self._hello(state), inventory))
            self._heard = True
            known = greeting.node
            node = Node(known.id, state, inventory.hashes, inventory.digest, known.generation)
            return node, inventory, greeting.request_sections

        introduced = await in_parallel(states, introduce_one)
        await self._send((node.node_id, inventory, names) for node, inventory, names in introduced)
        self._know(node for node, _, _ in introduced)

    async def _send(self, wanted: Iterable[tuple[str, Inventory, Sequence[str]]]) -> None:
        entries = (
            Sections(node_id=node_id, sections=inventory.pick(tuple(names)))
            for node_id, inventory, names in wanted
            if names
        )
        for batch in in_batches(entries):
            for answer in await self._all_taken(self._client.ingest, batch):
                if answer.error is not None:
                    raise refused_slot(answer.error)
                self._sections_sent += len(answer.stored)

    async def _until_applied(self, meter: Meter) -> None:
        waiting = {node.node_id: node.digest for node in self._nodes.values()}
        progress_at = self._pace.clock()
        pause = _PAUSE_SECONDS_MIN
        while waiting:
            groups = in_groups(islice(waiting, STATUSES_AT_ONCE * REQUESTS_AT_ONCE_MAX), STATUSES_AT_ONCE)
            done = [node_id for group in await in_parallel(groups, self._applied(waiting)) for node_id in group]
            for node_id in done:
                del waiting[node_id]
            meter.applied(len(done))
            now = self._pace.clock()
            if done:
                progress_at, pause = now, _PAUSE_SECONDS_MIN
            elif now - progress_at > STALL_SECONDS_MAX:
                raise NotApplied(f"{len(waiting)} nodes are not applied, and none was for {STALL_SECONDS_MAX:g} s")
            else:
                await self._pace.sleep(pause)
                pause = min(2 * pause, _PAUSE_SECONDS_MAX)

    def _applied(self, waiting: dict[str, str]) -> Callable[[Sequence[str]], Awaitable[list[str]]]:
        async def applied_of(node_ids: Sequence[str]) -> list[str]:
            statuses = await self.persist(lambda: self._client.statuses(node_ids))
            done = []
            for node_id, status in zip(node_ids, statuses, strict=True):
                match judge(node_id, status, waiting[node_id]):
                    case Reported():
                        done.append(node_id)
                    case ApplyFailed(why=why):
                        raise NotApplied(f"the server cannot apply node {node_id}: {why}")
                    case Waiting():
                        pass
            return done

        return applied_of

    async def happen(self, happened: Sequence[Change]) -> None:
        """Let nodes change and report what they are then; no node stands in `happened` twice."""
        greeting: list[NodeState] = []
        reporting: list[NodeState] = []
        talking: list[NodeState] = []
        async with self._reporting:
            for change in happened:
                before = self._nodes[change.node].state
                state = applied(before, change)
                self._know([self._in_state(state)])
                if _is_silent(state):
                    continue
                again = change.kind is ChangeKind.AGENT_RESTARTED or before.boots != state.boots or _is_silent(before)
                (greeting if again else reporting).append(state)
                if not (before.is_calm and state.is_calm):
                    talking.append(state)
            await self._introduce(greeting)
            await self._report_hashes(reporting)
            await self._report_statuses(talking)
        shown = [str(change) for change in happened[:_SHOWN_MAX]]
        _log.info("changed", count=len(happened), changes=shown)

    async def _report_statuses(self, states: Sequence[NodeState]) -> None:
        """Say what nodes say beside their inventory; whom the server does not know greets it with the next hashes."""
        for group in in_groups(states, HEARTBEAT_BATCH):
            now = self._pace.now()
            entries = [self._status(state, now) for state in group]
            for answer in await self._all_taken(self._client.report_status, entries):
                if answer.error is not None and answer.error.code != Code.NOT_FOUND:
                    raise refused_slot(answer.error)

    async def _report_hashes(self, states: Sequence[NodeState]) -> None:
        """Report nodes' hashes in one batch, send what the server asks for, and greet anew whom it does not know."""
        if not states:
            return
        nodes = [self._in_state(state) for state in states]
        entries = [HashReport(node_id=node.node_id, hashes=node.hashes) for node in nodes]
        answers = await self._all_taken(self._client.record_hashes, entries)
        pairs = list(zip(nodes, answers, strict=True))
        for _, answer in pairs:
            if answer.error is not None and answer.error.code != Code.NOT_FOUND:
                raise refused_slot(answer.error)
        await self._send(
            (node.node_id, self._inventory(node.state), answer.request_sections)
            for node, answer in pairs
            if answer.request_sections
        )
        self._know(nodes)
        unknown = [node.state for node, answer in pairs if answer.error is not None]
        await self._introduce(unknown)
        await self._report_statuses([state for state in unknown if not state.is_calm])

    def _know(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            index = node.state.index
            self._nodes[index] = node
            self._indexes[node.node_id] = index
            (self._troubled.add if node.state.troubles else self._troubled.discard)(index)

    def _in_state(self, state: NodeState) -> Node:
        node = self._nodes[state.index]
        if node.state == state:
            return node
        inventory = self._inventory(state)
        return Node(node.node_id, state, inventory.hashes, inventory.digest, node.generation)

    def _inventory(self, state: NodeState) -> Inventory:
        return inventory_of(sections_of(self.material(state.index), state))

    def _status(self, state: NodeState, now: datetime) -> StatusReport:
        node = self._nodes[state.index]
        report = status_of(self.material(state.index), state, node.node_id, self.boot_id(state), now)
        return replace(report, observed_generation=node.generation or None)

    def boot_id(self, state: NodeState) -> str:
        """Return the id of a node's present boot."""
        return boot_id(self.material(state.index), state.boots, self._run)

    def _hello(self, state: NodeState) -> Hello:
        material = self.material(state.index)
        return introduction(identity_key(material), hostname=hostname(state.index), boot_id=self.boot_id(state))

    async def _all_taken(self, send: Callable[[Sequence[T]], Awaitable[Sequence[A]]], entries: Sequence[T]) -> list[A]:
        """Send entries, those that were turned away for now again; returns their answers in order."""
        answers: dict[int, A] = {}

        async def send_rest() -> None:
            rest = [place for place in range(len(entries)) if place not in answers]
            refusal: Refused | None = None
            for place, answer in zip(rest, await send([entries[place] for place in rest]), strict=True):
                if answer.error is not None and answer.error.code == Code.RATE_LIMITED:
                    refusal = refused_slot(answer.error)
                else:
                    answers[place] = answer
            if refusal is not None:
                raise refusal

        await self.persist(send_rest)
        return [answers[place] for place in range(len(entries))]

    async def persist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call that failed for now, for `PATIENCE_SECONDS` at most."""
        # Who was never heard is told at once that the server is not there; who was, outlives a restart of it.
        pace = self._pace
        return await persist(
            call,
            seconds_max=PATIENCE_SECONDS if self._heard else 0,
            clock=pace.clock,
            sleep=pace.sleep,
            backoff=Backoff(pace.fraction, ALONE),
        )


def in_groups(items: Iterable[T], size: int) -> list[list[T]]:
    """Cut items into lists of at most `size`."""
    found = list(items)
    return [found[first : first + size] for first in range(0, len(found), size)]


def without_repeats(happened: Iterable[Change]) -> list[list[Change]]:
    """Cut changes where a node would stand in a list twice, keeping their order: a batch takes a node once."""
    lists: list[list[Change]] = []
    nodes: set[int] = set()
    for change in happened:
        if not lists or change.node in nodes:
            lists.append([])
            nodes = set()
        lists[-1].append(change)
        nodes.add(change.node)
    return lists


def _is_silent(state: NodeState) -> bool:
    return state.has(Trouble.SILENCE)
