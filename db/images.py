"""Cached images of nodes: read by the reconciler, written set-based."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.database import Transaction
from domain.cached_images import CachedImage, ImageCachePlan
from domain.ids import NodeId, TenantId

_OF_NODES = "select node_id, reference, digest, bytes from node_image_cache where node_id = any ($1)"
_SAVE = """
insert into node_image_cache (node_id, tenant_id, reference, digest, bytes)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
on conflict (node_id, reference, digest) do update set bytes = excluded.bytes
"""
_DELETE = """
delete from node_image_cache c
using unnest($1::text[], $2::text[], $3::text[]) as d (node_id, reference, digest)
where c.node_id = d.node_id and c.reference = d.reference and c.digest = d.digest
"""


@dataclass(frozen=True, slots=True)
class NodeImages:
    """What is to change of a node's cached images."""

    tenant_id: TenantId
    node_id: NodeId
    plan: ImageCachePlan


async def images_of_nodes(tx: Transaction, node_ids: Sequence[NodeId]) -> dict[str, list[CachedImage]]:
    """Return the stored images of many nodes, by node."""
    found: dict[str, list[CachedImage]] = {node_id: [] for node_id in node_ids}
    for row in await tx.fetch(_OF_NODES, list(node_ids)):
        found[row.node_id].append(CachedImage(row.reference, row.digest, row.bytes))
    return found


async def save_images(tx: Transaction, changes: Sequence[NodeImages]) -> None:
    """Write what changed, in at most two statements."""
    gone = [(each.node_id, image) for each in changes for image in each.plan.delete]
    if gone:
        await tx.execute(
            _DELETE,
            [node_id for node_id, _ in gone],
            [image.reference for _, image in gone],
            [image.digest for _, image in gone],
        )
    new = [(each, image) for each in changes for image in each.plan.upsert]
    if new:
        await tx.execute(
            _SAVE,
            [each.node_id for each, _ in new],
            [each.tenant_id for each, _ in new],
            [image.reference for _, image in new],
            [image.digest for _, image in new],
            [image.bytes for _, image in new],
        )
