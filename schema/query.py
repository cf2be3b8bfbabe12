"""The root of queries."""

from datetime import datetime
from typing import Annotated, cast

import strawberry

from resolvers import events as event_cases
from resolvers import fleet_diff as diffs
from resolvers import gpu_names, inventories, reading
from resolvers import xid_catalog as xids
from schema.arguments import After, First, Id
from schema.command import Command
from schema.compute_node import ComputeNode, NodeFilter, NodeOrder, node_order, node_query
from schema.connections import Connection
from schema.device import Device, DeviceFilter, device_query
from schema.event import Event, EventFilter, event_query
from schema.fleet_diff import FleetDiff
from schema.gpu_names import GpuModelTable, GpuName
from schema.objects import Info, NodeInterface
from schema.scalars import Cursor
from schema.site import Pool, Site
from schema.snapshot import InventoryDiff, Snapshot, SnapshotRef, chosen
from schema.summary import FleetSummary
from schema.xid_catalog import XidRule


@strawberry.type(description="Who asks.")
class Viewer:
    """A token's principal."""

    tenant_id: strawberry.ID = strawberry.field(description="The tenant whose records are seen.")
    name: str = strawberry.field(description="Name of the token.")
    role: str = strawberry.field(description="operator or agent.")
    permissions: list[str] = strawberry.field(description="What the token may do.")


@strawberry.type(description="What can be asked. Every field sees the token's tenant only.")
class Query:
    """Root fields; each asks for permission first."""

    @strawberry.field(description="Whatever has this id (Relay).")
    def node(self, info: Info, id: Id) -> NodeInterface | None:  # noqa: A002 - Relay's name
        """Find an object of any kind."""
        return cast("NodeInterface", reading.any_object(info.context, id))

    @strawberry.field(description="A machine by its id.")
    def compute_node(self, info: Info, id: Id) -> ComputeNode | None:  # noqa: A002
        """Find a node."""
        return cast("ComputeNode", reading.node(info.context, id))

    @strawberry.field(description="The machines of the fleet.")
    def nodes(
        self,
        info: Info,
        filter: Annotated[NodeFilter | None, strawberry.argument(description="Which nodes.")] = None,  # noqa: A002
        order_by: Annotated[
            NodeOrder | None, strawberry.argument(description="How they are sorted; by default by id.")
        ] = None,
        first: First = 50,
        after: After = None,
    ) -> Connection[ComputeNode]:
        """Page the nodes."""
        found = reading.nodes(info.context, node_query(filter), node_order(order_by), first, after)
        return cast("Connection[ComputeNode]", found)

    @strawberry.field(description="The fleet in numbers, or those of its nodes that fit.")
    def fleet_summary(
        self,
        info: Info,
        filter: Annotated[NodeFilter | None, strawberry.argument(description="Which nodes.")] = None,  # noqa: A002
    ) -> FleetSummary:
        """Sum the nodes up."""
        return cast("FleetSummary", reading.fleet_summary(info.context, node_query(filter)))

    @strawberry.field(description="A device by its id.")
    def device(self, info: Info, id: Id) -> Device | None:  # noqa: A002
        """Find a device."""
        return cast("Device", reading.device(info.context, id))

    @strawberry.field(description="The devices of the fleet.")
    def devices(
        self,
        info: Info,
        filter: Annotated[DeviceFilter | None, strawberry.argument(description="Which devices.")] = None,  # noqa: A002
        first: First = 50,
        after: After = None,
    ) -> Connection[Device]:
        """Page the devices."""
        return cast("Connection[Device]", reading.devices(info.context, device_query(filter), first, after))

    @strawberry.field(description="A snapshot by its id; or a node's, by digest or the latest.")
    def snapshot(
        self,
        info: Info,
        id: Annotated[strawberry.ID | None, strawberry.argument(description="The snapshot's id.")] = None,  # noqa: A002
        node_id: Annotated[strawberry.ID | None, strawberry.argument(description="The node it is of.")] = None,
        digest: Annotated[str | None, strawberry.argument(description="Its digest.")] = None,
    ) -> Snapshot | None:
        """Find a snapshot."""
        return cast("Snapshot", inventories.snapshot(info.context, id, node_id, digest))

    @strawberry.field(description="What changed between two snapshots of a node: by default the latest two.")
    async def inventory_diff(
        self,
        info: Info,
        node_id: Annotated[strawberry.ID, strawberry.argument(description="The node.")],
        from_: Annotated[
            SnapshotRef | None,
            strawberry.argument(name="from", description="The older; by default the one before the newer."),
        ] = None,
        to: Annotated[SnapshotRef | None, strawberry.argument(description="The newer; by default the latest.")] = None,
    ) -> InventoryDiff:
        """Compare two snapshots."""
        found = await inventories.inventory_diff(info.context, node_id, chosen(from_), chosen(to))
        return cast("InventoryDiff", found)

    @strawberry.field(description="What changed between two times, of the nodes that reported something in between.")
    async def fleet_diff(  # noqa: PLR0913, PLR0917 - the contract's arguments
        self,
        info: Info,
        from_: Annotated[datetime, strawberry.argument(name="from", description="The earlier time, with its zone.")],
        to: Annotated[datetime, strawberry.argument(description="The later time, with its zone.")],
        filter: Annotated[NodeFilter | None, strawberry.argument(description="Which nodes.")] = None,  # noqa: A002
        first: First = 50,
        after: After = None,
    ) -> Connection[FleetDiff]:
        """Compare a fleet with itself."""
        found = await diffs.fleet_diff(info.context, node_query(filter), from_, to, first=first, after=after)
        return cast("Connection[FleetDiff]", found)

    @strawberry.field(description="A command of a node by its id.")
    def command(self, info: Info, id: Id) -> Command | None:  # noqa: A002
        """Find a command."""
        return cast("Command", reading.command(info.context, id))

    @strawberry.field(description="The sites.")
    def sites(self, info: Info, first: First = 50, after: After = None) -> Connection[Site]:
        """Page the sites."""
        return cast("Connection[Site]", reading.sites(info.context, first, after))

    @strawberry.field(description="The pools.")
    def pools(self, info: Info, first: First = 50, after: After = None) -> Connection[Pool]:
        """Page the pools."""
        return cast("Connection[Pool]", reading.pools(info.context, first, after))

    @strawberry.field(description="The event log, oldest first.")
    def events(
        self,
        info: Info,
        filter: Annotated[EventFilter | None, strawberry.argument(description="Which events.")] = None,  # noqa: A002
        after: Annotated[
            Cursor | None, strawberry.argument(description="A feed cursor; without one the log's start.")
        ] = None,
        first: First = 100,
    ) -> Connection[Event]:
        """Page the log."""
        return cast("Connection[Event]", event_cases.events(info.context, event_query(filter), first, after))

    @strawberry.field(description="What a GPU is, by its name and memory as NVML reports them.")
    def normalize_gpu_product(
        self,
        info: Info,
        name: Annotated[str, strawberry.argument(description="Such as `NVIDIA H100 80GB HBM3`.")],
        vram_mib: Annotated[
            int | None,
            strawberry.argument(
                name="vramMiB", description="Memory in MiB: it decides where several products share a name."
            ),
        ] = None,
    ) -> GpuName:
        """Name a GPU."""
        return cast("GpuName", gpu_names.gpu_name(info.context, name, vram_mib))

    @strawberry.field(description="The table by which GPUs are named.")
    def gpu_models(self, info: Info) -> GpuModelTable:
        """Show the table."""
        return cast("GpuModelTable", gpu_names.gpu_model_table(info.context))

    @strawberry.field(description="The rules by which faults of the kernel log are judged, by code.")
    def xid_catalog(
        self,
        info: Info,
        code: Annotated[
            int | None, strawberry.argument(description="One code; without it all. A code without a rule has none.")
        ] = None,
    ) -> list[XidRule]:
        """Show the rules."""
        return cast("list[XidRule]", xids.xid_catalog(info.context, code))

    @strawberry.field(description="The place in the feed that this request reads at: subscribe with it as `after`.")
    def feed_cursor(self, info: Info) -> Cursor:
        """Ask for the cursor of the operation's snapshot."""
        return cast("Cursor", reading.here(info.context))

    @strawberry.field(description="Who asks.")
    def viewer(self, info: Info) -> Viewer:
        """Describe the principal."""
        principal = reading.viewer(info.context)
        return Viewer(
            tenant_id=strawberry.ID(principal.tenant_id),
            name=principal.name,
            role=principal.role.value,
            permissions=sorted(permission.value for permission in principal.permissions),
        )
