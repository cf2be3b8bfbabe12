"""Tenants and tokens."""

from collections.abc import Sequence
from datetime import datetime

from db.connections import Row
from db.database import Transaction
from domain.access import Principal, Role, StoredToken
from domain.ids import TenantId, TokenId

_FIND = """
select id, tenant_id, name, role, expires_at, revoked_at from api_tokens where sha256 = $1
"""
_FIND_TICKET = """
select t.id, t.tenant_id, t.name, t.role, t.expires_at, t.revoked_at
from stream_tickets s join api_tokens t on t.id = s.token_id
where s.sha256 = $1 and s.expires_at > $2
"""
# Those that nobody can use any more go with the next one: there are never more than a few minutes' worth.
_ADD_TICKET = """
with gone as (delete from stream_tickets where expires_at <= $4)
insert into stream_tickets (sha256, token_id, expires_at) values ($1, $2, $3)
"""
_ENSURE_TENANT = """
insert into tenants (id, name) values ($1, $2) on conflict (name) do update set name = excluded.name returning id
"""
_ADD = """
insert into api_tokens (id, tenant_id, name, role, sha256, expires_at) values ($1, $2, $3, $4, $5, $6)
on conflict (sha256) do nothing
"""
_COUNT = "select count(*) from api_tokens where role = $1 and revoked_at is null"
_LIST = """
select id, name, role, created_at, expires_at, revoked_at from api_tokens where tenant_id = $1 order by id limit 1000
"""
_USABLE = "select id from api_tokens where id = any ($1::text[]) and revoked_at is null"
_REVOKE = (
    "update api_tokens set revoked_at = now() where id = $1 and tenant_id = $2 and revoked_at is null returning id"
)


async def find_token(tx: Transaction, sha256: bytes) -> StoredToken | None:
    """Return the token whose text has this SHA-256."""
    return _stored(await tx.first(_FIND, sha256))


async def find_ticket(tx: Transaction, sha256: bytes, now: datetime) -> StoredToken | None:
    """Return the token that bought the ticket whose text has this SHA-256, while the ticket may be used."""
    return _stored(await tx.first(_FIND_TICKET, sha256, now))


async def add_ticket(tx: Transaction, sha256: bytes, token_id: TokenId, expires_at: datetime, now: datetime) -> None:
    """Store a ticket by its hash."""
    await tx.execute(_ADD_TICKET, sha256, token_id, expires_at, now)


def _stored(row: Row | None) -> StoredToken | None:
    if row is None:
        return None
    principal = Principal(
        token_id=TokenId(row.id),
        tenant_id=TenantId(row.tenant_id),
        role=Role(row.role),
        name=row.name,
        expires_at=row.expires_at,
    )
    return StoredToken(principal, row.revoked_at)


async def ensure_tenant(tx: Transaction, tenant_id: TenantId, name: str) -> TenantId:
    """Return the id of the tenant with this name, made with `tenant_id` when there is none."""
    return TenantId(await tx.value(_ENSURE_TENANT, tenant_id, name))


async def add_token(tx: Transaction, principal: Principal, sha256: bytes) -> None:
    """Store a token by its hash; the same token twice is one."""
    await tx.execute(
        _ADD,
        principal.token_id,
        principal.tenant_id,
        principal.name,
        principal.role.value,
        sha256,
        principal.expires_at,
    )


async def count_tokens(tx: Transaction, role: Role) -> int:
    """Count the tokens of a role that were not revoked."""
    return int(await tx.value(_COUNT, role.value))


async def list_tokens(tx: Transaction, tenant_id: TenantId) -> list[Row]:
    """Return the tenant's tokens, oldest first, without their hashes."""
    return await tx.fetch(_LIST, tenant_id)


async def usable_tokens(tx: Transaction, token_ids: Sequence[TokenId]) -> set[TokenId]:
    """Return which of the tokens were not revoked."""
    return {TokenId(row.id) for row in await tx.fetch(_USABLE, list(token_ids))}


async def revoke_token(tx: Transaction, tenant_id: TenantId, token_id: TokenId) -> bool:
    """Revoke a token of the tenant; False when there is none to revoke."""
    return await tx.value(_REVOKE, token_id, tenant_id) is not None
