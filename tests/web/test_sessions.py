"""What outlasts a request ends with its token."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from db.access import revoke_token
from db.database import Database
from domain.access import Principal
from tests.support.server import Client, RunningServer
from web.authentication import authenticate
from web.sessions import EXPIRED, REVOKED, Sessions

NOW = datetime(2026, 11, 1, tzinfo=UTC)


async def _principal(database: Database, client: Client) -> Principal:
    return await authenticate(database, f"Bearer {client.token}", NOW)


async def test_a_session_ends_once_when_its_token_expires(database: Database, server: RunningServer) -> None:
    clock = [NOW]
    sessions = Sessions(database, lambda: clock[0])
    principal = replace(await _principal(database, server.operator), expires_at=NOW + timedelta(seconds=5))
    ended: list[str] = []
    with sessions.open(principal, ended.append):
        await sessions.check()
        assert ended == []
        clock[0] += timedelta(seconds=5)
        await sessions.check()
        await sessions.check()
    assert ended == [EXPIRED]


async def test_a_revoked_token_ends_its_own_sessions_alone(database: Database, server: RunningServer) -> None:
    sessions = Sessions(database, lambda: NOW)
    principal = await _principal(database, server.operator)
    ended: list[tuple[str, str]] = []
    with (
        sessions.open(principal, lambda why: ended.append(("first", why))),
        sessions.open(principal, lambda why: ended.append(("second", why))),
        sessions.open(await _principal(database, server.agent), lambda why: ended.append(("another", why))),
    ):
        with sessions.open(principal, lambda why: ended.append(("closed before", why))):
            pass
        async with database.transaction() as tx:
            await revoke_token(tx, principal.tenant_id, principal.token_id)
        await sessions.check()
    assert sorted(ended) == [("first", REVOKED), ("second", REVOKED)]


async def test_nobody_is_sent_away_because_the_database_is_away(server: RunningServer, database_url: str) -> None:
    own = await Database.connect(database_url)
    principal = await _principal(own, server.operator)
    sessions = Sessions(own, lambda: NOW)
    await own.close()
    ended: list[str] = []
    with sessions.open(principal, ended.append):
        await sessions.check()
    assert ended == []
