"""What decides an inventory, loaded for many claimed nodes in a handful of statements."""

from dataclasses import dataclass
from typing import Final

from db import conditions as condition_store
from db import device_health as health_store
from db import devices as device_store
from db import hardware as hardware_store
from db import images as image_store
from db import inventory as store
from db.bookings import booked_of_nodes
from db.connections import Row
from db.database import Transaction
from db.fleet import pools_of_nodes
from db.node_faults import raised_types
from domain.compute_gpus import without_display_adapters
from domain.device_plan import Waits
from domain.devices import DeviceClass, hardware_of
from domain.division import UNPOOLED, Division, division_of
from domain.documents.document import Section
from domain.hardware import seen_identity
from domain.ids import DeviceId, NodeId, TenantId
from domain.inventory import NodeState, Report
from domain.pool import PoolClass, Sharing
from domain.pool_policy import read_policy
from domain.sections import decode

_ELSEWHERE: Final = NodeId("another tenant's node")


@dataclass(frozen=True, slots=True)
class _Pool:
    division: Division = UNPOOLED
    gpu_count: int | None = None


_NO_POOL: Final = _Pool()


@dataclass(frozen=True, slots=True)
class Claim:
    """A node whose report is to be applied: as it is written, and as it reports itself."""

    node_id: NodeId
    tenant_id: TenantId
    row: Row
    state: NodeState
    report: Report


async def load_claims(tx: Transaction, rows: list[Row]) -> list[Claim]:
    """Load what claimed rows of `db.inventory.claim_pending` are decided by."""
    node_ids = [NodeId(row.node_id) for row in rows]
    wanted = {
        (NodeId(row.node_id), name, sha256)
        for row in rows
        for name, sha256 in [*row.reported.items(), *(row.applied or {}).items()]
    }
    contents = await store.section_contents(tx, sorted(wanted))
    documents = {key: without_display_adapters(decode(key[1], content)) for key, content in contents.items()}

    def sections(node_id: NodeId, hashes: dict[str, str] | None) -> dict[str, Section]:
        return {name: documents[node_id, name, sha256] for name, sha256 in (hashes or {}).items()}

    devices: dict[str, list[Row]] = {}
    for device in await device_store.devices_of_nodes(tx, node_ids):
        devices.setdefault(device.node_id, []).append(device)
    conditions: dict[str, list[Row]] = {}
    for condition in await condition_store.conditions_of_nodes(tx, node_ids):
        conditions.setdefault(condition.node_id, []).append(condition)
    booked = await booked_of_nodes(tx, node_ids)
    images = await image_store.images_of_nodes(tx, node_ids)
    health = await health_store.health_of_nodes(tx, node_ids)
    raised = await raised_types(tx, node_ids)
    # In a statement after the claim's, which sees what was committed while the claim waited for its rows.
    pools = {row.node_id: _pool(row) for row in await pools_of_nodes(tx, node_ids)}
    reported = {NodeId(row.node_id): sections(NodeId(row.node_id), row.reported) for row in rows}
    hardware = {row.node_id: hardware_store.hardware_of(row) for row in rows}
    shown = {node_id: hardware_of(node_id, found) for node_id, found in reported.items()}
    claimed = {device.id for found in shown.values() for device in found}
    owned = await device_store.owners_of(tx, sorted(claimed.union(*(row.contested for row in rows))))
    owners = {tenant_id: _owners(owned, tenant_id) for tenant_id in {row.tenant_id for row in rows}}
    return [
        Claim(
            NodeId(row.node_id),
            TenantId(row.tenant_id),
            row,
            NodeState(
                node_id=NodeId(row.node_id),
                identity_key=row.identity_key,
                no_schedule_reasons=tuple(row.no_schedule_reasons),
                applied=row.applied,
                sections=sections(NodeId(row.node_id), row.applied),
                devices=tuple(device_store.device_of(device) for device in devices.get(row.node_id, [])),
                conditions={each.type: condition_store.condition_of(each) for each in conditions.get(row.node_id, [])},
                hardware=hardware[row.node_id],
                labels=row.inventory_labels,
                waits=Waits(held_by=tuple(row.held_by), contested=tuple(row.contested), due_at=row.due_at),
                images=tuple(images[row.node_id]),
                accepted_gpus=row.accepted_gpus,
                health=tuple(health[row.node_id]),
                raised_by_faults=raised.get(row.node_id, frozenset()),
            ),
            Report(
                hashes=row.reported,
                sections=reported[NodeId(row.node_id)],
                shown=shown[NodeId(row.node_id)],
                owners=owners[row.tenant_id],
                booked=booked[NodeId(row.node_id)],
                contested=_contested(owned, row),
                division=pools.get(row.node_id, _NO_POOL).division,
                gpus_in_policy=pools.get(row.node_id, _NO_POOL).gpu_count,
                came_back=row.came_back,
                identity=seen_identity(hardware[row.node_id], reported[NodeId(row.node_id)]),
            ),
        )
        for row in rows
    ]


async def key_holders(tx: Transaction, claims: list[Claim]) -> dict[str, tuple[NodeId, TenantId]]:
    """Return who has the keys that these nodes would have, and keep everybody else from taking them meanwhile."""
    keys = set()
    for claim in claims:
        known, seen = claim.state.hardware, claim.report.identity
        if seen is not None and seen.strong and seen.key is not None and not (known.trusted and known.key == seen.key):
            keys.add(seen.key)
    rows = await hardware_store.lock_holders(tx, keys)
    return {row.hardware_key: (NodeId(row.id), TenantId(row.tenant_id)) for row in rows}


def other_holders(holders: dict[str, tuple[NodeId, TenantId]], claim: Claim) -> dict[str, NodeId]:
    """Return the other nodes that have keys, without telling one tenant of another's nodes."""
    return {
        key: node_id if tenant_id == claim.tenant_id else _ELSEWHERE
        for key, (node_id, tenant_id) in holders.items()
        if node_id != claim.node_id
    }


def _owners(rows: list[Row], tenant_id: str) -> dict[DeviceId, NodeId]:
    """Return each device's owner, without telling one tenant of another's nodes."""
    return {DeviceId(row.id): NodeId(row.node_id) if row.tenant_id == tenant_id else _ELSEWHERE for row in rows}


def _contested(owned: list[Row], row: Row) -> dict[DeviceId, DeviceClass]:
    """Return what the node waits for and another one has still."""
    waited_for = set(row.contested)
    return {
        DeviceId(device.id): DeviceClass(device.device_class)
        for device in (owned if waited_for else ())
        if device.id in waited_for and device.node_id != row.node_id
    }


def _pool(row: Row) -> _Pool:
    policy = read_policy(row.policy)
    division = division_of(PoolClass(row.pool_class), Sharing(row.sharing), policy)
    return _Pool(division, policy.expect.gpu_count)
