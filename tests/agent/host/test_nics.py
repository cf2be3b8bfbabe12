from agent.host.answers import Cause, Missing, Notes
from agent.host.ethtool import parse_vf_macs
from agent.host.files import Fact
from agent.host.nics import collect_nics
from domain.availability import Availability
from domain.documents.nics import AttachedFabric, Nic, NicKind, NicsSection, Rdma, RdmaPort, Vf
from tests.agent.host.trees import Tree

PORT = "pci0000:00/0000:18:00.0"
OTHER_PORT = "pci0000:00/0000:18:00.1"
MAC = "b8:3f:d2:00:00:01"
OTHER_MAC = "b8:3f:d2:00:00:02"


def collected(tree: Tree) -> NicsSection:
    return collect_nics(tree.source, {}, Notes())


def names(tree: Tree) -> list[str]:
    return [nic.name for nic in collected(tree).nics]


def test_a_port_gives_its_facts(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC)
    tree.write(f"/sys/devices/{PORT}/numa_node", "1\n")
    tree.facts[Fact.NIC_FIRMWARE, "eno1"] = "28.41.1000"
    assert collected(tree).nics == (
        Nic(
            name="eno1",
            mac=MAC,
            permanent_mac=MAC,
            kind=NicKind.PHYSICAL,
            pci_bus_id="00000000:18:00.0",
            driver="mlx5_core",
            firmware="28.41.1000",
            numa_node=1,
        ),
    )


def test_links_of_workloads_and_of_the_kernel_never_enter(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC)
    for name in ("lo", "cali0a1b2c3d4e5", "veth12ab", "tap0", "dummy0", "ifb0"):
        tree.virtual_nic(name)
    tree.virtual_nic("docker0", "bridge", members=["veth12ab"])
    tree.virtual_nic("vxlan.calico", "vxlan", members=["eno1"])
    tree.virtual_nic("pod0", "macvlan", members=["eno1"])
    tree.write("/sys/class/net/bonding_masters", "bond0\n")
    assert names(tree) == ["eno1"]


def test_bonds_bridges_and_vlans_on_hardware_are_kept_with_their_kind(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC)
    tree.virtual_nic("bond0", "bond", members=["eno1"])
    tree.virtual_nic("bond0.20", "vlan", members=["bond0"])
    tree.virtual_nic("br0", "bridge", members=["bond0.20", "veth12ab"])
    kinds = {nic.name: nic.kind for nic in collected(tree).nics}
    expected = {"bond0": NicKind.BOND, "bond0.20": NicKind.VLAN, "br0": NicKind.BRIDGE, "eno1": NicKind.PHYSICAL}
    assert kinds == expected


def test_bond_members_keep_their_permanent_addresses(tree: Tree) -> None:
    bond_mac = MAC
    tree.nic("eno1", PORT, mac=bond_mac)
    folder = tree.nic("eno2", OTHER_PORT, mac=bond_mac)
    tree.facts[Fact.PERMANENT_MAC, "eno2"] = Missing(Cause.DENIED, "eno2")
    tree.write(f"{folder}/bonding_slave/perm_hwaddr", OTHER_MAC)
    tree.link(f"{folder}/master", "sys/devices/virtual/net/bond0")
    addresses = {nic.name: (nic.mac, nic.permanent_mac) for nic in collected(tree).nics}
    assert addresses == {"eno1": (bond_mac, MAC), "eno2": (bond_mac, OTHER_MAC)}


def test_an_address_is_only_taken_for_permanent_when_the_kernel_says_so(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC, addr_assign_type="0\n")
    tree.nic("eno2", OTHER_PORT, mac=OTHER_MAC, addr_assign_type="3\n")
    for name in ("eno1", "eno2"):
        tree.facts[Fact.PERMANENT_MAC, name] = "00:00:00:00:00:00"
    notes = Notes()
    first, second = collect_nics(tree.source, {}, notes).nics
    assert (first.permanent_mac, second.permanent_mac) == (MAC, None)
    assert notes.unavailable()["nics.1.permanentMac"] is Availability.UNKNOWN


def test_interfaces_over_usb_and_of_removable_buses_are_left_out(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC)
    tree.nic(
        "enxbe3af2b6059f", "pci0000:00/0000:00:14.0/usb1/1-11/1-11:2.0", mac="be:3a:f2:b6:05:9f", driver="cdc_ether"
    )
    tree.nic("bmc0", "platform/host-interface", mac="be:3a:f2:b6:05:a0", driver="cdc_ether")
    tree.nic("dock0", "pci0000:00/0000:40:00.0", mac="b8:3f:d2:00:00:40", driver="igc")
    tree.write("/sys/devices/pci0000:00/0000:40:00.0/removable", "removable\n")
    assert names(tree) == ["eno1"]


def test_representors_and_subfunctions_are_left_out(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC, phys_port_name="p0\n")
    tree.nic("eth7", f"{PORT}/slot", mac="ae:00:00:00:00:07", phys_port_name="pf0vf3\n")
    tree.nic("eth8", f"{PORT}/slot8", mac="ae:00:00:00:00:08", phys_port_name="c1pf0sf88\n")
    tree.nic("eth9", f"{PORT}/mlx5_core.sf.4", mac="ae:00:00:00:00:09")
    assert names(tree) == ["eno1"]


def test_virtual_functions_stay_with_their_parent_wherever_their_interface_is(tree: Tree) -> None:
    tree.nic("eno1", PORT, mac=MAC)
    for index, function in ((0, "0000:18:01.0"), (10, "0000:18:02.2"), (1, "0000:18:01.1")):
        tree.link(f"/sys/devices/{PORT}/virtfn{index}", f"sys/devices/pci0000:00/{function}")
    tree.facts[Fact.VF_MACS, "eno1"] = "0=b8:3f:d2:00:01:00,10=b8:3f:d2:00:01:0a"
    alone = collected(tree)
    assert alone.nics[0].vfs == (
        Vf(index=0, mac="b8:3f:d2:00:01:00", pci_bus_id="00000000:18:01.0"),
        Vf(index=1, pci_bus_id="00000000:18:01.1"),
        Vf(index=10, mac="b8:3f:d2:00:01:0a", pci_bus_id="00000000:18:02.2"),
    )
    tree.nic("eno1v0", "pci0000:00/0000:18:01.0", mac="b8:3f:d2:00:01:00")
    tree.link("/sys/devices/pci0000:00/0000:18:01.0/physfn", f"sys/devices/{PORT}")
    assert collected(tree) == alone


def test_a_virtual_function_passed_to_a_guest_says_so(tree: Tree) -> None:
    tree.nic("eth0", PORT, mac=MAC, driver="iavf")
    assert collected(tree).nics[0].kind is NicKind.VF


def test_infiniband_counts_by_the_last_eight_bytes(tree: Tree) -> None:
    address = "00:00:10:29:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:aa:bb:01"
    tree.nic("ib0", PORT, mac=address, type="32\n")
    (nic,) = collected(tree).nics
    assert (nic.mac, nic.permanent_mac) == ("b8:3f:d2:03:00:aa:bb:01",) * 2


def test_an_interface_of_another_infiniband_partition_stands_on_its_parent(tree: Tree) -> None:
    address = "00:00:10:29:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:aa:bb:01"
    tree.nic("ib0", PORT, mac=address, type="32\n")
    tree.nic("ib0.8001", PORT, mac=address.replace("10:29", "10:31"), type="32\n", parent="ib0\n")
    kinds = {nic.name: (nic.kind, nic.mac) for nic in collected(tree).nics}
    mac = "b8:3f:d2:03:00:aa:bb:01"
    assert kinds == {"ib0": (NicKind.PHYSICAL, mac), "ib0.8001": (NicKind.VLAN, mac)}


def test_a_virtio_interface_takes_the_node_of_its_pci_function(tree: Tree) -> None:
    tree.nic("eth0", f"{PORT}/virtio2", mac=MAC, driver="virtio_net")
    tree.write("/sys/bus/pci/devices/0000:18:00.0/numa_node", "0\n")
    (nic,) = collected(tree).nics
    assert (nic.numa_node, nic.pci_bus_id) == (0, "00000000:18:00.0")


def rdma(tree: Tree, name: str, device: str, *, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)") -> None:
    folder = f"/sys/devices/{device}/infiniband/{name}"
    port = {
        "link_layer": "InfiniBand\n",
        "state": state,
        "rate": rate,
        "gids/0": "fe80:0000:0000:0000:b83f:d203:00aa:bb02\n",
    }
    tree.write_all(f"{folder}/ports/1", port)
    tree.write_all(folder, {"node_guid": "b83f:d203:00aa:bb01\n", "fw_ver": "28.41.1000\n"})
    tree.link(f"{folder}/device", f"sys/devices/{device}")
    tree.link(f"/sys/class/infiniband/{name}", folder)


PORT_DOCUMENT = RdmaPort(port=1, guid="0xb83fd20300aabb02", link_layer="InfiniBand", rate_gbps=400)


def test_an_rdma_device_stands_with_the_interface_of_its_function(tree: Tree) -> None:
    tree.nic("ibp24s0", PORT, mac=MAC)
    rdma(tree, "mlx5_0", PORT)
    (nic,) = collected(tree).nics
    assert nic.rdma == Rdma(device="mlx5_0", node_guid="0xb83fd20300aabb01", ports=(PORT_DOCUMENT,))


def test_an_rdma_device_without_an_interface_is_an_adapter_all_the_same(tree: Tree) -> None:
    rdma(tree, "mlx5_4", PORT)
    tree.write("/sys/class/net/bonding_masters")
    (nic,) = collected(tree).nics
    assert (nic.name, nic.mac, nic.pci_bus_id, nic.firmware) == ("mlx5_4", None, "00000000:18:00.0", "28.41.1000")


def test_an_rdma_device_whose_place_cannot_be_read_is_not_said_to_be_off_the_bus(tree: Tree) -> None:
    tree.write("/sys/class/infiniband/mlx5_0/fw_ver", "28.41.1000\n")
    notes = Notes()
    (nic,) = collect_nics(tree.source, {}, notes).nics
    assert (nic.name, nic.pci_bus_id) == ("mlx5_0", None)
    assert notes.unavailable()["nics.0.pciBusId"] is Availability.UNKNOWN


def test_a_port_that_is_down_has_no_rate_and_the_fabric_is_as_slow_as_its_slowest(tree: Tree) -> None:
    rdma(tree, "mlx5_0", PORT)
    rdma(tree, "mlx5_1", OTHER_PORT, rate="200 Gb/sec (4X HDR)")
    rdma(tree, "mlx5_2", "pci0000:00/0000:19:00.0", state="1: DOWN", rate="10 Gb/sec (4X)")
    notes = Notes()
    section = collect_nics(tree.source, {"compute": ("mlx5_2", "mlx5_1", "mlx5_0")}, notes)
    assert section.fabrics == (AttachedFabric(name="compute", adapters=("mlx5_0", "mlx5_1", "mlx5_2"), rate_gbps=200),)
    assert notes.unavailable()["nics.2.rdma.ports.0.rateGbps"] is Availability.UNAVAILABLE


def test_software_rdma_is_no_adapter(tree: Tree) -> None:
    tree.write("/sys/devices/virtual/infiniband/rxe0/node_guid", "0000:0000:0000:0001\n")
    tree.link("/sys/class/infiniband/rxe0", "sys/devices/virtual/infiniband/rxe0")
    assert names(tree) == []


def test_the_macs_of_functions_are_read_from_a_link_message() -> None:
    def attribute(kind: int, payload: bytes) -> bytes:
        size = 4 + len(payload)
        return size.to_bytes(2, "little") + kind.to_bytes(2, "little") + payload + bytes(-size % 4)

    def function(index: int, mac: bytes) -> bytes:
        return attribute(1, attribute(1, index.to_bytes(4, "little") + mac.ljust(32, b"\0")))

    functions = (
        function(0, bytes.fromhex("b83fd2000100")) + function(1, b"") + function(2, bytes.fromhex("b83fd2000102"))
    )
    message = bytes(32) + attribute(3, b"eno1\0") + attribute(22 | 0x8000, functions)
    assert list(parse_vf_macs(message)) == [(0, "b8:3f:d2:00:01:00"), (2, "b8:3f:d2:00:01:02")]
