"""While the database is away, requests say so and may be repeated."""

from typing import Any

import asyncpg
import pytest

from db.database import Database, Reader
from tests.support.server import running_server


async def test_a_request_says_that_the_database_is_away(database_url: str) -> None:
    database = await Database.connect(database_url)
    async with running_server(database, reconcile=False) as server:
        await database.close()
        answer = await server.operator.http.post(
            "/graphql",
            json={"query": "{ viewer { role } }"},
            headers={"Authorization": f"Bearer {server.operator.token}"},
        )
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert answer.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
        assert (await server.operator.http.get("/readyz")).status_code == 503
        assert (await server.operator.http.get("/healthz")).status_code == 200


async def test_a_field_says_that_its_statement_was_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def given_up(*_: Any, **__: Any) -> None:  # noqa: ANN401 - whatever is read
        raise asyncpg.QueryCanceledError("canceling statement due to statement timeout")

    async with running_server(database, reconcile=False) as server:
        monkeypatch.setattr(Reader, "texts", given_up)
        answer = await server.operator.send("{ nodes { totalCount } }")
    assert answer["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
    assert "statement timeout" not in answer["errors"][0]["message"]
