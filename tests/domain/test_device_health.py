"""Faults of devices from one inventory to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from domain.device import Device
from domain.device_health import DeviceHealth, HealthEnd, HealthSource
from domain.device_plan import DevicePlan, Terms, plan_devices
from domain.devices import hardware_of
from domain.division import UNPOOLED, Division
from domain.documents.document import Section
from domain.documents.gpus import (
    EccUncorrectable,
    Enumeration,
    Fabric,
    Gpu,
    GpuHealth,
    GpusSection,
    MigInstance,
    Mode,
    NvLink,
    RowRemap,
)
from domain.gpu_findings import FABRIC_PENDING_MAX
from domain.ids import DeviceId, NodeId
from domain.pool import Sharing
from tests.domain import strategies
from tests.domain.bookings import booked as at_once
from tests.domain.gpus import links

NODE: Final = NodeId("node_00000000000000000000000001")
T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
PENDING: Final = GpuHealth(row_remap=RowRemap(pending=True, failure=False))
FINE: Final = GpuHealth(row_remap=RowRemap(pending=False, failure=False))
GPU: Final = Gpu(uuid="GPU-1", pci_bus_id="18:00.0", name="NVIDIA H100 80GB HBM3", health=FINE)
OTHER: Final = structs.replace(GPU, uuid="GPU-2", pci_bus_id="2a:00.0")
FAULTY: Final = structs.replace(GPU, health=PENDING)


@dataclass(frozen=True)
class Machine:
    """A node's devices and faults as they are written."""

    devices: Mapping[DeviceId, Device]
    health: tuple[DeviceHealth, ...]
    now: datetime
    plan: DevicePlan

    @property
    def causes(self) -> list[str]:
        """What is wrong, by device."""
        return [f"{row.device_id} {row.cause}" for row in self.health]

    @property
    def unhealthy(self) -> set[str]:
        """Ids of the devices that are not healthy."""
        return {device.id for device in self.devices.values() if not device.healthy}


NEW: Final = Machine({}, (), T0, DevicePlan((), (), ()))


def _next(
    machine: Machine,
    *gpus: Gpu,
    enumeration: Enumeration = Enumeration.COMPLETE,
    after: timedelta = timedelta(minutes=1),
    division: Division = UNPOOLED,
    booked: frozenset[str] = frozenset(),
) -> Machine:
    """Report, and plan the same again: nothing is to be written then."""
    sections: dict[str, Section] = {"gpus": GpusSection(enumeration=enumeration, gpus=gpus)}
    return _planned(machine, sections, machine.now + after, division, booked)


def _planned(
    machine: Machine,
    sections: Mapping[str, Section],
    now: datetime,
    division: Division = UNPOOLED,
    booked: frozenset[str] = frozenset(),
) -> Machine:
    terms = Terms(now=now, division=division, booked=at_once(booked), health=machine.health)
    shown = hardware_of(NODE, sections)
    plan = plan_devices(NODE, list(machine.devices.values()), shown, sections, terms)
    rows = {**machine.devices, **{device.id: device for device in plan.upsert}}
    devices = {device_id: device for device_id, device in rows.items() if device_id not in plan.delete}
    again = plan_devices(NODE, list(devices.values()), shown, sections, replace(terms, health=plan.health.stands))
    assert not again.changes_anything
    return Machine(devices, plan.health.stands, now, plan)


@given(st.lists(strategies.machines(), min_size=1, max_size=3))
def test_whoever_has_a_fault_is_unhealthy_and_every_fault_is_of_a_device(sections: list[dict[str, Section]]) -> None:
    machine = NEW
    for each in sections:
        machine = _planned(machine, each, machine.now + timedelta(minutes=20))
        faulty = {row.device_id for row in machine.health}
        lost = {device.id for device in machine.devices.values() if device.attributes.get("lost") is True}
        parts = {device.id for device in machine.devices.values() if device.parent_id in faulty | lost}
        assert faulty <= machine.devices.keys()
        assert machine.unhealthy == {each for each in faulty | lost | parts if each in machine.devices}


def test_a_fault_is_raised_and_lifted_by_what_the_next_inventory_says() -> None:
    raised = _next(NEW, FAULTY)
    assert (raised.causes, raised.unhealthy) == (["GPU-1 RemapPending"], {"GPU-1"})
    (row,) = raised.plan.health.write
    assert (row.source, row.reason, row.rule, row.since) == (
        HealthSource.INVENTORY,
        "RowRemapPending",
        "inventory/1",
        raised.now,
    )
    lifted = _next(raised, GPU)
    assert (lifted.causes, lifted.unhealthy) == ([], set())
    assert [each.end for each in lifted.plan.health.ended] == [HealthEnd.CLEARED]


@pytest.mark.parametrize(
    ("gpus", "enumeration"),
    [
        ((structs.replace(GPU, health=None),), Enumeration.COMPLETE),
        ((structs.replace(GPU, health=GpuHealth(row_remap=RowRemap())),), Enumeration.COMPLETE),
        ((structs.replace(GPU, lost=True),), Enumeration.INCOMPLETE),
        ((), Enumeration.INCOMPLETE),
        ((), Enumeration.UNAVAILABLE),
    ],
)
def test_what_is_not_known_neither_raises_nor_lifts(gpus: tuple[Gpu, ...], enumeration: Enumeration) -> None:
    faulty = _next(NEW, FAULTY)
    silent = _next(faulty, *gpus, enumeration=enumeration)
    assert silent.health == faulty.health
    assert not silent.plan.health.write
    assert _next(_next(NEW, GPU), *gpus, enumeration=enumeration).health == ()


def test_a_quarantine_lifted_meanwhile_leaves_a_gpu_that_is_not_listed_healthy() -> None:
    faulty = _next(NEW, FAULTY)
    cleared = _next(replace(faulty, health=()), enumeration=Enumeration.INCOMPLETE)
    assert cleared.unhealthy == set()


def test_since_stays_while_the_fault_does_and_its_words_follow() -> None:
    def errors(count: int) -> Gpu:
        return structs.replace(GPU, health=GpuHealth(ecc_uncorrectable=EccUncorrectable(volatile=count)))

    first = _next(NEW, errors(1))
    second = _next(first, errors(2))
    assert [row.since for row in second.plan.health.write] == [first.now]
    assert second.health[0].message == "uncorrectable ECC errors since the driver was loaded: 2"


def test_all_parts_of_a_quarantined_gpu_are_out_and_other_gpus_are_not() -> None:
    mig = structs.replace(FAULTY, mig_mode=Mode(current=True, pending=True), mig_instances=(MigInstance(gi=1, ci=0),))
    parted = _next(NEW, mig, OTHER)
    assert parted.unhealthy == {"GPU-1", "GPU-1/gi1/ci0"}
    slotted = _next(NEW, FAULTY, OTHER, division=Division(Sharing.TIMESLICE, 2))
    assert slotted.unhealthy == {"GPU-1", "GPU-1/s0", "GPU-1/s1"}


def test_a_fault_of_one_instance_is_not_the_boards() -> None:
    mig = structs.replace(
        GPU, mig_mode=Mode(current=True), mig_instances=(MigInstance(gi=1, ci=0), MigInstance(gi=2, ci=0))
    )
    fault = DeviceHealth(
        device_id=DeviceId("GPU-1/gi1/ci0"),
        source=HealthSource.XID,
        cause="Xid31",
        reason="Xid31",
        message=None,
        rule=None,
        since=T0,
    )
    machine = _next(replace(_next(NEW, mig), health=(fault,)), mig)
    assert machine.unhealthy == {"GPU-1/gi1/ci0"}


@pytest.mark.parametrize("source", [HealthSource.XID, HealthSource.OPERATOR])
def test_an_inventory_neither_lifts_nor_rewrites_what_others_said(source: HealthSource) -> None:
    said = DeviceHealth(
        device_id=DeviceId("GPU-1"),
        source=source,
        cause="RemapPending",
        reason="RowRemapPending",
        message=None,
        rule=None,
        since=T0,
    )
    machine = _next(replace(_next(NEW, GPU), health=(said,)), GPU)
    assert machine.health == (said,)
    assert machine.unhealthy == {"GPU-1"}


@pytest.mark.parametrize(("place", "end"), [("18:00.0", HealthEnd.REPLACED), ("3a:00.0", HealthEnd.REMOVED)])
def test_faults_end_with_their_device_and_a_new_card_in_its_place_is_clean(place: str, end: HealthEnd) -> None:
    machine = _next(_next(NEW, FAULTY), structs.replace(GPU, uuid="GPU-3", pci_bus_id=place, health=None))
    assert (machine.causes, machine.unhealthy) == ([], set())
    assert [(each.health.device_id, each.end) for each in machine.plan.health.ended] == [("GPU-1", end)]


def test_a_booked_gpu_with_a_fault_stays_an_atom_and_keeps_its_fault_when_it_vanishes() -> None:
    booked = frozenset({"GPU-1"})
    faulty = _next(_next(NEW, GPU), FAULTY, booked=booked)
    assert faulty.devices[DeviceId("GPU-1")].bookable
    vanished = _next(faulty, OTHER, booked=booked)
    assert vanished.health == faulty.health
    gone = _next(vanished, OTHER)
    assert [each.end for each in gone.plan.health.ended] == [HealthEnd.REMOVED]


def _linked(*states: str | None, peer: str | None = None) -> Gpu:
    linked = tuple(NvLink(link=number, state=state, remote=peer) for number, state in enumerate(states))
    return structs.replace(GPU, nvlinks=linked)


def test_a_link_that_was_active_and_is_not_degrades_the_gpu_until_it_is_active_again() -> None:
    machine = _next(NEW, _linked("active", "active", "inactive"))
    assert machine.causes == []
    machine = _next(machine, _linked("active", "inactive", "inactive"))
    assert machine.causes == ["GPU-1 LinkInactive"]
    assert machine.health[0].message == "inactive NVLinks that were active: 1"
    machine = _next(machine, _linked("active", None, "inactive"))
    assert machine.causes == ["GPU-1 LinkInactive"]
    machine = _next(machine, GPU)
    assert machine.causes == ["GPU-1 LinkInactive"]
    assert _next(machine, _linked("active", "active", "inactive")).causes == []


def test_a_link_is_remembered_over_inventories_that_do_not_tell_it() -> None:
    machine = _next(_next(_next(NEW, _linked("active")), GPU), structs.replace(GPU, lost=True))
    assert _next(machine, _linked("inactive")).causes == ["GPU-1 LinkInactive"]


def test_in_mig_mode_a_gpu_has_no_links_to_lose() -> None:
    mig = structs.replace(_linked("inactive", "inactive"), mig_mode=Mode(current=True))
    machine = _next(_next(NEW, _linked("active", "active")), mig)
    assert machine.causes == []
    off = structs.replace(_linked("active", "inactive"), mig_mode=Mode(current=False))
    assert _next(machine, off).causes == ["GPU-1 LinkInactive"]


@pytest.mark.parametrize("peer", [(), (structs.replace(OTHER, lost=True),)], ids=["gone", "lost"])
def test_links_to_a_gpu_that_left_are_no_fault_of_those_at_the_other_end(peer: tuple[Gpu, ...]) -> None:
    pair = _next(NEW, _linked("active", peer="2a:00.0"), OTHER)
    alone = _next(pair, _linked("inactive"), *peer)
    assert alone.causes == []
    assert _next(alone, _linked("inactive"), *peer).causes == []


def test_a_registration_in_progress_is_remembered_from_its_first_sight() -> None:
    pending = structs.replace(GPU, fabric=Fabric(state="in_progress"))
    first = _next(NEW, pending)
    assert first.causes == []
    assert first.plan.waits.due_at == first.now + FABRIC_PENDING_MAX
    silent = _next(first, GPU, after=timedelta(minutes=5))
    assert (silent.causes, silent.plan.waits.due_at) == ([], None)
    late = _next(silent, pending, after=timedelta(minutes=5))
    assert (late.causes, late.plan.waits.due_at) == (["GPU-1 FabricPending"], None)
    assert late.health[0].message == f"its fabric registration is in progress since {first.now}"
    done = _next(late, structs.replace(GPU, fabric=Fabric(state="completed", status="success")))
    assert done.causes == []
    assert _next(done, pending, after=timedelta(minutes=5)).causes == []


def test_several_causes_stand_each_for_itself() -> None:
    both = structs.replace(FAULTY, nvlinks=links(1), fabric=Fabric(state="completed", status="failure"))
    machine = _next(NEW, both)
    assert machine.causes == ["GPU-1 FabricFailed", "GPU-1 RemapPending"]
    fixed = _next(machine, structs.replace(both, health=FINE))
    assert fixed.causes == ["GPU-1 FabricFailed"]
    assert fixed.unhealthy == {"GPU-1"}
