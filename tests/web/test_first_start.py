"""The first tokens: which one signs in, what is said of it, and the local agent's file."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from db.access import add_token, list_tokens, revoke_token
from db.database import Database
from db.identifiers import new_id
from domain.access import Principal, Role, secret_hash
from domain.errors import Unauthenticated
from domain.ids import TokenId
from web.authentication import authenticate, issue_token
from web.first_start import (
    Given,
    GivenRefused,
    Known,
    Made,
    SignIn,
    default_tenant,
    first_operator_token,
    local_token,
)
from web.up import greet

NOW = datetime(2031, 5, 6, tzinfo=UTC)
ADDRESS = "http://127.0.0.1:8000"


async def start(database: Database, given: str | None) -> SignIn:
    return await first_operator_token(database, None if given is None else SecretStr(given), NOW)


async def role_of(database: Database, token: str) -> Role:
    return (await authenticate(database, f"Bearer {token}", NOW)).role


async def revoke_all(database: Database) -> None:
    tenant_id = await default_tenant(database)
    async with database.transaction() as tx:
        for row in await list_tokens(tx, tenant_id):
            await revoke_token(tx, tenant_id, TokenId(row.id))


@pytest.mark.parametrize("given", [None, "", " \t\n"])
async def test_without_a_token_or_with_a_blank_one_one_is_made_and_shown(
    database: Database, given: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    made = await start(database, given)
    assert isinstance(made, Made)
    assert await role_of(database, made.token) is Role.OPERATOR
    greet(ADDRESS, made)
    shown = capsys.readouterr().out
    assert f"{ADDRESS}/#token={made.token}" in shown
    assert "FLEETGRAPH_OPERATOR_TOKEN" not in shown
    assert await start(database, given) == Known()


async def test_a_given_token_signs_in_without_the_blanks_around_it_and_is_not_shown(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await start(database, "  made-up \n") == Given()
    assert await role_of(database, "made-up") is Role.OPERATOR
    assert await start(database, "made-up") == Given()
    greet(ADDRESS, Given())
    shown = capsys.readouterr().out
    assert "with the token of FLEETGRAPH_OPERATOR_TOKEN" in shown
    assert "made-up" not in shown


async def test_a_given_token_that_was_revoked_is_refused_in_one_line(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    await start(database, "made-up")
    await revoke_all(database)
    refused = await start(database, "made-up")
    assert refused == GivenRefused("this token was revoked")
    greet(ADDRESS, refused)
    line = next(line for line in capsys.readouterr().out.splitlines() if "Sign in" in line)
    assert "not with FLEETGRAPH_OPERATOR_TOKEN: this token was revoked; another: " in line
    with pytest.raises(Unauthenticated):
        await role_of(database, "made-up")


async def test_a_second_given_token_is_not_said_to_sign_in(database: Database) -> None:
    await start(database, "made-up")
    assert isinstance(await start(database, "another"), GivenRefused)
    with pytest.raises(Unauthenticated):
        await role_of(database, "another")


async def test_a_given_token_of_an_agent_is_not_an_operators(database: Database) -> None:
    tenant_id = await default_tenant(database)
    async with database.transaction() as tx:
        await issue_token(tx, tenant_id, Role.AGENT, "an agent", text="made-up")
    assert await start(database, "made-up") == GivenRefused("a token for agents may not operate")


async def test_local_agent_keeps_its_token_while_it_may_be_used(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "new" / "agent.token"
    await local_token(database, file, Role.AGENT, NOW)
    token = file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    assert await role_of(database, token) is Role.AGENT
    await local_token(database, file, Role.AGENT, NOW)
    assert file.read_text().strip() == token


async def test_local_agent_gets_a_new_token_for_a_revoked_one(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "agent.token"
    await local_token(database, file, Role.AGENT, NOW)
    await revoke_all(database)
    await local_token(database, file, Role.AGENT, NOW)
    assert await role_of(database, file.read_text().strip()) is Role.AGENT


async def test_local_agent_gets_a_new_token_for_an_expired_or_unknown_one(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "agent.token"
    tenant_id = await default_tenant(database)
    async with database.transaction() as tx:
        principal = Principal(TokenId(new_id("tok")), tenant_id, Role.AGENT, "an agent", NOW - timedelta(seconds=1))
        await add_token(tx, principal, secret_hash("expired"))
    for text in ("expired", "unknown", ""):
        file.write_text(text)
        await local_token(database, file, Role.AGENT, NOW)
        assert await role_of(database, file.read_text().strip()) is Role.AGENT
