"""What clients may ask of the state that they read, and how they are told that they ask it wrongly."""

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from domain.cursor import FeedCursor, encode_feed, encode_page
from tests.support.server import RunningServer
from tests.support.socket import open_socket

WRONG = [
    ("fleetgraph-consistency", "linearizable", "fleetgraph-consistency: 'linearizable' is neither"),
    ("fleetgraph-consistency", "", "fleetgraph-consistency: '' is neither"),
    ("fleetgraph-after", "", "fleetgraph-after: not a cursor"),
    ("fleetgraph-after", "nonsense", "fleetgraph-after: not a cursor"),
    ("fleetgraph-after", encode_page("nodes:id", ("a",)), "fleetgraph-after: not a feed cursor"),
    ("fleetgraph-after", encode_feed(FeedCursor(1, "1:2", 1)), "fleetgraph-after: not a cursor"),
]
RIGHT = [
    {},
    {"fleetgraph-consistency": "strong"},
    {"fleetgraph-consistency": "eventual", "fleetgraph-after": encode_feed(FeedCursor(10**6))},
    {"fleetgraph-after": encode_feed(FeedCursor(0, "10:10:", 1))},
]


async def _send(server: RunningServer, query: str, headers: dict[str, str]) -> httpx.Response:
    operator = server.operator
    return await operator.http.post(
        "/graphql", json={"query": query}, headers={"Authorization": f"Bearer {operator.token}", **headers}
    )


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
@pytest.mark.parametrize("query", ["{ nodes { totalCount } }", "{ viewer { role } }"], ids=["front", "graph"])
async def test_a_request_that_asks_it_wrongly_is_told_where(
    server: RunningServer, query: str, name: str, value: str, said: str
) -> None:
    answer = await _send(server, query, {name: value})
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["message"].startswith(said)
    assert error["extensions"] == {"code": "INVALID_INPUT", "requestId": answer.headers["X-Request-Id"]}


@pytest.mark.parametrize("headers", RIGHT)
async def test_a_server_without_a_replica_takes_what_is_asked_of_one(
    server: RunningServer, headers: dict[str, str]
) -> None:
    for query in ("{ nodes { totalCount } }", "{ viewer { role } }"):
        answer = await _send(server, query, headers)
        assert (answer.status_code, "errors" in answer.json()) == (200, False)


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
async def test_a_socket_that_asks_it_wrongly_is_closed_with_the_reason(
    served: tuple[RunningServer, str], name: str, value: str, said: str
) -> None:
    server, address = served
    with pytest.raises(ConnectionClosed) as closed:
        async with open_socket(address, server.operator.token, **{name: value}):
            pass
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4400
    assert closed.value.rcvd.reason.startswith(said)
