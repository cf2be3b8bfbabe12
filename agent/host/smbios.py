"""The raw SMBIOS table: memory modules and processor names that sysfs does not list.

Source: DMTF DSP0134 (SMBIOS reference specification), structures of type 4 and 17. Only root may read the table.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent.host.answers import Missing
from agent.host.files import Source

TABLE_PATH: Final = "/sys/firmware/dmi/tables/DMI"
TABLE_BYTES_MAX: Final = 1024 * 1024
PROCESSOR: Final = 4
MEMORY_DEVICE: Final = 17
_END: Final = 127
_HEADER_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Structure:
    """One structure: its type, its formatted bytes (with the header) and its strings."""

    kind: int
    formatted: bytes
    strings: tuple[str, ...]

    def byte(self, offset: int) -> int | None:
        """Return the byte, or None when this version of the structure is shorter."""
        return self._unpack("<B", offset)

    def word(self, offset: int) -> int | None:
        """Return the 16-bit number, or None."""
        return self._unpack("<H", offset)

    def double_word(self, offset: int) -> int | None:
        """Return the 32-bit number, or None."""
        return self._unpack("<I", offset)

    def string(self, offset: int) -> str:
        """Return the string whose number stands at the offset; empty when there is none."""
        number = self.byte(offset) or 0
        return self.strings[number - 1].strip() if 0 < number <= len(self.strings) else ""

    def _unpack(self, form: str, offset: int) -> int | None:
        if offset + struct.calcsize(form) > len(self.formatted):
            return None
        (value,) = struct.unpack_from(form, self.formatted, offset)
        return int(value)


def read_structures(source: Source) -> tuple[Structure, ...] | Missing:
    """Read and cut the table."""
    table = source.read(TABLE_PATH, TABLE_BYTES_MAX)
    return table if isinstance(table, Missing) else tuple(structures(table))


def structures(table: bytes) -> Iterator[Structure]:
    """Cut the table into structures; one that is cut short ends it."""
    offset = 0
    while offset + _HEADER_BYTES <= len(table):
        kind, size = table[offset], table[offset + 1]
        end = table.find(b"\0\0", offset + size)
        if size < _HEADER_BYTES or end < 0:
            return
        texts = table[offset + size : end]
        strings = tuple(text.decode("utf-8", "replace") for text in texts.split(b"\0")) if texts else ()
        yield Structure(kind, table[offset : offset + size], strings)
        if kind == _END:
            return
        offset = end + 2
