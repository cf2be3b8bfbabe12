"""Hand-written operations, compiled and executed: the same answers, to the order of their keys."""

from collections.abc import Callable
from typing import Any

import pytest

from resolvers.context import Entrance
from tests.support.both import AGENT, OPERATOR, STRANGER, Both, Operation, Way, agree
from tests.support.corpus import EXECUTED, LEFT_TO_THE_GRAPH, NODE, REFUSED, VARIABLES, Case, cases
from tests.support.world import BROKEN

CASES = cases()
NAMES = {case.name for case in CASES}

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # graphql-core drops the siblings of a failed field before they started.
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_an_operation_is_answered_the_same_both_ways_and_compiled_unless_there_is_a_reason(
    both: Both, case: Case
) -> None:
    codes: set[str] = set()
    reads: list[tuple[str, bool]] = []
    by_front = True
    for number, operation in enumerate(case.operations):
        for principal in (OPERATOR, STRANGER, BROKEN, *([] if number else [AGENT])):
            answers = await both.ask(operation, principal)
            agree(answers)
            assert principal == BROKEN or "INTERNAL" not in answers.executed.codes, answers.shown()
            if principal == OPERATOR:
                codes |= answers.executed.codes
                reads += answers.compiled[Way.GRAPH].reads
                by_front = by_front and answers.compiled[Way.FRONT].entrances == (Entrance.FRONT,)
    assert codes == set(REFUSED.get(case.name, "").split())
    if case.name in EXECUTED:
        assert any(not compiled for _, compiled in reads), f"compiles now, so there is no reason: {reads}"
    else:
        assert all(compiled for _, compiled in reads), reads
        assert reads or case.name in REFUSED
    assert by_front is (case.name not in {**EXECUTED, **LEFT_TO_THE_GRAPH})


async def test_the_corpus_is_large_and_names_only_operations_that_it_has() -> None:
    assert len(NAMES) == len(CASES) >= 50
    assert {*VARIABLES, *REFUSED, *EXECUTED, *LEFT_TO_THE_GRAPH} <= NAMES


WALKS: list[tuple[str, Callable[[Any], Any]]] = [
    (f"query ($after: Cursor) {{ {field} {{ nodes {{ id }} edges {{ cursor }} {PAGE_INFO} totalCount }} }}", get)
    for PAGE_INFO in ("pageInfo { hasNextPage hasPreviousPage startCursor endCursor }",)
    for field, get in (
        ("nodes(first: 4, after: $after)", lambda data: data["nodes"]),
        ("nodes(first: 3, orderBy: HOSTNAME, after: $after)", lambda data: data["nodes"]),
        ('nodes(first: 1, filter: {text: "a"}, orderBy: HOSTNAME, after: $after)', lambda data: data["nodes"]),
        ("devices(first: 5, filter: {healthy: true}, after: $after)", lambda data: data["devices"]),
        ("sites(first: 1, after: $after)", lambda data: data["sites"]),
        ("pools(first: 3, after: $after)", lambda data: data["pools"]),
        ("events(first: 7, after: $after)", lambda data: data["events"]),
    )
]
NESTED = """
query ($after: Cursor, $node: ID!) {
  computeNode(id: $node) {
    %s { nodes { id } edges { cursor } pageInfo { hasNextPage hasPreviousPage endCursor } totalCount }
  }
}
"""
WALKS += [
    (NESTED % "devices(first: 3, after: $after)", lambda data: data["computeNode"]["devices"]),
    (NESTED % "devices(first: 1, class: DISK, after: $after)", lambda data: data["computeNode"]["devices"]),
    (NESTED % "snapshots(first: 2, after: $after)", lambda data: data["computeNode"]["snapshots"]),
]


@pytest.mark.parametrize(("query", "page"), WALKS)
async def test_a_list_is_walked_page_by_page_with_the_same_cursors(
    both: Both, query: str, page: Callable[[Any], Any]
) -> None:
    seen: list[str] = []
    variables: dict[str, Any] = {"node": NODE} if "$node" in query else {}
    while True:
        answers = await both.ask(Operation(query, variables), OPERATOR)
        agree(answers)
        assert answers.compiled[Way.FRONT].entrances == (Entrance.FRONT,)
        found = page(answers.executed.body["data"])
        seen += [row["id"] for row in found["nodes"]]
        if not found["pageInfo"]["hasNextPage"]:
            break
        variables["after"] = found["pageInfo"]["endCursor"]
    assert len(seen) == len(set(seen)) > 0
    if "events" not in query:  # whose total counts what follows the cursor
        assert len(seen) == found["totalCount"]
