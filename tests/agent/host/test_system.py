import pytest

from agent.host.answers import Cause, Missing, Notes
from agent.host.files import Fact
from agent.host.system import collect_system
from agent.host.virtualization import virtualization
from domain.availability import Availability
from tests.agent.host.trees import Tree, write_server

FLAGS_OF_A_GUEST = "processor : 0\nflags : fpu hypervisor\n"
FLAGS_OF_METAL = "processor : 0\nflags : fpu vmx\n"
FIRST_NAMESPACE = "pid:[4026531836]"
OTHER_NAMESPACE = "pid:[4026532412]"


def in_namespace(tree: Tree, namespace: str) -> None:
    link = tree.root / "proc/self/ns/pid"
    link.parent.mkdir(parents=True)
    link.symlink_to(namespace)


def test_a_server_gives_its_firmware_and_controller(tree: Tree) -> None:
    write_server(tree)
    notes = Notes()
    section = collect_system(tree.source, notes)
    assert section.product_uuid == "4c4c4544-0051-4210-8031-b8c04f4a3533"
    assert (section.system_serial, section.board_serial, section.chassis_serial) == ("SRV0001", "BRD0001", "CHS0001")
    assert (section.bios_version, section.bios_date, section.bmc_version) == ("2.4.1", "03/01/2025", "7.10")
    assert section.virtualization == "none"
    assert notes.missing == {}


def test_placeholders_are_reported_and_blanks_are_unknown(tree: Tree) -> None:
    tree.write("/sys/class/dmi/id/product_serial", "To be filled by O.E.M.\n")
    tree.write("/sys/class/dmi/id/board_serial", " \n")
    notes = Notes()
    section = collect_system(tree.source, notes)
    assert section.system_serial == "To be filled by O.E.M."
    assert section.board_serial is None
    assert notes.unavailable()["boardSerial"] is Availability.UNKNOWN
    assert notes.unavailable()["chassisSerial"] is Availability.UNSUPPORTED


def test_an_arm_board_without_smbios_is_named_by_its_device_tree(tree: Tree) -> None:
    tree.write("/sys/firmware/devicetree/base/model", "Example Orin Developer Kit\0")
    tree.write("/sys/firmware/devicetree/base/serial-number", "1420000000001\0")
    section = collect_system(tree.source, Notes())
    assert (section.product, section.system_serial) == ("Example Orin Developer Kit", "1420000000001")
    assert section.virtualization == "none"


@pytest.mark.parametrize(
    ("vendor", "product", "cpuinfo", "expected"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", FLAGS_OF_A_GUEST, "qemu"),
        ("Amazon EC2", "p5.48xlarge", FLAGS_OF_A_GUEST, "amazon"),
        ("Amazon EC2", "m7i.metal-48xl", FLAGS_OF_METAL, "none"),
        ("Amazon EC2", "c7g.metal", "CPU implementer : 0x41\n", "none"),
        ("Amazon EC2", "c7g.large", "CPU implementer : 0x41\n", "amazon"),
        ("Microsoft Corporation", "Virtual Machine", FLAGS_OF_A_GUEST, "microsoft"),
        ("Microsoft Corporation", "Surface", FLAGS_OF_METAL, "none"),
        ("QEMU", "Standard PC with a hidden hypervisor bit", FLAGS_OF_METAL, "qemu"),
        ("Nobody", "Box", FLAGS_OF_A_GUEST, "hypervisor"),
        ("Example Corp.", "Node 9000", FLAGS_OF_METAL, "none"),
    ],
)
def test_the_hypervisor_is_told_by_processor_and_firmware(
    tree: Tree, vendor: str, product: str, cpuinfo: str, expected: str
) -> None:
    tree.write("/sys/class/dmi/id/sys_vendor", vendor)
    tree.write("/sys/class/dmi/id/product_name", product)
    tree.write("/proc/cpuinfo", cpuinfo)
    assert virtualization(tree.source) == expected


def test_a_guest_without_firmware_is_told_by_its_clock(tree: Tree) -> None:
    tree.write("/proc/cpuinfo", FLAGS_OF_A_GUEST)
    tree.write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock \n")
    assert virtualization(tree.source) == "kvm"


def test_the_first_domain_of_xen_is_bare_metal(tree: Tree) -> None:
    tree.write("/sys/hypervisor/type", "xen\n")
    tree.write("/proc/cpuinfo", FLAGS_OF_A_GUEST)
    assert virtualization(tree.source) == "xen"
    tree.write("/proc/xen/capabilities", "control_d\n")
    assert virtualization(tree.source) == "none"


def test_container_markers_count_only_outside_the_first_pid_namespace(tree: Tree) -> None:
    tree.write("/proc/cpuinfo", FLAGS_OF_METAL)
    tree.write("/.dockerenv")
    in_namespace(tree, FIRST_NAMESPACE)
    assert virtualization(tree.source) == "none"


def test_a_container_is_named_by_its_runtime(tree: Tree) -> None:
    in_namespace(tree, OTHER_NAMESPACE)
    assert virtualization(tree.source) == "container"
    tree.write("/.dockerenv")
    assert virtualization(tree.source) == "docker"
    tree.facts[Fact.CONTAINER_VARIABLE, ""] = "lxc"
    assert virtualization(tree.source) == "lxc"


def test_a_host_that_says_nothing_is_unknown(tree: Tree) -> None:
    answer = virtualization(tree.source)
    assert isinstance(answer, Missing)
    assert answer.cause is Cause.BLANK
