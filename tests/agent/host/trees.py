"""Small hosts for the tests: files under a folder, and the facts that no file holds."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.host.answers import Cause, Missing
from agent.host.files import Fact, TreeSource, Value

PCI = "devices/pci0000:00"


class Tree:
    """A host to write; what is not said of a fact is absent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.facts: dict[tuple[Fact, str], Value | Missing] = {(Fact.MACHINE, ""): "x86_64"}

    @property
    def source(self) -> TreeSource:
        return TreeSource(self.root, self._ask)

    def _ask(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        absent = Missing(Cause.ABSENT, f"{fact}: not said")
        return {name: self.facts.get((fact, name), absent) for name in arguments}

    def write(self, path: str, content: str | bytes = "") -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def write_all(self, folder: str, contents: Mapping[str, str | bytes]) -> None:
        for name, content in contents.items():
            self.write(f"{folder}/{name}", content)

    def link(self, path: str, target: str) -> None:
        """Link `path` to `target`, a path from the root; the link is relative, as those of sysfs are."""
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        above = "../" * (len(Path(path.lstrip("/")).parts) - 1)
        link.symlink_to(above + target.lstrip("/"))

    def nic(self, name: str, device: str, *, mac: str, driver: str = "mlx5_core", **files: str) -> str:
        """Write an interface on a device such as `pci0000:00/0000:18:00.0`; return its folder."""
        folder = f"/sys/devices/{device}/net/{name}"
        self.write_all(folder, {"address": mac, "type": "1", "uevent": f"INTERFACE={name}\n", **files})
        self.link(f"{folder}/device", f"sys/devices/{device}")
        if not (self.root / f"sys/devices/{device}/driver").is_symlink():
            self.link(f"/sys/devices/{device}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"/sys/class/net/{name}", folder)
        self.facts[Fact.PERMANENT_MAC, name] = mac
        return folder

    def virtual_nic(self, name: str, device_type: str = "", members: Iterable[str] = (), **files: str) -> str:
        """Write an interface without hardware, standing on its members."""
        folder = f"/sys/devices/virtual/net/{name}"
        event = f"DEVTYPE={device_type}\nINTERFACE={name}\n" if device_type else f"INTERFACE={name}\n"
        self.write_all(folder, {"address": "02:00:00:00:00:99", "type": "1", "uevent": event, **files})
        self.link(f"/sys/class/net/{name}", folder)
        for member in members:
            self.link(f"{folder}/lower_{member}", f"sys/class/net/{member}")
        return folder

    def disk(self, name: str, device: str, *, sectors: int = 4096, **files: str | bytes) -> str:
        """Write a disk on a device path; files named `device_x` go to its device. Return its folder."""
        folder = f"/sys/devices/{device}/block/{name}" if "nvme" not in name else f"/sys/devices/{device}/{name}"
        self.write_all(folder, {"size": str(sectors), "queue/rotational": "0"})
        if not (self.root / f"{folder}/device".lstrip("/")).is_symlink():
            self.link(f"{folder}/device", f"sys/devices/{device}")
        for file, content in files.items():
            inner = file.startswith("device_")
            target = f"/sys/devices/{device}/{file.removeprefix('device_')}" if inner else f"{folder}/{file}"
            self.write(target, content)
        self.link(f"/sys/block/{name}", folder)
        return folder


def mount(device: str, root: str, point: str, kind: str, source: str) -> str:
    return f"30 1 {device} {root} {point} rw,relatime shared:1 - {kind} {source} rw\n"


def memory_device(
    locator: str, bank: str, serial: str, part: str, *, size: int = 0x7FFF, extended_mib: int = 65536, kind: int = 0x22
) -> bytes:
    """Build an SMBIOS type 17 structure of version 3.2 (0x54 bytes)."""
    body = bytearray(0x54)
    body[0], body[1] = 17, 0x54
    body[0x0C:0x0E] = size.to_bytes(2, "little")
    body[0x12] = kind
    body[0x15:0x17] = (5600).to_bytes(2, "little")
    body[0x1C:0x20] = extended_mib.to_bytes(4, "little")
    body[0x20:0x22] = (4800).to_bytes(2, "little")
    texts = {0x10: locator, 0x11: bank, 0x18: serial, 0x1A: part}
    # An empty string has no place in a structure: its number is 0.
    for number, offset in enumerate((offset for offset, text in texts.items() if text), start=1):
        body[offset] = number
    return bytes(body) + _strings(*filter(None, texts.values()))


def processor(version: str) -> bytes:
    """Build an SMBIOS type 4 structure whose version string is its first."""
    body = bytearray(0x30)
    body[0], body[1], body[0x10] = 4, 0x30, 1
    return bytes(body) + _strings(version)


END_OF_TABLE = bytes([127, 4, 0, 0, 0, 0])


def _strings(*texts: str) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts) + b"\0" if texts else b"\0\0"


def write_server(tree: Tree) -> None:
    """Write a whole bare-metal server: every collector finds something."""
    dmi = {
        "product_uuid": "4c4c4544-0051-4210-8031-b8c04f4a3533\n",
        "product_serial": "SRV0001\n",
        "board_serial": "BRD0001\n",
        "chassis_serial": "CHS0001\n",
        "sys_vendor": "Example Corp.\n",
        "product_name": "Node 9000\n",
        "board_name": "0XYZ12\n",
        "bios_vendor": "Example Firmware\n",
        "bios_version": "2.4.1\n",
        "bios_date": "03/01/2025\n",
    }
    tree.write_all("/sys/class/dmi/id", dmi)
    tree.write("/sys/class/ipmi/ipmi0/device/bmc/firmware_revision", "7.10\n")
    write_x86_cpus(tree)
    tree.write("/proc/meminfo", "MemTotal:       263739412 kB\nMemFree: 5 kB\nSwapTotal:       8388604 kB\n")
    for node in (0, 1):
        tree.write(f"/sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal:       131869706 kB\n")
    tree.write("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "16\n")
    tree.write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n")
    table = memory_device("A1", "BANK 0", "DIMM0001", "HMCG94AEBRA") + memory_device(
        "B1", "BANK 1", "DIMM0002", "HMCG94"
    )
    tree.write("/sys/firmware/dmi/tables/DMI", table + END_OF_TABLE)
    for function in (0, 1):
        name = f"eno{function + 1}np{function}"
        tree.nic(name, f"pci0000:00/0000:18:00.{function}", mac=f"b8:3f:d2:00:00:0{function + 1}")
        tree.facts[Fact.NIC_FIRMWARE, name] = "28.41.1000"
        tree.write(f"/sys/devices/pci0000:00/0000:18:00.{function}/numa_node", "0\n")
    tree.disk(
        "nvme0n1",
        "pci0000:00/0000:5e:00.0/nvme/nvme0",
        wwid="eui.36344830525000010025384700000001\n",
        nsid="1\n",
        device_serial="NVME0001            \n",
        device_model="Example PM9A3 3.84TB                    \n",
    )
    tree.write("/proc/self/mountinfo", mount("259:2", "/", "/", "ext4", "/dev/nvme0n1p2"))
    tree.facts[Fact.FILESYSTEM_BYTES, "/"] = 3_779_012_345_856
    tree.write("/etc/os-release", 'ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"\n')
    tree.write("/proc/sys/kernel/osrelease", "6.8.0-60-generic\n")


def write_x86_cpus(tree: Tree) -> None:
    """Write two sockets of two cores; only the first socket's cores have two threads."""
    blocks = "".join(
        f"processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Example(R) Xeon(R) 8480+\n"
        f"cpu MHz\t\t: {2000 + cpu}.1\nbogomips\t: 4000.00\nflags\t\t: vmx fpu avx\n\n"
        for cpu in range(6)
    )
    tree.write("/proc/cpuinfo", blocks)
    tree.write("/sys/devices/system/cpu/online", "0-5\n")
    tree.write("/sys/devices/system/cpu/isolated", "\n")
    for cpu, (package, threads) in enumerate([(0, "0,2"), (0, "1,3"), (0, "0,2"), (0, "1,3"), (1, "4"), (1, "5")]):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        tree.write_all(
            folder, {"physical_package_id": f"{package}\n", "core_id": "0\n", "core_cpus_list": f"{threads}\n"}
        )
    tree.write("/sys/devices/system/node/node0/cpulist", "0-3\n")
    tree.write("/sys/devices/system/node/node1/cpulist", "4-5\n")
