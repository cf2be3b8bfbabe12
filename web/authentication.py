"""From a bearer token to a principal; tokens are stored hashed and compared by their hash."""

import hashlib
import secrets
from datetime import datetime

from db.access import add_token, find_token
from db.database import Database, Transaction
from db.identifiers import new_id
from domain.access import Principal, Role, admit, bearer
from domain.ids import TenantId, TokenId

TOKEN_BYTES = 32


async def authenticate(database: Database, header: str | None, now: datetime) -> Principal:
    """Return who presents this `Authorization` value; raises Unauthenticated saying why not."""
    token = bearer(header)
    async with database.session() as tx:
        # The hash is looked up, never the text: what the comparison's time tells is about a hash.
        return admit(await find_token(tx, token_hash(token)), now)


def token_hash(token: str) -> bytes:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).digest()


def new_token(role: Role) -> str:
    """Make a token's text; the prefix says what it is when it is found where it should not be."""
    return f"fg_{role.value}_{secrets.token_urlsafe(TOKEN_BYTES)}"


async def issue_token(tx: Transaction, tenant_id: TenantId, role: Role, name: str, *, text: str | None = None) -> str:
    """Store a token (`text`, else a new one) and return its text, which is not kept."""
    token = text or new_token(role)
    await add_token(tx, Principal(TokenId(new_id("tok")), tenant_id, role, name), token_hash(token))
    return token
