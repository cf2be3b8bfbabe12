"""Snapshots, their sections, and the differences between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from db import snapshots
from db.connections import Row
from db.declared.snapshots import AS_OF, NEWEST_FIRST, SNAPSHOTS
from db.views.selection import Asked
from domain import sections
from domain.access import Permission
from domain.compute_gpus import without_display_adapters
from domain.diff import Change, diff
from domain.documents.document import Section
from domain.errors import InvalidInput
from domain.texts import given_text, required_text, storable_time
from resolvers import reading
from resolvers.context import Context
from resolvers.reads import One


@dataclass(frozen=True, slots=True)
class SnapshotChoice:
    """Which of a node's snapshots: by id, by digest, or as of a time; exactly one is given."""

    id: str | None = None
    digest: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class InventoryDiff:
    """What changed from one snapshot to another."""

    from_: Row | None
    to: Row | None
    changes: Sequence[Change]


def snapshot(context: Context, snapshot_id: str | None, node_id: str | None, digest: str | None) -> One:
    """Find a snapshot by its id, or by node and digest, or a node's latest; raises InvalidInput.

    Reading it raises NotFound.
    """
    context.require(Permission.READ)
    if snapshot_id is not None and not node_id and not digest:
        return reading.snapshot(context, snapshot_id)
    if snapshot_id is None and node_id is None:
        raise InvalidInput("snapshot: give `id`, or `nodeId` with or without `digest`")
    where = [SNAPSHOTS.where("id", (snapshot_id,))] if snapshot_id is not None else []
    where += [SNAPSHOTS.where("node_id", node_id)] if node_id else []
    where += [SNAPSHOTS.where("digest", digest)] if digest else []
    for name, given in (("id", snapshot_id), ("nodeId", node_id), ("digest", digest)):
        given_text(name, given or None)
    named = f"snapshot {snapshot_id!r}" if snapshot_id else f"snapshot of a node {node_id!r}"
    digested = f" with digest {digest!r}" if digest else ""
    return One(SNAPSHOTS, Asked(tuple(where), NEWEST_FIRST), missing=f"no {named}{digested}")


async def inventory_diff(
    context: Context, node_id: str, from_: SnapshotChoice | None, to: SnapshotChoice | None
) -> InventoryDiff:
    """Compare two snapshots of a node; by default the latest against the one before it."""
    await reading.node(context, node_id).load(context)
    newer = await _chosen(context, node_id, to)
    older = await _chosen(context, node_id, from_) if from_ else await before(context, newer)
    return await difference(context, older, newer)


async def snapshot_diff(context: Context, newer: Row, against: SnapshotChoice | None) -> InventoryDiff:
    """Compare a snapshot with another of its node; by default with the one before it."""
    older = await _chosen(context, newer.node_id, against) if against else await before(context, newer)
    return await difference(context, older, newer)


async def before(context: Context, newer: Row) -> Row | None:
    """Return the snapshot before this one, if any."""
    tenant_id = context.require(Permission.READ)

    async def load(pairs: list[tuple[str, str]]) -> list[Row | None]:
        rows = await snapshots.snapshots_before(context.reader, tenant_id, pairs)
        return [rows.get(pair[0]) for pair in pairs]

    row: Row | None = await context.load("snapshot before", load, (newer.id, newer.node_id))
    return row


async def difference(context: Context, older: Row | None, newer: Row) -> InventoryDiff:
    """Compare two snapshots; without an older one nothing can have changed."""
    if older is None:
        return InventoryDiff(None, newer, ())
    return InventoryDiff(older, newer, diff(await _documents(context, older), await _documents(context, newer)))


async def section(context: Context, row: Row, name: str) -> Section | None:
    """Return a snapshot's section as a typed document, or None when the node did not report it."""
    content = await section_bytes(context, row, name)
    return None if content is None else sections.decode(name, content)


async def section_bytes(context: Context, row: Row, name: str) -> bytes | None:
    """Return a section's bytes as received."""
    tenant_id = context.require(Permission.READ)
    sha256 = row.sections.get(sections.known_section_name(name))
    if sha256 is None:
        return None

    async def load(keys: list[tuple[str, str, str]]) -> list[bytes | None]:
        found = await snapshots.contents(context.reader, tenant_id, keys)
        return [found[key].content if key in found else None for key in keys]

    content: bytes | None = await context.load("section", load, (row.node_id, name, sha256))
    return content


async def _documents(context: Context, row: Row) -> dict[str, Section]:
    found = {name: await section(context, row, name) for name in row.sections}
    return {name: without_display_adapters(document) for name, document in found.items() if document is not None}


async def _chosen(context: Context, node_id: str, choice: SnapshotChoice | None) -> Row:
    of_node = SNAPSHOTS.where("node_id", required_text("nodeId", node_id))
    match choice:
        case None:
            asked = Asked((of_node,), NEWEST_FIRST)
        case SnapshotChoice(id=str(snapshot_id), digest=None, time=None):
            asked = Asked((of_node, SNAPSHOTS.where("id", (required_text("id", snapshot_id),))))
        case SnapshotChoice(id=None, digest=str(digest), time=None):
            asked = Asked((of_node, SNAPSHOTS.where("digest", required_text("digest", digest))), NEWEST_FIRST)
        case SnapshotChoice(id=None, digest=None, time=datetime() as time):
            asked = Asked((of_node, SNAPSHOTS.where("time", storable_time("time", time))), AS_OF)
        case _:
            raise InvalidInput("a snapshot is chosen by exactly one of `id`, `digest` and `time`")
    said = "has no inventory yet" if choice is None else "has no such snapshot"
    row = await One(SNAPSHOTS, asked, missing=f"node {node_id!r} {said}").load(context)
    return cast("Row", row)
