"""The whole schema: which fields are not compiled, and that each of the others reads the same both ways."""

import cProfile
from itertools import groupby

import pytest
from graphql import GraphQLField, GraphQLInterfaceType, GraphQLObjectType, get_named_type
from graphql.execution.collect_fields import collect_fields

from db.paging import Order
from db.views.json_text import NotCompilable
from db.views.plan import make_plan
from db.views.selection import Asked
from db.views.view import View
from schema.compiled import CompiledOperations
from schema.declared import is_connection, is_read, origin_of, view_of
from schema.graph import build, core_schema
from schema.selections import translate
from tests.support.both import OPERATOR, Both, Operation, Way, agree
from tests.support.not_compiled import NOT_COMPILED
from tests.support.schema_walk import Place, nested, walk
from tests.support.world import BROKEN

SCHEMA = core_schema(build())
OPERATIONS = CompiledOperations(SCHEMA)
PLACES = list(walk(SCHEMA))
COMPILED = [place for place in PLACES if place.kind != "Query" and str(place) not in NOT_COMPILED]


def reason(path: tuple[str, ...], inner: str) -> str | None:
    """Say why a selection is not compiled."""
    executor = OPERATIONS.find(nested(path, inner), None).executor
    name = path[0].partition("(")[0]
    assert SCHEMA.query_type is not None
    definition = SCHEMA.query_type.fields[name]
    grouped, _, _ = collect_fields(
        SCHEMA, executor.fragments, executor.variable_values, SCHEMA.query_type, executor.operation
    )
    made = translate(executor, definition.type, grouped[name], _view(definition, path))
    if made.opaque:
        return made.opaque[0].reason
    assert made.selection is not None
    try:
        make_plan(made.selection, [_asked(made.selection.view), *(each.asked(executor) for each in made.argued)])
    except NotCompilable as problem:
        return str(problem)
    return None


def _view(definition: GraphQLField, path: tuple[str, ...]) -> View:
    named = get_named_type(definition.type)
    if isinstance(named, GraphQLInterfaceType):
        named = SCHEMA.type_map[path[1].removeprefix("... on ")]
    elif isinstance(named, GraphQLObjectType) and is_connection(named):
        named = get_named_type(named.fields["nodes"].type)
    view = view_of(named)
    assert view is not None, f"{named} names no row class"
    return view


def _asked(view: View) -> Asked:
    return Asked() if view.key is None else Asked(order=view.feed or Order("key", (view.key,)), first=1)


def test_the_fields_that_are_not_compiled_are_the_ones_that_have_a_reason() -> None:
    found: dict[str, str] = {}
    for place in PLACES:
        if place.kind == "Query":
            why = None if is_read(place.field) else "a root field that is no read"
        else:
            why = reason(place.path, place.selection)
        if why is not None:
            found[str(place)] = why
    assert found == NOT_COMPILED, "an entry that no longer holds goes away; a new one needs a very good reason"


def test_the_walk_comes_by_every_type_that_names_a_row_or_a_document() -> None:
    named = {
        name
        for name, kind in SCHEMA.type_map.items()
        if isinstance(kind, GraphQLObjectType) and {"row", "document"} & set(dir(origin_of(kind)))
    }
    assert named <= {place.kind for place in PLACES}
    assert len(named) > 30


# graphql-core drops the siblings of a failed field before they started.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    "places", [pytest.param(list(of), id=kind) for kind, of in groupby(COMPILED, key=lambda place: place.kind)]
)
async def test_every_field_of_a_type_reads_the_same_both_ways(both: Both, places: list[Place]) -> None:
    whole = Operation(nested(places[0].path, " ".join(place.selection for place in places)))
    answers = await both.ask(whole, OPERATOR)
    agree(answers)
    assert all(compiled for _, compiled in answers.compiled[Way.GRAPH].reads)
    # One by one, because what is broken in one field leaves nothing of its siblings.
    for place in places:
        agree(await both.ask(Operation(nested(place.path, place.selection)), BROKEN, [Way.FRONT]))


def test_a_plan_costs_no_more_than_its_length_times_its_depth() -> None:
    few, many = (_calls(("devices", "nodes", *["parent"] * levels)) for levels in (6, 12))
    assert many < 4 * few


def _calls(path: tuple[str, ...]) -> int:
    """Return how many functions are called to make a plan: a number that no busy machine changes."""
    profile = cProfile.Profile()
    assert profile.runcall(reason, path, "id") is None
    return sum(entry.callcount for entry in profile.getstats())
