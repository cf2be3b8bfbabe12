"""Open sockets and streams, which end when their token no longer holds."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from db.access import usable_tokens
from db.connections import TRANSIENT
from db.database import Database
from domain.access import Principal

CHECK_SECONDS: Final = 2.0
"""How long after its token was revoked a session may go on: as long as a request with it may still be answered."""
EXPIRED: Final = "this token has expired"
REVOKED: Final = "this token was revoked"
_log = structlog.get_logger("sessions")


@dataclass(frozen=True, slots=True, eq=False)
class _Session:
    principal: Principal
    end: Callable[[str], None]


class Sessions:
    """The process's sessions; run it once, and open what lasts longer than a request."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._open: set[_Session] = set()

    @contextmanager
    def open(self, principal: Principal, end: Callable[[str], None]) -> Iterator[None]:
        """Call `end` once, saying why, when the principal's token expires or is revoked while the block lasts."""
        session = _Session(principal, end)
        self._open.add(session)
        try:
            yield
        finally:
            self._open.discard(session)

    async def run(self) -> None:
        """Check the sessions until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check()

    async def check(self) -> None:
        """End the sessions whose token no longer holds; while the database is away those that were not revoked yet."""
        now = self._now()
        for session in list(self._open):
            expires_at = session.principal.expires_at
            if expires_at is not None and expires_at <= now:
                self._end(session, EXPIRED)
        asked = {session.principal.token_id for session in self._open}
        if not asked:
            return
        try:
            async with self._database.session() as tx:
                usable = await usable_tokens(tx, sorted(asked))
        except TRANSIENT as error:
            _log.warning("tokens of open sockets cannot be checked now", error=repr(error))
            return
        for session in list(self._open):
            if session.principal.token_id in asked - usable:
                self._end(session, REVOKED)

    def _end(self, session: _Session, why: str) -> None:
        self._open.discard(session)
        session.end(why)
