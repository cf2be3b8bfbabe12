"""Planning a node's devices."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from domain.availability import Availability
from domain.device_plan import DeviceConflict, DevicePlan, Terms, Waits, plan_devices
from domain.devices import Device, devices_of, hardware_of
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection, LinkWidth, MigInstance, Mode, NvLink
from domain.documents.nics import Nic, NicsSection
from domain.ids import BookingId, DeviceId, NodeId
from tests.domain import strategies
from tests.domain.bookings import booked as at_once

NODE: Final = NodeId("node_00000000000000000000000001")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
OTHER: Final = NodeId("node_00000000000000000000000002")
MIG_ON: Final = Mode(current=True, pending=True)


def _plan(
    current: Sequence[Device],
    sections: Mapping[str, Section],
    owners: Mapping[DeviceId, NodeId] | None = None,
    booked: AbstractSet[DeviceId] = frozenset(),
) -> DevicePlan:
    terms = Terms(now=NOW, owners=owners or {}, booked=at_once(booked))
    return plan_devices(NODE, current, hardware_of(NODE, sections), sections, terms)


def _write(current: Iterable[Device], plan: DevicePlan) -> tuple[Device, ...]:
    rows = {device.id: device for device in current} | {device.id: device for device in plan.upsert}
    return tuple(device for device in rows.values() if device.id not in plan.delete)


def _gpus(*gpus: Gpu, enumeration: Enumeration = Enumeration.COMPLETE) -> Mapping[str, Section]:
    return {"gpus": GpusSection(enumeration=enumeration, driver_version="580.95.05", gpus=gpus)}


def _devices(sections: Mapping[str, Section]) -> tuple[Device, ...]:
    return devices_of(NODE, sections)


ONE: Final = Gpu(uuid="GPU-1", index=0, pci_bus_id="18:00.0", vram_mib=81920, name="NVIDIA H100 80GB HBM3")
TWO: Final = Gpu(uuid="GPU-2", index=1, pci_bus_id="2a:00.0", vram_mib=81920, name="NVIDIA H100 80GB HBM3")
BOTH: Final = _gpus(ONE, TWO)


@given(strategies.machines(), strategies.machines(), st.data())
def test_planning_what_was_written_plans_nothing(
    before: dict[str, Section], after: dict[str, Section], data: st.DataObject
) -> None:
    claimed = [device.id for device in (*_devices(before), *_devices(after))]
    booked = data.draw(st.frozensets(st.sampled_from(claimed))) if claimed else frozenset()
    foreign = data.draw(st.frozensets(st.sampled_from(claimed))) if claimed else frozenset()
    owners = dict.fromkeys(foreign - {device.id for device in _devices(before)}, OTHER)
    written = _write((), _plan((), before))
    first = _plan(written, after, owners, booked)
    again = _plan(_write(written, first), after, owners, booked)
    assert (again.upsert, again.delete, again.conflicts) == ((), (), first.conflicts)


@given(strategies.machines(), strategies.machines())
def test_no_section_takes_a_device_of_another_away(before: dict[str, Section], after: dict[str, Section]) -> None:
    current = _devices(before)
    classes = {"gpus": {"gpu", "gpu.mig"}, "nics": {"nic", "nic.vf"}, "disks": {"disk"}}
    deleted = {device.device_class.value for device in current if device.id in _plan(current, after).delete}
    assert deleted <= {device_class for name in classes.keys() & after.keys() for device_class in classes[name]}


@given(strategies.machines(), strategies.machines())
def test_booked_devices_are_never_deleted(before: dict[str, Section], after: dict[str, Section]) -> None:
    current = _devices(before)
    assert _plan(current, after, booked={device.id for device in current}).delete == ()


@given(strategies.machines())
def test_devices_of_another_node_are_left_alone(sections: dict[str, Section]) -> None:
    owners = {device.id: OTHER for device in _devices(sections)}
    plan = _plan((), sections, owners)
    assert (plan.upsert, plan.delete) == ((), ())
    tops = [device.id for device in _devices(sections) if device.parent_id is None]
    assert plan.conflicts == tuple(DeviceConflict(each, OTHER) for each in sorted(tops))


def test_only_devices_that_differ_are_written() -> None:
    moved = replace(_devices(BOTH)[1], index=7)
    plan = _plan((_devices(BOTH)[0], moved), BOTH)
    assert plan == DevicePlan((_devices(BOTH)[1],), (), ())


def test_a_vanished_device_is_deleted_when_it_is_not_booked() -> None:
    assert _plan(_devices(BOTH), _gpus(ONE)) == DevicePlan((), (DeviceId("GPU-2"),), ())


def test_a_vanished_device_with_bookings_stays_as_missing_and_comes_back() -> None:
    booked = frozenset({DeviceId("GPU-2")})
    held = Waits(held_by=(BookingId("GPU-2"),))
    plan = _plan(_devices(BOTH), _gpus(ONE), booked=booked)
    assert plan == DevicePlan((replace(_devices(BOTH)[1], healthy=False, missing=True),), (), (), held)
    back = _plan(_write(_devices(BOTH), plan), BOTH, booked=booked)
    assert back == DevicePlan((_devices(BOTH)[1],), (), ())


def test_a_missing_device_is_deleted_once_its_bookings_end() -> None:
    missing = replace(_devices(BOTH)[1], healthy=False, missing=True)
    assert _plan((_devices(BOTH)[0], missing), _gpus(ONE)).delete == ("GPU-2",)


def test_an_incomplete_enumeration_keeps_what_it_does_not_show_and_updates_what_it_does() -> None:
    moved = Gpu(uuid="GPU-1", index=3, pci_bus_id="18:00.0")
    for enumeration in (Enumeration.INCOMPLETE, Enumeration.UNAVAILABLE):
        plan = _plan(_devices(BOTH), _gpus(moved, Gpu(uuid="GPU-3"), enumeration=enumeration))
        assert [device.id for device in plan.upsert] == ["GPU-1", "GPU-3"]
        assert plan.delete == ()


def test_a_section_that_did_not_come_keeps_its_devices() -> None:
    current = _devices({"nics": NicsSection(nics=(Nic(name="eth0", permanent_mac="0c:42:a1:00:00:01"),))})
    assert _plan(current, BOTH).delete == ()
    assert _plan(current, {"nics": NicsSection()}).delete == ("0c:42:a1:00:00:01",)


def test_a_list_named_unavailable_keeps_its_devices() -> None:
    current = _devices({"disks": DisksSection(disks=(Disk(name="sda", serial="S1"),))})
    silent = DisksSection(unavailable={"disks": Availability.TEMPORARILY_FAILED})
    assert _plan(current, {"disks": silent}) == DevicePlan((), (), ())


def test_a_lost_gpu_keeps_what_was_last_known() -> None:
    known = Gpu(
        uuid="GPU-1",
        index=0,
        pci_bus_id="18:00.0",
        vram_mib=81920,
        name="NVIDIA H100 80GB HBM3",
        pcie_link_width=LinkWidth(current=16, max=16),
        mig_mode=MIG_ON,
        nvlinks=(NvLink(link=0, remote="2a:00.0"),),
    )
    current = _devices(_gpus(known, TWO))
    lost = GpusSection(
        enumeration=Enumeration.INCOMPLETE,
        gpus=(Gpu(uuid="GPU-1", pci_bus_id="18:00.0", lost=True),),
        unavailable={
            "gpus.0.vramMiB": Availability.TEMPORARILY_FAILED,
            "gpus.0.pcieLinkWidth.max": Availability.TEMPORARILY_FAILED,
            "gpus.0.nvlinks": Availability.TEMPORARILY_FAILED,
            "gpus.0.serial": Availability.TEMPORARILY_FAILED,
        },
    )
    (device,) = _plan(current, {"gpus": lost}).upsert
    assert device == replace(
        current[0],
        healthy=False,
        attributes={**current[0].attributes, "lost": True},
        not_known={"serial": Availability.TEMPORARILY_FAILED},
    )


def test_a_lost_gpu_without_a_uuid_is_the_one_last_seen_at_its_address() -> None:
    cut = _gpus(ONE, Gpu(pci_bus_id="0000:2a:00.0", lost=True), enumeration=Enumeration.INCOMPLETE)
    (device,) = _plan(_devices(BOTH), cut).upsert
    assert (device.id, device.healthy, device.vram_gib) == ("GPU-2", False, 80.0)


def test_peers_of_a_gpu_that_lost_its_uuid_name_it_as_before() -> None:
    linked = Gpu(uuid="GPU-1", pci_bus_id="18:00.0", nvlinks=(NvLink(link=0, remote="2a:00.0"),))
    cut = _gpus(linked, Gpu(pci_bus_id="2a:00.0", lost=True), enumeration=Enumeration.INCOMPLETE)
    written = _write(_devices(BOTH), _plan(_devices(BOTH), cut))
    assert {device.id: device.nvlink_peers for device in written} == {"GPU-1": ("GPU-2",), "GPU-2": ("GPU-1",)}


def test_a_new_card_in_the_slot_of_a_missing_one_is_a_device_of_its_own() -> None:
    booked = frozenset({DeviceId("GPU-2")})
    swapped = _gpus(ONE, Gpu(uuid="GPU-3", pci_bus_id="2a:00.0"))
    written = _write(_devices(BOTH), _plan(_devices(BOTH), swapped, booked=booked))
    lost = _gpus(ONE, Gpu(pci_bus_id="2a:00.0", lost=True), enumeration=Enumeration.INCOMPLETE)
    (device,) = _plan(written, lost, booked=booked).upsert
    assert device.id == "GPU-3"


def test_a_mig_mode_that_cannot_be_read_does_not_make_a_partitioned_gpu_bookable() -> None:
    partitioned = Gpu(uuid="GPU-1", mig_mode=MIG_ON, mig_instances=(MigInstance(gi=1, ci=0),))
    written = _write((), _plan((), _gpus(partitioned)))
    after = _write(written, _plan(written, _gpus(Gpu(uuid="GPU-1"))))
    assert {device.id: device.bookable for device in after} == {"GPU-1": False, "GPU-1/gi1/ci0": True}


def test_a_disk_whose_wwn_changed_form_keeps_its_id() -> None:
    def disks(name: str, wwn: str | None) -> Mapping[str, Section]:
        disk = Disk(name=name, wwn=wwn, serial="S1", namespace=1, model="MAKER 7T", size_bytes=7 * 10**12)
        return {"disks": DisksSection(disks=(disk,))}

    current = _devices(disks("nvme0n1", "eui.0025385b11223344"))
    for wwn in ("nvme.8086-5331-4d414b4552-00000001", None):
        plan = _plan(current, disks("nvme1n1", wwn))
        assert [device.id for device in plan.upsert] == ["eui.0025385b11223344"]
        assert plan.delete == ()
    other = _plan(current, disks("nvme0n1", "eui.0025385b11223355"))
    assert other.delete == ("eui.0025385b11223344",)


def test_disks_that_share_a_serial_adopt_no_id() -> None:
    def disks(*wwns: str | None) -> Mapping[str, Section]:
        return {
            "disks": DisksSection(
                disks=tuple(Disk(name=f"sd{at}", serial="beaf", wwn=wwn) for at, wwn in enumerate(wwns))
            )
        }

    current = _devices(disks("0x5000c500a1b2c3d4", "0x5000c500a1b2c3d5"))
    plan = _plan(current, disks(None, None))
    assert plan.delete == ("0x5000c500a1b2c3d4", "0x5000c500a1b2c3d5")
