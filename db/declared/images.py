"""Which nodes have an image cached, or weights in place: what placement asks before it copies."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy import ColumnElement
from sqlalchemy.dialects.postgresql import JSONB

from db.tables import CachedImageRow, NodeInventoryRow, NodeRow, SectionRow, table_of
from db.views.view import Expression
from domain.node import Trust

_nodes: Final = table_of(NodeRow)
_images: Final = table_of(CachedImageRow)
_inventory: Final = table_of(NodeInventoryRow)
_sections: Final = table_of(SectionRow)


def _text(text: str) -> Expression:
    return sa.literal_column(f"'{text}'", sa.Text)


def has_image(names: Expression) -> ColumnElement[bool]:
    """Keep nodes that have an image of any of these references or digests; a tenant's word does not count."""
    cached = _images.alias("cached")
    named = (cached.c.reference == sa.func.any(names)) | (cached.c.digest == sa.func.any(names))
    found = sa.select(cached.c.node_id).where(cached.c.tenant_id == _nodes.c.tenant_id, named)
    # Not correlated by the node: the index on references and digests finds the nodes.
    return _nodes.c.id.in_(found.correlate_except(cached)) & (_nodes.c.trust != _text(Trust.TENANT_CONTROLLED))


def may_have_weights(path: Expression) -> ColumnElement[bool]:
    """Keep nodes that have weights at this very path, and those that were not asked: silence constrains nothing."""
    inventory, section = _inventory.alias("standing"), _sections.alias("images_section")
    weights = section.c.document.op("->", return_type=JSONB())(_text("weights"))
    wanted = sa.func.jsonb_build_array(sa.func.jsonb_build_object(_text("path"), path), type_=JSONB)
    lacks = sa.select(inventory.c.node_id).where(
        inventory.c.node_id == _nodes.c.id,
        section.c.node_id == inventory.c.node_id,
        section.c.name == _text("images"),
        section.c.sha256 == inventory.c.applied.op("->>", return_type=sa.Text())(_text("images")),
        sa.func.jsonb_typeof(weights) == _text("array"),
        sa.not_(weights.contains(wanted)),
    )
    return sa.not_(lacks.correlate_except(inventory, section).exists())
