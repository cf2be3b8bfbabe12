from agent.host.answers import Notes
from agent.host.memory import collect_memory
from agent.host.smbios import structures
from domain.availability import Availability
from domain.documents.memory import Dimm, HugePages, NumaMemory
from tests.agent.host.trees import END_OF_TABLE, Tree, memory_device, write_server

TABLE = "/sys/firmware/dmi/tables/DMI"
GIB = 1 << 30


def test_a_server_gives_its_memory(tree: Tree) -> None:
    write_server(tree)
    notes = Notes()
    section = collect_memory(tree.source, notes)
    assert section.total_bytes == 263739412 * 1024
    assert section.swap_bytes == 8388604 * 1024
    assert section.numa_nodes == tuple(NumaMemory(id=node, total_bytes=131869706 * 1024) for node in (0, 1))
    assert section.huge_pages == (HugePages(size_kib=2048, count=0), HugePages(size_kib=1048576, count=16))
    first = Dimm(
        locator="A1", size_bytes=64 * GIB, type="DDR5", speed_mts=4800, part_number="HMCG94AEBRA", serial="DIMM0001"
    )
    assert section.dimms[0] == first
    assert notes.missing == {}


def test_a_node_of_cpus_alone_is_no_node_with_memory(tree: Tree) -> None:
    tree.write("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1024 kB\n")
    tree.write("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       0 kB\n")
    assert collect_memory(tree.source, Notes()).numa_nodes == (NumaMemory(id=0, total_bytes=1 << 20),)


def test_empty_slots_are_no_modules_and_blank_serials_are_unknown(tree: Tree) -> None:
    table = memory_device("A1", "", "NO DIMM", "Not Specified", size=32768 | 512) + memory_device(
        "A2", "", "", "", size=0
    )
    tree.write(TABLE, table + END_OF_TABLE)
    notes = Notes()
    (dimm,) = collect_memory(tree.source, notes).dimms
    assert dimm == Dimm(locator="A1", size_bytes=512 * 1024, type="DDR5", speed_mts=4800)
    assert notes.unavailable()["dimms.0.serial"] is Availability.UNKNOWN


def test_slots_that_boards_name_alike_are_told_apart_by_bank(tree: Tree) -> None:
    table = memory_device("DIMM 1", "P1", "S2", "X") + memory_device("DIMM 1", "P0", "S1", "X")
    tree.write(TABLE, table + END_OF_TABLE)
    assert [dimm.locator for dimm in collect_memory(tree.source, Notes()).dimms] == ["P0 DIMM 1", "P1 DIMM 1"]


def test_a_table_cut_short_ends_at_the_last_whole_structure() -> None:
    whole = memory_device("A1", "", "S1", "X")
    assert [item.string(0x10) for item in structures(whole + whole[:-20])] == ["A1"]
    assert list(structures(b"\x11\x00\x00\x00")) == []


def test_memory_nobody_may_read_is_named(tree: Tree) -> None:
    notes = Notes()
    section = collect_memory(tree.source, notes)
    assert section.total_bytes is None
    assert set(notes.missing) == {"totalBytes", "swapBytes", "hugePages", "numaNodes", "dimms"}
