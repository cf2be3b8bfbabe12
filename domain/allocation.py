"""Allocations: which atoms of a node a request gets, or why it gets none (rule 14)."""

from collections.abc import Sequence
from typing import Final

from domain.allocation_request import AllocationRequest
from domain.device import Device
from domain.errors import Conflict, InvalidInput, NotFound
from domain.ids import DeviceId
from domain.room import ATOM_CLASSES, Booking, Room, Span, Taken

NAMED_MAX: Final = 8
BYTES_PER_GB: Final = 1_000_000_000
_NO_NUMA_NODE: Final = 2**31


class NoRoom(Conflict):
    """This node has not what is asked for; another may."""


def decide(room: Room, asked: AllocationRequest, span: Span) -> tuple[DeviceId, ...]:
    """Choose the atoms that the request gets of this node, by id; none for a share of the host alone.

    Raises NotFound, InvalidInput or NoRoom, which say why it gets nothing.
    """
    if room.closed:
        raise NoRoom(f"node {room.node_id} takes no new work: {', '.join(room.closed)}")
    taken = room.taken(span)
    chosen = _named(room, asked.device_ids, taken) if asked.device_ids else _counted(room, asked, taken)
    claims = [claim for claim in room.claims if claim.span.overlaps(span)]
    moments = [span.start, *(claim.span.start for claim in claims if claim.span.start > span.start)]

    def peak(amounts: Sequence[tuple[Span, int | None]]) -> int:
        return max(sum(amount or 0 for each, amount in amounts if each.contains(moment)) for moment in moments)

    memory = None if room.memory_bytes is None else room.memory_bytes // BYTES_PER_GB
    _check_host("memoryGB", asked.memory_gb, memory, peak([(claim.span, claim.memory_gb) for claim in claims]))
    _check_host("cpuCores", asked.cpu_cores, room.cpu_cores, peak([(claim.span, claim.cpu_cores) for claim in claims]))
    return chosen


def _check_host(place: str, asked: int | None, total: int | None, claimed: int) -> None:
    """Refuse more than is left; what the node did not report constrains nothing."""
    if asked is not None and total is not None and asked > total - claimed:
        raise NoRoom(f"{place}: {asked} asked for; of the node's {total}, {claimed} are claimed")


def _named(room: Room, device_ids: Sequence[DeviceId], taken: Taken) -> tuple[DeviceId, ...]:
    obstacles: list[str] = []
    for place, device_id in enumerate(device_ids):
        device = room.devices.get(device_id)
        if device is None:
            raise NotFound(f"deviceIds.{place}: node {room.node_id} has no device {device_id!r}")
        if device.device_class not in ATOM_CLASSES:
            raise InvalidInput(f"deviceIds.{place}: {device_id!r} is a {device.device_class}, which is not allocated")
        _, *wholes = room.holds(device_id)
        if whole := next((each for each in wholes if each in device_ids), None):
            raise InvalidInput(f"deviceIds.{place}: {device_id!r} is a part of {whole!r}, which is asked for too")
        obstacle = _obstacle(room, device, taken)
        if obstacle is not None:
            obstacles.append(f"deviceIds.{place}: {device_id} is {obstacle}")
    if obstacles:
        raise NoRoom(_listed(obstacles))
    return tuple(sorted(device_ids))


def _obstacle(room: Room, device: Device, taken: Taken) -> str | None:
    holder = taken.by(device.id)
    return _held(holder, device.id) if holder is not None else room.defect(device)


def _held(holder: Booking, device_id: DeviceId) -> str:
    end = holder.span.end
    through = "" if holder.device_id == device_id else f" through {holder.device_id}"
    return f"held by {holder.allocation_id}{through} {'until ' + end.isoformat() if end else 'without an end'}"


def _counted(room: Room, asked: AllocationRequest, taken: Taken) -> tuple[DeviceId, ...]:
    if not asked.count:
        return ()
    fitting = [device for device in room.devices.values() if asked.facts.fits(device)]
    free = [device for device in fitting if _obstacle(room, device, taken) is None]
    if len(free) < asked.count:
        defects = [room.defect(device) for device in fitting if taken.by(device.id) is None]
        named = sorted({defect for defect in defects if defect is not None})
        raise NoRoom(
            f"count: {asked.count} asked for; of {len(fitting)} {asked.facts.device_class} devices of node "
            f"{room.node_id} that fit, {len(free)} are free, {len(fitting) - len(defects)} are held and "
            f"{len(defects) - len(free)} cannot be given{': ' if named else ''}{_listed(named)}"
        )
    return tuple(sorted(device.id for device in _nearest(free, asked.count)))


def _nearest(free: Sequence[Device], count: int) -> list[Device]:
    """Choose devices of one NUMA node where one has enough, the one with the fewest; else by NUMA node and id."""
    groups: dict[int, list[Device]] = {}
    for device in sorted(free, key=lambda device: (_numa(device), device.id)):
        groups.setdefault(_numa(device), []).append(device)
    enough = [group for group in groups.values() if len(group) >= count]
    if enough:
        return min(enough, key=len)[:count]
    return [device for group in groups.values() for device in group][:count]


def _numa(device: Device) -> int:
    return _NO_NUMA_NODE if device.numa_node is None else device.numa_node


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED_MAX
    return "; ".join([*texts[:NAMED_MAX], *([f"and {more} more"] if more > 0 else [])])
