"""The acceptance test of several processes, and how late their clients are told of changes meanwhile."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import httpx

from bench.several.figures import Figures
from bench.several.programs import Programs
from bench.stand.errors import CannotMeasure
from bench.stand.progress import say
from db.database import Database
from domain.digest import inventory_digest
from tests.faults.checker import all_seen, at_rest, bugs_in, first_difference, log_of
from tests.faults.clients import PATIENCE_SECONDS, Node, Refused, Reporter, Watcher, cursor_at
from tests.faults.stand import TOKEN

MADE_UP_NODES: Final = 50
NODES: Final = 20
ROUNDS: Final = 50
ROUNDS_BESIDE_FAULTS: Final = 4
SECONDS_MAX: Final = 60.0
_PAUSE_SECONDS_MAX: Final = 0.1
_LABEL: Final = """
mutation ($id: ID!, $value: String!) { labelNode(id: $id, set: [{key: "round", value: $value}]) { id } }
"""
_NODE: Final = """
query ($id: ID!) { computeNode(id: $id) { labels { key value } inventoryStatus { state appliedDigest } } }
"""
_CHANGED: Final = "NodeChanged"
_APPLIED: Final = "NodeInventoryChanged"

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Acceptance:
    """What goes on: nodes that report anywhere, a subscriber at each process, and one that goes round."""

    programs: Programs
    http: httpx.AsyncClient
    watchers: Sequence[Watcher]
    wanderer: Watcher
    reporter: Reporter
    chance: random.Random
    figures: Figures = field(default_factory=Figures)
    _rounds: int = 0
    _wandering: asyncio.Task[None] | None = None

    async def label(self) -> float:
        """Label a node by one process: the others show it at once, and all clients are told.

        Returns how many seconds that was after the answer.
        """
        node = self.chance.choice(self.reporter.nodes)
        by, *others = self._served()
        self._rounds += 1
        value = str(self._rounds)
        heard = asyncio.create_task(self._told(_CHANGED, node))
        await self._sent(by, _LABEL, id=node.id, value=value)
        answered = time.perf_counter()
        for port in others:
            labels = {each["key"]: each["value"] for each in (await self._read(port, node))["labels"]}
            if labels.get("round") != value:
                raise CannotMeasure(f"a process answered before it showed label {value}: {labels}")
        return max(await _within("a label is told to all", heard) - answered, 0.0)

    async def report(self) -> float:
        """Have a node report by any processes: what it reports is applied, each process shows it, and all are told.

        Returns how many seconds after its last answer all clients knew that it is applied.
        """
        node = self.chance.choice(self.reporter.nodes)
        node.version += 1
        heard = asyncio.create_task(self._told(_APPLIED, node))
        await _within("a report is taken", self.reporter.report(self.http, node))
        answered = time.perf_counter()
        told = await _within("a report is applied and told to all", heard)
        await self._shown_everywhere(node)
        return max(told - answered, 0.0)

    async def rounds(self, count: int) -> None:
        """Label and report by turns, while a subscriber goes from process to process."""
        for _ in range(count):
            self.figures.label_to_all_clients.append(await self.label())
            self.figures.report_to_applied.append(await self.report())
            await self.wander()
            await asyncio.sleep(self.chance.uniform(0, _PAUSE_SECONDS_MAX))

    async def wander(self) -> None:
        """Have the subscriber that goes round resume at the next process."""
        await self.rest()
        self._wandering = asyncio.create_task(self.wanderer.run())

    async def rest(self) -> None:
        """Have it end where it is."""
        if self._wandering is not None:
            self._wandering.cancel()
            await asyncio.gather(self._wandering, return_exceptions=True)

    async def over_faults(self) -> None:
        """Go on while workers and an API process are killed and stopped in the middle."""
        for worker in self.programs.workers[:]:
            worker.kill()
            self.figures.after_a_worker_was_killed.append(await self.report())
            await self.rounds(ROUNDS_BESIDE_FAULTS)
            await asyncio.to_thread(self.programs.start_worker)
        stopped = self.programs.workers[-1]
        stopped.send_signal(signal.SIGSTOP)
        self.figures.while_a_worker_is_stopped.append(await self.report())
        await self.rounds(ROUNDS_BESIDE_FAULTS)
        stopped.send_signal(signal.SIGCONT)
        for port in self.programs.ports[:2]:
            going_on = asyncio.create_task(self._reports())
            self.programs.apis.pop(port).kill()
            await _within("reports go on beside a killed API process", going_on)
            await asyncio.to_thread(self.programs.start_api, port)
            await self.rounds(1)

    async def settled(self) -> None:
        """Hold what every client saw against the log, and what every process shows against what nodes reported."""
        database = await Database.connect(self.programs.dsn, size_max=2)
        try:
            await _within("nothing is left to do", at_rest(database))
            await self.wander()
            await _within("every subscriber has every event", all_seen(database, self._all_watchers()))
            log = await log_of(database)
        finally:
            await database.close()
        for watcher in self._all_watchers():
            if watcher.seen != log:
                raise CannotMeasure(
                    f"a subscriber was told other events than the log has: {first_difference(watcher.seen, log)}"
                )
        for node in self.reporter.nodes:
            await self._shown_everywhere(node)
        wrong = [line for path in self.programs.logs for line in bugs_in(path)]
        if wrong:
            raise CannotMeasure(f"a program logged an error:\n{wrong[0]}")
        self.figures.events = len(log)
        self.figures.connections = self.wanderer.connections

    def _all_watchers(self) -> list[Watcher]:
        return [*self.watchers, self.wanderer]

    def _served(self) -> list[int]:
        """Return the ports that are served now, in an order of chance."""
        return self.chance.sample(sorted(self.programs.apis), len(self.programs.apis))

    async def _reports(self) -> None:
        for _ in range(ROUNDS_BESIDE_FAULTS):
            node = self.chance.choice(self.reporter.nodes)
            node.version += 1
            await self.reporter.report(self.http, node)

    async def _told(self, kind: str, node: Node) -> float:
        """Return when every process's subscriber has been told this of the node, from now on."""
        before = [len(watcher.told) for watcher in self.watchers]
        while True:
            if all((kind, node.id) in watcher.told[seen:] for watcher, seen in zip(self.watchers, before, strict=True)):
                return time.perf_counter()
            await asyncio.sleep(0.001)

    async def _shown_everywhere(self, node: Node) -> None:
        digest = inventory_digest({each["name"]: each["sha256"] for each in node.sections()})
        for port in self._served():
            shown = (await self._read(port, node))["inventoryStatus"]
            if shown != {"state": "APPLIED", "appliedDigest": digest}:
                raise CannotMeasure(f"{node.name} reported {digest}, and a process shows {shown}")

    async def _read(self, port: int, node: Node) -> dict[str, Any]:
        return dict((await self._sent(port, _NODE, id=node.id))["computeNode"])

    async def _sent(self, port: int, query: str, **variables: Any) -> dict[str, Any]:  # noqa: ANN401 - any variable
        answer = await self.http.post(
            f"http://127.0.0.1:{port}/graphql",
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        said = answer.json()
        if "errors" in said:
            raise CannotMeasure(f"a process answered {said['errors']}")
        return dict(said["data"])


async def accepted(programs: Programs) -> Figures:
    """Run the test; raises CannotMeasure when anything is not as it must be."""
    try:
        async with _clients(programs) as acceptance:
            say(f"{MADE_UP_NODES} made-up agents report …")
            await asyncio.to_thread(programs.simulate, MADE_UP_NODES)
            say("reporting and changing by one process, reading and listening at all …")
            await acceptance.rounds(ROUNDS)
            say("the same, while workers and API processes are killed and stopped …")
            await acceptance.over_faults()
            await acceptance.settled()
            return acceptance.figures
    except Refused as refused:
        raise CannotMeasure(f"a client was refused: {refused}") from refused


@asynccontextmanager
async def _clients(programs: Programs) -> AsyncIterator[Acceptance]:
    """Have nodes report once, and run subscribers while the block lasts."""
    chance = random.Random(1)  # noqa: S311 - which node, which process
    cursor = await cursor_at(programs.ports[0])
    watchers = [Watcher([port], cursor) for port in programs.ports]
    nodes = [Node(f"node-{number}") for number in range(NODES)]
    reporter = Reporter(programs.ports, nodes, chance, PATIENCE_SECONDS)
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
        acceptance = Acceptance(programs, http, watchers, Watcher(programs.ports, cursor), reporter, chance)
        watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
        try:
            for node in nodes:
                await _within("a node's first report is taken", reporter.report(http, node))
            await acceptance.wander()
            yield acceptance
        finally:
            await acceptance.rest()
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)


async def _within(what: str, awaited: Awaitable[Answer]) -> Answer:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            return await awaited
    except TimeoutError:
        raise CannotMeasure(f"not within {SECONDS_MAX:g} s: {what}") from None
