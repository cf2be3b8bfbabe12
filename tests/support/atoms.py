"""Atoms written past the reconciler: for tests of who holds them, not of how inventory makes them."""

from collections.abc import Sequence
from typing import Any, Final

from db.database import Database

_INSERT: Final = """
insert into devices (id, tenant_id, node_id, device_class, parent_id, bookable, gpu_model, vram_gib, numa_node)
select d.id, n.tenant_id, n.id, $3, $4, $5, $6, $7, d.numa_node
from nodes n cross join unnest($2::text[], $8::int[]) as d (id, numa_node) where n.id = $1
"""


async def add_atoms(
    database: Database,
    node_id: str,
    *device_ids: str,
    device_class: str = "gpu",
    parent: str | None = None,
    bookable: bool = True,
    model: str | None = "H100",
    numa: Sequence[int | None] | None = None,
) -> None:
    """Give a node devices."""
    numa_nodes = numa or [None] * len(device_ids)
    given = (device_class, parent, bookable, model, 80.0, numa_nodes)
    async with database.transaction() as tx:
        await tx.execute(_INSERT, node_id, list(device_ids), *given)


async def set_devices(database: Database, *device_ids: str, **values: Any) -> None:  # noqa: ANN401 - any column
    """Change columns of devices."""
    async with database.transaction() as tx:
        for column, value in values.items():
            await tx.execute(f"update devices set {column} = $1 where id = any ($2)", value, list(device_ids))  # noqa: S608 - ours


async def set_node(database: Database, node_id: str, **values: Any) -> None:  # noqa: ANN401 - any column
    """Change columns of a node."""
    async with database.transaction() as tx:
        for column, value in values.items():
            await tx.execute(f"update nodes set {column} = $1 where id = $2", value, node_id)  # noqa: S608 - ours
