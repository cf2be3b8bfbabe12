"""Loading rows for the executor; statements are compiled once for each shape of what is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from db.connections import Row
from db.database import Reader
from db.views import rows
from db.views.plan import Compiled, compile_statement
from db.views.selection import Asked, Shape
from db.views.view import View
from domain.ids import TenantId

_STATEMENTS_MAX: Final = 512


@lru_cache(_STATEMENTS_MAX)
def _rows(view: View, shape: Shape, *, paged: bool) -> Compiled:
    return compile_statement(rows.page_rows(view, shape.asked) if paged else rows.row_rows(view, shape.asked))


@lru_cache(_STATEMENTS_MAX)
def _count(view: View, shape: Shape) -> Compiled:
    return compile_statement(rows.count_rows(view, shape.asked))


@lru_cache(_STATEMENTS_MAX)
def _related(parent: View, name: str, shape: Shape, *, counts: bool) -> Compiled:
    relation = parent.relations[name]
    build = rows.related_counts if counts else rows.related_rows
    return compile_statement(build(parent, relation, shape.asked))


async def load_rows(reader: Reader, tenant_id: TenantId, view: View, asked: Asked) -> list[Row]:
    """Load the rows that fit, in their order; of a page one more than asked when another page follows."""
    compiled = _rows(view, asked.shape, paged=asked.first is not None)
    return await _fetch(reader, compiled, [tenant_id, *asked.values()])


async def count_rows(reader: Reader, tenant_id: TenantId, view: View, asked: Asked) -> int:
    """Count the whole list that a page is of."""
    found = await _fetch(reader, _count(view, asked.shape), [tenant_id, *asked.values()])
    return int(found[0][0])


@dataclass(frozen=True, slots=True)
class Belonging:
    """What belongs to rows of a view by one of its relations, of which some are asked."""

    view: View
    name: str
    asked: Asked


async def load_related(reader: Reader, tenant_id: TenantId, what: Belonging, keys: Sequence[Any]) -> list[Row]:
    """Load what belongs to many rows; `of_parent` says whose each is."""
    asked = what.asked
    compiled = _related(what.view, what.name, asked.shape, counts=False)
    return await _fetch(reader, compiled, [tenant_id, *asked.values(), list(keys)])


async def count_related(reader: Reader, tenant_id: TenantId, what: Belonging, keys: Sequence[Any]) -> dict[Any, int]:
    """Count what belongs to each of many rows."""
    asked = what.asked
    compiled = _related(what.view, what.name, asked.shape, counts=True)
    found = await _fetch(reader, compiled, [tenant_id, *asked.values(), list(keys)])
    return {row.of_parent: row["count"] for row in found}


@lru_cache(_STATEMENTS_MAX)
def _summary(view: View, name: str, shape: Shape) -> Compiled:
    return compile_statement(rows.summary_rows(view, name, shape.asked))


async def load_summary(reader: Reader, tenant_id: TenantId, what: Belonging) -> list[Row]:
    """Load one part of a summary."""
    compiled = _summary(what.view, what.name, what.asked.shape)
    return await _fetch(reader, compiled, [tenant_id, *what.asked.values()])


def key_name(view: View) -> str:
    """Return the name under which a loaded row carries its key."""
    return str(view.identity.name)


async def _fetch(reader: Reader, compiled: Compiled, values: list[Any]) -> list[Row]:
    return await reader.fetch(compiled.text, *compiled.arguments(values))
