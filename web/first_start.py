"""What a new installation needs before anybody can sign in: a tenant, an operator's token, the local agent's."""

import asyncio
import os
from pathlib import Path
from typing import Final

from db.access import count_tokens, ensure_tenant, find_token
from db.database import Database
from db.identifiers import new_id
from domain.access import Role
from domain.ids import TenantId
from web.authentication import issue_token, token_hash

TENANT_NAME: Final = "default"
# One process makes the first token, however many start at once.
_LOCK: Final = 0x666C_6565_7403


async def default_tenant(database: Database) -> TenantId:
    """Return the tenant of this installation, made when there is none."""
    async with database.transaction() as tx:
        return await ensure_tenant(tx, TenantId(new_id("tenant")), TENANT_NAME)


async def first_operator_token(database: Database, given: str | None) -> str | None:
    """Make the first operator's token and return its text; None when an operator has one already."""
    tenant_id = await default_tenant(database)
    async with database.transaction() as tx:
        await tx.execute("select pg_advisory_xact_lock($1)", _LOCK)
        if await count_tokens(tx, Role.OPERATOR):
            return None
        return await issue_token(tx, tenant_id, Role.OPERATOR, "first operator", text=given)


async def local_agent_token(database: Database, file: Path) -> None:
    """Keep the token of this machine's agent in a file that only its owner may read."""
    tenant_id = await default_tenant(database)
    known = await asyncio.to_thread(_read, file)
    async with database.transaction() as tx:
        if known and await find_token(tx, token_hash(known)) is not None:
            return
        token = await issue_token(tx, tenant_id, Role.AGENT, "agent of this machine")
    await asyncio.to_thread(_write_private, file, token + "\n")


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        return ""


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
