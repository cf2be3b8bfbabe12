"""The root of mutations."""

from datetime import datetime
from typing import Annotated, cast

import strawberry

from db.fleet import NewPool, NewSite
from db.nodes import Hello
from domain.certificate import Certificate
from domain.ids import SiteId
from domain.node import LEASE_SECONDS
from resolvers import allocations, fleet, identities, ingest, reading, statuses
from resolvers import labels as label_cases
from resolvers.ingest import GivenHash, GivenReport, GivenSection
from resolvers.labels import LabelsAtHello
from schema.allocating import AllocateInput, AllocateResult
from schema.allocation import Allocation
from schema.arguments import Id
from schema.command import CommandMutations
from schema.compute_node import ComputeNode
from schema.device_health import DeviceHealthMutations
from schema.enums import Trust
from schema.labels import DriverInput, LabelInput, drivers_given, labels_given
from schema.node_spec import UnitInput
from schema.objects import Info
from schema.operator_axes import AxisMutations
from schema.scalars import Base64, Cursor
from schema.site import Pool, PoolInput, PoolPatch, Site, SiteInput, policy_object
from schema.slots import SlotError, slot_error
from schema.status import StatusInput, StatusResult
from schema.stream_ticket import StreamTicketMutations


@strawberry.input(description="A section's hash.")
class SectionHashInput:
    """Name and hash."""

    name: str = strawberry.field(description="system, cpu, memory, gpus, nics, disks, os or images.")
    sha256: str = strawberry.field(description="SHA-256 of the section's bytes, in hexadecimal.")


@strawberry.input(description="How long the certificate holds by which a node proves its identity.")
class CertificateInput:
    """A certificate."""

    serial: str = strawberry.field(description="Its serial number, in lower-case hexadecimal.")
    not_before: datetime = strawberry.field(description="When it begins to hold.")
    not_after: datetime = strawberry.field(description="When it ends.")

    def given(self) -> Certificate:
        """Return the certificate as the use case takes it."""
        return Certificate(self.serial, self.not_before, self.not_after)


@strawberry.input(description="What an agent says when it starts.")
class HelloInput:
    """A hello."""

    identity_key: str = strawberry.field(description="Stable identity of the machine; never its host name.")
    hostname: str | None = strawberry.field(default=None, description="Host name.")
    display_name: str | None = strawberry.field(default=None, description="Name for people.")
    boot_id: str | None = strawberry.field(default=None, description="The present boot.")
    agent_version: str | None = strawberry.field(default=None, description="Version of the agent.")
    protocol: str | None = strawberry.field(default=None, description="Protocol that the agent speaks.")
    features: list[str] | None = strawberry.field(default=None, description="What the agent can do.")
    management_address: str | None = strawberry.field(default=None, description="Address of the management.")
    labels: list[LabelInput] | None = strawberry.field(
        default=None,
        description="All labels the agent is configured with; those it had before go. Left out: no change.",
    )
    drivers: list[DriverInput] | None = strawberry.field(
        default=None, description="All drivers the agent serves, as labels `bc.dev/driver.ID`. Left out: no change."
    )
    certificate: CertificateInput | None = strawberry.field(
        default=None, description="Its identity certificate; an older one than the server knows changes nothing."
    )
    hashes: list[SectionHashInput] | None = strawberry.field(
        default=None, description="Hashes of the sections: the same as a following recordInventoryHashes."
    )


@strawberry.type(description="The session that a hello opened.")
class HelloResult:
    """What a hello answers."""

    session_id: strawberry.ID = strawberry.field(description="The session.")
    request_sections: list[str] = strawberry.field(description="Sections whose bytes the server needs.")
    lease_seconds: int = strawberry.field(description="The node is connected while it is heard at least this often.")
    node_id: strawberry.ID = strawberry.field(description="The node's id.")

    @strawberry.field(description="The node.")
    def node(self, info: Info) -> ComputeNode:
        """Ask for the node."""
        return cast("ComputeNode", reading.node(info.context, self.node_id))

    @strawberry.field(description="The place in the feed from which commands are followed.")
    def feed_cursor(self, info: Info) -> Cursor:
        """Ask for the present cursor."""
        return cast("Cursor", reading.here(info.context))


@strawberry.input(description="The hashes of a node's sections.")
class HashReportInput:
    """One entry of recordInventoryHashes."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    hashes: list[SectionHashInput] = strawberry.field(description="All of its sections' hashes.")
    sent_at: datetime | None = strawberry.field(
        default=None, description="The time by the node's clock, by which its clock is compared with the server's."
    )


@strawberry.type(description="The answer to one hash report.")
class HashReportResult:
    """One slot of recordInventoryHashes."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    request_sections: list[str] = strawberry.field(description="Sections whose bytes the server needs.")
    error: SlotError | None = strawberry.field(description="Why the entry was refused.")


@strawberry.input(description="A section's bytes.")
class SectionInput:
    """Name, hash and bytes."""

    name: str = strawberry.field(description="system, cpu, memory, gpus, nics, disks, os or images.")
    sha256: str = strawberry.field(description="SHA-256 of the bytes, in hexadecimal.")
    content: Base64 = strawberry.field(description="The bytes: a JSON document in UTF-8, kept exactly as sent.")


@strawberry.input(description="Sections of a node.")
class SectionsInput:
    """One entry of ingestSections."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    sections: list[SectionInput] = strawberry.field(description="The sections.")


@strawberry.type(description="The answer to one node's sections.")
class IngestResult:
    """One slot of ingestSections."""

    node_id: strawberry.ID = strawberry.field(description="The node.")
    stored: list[str] = strawberry.field(description="Sections that are stored now; none when refused.")
    error: SlotError | None = strawberry.field(description="Why the entry was refused; nothing of it is stored.")


def _hashes(given: list[SectionHashInput]) -> list[GivenHash]:
    return [GivenHash(entry.name, entry.sha256) for entry in given]


@strawberry.type(description="What can be changed.")
class Mutation(CommandMutations, DeviceHealthMutations, AxisMutations, StreamTicketMutations):
    """Root fields; each asks for permission first."""

    @strawberry.mutation(description="An agent starts: opens a session, and makes the node at its first hello.")
    async def hello(
        self,
        info: Info,
        input: Annotated[HelloInput, strawberry.argument(description="What the agent says.")],  # noqa: A002 - contract
    ) -> HelloResult:
        """Open a session."""
        said = Hello(
            identity_key=input.identity_key,
            hostname=input.hostname,
            display_name=input.display_name,
            management_address=input.management_address,
            agent_version=input.agent_version,
            protocol=input.protocol,
            features=tuple(input.features or ()),
            boot_id=input.boot_id,
            certificate=input.certificate.given() if input.certificate else None,
        )
        hashes = None if input.hashes is None else _hashes(input.hashes)
        labels = LabelsAtHello(labels_given(input.labels), drivers_given(input.drivers))
        greeted = await ingest.hello(info.context, said, hashes, labels)
        return HelloResult(
            session_id=strawberry.ID(greeted.session_id),
            request_sections=list(greeted.request_sections),
            lease_seconds=LEASE_SECONDS,
            node_id=strawberry.ID(greeted.node_id),
        )

    @strawberry.mutation(description="Nodes report the hashes of their sections; one slot per entry, in order.")
    async def record_inventory_hashes(
        self,
        info: Info,
        entries: Annotated[list[HashReportInput], strawberry.argument(description="At most 1,000 nodes' hashes.")],
    ) -> list[HashReportResult]:
        """Note hashes and say which sections to send."""
        given = [GivenReport(entry.node_id, _hashes(entry.hashes), entry.sent_at) for entry in entries]
        return [
            HashReportResult(
                node_id=strawberry.ID(slot.node_id), request_sections=list(slot.names), error=slot_error(slot)
            )
            for slot in await ingest.record_hashes(info.context, given)
        ]

    @strawberry.mutation(description="Nodes send sections; one slot per entry, in order, and a bad one fails alone.")
    async def ingest_sections(
        self,
        info: Info,
        entries: Annotated[list[SectionsInput], strawberry.argument(description="At most 200 nodes' sections.")],
    ) -> list[IngestResult]:
        """Verify and store sections."""
        given = [
            (entry.node_id, [GivenSection(part.name, part.sha256, part.content) for part in entry.sections])
            for entry in entries
        ]
        return [
            IngestResult(node_id=strawberry.ID(slot.node_id), stored=list(slot.names), error=slot_error(slot))
            for slot in await ingest.ingest_sections(info.context, given)
        ]

    @strawberry.mutation(
        description="Nodes say what their daemons see of them; one slot per entry, in order. A sign of life as well."
    )
    async def report_status(
        self,
        info: Info,
        entries: Annotated[list[StatusInput], strawberry.argument(description="At most 1,000 nodes' reports.")],
    ) -> list[StatusResult]:
        """Take status reports."""
        return [
            StatusResult(
                node_id=strawberry.ID(slot.node_id),
                ignored_conditions=list(slot.names),
                generation=slot.generation,
                error=slot_error(slot),
            )
            for slot in await statuses.report_statuses(info.context, [entry.given() for entry in entries])
        ]

    @strawberry.mutation(description="Make a site.")
    async def create_site(
        self,
        info: Info,
        input: Annotated[SiteInput, strawberry.argument(description="The site.")],  # noqa: A002 - contract
    ) -> Site:
        """Add a site."""
        new = NewSite(input.name, input.iam_region, input.kind.value)
        return cast("Site", await fleet.create_site(info.context, new))

    @strawberry.mutation(description="Make a pool.")
    async def create_pool(
        self,
        info: Info,
        input: Annotated[PoolInput, strawberry.argument(description="The pool.")],  # noqa: A002 - contract
    ) -> Pool:
        """Add a pool."""
        new = NewPool(
            name=input.name,
            site_id=SiteId(input.site_id),
            pool_class=input.pool_class.value,
            gpu_model=input.gpu_model,
            sharing=input.sharing.value,
            agent=input.agent.value,
            policy={} if input.policy is None else policy_object(input.policy),
        )
        return cast("Pool", await fleet.create_pool(info.context, new))

    @strawberry.mutation(description="Change a pool; its nodes are planned anew when they divide otherwise.")
    async def update_pool(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        input: Annotated[PoolPatch, strawberry.argument(description="What is to change.")],  # noqa: A002 - contract
    ) -> Pool:
        """Change a pool."""
        return cast("Pool", await fleet.update_pool(info.context, id, input.patch()))

    @strawberry.mutation(
        description="Decide on a node whose hardware key waits (DuplicateIdentity, reason HardwareKeyTaken or "
        "TwoMachines). `keep: true`: this node is the machine; it gets the trusted key, and the node that had it waits "
        "instead and lets go of its devices that are not booked. `keep: false`: it goes on without a trusted key and "
        "waits no longer; of two machines in turns, the one that reports next is the node's. CONFLICT when none waits."
    )
    async def resolve_duplicate_identity(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        keep: Annotated[bool, strawberry.argument(description="This node is the machine.")],
    ) -> ComputeNode:
        """Decide who has a hardware key."""
        return cast("ComputeNode", await identities.resolve_duplicate_identity(info.context, id, keep=keep))

    @strawberry.mutation(description="Put a node into a pool and its site, or out of both.")
    async def assign_pool(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        pool_id: Annotated[strawberry.ID | None, strawberry.argument(description="The pool; null for none.")] = None,
    ) -> ComputeNode:
        """Assign a node."""
        return cast("ComputeNode", await fleet.assign_pool(info.context, id, pool_id))

    @strawberry.mutation(description="Set and remove the operator's labels of a node; they cover the agent's.")
    async def label_node(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        set: Annotated[list[LabelInput] | None, strawberry.argument(description="Labels to set.")] = None,  # noqa: A002
        remove: Annotated[
            list[str] | None, strawberry.argument(description="Keys whose labels go: the agent's value holds again.")
        ] = None,
    ) -> ComputeNode:
        """Label a node."""
        return cast(
            "ComputeNode", await label_cases.label_node(info.context, id, labels_given(set) or (), remove or ())
        )

    @strawberry.mutation(description="Claim atoms and a share of their host, whole or not at all.")
    async def allocate(
        self,
        info: Info,
        input: Annotated[AllocateInput, strawberry.argument(description="The request.")],  # noqa: A002 - contract
    ) -> AllocateResult:
        """Allocate."""
        return AllocateResult(placement=await allocations.allocate(info.context, input.given()))

    @strawberry.mutation(description="End now what a shard or a whole replica holds; answers what was ended.")
    async def release(
        self,
        info: Info,
        shard_id: Annotated[strawberry.ID | None, strawberry.argument(description="The shard.")] = None,
        replica_id: Annotated[strawberry.ID | None, strawberry.argument(description="The replica.")] = None,
    ) -> list[Allocation]:
        """Release."""
        return cast("list[Allocation]", await allocations.release(info.context, shard_id, replica_id))

    @strawberry.mutation(description="Say whose word a node's reports are.")
    async def set_trust(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        trust: Annotated[Trust, strawberry.argument(description="Under a tenant's control, reports are history only.")],
    ) -> ComputeNode:
        """Set a node's trust."""
        return cast("ComputeNode", await fleet.set_trust(info.context, id, trust))

    @strawberry.mutation(description="Take the next report of a node for real, after a tenant controlled it.")
    async def end_advisory_inventory(self, info: Info, id: Id) -> ComputeNode:  # noqa: A002 - contract
        """End a node's advisory inventory."""
        return cast("ComputeNode", await fleet.end_advisory_inventory(info.context, id))

    @strawberry.mutation(
        description="Have a node pass its pool's acceptance checks, once more if it did before: it takes no new work "
        "until it has. While an attempt is under way it goes on. CONFLICT where the node is not to be adopted."
    )
    async def adopt_node(self, info: Info, id: Id) -> ComputeNode:  # noqa: A002 - contract
        """Begin an attempt."""
        return cast("ComputeNode", await fleet.adopt_node(info.context, id))

    @strawberry.mutation(
        description="Say what is to run on a node: all of its units, whose every change is a new generation."
    )
    async def set_node_spec(
        self,
        info: Info,
        id: Id,  # noqa: A002 - contract
        units: Annotated[list[UnitInput], strawberry.argument(description="Its units, each kind once.")],
    ) -> ComputeNode:
        """Set a node's units."""
        given = [unit.given() for unit in units]
        return cast("ComputeNode", await fleet.set_node_spec(info.context, id, given))
