"""Who asks, and what they may do: the one place that decides access."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from domain.errors import Forbidden, Unauthenticated
from domain.ids import TenantId, TokenId

STREAM_TICKET_LIFE: Final = timedelta(seconds=60)
"""How long a ticket opens streams: long enough to be used, too short to be worth finding in a proxy's log."""


class Role(StrEnum):
    """What a token is for."""

    OPERATOR = "operator"
    AGENT = "agent"


class Permission(StrEnum):
    """What a root field asks for."""

    READ = "read"
    REPORT = "report"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a token of a tenant. Reads and writes see that tenant only."""

    token_id: TokenId
    tenant_id: TenantId
    role: Role
    name: str
    expires_at: datetime | None = None

    @property
    def permissions(self) -> frozenset[Permission]:
        """What the principal may do."""
        return GRANTS[self.role]

    def require(self, permission: Permission) -> TenantId:
        """Return the tenant to work in, or raise Forbidden."""
        if permission not in self.permissions:
            raise Forbidden(f"a token for {self.role.value}s may not {permission.value}")
        return self.tenant_id


GRANTS: Final = {
    Role.OPERATOR: frozenset({Permission.READ, Permission.REPORT, Permission.OPERATE}),
    Role.AGENT: frozenset({Permission.READ, Permission.REPORT}),
}


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token as the database keeps it."""

    principal: Principal
    revoked_at: datetime | None


def admit(stored: StoredToken | None, now: datetime) -> Principal:
    """Return the principal of a token that may still be used, or raise Unauthenticated saying why not."""
    if stored is None:
        raise Unauthenticated("unknown token")
    if stored.revoked_at is not None:
        raise Unauthenticated("this token was revoked")
    if stored.principal.expires_at is not None and stored.principal.expires_at <= now:
        raise Unauthenticated("this token has expired")
    return stored.principal


def secret_hash(text: str) -> bytes:
    """Return what is stored of a token or a ticket."""
    return hashlib.sha256(text.encode()).digest()


def bearer(header: str | None) -> str:
    """Return the token of an `Authorization: Bearer TOKEN` value, or raise Unauthenticated."""
    if not header:
        raise Unauthenticated("no token: send `Authorization: Bearer TOKEN`")
    scheme, _, token = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("the Authorization header is not `Bearer TOKEN`")
    return token.strip()
