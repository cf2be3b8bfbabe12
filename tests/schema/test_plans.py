"""Plans: made once for each operation and shape, whatever the values, and kept within bounds."""

from typing import Any

import pytest

from db.views import plan
from schema import plans
from schema.compiled import CompiledOperations, LeftToTheGraph
from schema.graph import build, core_schema
from schema.limits import CACHED_CHARACTERS_MAX
from schema.plans import Recent
from tests.support.server import RunningServer

NODES = """
query Nodes($first: Int, $after: Cursor, $filter: NodeFilter, $class: DeviceClass, $more: Boolean = true) {
  nodes(first: $first, after: $after, filter: $filter) {
    nodes { id devices(class: $class, first: $first) { nodes { id } } state @include(if: $more) }
  }
}
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was compiled in the course of a test."""
    found: list[object] = []
    make = plan.make_plan

    def noted(*args: Any) -> Any:  # noqa: ANN401 - as make_plan has it
        found.append(args[0])
        return make(*args)

    monkeypatch.setattr(plans, "make_plan", noted)
    return found


async def test_values_do_not_make_plans_and_shapes_do(server: RunningServer, made: list[object]) -> None:
    for first in (1, 7, 300):
        for states in (["READY"], ["READY", "CORDONED"]):
            await server.operator.data(NODES, first=first, filter={"state": states})
    assert len(made) == 1
    await server.operator.data(NODES, filter={"state": "READY"}, first=None)
    assert len(made) == 1
    await server.operator.data(NODES, first=1)
    assert len(made) == 2
    await server.operator.data(NODES, **{"class": "GPU"}, first=1)
    assert len(made) == 3
    await server.operator.data(NODES, first=1, more=False)
    assert len(made) == 4
    await server.operator.data(NODES, first=2, more=False)
    await server.operator.data(NODES, first=2, more=True)
    assert len(made) == 4


async def test_two_operations_of_a_document_that_share_a_fragment_have_plans_of_their_own(
    server: RunningServer, made: list[object]
) -> None:
    document = """
    fragment Shared on Query { nodes(first: 1) { totalCount } }
    query A { ...Shared nodes(first: 1) { nodes { id } } }
    query B { ...Shared }
    """
    for name, keys in (("A", ["totalCount", "nodes"]), ("B", ["totalCount"]), ("A", ["totalCount", "nodes"])):
        answer = await server.operator.http.post(
            "/graphql",
            json={"query": document, "operationName": name},
            headers={"Authorization": f"Bearer {server.operator.token}"},
        )
        assert list(answer.json()["data"]["nodes"]) == keys
    assert len(made) == 2


def test_what_was_used_last_is_kept() -> None:
    kept: Recent[int] = Recent(2)
    assert [kept.found_or(key, lambda key=key: int(key)) for key in "12"] == [1, 2]  # type: ignore[misc]
    kept.found_or("1", lambda: 0)
    kept.found_or("3", lambda: 3)
    assert list(kept) == ["1", "3"]


def test_a_long_text_is_not_kept() -> None:
    operations = CompiledOperations(core_schema(build()))
    short = "{ feedCursor }"
    assert operations.find(short, None) is operations.find(short, None)
    with pytest.raises(LeftToTheGraph):
        operations.find(short + "#" * CACHED_CHARACTERS_MAX, None)


async def test_a_long_text_is_executed(server: RunningServer) -> None:
    assert (await server.operator.data("{ nodes { totalCount } }" + "#" * CACHED_CHARACTERS_MAX))["nodes"]
