"""Snapshots, their sections, and differences."""

import base64
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import strawberry
from strawberry.types.field import StrawberryField

from db.connections import Row
from db.tables import SnapshotRow
from domain.diff import Change
from domain.errors import InvalidInput
from domain.sections import SECTION_NAMES
from resolvers import inventories
from resolvers.inventories import SnapshotChoice
from schema.documents import SECTION_GRAPH_TYPES
from schema.enums import InventoryChangeType
from schema.objects import Info, NodeInterface, RowTyped
from schema.scalars import Base64, JsonValue

SectionName = Annotated[str, strawberry.argument(description="system, cpu, memory, gpus, nics, disks, os or images.")]


@strawberry.input(description="One of a node's snapshots: give exactly one field.")
class SnapshotRef:
    """A choice among a node's snapshots."""

    id: strawberry.ID | None = strawberry.field(default=None, description="By id.")
    digest: str | None = strawberry.field(default=None, description="The newest with this digest.")
    time: datetime | None = strawberry.field(default=None, description="The newest received at or before this time.")

    def choice(self) -> SnapshotChoice:
        """Return the choice as the use case takes it."""
        return SnapshotChoice(self.id, self.digest, self.time)


def chosen(ref: SnapshotRef | None) -> SnapshotChoice | None:
    """Return an optional choice as the use case takes it."""
    return ref.choice() if ref else None


@strawberry.type(description="One difference between two snapshots.")
class InventoryChange:
    """What `domain.diff` found, or what an event's payload has of it."""

    document: ClassVar = Change

    type: InventoryChangeType = strawberry.field(description="What kind of difference.")
    device_id: str | None = strawberry.field(description="The device it is about, when it is about one.")
    before: JsonValue | None = strawberry.field(description="What was.")
    after: JsonValue | None = strawberry.field(description="What is.")


@strawberry.type(description="What changed from one snapshot of a node to another.")
class InventoryDiff:
    """A comparison of two snapshots."""

    changes: list[InventoryChange] = strawberry.field(
        description="GPUs missing and added, MIG layout, disks, driver, NICs, memory, CPU, firmware, kernel; "
        "a section that one side lacks has no changes."
    )
    to: "Snapshot | None" = strawberry.field(description="The newer snapshot.")

    @strawberry.field(name="from", description="The older snapshot; null when there is none to compare with.")
    def older(self) -> "Snapshot | None":
        """Return the older side."""
        return cast("Snapshot | None", cast("inventories.InventoryDiff", self).from_)


if TYPE_CHECKING:
    SnapshotSections = Any
else:

    def _section_field(name: str, graph_type: type) -> StrawberryField:
        async def resolve(root: strawberry.Parent[Any], info: Info) -> object:
            return await inventories.section(info.context, root, name)

        resolve.__annotations__["return"] = graph_type | None
        return strawberry.field(
            resolver=resolve, name=name, description=f"The `{name}` section; null when not reported."
        )

    async def _raw(root: strawberry.Parent[Any], info: Info, section: SectionName) -> Base64 | None:
        content = await inventories.section_bytes(info.context, root, section)
        return None if content is None else Base64(base64.b64encode(content).decode())

    def _sha256(root: strawberry.Parent[Any], section: SectionName) -> str | None:
        if section not in SECTION_NAMES:
            raise InvalidInput(f"section: {section!r} is none of {', '.join(SECTION_NAMES)}")
        return root.sections.get(section)

    SnapshotSections = strawberry.type(
        type(
            "SnapshotSections",
            (),
            {
                "__annotations__": {"row": ClassVar},
                "row": SnapshotRow,
                **{f"{name}_": _section_field(name, kind) for name, kind in SECTION_GRAPH_TYPES.items()},
                "raw": strawberry.field(resolver=_raw, description="A section's bytes exactly as received."),
                "sha256": strawberry.field(resolver=_sha256, description="SHA-256 of a section's bytes."),
            },
        ),
        description="The sections of a snapshot as typed documents, and their bytes.",
    )


@strawberry.type(description="A node's inventory as it was applied at one moment; never changed afterwards.")
class Snapshot(RowTyped, NodeInterface):
    """A row of inventory_snapshots."""

    row: ClassVar = SnapshotRow

    node_id: strawberry.ID = strawberry.field(description="The node it is of.")
    digest: str = strawberry.field(description="SHA-256 over the sorted names and hashes of its sections.")
    received_at: datetime = strawberry.field(description="When the server received the report.")
    advisory: bool = strawberry.field(
        description="Reported under a tenant's control: history only, nothing followed from it."
    )

    @strawberry.field(description="Its sections.")
    def sections(self) -> SnapshotSections:
        """Return the same row, read section by section."""
        return self

    @strawberry.field(description="What changed since another snapshot of the node; by default since the one before.")
    async def diff(
        self,
        info: Info,
        against: Annotated[
            SnapshotRef | None, strawberry.argument(description="The older; by default the one before.")
        ] = None,
    ) -> InventoryDiff:
        """Compare with another snapshot."""
        found = await inventories.snapshot_diff(info.context, cast("Row", self), chosen(against))
        return cast("InventoryDiff", found)
