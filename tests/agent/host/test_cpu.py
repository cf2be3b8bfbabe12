import pytest

from agent.host.answers import Notes
from agent.host.cpu import collect_cpu, cpu_numbers
from domain.availability import Availability
from domain.documents.cpu import CpuSection, NumaCpus
from tests.agent.host.trees import END_OF_TABLE, Tree, processor, write_x86_cpus

ARM_CORE = (
    "processor\t: {cpu}\nBogoMIPS\t: 50.00\nFeatures\t: {features}\nCPU implementer\t: {maker}\nCPU part\t: {part}\n\n"
)


def arm(*parts: tuple[str, str], features: str = "fp asimd") -> str:
    return "".join(
        ARM_CORE.format(cpu=cpu, maker=maker, part=part, features=features) for cpu, (maker, part) in enumerate(parts)
    )


def collected(tree: Tree, cpuinfo: str) -> CpuSection:
    tree.write("/proc/cpuinfo", cpuinfo)
    return collect_cpu(tree.source, Notes())


def test_cores_and_sockets_are_counted_where_threads_do_not_multiply(tree: Tree) -> None:
    write_x86_cpus(tree)
    notes = Notes()
    section = collect_cpu(tree.source, notes)
    assert (section.sockets, section.cores, section.threads) == (2, 4, 6)
    assert section.model == "Example(R) Xeon(R) 8480+"
    assert section.vendor == "GenuineIntel"
    assert section.flags == ("avx", "fpu", "vmx")
    assert section.isolated == ""
    assert notes.missing == {}


def test_a_moving_clock_changes_nothing(tree: Tree) -> None:
    write_x86_cpus(tree)
    before = collect_cpu(tree.source, Notes())
    content = (tree.root / "proc/cpuinfo").read_text()
    tree.write("/proc/cpuinfo", content.replace("cpu MHz\t\t: 2000", "cpu MHz\t\t: 3512").replace("4000.00", "4000.18"))
    assert collect_cpu(tree.source, Notes()) == before


def test_old_kernels_name_the_threads_of_a_core_otherwise(tree: Tree) -> None:
    tree.write("/sys/devices/system/cpu/online", "0-1")
    for cpu in (0, 1):
        folder = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        tree.write_all(folder, {"physical_package_id": "0", "thread_siblings_list": "0-1"})
    section = collected(tree, "processor : 0\n")
    assert (section.sockets, section.cores, section.threads) == (1, 1, 2)


@pytest.mark.parametrize(
    ("parts", "model", "vendor"),
    [
        ([("0x41", "0xd0c"), ("0x41", "0xd0c")], "Neoverse-N1", "ARM"),
        ([("0x41", "0xd4f")], "Neoverse-V2", "ARM"),
        ([("0x70", "0x662")], "implementer 0x70 part 0x662", "Phytium"),
        ([("0x99", "0x001")], "implementer 0x99 part 0x001", "implementer 0x99"),
        (
            [("0x41", "0xd46"), ("0x41", "0xd4e"), ("0x41", "0xd47"), ("0x41", "0xd4d")],
            "Cortex-A510 + Cortex-A710 + Cortex-A715 + Cortex-X3",
            "ARM",
        ),
    ],
)
def test_arm_without_a_model_name_is_named_by_implementer_and_part(
    tree: Tree, parts: list[tuple[str, str]], model: str, vendor: str
) -> None:
    section = collected(tree, arm(*parts))
    assert (section.model, section.vendor) == (model, vendor)


def test_the_firmware_tells_chips_with_the_same_core_apart(tree: Tree) -> None:
    tree.write("/sys/firmware/dmi/tables/DMI", processor("Example Altra Q80-30") + END_OF_TABLE)
    assert collected(tree, arm(("0x41", "0xd0c"))).model == "Neoverse-N1 (Example Altra Q80-30)"


def test_flags_are_those_that_every_cpu_has(tree: Tree) -> None:
    mixed = arm(("0x41", "0xd46"), features="fp sve") + arm(("0x41", "0xd4e"), features="asimd fp")
    assert collected(tree, mixed).flags == ("fp",)


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        (
            "Processor : ARMv6 rev 5\nFeatures : swp\nCPU implementer : 0x41\nCPU part : 0xb36\n",
            "implementer 0x41 part 0xb36",
        ),
        ("system type : generic\n\nprocessor : 0\nModel Name : Loongson-3A5000\nFeatures : lam\n", "Loongson-3A5000"),
        ("system type : X\nprocessor : 0\ncpu model : Cavium Octeon+ V0.1\nisa : mips1\n", "Cavium Octeon+ V0.1"),
        (
            "processor : 0\ncpu : POWER9, altivec supported\nrevision : 2.1\n\nmodel : 8335-GTH\n",
            "POWER9, altivec supported",
        ),
        ("processor : 0\nhart : 0\nisa : rv64imafdc\n", "rv64imafdc"),
        ("vendor_id : IBM/S390\nfeatures : zarch\nprocessor 0: version = FF,  machine = 3931\n", "machine 3931"),
        ("processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 26\n", "GenuineIntel family 6 model 26"),
    ],
)
def test_every_architecture_gives_what_it_has(tree: Tree, cpuinfo: str, model: str) -> None:
    assert collected(tree, cpuinfo).model == model


def test_without_a_topology_in_sysfs_the_ids_of_cpuinfo_are_counted(tree: Tree) -> None:
    blocks = [f"cpu number : {cpu}\nphysical id : 2\ncore id : {cpu // 2}\n" for cpu in range(4)]
    section = collected(tree, "vendor_id : IBM/S390\n\n" + "\n".join(blocks))
    assert (section.sockets, section.cores, section.threads) == (1, 2, 4)


def test_the_name_that_old_arm_kernels_write_first_hides_no_cpu(tree: Tree) -> None:
    section = collected(tree, "Processor : ARMv7 rev 5 (v7l)\nprocessor : 0\n\nprocessor : 1\n\nFeatures : swp\n")
    assert (section.model, section.threads) == ("ARMv7 rev 5 (v7l)", 2)


def test_a_package_that_the_platform_does_not_number_is_not_guessed(tree: Tree) -> None:
    tree.write("/sys/devices/system/cpu/online", "0\n")
    tree.write_all("/sys/devices/system/cpu/cpu0/topology", {"physical_package_id": "-1", "core_cpus_list": "0"})
    tree.write("/proc/cpuinfo", arm(("0x41", "0xd0c")))
    notes = Notes()
    assert collect_cpu(tree.source, notes).sockets is None
    assert notes.unavailable()["sockets"] is Availability.UNSUPPORTED


def test_numa_nodes_without_cpus_are_nodes(tree: Tree) -> None:
    tree.write("/sys/devices/system/node/node0/cpulist", "0-71\n")
    for node in (1, 2, 10):
        tree.write(f"/sys/devices/system/node/node{node}/cpulist", "\n")
    expected = (NumaCpus(id=0, cpus="0-71"), NumaCpus(id=1), NumaCpus(id=2), NumaCpus(id=10))
    assert collected(tree, "processor : 0\n").numa_nodes == expected


def test_isolated_cpus_are_a_kernel_list(tree: Tree) -> None:
    tree.write("/sys/devices/system/cpu/isolated", "2-3,6\n")
    assert collected(tree, "processor : 0\n").isolated == "2-3,6"


def test_kernel_lists_expand() -> None:
    assert cpu_numbers("0-2,8\n") == (0, 1, 2, 8)
    assert cpu_numbers(" \n") == ()
    with pytest.raises(ValueError, match="not a kernel list"):
        cpu_numbers("0-")
