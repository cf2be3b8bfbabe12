"""What a shard asks for (rule 14): devices by id or by facts, and a share of the host."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from domain.device import Device, DeviceClass
from domain.errors import InvalidInput
from domain.ids import DeviceId
from domain.jsonvalue import JsonValue
from domain.room import ATOM_CLASSES, Span
from domain.texts import given_text, required_text, storable_time

COUNT_MAX: Final = 1024
_INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What a device must be like; None asks nothing."""

    device_class: DeviceClass = DeviceClass.GPU
    gpu_model: str | None = None
    gpu_product: str | None = None
    vram_gib_min: float | None = None
    numa_node: int | None = None

    def fits(self, device: Device) -> bool:
        """Say whether a device is like that; a fact that is not known is not what was asked for."""
        return (
            device.device_class is self.device_class
            and self.gpu_model in (None, device.gpu_model)
            and self.gpu_product in (None, device.gpu_product)
            and self.numa_node in (None, device.numa_node)
            and (self.vram_gib_min is None or (device.vram_gib is not None and device.vram_gib >= self.vram_gib_min))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRequest:
    """What a shard asks for: devices by id, or by count and facts, and a share of the host.

    `where` says which nodes were meant, as JSON: it is compared, and read nowhere.
    """

    shard_id: str
    replica_id: str | None = None
    reservation_id: str | None = None
    device_ids: tuple[DeviceId, ...] = ()
    count: int = 0
    facts: DeviceFacts = field(default_factory=DeviceFacts)
    memory_gb: int | None = None
    cpu_cores: int | None = None
    power_w: float | None = None
    start: datetime | None = None
    end: datetime | None = None
    where: Mapping[str, JsonValue] = field(default_factory=dict)

    def document(self) -> dict[str, JsonValue]:
        """Return the request as it is kept, to know it again; the order of ids does not count."""
        facts = self.facts
        return {
            "replicaId": self.replica_id,
            "reservationId": self.reservation_id,
            "deviceIds": sorted(self.device_ids),
            "count": self.count,
            "selector": [facts.device_class, facts.gpu_model, facts.gpu_product, facts.vram_gib_min, facts.numa_node],
            "memoryGB": self.memory_gb,
            "cpuCores": self.cpu_cores,
            "powerW": self.power_w,
            "during": [None if each is None else each.astimezone(UTC).isoformat() for each in (self.start, self.end)],
            **self.where,
        }

    def span(self, now: datetime) -> Span:
        """Return the time asked for; a start that has passed is now. Raises InvalidInput for an end before it."""
        start = now if self.start is None else max(self.start, now)
        if self.end is not None and self.end <= start:
            raise InvalidInput(
                f"during.to: {self.end.isoformat()} is not after {start.isoformat()}, when it would begin"
            )
        return Span(start, self.end)


def check_request(asked: AllocationRequest) -> None:
    """Raise InvalidInput for a request that no node could meet, naming the place."""
    required_text("shardId", asked.shard_id)
    given_text("replicaId", asked.replica_id)
    given_text("reservationId", asked.reservation_id)
    given_text("selector.gpuModel", asked.facts.gpu_model)
    given_text("selector.gpuProduct", asked.facts.gpu_product)
    _check_devices(asked)
    _check_numbers(asked)
    for place, time in (("during.from", asked.start), ("during.to", asked.end)):
        if time is not None:
            storable_time(place, time)


def _check_devices(asked: AllocationRequest) -> None:
    if asked.device_ids and asked.count:
        raise InvalidInput("count: deviceIds names the devices already; give one of the two")
    if not (asked.device_ids or asked.count or asked.memory_gb or asked.cpu_cores):
        raise InvalidInput("input: asks for nothing; give deviceIds or count, memoryGB or cpuCores")
    if len(asked.device_ids) > COUNT_MAX:
        raise InvalidInput(f"deviceIds: {len(asked.device_ids)} ids; at most {COUNT_MAX} are taken")
    if len(set(asked.device_ids)) != len(asked.device_ids):
        raise InvalidInput("deviceIds: an id stands twice")
    if any("\0" in device_id for device_id in asked.device_ids):
        raise InvalidInput("deviceIds: an id has no U+0000")
    if asked.facts.device_class not in ATOM_CLASSES:
        raise InvalidInput(f"selector.class: {asked.facts.device_class} devices are not allocated")


def _check_numbers(asked: AllocationRequest) -> None:
    numbers = (
        ("count", asked.count or None, 1, COUNT_MAX),
        ("memoryGB", asked.memory_gb, 1, _INT_MAX),
        ("cpuCores", asked.cpu_cores, 1, _INT_MAX),
        ("powerW", asked.power_w, 0, _INT_MAX),
        ("selector.vramGiBMin", asked.facts.vram_gib_min, 0, _INT_MAX),
    )
    for place, number, least, most in numbers:
        if number is not None and not (math.isfinite(number) and least <= number <= most):
            raise InvalidInput(f"{place}: {number}; from {least} to {most} are taken")


def differences(kept: Mapping[str, JsonValue], asked: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Name what a request asks for differently from the one that was kept."""
    return tuple(sorted(name for name in {*kept, *asked} if kept.get(name) != asked.get(name)))
