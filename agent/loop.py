"""The agent's life: hello, heartbeats, collecting anew when something changed, and coming back after every failure."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Final, Protocol

import structlog

from agent.client import Client
from agent.failures import AgentFailure, Refused
from agent.inventory import Inventory
from agent.report import introduce, refused_slot, send_sections
from agent.retry import SPREAD_SECONDS, Backoff, Spread
from agent.threads import in_thread
from agent.watch import Fingerprint
from agent.wire import HashReport, Hello
from domain.errors import Code

HEARTBEAT_SECONDS: Final = 10.0
RESCAN_SECONDS: Final = 12 * 3600.0
SETTLE_SECONDS: Final = 2.0
RETRY_INCOMPLETE_SECONDS: Final = 300.0
_JITTER: Final = 0.1
_LEASE_SHARE: Final = 3  # two heartbeats may be lost before the lease ends
_CHANGES_SHOWN_MAX: Final = 8
_NO_ENTRY: Final = frozenset({Code.UNAUTHENTICATED, Code.FORBIDDEN, Code.INVALID_INPUT})

_log = structlog.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Host(Protocol):
    """The machine as the loop sees it; the calls block."""

    def collect(self) -> Inventory:
        """Collect the inventory."""

    def fingerprint(self) -> Fingerprint:
        """Look at what is plugged in."""

    def hello(self) -> Hello:
        """Say who the node is, in this boot."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How often things happen, in seconds, and the clocks and the randomness behind them."""

    heartbeat: float = HEARTBEAT_SECONDS
    rescan: float = RESCAN_SECONDS
    settle: float = SETTLE_SECONDS
    retry_incomplete: float = RETRY_INCOMPLETE_SECONDS
    spread: float = SPREAD_SECONDS
    """Over how long agents that start at one moment say hello; never longer than between heartbeats."""
    clock: Callable[[], float] = monotonic
    now: Callable[[], datetime] = _utc_now
    fraction: Callable[[], float] = random.random

    def jittered(self, seconds: float) -> float:
        """Return about `seconds`, so that the agents of a fleet spread out."""
        return seconds * (1 - _JITTER + 2 * _JITTER * self.fraction())

    def first_contact(self) -> float:
        """Return how long after its start this agent says hello."""
        return self.fraction() * min(self.spread, self.heartbeat)

    def backoff(self) -> Backoff:
        """Return the waits after failures of something that all agents of a fleet do."""
        return Backoff(self.fraction, Spread(first_seconds=min(SPREAD_SECONDS, self.heartbeat)))


@dataclass(frozen=True, slots=True)
class _Picture:
    """What was collected last, what was plugged in before that, and when to look again at the latest."""

    inventory: Inventory
    fingerprint: Fingerprint
    rescan_at: float
    asked: tuple["asyncio.Future[Inventory]", ...] = ()
    """Who waits for it to be reported."""


@dataclass(frozen=True, slots=True)
class _Session:
    node_id: str
    hello: Hello
    heartbeat: float


class Agent:
    """One node's agent. Cancel `run` to end it. `greeted` is set at every new session."""

    def __init__(self, client: Client, host: Host, timing: Timing, greeted: asyncio.Event | None = None) -> None:
        self._client = client
        self._host = host
        self._timing = timing
        self._wake = asyncio.Event()
        self._picture: _Picture | None = None
        self._collection: asyncio.Task[_Picture] | None = None
        self._asked: list[asyncio.Future[Inventory]] = []
        self._welcomed = False
        self._greeted = greeted or asyncio.Event()
        self.node_id: str | None = None
        """The node of the session; None before the first."""
        self.session_id: str | None = None
        self.generation = 0
        """The generation of the node's desired state as the session began."""
        self._refused_digest: str | None = None

    async def run(self) -> None:
        """Report for ever. Raises Refused when the very first hello is: then the token or the identity is wrong."""
        session: _Session | None = None
        backoff = self._timing.backoff()
        try:
            # What was collected while it waited for its turn is what it says hello with.
            self._picture, _ = await asyncio.gather(self._collect(0), asyncio.sleep(self._timing.first_contact()))
            while True:
                try:
                    session = await (self._open() if session is None else self._beat(session))
                    backoff.succeeded()
                    pause = self._timing.jittered(session.heartbeat)
                except AgentFailure as failure:
                    if not self._welcomed and isinstance(failure, Refused) and failure.code in _NO_ENTRY:
                        raise
                    # A server that was away still knows the session: a heartbeat costs it less than a hello.
                    session = session if failure.transient else None
                    pause = backoff.seconds(failure)
                    _log.warning("not heard", reason=str(failure), retry_seconds=round(pause, 1))
                await self._pause(pause)
        finally:
            if self._collection is not None:
                self._collection.cancel()

    @property
    def inventory(self) -> Inventory | None:
        """The inventory that was collected last; None before the first."""
        return None if self._picture is None else self._picture.inventory

    async def refresh(self) -> Inventory:
        """Have the inventory collected anew, and return it when the server has it."""
        waiting: asyncio.Future[Inventory] = asyncio.get_running_loop().create_future()
        self._asked.append(waiting)
        self._wake.set()
        return await waiting

    async def _open(self) -> _Session:
        picture = self._picture or await self._collect(0)
        self._picture = picture
        hello = await in_thread(self._host.hello)
        greeting = await introduce(self._client, hello, picture.inventory)
        self._welcomed = True
        self.node_id = greeting.node.id
        heartbeat = min(self._timing.heartbeat, greeting.lease_seconds / _LEASE_SHARE)
        _log.info("session opened", node_id=greeting.node.id, session_id=greeting.session_id)
        if await self._send(greeting.node.id, picture.inventory, greeting.request_sections):
            self._settle(picture)
        self.session_id, self.generation = greeting.session_id, greeting.node.generation
        self._greeted.set()
        return _Session(greeting.node.id, hello, heartbeat)

    async def _beat(self, session: _Session) -> _Session:
        picture = await self._newest()
        inventory = picture.inventory
        report = HashReport(node_id=session.node_id, hashes=inventory.hashes, sent_at=self._timing.now())
        (answer,) = await self._client.record_hashes([report])
        if answer.error is not None:
            raise refused_slot(answer.error)
        if await self._send(session.node_id, inventory, answer.request_sections):
            self._settle(picture)
        if (await in_thread(self._host.hello)) != session.hello:
            return await self._open()  # another boot, as after a container was frozen and moved
        return session

    async def _newest(self) -> _Picture:
        """Return the newest picture, and see to it that a stale one is collected anew beside the heartbeats."""
        picture = self._picture or await self._collect(0)
        if self._collection is not None and self._collection.done():
            picture = self._collection.result()
            self._collection = None
        self._picture = picture
        if self._collection is None:
            fingerprint = await in_thread(self._host.fingerprint)
            if fingerprint != picture.fingerprint:
                _log.info("hardware changed", changed=sorted(fingerprint ^ picture.fingerprint)[:_CHANGES_SHOWN_MAX])
                self._start_collection(self._timing.settle)
            elif self._asked or self._timing.clock() >= picture.rescan_at:
                self._start_collection(0)
        return picture

    def _start_collection(self, settle: float) -> None:
        self._collection = asyncio.create_task(self._collect(settle))
        self._collection.add_done_callback(lambda _: self._wake.set())

    async def _collect(self, settle: float) -> _Picture:
        # One change seldom comes alone: a driver that loads brings its devices one after another.
        await asyncio.sleep(settle)
        asked, self._asked = tuple(self._asked), []
        fingerprint = await in_thread(self._host.fingerprint)
        inventory = await in_thread(self._host.collect)
        timing = self._timing
        seconds = timing.jittered(timing.rescan if inventory.complete else timing.retry_incomplete)
        _log.info("inventory collected", digest=inventory.digest, complete=inventory.complete)
        return _Picture(inventory, fingerprint, timing.clock() + seconds, asked)

    async def _send(self, node_id: str, inventory: Inventory, names: Sequence[str]) -> bool:
        """Send what the server asks for; False when it takes nothing now, and asks again with a later heartbeat."""
        if not names or inventory.digest == self._refused_digest:
            return True
        try:
            await send_sections(self._client, node_id, inventory, names)
        except Refused as refusal:
            if refusal.code is Code.RATE_LIMITED:
                _log.info("sections wait", reason=str(refusal))
                return False
            if refusal.code is not Code.INVALID_INPUT:
                raise
            # The same bytes will not be taken a second time; the heartbeats go on until there are others.
            self._refused_digest = inventory.digest
            _log.error("inventory refused", reason=str(refusal))
            return True
        _log.info("sections sent", node_id=node_id, sections=list(names))
        return True

    def _settle(self, picture: _Picture) -> None:
        """Tell who waits that the server has the inventory, or does not take it."""
        for waiting in picture.asked:
            if waiting.done():
                continue
            if picture.inventory.digest == self._refused_digest:
                waiting.set_exception(Refused("the server does not take this inventory", Code.INVALID_INPUT))
            else:
                waiting.set_result(picture.inventory)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()
