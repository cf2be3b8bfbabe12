import random
import threading
from collections.abc import Iterator, Mapping

import msgspec
import pytest

from agent.host import inventory
from agent.host.answers import Missing
from agent.host.deadline import Probes
from agent.host.files import READ_BYTES_MAX, TreeSource
from agent.host.inventory import collect, collect_with_reasons
from domain.availability import Availability
from domain.documents.document import Section
from domain.sections import decode, encode
from tests.agent.host.trees import Tree, mount, write_server

HOST_SECTIONS = ["system", "cpu", "memory", "nics", "disks", "os", "images"]


class ShuffledSource(TreeSource):
    """Lists folders in another order every time, as a filesystem may."""

    def entries(self, path: str) -> tuple[str, ...] | Missing:
        names = super().entries(path)
        return names if isinstance(names, Missing) else tuple(random.sample(names, len(names)))


class BrokenSource(TreeSource):
    """Fails in a way that no collector expects, below some paths."""

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        if path.startswith("/sys/class/dmi"):
            raise RuntimeError("a bug")
        return super().read(path, limit)


def encoded(sections: Mapping[str, Section]) -> dict[str, bytes]:
    return {name: encode(section) for name, section in sections.items()}


def wide(tree: Tree) -> None:
    """Write a server with many of everything that comes in listings."""
    write_server(tree)
    for number in range(12):
        tree.nic(f"ens{number}", f"pci0000:00/0000:2{number:x}:00.0", mac=f"b8:3f:d2:00:02:{number:02x}")
        tree.link(
            f"/sys/devices/pci0000:00/0000:20:00.0/virtfn{number}", f"sys/devices/pci0000:00/0000:20:01.{number % 8}"
        )
        device = f"pci0000:00/0000:3b:00.0/host{number}/rport-{number}:0-0/target{number}:0:0/{number}:0:0:1"
        tree.disk(f"sd{chr(97 + number)}", device, device_wwid=f"naa.600a09800000000{number % 4}")
        tree.write(f"/sys/kernel/mm/hugepages/hugepages-{1 << number}kB/nr_hugepages", "0")
        tree.write(f"/sys/devices/system/node/node{number}/cpulist", "")
        tree.write(f"/sys/devices/system/node/node{number}/meminfo", f"Node {number} MemTotal: 1024 kB\n")


def test_every_section_of_a_server_decodes_and_names_nothing_it_has(tree: Tree) -> None:
    write_server(tree)
    sections = collect(tree.source)
    assert list(sections) == HOST_SECTIONS
    for name, section in sections.items():
        assert decode(name, encode(section)) == section
        built = msgspec.to_builtins(section)
        assert [place for place in section.unavailable if value_at(built, place) is not None] == []
    assert set(sections["disks"].unavailable) | set(sections["nics"].unavailable) == set()


def value_at(document: object, place: str) -> object:
    for part in place.split("."):
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list | tuple):
            document = document[int(part)] if int(part) < len(document) else None
    return document


def test_listings_in_any_order_give_equal_bytes(tree: Tree) -> None:
    wide(tree)
    first = encoded(collect(tree.source))
    for _ in range(10):
        assert encoded(collect(ShuffledSource(tree.root, tree.source.ask))) == first


def test_a_collector_that_fails_does_not_touch_the_others(tree: Tree) -> None:
    write_server(tree)
    sections = collect_with_reasons(BrokenSource(tree.root, tree.source.ask))
    system = sections["system"]
    assert set(system.section.unavailable.values()) == {Availability.TEMPORARILY_FAILED}
    assert "a bug" in system.missing["productUuid"].detail
    assert sections["cpu"].section == collect(tree.source)["cpu"]


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_collector_that_hangs_is_given_up_and_not_started_again(
    tree: Tree, release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_server(tree)
    reads: list[str] = []

    class HangingSource(TreeSource):
        def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
            if path == "/proc/self/mountinfo":
                reads.append(path)
                release.wait(30)
            return super().read(path, limit)

    monkeypatch.setattr(inventory, "SECTION_SECONDS_MAX", 0.3)
    probes = Probes()
    source = HangingSource(tree.root, tree.source.ask)
    for _ in range(2):
        sections = collect(source, probes=probes)
        expected = {"disks": Availability.TEMPORARILY_FAILED, "filesystems": Availability.TEMPORARILY_FAILED}
        assert sections["disks"].unavailable == expected
        assert sections["os"] == collect(tree.source)["os"]
    assert len(reads) == 1


def test_container_links_that_come_and_go_change_no_bytes(tree: Tree) -> None:
    wide(tree)
    before = encoded(collect(tree.source))
    for number in range(50):
        tree.virtual_nic(f"cali{number:011x}")
    lines = (tree.root / "proc/self/mountinfo").read_text()
    tree.write("/proc/self/mountinfo", lines + mount("0:99", "/", "/run/netns/x", "nsfs", "nsfs"))
    assert encoded(collect(tree.source)) == before
