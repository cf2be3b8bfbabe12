"""SMBIOS identifiers: one text per UUID and per serial, and which of them identify a machine."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from domain.smbios_placeholders import SERIALS, UUID_BEGINNINGS, UUIDS

_UUID: Final = re.compile(r"[0-9a-f]{32}")
_DECORATION: Final = re.compile(r"[\s\0\"'{}-]+")
_PUNCTUATION: Final = re.compile(r"[\W_]+")
_UUID_DIGITS_MIN: Final = 4
"""A UUID of fewer different digits is no random number, and no address either."""
_SERIAL_IN_UUID_MIN: Final = 6
_DELL: Final = "4c4c4544"
_AMI: Final = re.compile(r"03(..)02(..)04(..)05(..)(..)06(..)0700080009")


def uuid_digits(text: str | None) -> str | None:
    """Return the UUID's 32 digits, the same for both orders in which SMBIOS writes its first three fields.

    SMBIOS before 2.6 left the order open, and tools differ: of the two readings the lower one stands for both.
    """
    digits = _DECORATION.sub("", text).casefold() if text else ""
    return min(digits, _other_order(digits)) if _UUID.fullmatch(digits) else None


def identifying_uuid(text: str | None) -> str | None:
    """Return the UUID's digits when it can identify a machine: neither a placeholder nor hardly any digits."""
    digits = uuid_digits(text)
    if digits is None or digits in _UUIDS or len(set(digits)) < _UUID_DIGITS_MIN:
        return None
    readings = (digits, _other_order(digits))
    return None if any(reading.startswith(UUID_BEGINNINGS) for reading in readings) else digits


def identifying_serial(text: str | None, names: Iterable[str | None] = ()) -> str | None:
    """Return the serial without case, blanks and punctuation when it can identify a machine.

    `names` are the maker's and the product's: a serial that repeats one of them is none.
    """
    folded = _folded(text)
    if folded in _SERIALS or len(set(folded)) <= 1 or set(folded) <= {"0", "1"} or _counts(folded):
        return None
    return None if folded in {_folded(name) for name in names} else folded


def is_derived(digits: str, serial: str | None, addresses: Iterable[str]) -> bool:
    """Say whether a UUID repeats the serial or one of the MAC addresses: it is no second witness beside them.

    Dell writes its service tag into the UUID, HPE the serial's text, AMI's template and version 1 UUIDs an address.
    """
    readings = (digits, _other_order(digits))
    carried = {address for reading in readings for address in _addresses_in(reading)}
    if not carried.isdisjoint(address.replace(":", "") for address in addresses):
        return True
    if serial is None:
        return False
    texts = [bytes.fromhex(reading).decode("latin-1").casefold() for reading in readings]
    in_text = len(serial) >= _SERIAL_IN_UUID_MIN and any(serial in text for text in texts)
    return in_text or any(_service_tag(reading) == serial for reading in readings)


def _other_order(digits: str) -> str:
    """Swap the bytes of the first three fields."""
    fields = (digits[:8], digits[8:12], digits[12:16])
    return "".join(bytes.fromhex(field)[::-1].hex() for field in fields) + digits[16:]


def _folded(text: str | None) -> str:
    return _PUNCTUATION.sub("", text).casefold() if text else ""


def _counts(text: str) -> bool:
    """Say whether the text counts up or down, from digit to digit."""
    if not (text.isascii() and text.isdigit()):
        return False
    return {(int(second) - int(first)) % 10 for first, second in pairwise(text)} in ({1}, {9})


def _addresses_in(reading: str) -> list[str]:
    template = _AMI.fullmatch(reading)
    if template is None:
        return [reading[-12:]]
    # 03 B1 02 B0, 04 B2, 05 B3, B4 06, B5 07…: the address of the board's first port is B0 to B5.
    second, first, third, fourth, fifth, sixth = template.groups()
    return [first + second + third + fourth + fifth + sixth]


def _service_tag(reading: str) -> str | None:
    """Return the tag in a Dell UUID: `LLED`, then its seven characters, the first with the high bit set."""
    if not reading.startswith(_DELL):
        return None
    octets = bytes.fromhex(reading)
    tag = (octets[10] & 0x7F, octets[5], octets[6], octets[9], octets[13], octets[14], octets[15])
    return "".join(map(chr, tag)).casefold()


_UUIDS: Final = frozenset(digits for text in UUIDS if (digits := uuid_digits(text)) is not None)
_SERIALS: Final = frozenset(map(_folded, SERIALS))
