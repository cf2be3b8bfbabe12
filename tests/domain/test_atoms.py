"""Which devices are atoms, for each sharing of a pool."""

from typing import Final

import pytest
from hypothesis import given
from msgspec import structs

from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.devices import devices_of
from domain.division import UNPOOLED, Division, division_of
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection, MigInstance, Mode
from domain.documents.nics import Nic, NicKind, NicsSection, Vf
from domain.ids import DeviceId, NodeId
from domain.pool import PoolClass, Sharing
from domain.pool_policy import PoolPolicy
from tests.domain import strategies

NODE: Final = NodeId("node_00000000000000000000000001")
WHOLE: Final = Gpu(uuid="GPU-1", pci_bus_id="18:00.0", vram_mib=81920, mig_mode=Mode(current=False, pending=False))
PARTED: Final = structs.replace(
    WHOLE,
    mig_mode=Mode(current=True, pending=True),
    mig_instances=(
        MigInstance(gi=2, ci=0, uuid="MIG-1", profile="1c.3g.40gb", memory_mib=40960),
        MigInstance(gi=2, ci=1, uuid="MIG-2", profile="2c.3g.40gb"),
        MigInstance(gi=9, ci=0, uuid="MIG-3", profile="1g.10gb", memory_mib=9984),
    ),
)
MIG: Final = Division(Sharing.MIG)
TWO_SLOTS: Final = Division(Sharing.TIMESLICE, 2)
INSTANCES: Final = ["GPU-1/gi2/ci0", "GPU-1/gi2/ci1", "GPU-1/gi9/ci0"]


def _devices(
    gpu: Gpu, division: Division = UNPOOLED, unavailable: dict[str, Availability] | None = None
) -> dict[str, Device]:
    section = GpusSection(enumeration=Enumeration.COMPLETE, gpus=(gpu,), unavailable=unavailable or {})
    return {device.id: device for device in devices_of(NODE, {"gpus": section}, division)}


def _atoms(gpu: Gpu, division: Division) -> list[str]:
    return [device.id for device in _devices(gpu, division).values() if device.bookable]


@pytest.mark.parametrize(
    ("division", "whole", "parted"),
    [
        (UNPOOLED, ["GPU-1"], INSTANCES),
        (MIG, [], INSTANCES),
        (TWO_SLOTS, ["GPU-1/s0", "GPU-1/s1"], INSTANCES),
        (Division(Sharing.MPS, 3), ["GPU-1/s0", "GPU-1/s1", "GPU-1/s2"], INSTANCES),
    ],
)
def test_a_gpu_is_an_atom_or_its_parts_are(division: Division, whole: list[str], parted: list[str]) -> None:
    assert _atoms(WHOLE, division) == whole
    assert _atoms(PARTED, division) == parted


@given(strategies.machines(), strategies.DIVISIONS)
def test_no_two_atoms_are_of_one_piece_of_hardware(sections: dict[str, Section], division: Division) -> None:
    devices = devices_of(NODE, sections, division)
    atoms: dict[str, set[str]] = {}
    for device in devices:
        if device.bookable and device.device_class is not DeviceClass.NIC_VF:
            atoms.setdefault(device.parent_id or device.id, set()).add(device.device_class.value)
    assert all(len(kinds) == 1 for kinds in atoms.values())


@given(strategies.machines(), strategies.DIVISIONS)
def test_every_part_has_its_parent_among_the_devices(sections: dict[str, Section], division: Division) -> None:
    devices = devices_of(NODE, sections, division)
    ids = {device.id for device in devices}
    assert all(device.parent_id in ids for device in devices if device.parent_id is not None)


@pytest.mark.parametrize("division", [UNPOOLED, MIG, TWO_SLOTS])
def test_a_gpu_about_to_change_its_mode_offers_nothing(division: Division) -> None:
    for gpu, pending in ((WHOLE, True), (PARTED, False)):
        current = not pending
        changing = structs.replace(gpu, mig_mode=Mode(current=current, pending=pending))
        devices = _devices(changing, division)
        assert devices.keys() == _devices(gpu, division).keys()
        assert all(device.partition_pending and not device.bookable for device in devices.values())


def test_compute_instances_share_the_memory_of_their_gpu_instance() -> None:
    devices = _devices(PARTED)
    told = {
        device.id: (device.vram_gib, device.attributes.get("sharesMemory", False))
        for device in devices.values()
        if device.parent_id
    }
    assert told == {INSTANCES[0]: (40.0, True), INSTANCES[1]: (40.0, True), INSTANCES[2]: (9.75, False)}
    assert devices[INSTANCES[1]].attributes == {
        "gi": 2,
        "ci": 1,
        "uuid": "MIG-2",
        "profile": "2c.3g.40gb",
        "sharesMemory": True,
    }


def test_parts_have_what_is_asked_for_from_their_gpu() -> None:
    gpu = structs.replace(PARTED, index=3, numa_node=1, architecture="Hopper", compute_capability="9.0", lost=True)
    for division, part in ((MIG, "GPU-1/gi9/ci0"), (TWO_SLOTS, "GPU-1/s1")):
        given_gpu = gpu if division is MIG else structs.replace(gpu, mig_mode=WHOLE.mig_mode, mig_instances=())
        device = _devices(given_gpu, division)[part]
        assert (device.index, device.numa_node, device.pci_bus_id) == (3, 1, "00000000:18:00.0")
        assert (device.architecture, device.compute_capability) == ("Hopper", "9.0")
        assert (device.healthy, device.parent_id) == (False, "GPU-1")


def test_what_is_not_known_of_an_instance_is_named_on_the_instance() -> None:
    devices = _devices(
        PARTED,
        unavailable={
            "gpus.0.migInstances.1.memoryMiB": Availability.UNSUPPORTED,
            "gpus.0.migInstances.2.uuid": Availability.UNKNOWN,
            "gpus.0.migInstances.1.profile": Availability.TEMPORARILY_FAILED,
            "gpus.0.serial": Availability.UNKNOWN,
        },
    )
    assert devices["GPU-1"].not_known == {"serial": Availability.UNKNOWN}
    # Its sibling told the memory; the uuid and the profile have values.
    assert [devices[each].not_known for each in INSTANCES] == [{}, {}, {}]
    blank = structs.replace(PARTED, mig_instances=(MigInstance(gi=1, ci=0),))
    named = _devices(blank, unavailable={"gpus.0.migInstances.0.memoryMiB": Availability.UNSUPPORTED})
    assert named["GPU-1/gi1/ci0"].not_known == {"vramGiB": Availability.UNSUPPORTED}


def test_a_node_is_an_atom_in_metal_pools_only() -> None:
    for pool_class in PoolClass:
        devices = devices_of(NODE, {}, division_of(pool_class, Sharing.EXCLUSIVE, PoolPolicy()))
        assert [(device.id, device.bookable) for device in devices] == (
            [(DeviceId(NODE), True)] if pool_class.value.startswith("metal-") else []
        )
    assert devices_of(NODE, {}) == ()


def test_slots_are_as_many_as_the_policy_of_the_pool_says() -> None:
    counts = {sharing: division_of(PoolClass.VPS_HOST, sharing, PoolPolicy()).slots for sharing in Sharing}
    assert counts == {Sharing.EXCLUSIVE: 0, Sharing.MIG: 0, Sharing.TIMESLICE: 4, Sharing.MPS: 10}


# Virtual functions


def _functions(*nics: Nic, unavailable: dict[str, Availability] | None = None) -> list[Device]:
    section = NicsSection(nics=nics, unavailable=unavailable or {})
    return [each for each in devices_of(NODE, {"nics": section}) if each.device_class is DeviceClass.NIC_VF]


PORT: Final = Nic(name="eth0", permanent_mac="0c:42:a1:00:00:01", numa_node=1, pci_bus_id="c1:00.0")


def test_a_virtual_function_is_its_mac_or_its_number_on_its_port() -> None:
    functions = _functions(
        structs.replace(
            PORT,
            vfs=(
                Vf(index=0, mac="0C:42:A1:00:00:10", pci_bus_id="0000:c1:00.2"),
                Vf(index=1),
                Vf(index=2, mac="00:00:00:00:00:00"),
                Vf(index=3, mac="02:00:00:00:00:01"),
            ),
        ),
        unavailable={"nics.0.vfs.1.mac": Availability.UNKNOWN},
    )
    assert [each.id for each in functions] == [
        "0c:42:a1:00:00:10",
        "0c:42:a1:00:00:01/vf1",
        "0c:42:a1:00:00:01/vf2",
        "0c:42:a1:00:00:01/vf3",
    ]
    assert all(each.bookable and each.parent_id == "0c:42:a1:00:00:01" for each in functions)
    assert (functions[0].index, functions[0].numa_node, functions[0].pci_bus_id) == (0, 1, "00000000:C1:00.2")
    assert functions[1].not_known == {"mac": Availability.UNKNOWN}


def test_an_address_that_two_functions_have_is_no_identity() -> None:
    same = "0c:42:a1:00:00:10"
    functions = _functions(structs.replace(PORT, vfs=(Vf(index=0, mac=same), Vf(index=4, mac=same))))
    assert [each.id for each in functions] == ["0c:42:a1:00:00:01/vf0", "0c:42:a1:00:00:01/vf4"]
    as_port = _functions(structs.replace(PORT, vfs=(Vf(index=0, mac=PORT.permanent_mac),)))
    assert [each.id for each in as_port] == ["0c:42:a1:00:00:01/vf0"]


def test_functions_of_a_port_without_an_address_are_known_by_its_place() -> None:
    nameless = structs.replace(PORT, permanent_mac=None, vfs=(Vf(index=1),))
    assert [each.id for each in _functions(nameless)] == [f"{NODE}/nic/00000000:C1:00.0/vf1"]
    assert _functions(structs.replace(nameless, kind=NicKind.BOND)) == []
