"""Sweeps: every node that may need it is looked at, page by page; what changes is locked and looked at again."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from db.database import Database, Transaction
from domain.ids import NodeId

BATCH_MAX: Final = 500

Page = Callable[[Transaction, str, int], Awaitable[Sequence[NodeId]]]
Settle = Callable[[Transaction, Sequence[NodeId]], Awaitable[int]]


async def sweep(database: Database, lock: int, page: Page, settle: Settle) -> int:
    """Settle all nodes, a page to a transaction; returns how many changed.

    `page` gives the next nodes after an id. `lock` is an advisory lock's key: two that sweep at once would write the
    same, and this spares one of them the look.
    """
    done, after = 0, ""
    while True:
        async with database.transaction() as tx:
            if not await tx.value("select pg_try_advisory_xact_lock($1)", lock):
                return done
            nodes = await page(tx, after, BATCH_MAX)
            done += await settle(tx, nodes)
        if len(nodes) < BATCH_MAX:
            return done
        after = nodes[-1]
