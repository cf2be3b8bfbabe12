"""Who is admitted, and what each role may do."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.access import Permission, Principal, Role, StoredToken, admit, bearer
from domain.errors import Forbidden, Unauthenticated
from domain.ids import TenantId, TokenId

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def principal(role: Role = Role.OPERATOR, expires_at: datetime | None = None) -> Principal:
    return Principal(TokenId("tok"), TenantId("tenant"), role, "name", expires_at)


def test_a_token_that_was_neither_revoked_nor_expired_is_admitted() -> None:
    later = principal(expires_at=NOW + timedelta(seconds=1))
    assert admit(StoredToken(later, None), NOW) is later


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (None, "unknown"),
        (StoredToken(principal(), NOW), "revoked"),
        (StoredToken(principal(expires_at=NOW), None), "expired"),
    ],
)
def test_any_other_token_is_told_why_not(stored: StoredToken | None, said: str) -> None:
    with pytest.raises(Unauthenticated, match=said):
        admit(stored, NOW)


def test_an_agent_reports_and_does_not_operate() -> None:
    agent = principal(Role.AGENT)
    assert agent.require(Permission.REPORT) == "tenant"
    with pytest.raises(Forbidden, match="may not operate"):
        agent.require(Permission.OPERATE)


@pytest.mark.parametrize("header", [None, "", "Basic x", "Bearer", "Bearer  "])
def test_a_header_without_a_bearer_token_is_refused(header: str | None) -> None:
    with pytest.raises(Unauthenticated):
        bearer(header)


def test_the_scheme_is_read_in_any_case() -> None:
    assert bearer(" bearer  abc ") == "abc"
