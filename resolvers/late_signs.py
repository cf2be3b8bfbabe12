"""Signs of life of heartbeats that were turned away: each is still one, written together with others a little later.

Without it a server that turns heartbeats away would take its own refusals for silence and call its fleet unreachable.
A node costs one narrow row in five seconds however often it calls, far less than its heartbeat would.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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
    """What is noted is written within `wait_seconds`, or when the database is back."""

    wait_seconds: float = WAIT_SECONDS

    def __init__(self, hear: Callable[[Sequence[SignOfLife]], Awaitable[object]]) -> None:
        self._hear = hear
        self._signs: dict[tuple[TenantId, NodeId], SignOfLife] = {}
        self._writing: asyncio.Task[None] | None = None

    def note(self, sign: SignOfLife) -> None:
        """Note that a node was heard of."""
        if len(self._signs) < NODES_MAX:
            self._signs[sign.tenant_id, sign.node_id] = sign
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._signs:
                await asyncio.sleep(self.wait_seconds)
                await self._write_all()
        finally:
            self._writing = None

    async def _write_all(self) -> None:
        waiting, self._signs = self._signs, {}
        while waiting:
            batch = dict(islice(waiting.items(), BATCH))
            try:
                # One tenant's claim to a node says nothing of another's: they are not in one statement.
                by_node = {sign.node_id: sign for sign in batch.values()}
                await self._hear(list(by_node.values()))
            except TRANSIENT as error:
                _log.warning("signs of life wait", nodes=len(waiting), error=repr(error))
                self._signs = waiting | self._signs
                return
            for key, sign in batch.items():
                if by_node[sign.node_id] is sign:
                    del waiting[key]
