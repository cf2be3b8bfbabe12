"""What an operation works with: who asks, one reader, loaders of its own, and the process's services."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from strawberry.dataloader import DataLoader

from db.database import Database, Reader, Transaction
from db.replica import Replica, Source
from db.replica_reader import ReplicaReader
from db.together import take_note
from domain.access import Permission, Principal
from domain.admission import TurnedAway, Why, Work
from domain.cursor import FeedCursor
from domain.errors import Unauthenticated
from domain.freshness import ANY, Freshness
from domain.ids import TenantId
from domain.pressure import THRESHOLDS, AllThresholds
from resolvers.admission import Admission
from resolvers.feed import Feed
from resolvers.node_views import NodeViews
from resolvers.places import Place
from resolvers.reports import Reports
from resolvers.results import SharedResults
from resolvers.streams import Streams


class Entrance(StrEnum):
    """Which way an operation came in."""

    FRONT = "front"
    """All of it was compiled: it went past Strawberry."""
    GRAPH = "graph"
    """Strawberry executed it."""


class Meter(Protocol):
    """What operations are counted by."""

    def operation(self, entrance: Entrance, name: str | None, seconds: float, *, failed: bool) -> None:
        """Count a query or a mutation that was answered; `failed` when its answer has errors."""

    def read(self, name: str, *, compiled: bool) -> None:
        """Count a read by its field, and the way it was executed."""

    def source(self, source: Source) -> None:
        """Count a query by where it was read, in a process that has a replica."""

    def turned_away(self, work: Work, why: Why) -> None:
        """Count an entry that was not let in."""

    def exposition(self, *, subscribers: int, head: int, behind_seconds: float) -> bytes:
        """Return everything counted, for who scrapes it, with the present state of feed and process."""


class NoMeter:
    """Counts nothing: for tests and tools."""

    def operation(self, entrance: Entrance, name: str | None, seconds: float, *, failed: bool) -> None:
        """Count nothing."""

    def read(self, name: str, *, compiled: bool) -> None:
        """Count nothing."""

    def source(self, source: Source) -> None:
        """Count nothing."""

    def turned_away(self, work: Work, why: Why) -> None:
        """Count nothing."""

    def exposition(self, *, subscribers: int, head: int, behind_seconds: float) -> bytes:  # noqa: ARG002 - a meter's signature
        """Return nothing."""
        return b""


@dataclass(frozen=True, slots=True)
class Services:
    """What a process offers its operations; made once by the composition root."""

    database: Database
    feed: Feed
    now: Callable[[], datetime]
    reports: Reports
    streams: Streams
    views: NodeViews
    compiled_reads: bool = True
    meter: Meter = field(default_factory=NoMeter)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process ends: streams over HTTP end then, as sockets are closed."""
    pressure_thresholds: AllThresholds = field(default_factory=lambda: THRESHOLDS)
    """Where a host's pressure begins and ends."""
    results: SharedResults = field(default_factory=SharedResults)
    """What events' subscribers were sent lately."""
    admission: Admission = field(default_factory=Admission)
    """Who is let in."""
    replica: Replica | None = None
    """What queries may read from besides the database."""


@dataclass(slots=True)
class Context:
    """The context of one operation, or of one event of a subscription: a socket's operations share nothing."""

    services: Services
    request_id: str
    principal: Principal | None = None
    connection_params: dict[str, object] | None = None
    freshness: Freshness = ANY
    """What the queries of this request or socket ask of the state that they read."""
    last_event_id: str | None = None
    """The feed cursor that an event stream was cut at: its subscription goes on from there, whatever `after` says."""
    places: set[Place] = field(default_factory=set)
    """Where the subscriptions of this request or socket stand."""
    _reader: Reader | None = None
    _loaders: dict[Hashable, DataLoader[Any, Any]] = field(default_factory=dict)

    def require(self, permission: Permission) -> TenantId:
        """Return the tenant to work in; raises Unauthenticated or Forbidden. Every root field asks first."""
        if self.principal is None:
            raise Unauthenticated("no token: send `Authorization: Bearer TOKEN`")
        tenant_id = self.principal.require(permission)
        if permission is Permission.OPERATE:
            try:
                self.services.admission.shed(Work.CHANGE)
            except TurnedAway as refusal:
                self._count(refusal)
                raise
        return tenant_id

    def admit(self, work: Work, tenant_id: TenantId, node: str) -> None:
        """Let an entry of a node in, which names itself by its id or its identity; raises TurnedAway."""
        try:
            self.services.admission.admit(work, tenant_id, node)
        except TurnedAway as refusal:
            self._count(refusal)
            raise

    def shed_hello(self) -> None:
        """Raise TurnedAway when no hello is let in, whoever's it is."""
        try:
            self.services.admission.shed(Work.HELLO)
            self.services.reports.hellos.shed()
        except TurnedAway as refusal:
            self._count(refusal)
            raise

    @asynccontextmanager
    async def hello_transaction(self) -> AsyncIterator[Transaction]:
        """Open a hello's transaction when it is its turn."""
        async with self.services.reports.hellos.turn(), self.transaction() as tx:
            yield tx

    def _count(self, refusal: TurnedAway) -> None:
        self.services.meter.turned_away(refusal.work, refusal.why)

    @property
    def reader(self) -> Reader:
        """The reader of this operation."""
        if self._reader is None:
            raise RuntimeError("a context reads only when it is an operation's")
        return self._reader

    @contextmanager
    def standing(self, cursor: FeedCursor | None) -> Iterator[Place]:
        """Give the place of a subscription that begins behind the cursor, while the block lasts."""
        place = Place(cursor)
        self.places.add(place)
        try:
            yield place
        finally:
            self.places.discard(place)

    def needs(self, cursor: FeedCursor) -> None:
        """Read only what has seen everything up to the cursor; say it before anything is read."""
        if isinstance(self._reader, ReplicaReader):
            self._reader.need(cursor)

    def operation(self, *, snapshot: bool) -> "Context":
        """Give a context for a mutation or an event, with loaders and a reader of its own; end it with `end`.

        `snapshot` keeps every read on one view of the data; a mutation's payload must see what was just written.
        """
        return self._with(self.services.database.reader(snapshot=snapshot))

    def query(self) -> "Context":
        """Give a context for a query in the same way: on one view of the data, which may be the replica's."""
        services = self.services
        if services.replica is None:
            return self.operation(snapshot=True)
        return self._with(ReplicaReader(services.database, services.replica, self.freshness, services.meter.source))

    def _with(self, reader: Reader) -> "Context":
        return Context(self.services, self.request_id, self.principal, None, self.freshness, _reader=reader)

    async def end(self) -> None:
        """Give back what the operation's reads hold."""
        if self._reader is not None:
            await self._reader.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Open the transaction of a use case; what was loaded before it is loaded anew afterwards."""
        async with self.services.database.transaction() as tx:
            yield tx
        self.forget()

    def forget(self) -> None:
        """Load anew what was loaded: something was written."""
        self._loaders.clear()

    async def load(self, key: Hashable, load: Callable[[list[Any]], Awaitable[list[Any]]], item: Any) -> Any:  # noqa: ANN401 - whatever is loaded
        """Load one item together with its siblings' that are asked for in the same turn, once per operation.

        `key` says which list `load` serves. A sibling that fails cancels the others: what they share is shielded.
        """
        loader = self._loaders.get(key)
        if loader is None:
            loader = self._loaders[key] = DataLoader(load)
        loading = asyncio.ensure_future(loader.load(item))
        waiting = asyncio.shield(loading)
        for each in (loading, waiting):
            each.add_done_callback(take_note)
        return await waiting
