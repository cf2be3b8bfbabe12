"""The devices that a node's sections show."""

from typing import Final

import pytest
from hypothesis import given
from msgspec import structs

from domain.availability import Availability
from domain.devices import Device, DeviceClass, devices_of, hardware_of
from domain.division import Division
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Fabric, Gpu, GpusSection, LinkWidth, MigInstance, Mode, NvLink
from domain.documents.nics import Nic, NicKind, NicsSection, Rdma
from domain.ids import DeviceId, NodeId
from tests.domain import strategies

NODE: Final = NodeId("node_00000000000000000000000001")
ZERO: Final = "GPU-00000000-0000-0000-0000-000000000000"


def _gpus(*gpus: Gpu, unavailable: dict[str, Availability] | None = None) -> tuple[Device, ...]:
    section = GpusSection(enumeration=Enumeration.COMPLETE, gpus=gpus, unavailable=unavailable or {})
    return devices_of(NODE, {"gpus": section})


def _disk_ids(*disks: Disk) -> list[str]:
    return [device.id for device in devices_of(NODE, {"disks": DisksSection(disks=disks)})]


def _nic_ids(*nics: Nic) -> list[str]:
    return [device.id for device in devices_of(NODE, {"nics": NicsSection(nics=nics)})]


@given(strategies.machines(), strategies.DIVISIONS)
def test_every_device_has_an_id_of_its_own_within_bounds(sections: dict[str, Section], division: Division) -> None:
    ids = [device.id for device in devices_of(NODE, sections, division)]
    assert len(set(ids)) == len(ids)
    assert {device.id for device in hardware_of(NODE, sections)} <= set(ids)
    assert all(0 < len(each) < 512 and not set(each) & set(" \0") for each in ids)


@given(strategies.gpus_sections())
def test_every_gpu_of_the_section_is_a_device(section: GpusSection) -> None:
    found = [device for device in devices_of(NODE, {"gpus": section}) if device.device_class is DeviceClass.GPU]
    assert len(found) == len(section.gpus)


@given(strategies.gpus_sections())
def test_nvlink_peers_are_undirected(section: GpusSection) -> None:
    peers = {device.id: set(device.nvlink_peers) for device in devices_of(NODE, {"gpus": section})}
    assert all(each in peers[other] and other != each for each, others in peers.items() for other in others)


@given(strategies.document(DisksSection), strategies.document(NicsSection), strategies.document(GpusSection))
def test_devices_follow_from_any_document(disks: Section, nics: Section, gpus: Section) -> None:
    for device in devices_of(NODE, {"disks": disks, "nics": nics, "gpus": gpus}):
        assert device.node_id == NODE


# GPUs


def test_a_gpu_carries_its_facts() -> None:
    gpu = Gpu(
        uuid="GPU-1",
        index=0,
        name="NVIDIA H100 80GB HBM3",
        serial="1650000000001",
        pci_bus_id="0000:18:00.0",
        numa_node=1,
        vram_mib=81920,
        architecture="Hopper",
        compute_capability="9.0",
        vbios="96.00.74.00.01",
        part_number="N/A",
        mig_mode=Mode(current=False, pending=False),
        pcie_link_width=LinkWidth(current=8, max=16),
        fabric=Fabric(state="completed", status="success", cluster_uuid="5a6b", clique_id=4026),
    )
    section = GpusSection(enumeration=Enumeration.COMPLETE, driver_version="580.95.05", gpus=(gpu,))
    assert devices_of(NODE, {"gpus": section}) == (
        Device(
            id=DeviceId("GPU-1"),
            node_id=NODE,
            device_class=DeviceClass.GPU,
            bookable=True,
            gpu_product="H100-SXM5-80GB",
            gpu_model="H100",
            vram_gib=80.0,
            index=0,
            pci_bus_id="00000000:18:00.0",
            numa_node=1,
            architecture="Hopper",
            compute_capability="9.0",
            driver_version="580.95.05",
            mig_capable=True,
            fabric_cluster="5a6b",
            fabric_clique="4026",
            attributes={
                "name": "NVIDIA H100 80GB HBM3",
                "serial": "1650000000001",
                "vbios": "96.00.74.00.01",
                "migMode": {"current": False, "pending": False},
                "pcieLinkWidth": {"current": 8, "max": 16},
                "fabricState": "completed",
                "fabricStatus": "success",
            },
        ),
    )


def test_a_gpu_that_the_table_lacks_keeps_its_name_and_one_without_a_name_has_no_product() -> None:
    gpus = (Gpu(uuid="GPU-1", name="NVIDIA H900 512GB"), Gpu(uuid="GPU-2", name="[N/A]"))
    section = GpusSection(gpus=gpus, unavailable={"gpus.1.name": Availability.UNSUPPORTED})
    named, nameless = devices_of(NODE, {"gpus": section})
    assert (named.gpu_product, named.gpu_model) == ("H900-512GB", "other")
    assert (nameless.gpu_product, nameless.gpu_model) == (None, None)
    assert {"gpuProduct", "gpuModel"} <= nameless.not_known.keys()


def test_a_virtual_gpu_and_a_mig_device_are_of_no_boards_family() -> None:
    names = ("GRID A100X-40C", "NVIDIA A100-SXM4-40GB MIG 3g.20gb")
    section = GpusSection(gpus=tuple(Gpu(uuid=f"GPU-{each}", name=name) for each, name in enumerate(names)))
    assert [device.gpu_model for device in devices_of(NODE, {"gpus": section})] == ["other", "other"]


def test_gpus_without_an_identity_are_told_apart_by_address() -> None:
    ids = [gpu.id for gpu in _gpus(Gpu(uuid=ZERO, pci_bus_id="18:00.0"), Gpu(pci_bus_id="0001:18:00.0"))]
    assert ids == [f"{NODE}/gpu/00000000:18:00.0", f"{NODE}/gpu/00000001:18:00.0"]


def test_a_built_in_gpu_has_no_address() -> None:
    assert [gpu.id for gpu in _gpus(Gpu(name="Orin (nvgpu)"))] == [f"{NODE}/gpu/integrated-0"]


@pytest.mark.parametrize(
    ("mode", "bookable", "pending"),
    [
        (None, True, False),
        (Mode(current=False, pending=False), True, False),
        (Mode(current=False), True, False),
        (Mode(current=True, pending=True), False, False),
        (Mode(current=False, pending=True), False, True),
        (Mode(current=True, pending=False), False, True),
        (Mode(pending=True), True, False),
    ],
)
def test_a_gpu_that_is_partitioned_or_about_to_be_is_no_atom(
    mode: Mode | None, *, bookable: bool, pending: bool
) -> None:
    (device,) = _gpus(Gpu(uuid="GPU-1", mig_mode=mode))
    assert (device.bookable, device.partition_pending) == (bookable, pending)


def test_a_part_of_which_nothing_is_known_is_no_attribute() -> None:
    (device,) = _gpus(Gpu(uuid="GPU-1", mig_mode=Mode(), ecc_mode=Mode(pending=False)))
    assert device.attributes == {"eccMode": {"pending": False}}


def test_a_gpu_with_instances_is_no_atom_even_when_its_mode_is_unknown() -> None:
    gpu, instance = _gpus(Gpu(uuid="GPU-1", mig_instances=(MigInstance(gi=1, ci=0),)))
    assert (gpu.bookable, instance.bookable) == (False, True)


def test_a_lost_gpu_is_unhealthy() -> None:
    (device,) = _gpus(Gpu(uuid="GPU-1", lost=True))
    assert not device.healthy
    assert not device.missing


def test_a_gpu_that_lacks_a_link_in_one_direction_is_a_peer_all_the_same() -> None:
    one, two, three = _gpus(
        Gpu(uuid="GPU-1", pci_bus_id="18:00.0", nvlinks=(NvLink(link=0, remote="0000:2a:00.0"), NvLink(link=1))),
        Gpu(uuid="GPU-2", pci_bus_id="2a:00.0", nvlinks=(NvLink(link=0, remote="2a:00.0"),)),
        Gpu(uuid="GPU-3", pci_bus_id="3a:00.0", nvlinks=(NvLink(link=0, remote="0000:c1:00.0"),)),
    )
    assert (one.nvlink_peers, two.nvlink_peers, three.nvlink_peers) == (("GPU-2",), ("GPU-1",), ())


@pytest.mark.parametrize("cluster", [None, "", "N/A", "00000000-0000-0000-0000-000000000000"])
def test_a_zero_cluster_is_no_domain_and_has_no_clique(cluster: str | None) -> None:
    (device,) = _gpus(Gpu(uuid="GPU-1", fabric=Fabric(state="completed", cluster_uuid=cluster, clique_id=0)))
    assert (device.fabric_cluster, device.fabric_clique) == (None, None)


def test_facts_not_known_are_named_as_the_device_names_them() -> None:
    one, two = _gpus(
        Gpu(uuid="GPU-1"),
        Gpu(uuid="GPU-2"),
        unavailable={
            "gpus.1.vramMiB": Availability.UNSUPPORTED,
            "gpus.1.migMode": Availability.TEMPORARILY_FAILED,
            "gpus.1.pcieLinkWidth.max": Availability.UNKNOWN,
            "driverVersion": Availability.UNAVAILABLE,
        },
    )
    assert one.not_known == {"driverVersion": Availability.UNAVAILABLE}
    assert two.not_known == {
        "vramGiB": Availability.UNSUPPORTED,
        "migMode": Availability.TEMPORARILY_FAILED,
        "migCapable": Availability.TEMPORARILY_FAILED,
        "pcieLinkWidth.max": Availability.UNKNOWN,
        "driverVersion": Availability.UNAVAILABLE,
    }


@pytest.mark.parametrize("fact", ["gpus.0.migMode", "gpus.0.migMode.current"])
def test_a_gpu_that_does_not_support_mig_is_known_not_to(fact: str) -> None:
    (device,) = _gpus(Gpu(uuid="GPU-1"), unavailable={fact: Availability.UNSUPPORTED})
    assert device.mig_capable is False
    assert "migCapable" not in device.not_known


def test_a_fact_with_a_value_is_not_named_as_unknown() -> None:
    (device,) = _gpus(
        Gpu(uuid="GPU-1", serial="165", ecc_mode=Mode(current=True)),
        unavailable={
            "gpus.0.serial": Availability.UNKNOWN,
            "gpus.0.eccMode.current": Availability.UNKNOWN,
            "gpus.0.eccMode.pending": Availability.UNKNOWN,
        },
    )
    assert device.not_known == {"eccMode.pending": Availability.UNKNOWN}


# Disks


def test_a_disk_is_its_wwn_in_one_spelling() -> None:
    ids = [_disk_ids(Disk(name="sda", wwn=wwn)) for wwn in ("naa.5000C500A1B2C3D4", "0x5000c500a1b2c3d4")]
    assert ids == [["0x5000c500a1b2c3d4"]] * 2
    assert _disk_ids(Disk(name="nvme0n1", wwn="eui.0025385B11223344")) == ["eui.0025385b11223344"]


def test_a_disk_without_wwn_is_its_serial() -> None:
    disk = Disk(name="nvme0n1", model="MAKER  PM9A3_7T", serial=" S4YNX0R1 ", wwn="0x0000000000000000")
    assert _disk_ids(disk) == ["maker-pm9a3-7t:s4ynx0r1"]
    assert _disk_ids(structs.replace(disk, namespace=2)) == ["maker-pm9a3-7t:s4ynx0r1:2"]


@pytest.mark.parametrize("serial", [None, "", "0123456789", "00000000"])
def test_a_disk_without_identity_is_its_place(serial: str | None) -> None:
    assert _disk_ids(Disk(name="vda", serial=serial, bus_path="pci-0000:00:05.0")) == [f"{NODE}/disk/pci-0000:00:05.0"]
    assert _disk_ids(Disk(name="vda", serial=serial)) == [f"{NODE}/disk/vda"]


@pytest.mark.parametrize(
    "disk",
    [
        Disk(name="sda", model="QEMU HARDDISK", serial="QM00001"),
        Disk(name="vda", transport="virtio", serial="QM00001"),
        Disk(name="sda", transport="iscsi", serial="QM00001"),
    ],
)
def test_a_virtual_or_shared_disk_is_known_within_its_machine_only(disk: Disk) -> None:
    (device_id,) = _disk_ids(disk)
    assert device_id.startswith(f"{NODE}/disk/")
    assert device_id.endswith("qm00001")


def test_equal_serials_of_other_sizes_are_two_disks() -> None:
    small, large = Disk(name="sda", serial="beaf11", size_bytes=10), Disk(name="sdb", serial="beaf11", size_bytes=100)
    assert _disk_ids(small, large) == ["beaf11:10", "beaf11:100"]


def test_equal_serials_of_one_size_are_told_apart_by_place() -> None:
    disks = [Disk(name=f"sd{each}", serial="beaf11", size_bytes=10, bus_path=f"lun-{each}") for each in "ab"]
    assert _disk_ids(*disks) == ["beaf11:lun-a", "beaf11:lun-b"]
    assert _disk_ids(disks[0]) == ["beaf11"]


def test_disks_that_nothing_but_the_name_tells_apart_are_all_kept() -> None:
    names = {"sda": "beaf11", "sdb": "beaf11", "sdc": None, "sdd": None}
    disks = [Disk(name=name, serial=serial, bus_path="scsi-0:0:0") for name, serial in names.items()]
    place = f"{NODE}/disk/scsi-0:0:0"
    assert _disk_ids(*disks) == ["beaf11:sda", "beaf11:sdb", f"{place}:sdc", f"{place}:sdd"]


def test_two_paths_of_one_disk_are_one_device() -> None:
    path = Disk(name="sda", wwn="0x5000c500a1b2c3d4", serial="S1", size_bytes=10)
    assert _disk_ids(path, structs.replace(path, name="sdb")) == ["0x5000c500a1b2c3d4"]


def test_one_wwn_with_two_serials_are_two_disks() -> None:
    disk = Disk(name="sda", wwn="0x5000c500a1b2c3d4", serial="S1")
    ids = _disk_ids(disk, structs.replace(disk, name="sdb", serial="S2"))
    assert ids == ["0x5000c500a1b2c3d4:sda", "0x5000c500a1b2c3d4:sdb"]


def test_a_disk_is_never_bookable_and_carries_its_size_as_text() -> None:
    section = DisksSection(
        disks=(Disk(name="sda", serial="S1", size_bytes=2**60, rotational=False, pci_bus_id="00:1f.2"),),
        unavailable={"disks.0.wwn": Availability.UNSUPPORTED},
    )
    (device,) = devices_of(NODE, {"disks": section})
    assert not device.bookable
    assert device.pci_bus_id == "00000000:00:1F.2"
    assert device.attributes == {"name": "sda", "serial": "S1", "sizeBytes": str(2**60), "rotational": False}
    assert device.not_known == {"wwn": Availability.UNSUPPORTED}


def test_a_name_of_any_length_and_spelling_gives_an_id_of_bounded_length() -> None:
    one, two = _disk_ids(Disk(name="x" * 10_000), Disk(name="x" * 9_999 + "/ y"))
    (three,) = _disk_ids(Disk(name="sda", model="m" * 10_000, serial="S1"))
    assert len(three) < 256
    assert one != two
    assert max(len(one), len(two)) < 256
    assert "/ " not in two


# Network ports


def test_a_port_is_its_permanent_address() -> None:
    nic = Nic(name="eth0", mac="aa:bb:cc:00:00:01", permanent_mac="0C:42:A1:00:00:01", rdma=Rdma(device="mlx5_0"))
    (device,) = devices_of(NODE, {"nics": NicsSection(nics=(nic,))})
    assert device.id == "0c:42:a1:00:00:01"
    assert device.attributes["name"] == "eth0"
    assert device.attributes["rdma"] == {"device": "mlx5_0"}
    assert not device.bookable


@pytest.mark.parametrize(
    "nic",
    [
        Nic(name="eth0", permanent_mac=None),
        Nic(name="eth0", permanent_mac="02:00:00:00:00:01"),
        Nic(name="eth0", permanent_mac="44:45:53:54:00:00"),
        Nic(name="eth0", permanent_mac="0c:42:a1:00:00:01", removable=True),
    ],
)
def test_a_port_without_an_address_of_its_own_is_its_place(nic: Nic) -> None:
    assert _nic_ids(nic) == [f"{NODE}/nic/eth0"]
    assert _nic_ids(structs.replace(nic, pci_bus_id="c1:00.1")) == [f"{NODE}/nic/00000000:C1:00.1"]


def test_one_address_on_two_ports_identifies_neither() -> None:
    nics = [Nic(name=name, permanent_mac="0c:42:a1:00:00:01", pci_bus_id="c1:00.0") for name in ("eth0", "eth1")]
    assert _nic_ids(*nics) == [f"{NODE}/nic/eth0", f"{NODE}/nic/eth1"]


def test_only_physical_ports_are_devices() -> None:
    kinds = [Nic(name=kind.value, permanent_mac=f"0c:42:a1:00:00:0{at}", kind=kind) for at, kind in enumerate(NicKind)]
    assert _nic_ids(*kinds) == ["0c:42:a1:00:00:00"]
