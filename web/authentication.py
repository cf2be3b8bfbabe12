"""From a bearer token to a principal; tokens are stored hashed and compared by their hash."""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from db.access import add_token, find_ticket, find_token
from db.database import Database, Transaction
from db.identifiers import new_id
from domain.access import Principal, Role, StoredToken, admit, bearer, secret_hash
from domain.errors import Unauthenticated
from domain.ids import TenantId, TokenId

TOKEN_BYTES: Final = 32
REMEMBERED: Final = timedelta(seconds=2)
REMEMBERED_MAX: Final = 10_000


async def authenticate(database: Database, header: str | None, now: datetime) -> Principal:
    """Return who presents this `Authorization` value; raises Unauthenticated saying why not."""
    token = bearer(header)
    async with database.session() as tx:
        # The hash is looked up, never the text: what the comparison's time tells is about a hash.
        return admit(await find_token(tx, secret_hash(token)), now)


class Authentication:
    """Who presents a token; one that was good is good again for a moment without asking the database.

    A revoked token is therefore refused within `REMEMBERED`; one that expires is refused at once.
    """

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def principal(self, header: str | None) -> Principal:
        """Return who presents this `Authorization` value; raises Unauthenticated saying why not."""
        now = self._now()
        # The token itself is not kept, here neither.
        key = secret_hash(header or "")
        known = self._known.get(key)
        if known is not None and now < known.until:
            return admit(StoredToken(known.principal, None), now)
        principal = await authenticate(self._database, header, now)
        self._known[key] = _Known(principal, now + REMEMBERED)
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)
        return principal

    async def of_ticket(self, ticket: str) -> Principal:
        """Return whose token bought a ticket that still opens streams; raises Unauthenticated saying why not."""
        now = self._now()
        async with self._database.session() as tx:
            stored = await find_ticket(tx, secret_hash(ticket), now)
        if stored is None:
            raise Unauthenticated("unknown ticket, or older than a minute: create another")
        return admit(stored, now)


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    until: datetime


def new_token(role: Role) -> str:
    """Make a token's text; the prefix says what it is when it is found where it should not be."""
    return f"fg_{role.value}_{secrets.token_urlsafe(TOKEN_BYTES)}"


async def issue_token(tx: Transaction, tenant_id: TenantId, role: Role, name: str, *, text: str | None = None) -> str:
    """Store a token (`text`, else a new one) and return its text, which is not kept."""
    token = text or new_token(role)
    await add_token(tx, Principal(TokenId(new_id("tok")), tenant_id, role, name), secret_hash(token))
    return token
