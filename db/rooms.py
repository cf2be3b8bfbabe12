"""Nodes as allocations see them: which may have enough, and all that decides it of many of them at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from db import bookings as store
from db.connections import Row
from db.database import Transaction
from db.declared.allocations import unended
from db.declared.capacity import TAKES_NEW_WORK
from db.declared.nodes import NODES, nodes
from db.device_health import health_of_nodes
from db.devices import device_of, devices_of_nodes
from db.tables import BookingRow, DeviceRow, NodeInventoryRow, SectionRow, table_of
from db.views.draft import Draft
from db.views.plan import Compiled, compile_statement
from db.views.selection import Asked, Shape
from db.views.view import Expression, Where
from domain.allocation_request import DeviceFacts
from domain.device_health import reasons_of
from domain.ids import AllocationId, DeviceId, NodeId, TenantId
from domain.room import Booking, HostClaim, Room, Span

_devices: Final = table_of(DeviceRow)
_bookings: Final = table_of(BookingRow)
_inventory: Final = table_of(NodeInventoryRow).alias("applied_set")
_sections: Final = table_of(SectionRow).alias("applied_section")
_MOMENT: Final = sa.DateTime(timezone=True)
_TEXT: Final = sa.Text()
_NUMBER: Final = sa.Integer()
_WANTED: Final[tuple[TypeEngine[Any], ...]] = (
    *(_TEXT, _TEXT, _TEXT, sa.Double(), _NUMBER),
    *(_MOMENT, _MOMENT, _NUMBER, _NUMBER),
)
_REASONS: Final[Expression] = NODES.expressions["unschedulable_reasons"]


def _reported(section: str, fact: str) -> Expression:
    """Return a number of the node's applied inventory; null where it is not known."""

    def constant(text: str) -> Expression:
        return sa.literal_column(f"'{text}'", sa.Text)

    sha256 = _inventory.c.applied.op("->>", return_type=sa.Text())(constant(section))
    value = _sections.c.document.op("->>", return_type=sa.Text())(constant(fact))
    return (
        sa.select(sa.cast(value, sa.BigInteger))
        .where(
            _inventory.c.node_id == nodes.c.id,
            _sections.c.node_id == nodes.c.id,
            _sections.c.name == constant(section),
            _sections.c.sha256 == sha256,
        )
        .correlate_except(_inventory, _sections)
        .scalar_subquery()
    )


_FACTS: Final = [
    ("id", nodes.c.id),
    ("reasons", _REASONS),
    ("memory_bytes", _reported("memory", "totalBytes")),
    ("cpu_cores", _reported("cpu", "cores")),
]


@lru_cache(8)
def _hosts(shape: Shape) -> Compiled:
    opened = Draft([shape.asked]).open(NODES, 0, [column for _, column in _FACTS])
    return compile_statement(opened.select(_FACTS))


@lru_cache(64)
def _candidates(shape: Shape) -> Compiled:
    draft = Draft([shape.asked])
    opened = draft.open(NODES, 0, [nodes.c.id, _REASONS, TAKES_NEW_WORK])
    device_class, model, product, vram, numa, start, end, count, most = (
        draft.bind(draft.end + place, type_) for place, type_ in enumerate(_WANTED)
    )
    atom, held = _devices.alias("atom"), _bookings.alias("held")
    in_the_way = (
        sa.select(held.c.id)
        .where(held.c.device_id == atom.c.id, unended(held.c.during))
        .where(held.c.during.op("&&")(sa.func.tstzrange(start, end)))
    )
    free = (
        sa.select(atom.c.node_id)
        .where(
            atom.c.tenant_id == draft.tenant,
            atom.c.device_class == device_class,
            atom.c.bookable,
            atom.c.healthy,
            sa.or_(model.is_(None), atom.c.gpu_model == model),
            sa.or_(product.is_(None), atom.c.gpu_product == product),
            sa.or_(vram.is_(None), atom.c.vram_gib >= vram),
            sa.or_(numa.is_(None), atom.c.numa_node == numa),
            sa.not_(in_the_way.exists()),
        )
        .subquery("free")
    )
    columns = [("id", nodes.c.id), ("open", TAKES_NEW_WORK), ("reasons", sa.func.cardinality(_REASONS))]
    found = opened.select(columns).subquery("found")
    number = sa.func.count(free.c.node_id)
    fitting = (
        sa.select(found.c.id)
        .select_from(found.outerjoin(free, free.c.node_id == found.c.id))
        .where(found.c.open)
        .group_by(found.c.id, found.c.reasons)
        .having(number >= count)
    )
    return compile_statement(fitting.order_by(found.c.reasons, number, found.c.id).limit(most))


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many devices of which kind, for which time."""

    facts: DeviceFacts
    count: int
    span: Span


async def candidates(
    tx: Transaction, tenant_id: TenantId, where: tuple[Where, ...], wanted: Wanted, most: int
) -> list[NodeId]:
    """Return nodes that fit, take new work and may have as many such atoms free: those that have fewest first.

    Nodes that nothing at all is said against come before the others. What is decided of a node is decided elsewhere.
    """
    asked = Asked(where)
    compiled = _candidates(asked.shape)
    facts, span = wanted.facts, wanted.span
    like = [facts.device_class.value, facts.gpu_model, facts.gpu_product, facts.vram_gib_min, facts.numa_node]
    values = [tenant_id, *asked.values(), *like, span.start, span.end, wanted.count, most]
    rows = await tx.fetch(compiled.text, *compiled.arguments(values))
    return [NodeId(row.id) for row in rows]


async def rooms_of(tx: Transaction, tenant_id: TenantId, node_ids: Sequence[NodeId]) -> dict[NodeId, Room]:
    """Return what these nodes of the tenant have to give, in their order."""
    asked = Asked((NODES.where("id", node_ids),))
    compiled = _hosts(asked.shape)
    known = {row.id: row for row in await tx.fetch(compiled.text, *compiled.arguments([tenant_id, *asked.values()]))}
    hosts = [known[node_id] for node_id in node_ids if node_id in known]
    found = [NodeId(host.id) for host in hosts]
    devices = _by_node(await devices_of_nodes(tx, found))
    bookings = _by_node(await store.bookings_of_nodes(tx, found))
    claims = _by_node(await store.claims_on_nodes(tx, found))
    faults = await health_of_nodes(tx, found)
    return {
        NodeId(host.id): Room(
            node_id=NodeId(host.id),
            unschedulable_reasons=tuple(host.reasons),
            memory_bytes=host.memory_bytes,
            cpu_cores=host.cpu_cores,
            devices={DeviceId(row.id): device_of(row) for row in devices.get(host.id, ())},
            bookings=tuple(
                Booking(DeviceId(row.device_id), AllocationId(row.allocation_id), Span(row.starts, row.ends))
                for row in bookings.get(host.id, ())
            ),
            claims=tuple(
                HostClaim(Span(row.starts, row.ends), row.memory_gb, row.cpu_cores) for row in claims.get(host.id, ())
            ),
            faults=reasons_of(faults[host.id]),
        )
        for host in hosts
    }


def _by_node(rows: Iterable[Row]) -> dict[str, list[Row]]:
    ordered = sorted(rows, key=lambda row: str(row.node_id))
    return {node_id: list(of_node) for node_id, of_node in groupby(ordered, key=lambda row: str(row.node_id))}
