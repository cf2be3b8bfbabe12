"""Unknown is one thing: the words, codes and gaps by which a source says that it has no value.

Source: rules 1 and 16 of the product's rules; NVML's blank values in `nvml.h` (`NVML_VALUE_NOT_AVAILABLE`, and the
DCGM blanks `0x7ffffff0`… and `0x7ffffffffffffff0`…).
"""

from enum import StrEnum
from functools import lru_cache
from typing import Final


class Availability(StrEnum):
    """Why a fact has no value. Only a known fact has one, and zero is a value."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    TEMPORARILY_FAILED = "temporarily_failed"


# Folded (lower case, without brackets) texts that stand where a value should, and what each of them means.
_WORDS: Final = {
    "": Availability.UNKNOWN,
    "none": Availability.UNKNOWN,
    "null": Availability.UNKNOWN,
    "unknown": Availability.UNKNOWN,
    "not found": Availability.UNKNOWN,
    "n/a": Availability.UNSUPPORTED,
    "not supported": Availability.UNSUPPORTED,
    "not applicable": Availability.UNSUPPORTED,
    "not available": Availability.UNAVAILABLE,
    "insufficient permissions": Availability.UNAVAILABLE,
    "insufficient external power": Availability.UNAVAILABLE,
    "unknown error": Availability.TEMPORARILY_FAILED,
    "gpu is lost": Availability.TEMPORARILY_FAILED,
    "gpu requires reset": Availability.TEMPORARILY_FAILED,
    "err!": Availability.TEMPORARILY_FAILED,
    "unknown_error": Availability.TEMPORARILY_FAILED,
}
_BLANK_CODES: Final = 16  # each blank range holds this many codes: not found, not supported, not permissioned, ...
_BLANK_32: Final = 0x7FFFFFF0
_BLANK_64: Final = 0x7FFFFFFFFFFFFFF0
# Where every 64-bit blank and the 64-bit all-ones land as a double.
_FLOAT_ROUND_TRIPS: Final = (2.0**63, 2.0**64)
_SCALED_BLANK_64: Final = 140737488355328.0  # 2**47: the 64-bit blank printed as a 16.16 fixed point fraction
_ALL_ONES: Final = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
_REMEMBERED_LENGTH_MAX: Final = 128


def of_text(text: str | None) -> Availability:
    """Say what a source's text is: KNOWN when it is a value, else the reason why there is none."""
    if text is None:
        return Availability.UNKNOWN
    folded = text.strip().strip("[]<>").strip().rstrip(".").casefold()
    if "has been deprecated" in folded:
        return Availability.UNSUPPORTED
    if folded.startswith("gpu is lost"):
        return Availability.TEMPORARILY_FAILED
    return _WORDS.get(folded, Availability.KNOWN)


def of_number(number: float | None) -> Availability:
    """Say what a source's number is; blank codes are unknown also after a round trip through a float."""
    if number is None or number != number:  # noqa: PLR0124 - NaN is the number that differs from itself
        return Availability.UNKNOWN
    if isinstance(number, float):
        blank = number in {*_FLOAT_ROUND_TRIPS, _SCALED_BLANK_64}
        if blank or abs(number) == float("inf"):
            return Availability.UNKNOWN
        if not number.is_integer():
            return Availability.KNOWN
        number = int(number)
    if number in _ALL_ONES:
        return Availability.UNKNOWN
    blank = 0 <= number - _BLANK_32 < _BLANK_CODES or 0 <= number - _BLANK_64 < _BLANK_CODES
    return Availability.UNKNOWN if blank else Availability.KNOWN


def known_text(text: str | None) -> str | None:
    """Return the trimmed value, or None when the text only stands for one."""
    if text is None:
        return None
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH_MAX else _known(text)


def _known(text: str) -> str | None:
    return text.strip() if of_text(text) is Availability.KNOWN else None


# A fleet has few names, and a node's own identifiers are read several times while its report is applied.
_remembered: Final = lru_cache(maxsize=16_384)(_known)


def known_number(number: int | None) -> int | None:
    """Return the number, or None when it is a blank code."""
    return number if of_number(number) is Availability.KNOWN else None
