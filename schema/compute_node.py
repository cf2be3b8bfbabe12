"""The fleet's machine."""

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, cast

import strawberry

from db.declared import nodes as declared
from db.declared.labels import LabelRow
from db.declared.nodes import NodeQuery
from db.paging import Order
from db.tables import CertificateRow, ConditionRow, NodeInventoryRow, NodeRow
from domain.selector import parse
from resolvers import reading
from schema.acceptance import Acceptance
from schema.allocation import Allocation
from schema.arguments import After, First, listed
from schema.command import Command
from schema.connections import Connection
from schema.device import Device
from schema.enums import (
    CommandState,
    ConditionStatus,
    Connectivity,
    DeviceClass,
    InventoryState,
    LabelSource,
    NodeRole,
    NodeState,
    Power,
    ProvisionState,
    Trust,
)
from schema.fault import NodeFault
from schema.filters import flat
from schema.hardware import HardwareKey
from schema.node_spec import Unit
from schema.objects import NodeInterface, RowTyped
from schema.remediation import RemediationRun
from schema.site import Pool, Site
from schema.snapshot import Snapshot


@strawberry.type(description="A typed condition of a node.")
class Condition:
    """A row of node_conditions."""

    row: ClassVar = ConditionRow

    type: str = strawberry.field(description="Such as `InventoryDegraded`.")
    status: ConditionStatus = strawberry.field(description="Whether it holds.")
    reason: str | None = strawberry.field(description="Why, in one word.")
    message: str | None = strawberry.field(description="Why, for people.")
    since: datetime = strawberry.field(description="When the status last changed.")
    no_schedule: bool = strawberry.field(description="While it holds, nothing is scheduled on the node.")


@strawberry.type(description="A label that holds.")
class Label:
    """An entry of a node's labels."""

    row: ClassVar = LabelRow

    key: str = strawberry.field(description="Such as `gpu.model`.")
    value: str = strawberry.field(description="Its value.")
    source: LabelSource = strawberry.field(description="Whose word it is.")


@strawberry.type(description="Where a node's inventory stands.")
class InventoryStatus:
    """A row of node_inventory."""

    row: ClassVar = NodeInventoryRow

    state: InventoryState = strawberry.field(
        description="Pending, applied, advisory or failed; none before the first report."
    )
    reported_at: datetime | None = strawberry.field(description="When the newest report came.")
    reported_digest: str | None = strawberry.field(description="Digest of the newest report.")
    missing_sections: list[str] = strawberry.field(description="Sections reported by hash whose bytes have not come.")
    applied_at: datetime | None = strawberry.field(description="When a set was last applied.")
    applied_digest: str | None = strawberry.field(description="Digest last applied; `advisory:` marks a tenant's.")
    failed_at: datetime | None = strawberry.field(description="When applying failed.")
    error: str | None = strawberry.field(description="Why applying failed; the last good inventory stays.")


@strawberry.type(description="The certificate by which a node proves its identity: the newest it told of.")
class Certificate:
    """A row of node_certificates."""

    row: ClassVar = CertificateRow

    serial: str = strawberry.field(description="Its serial number, in lower-case hexadecimal.")
    not_before: datetime = strawberry.field(description="When it begins to hold.")
    not_after: datetime = strawberry.field(description="When it ends.")


@strawberry.type(description="A machine of the fleet.")
class ComputeNode(RowTyped, NodeInterface):
    """A row of nodes, with what follows from its liveness."""

    row: ClassVar = NodeRow

    identity_key: str = strawberry.field(description="Stable identity: never a host name.")
    hostname: str | None = strawberry.field(description="Host name; mutable.")
    display_name: str | None = strawberry.field(description="Name for people; mutable.")
    management_address: str | None = strawberry.field(description="Address of its management.")
    tenant_id: strawberry.ID = strawberry.field(description="Whose record it is.")
    provision_state: ProvisionState = strawberry.field(description="Where it is in its life.")
    maintenance: bool = strawberry.field(description="Taken out for maintenance.")
    maintenance_reason: str | None = strawberry.field(description="Why, as who put it into maintenance said.")
    maintenance_by: str | None = strawberry.field(description="Who put it into maintenance: the name of a token.")
    maintenance_since: datetime | None = strawberry.field(description="When it was put into maintenance.")
    cordoned: bool = strawberry.field(description="Excluded from new placement by an operator.")
    draining: bool = strawberry.field(description="Being emptied by an operator.")
    drained: bool = strawberry.field(description="Being emptied, and nothing is held of it now.")
    power: Power = strawberry.field(description="Whether it has power.")
    connectivity: Connectivity = strawberry.field(description="Whether its agent is heard.")
    role: NodeRole = strawberry.field(description="What it is for.")
    trust: Trust = strawberry.field(description="Whose word its reports are.")
    state: NodeState = strawberry.field(description="Its state for people.")
    schedulable: bool = strawberry.field(description="Work may be placed on it.")
    unschedulable_reasons: list[str] = strawberry.field(
        description="Why no work may be placed on it: `cordoned`, `connectivity=lost`, …, and the types of conditions."
    )
    no_schedule_reasons: list[str] = strawberry.field(description="Conditions that keep work away.")
    generation: int = strawberry.field(description="Generation of its desired state.")
    observed_generation: int = strawberry.field(description="Generation its agent has observed.")
    units: list[Unit] = strawberry.field(description="What is to run on it, by kind.")
    last_seen_at: datetime | None = strawberry.field(description="When it was last heard of, by the server's clock.")
    clock_skew_seconds: float | None = strawberry.field(
        description="By how much its clock was ahead of the server's when it last told the time; behind is negative."
    )
    agent_version: str | None = strawberry.field(description="Version of its agent.")
    protocol: str | None = strawberry.field(description="Protocol its agent speaks.")
    features: list[str] = strawberry.field(description="What its agent can do beyond the basics.")
    boot_id: str | None = strawberry.field(description="Its present boot.")
    fingerprint: str | None = strawberry.field(
        description="SHA-256 that changes with its driver, its kernel or its GPUs, and with nothing transient."
    )

    site: Site | None = strawberry.field(description="The site it is in.")
    pool: Pool | None = strawberry.field(description="The pool it is in.")
    certificate: Certificate | None = strawberry.field(
        description="Its identity certificate; null when it told of none."
    )
    labels: list[Label] = strawberry.field(description="Its labels that hold, by key.")
    latest_snapshot: Snapshot | None = strawberry.field(description="Its newest snapshot.")
    allocations: list[Allocation] = strawberry.field(description="What is held of it, now or later, by id.")
    faults: list[NodeFault] = strawberry.field(
        description="What its kernel log told of GPUs and switches, the newest first: of its present boot, and of "
        "earlier ones while events are kept."
    )
    inventory_status: InventoryStatus = strawberry.field(description="Where its inventory stands.")
    acceptance: Acceptance | None = strawberry.field(
        description="Its newest attempt at acceptance; null while nothing was ever asked of it."
    )

    @strawberry.field(description="What machine it is; null while nothing that identifies it is known.")
    def hardware_key(self) -> HardwareKey | None:
        """Return the key with its evidence."""
        row = cast("Any", self)
        if row.hardware_key is None:
            return None
        found = {"key": row.hardware_key, "trusted": row.hardware_key_trusted, "evidence": row.hardware_evidence}
        return cast("HardwareKey", found)

    @strawberry.field(description="Its conditions, by type.")
    def conditions(
        self,
        status: Annotated[
            ConditionStatus | None, strawberry.argument(description="Only those with this status.")
        ] = None,
    ) -> list[Condition]:
        """Ask for the conditions."""
        return cast("list[Condition]", reading.conditions(self, status.value if status else None))

    @strawberry.field(description="Its devices.")
    def devices(
        self,
        device_class: Annotated[
            DeviceClass | None, strawberry.argument(name="class", description="Only those of this class.")
        ] = None,
        first: First = 50,
        after: After = None,
    ) -> Connection[Device]:
        """Ask for a page of the devices."""
        kind = device_class.value if device_class else None
        return cast("Connection[Device]", reading.node_devices(self, kind, first, after))

    @strawberry.field(description="Its snapshots, newest first.")
    def snapshots(self, first: First = 20, after: After = None) -> Connection[Snapshot]:
        """Ask for a page of the history."""
        return cast("Connection[Snapshot]", reading.node_snapshots(self, first, after))

    @strawberry.field(description="What it was told to do, newest first.")
    def commands(
        self,
        state: Annotated[
            list[CommandState] | None, strawberry.argument(description="Only those in any of these states.")
        ] = None,
        first: First = 20,
        after: After = None,
    ) -> Connection[Command]:
        """Ask for a page of the commands."""
        states = listed("state", state)
        return cast("Connection[Command]", reading.node_commands(self, states, first, after))

    @strawberry.field(description="Its runs of remediation, newest first.")
    def remediation_runs(self, first: First = 20, after: After = None) -> Connection[RemediationRun]:
        """Ask for a page of the runs."""
        return cast("Connection[RemediationRun]", reading.node_runs(self, first, after))

    @strawberry.field(description="The snapshot it had at a time.")
    def snapshot_at(
        self, time: Annotated[datetime, strawberry.argument(description="The time, with its zone.")]
    ) -> Snapshot | None:
        """Ask for the snapshot as of a time."""
        return cast("Snapshot | None", reading.snapshot_at(self, time))


@flat
@strawberry.input(description="Which nodes; what is left out asks nothing, a list is satisfied by any of its members.")
class NodeFilter:
    """A filter of nodes."""

    id: list[strawberry.ID] | None = strawberry.field(default=None, description="Any of these ids.")
    tenant_id: list[strawberry.ID] | None = strawberry.field(default=None, description="Of any of these tenants.")
    site_id: list[strawberry.ID] | None = strawberry.field(default=None, description="In any of these sites.")
    pool_id: list[strawberry.ID] | None = strawberry.field(default=None, description="In any of these pools.")
    state: list[NodeState] | None = strawberry.field(default=None, description="In any of these states.")
    provision_state: list[ProvisionState] | None = strawberry.field(
        default=None, description="In any of these provision states."
    )
    text: str | None = strawberry.field(
        default=None, description="Part of the host name, the display name or the identity key, in any case."
    )
    image: list[str] | None = strawberry.field(
        default=None, description="With an image of any of these references or digests in its cache."
    )
    weights: str | None = strawberry.field(
        default=None,
        description="With model weights at this very path; a node that was not asked for its weights fits too.",
    )
    selector: str | None = strawberry.field(
        default=None,
        description="A label selector as Kubernetes writes it, with comparisons: "
        "`gpu.model=H100,numa.nodes>1,zone in (a,b),!spot`.",
    )


def node_query(given: NodeFilter | None) -> NodeQuery:
    """Return a filter as the use case takes it."""
    if given is None:
        return NodeQuery()
    return NodeQuery(
        ids=listed("filter.id", given.id),
        tenant_ids=listed("filter.tenantId", given.tenant_id),
        site_ids=listed("filter.siteId", given.site_id),
        pool_ids=listed("filter.poolId", given.pool_id),
        states=listed("filter.state", given.state),
        provision_states=listed("filter.provisionState", given.provision_state),
        text=given.text,
        images=listed("filter.image", given.image),
        weights=given.weights,
        selector=parse(given.selector) if given.selector else (),
    )


@strawberry.enum(description="How a list of nodes is sorted.")
class NodeOrder(Enum):
    """Sorts that a keyset index or a small sort can serve."""

    ID = "id"
    HOSTNAME = "hostname"


def node_order(given: NodeOrder | None) -> Order:
    """Return a sort as the use case takes it."""
    return declared.BY_HOSTNAME if given is NodeOrder.HOSTNAME else declared.BY_ID
