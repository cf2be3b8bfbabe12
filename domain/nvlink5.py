"""Decoding Xids 144 to 150 of NVLink 5: what they ask for depends on unit, bits, status, severity and driver.

The bits that name a unit moved with driver branch 575 (NVIDIA/NVSentinel issue 748): the same bits ask for a reset
under one driver and for nothing under another. What is not known, the driver or a part of a line that was cut, leaves
several rows; the most careful of them is taken.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from domain.kernel_faults import NvlinkError
from domain.xid_rules import XID_RULES, Nvlink5Rule

MOVED_IN_BRANCH: Final = 575
RESET: Final = "RESET_GPU"
FOLLOW_154: Final = "XID_154_EVAL"
_CAREFUL: Final = ("IGNORE", FOLLOW_154, RESET)
"""Actions, the most careful last."""
_STATUS_IS_BITS: Final = frozenset({144, 145, 146, 147, 148})
_BRANCH_DIGITS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Decoded:
    """The row and its action; `is_certain` says that nothing was unknown, `row` is None where the table has none."""

    row: Nvlink5Rule | None
    action: str | None
    is_certain: bool


def driver_branch(version: str | None) -> int | None:
    """Return the branch of a driver's version, such as 575 of `575.57.08`; None when it is not known."""
    branch = (version or "").partition(".")[0]
    return int(branch) if branch.isascii() and branch.isdecimal() and len(branch) <= _BRANCH_DIGITS_MAX else None


def decode(code: int, error: NvlinkError, driver_version: str | None) -> Decoded:
    """Return the row that holds, or the most careful of those that may."""
    branch = driver_branch(driver_version)
    rows = [row for row in XID_RULES.nvlink5 if row.code == code and _fits(row, error, branch)]
    is_certain = branch is not None and len(error.words) > 1 and error.is_fatal is not None
    row = max(rows, key=lambda each: _CAREFUL.index(_action(each, error)), default=None)
    return Decoded(row, None if row is None else _action(row, error), is_certain)


def _fits(row: Nvlink5Rule, error: NvlinkError, branch: int | None) -> bool:
    if error.unit is not None and _names(error.unit.split("/")).isdisjoint(_names(row.units)):
        return False
    if error.words and not any(_matches(bits, error.words[0]) for bits in _bits(row, branch)):
        return False
    return len(error.words) < 2 or _has_status(row, error.words[1])  # noqa: PLR2004 - the second register is the status


def _bits(row: Nvlink5Rule, branch: int | None) -> tuple[str, ...]:
    if branch is None:
        return row.bits_before_575, row.bits_since_575
    return (row.bits_before_575,) if branch < MOVED_IN_BRANCH else (row.bits_since_575,)


def _has_status(row: Nvlink5Rule, status: int) -> bool:
    """Say whether the status is the row's, or has its bit among others."""
    return row.status == status or (row.code in _STATUS_IS_BITS and bool(row.status & status))


def _action(row: Nvlink5Rule, error: NvlinkError) -> str:
    """Return the row's action: where it has two, the driver's own word of severity decides, and no word is fatal."""
    return row.action_if_fatal if row.action_if_fatal and error.is_fatal is not False else row.action


def _names(units: Iterable[str]) -> set[str]:
    """Return units' names for comparison: drivers and the catalog abbreviate differently."""
    return {unit.replace("_EVENT", "_EVT") for unit in units}


def _matches(bits: str, word: int) -> bool:
    mask, value = _mask(bits)
    return word & mask == value


@cache
def _mask(bits: str) -> tuple[int, int]:
    return int(bits.replace("0", "1").replace("-", "0"), 2), int(bits.replace("-", "0"), 2)
