"""Limits of operations: measured once per fragment, whatever the fragments do to each other."""

import asyncio
import time

import pytest
from graphql import get_introspection_query, parse, validate
from graphql.validation import specified_rules

from schema.graph import build
from schema.limits import ALIASES_MAX, COUNTED_MAX, DEPTH_MAX, FIELDS_MAX, Cost, OperationLimits, operation_costs

SCHEMA = build()
# Milliseconds when each fragment is read once; hours and more when every spread is walked.
VALIDATION_SECONDS_MAX = 5.0


def _cost(document: str) -> Cost:
    ((_, cost),) = operation_costs(parse(document))
    return cost


def _messages(document: str) -> list[str]:
    return [error.message for error in validate(SCHEMA._schema, parse(document), [*specified_rules, OperationLimits])]


def _limits(document: str) -> list[str]:
    return [error.message for error in validate(SCHEMA._schema, parse(document), [OperationLimits])]


def _levels(count: int, body: str, leaf: str = "__typename", root: str = "{ ...F0 }", kind: str = "Query") -> str:
    """Return a document whose fragment of each level is `body`, with the next level's name for NEXT."""
    levels = [f"fragment F{n} on {kind} {{ {body.replace('NEXT', f'F{n + 1}')} }}" for n in range(count)]
    return "\n".join([root, *levels, f"fragment F{count} on {kind} {{ {leaf} }}"])


def _nested(levels: int) -> str:
    return "{ " + "site { " * levels + "id" + " }" * levels + " }"


def test_a_field_that_selects_nothing_has_no_depth_of_its_own() -> None:
    assert _cost("{ feedCursor }") == Cost(depth=0, aliases=0, fields=1)
    assert _cost("{ a: nodes { nodes { id b: hostname } } }") == Cost(depth=2, aliases=2, fields=4)


def test_a_fragment_counts_wherever_it_is_spread_at_the_depth_where_it_stands() -> None:
    document = """
    { ...Roots nodes { nodes { ...Node ... on ComputeNode { ...Node } } } }
    fragment Roots on Query { x: feedCursor }
    fragment Node on ComputeNode { y: latestSnapshot { digest } }
    """
    assert _cost(document) == Cost(depth=3, aliases=3, fields=7)


def test_each_operation_is_measured_for_itself() -> None:
    document = parse("query A { ...F } query B { ...F ...F } fragment F on Query { a: feedCursor }")
    assert [cost.aliases for _, cost in operation_costs(document)] == [1, 2]


def test_fifteen_levels_are_allowed_and_sixteen_are_not() -> None:
    assert _limits(_nested(DEPTH_MAX)) == []
    assert _limits(_nested(DEPTH_MAX + 1)) == [
        "the operation has 16 levels of fields with its fragments spread out; at most 15 are allowed"
    ]


def test_depth_is_counted_through_fragments() -> None:
    document = _levels(DEPTH_MAX + 1, "site { ...NEXT }", "id", "query Deep { ...F0 }")
    assert "operation 'Deep' has 16 levels of fields" in _limits(document)[0]


def test_aliases_are_counted_as_often_as_they_are_spread() -> None:
    fragment = "fragment F on Query { " + " ".join(f"a{n}: feedCursor" for n in range(10)) + " }"
    assert _limits("{ " + "...F " * 5 + "}" + fragment) == []
    assert _limits("{ b: feedCursor " + "...F " * 5 + "}" + fragment) == [
        f"the operation has 51 aliases with its fragments spread out; at most {ALIASES_MAX} are allowed"
    ]


def test_fields_are_counted_as_often_as_they_are_spread() -> None:
    document = _levels(13, "...NEXT ...NEXT")
    assert _cost(document).fields == 2**13
    assert _limits(document) == []
    assert _limits(_levels(14, "...NEXT ...NEXT")) == [
        f"the operation has 16384 fields with its fragments spread out; at most {FIELDS_MAX} are allowed"
    ]


def test_counting_stops_and_says_so() -> None:
    document = _levels(60, "...NEXT ...NEXT")
    assert _cost(document).fields == COUNTED_MAX
    assert "has 1000000000 or more fields" in _limits(document)[0]


@pytest.mark.parametrize("levels", [22, 60])
@pytest.mark.parametrize(
    ("body", "leaf", "root", "kind"),
    [
        ("...NEXT ...NEXT", "__typename", "{ ...F0 }", "Query"),
        ("a: feedCursor ...NEXT ...NEXT", "__typename", "{ ...F0 }", "Query"),
        ("... on Query { ...NEXT } ... on Query { ...NEXT }", "__typename", "{ ...F0 }", "Query"),
        ("a: nodes { totalCount } b: nodes { totalCount } ...NEXT ...NEXT", "__typename", "{ ...F0 }", "Query"),
        ("ofType { ...NEXT } ofType { ...NEXT }", "name", "{ __schema { types { ...F0 } } }", "__Type"),
    ],
)
def test_the_whole_validation_of_doubling_fragments_ends_soon(
    levels: int, body: str, leaf: str, root: str, kind: str
) -> None:
    started = time.perf_counter()
    messages = _messages(_levels(levels, body, leaf, root, kind))
    assert time.perf_counter() - started < VALIDATION_SECONDS_MAX
    assert any(f"at most {FIELDS_MAX} are allowed" in message for message in messages)


async def test_doubling_fragments_are_refused_with_a_code_and_block_nobody() -> None:
    async with asyncio.timeout(VALIDATION_SECONDS_MAX):
        result = await SCHEMA.execute(_levels(60, "...NEXT ...NEXT"))
    assert [(error.extensions or {})["code"] for error in result.errors or []] == ["INVALID_INPUT"]


def test_a_document_that_repeats_one_field_is_validated_soon() -> None:
    started = time.perf_counter()
    assert _messages("{ " + "nodes { totalCount } " * 1200 + "}") == ["Validation aborted."]
    assert time.perf_counter() - started < VALIDATION_SECONDS_MAX
    assert _messages("{ " + "nodes { totalCount } " * 50 + "}") == []


def test_circles_of_fragments_are_refused_and_cost_nothing() -> None:
    names = [f"F{n}" for n in range(25)]
    everyone = " ".join(f"...{name}" for name in names)
    document = "{ ...F0 } " + " ".join(f"fragment {name} on Query {{ {everyone} }}" for name in names)
    assert operation_costs(parse(document)) == []
    started = time.perf_counter()
    assert _messages(document)[0] == "Cannot spread fragment 'F0' within itself."
    assert time.perf_counter() - started < VALIDATION_SECONDS_MAX


def test_an_unknown_fragment_is_refused_by_its_name() -> None:
    assert _messages("{ feedCursor ...Nowhere }") == ["Unknown fragment 'Nowhere'."]


def test_the_standard_introspection_query_passes() -> None:
    query = get_introspection_query(
        specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
    )
    assert _messages(query) == []
    assert _cost(query).depth == 0


def test_introspection_that_multiplies_lists_is_refused() -> None:
    document = "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }"
    assert _messages(document) == ["Maximum introspection depth exceeded"]
