"""Live views of nodes: each is looked at once in this process, for all who follow the same.

A view is the set of nodes that fit a query, and a history of looks. A look is one snapshot of the data: which nodes
have events that the look before had not, and which of them fit now. So members and changes of two looks are exactly
what a query at their cursors would show, whatever is committed or placed in between; what comes in a burst is one look.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count, islice, takewhile
from typing import Final

from db import nodes as node_store
from db.database import Database, Reader
from db.declared.nodes import NodeQuery
from db.events import feed_cursor, touched_nodes
from domain.cursor import FeedCursor
from domain.ids import NodeId, TenantId
from domain.node_view import NodeTold, ViewChange, caught_up, looked_again
from resolvers.feed import Feed, NodesOf
from resolvers.retries import retried
from resolvers.streams import BATCH_MAX, batched

PAUSE_SECONDS: Final = 0.05
"""The least time between two looks: what comes meanwhile is one look's."""
AT_ONCE_MAX: Final = 4
"""How many views of a process read at once: the connections are everybody's."""
LOOKS_MAX: Final = 1024
"""Looks that a view keeps for those who are not at its end."""
NODES_KEPT_MAX: Final = 20_000
"""Nodes told by the looks that are kept, the newest look aside."""
# A view that is followed anew counts its looks from the start: what was sent of the one before is not of this one.
_SERIALS: Final = count()


@dataclass(frozen=True, slots=True)
class Look:
    """What a look had to tell, and the cursors of the look before and of this one."""

    number: int
    told: tuple[NodeTold, ...]
    before: FeedCursor
    cursor: FeedCursor


@dataclass(frozen=True, slots=True)
class Told:
    """A change for one follower. `cursor` is where to resume behind it, None while only a new beginning is whole.

    `key` is equal for followers who are told the same.
    """

    change: ViewChange
    node_id: NodeId | None
    cursor: FeedCursor | None
    key: Hashable


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What one follower is told before the mark, and where it stands then."""

    told: Iterator[NodeTold]
    number: int
    cursor: FeedCursor


class _View:
    """The nodes of one tenant that fit one query."""

    def __init__(self, database: Database, turns: asyncio.Semaphore, tenant_id: TenantId, query: NodeQuery) -> None:
        self.serial = next(_SERIALS)
        self._database = database
        self._turns = turns
        self._tenant_id = tenant_id
        self._query = query
        self._looking = asyncio.Lock()
        self._cursor: FeedCursor | None = None
        self._number = 0
        # Who fits, each with the look that told of it last, in the order of these looks: so what was read of a node
        # since then may be shown to who comes later, and nothing that comes behind it is older.
        self._members: dict[NodeId, int] = {}
        self._listed: tuple[NodeId, ...] | None = None
        """The same, for all who begin before the next change."""
        self._asked = self._looked = 0
        self._looks: deque[Look] = deque()
        self._kept = 0
        self._grown = asyncio.Event()
        self._failure: Exception | None = None
        self.followers = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def failed(self) -> bool:
        """Whether the view has ended."""
        return self._failure is not None

    async def run(self, feed: Feed) -> None:
        """Look whenever there are events about the tenant's nodes, until cancelled.

        What is no moment of the database ends the view, and each follower is told.
        """
        try:
            with feed.watch(NodesOf(self._tenant_id)) as noticed:
                await self.present()
                while True:
                    await noticed.wait()
                    noticed.clear()
                    # Somebody may have looked meanwhile, and events are seen before they have a position.
                    if self._cursor is None or feed.head > self._cursor.position:
                        await self.present()
                        await asyncio.sleep(max(PAUSE_SECONDS, feed.rest_seconds))
        except Exception as failure:  # noqa: BLE001 - raised by every follower
            self._failure = failure
            self._grown.set()

    async def present(self) -> tuple[int, FeedCursor]:
        """Look, unless somebody began to after this was asked; returns the last look that told something, and where."""
        self._asked += 1
        asked = self._asked
        async with self._looking:
            if self._cursor is None or asked > self._looked:
                asking = self._asked
                self._cursor = await self._look(self._cursor)
                # Not before: who gives up, or fails, has looked for nobody.
                self._looked = asking
            return self._number, self._cursor

    async def begin(self, after: FeedCursor | None) -> _Beginning:
        """Return the nodes that fit now, or what may have changed of them since a cursor; raises CursorExpired."""
        number, cursor = await self.present()
        if after is None:
            if self._listed is None:
                self._listed = tuple(self._members)
            return _Beginning((NodeTold(ViewChange.ENTERED, each) for each in self._listed), number, cursor)
        touched = set(await retried(lambda: self._touched(after)))
        if not self.reaches(number):
            return await self.begin(after)
        # Others have looked meanwhile, and may have seen more.
        for look in self._behind(number):
            touched.update(each.node_id for each in look.told)
            number, cursor = look.number, look.cursor
        told = sorted(caught_up(touched, self._members), key=lambda each: self.told_last(each.node_id))
        return _Beginning(iter(told), number, cursor)

    def told_last(self, node_id: NodeId) -> int:
        """Return the look that told of a node last: what was read of it since then shows all that it is to show."""
        return self._members.get(node_id, self._number)

    def reaches(self, number: int) -> bool:
        """Say whether all looks behind this one are kept."""
        return number >= self._number or bool(self._looks and self._looks[0].number <= number + 1)

    async def after(self, number: int) -> list[Look]:
        """Return the looks behind this one, of those that are kept, waiting for one; raises what ended the view."""
        while self._failure is None and self._number <= number:
            await self._grown.wait()
        if self._failure is not None:
            raise self._failure
        return self._behind(number)

    def _behind(self, number: int) -> list[Look]:
        newer = list(takewhile(lambda look: look.number > number, reversed(self._looks)))
        newer.reverse()
        return newer

    async def _look(self, before: FeedCursor | None) -> FeedCursor:
        cursor, touched, fitting = await retried(lambda: self._read(before))
        if before is None:
            self._members = dict.fromkeys(sorted(fitting), self._number)
        elif told := looked_again(self._members, touched, fitting):
            self._number += 1
            self._listed = None
            for each in told:
                self._members.pop(each.node_id, None)
                if each.change is not ViewChange.LEFT:
                    self._members[each.node_id] = self._number
            self._keep(Look(self._number, told, before, cursor))
        return cursor

    async def _read(self, before: FeedCursor | None) -> tuple[FeedCursor, Sequence[NodeId], frozenset[NodeId]]:
        """Return a cursor, and the nodes touched since the one before and which of them fit; at first all that fit."""
        async with self._snapshot() as reader:
            cursor = await feed_cursor(reader)
            if before is None:
                return cursor, (), await node_store.matching_nodes(reader, self._tenant_id, self._query)
            touched = await touched_nodes(reader, self._tenant_id, before)
            return cursor, touched, await self._fitting(reader, touched)

    async def _touched(self, cursor: FeedCursor) -> list[NodeId]:
        async with self._snapshot() as reader:
            return await touched_nodes(reader, self._tenant_id, cursor)

    async def _fitting(self, reader: Reader, touched: Sequence[NodeId]) -> frozenset[NodeId]:
        if not touched:
            return frozenset()
        return await node_store.matching_nodes(reader, self._tenant_id, self._query, touched)

    @asynccontextmanager
    async def _snapshot(self) -> AsyncIterator[Reader]:
        async with self._turns:
            reader = self._database.reader(snapshot=True)
            try:
                yield reader
            finally:
                await reader.close()

    def _keep(self, look: Look) -> None:
        self._looks.append(look)
        self._kept += len(look.told)
        while len(self._looks) > 1 and (len(self._looks) > LOOKS_MAX or self._kept > NODES_KEPT_MAX):
            self._kept -= len(self._looks.popleft().told)
        self._grown.set()
        self._grown = asyncio.Event()


class NodeViews:
    """The views of a process that somebody follows."""

    def __init__(self, database: Database, feed: Feed) -> None:
        self._database = database
        self._feed = feed
        self._turns = asyncio.Semaphore(AT_ONCE_MAX)
        self._views: dict[tuple[TenantId, NodeQuery], _View] = {}

    async def follow(
        self, tenant_id: TenantId, query: NodeQuery, after: FeedCursor | None
    ) -> AsyncIterator[Sequence[Told]]:
        """Yield the nodes that fit, or what may have changed of them since a cursor; a mark; then every change.

        Who falls too far behind is served as one who resumes. Raises CursorExpired.
        """
        self._feed.subscribers += 1
        try:
            with self._joined(tenant_id, query) as view:
                while True:
                    beginning = await view.begin(after)
                    for told in _of_beginning(view, beginning, after):
                        yield told
                    number, after = beginning.number, beginning.cursor
                    yield [Told(ViewChange.SYNCED, None, after, (view.serial, after))]
                    while view.reaches(number):
                        looks = await view.after(number)
                        for told in batched([told for look in looks for told in _of_look(view, look)]):
                            yield told
                        number, after = looks[-1].number, looks[-1].cursor
        finally:
            self._feed.subscribers -= 1

    @contextmanager
    def _joined(self, tenant_id: TenantId, query: NodeQuery) -> Iterator[_View]:
        key = (tenant_id, query)
        view = self._views.get(key)
        if view is None or view.failed:
            view = self._views[key] = _View(self._database, self._turns, tenant_id, query)
            view.task = asyncio.create_task(view.run(self._feed))
        view.followers += 1
        try:
            yield view
        finally:
            view.followers -= 1
            if not view.followers:
                if view.task is not None:
                    view.task.cancel()
                if self._views.get(key) is view:
                    del self._views[key]


def _of_beginning(view: _View, beginning: _Beginning, after: FeedCursor | None) -> Iterator[Sequence[Told]]:
    """Write a beginning as far as it is sent: of its nodes nothing is kept behind it."""
    while told := [
        Told(each.change, each.node_id, after, (view.serial, view.told_last(each.node_id), each, after))
        for each in islice(beginning.told, BATCH_MAX)
    ]:
        yield told


def _of_look(view: _View, look: Look) -> Iterator[Told]:
    for place, each in enumerate(look.told, start=1):
        # Only with its last change the view is that of the look: who stops before it is told all of it again.
        cursor = look.cursor if place == len(look.told) else look.before
        yield Told(each.change, each.node_id, cursor, (view.serial, look.number, each, cursor))
