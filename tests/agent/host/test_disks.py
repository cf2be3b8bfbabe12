import pytest

from agent.host.answers import Notes
from agent.host.disks import collect_disks
from domain.availability import Availability
from domain.documents.disks import Disk
from tests.agent.host.trees import Tree

NVME = "pci0000:00/0000:5e:00.0/nvme/nvme0"
SATA = "pci0000:00/0000:00:17.0/ata{port}/host{host}/target{host}:0:0/{host}:0:0:0"
EUI = "eui.36344830525000010025384700000001"


def collected(tree: Tree) -> tuple[Disk, ...]:
    return collect_disks(tree.source, Notes())


def page_80(serial: str) -> bytes:
    return bytes([0, 0x80]) + len(serial).to_bytes(2, "big") + serial.encode()


def sata(tree: Tree, name: str, port: int, serial: str, wwn: str) -> None:
    device = SATA.format(port=port, host=port - 1)
    page = page_80(f"  {serial} ")
    tree.disk(
        name,
        device,
        device_vendor="ATA     \n",
        device_model="Example SSD 870 \n",
        device_wwid=wwn,
        device_vpd_pg80=page,
    )
    tree.write(f"/sys/class/ata_port/ata{port}/port_no", f"{port}\n")


def test_an_nvme_disk_gives_its_facts(tree: Tree) -> None:
    serial, model = "NVME0001            \n", "Example PM9A3           \n"
    tree.disk(
        "nvme0n1",
        NVME,
        wwid=f"{EUI.upper().replace('EUI', 'eui')}\n",
        nsid="1\n",
        device_serial=serial,
        device_model=model,
    )
    assert collected(tree) == (
        Disk(
            name="nvme0n1",
            wwn=EUI,
            serial="NVME0001",
            namespace=1,
            model="Example PM9A3",
            size_bytes=4096 * 512,
            rotational=False,
            transport="nvme",
            pci_bus_id="00000000:5E:00.0",
            bus_path="pci-0000:5e:00.0-nvme-1",
        ),
    )


def test_a_world_wide_name_made_of_model_and_serial_is_none(tree: Tree) -> None:
    tree.disk("nvme0n1", NVME, wwid="nvme.8086-4e564d4530303031-4578616d706c65-00000001\n", device_serial="NVME0001\n")
    notes = Notes()
    (disk,) = collect_disks(tree.source, notes)
    assert (disk.wwn, disk.serial, disk.namespace) == (None, "NVME0001", 1)
    assert notes.unavailable()["disks.0.wwn"] is Availability.UNKNOWN


@pytest.mark.parametrize(
    ("files", "wwn"),
    [
        ({"nguid": "36344830-5250-0001-0025-384700000001\n"}, EUI),
        ({"eui": "00 25 38 47 00 00 00 01\n"}, "eui.0025384700000001"),
        ({"wwid": "eui.0000000000000000\n"}, None),
        ({"device/wwid": "naa.5002538F00000001\n"}, "naa.5002538f00000001"),
        ({"device/wwid": "t10.ATA     Example SSD 870                    S5Y1\n"}, None),
    ],
)
def test_world_wide_names_have_one_form(tree: Tree, files: dict[str, str], wwn: str | None) -> None:
    folder = tree.disk("nvme0n1", NVME)
    tree.write_all(folder, files)
    (disk,) = collected(tree)
    assert disk.wwn == wwn


def test_a_sata_disk_is_identified_by_its_pages_and_its_port(tree: Tree) -> None:
    sata(tree, "sda", 3, "S5Y1FAKE00001", "naa.5002538f00000001\n")
    (disk,) = collected(tree)
    assert (disk.serial, disk.wwn, disk.model) == ("S5Y1FAKE00001", "naa.5002538f00000001", "Example SSD 870")
    assert (disk.transport, disk.bus_path) == ("sata", "pci-0000:00:17.0-ata-3-scsi-0:0:0")


def test_disks_are_ordered_by_identity_when_kernel_names_swap(tree: Tree) -> None:
    sata(tree, "sda", 2, "S2", "naa.5002538f00000002\n")
    sata(tree, "sdb", 1, "S1", "naa.5002538f00000001\n")
    assert [disk.serial for disk in collected(tree)] == ["S1", "S2"]


def test_what_is_no_disk_is_left_out(tree: Tree) -> None:
    for name in ("loop0", "ram0", "zram0", "md127", "dm-0", "nbd0"):
        tree.disk(name, f"virtual/block-{name}")
    tree.disk("fd0", "platform/floppy.0")
    tree.disk("sr0", SATA.format(port=1, host=0))
    tree.disk("rbd0", "rbd/0")
    tree.disk("mmcblk0boot0", "platform/mmc0")
    tree.disk("sdc", "pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/host9/target9:0:0/9:0:0:0", sectors=0)
    for letter, vendor, model in (("d", "iDRAC   ", "Virtual CD      "), ("e", "AMI     ", "Virtual HDisk0  ")):
        device = f"pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/host1{letter}"
        tree.disk(f"sd{letter}", device, device_vendor=vendor, device_model=model)
    assert collected(tree) == ()


def fibre(tree: Tree, name: str, host: int, wwn: str, serial: str) -> None:
    device = f"pci0000:00/0000:3b:00.{host}/host{host}/rport-{host}:0-0/target{host}:0:0/{host}:0:0:1"
    tree.disk(name, device, device_wwid=wwn, device_vpd_pg80=page_80(serial))


def test_paths_of_a_multipath_disk_are_one_disk(tree: Tree) -> None:
    fibre(tree, "sda", 0, "naa.600a098000000001", "LUN1")
    fibre(tree, "sdb", 1, "naa.600a098000000001", "LUN1")
    fibre(tree, "sdc", 2, "naa.600a098000000002", "LUN2")
    assert [(disk.name, disk.serial, disk.transport) for disk in collected(tree)] == [
        ("sda", "LUN1", "fc"),
        ("sdc", "LUN2", "fc"),
    ]


def iscsi(tree: Tree, name: str, host: int, target: str) -> None:
    device = f"platform/host{host}/session{host}/target{host}:0:0/{host}:0:0:1"
    tree.disk(name, device, device_wwid="t10.IET     00010001", device_vpd_pg80=page_80("beaf11"))
    tree.write(f"/sys/class/iscsi_session/session{host}/targetname", target)


def test_default_serials_of_two_targets_are_two_disks(tree: Tree) -> None:
    iscsi(tree, "sda", 2, "iqn.2025-01.example:a")
    iscsi(tree, "sdb", 3, "iqn.2025-01.example:a")
    iscsi(tree, "sdc", 4, "iqn.2025-01.example:b")
    assert [disk.name for disk in collected(tree)] == ["sda", "sdc"]


def test_equal_serials_of_two_sizes_are_two_disks(tree: Tree) -> None:
    for slot, sectors in ((1, 1 << 24), (2, 1 << 28)):
        tree.disk(f"vd{'ab'[slot - 1]}", f"pci0000:00/0000:00:0{slot}.0/virtio{slot}", sectors=sectors, serial="SAME")
    assert [disk.size_bytes for disk in collected(tree)] == [1 << 33, 1 << 37]


def test_a_virtual_disk_without_a_serial_has_its_place(tree: Tree) -> None:
    tree.disk("vda", "pci0000:00/0000:00:02.0/virtio1", device_vendor="0x1af4\n", serial="")
    notes = Notes()
    (disk,) = collect_disks(tree.source, notes)
    assert (disk.serial, disk.wwn, disk.model, disk.bus_path) == (None, None, None, "pci-0000:00:02.0")
    assert {"disks.0.serial", "disks.0.wwn", "disks.0.model"} <= set(notes.missing)


def test_a_namespace_on_no_known_bus_has_no_place(tree: Tree) -> None:
    tree.disk("nvme0n1", "soc/nvme/nvme0")
    notes = Notes()
    (disk,) = collect_disks(tree.source, notes)
    assert (disk.namespace, disk.bus_path) == (1, None)
    assert "disks.0.busPath" in notes.missing


def test_a_serial_of_one_character_is_a_placeholder(tree: Tree) -> None:
    tree.disk("nvme0n1", NVME, device_serial="00000000\n")
    (disk,) = collected(tree)
    assert disk.serial is None


def test_an_nvme_disk_that_the_kernel_joins_is_the_disk_and_its_paths_are_none(tree: Tree) -> None:
    subsystem = "virtual/nvme-subsystem/nvme-subsys0"
    tree.disk("nvme0n1", subsystem, wwid=EUI, device_serial="NVME0001", device_model="Example")
    tree.disk("nvme0c0n1", NVME, wwid=EUI, hidden="1\n")
    tree.link(f"/sys/devices/{subsystem}/nvme0", f"sys/devices/{NVME}")
    tree.link("/sys/class/nvme/nvme0", f"sys/devices/{NVME}")
    (disk,) = collected(tree)
    assert (disk.name, disk.serial, disk.pci_bus_id) == ("nvme0n1", "NVME0001", "00000000:5E:00.0")


def test_a_disk_behind_a_volume_device_keeps_its_wide_domain(tree: Tree) -> None:
    tree.disk("nvme0n1", "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e1:00.0/nvme/nvme0", wwid=EUI)
    (disk,) = collected(tree)
    assert disk.pci_bus_id == "00010000:E1:00.0"
