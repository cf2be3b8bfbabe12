"""Machines of the walk as they stand in the rack, and what their agents report of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

DRIVER: Final = "580.95.05"
NAMES: Final = {"H100": "NVIDIA H100 80GB HBM3", "A100": "NVIDIA A100-SXM4-80GB", "other": "NVIDIA MADE UP 9000"}
"""By the family that rule 4 gives them."""
SECTIONS: Final = ("system", "gpus", "nics", "disks", "os", "images")


@dataclass(frozen=True)
class Card:
    """A GPU: its family, its MIG mode now and after the next reset, and its instances."""

    uuid: str
    family: str
    current: bool = False
    pending: bool = False
    layout: tuple[tuple[int, int], ...] = ()
    lost: bool = False

    def document(self, place: int) -> dict[str, Any]:
        """Return it as the `gpus` section has it."""
        return {
            "uuid": self.uuid,
            "name": NAMES[self.family],
            "pciBusId": f"00000000:{place + 16:02X}:00.0",
            "index": place,
            "vramMiB": 81559,
            "migMode": {"current": self.current, "pending": self.pending},
            "migInstances": [{"gi": gi, "ci": ci, "profile": "1g.10gb", "memoryMiB": 9984} for gi, ci in self.layout],
            "lost": self.lost or None,
        }


@dataclass
class Machine:
    """What is in one machine; without functions the port itself is out (None)."""

    number: int
    cards: dict[str, Card] = field(default_factory=dict)
    functions: int | None = 1
    disks: frozenset[int] = frozenset({1})
    images: frozenset[str] = frozenset()
    kernel: str = "6.1.0"

    @property
    def port(self) -> str:
        """The address of its network port."""
        return f"0c:42:a1:00:00:{self.number:02x}"

    def disk_ids(self) -> set[str]:
        """Return its disks by their ids."""
        return {f"0x5000c500a1b2c{self.number:02}{disk}" for disk in self.disks}

    def report(self, enumeration: str, listed: Iterable[str], names: Iterable[str]) -> "Report":
        """Return what its agent says: of its cards the listed ones, and no more sections than named."""
        cards = {uuid: self.cards[uuid] for uuid in sorted(listed)}
        return Report(
            sections={
                name: document for name, document in self._documents(enumeration, cards).items() if name in names
            },
            enumeration=enumeration,
            cards=cards,
            port=self.port,
            functions=self.functions,
            disks=frozenset(self.disk_ids()),
            images=self.images,
            kernel=self.kernel,
        )

    def _documents(self, enumeration: str, cards: dict[str, Card]) -> dict[str, dict[str, Any]]:
        functions = [{"index": number} for number in range(self.functions or 0)]
        port = {"name": "eth0", "permanentMac": self.port, "vfs": functions}
        return {
            "system": {
                "productUuid": f"7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e{self.number:02x}",
                "systemSerial": f"QX7M-00{self.number}",
            },
            "gpus": {
                "enumeration": enumeration,
                "driverVersion": DRIVER,
                "gpus": [card.document(place) for place, card in enumerate(cards.values())],
            },
            "nics": {"nics": [port] if self.functions is not None else []},
            "disks": {
                "disks": [
                    {"name": f"sd{place}", "wwn": disk, "sizeBytes": 10**12}
                    for place, disk in enumerate(sorted(self.disk_ids()))
                ]
            },
            "os": {"kernel": self.kernel},
            "images": {"images": [{"reference": each} for each in sorted(self.images)]},
        }


@dataclass(frozen=True)
class Report:
    """A set of sections as sent, and what they say, in plain words."""

    sections: dict[str, dict[str, Any]]
    enumeration: str
    cards: dict[str, Card]
    port: str
    functions: int | None
    disks: frozenset[str]
    images: frozenset[str]
    kernel: str

    def says(self, name: str) -> bool:
        """Say whether a section came."""
        return name in self.sections

    def same(self, other: "Report | None") -> bool:
        """Say whether the bytes are the same."""
        return other is not None and self.sections == other.sections
