from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory import inventory_of
from agent.simulator.material import Material
from agent.simulator.models import DRIVERS, server_of
from agent.simulator.node import Change, ChangeKind, NodeState, applied, boot_id, first_state, identity_key
from agent.simulator.sections import sections_of
from domain import mac
from domain.documents.disks import DisksSection
from domain.documents.gpus import Enumeration, GpusSection
from domain.documents.memory import MemorySection
from domain.documents.nics import NicsSection
from domain.sections import SECTION_NAMES, decode, encode, section_of

NODES = range(20)


def gpus_of(state: NodeState) -> GpusSection:
    found = section_of(sections_of(Material(1, state.index), state), GpusSection)
    assert found is not None
    return found


def state_of(node: int) -> NodeState:
    return first_state(Material(1, node))


@pytest.mark.parametrize("node", range(5))
def test_each_kind_of_machine_reports_eight_sections_that_the_server_takes(node: int) -> None:
    sections = sections_of(Material(1, node), state_of(node))
    assert tuple(sections) == SECTION_NAMES
    for name, section in sections.items():
        assert decode(name, encode(section)) == section


def test_the_first_five_nodes_are_one_of_each_kind() -> None:
    assert [server_of(node).key for node in range(5)] == ["h100", "h200", "b200", "l40s-8", "cpu"]
    assert {len(gpus_of(state_of(node)).gpus) for node in NODES} == {0, 4, 8}


@given(st.integers(0, 10), st.integers(0, 5000))
def test_the_same_seed_gives_the_same_bytes(seed: int, node: int) -> None:
    one, two = Material(seed, node), Material(seed, node)
    first = inventory_of(sections_of(one, first_state(one)))
    assert inventory_of(sections_of(two, first_state(two))).contents == first.contents
    assert identity_key(one) == identity_key(two)
    other = Material(seed + 1, node)
    assert inventory_of(sections_of(other, first_state(other))).digest != first.digest


def test_no_identity_of_a_fleet_is_used_twice() -> None:
    identifiers: list[str] = []
    for node in range(200):
        sections = sections_of(Material(1, node), state_of(node))
        gpus, nics = section_of(sections, GpusSection), section_of(sections, NicsSection)
        disks, memory = section_of(sections, DisksSection), section_of(sections, MemorySection)
        assert gpus is not None
        assert nics is not None
        assert disks is not None
        assert memory is not None
        identifiers += [f"{gpu.uuid} {gpu.serial}" for gpu in gpus.gpus]
        identifiers += [address for nic in nics.nics if (address := mac.identity(nic.permanent_mac))]
        identifiers += [f"{disk.wwn} {disk.serial}" for disk in disks.disks]
        assert all(mac.identity(nic.permanent_mac) for nic in nics.nics)
        places = [gpu.pci_bus_id for gpu in gpus.gpus] + [nic.pci_bus_id for nic in nics.nics]
        places += [disk.pci_bus_id for disk in disks.disks]
        assert len(set(places)) == len(places)
    assert len(set(identifiers)) == len(identifiers) > 4000


def test_replaced_adapters_never_take_an_address_of_the_fleet() -> None:
    addresses = [
        Material(1, node).mac(slot, generation, intel=False)
        for node in range(500)
        for slot in range(12)
        for generation in range(3)
    ]
    assert len(set(addresses)) == len(addresses)


def test_a_lost_gpu_is_missing_from_a_complete_enumeration_and_comes_back() -> None:
    before = state_of(0)
    lost = applied(before, Change(0, ChangeKind.GPU_LOST, 3))
    assert len(gpus_of(lost).gpus) == 7
    assert gpus_of(lost).enumeration is Enumeration.COMPLETE
    assert gpus_of(before).gpus[3].uuid not in {gpu.uuid for gpu in gpus_of(lost).gpus}
    assert gpus_of(applied(lost, Change(0, ChangeKind.GPU_BACK, 3))) == gpus_of(before)


def test_a_cut_enumeration_says_so_and_why() -> None:
    cut = gpus_of(applied(state_of(0), Change(0, ChangeKind.ENUMERATION_CUT)))
    assert cut.enumeration is Enumeration.INCOMPLETE
    assert cut.reason == "the driver counts 8 GPUs, 7 answer"


def test_a_new_card_sits_in_the_old_ones_place() -> None:
    before, after = gpus_of(state_of(0)), gpus_of(applied(state_of(0), Change(0, ChangeKind.GPU_REPLACED, 2)))
    assert before.gpus[2].pci_bus_id == after.gpus[2].pci_bus_id
    assert before.gpus[2].uuid != after.gpus[2].uuid
    assert before.gpus[:2] == after.gpus[:2]


def test_mig_layouts_come_in_turn_and_end_with_none() -> None:
    state = state_of(0)
    counts = []
    for _ in range(4):
        state = applied(state, Change(0, ChangeKind.MIG_CHANGED, 0))
        counts.append(len(gpus_of(state).gpus[0].mig_instances))
    assert counts == [2, 4, 7, 0]


def test_a_driver_upgrade_moves_gpus_and_fabric_manager_together() -> None:
    state = replace(state_of(0), driver=0)
    after = applied(state, Change(0, ChangeKind.DRIVER_UPGRADED))
    assert gpus_of(after).driver_version == DRIVERS[1][0]
    assert DRIVERS[1][0].encode() in encode(sections_of(Material(1, 0), after)["os"])


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (ChangeKind.DISK_REPLACED, {"disks"}),
        (ChangeKind.NIC_REPLACED, {"nics"}),
        (ChangeKind.DIMM_LOST, {"memory"}),
        (ChangeKind.BIOS_UPGRADED, {"system"}),
        (ChangeKind.KERNEL_UPGRADED, {"os"}),
        (ChangeKind.GPU_REPLACED, {"gpus"}),
        (ChangeKind.DRIVER_UPGRADED, {"gpus", "os"}),
        (ChangeKind.AGENT_RESTARTED, set()),
    ],
)
def test_a_change_touches_its_own_sections_only(kind: ChangeKind, changed: set[str]) -> None:
    before = sections_of(Material(1, 0), state_of(0))
    after = sections_of(Material(1, 0), applied(state_of(0), Change(0, kind, 1)))
    assert {name for name in before if encode(before[name]) != encode(after[name])} == changed


def test_what_needs_a_reboot_gets_another_boot_id() -> None:
    material = Material(1, 0)
    state = applied(state_of(0), Change(0, ChangeKind.KERNEL_UPGRADED))
    assert boot_id(material, state.boots) != boot_id(material, state_of(0).boots)
