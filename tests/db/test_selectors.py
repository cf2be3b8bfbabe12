"""Selectors in SQL: they mean what `matches` means, their text depends on the operators, and the index serves them."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.database import Database, Transaction, compiled
from db.selectors import clause, types, values
from db.tables.columns import JSONB
from domain.selector import Requirement, matches, parse
from tests.support.selectors import NOT_NUMBERS, VALUES, requirements

HOSTILE = ["'", '"', "\\", '"}', '$."a"', "$1", ":a", "%(a)s", "%", "?", "a", "a'--", "é", "\N{ROCKET}", "\n", "{}"]
KEYS = st.sampled_from([*HOSTILE, "gpu.model"])
ODD_VALUES = VALUES | st.sampled_from([*HOSTILE, *NOT_NUMBERS])
LABELS = st.dictionaries(KEYS, ODD_VALUES, max_size=6)
SELECTORS = requirements(KEYS, ODD_VALUES)
COLUMN = sa.column("labels", JSONB)


def conditions(labels: sa.ColumnElement[Any], selector: Sequence[Requirement]) -> list[sa.ColumnElement[bool]]:
    """Return a condition for each requirement, with its values."""
    return [clause(labels, each.operator, *map(sa.literal, values(each), types(each.operator))) for each in selector]


async def answers(
    database: Database, maps: Sequence[dict[str, str]], selector: Sequence[Requirement]
) -> list[tuple[bool, ...]]:
    """Return what PostgreSQL says of each labels, requirement by requirement."""
    given_maps = sa.func.unnest(sa.literal(maps, sa.ARRAY(JSONB)))
    rows = given_maps.table_valued(COLUMN, with_ordinality="place").render_derived()
    statement = sa.select(rows.c.place, *conditions(rows.c.labels, selector)).order_by(rows.c.place)
    async with database.session() as session:
        return [tuple(row)[1:] for row in await session.fetch(statement)]


# The database is only read, so examples may share it.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(maps=st.lists(LABELS, min_size=1, max_size=8), selector=SELECTORS)
async def test_sql_agrees_with_the_meaning(
    database: Database, maps: list[dict[str, str]], selector: tuple[Requirement, ...]
) -> None:
    meant = [tuple(matches((each,), labels) for each in selector) for labels in maps]
    assert await answers(database, maps, selector) == meant


async def test_what_is_no_number_meets_no_comparison_and_fails_none(database: Database) -> None:
    maps: list[dict[str, str]] = [{}, *({"a": value} for value in NOT_NUMBERS)]
    said = await answers(database, maps, parse("a>0,a<0,a>=0,a<=0"))
    assert said == [(False, False, False, False)] * len(maps)


@given(SELECTORS, SELECTORS)
def test_the_text_is_the_same_exactly_when_the_shape_is(
    one: tuple[Requirement, ...], other: tuple[Requirement, ...]
) -> None:
    texts = [compiled(sa.select(*conditions(COLUMN, each)), ())[0] for each in (one, other)]
    assert (texts[0] == texts[1]) is ([each.operator for each in one] == [each.operator for each in other])


@given(requirements(st.just("Key"), st.sampled_from(["Value1", "Value2"])))
def test_keys_and_values_are_bound_and_never_written(selector: tuple[Requirement, ...]) -> None:
    written, _ = compiled(sa.select(*conditions(COLUMN, selector)), ())
    assert "Key" not in written
    assert "Value" not in written


FLEET = 10_000
LABELS_OF = """
jsonb_build_object(
    'gpu.model', (array['H100', 'A100', 'B200', 'L40S'])[1 + number % 4], 'rack', 'r' || number % 500,
    'zone', 'z' || number % 50, 'numa.nodes', (1 + number % 8)::text, 'kvm.available', 'true'
) || case when number % 1000 = 0 then '{"spot": "1"}'::jsonb else '{}' end
"""
STORE_FLEET = f"""
insert into nodes (id, tenant_id, identity_key, inventory_labels)
select 'node_' || number, 'tenant', number::text, {LABELS_OF} from generate_series(1, $1) as number
"""  # noqa: S608 - constants


async def store_fleet(database: Database) -> None:
    async with database.session() as session:
        await session.execute("insert into tenants (id, name) values ('tenant', 'tenant')")
        await session.execute(STORE_FLEET, FLEET)
        await session.execute("vacuum analyze nodes")


async def index_keys(session: Transaction) -> None:
    """Give the labels' index the other operator class, whose entries are keys and values apart."""
    await session.execute("drop index nodes_labels_idx")
    await session.execute("create index nodes_labels_idx on nodes using gin (labels jsonb_ops)")


async def rows_from_index(session: Transaction, selector: str) -> int | None:
    """Return how many rows the labels' index gives for the selector, or None when the plan does without it."""
    where = sa.and_(sa.column("tenant_id") == "tenant", *conditions(COLUMN, parse(selector)))
    written, values = compiled(sa.select(sa.column("id")).select_from(sa.table("nodes")).where(where), ())
    explained = await session.value(f"explain (analyze, format json) {written}", *values)
    return _index_rows(orjson.loads(explained)[0]["Plan"])


def _index_rows(plan: dict[str, Any]) -> int | None:
    if plan["Node Type"] == "Bitmap Index Scan" and plan["Index Name"] == "nodes_labels_idx":
        return int(plan["Actual Rows"])
    found = [rows for child in plan.get("Plans", ()) if (rows := _index_rows(child)) is not None]
    return sum(found) if found else None


# A plan may use an index and yet read all of it, so what counts is how many rows the index gives.
@pytest.mark.parametrize("keys", [False, True], ids=["as migrated", "with keys"])
async def test_the_index_finds_the_nodes_with_a_value(owner: Database, *, keys: bool) -> None:
    await store_fleet(owner)
    async with owner.session() as session:
        if keys:
            await index_keys(session)
        assert await rows_from_index(session, "rack=r7") == 20
        assert await rows_from_index(session, "rack in (r7,r8,r9)") == 60
        assert await rows_from_index(session, "gpu.model=L40S,zone=z7") == 100
        assert await rows_from_index(session, "zone=z7,kvm.available,!spot,numa.nodes>=4,rack notin (r7)") == 200


async def test_an_index_with_keys_also_finds_the_nodes_with_a_key(owner: Database) -> None:
    await store_fleet(owner)
    async with owner.session() as session:
        await index_keys(session)
        assert await rows_from_index(session, "spot") == 10
        assert await rows_from_index(session, "spot>0") == 10
        assert await rows_from_index(session, "zone=z0,spot") == 10
