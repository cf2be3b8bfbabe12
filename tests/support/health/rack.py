"""Machines with their GPUs, boots and kernel logs, and what their agents know: nothing here is the product's."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

DRIVER: Final = "580.95.05"
SLOTS: Final = ("0000:10:00", "0000:20:00", "0000:30:00")
"""As the driver prints addresses."""
INSTANCES: Final = ((1, 0), (2, 0))
"""Of a GPU in MIG mode."""


@dataclass(frozen=True)
class Kind:
    """A kind of line: its Xid, the driver's words, the Xid it follows, and whether the line has no address."""

    code: int
    words: str = ""
    caused_by: int | None = None
    placeless: bool = False
    of_instance: bool = False


_ACTION: Final = "GPU recovery action changed from 0x0 (None) to 0x{0:x} (as told)"
KINDS: Final = {
    "double bit error": Kind(48),
    "double bit error somewhere": Kind(48, placeless=True),
    "off the bus": Kind(79),
    "off the bus somewhere": Kind(79, placeless=True),
    "uncontained": Kind(95),
    "row remap": Kind(63),
    "row remap somewhere": Kind(63, placeless=True),
    "row remap failed": Kind(64),
    "exception": Kind(13),
    "exception in an instance": Kind(13, of_instance=True),
    "cleaning up": Kind(45, caused_by=48),
    "reset required": Kind(154, _ACTION.format(1)),
    "reboot required": Kind(154, _ACTION.format(2)),
    "recovered": Kind(154, _ACTION.format(0)),
    "link": Kind(74),
    "firmware timeout": Kind(119),
}


@dataclass
class Card:
    """A GPU; `pending` says that a row remap waits for its reset, `is_broken` that no reset helps."""

    uuid: str
    in_mig: bool = False
    pending: bool | None = False
    lost: bool = False
    is_broken: bool = False

    @property
    def atoms(self) -> list[str]:
        """What can be held of it."""
        return [f"{self.uuid}/gi{gi}/ci{ci}" for gi, ci in INSTANCES] if self.in_mig else [self.uuid]

    def reset(self) -> None:
        """Reset it."""
        self.lost = False
        if not self.is_broken and self.pending is not None:
            self.pending = False

    def document(self, index: int, slot: str) -> dict[str, Any]:
        """Return it as the `gpus` section has it."""
        split = [{"gi": gi, "ci": ci, "profile": "1g.10gb", "memoryMiB": 9984} for gi, ci in INSTANCES]
        remap = {"failure": False} if self.pending is None else {"failure": False, "pending": self.pending}
        return {
            "uuid": self.uuid,
            "name": "NVIDIA H100 80GB HBM3",
            "pciBusId": f"0000{slot}.0",
            "index": index,
            "migMode": {"current": self.in_mig, "pending": self.in_mig},
            "migInstances": split if self.in_mig else [],
            "health": {"rowRemap": remap},
            "lost": self.lost or None,
        }


@dataclass(frozen=True)
class Line:
    """What an agent makes of equal lines of its log: `number` is the newest one's, `slot` the place that is printed."""

    kind: Kind
    number: int
    slot: str | None
    instance: tuple[int, int] | None
    boot: str
    count: int = 1
    uuid: str | None = None

    def told(self) -> dict[str, Any]:
        """Return it as an agent reports it."""
        gi, ci = self.instance or (None, None)
        return {
            "code": self.kind.code,
            "address": self.slot or "",
            "message": self.kind.words,
            "sequence": str(self.number),
            "deviceId": self.uuid,
            "gi": gi,
            "ci": ci,
            "causedBy": self.kind.caused_by,
            "bootId": self.boot,
            "count": self.count,
        }


@dataclass
class Machine:
    """A machine. Its agent is up or not, has said hello in this boot or not, and knows lines until a reset or a boot.

    `runs` are commands that it began and has not told the end of.
    """

    name: str
    cards: dict[str, Card]
    boots: int = 1
    number: int = 0
    known: dict[tuple[object, ...], Line] = field(default_factory=dict)
    is_up: bool = True
    has_greeted: bool = False
    id: str = ""
    spares: int = 0

    @property
    def boot(self) -> str:
        """The present boot."""
        return f"{self.name}-boot-{self.boots}"

    def log(self, kind: Kind, slot: str, *, is_mapped: bool) -> Line:
        """Let the kernel log have a line; returns what the agent knows by it."""
        self.number += 3
        card = self.cards[slot]
        instance = INSTANCES[self.number % 2] if kind.of_instance and card.in_mig else None
        place = None if kind.placeless else slot
        key = (kind.code, place or self.number, instance, kind.caused_by)
        before = self.known.get(key)
        line = Line(
            kind=kind,
            number=self.number,
            slot=place,
            instance=instance,
            boot=self.boot,
            count=1 if before is None else before.count + 1,
            uuid=card.uuid if is_mapped and place is not None else None,
        )
        self.known[key] = line
        return line

    def reboot(self) -> None:
        """Boot anew, which resets every GPU."""
        self.boots += 1
        self.number = 0
        self.known = {}
        self.has_greeted = False
        for card in self.cards.values():
            card.reset()

    def reset(self, uuid: str) -> None:
        """Reset a GPU; the agent forgets what it knew of it, where that helped."""
        for slot, card in self.cards.items():
            if card.uuid == uuid:
                card.reset()
                if not card.is_broken:
                    self.known = {key: line for key, line in self.known.items() if line.slot != slot}

    def replace(self, slot: str) -> None:
        """Put another card into a slot."""
        self.spares += 1
        self.cards[slot] = replace(
            self.cards[slot], uuid=f"GPU-{self.name}-{slot}-{self.spares}", pending=False, lost=False, is_broken=False
        )

    def gpus(self, enumeration: str) -> dict[str, Any]:
        """Return the `gpus` section; one that is cut short has no more than the first GPU."""
        shown = list(self.cards.items())[: 1 if enumeration == "incomplete" else None]
        return {
            "enumeration": enumeration,
            "driverVersion": DRIVER,
            "gpus": [card.document(index, slot) for index, (slot, card) in enumerate(shown)],
        }


def rack(count: int) -> Iterator[Machine]:
    """Yield machines of two GPUs, the first with a third one in MIG mode."""
    for number in range(1, count + 1):
        slots = SLOTS[: 3 if number == 1 else 2]
        cards = {slot: Card(f"GPU-m{number}-{slot}", in_mig=slot == SLOTS[2]) for slot in slots}
        yield Machine(f"m{number}", cards)
