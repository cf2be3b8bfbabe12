"""Claiming atoms and a share of their host, and letting go of them (rule 14)."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Final

from db import bookings as store
from db import rooms
from db.bookings import AtomHeld, NewAllocation
from db.connections import Row
from db.database import Transaction
from db.declared.allocations import ALLOCATIONS
from db.declared.allocations import BY_ID as ALLOCATIONS_BY_ID
from db.declared.devices import BY_ID as DEVICES_BY_ID
from db.declared.devices import DEVICES
from db.declared.nodes import NodeQuery
from db.identifiers import new_id
from db.views import loading
from db.views.selection import Asked
from domain import selector
from domain.access import Permission
from domain.allocation import NoRoom, decide
from domain.allocation_request import AllocationRequest, check_request, differences
from domain.errors import Conflict, InvalidInput, NotFound
from domain.ids import AllocationId, DeviceId, NodeId, TenantId
from domain.jsonvalue import JsonValue
from domain.room import Span
from domain.texts import given_text
from resolvers.context import Context
from resolvers.reading import refuse_wide_filter

CANDIDATES_MAX: Final = 256
"""Nodes that are looked at for one request; the ones with the best prospects come first."""
_LOOKED_AT_ONCE: Final = 16
ATTEMPTS_MAX: Final = 8
"""Nodes that are tried, one after another, when others took what was free on them a moment before."""
SEARCHES_MAX: Final = 4
"""Times that nodes are looked for anew after that."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a request is placed, or would be: without an id nothing was written.

    `created` is False also for a shard that had asked for the same before.
    """

    node_id: NodeId
    device_ids: tuple[DeviceId, ...]
    power_w: float | None
    allocation_id: AllocationId | None
    created: bool


@dataclass(frozen=True, slots=True)
class Given:
    """A request with the nodes it may be placed on: one by its id, or any that fit the query."""

    request: AllocationRequest
    node_id: str | None = None
    query: NodeQuery | None = None
    what_if: bool = False

    @property
    def is_on_one_node(self) -> bool:
        """Whether the node is named, by its id or by its devices."""
        return self.node_id is not None or bool(self.request.device_ids)


async def allocate(context: Context, given: Given) -> Placement:
    """Claim what is asked for, whole or not at all; a shard that asks for the same again gets what it has.

    Raises InvalidInput, NotFound, or Conflict that says what is in the way. A what-if writes nothing.
    """
    tenant_id = context.require(Permission.OPERATE)
    check_request(given.request)
    given_text("nodeId", given.node_id)
    given = replace(given, request=replace(given.request, where=_where(given)))
    refused: list[NoRoom] = []
    for _ in range(SEARCHES_MAX):
        prospects = await _prospects(context, tenant_id, given)
        if isinstance(prospects, Placement):
            return prospects
        for node_id in prospects[:ATTEMPTS_MAX]:
            try:
                return await _place(context, tenant_id, given, node_id)
            except NoRoom as refusal:
                refused.append(refusal)
        if given.is_on_one_node:
            break
    raise refused[0]


async def release(context: Context, shard_id: str | None, replica_id: str | None) -> list[Row]:
    """End now what a shard or a whole replica holds; what it held stays as history. Ending it again ends nothing."""
    tenant_id = context.require(Permission.OPERATE)
    if (shard_id is None) == (replica_id is None):
        raise InvalidInput("shardId, replicaId: give exactly one of them")
    given_text("shardId", shard_id)
    given_text("replicaId", replica_id)
    async with context.transaction() as tx:
        ended = await store.end_allocations(tx, tenant_id, shard_id, replica_id)
    asked = Asked((ALLOCATIONS.where("id", ended),), ALLOCATIONS_BY_ID)
    return await loading.load_rows(context.reader, tenant_id, ALLOCATIONS, asked)


async def placed_devices(context: Context, placement: Placement) -> list[Row]:
    """Return the devices of a placement."""
    tenant_id = context.require(Permission.READ)
    asked = Asked((DEVICES.where("id", placement.device_ids),), DEVICES_BY_ID)
    return await loading.load_rows(context.reader, tenant_id, DEVICES, asked)


def _where(given: Given) -> dict[str, JsonValue]:
    query = given.query
    if query is None:
        return {"nodeId": given.node_id}
    if given.is_on_one_node:
        raise InvalidInput("filter: the node is named already, by nodeId or deviceIds; give one of them")
    refuse_wide_filter(*query.lists(), text=query.text)
    named = {name: value for name, value in asdict(query).items() if value and name != "selector"}
    # As the database gives it back.
    return {"filter": json.loads(json.dumps({**named, "selector": selector.text(query.selector)}))}


async def _prospects(context: Context, tenant_id: TenantId, given: Given) -> Placement | list[NodeId]:
    """Return what the shard has already, or the nodes to try."""
    async with context.transaction() as tx:
        held = await store.allocation_of_shard(tx, tenant_id, given.request.shard_id)
        if held is not None:
            return _again(held, given.request)
        if given.request.device_ids:
            return [await _node_of(tx, tenant_id, given)]
        if given.node_id is not None:
            return [NodeId(given.node_id)]
        return await _fitting(tx, tenant_id, given)


def _again(held: Row, asked: AllocationRequest) -> Placement:
    if names := differences(held.request, asked.document()):
        raise Conflict(
            f"shardId: {asked.shard_id!r} holds {held.id} by a request with another {', '.join(names)}; "
            "release it first"
        )
    ids = tuple(DeviceId(device_id) for device_id in held.device_ids)
    return Placement(NodeId(held.node_id), ids, held.power_w, AllocationId(held.id), created=False)


async def _node_of(tx: Transaction, tenant_id: TenantId, given: Given) -> NodeId:
    """Return the one node that has the named devices."""
    owners = await store.nodes_of_devices(tx, tenant_id, given.request.device_ids)
    for place, device_id in enumerate(given.request.device_ids):
        if device_id not in owners:
            raise NotFound(f"deviceIds.{place}: no device {device_id!r}")
    found = sorted({*owners.values(), *([NodeId(given.node_id)] if given.node_id is not None else [])})
    if len(found) > 1:
        raise InvalidInput(f"deviceIds: an allocation is on one node; these are of {', '.join(found)}")
    return found[0]


async def _fitting(tx: Transaction, tenant_id: TenantId, given: Given) -> list[NodeId]:
    """Return the nodes on which the request fits as things are now, the best first; raises NoRoom for none."""
    asked = given.request
    span = asked.span(await store.present_time(tx))
    where = given.query.where() if given.query is not None else ()
    wanted = rooms.Wanted(asked.facts, asked.count, span)
    node_ids = await rooms.candidates(tx, tenant_id, where, wanted, CANDIDATES_MAX)
    if not node_ids:
        raise NoRoom(
            f"count: no node that fits and takes new work has {asked.count} free {asked.facts.device_class} devices "
            "like that"
        )
    first_refusal: NoRoom | None = None
    for start in range(0, len(node_ids), _LOOKED_AT_ONCE):
        found: list[NodeId] = []
        for node_id, room in (await rooms.rooms_of(tx, tenant_id, node_ids[start : start + _LOOKED_AT_ONCE])).items():
            try:
                decide(room, asked, span)
            except NoRoom as refusal:
                first_refusal = first_refusal or refusal
            else:
                found.append(node_id)
        if found:
            return found
    why = first_refusal.message if first_refusal else ""
    raise NoRoom(f"none of the {len(node_ids)} nodes that come nearest has it all; the first: {why}")


async def _place(context: Context, tenant_id: TenantId, given: Given, node_id: NodeId) -> Placement:
    asked = given.request
    try:
        async with context.transaction() as tx:
            if not given.what_if:
                await store.lock_shard(tx, tenant_id, asked.shard_id)
                held = await store.allocation_of_shard(tx, tenant_id, asked.shard_id)
                if held is not None:
                    return _again(held, asked)
                await store.lock_node(tx, tenant_id, node_id)
            room = (await rooms.rooms_of(tx, tenant_id, [node_id])).get(node_id)
            if room is None:
                raise NotFound(f"nodeId: no node {node_id!r}")
            span = asked.span(await store.present_time(tx))
            chosen = decide(room, asked, span)
            if given.what_if:
                return Placement(node_id, chosen, asked.power_w, None, created=False)
            new = _new(tenant_id, node_id, asked, span, chosen)
            await store.add_allocation(tx, new)
    except AtomHeld as held_meanwhile:
        raise NoRoom(f"node {node_id}: one of {', '.join(chosen)} was taken a moment ago") from held_meanwhile
    return Placement(node_id, chosen, asked.power_w, new.id, created=True)


def _new(
    tenant_id: TenantId, node_id: NodeId, asked: AllocationRequest, span: Span, chosen: tuple[DeviceId, ...]
) -> NewAllocation:
    return NewAllocation(
        id=AllocationId(new_id("alloc")),
        tenant_id=tenant_id,
        node_id=node_id,
        shard_id=asked.shard_id,
        replica_id=asked.replica_id,
        reservation_id=asked.reservation_id,
        memory_gb=asked.memory_gb,
        cpu_cores=asked.cpu_cores,
        power_w=asked.power_w,
        span=span,
        device_ids=chosen,
        request=asked.document(),
    )
