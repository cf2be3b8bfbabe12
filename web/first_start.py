"""What a new installation needs before anybody can sign in: a tenant, an operator's token, the local agent's."""

import asyncio
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from db.access import count_tokens, ensure_tenant, find_token
from db.database import Database
from db.identifiers import new_id
from domain.access import Permission, Role, StoredToken, admit, secret_hash
from domain.errors import Forbidden, Unauthenticated
from domain.ids import TenantId
from web.authentication import issue_token

TENANT_NAME: Final = "default"
# One process makes the first token, however many start at once.
_LOCK: Final = 0x666C_6565_7400


@dataclass(frozen=True, slots=True)
class Made:
    """With a token that was made just now, whose text is nowhere else."""

    token: str


@dataclass(frozen=True, slots=True)
class Given:
    """With the token of FLEETGRAPH_OPERATOR_TOKEN."""


@dataclass(frozen=True, slots=True)
class GivenRefused:
    """Not with the token of FLEETGRAPH_OPERATOR_TOKEN, and why not."""

    reason: str


@dataclass(frozen=True, slots=True)
class Known:
    """With a token that an operator has from before."""


SignIn = Made | Given | GivenRefused | Known
"""How an operator signs in after this start."""


async def default_tenant(database: Database) -> TenantId:
    """Return the tenant of this installation, made when there is none."""
    async with database.transaction() as tx:
        return await ensure_tenant(tx, TenantId(new_id("tenant")), TENANT_NAME)


async def first_operator_token(database: Database, given: SecretStr | None, now: datetime) -> SignIn:
    """Make the first operator's token, `given` unless it is blank, and tell how to sign in."""
    # As the Authorization header's, whose ends are stripped too.
    text = given.get_secret_value().strip() if given else ""
    tenant_id = await default_tenant(database)
    async with database.transaction() as tx:
        await tx.execute("select pg_advisory_xact_lock($1)", _LOCK)
        if text and (stored := await find_token(tx, secret_hash(text))):
            return _with_stored(stored, now)
        if await count_tokens(tx, Role.OPERATOR):
            return GivenRefused("an operator has a token, and only the first is taken from there") if text else Known()
        token = await issue_token(tx, tenant_id, Role.OPERATOR, "first operator", text=text or None)
    return Given() if text else Made(token)


def _with_stored(given: StoredToken, now: datetime) -> SignIn:
    try:
        admit(given, now).require(Permission.OPERATE)
    except (Unauthenticated, Forbidden) as refusal:
        return GivenRefused(str(refusal))
    return Given()


async def local_token(database: Database, file: Path, role: Role, now: datetime) -> None:
    """Keep a token of that role that may be used in a file that only its owner may read."""
    tenant_id = await default_tenant(database)
    known = await asyncio.to_thread(_read, file)
    async with database.transaction() as tx:
        if known and _serves(await find_token(tx, secret_hash(known)), role, now):
            return
        token = await issue_token(tx, tenant_id, role, f"{role.value} of this machine")
    await asyncio.to_thread(_write_private, file, token + "\n")


def _serves(stored: StoredToken | None, role: Role, now: datetime) -> bool:
    try:
        return admit(stored, now).role is role
    except Unauthenticated:
        return False


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
