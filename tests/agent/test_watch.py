from pathlib import Path

import pytest

from agent.watch import hardware_fingerprint
from tests.agent.host.trees import PCI, Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.write("/proc/sys/kernel/random/boot_id", "boot-1")
    tree.nic("eno1", f"{PCI}/0000:00:03.0", mac="b8:3f:d2:00:00:01")
    tree.disk("nvme0n1", f"{PCI}/0000:00:04.0/nvme/nvme0")
    tree.write("/sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n")
    tree.write("/sys/bus/pci/devices/0000:19:00.0/vendor", "0x15b3\n")
    return tree


def test_the_fingerprint_names_what_has_hardware_behind_it(tree: Tree) -> None:
    assert hardware_fingerprint(tree.source) == {"boot boot-1", "net eno1", "disk nvme0n1", "pci 0000:18:00.0"}


def test_what_comes_and_goes_with_containers_changes_nothing(tree: Tree) -> None:
    before = hardware_fingerprint(tree.source)
    tree.virtual_nic("veth12ab")
    tree.write("/sys/devices/virtual/block/loop7/size", "8")
    tree.link("/sys/block/loop7", "/sys/devices/virtual/block/loop7")
    assert hardware_fingerprint(tree.source) == before


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/proc/sys/kernel/random/boot_id", "boot-2"),
        ("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de"),
        ("/sys/module/nvidia/version", "580.95.05"),
    ],
)
def test_a_boot_a_gpu_and_a_driver_change_it(tree: Tree, path: str, content: str) -> None:
    before = hardware_fingerprint(tree.source)
    tree.write(path, content)
    assert hardware_fingerprint(tree.source) != before
