"""Records of /dev/kmsg as the kernel frames them, and a log of them that a test feeds."""

from collections.abc import Iterable
from dataclasses import dataclass, field

HERE, THERE = "0000:18:00", "0000:3b:00"
HERE_PCI = "00000000:18:00.0"
BOOT = "11111111-2222-4333-8444-555555555555"


def xid(code: int, rest: str = ", it failed", gpu: str = HERE) -> str:
    return f"NVRM: Xid (PCI:{gpu}): {code}{rest}"


def frame(sequence: int, message: str, *, priority: int = 4) -> str:
    return f"{priority},{sequence},{sequence * 60_000_000},-;{message}"


@dataclass
class FakeRecords:
    """What is fed is read, the rest is not there yet."""

    waiting: list[str] = field(default_factory=list)
    error: OSError | None = None
    reads: int = 0

    def feed(self, records: Iterable[str]) -> None:
        self.waiting += records

    def read(self) -> tuple[str, ...]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        found, self.waiting = tuple(self.waiting), []
        return found

    def close(self) -> None:
        self.waiting = []
