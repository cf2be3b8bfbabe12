"""The hardware key: a machine known by its parts, whatever runs on it, with the evidence for it (rules 7 and 16).

Evidence is what is stored: the key is a function of it, and what a report does not say keeps its last evidence.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from domain import mac
from domain.smbios import identifying_serial, identifying_uuid, is_derived

INDEPENDENT_MIN: Final = 2
"""A key is trusted when this many kinds of identifiers survive that do not follow from each other."""


class Field(StrEnum):
    """What an identifier is, in the order in which evidence is listed."""

    PRODUCT_UUID = "productUuid"
    SYSTEM_SERIAL = "systemSerial"
    BOARD_SERIAL = "boardSerial"
    CHASSIS_SERIAL = "chassisSerial"
    PERMANENT_MAC = "permanentMac"
    GPU_UUID = "gpuUuid"


SERIALS: Final = (Field.SYSTEM_SERIAL, Field.BOARD_SERIAL, Field.CHASSIS_SERIAL)
"""The first of them that identifies is the machine's."""

_PLACES: Final = {field: place for place, field in enumerate(Field)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One identifier as reported; a field that says nothing has one entry without a value.

    `placeholder` says that the value stands where an identifier should and identifies nothing. `matched` compares
    with the node's identity before (None: there was none).
    """

    field: Field
    value: str | None
    known: bool
    placeholder: bool
    matched: bool | None = None

    @property
    def identity(self) -> str | None:
        """The normalized value, when it identifies."""
        return None if self.value is None or self.placeholder else normalized(self.field, self.value)


@dataclass(frozen=True, slots=True)
class Identity:
    """What evidence makes of a machine: its key (None without a single identifier) and whether it can be trusted."""

    key: str | None
    strong: bool
    evidence: tuple[Evidence, ...]


# An identity is looked at several times while its report is applied.
@lru_cache(maxsize=8192)
def normalized(field: Field, value: str) -> str | None:
    """Return the one text of equal identifiers, or None when the value identifies nothing."""
    match field:
        case Field.PRODUCT_UUID:
            return identifying_uuid(value)
        case Field.SYSTEM_SERIAL | Field.BOARD_SERIAL | Field.CHASSIS_SERIAL:
            return identifying_serial(value)
        case Field.PERMANENT_MAC:
            return mac.identity(value)
        case Field.GPU_UUID:
            return value.strip().casefold()


def in_order(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Sort evidence, so that the order in which parts were found does not matter."""
    return tuple(sorted(evidence, key=lambda each: (_PLACES[each.field], each.value or "")))


def identities(evidence: Iterable[Evidence]) -> dict[Field, frozenset[str]]:
    """Return the normalized identifiers of each field that has some."""
    found: dict[Field, set[str]] = {}
    for each in evidence:
        identity = each.identity
        if identity is not None:
            found.setdefault(each.field, set()).add(identity)
    return {field: frozenset(values) for field, values in found.items()}


def identify(evidence: Sequence[Evidence], last: Sequence[Evidence] = ()) -> Identity:
    """Return the identity that evidence makes, each entry compared with the last identity."""
    known = identities(evidence)
    before = identities(last)
    compared = in_order(_compared(each, before) for each in evidence) if last else in_order(evidence)
    uuid = min(known.get(Field.PRODUCT_UUID, ()), default=None)
    serial = next((min(known[field]) for field in SERIALS if field in known), None)
    addresses = sorted(known.get(Field.PERMANENT_MAC, ()))
    gpus = sorted(known.get(Field.GPU_UUID, ()))
    if not known:
        return Identity(None, strong=False, evidence=compared)
    lines = [("uuid", uuid or ""), ("serial", serial or "")]
    lines += [("mac", address) for address in addresses] + [("gpu", gpu) for gpu in gpus]
    text = "".join(f"{name}\0{value}\n" for name, value in lines)
    witnesses = (serial, addresses, gpus, uuid is not None and not is_derived(uuid, serial, addresses))
    strong = sum(map(bool, witnesses)) >= INDEPENDENT_MIN
    return Identity(hashlib.sha256(text.encode()).hexdigest(), strong, compared)


def _compared(each: Evidence, last: dict[Field, frozenset[str]]) -> Evidence:
    # What identifies nothing is equal to nothing: not even to itself.
    return replace(each, matched=each.identity in last.get(each.field, ()))
