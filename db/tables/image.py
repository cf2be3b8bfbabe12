"""Images that nodes have cached."""

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from db.tables import columns


class CachedImageRow(SQLModel, table=True):
    """An image in a node's cache, in step with the last applied `images` section."""

    __tablename__ = "node_image_cache"
    __table_args__ = (
        sa.Index("node_image_cache_reference_idx", "tenant_id", "reference", "node_id"),
        sa.Index("node_image_cache_digest_idx", "tenant_id", "digest", "node_id"),
    )

    node_id: str = columns.reference("nodes.id", primary_key=True, on_delete="CASCADE")
    reference: str = columns.text_key()
    digest: str = columns.text_key()
    tenant_id: str = columns.text()
    bytes: int | None = Field(sa_type=sa.BigInteger, nullable=True)
