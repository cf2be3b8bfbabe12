"""Differences between two inventories."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from hypothesis import given
from msgspec import structs

from domain.availability import Availability
from domain.diff import Change, ChangeType, diff
from domain.documents.cpu import CpuSection
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection, MigInstance, Mode
from domain.documents.memory import Dimm, MemorySection
from domain.documents.nics import Nic, NicKind, NicsSection
from domain.documents.os import Distro, OsSection
from domain.documents.system import SystemSection
from tests.domain import strategies

GIB: Final = 2**30
ZERO: Final = "GPU-00000000-0000-0000-0000-000000000000"
MIG_OFF: Final = Mode(current=False, pending=False)
MIG_ON: Final = Mode(current=True, pending=True)


def _gpus(*gpus: Gpu, enumeration: Enumeration = Enumeration.COMPLETE, **facts: str) -> Mapping[str, Section]:
    return {"gpus": structs.replace(GpusSection(enumeration=enumeration, gpus=gpus), **facts)}


def _gpu(uuid: str | None, slot: int = 1, **facts: object) -> Gpu:
    return structs.replace(Gpu(uuid=uuid, index=slot, pci_bus_id=f"00000000:{slot:02X}:00.0"), **facts)


def _disks(*disks: Disk) -> Mapping[str, Section]:
    return {"disks": DisksSection(disks=disks)}


def _disk(name: str, serial: str | None, **facts: object) -> Disk:
    return structs.replace(Disk(name=name, serial=serial, model="MAKER 7T", size_bytes=7 * 10**12), **facts)


def _nics(*nics: Nic) -> Mapping[str, Section]:
    return {"nics": NicsSection(nics=nics)}


def _port(name: str, permanent: str | None, **facts: object) -> Nic:
    return structs.replace(Nic(name=name, permanent_mac=permanent), **facts)


def _types(changes: Sequence[Change]) -> list[ChangeType]:
    return [change.type for change in changes]


@given(strategies.machines())
def test_an_inventory_does_not_differ_from_itself(sections: dict[str, Section]) -> None:
    assert diff(sections, sections) == ()


@given(strategies.machines(), strategies.machines())
def test_changes_come_in_the_order_of_their_types(one: dict[str, Section], other: dict[str, Section]) -> None:
    order = list(ChangeType)
    places = [order.index(change.type) for change in diff(one, other)]
    assert places == sorted(places)


@given(strategies.machines(), strategies.machines())
def test_a_missing_section_is_silence(one: dict[str, Section], other: dict[str, Section]) -> None:
    both = one.keys() & other.keys()
    common = diff({name: one[name] for name in both}, {name: other[name] for name in both})
    assert diff(one, other) == common


@given(strategies.machines(), strategies.machines())
def test_an_enumeration_that_is_not_complete_is_silence(one: dict[str, Section], other: dict[str, Section]) -> None:
    cut = {**other, "gpus": GpusSection(enumeration=Enumeration.INCOMPLETE, driver_version="1.0")}
    others = {name: section for name, section in other.items() if name != "gpus"}
    assert diff(one, cut) == diff(one, others)
    assert diff(cut, one) == diff(others, one)


@given(strategies.machines(), strategies.machines())
def test_what_is_missing_one_way_is_added_the_other_way(one: dict[str, Section], other: dict[str, Section]) -> None:
    gone = [change.before for change in diff(one, other) if change.type is ChangeType.GPU_MISSING]
    came = [change.after for change in diff(other, one) if change.type is ChangeType.GPU_ADDED]
    assert gone == came


def test_all_kinds_of_changes_are_told_in_order() -> None:
    before = {
        **_gpus(_gpu("GPU-1"), _gpu("GPU-2", 2, mig_mode=MIG_OFF, vbios="96.00.01"), driver_version="580.95.05"),
        **_disks(_disk("sda", "S1")),
        **_nics(_port("eth0", "0c:42:a1:00:00:01")),
        "memory": MemorySection(total_bytes=1024 * GIB),
        "cpu": CpuSection(cores=64),
        "system": SystemSection(bios_version="1.0"),
        "os": OsSection(kernel="6.8.0-60"),
    }
    after = {
        **_gpus(_gpu("GPU-2", 2, mig_mode=MIG_ON, vbios="96.00.02"), _gpu("GPU-3", 3), driver_version="590.44.01"),
        **_disks(_disk("sda", "S2")),
        **_nics(_port("eth0", "0c:42:a1:00:00:02")),
        "memory": MemorySection(total_bytes=512 * GIB),
        "cpu": CpuSection(cores=32),
        "system": SystemSection(bios_version="1.1"),
        "os": OsSection(kernel="6.8.0-62"),
    }
    told = [(change.type.value, change.device_id) for change in diff(before, after)]
    assert told == [
        ("node.gpu.missing", "GPU-1"),
        ("node.gpu.added", "GPU-3"),
        ("node.mig.layout.changed", "GPU-2"),
        ("node.disk.replaced", "maker-7t:s2"),
        ("node.driver.changed", None),
        ("node.nic.replaced", "0c:42:a1:00:00:02"),
        ("node.memory.changed", None),
        ("node.cpu.changed", None),
        ("node.firmware.changed", None),
        ("node.firmware.changed", "GPU-2"),
        ("node.kernel.changed", None),
    ]


# GPUs


def test_a_missing_gpu_is_told_with_its_last_identity() -> None:
    gpu = _gpu("GPU-1", name="NVIDIA H100 80GB HBM3", serial="165", vram_mib=81559)
    assert diff(_gpus(gpu), _gpus()) == (
        Change(
            ChangeType.GPU_MISSING,
            "GPU-1",
            {
                "uuid": "GPU-1",
                "index": 1,
                "name": "NVIDIA H100 80GB HBM3",
                "serial": "165",
                "pciBusId": "00000000:01:00.0",
                "vramMiB": 81559,
            },
            None,
        ),
    )


def test_a_complete_enumeration_of_none_makes_every_gpu_missing() -> None:
    assert _types(diff(_gpus(_gpu("GPU-1"), _gpu("GPU-2", 2)), _gpus())) == [ChangeType.GPU_MISSING] * 2


def test_another_card_in_the_same_slot_is_one_missing_and_one_added() -> None:
    changes = diff(_gpus(_gpu("GPU-1")), _gpus(_gpu("GPU-2")))
    assert [(change.type, change.device_id) for change in changes] == [
        (ChangeType.GPU_MISSING, "GPU-1"),
        (ChangeType.GPU_ADDED, "GPU-2"),
    ]


def test_another_index_or_address_is_no_change() -> None:
    assert diff(_gpus(_gpu("GPU-1", 1), _gpu("GPU-2", 2)), _gpus(_gpu("GPU-2", 1), _gpu("GPU-1", 3))) == ()


def test_a_gpu_with_an_all_zero_uuid_is_known_by_its_address() -> None:
    two = _gpus(_gpu(ZERO, 1), _gpu(ZERO, 2))
    (change,) = diff(two, _gpus(_gpu(ZERO, 2)))
    assert (change.type, change.device_id) == (ChangeType.GPU_MISSING, None)
    assert isinstance(change.before, dict)
    assert change.before["pciBusId"] == "00000000:01:00.0"


def test_a_lost_gpu_whose_uuid_cannot_be_read_is_neither_missing_nor_added() -> None:
    whole = _gpus(_gpu("GPU-1", 1), _gpu("GPU-2", 2))
    lost = _gpus(_gpu("GPU-1", 1), _gpu(None, 2, lost=True))
    assert diff(whole, lost) == ()
    assert diff(lost, whole) == ()


def test_a_gpu_without_uuid_and_address_cannot_come_or_go() -> None:
    assert diff(_gpus(Gpu(name="Orin (nvgpu)")), _gpus()) == ()


def test_a_list_named_unavailable_is_silence() -> None:
    silent = GpusSection(enumeration=Enumeration.COMPLETE, unavailable={"gpus": Availability.TEMPORARILY_FAILED})
    assert diff(_gpus(_gpu("GPU-1")), {"gpus": silent}) == ()


def test_mig_layouts_compare_by_mode_and_sorted_instances() -> None:
    one, two = MigInstance(gi=1, ci=0, profile="3g.40gb"), MigInstance(gi=9, ci=0, profile="1g.10gb")
    before = _gpus(_gpu("GPU-1", mig_mode=MIG_ON, mig_instances=(one, two)))
    assert diff(before, _gpus(_gpu("GPU-1", mig_mode=MIG_ON, mig_instances=(two, one)))) == ()
    (change,) = diff(before, _gpus(_gpu("GPU-1", mig_mode=MIG_ON)))
    assert change == Change(
        ChangeType.MIG_LAYOUT_CHANGED,
        "GPU-1",
        {
            "mode": True,
            "instances": [{"gi": 1, "ci": 0, "profile": "3g.40gb"}, {"gi": 9, "ci": 0, "profile": "1g.10gb"}],
        },
        {"mode": True, "instances": []},
    )


def test_a_mig_profile_that_reads_unknown_is_silence_and_another_one_is_a_change() -> None:
    def layout(profile: str | None) -> Mapping[str, Section]:
        return _gpus(_gpu("GPU-1", mig_mode=MIG_ON, mig_instances=(MigInstance(gi=1, ci=0, profile=profile),)))

    assert diff(layout("1g.10gb"), layout(None)) == ()
    assert diff(layout("1g.10gb"), layout("N/A")) == ()
    assert _types(diff(layout("1g.10gb"), layout("1g.20gb"))) == [ChangeType.MIG_LAYOUT_CHANGED]


@pytest.mark.parametrize("mode", [None, Mode(), Mode(pending=False)])
def test_an_unknown_mig_mode_is_silence(mode: Mode | None) -> None:
    known = _gpus(_gpu("GPU-1", mig_mode=MIG_ON, mig_instances=(MigInstance(gi=1, ci=0),)))
    assert diff(known, _gpus(_gpu("GPU-1", mig_mode=mode))) == ()
    assert diff(_gpus(_gpu("GPU-1", mig_mode=mode)), known) == ()


def test_mig_instances_named_unavailable_are_silence() -> None:
    known = _gpus(_gpu("GPU-1", mig_mode=MIG_ON, mig_instances=(MigInstance(gi=1, ci=0),)))
    cut = GpusSection(
        enumeration=Enumeration.COMPLETE,
        gpus=(_gpu("GPU-1", mig_mode=MIG_ON),),
        unavailable={"gpus.0.migInstances": Availability.TEMPORARILY_FAILED},
    )
    assert diff(known, {"gpus": cut}) == ()


@pytest.mark.parametrize("unknown", [None, "", "N/A", "[Unknown Error]", " Not Found "])
def test_a_driver_that_reads_unknown_is_silence(unknown: str | None) -> None:
    known = _gpus(driver_version="580.95.05", cuda_driver_version="13.0")
    gone = {"gpus": GpusSection(enumeration=Enumeration.COMPLETE, driver_version=unknown, cuda_driver_version=unknown)}
    assert diff(known, gone) == ()
    assert diff(gone, known) == ()


def test_a_driver_change_names_what_differs_only() -> None:
    before = _gpus(driver_version="580.95.05", cuda_driver_version="13.0")
    after = _gpus(driver_version="580.105.08", cuda_driver_version="13.0")
    (change,) = diff(before, after)
    assert (change.before, change.after) == ({"driverVersion": "580.95.05"}, {"driverVersion": "580.105.08"})


def test_the_video_bios_of_a_virtual_gpu_is_unknown() -> None:
    before, after = _gpus(_gpu("GPU-1", vbios="96.00.74.00.01")), _gpus(_gpu("GPU-1", vbios="00.00.00.00.00"))
    assert diff(before, after) == ()


# Disks


def test_kernel_names_that_swap_are_no_replacement() -> None:
    before = _disks(_disk("sda", "S1"), _disk("sdb", "S2"))
    assert diff(before, _disks(_disk("sda", "S2"), _disk("sdb", "S1"))) == ()
    assert diff(before, _disks(_disk("sdf", "S2"), _disk("sdc", "S1"))) == ()


def test_another_disk_under_the_same_name_is_a_replacement() -> None:
    (change,) = diff(_disks(_disk("sda", "S1", wwn="0x5000c500a1b2c3d4")), _disks(_disk("sda", "S2")))
    assert change == Change(
        ChangeType.DISK_REPLACED,
        "maker-7t:s2",
        {
            "name": "sda",
            "wwn": "0x5000c500a1b2c3d4",
            "serial": "S1",
            "model": "MAKER 7T",
            "sizeBytes": "7000000000000",
        },
        {"name": "sda", "serial": "S2", "model": "MAKER 7T", "sizeBytes": "7000000000000"},
    )


def test_a_replacement_amid_swapped_names_is_told_once() -> None:
    before = _disks(_disk("sda", "S1"), _disk("sdb", "S2"), _disk("sdc", "S3"))
    (change,) = diff(before, _disks(_disk("sda", "S2"), _disk("sdb", "S1"), _disk("sdc", "S4")))
    assert change.device_id == "maker-7t:s4"


def test_a_new_disk_under_the_name_of_one_that_moved_on_replaces_the_one_that_is_gone() -> None:
    before = _disks(_disk("sda", "S1"), _disk("sdb", "S2"))
    (change,) = diff(before, _disks(_disk("sda", "S2"), _disk("sdb", "S3")))
    assert isinstance(change.before, dict)
    assert isinstance(change.after, dict)
    assert (change.before["serial"], change.after["serial"]) == ("S1", "S3")


def test_a_disk_that_came_first_and_shifted_the_names_is_no_replacement() -> None:
    before = _disks(_disk("sda", "S1"), _disk("sdb", "S2"))
    assert diff(before, _disks(_disk("sda", "S3"), _disk("sdb", "S1"), _disk("sdc", "S2"))) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eui.01000000000000005cd2e4a1b2c3d401", "nvme.8086-533131-4d414b4552-00000001"),
        ("naa.5000c500a1b2c3d4", "0x5000C500A1B2C3D4"),
        (None, "0x5000c500a1b2c3d4"),
        ("eui.0025385b11223344", None),
        ("0x0000000000000000", "0x5000c500a1b2c3d4"),
    ],
)
def test_a_wwn_that_changes_form_appears_or_disappears_is_the_same_disk(old: str | None, new: str | None) -> None:
    before, after = _disk("nvme0n1", "S1", namespace=1, wwn=old), _disk("nvme0n1", "S1", namespace=1, wwn=new)
    assert diff(_disks(before), _disks(after)) == ()
    assert diff(_disks(before), _disks(structs.replace(after, name="nvme1n1"))) == ()


def test_another_wwn_of_the_same_form_is_another_disk() -> None:
    before, after = _disk("sda", "beaf11", wwn="0x5000c500a1b2c3d4"), _disk("sda", "beaf11", wwn="0x5000c500a1b2c3d5")
    assert _types(diff(_disks(before), _disks(after))) == [ChangeType.DISK_REPLACED]


def test_another_namespace_is_another_disk() -> None:
    before, after = _disk("nvme0n1", "S1", namespace=1), _disk("nvme0n1", "S1", namespace=2)
    assert _types(diff(_disks(before), _disks(after))) == [ChangeType.DISK_REPLACED]


@pytest.mark.parametrize("serial", [None, "", "N/A", "0123456789", "000000"])
def test_a_disk_without_an_identity_is_never_replaced(serial: str | None) -> None:
    assert diff(_disks(_disk("sda", "S1")), _disks(_disk("sda", serial))) == ()
    assert diff(_disks(_disk("sda", serial)), _disks(_disk("sda", "S1"))) == ()


def test_an_identity_that_reads_unknown_now_may_be_the_one_that_seems_gone() -> None:
    assert diff(_disks(_disk("sda", "S1")), _disks(_disk("sda", "S2"), _disk("sdb", None))) == ()


def test_a_disk_that_comes_or_goes_replaces_nothing() -> None:
    assert diff(_disks(_disk("sda", "S1")), _disks(_disk("sda", "S1"), _disk("sdb", "S2"))) == ()
    assert diff(_disks(_disk("sda", "S1"), _disk("sdb", "S2")), _disks(_disk("sda", "S1"))) == ()


# Network ports


def test_network_names_that_swap_are_no_replacement() -> None:
    one, two = "0c:42:a1:00:00:01", "0c:42:a1:00:00:02"
    before = _nics(_port("eth0", one), _port("eth1", two))
    assert diff(before, _nics(_port("eth0", two), _port("eth1", one))) == ()
    assert diff(before, _nics(_port("eth0", "0C-42-A1-00-00-01"), _port("eth1", two))) == ()


@pytest.mark.parametrize(
    "port",
    [
        _port("eth0", None),
        _port("eth0", "02:00:00:00:00:01"),
        _port("eth0", "ee:ee:ee:ee:ee:ee"),
        _port("eth0", "00:00:00:00:00:00"),
        _port("eth0", "0c:42:a1:00:00:02", kind=NicKind.VF),
        _port("eth0", "0c:42:a1:00:00:02", kind=NicKind.BOND),
        _port("eth0", "0c:42:a1:00:00:02", removable=True),
    ],
)
def test_only_physical_ports_with_an_address_of_their_own_are_replaced(port: Nic) -> None:
    assert diff(_nics(_port("eth0", "0c:42:a1:00:00:01")), _nics(port)) == ()


def test_virtual_functions_that_come_and_go_are_nothing() -> None:
    parent = _port("eth0", "0c:42:a1:00:00:01")
    function = _port("eth0v0", "0c:42:a1:00:00:09", kind=NicKind.VF)
    assert diff(_nics(parent), _nics(parent, function)) == ()
    assert diff(_nics(parent, function), _nics(parent)) == ()


def test_a_changed_present_address_is_no_replacement() -> None:
    before = _port("eth0", "0c:42:a1:00:00:01", mac="0c:42:a1:00:00:01")
    assert diff(_nics(before), _nics(structs.replace(before, mac="0c:42:a1:00:00:07"))) == ()


# The machine itself


def _memory(total: int | None = None, *dimms: Dimm) -> Mapping[str, Section]:
    return {"memory": MemorySection(total_bytes=total, dimms=dimms)}


def test_a_total_that_wobbles_with_firmware_is_no_change() -> None:
    assert diff(_memory(2048 * GIB), _memory(2048 * GIB - 3 * GIB)) == ()
    assert diff(_memory(4 * GIB), _memory(4 * GIB - 192 * 2**20)) == ()


def test_one_module_of_64_is_a_change_of_the_total() -> None:
    (change,) = diff(_memory(64 * 32 * GIB), _memory(63 * 32 * GIB))
    assert (change.before, change.after) == (
        {"totalBytes": str(64 * 32 * GIB)},
        {"totalBytes": str(63 * 32 * GIB)},
    )


def test_a_total_that_is_unknown_is_silence() -> None:
    assert diff(_memory(2048 * GIB), _memory(None)) == ()


def test_modules_that_are_known_on_both_sides_decide() -> None:
    one = Dimm(locator="A1", size_bytes=32 * GIB, serial="8A01")
    other = Dimm(locator="A1", size_bytes=32 * GIB, serial="8A02")
    kept = Dimm(locator="B1", size_bytes=32 * GIB, serial="8A03")
    (change,) = diff(_memory(64 * GIB, one, kept), _memory(64 * GIB, other, kept))
    assert (change.before, change.after) == (
        {
            "totalBytes": str(64 * GIB),
            "dimms": [{"locator": "A1", "sizeBytes": str(32 * GIB), "serial": "8A01"}],
        },
        {
            "totalBytes": str(64 * GIB),
            "dimms": [{"locator": "A1", "sizeBytes": str(32 * GIB), "serial": "8A02"}],
        },
    )


def test_modules_in_other_slots_at_another_speed_are_no_change() -> None:
    before = _memory(None, Dimm(locator="A1", serial="8A01", speed_mts=4800), Dimm(locator="B1", serial="8A02"))
    after = _memory(None, Dimm(locator="P0 A", serial="8A02"), Dimm(locator="P0 B", serial="8A01", speed_mts=4400))
    assert diff(before, after) == ()


def test_modules_without_serials_compare_by_size_and_empty_slots_do_not_count() -> None:
    full = Dimm(locator="A1", size_bytes=32 * GIB)
    empty = Dimm(locator="B1", size_bytes=0)
    assert diff(_memory(None, full), _memory(None, full, empty)) == ()
    assert _types(diff(_memory(None, full, full), _memory(None, full, empty))) == [ChangeType.MEMORY_CHANGED]


def test_modules_that_one_side_cannot_read_are_silence() -> None:
    modules = tuple(Dimm(locator=f"A{each}", size_bytes=32 * GIB, serial=f"8A0{each}") for each in range(2))
    unread = {"memory": MemorySection(total_bytes=64 * GIB, unavailable={"dimms": Availability.UNAVAILABLE})}
    assert diff(_memory(64 * GIB, *modules), unread) == ()


def test_a_cpu_fact_that_is_unknown_is_silence_and_a_known_one_is_told() -> None:
    known = {"cpu": CpuSection(model="AMD EPYC 9654 96-Core Processor", cores=96, threads=192)}
    assert diff(known, {"cpu": CpuSection(model="N/A", cores=96)}) == ()
    (change,) = diff(known, {"cpu": CpuSection(cores=96, threads=96)})
    assert (change.before, change.after) == ({"threads": 192}, {"threads": 96})


def test_firmware_names_what_differs() -> None:
    before = {"system": SystemSection(bios_version="1.0", bios_date="01/02/2025", bmc_version="2.1", product="X")}
    after = {"system": SystemSection(bios_version="1.1", bmc_version="2.1", product="Y")}
    (change,) = diff(before, after)
    assert (change.before, change.after) == ({"biosVersion": "1.0"}, {"biosVersion": "1.1"})


def test_a_rolling_version_of_the_system_is_no_event() -> None:
    before = {"os": OsSection(distro=Distro(id="arch", version="20240101.0.204074"), kernel="6.6.8-arch1-1")}
    after = {"os": OsSection(distro=Distro(id="arch", version="20240102.0.204312"), kernel="6.6.8-arch1-1")}
    assert diff(before, after) == ()
    assert diff(before, {"os": OsSection()}) == ()
