"""Signs of life of heartbeats that were turned away: each is still one, written together with others a little later.

Without it a server that turns heartbeats away would take its own refusals for silence and call its fleet unreachable.
A node costs one narrow row in five seconds however often it calls, far less than its heartbeat would.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import Final

import structlog

from db.connections import TRANSIENT
from db.liveness import SignOfLife
from domain.ids import NodeId, TenantId

WAIT_SECONDS: Final = 5.0
"""An eighth of the lease for which a sign holds."""
BATCH: Final = 1000
NODES_MAX: Final = 100_000
_log = structlog.get_logger("late signs")


class LateSigns:
    """What is noted is written within `wait_seconds`, or when the database is back.

    Whether there is such a node turns out as it is written: a tenant that makes ids up takes no other tenant's place.
    """

    wait_seconds: float = WAIT_SECONDS

    def __init__(
        self, hear: Callable[[Sequence[SignOfLife]], Awaitable[object]], *, nodes_max: int = NODES_MAX
    ) -> None:
        self._hear = hear
        self._nodes_max = nodes_max
        self._signs: dict[TenantId, dict[NodeId, SignOfLife]] = {}
        self._length = 0
        self._writing: asyncio.Task[None] | None = None

    def note(self, sign: SignOfLife) -> None:
        """Note that a node was heard of."""
        own = self._signs.setdefault(sign.tenant_id, {})
        if sign.node_id not in own:
            if self._length < self._nodes_max:
                self._length += 1
            elif not self._made_room(own):
                return
        own[sign.node_id] = sign
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    def _made_room(self, own: dict[NodeId, SignOfLife]) -> bool:
        """Forget a sign of the tenant with the most, unless that is the very one that has another."""
        largest = max(self._signs.values(), key=len)
        if len(largest) <= len(own):
            return False
        largest.popitem()
        return True

    async def _write(self) -> None:
        try:
            while self._length:
                await asyncio.sleep(self.wait_seconds)
                await self._write_all()
        finally:
            self._writing = None

    async def _write_all(self) -> None:
        waiting, self._signs, self._length = self._signs, {}, 0
        batches = list(_batches(waiting))
        for place, batch in enumerate(batches):
            try:
                await self._hear(batch)
            except TRANSIENT as error:
                _log.warning("signs of life wait", nodes=sum(map(len, batches[place:])), error=repr(error))
                for sign in (sign for batch in batches[place:] for sign in batch):
                    if sign.node_id not in self._signs.get(sign.tenant_id, {}):
                        self.note(sign)
                return


def _batches(waiting: dict[TenantId, dict[NodeId, SignOfLife]]) -> Iterator[list[SignOfLife]]:
    """Give signs so many at a time; one tenant's claim to a node says nothing of another's: they do not mix."""
    for own in waiting.values():
        signs = iter(own.values())
        while batch := list(islice(signs, BATCH)):
            yield batch
