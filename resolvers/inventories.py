"""Snapshots, their sections, and the differences between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from db import snapshots
from db.database import Row
from domain import sections
from domain.access import Permission
from domain.diff import Change, ChangeType, diff
from domain.documents.document import Section
from domain.errors import InvalidInput, NotFound
from domain.texts import required_text, storable_time
from resolvers import reading
from resolvers.context import Context


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


async def snapshot(context: Context, snapshot_id: str | None, node_id: str | None, digest: str | None) -> Row:
    """Return a snapshot by its id, or by node and digest, or a node's latest; raises NotFound, InvalidInput."""
    context.require(Permission.READ)
    if snapshot_id is not None:
        found = await reading.snapshot_or_none(context, snapshot_id)
        if found is None or (node_id or found.node_id) != found.node_id or (digest or found.digest) != found.digest:
            raise NotFound(f"no snapshot {snapshot_id!r}")
        return found
    if node_id is None:
        raise InvalidInput("snapshot: give `id`, or `nodeId` with or without `digest`")
    await reading.node(context, node_id)
    return await _chosen(context, node_id, SnapshotChoice(digest=digest) if digest else None)


async def inventory_diff(
    context: Context, node_id: str, from_: SnapshotChoice | None, to: SnapshotChoice | None
) -> InventoryDiff:
    """Compare two snapshots of a node; by default the latest against the one before it."""
    await reading.node(context, node_id)
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


def changes_from_json(entries: Sequence[Mapping[str, Any]]) -> list[Change]:
    """Return changes as an event's payload carries them."""
    return [
        Change(ChangeType(entry["type"]), entry.get("deviceId"), entry.get("before"), entry.get("after"))
        for entry in entries
    ]


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
    return {name: document for name, document in found.items() if document is not None}


async def _chosen(context: Context, node_id: str, choice: SnapshotChoice | None) -> Row:
    if choice is None:
        found = await reading.latest_snapshot(context, node_id)
        if found is None:
            raise NotFound(f"node {node_id!r} has no inventory yet")
        return found
    if choice.time is not None:
        storable_time("time", choice.time)
    match choice:
        case SnapshotChoice(id=str(snapshot_id), digest=None, time=None):
            found = await reading.snapshot_or_none(context, snapshot_id)
        case SnapshotChoice(id=None, digest=str(digest), time=None):
            required_text("digest", digest)
            found = await snapshots.snapshot_by_digest(
                context.reader, context.require(Permission.READ), node_id, digest
            )
        case SnapshotChoice(id=None, digest=None, time=datetime() as time):
            found = await reading.snapshot_at(context, node_id, time)
        case _:
            raise InvalidInput("a snapshot is chosen by exactly one of `id`, `digest` and `time`")
    if found is None or found.node_id != node_id:
        raise NotFound(f"node {node_id!r} has no such snapshot")
    return found
