"""Reading the fleet: what may be asked, by whom, and of which rows; the reads themselves are made by who executes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from db.declared import devices as devices_declared
from db.declared import nodes as nodes_declared
from db.declared import places, snapshots
from db.declared.allocations import ALLOCATIONS
from db.declared.commands import COMMANDS
from db.declared.commands import NEWEST_FIRST as COMMANDS_NEWEST_FIRST
from db.declared.devices import DEVICES, DeviceQuery
from db.declared.nodes import NODES, NodeQuery
from db.declared.places import POOLS, SITES
from db.declared.remediation import NEWEST_FIRST as RUNS_NEWEST_FIRST
from db.declared.remediation import RUNS
from db.declared.snapshots import SNAPSHOTS
from db.declared.summary import SUMMARY
from db.events import feed_cursor
from db.paging import Order
from db.views.selection import Asked
from db.views.view import View, view_named
from domain import cursor
from domain.access import Permission, Principal
from domain.errors import InvalidInput, Unauthenticated
from domain.ids import has_prefix
from domain.texts import given_text, required_text, storable_time
from resolvers.connections import asked_page
from resolvers.context import Context
from resolvers.reads import One, Page, Related, Single, Summary

LIST_FILTER_MAX: Final = 1000


def nodes(context: Context, query: NodeQuery, order: Order, first: int | None, after: str | None) -> Page:
    """List the tenant's nodes."""
    context.require(Permission.READ)
    refuse_wide_filter(*query.lists(), text=query.text)
    return Page(NODES, asked_page("nodes", order, first, after, query.where()))


def devices(context: Context, query: DeviceQuery, first: int | None, after: str | None) -> Page:
    """List the tenant's devices."""
    context.require(Permission.READ)
    refuse_wide_filter(query.ids, query.node_ids, query.classes)
    return Page(DEVICES, asked_page("devices", devices_declared.BY_ID, first, after, query.where()))


def sites(context: Context, first: int | None, after: str | None) -> Page:
    """List the tenant's sites."""
    context.require(Permission.READ)
    return Page(SITES, asked_page("sites", places.SITES_BY_ID, first, after))


def pools(context: Context, first: int | None, after: str | None) -> Page:
    """List the tenant's pools."""
    context.require(Permission.READ)
    return Page(POOLS, asked_page("pools", places.POOLS_BY_ID, first, after))


def fleet_summary(context: Context, query: NodeQuery) -> Summary:
    """Sum up the tenant's nodes, or those that fit."""
    context.require(Permission.READ)
    refuse_wide_filter(*query.lists(), text=query.text)
    return Summary(SUMMARY, Asked(query.where()))


def node(context: Context, node_id: str) -> One:
    """Find a node of the tenant; reading it raises NotFound."""
    return _by_id(context, NODES, node_id, f"no node {node_id!r}")


def device(context: Context, device_id: str) -> One:
    """Find a device of the tenant; reading it raises NotFound."""
    return _by_id(context, DEVICES, device_id, f"no device {device_id!r}")


def any_object(context: Context, object_id: str) -> One:
    """Find whatever of the tenant has this id (Relay's `node`); reading it raises NotFound."""
    views: tuple[tuple[Any, View], ...] = (
        ("node", NODES),
        ("inv", SNAPSHOTS),
        ("site", SITES),
        ("pool", POOLS),
        ("alloc", ALLOCATIONS),
        ("cmd", COMMANDS),
        ("run", RUNS),
    )
    view = next((view for prefix, view in views if has_prefix(object_id, prefix)), DEVICES)
    return _by_id(context, view, object_id, f"no object {object_id!r}")


def snapshot(context: Context, snapshot_id: str) -> One:
    """Find a snapshot of the tenant; reading it raises NotFound."""
    return _by_id(context, SNAPSHOTS, snapshot_id, f"no snapshot {snapshot_id!r}")


def allocation(context: Context, allocation_id: str) -> One:
    """Find an allocation of the tenant; reading it raises NotFound."""
    return _by_id(context, ALLOCATIONS, allocation_id, f"no allocation {allocation_id!r}")


def command(context: Context, command_id: str) -> One:
    """Find a command of the tenant; reading it raises NotFound."""
    return _by_id(context, COMMANDS, command_id, f"no command {command_id!r}")


def site(context: Context, site_id: str) -> One:
    """Find a site of the tenant; reading it raises NotFound."""
    return _by_id(context, SITES, site_id, f"no site {site_id!r}")


def pool(context: Context, pool_id: str) -> One:
    """Find a pool of the tenant; reading it raises NotFound."""
    return _by_id(context, POOLS, pool_id, f"no pool {pool_id!r}")


def _by_id(context: Context, view: View, object_id: str, missing: str) -> One:
    context.require(Permission.READ)
    # No stored text holds U+0000, and PostgreSQL takes none: such an id is nobody's.
    asked_id = object_id.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return One(view, Asked((view.where("id", (asked_id,)),)), asked_id, missing)


def related(owner: Any, name: str, asked: Asked | None = None) -> Related:  # noqa: ANN401 - a row, or a view's place
    """Ask for what belongs to a row. While a selection is compiled, its view stands for the row."""
    if isinstance(owner, View):
        return Related(owner, name, asked or Asked())
    return Related(view_named(owner.typename), name, asked or Asked(), owner)


def conditions(owner: Any, status: str | None) -> Related:  # noqa: ANN401
    """Ask for a node's conditions, by type."""
    found = NODES.relations["conditions"].view
    return related(owner, "conditions", Asked((found.where("status", (status,)),) if status else ()))


def node_devices(owner: Any, device_class: str | None, first: int | None, after: str | None) -> Related:  # noqa: ANN401
    """Ask for a node's devices, of one class when given."""
    where = (DEVICES.where("device_class", (device_class,)),) if device_class else ()
    return related(owner, "devices", asked_page("devices", devices_declared.BY_ID, first, after, where))


def node_snapshots(owner: Any, first: int | None, after: str | None) -> Related:  # noqa: ANN401
    """Ask for a node's snapshots, newest first."""
    return related(owner, "snapshots", asked_page("snapshots", snapshots.NEWEST_FIRST, first, after))


def node_commands(owner: Any, states: Sequence[str], first: int | None, after: str | None) -> Related:  # noqa: ANN401
    """Ask for a node's commands, newest first, those in any of the states when given."""
    where = (COMMANDS.where("state", states),) if states else ()
    return related(owner, "commands", asked_page("commands", COMMANDS_NEWEST_FIRST, first, after, where))


def node_runs(owner: Any, first: int | None, after: str | None) -> Related:  # noqa: ANN401
    """Ask for a node's runs of remediation, newest first."""
    return related(owner, "remediation_runs", asked_page("remediation_runs", RUNS_NEWEST_FIRST, first, after))


def snapshot_at(owner: Any, time: datetime) -> Related:  # noqa: ANN401
    """Ask for the newest snapshot that a node had at that time."""
    return related(owner, "snapshot_at", Asked((SNAPSHOTS.where("time", storable_time("time", time)),)))


def nodes_in(owner: Any, first: int | None, after: str | None) -> Related:  # noqa: ANN401
    """Ask for the nodes of a site or a pool."""
    return related(owner, "nodes", asked_page("nodes", nodes_declared.BY_ID, first, after))


def here(context: Context) -> Single:
    """Ask for the feed cursor that this operation reads at."""
    context.require(Permission.READ)
    return Single(_here)


async def _here(context: Context) -> str:
    return cursor.encode_feed(await feed_cursor(context.reader))


def viewer(context: Context) -> Principal:
    """Return who asks."""
    context.require(Permission.READ)
    if context.principal is None:
        raise Unauthenticated("no token")
    return context.principal


def refuse_wide_filter(*lists: Sequence[str], text: str | None = None) -> None:
    """Raise InvalidInput for a filter beyond its bounds."""
    for values in lists:
        if len(values) > LIST_FILTER_MAX:
            raise InvalidInput(f"filter: {len(values)} values; at most {LIST_FILTER_MAX} are taken")
        for value in values:
            required_text("filter", value)
    given_text("filter.text", text or None)
