"""Labels: what a node says of itself, and who says it (rule 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from domain.errors import Conflict, InvalidInput
from domain.inventory_labels import INVENTORY_KEYS
from domain.label_text import is_key, is_value

LABELS_MAX: Final = 64
"""Labels that an agent is configured with, and as many from operators."""
SYSTEM_PREFIX: Final = "bc.dev/"
_SHOWN_MAX: Final = 40


class LabelSource(StrEnum):
    """Whose word a label is; each covers those before it, and nobody overwrites the last two."""

    AGENT = "agent"
    OPERATOR = "operator"
    INVENTORY = "inventory"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """A label as given."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class LabelChange:
    """Labels to set and keys to remove, as they may be."""

    put: Mapping[str, str]
    remove: frozenset[str]


def given_labels(field: str, given: Sequence[GivenLabel]) -> dict[str, str]:
    """Return labels that an agent or an operator gives; raises InvalidInput naming the place in `field`."""
    if len(given) > LABELS_MAX:
        raise InvalidInput(f"{field}: {len(given)} labels; at most {LABELS_MAX} are taken")
    found: dict[str, str] = {}
    for place, label in enumerate(given):
        key = given_key(f"{field}.{place}.key", label.key)
        if key in found:
            raise InvalidInput(f"{field}.{place}.key: {key} is given twice; once is expected")
        found[key] = _given_value(f"{field}.{place}.value", label.value)
    return found


def given_key(field: str, key: str) -> str:
    """Return a key that agents and operators may label by; raises InvalidInput naming the field."""
    if not is_key(key):
        raise InvalidInput(
            f"{field}: {key[:_SHOWN_MAX]!r} is no key; letters, digits and . _ - are, with at most one / between two "
            "parts, such as zone or example.org/rack"
        )
    if key in INVENTORY_KEYS:
        raise InvalidInput(f"{field}: {key} is told by the inventory and cannot be overwritten; choose another key")
    if key.startswith(SYSTEM_PREFIX):
        raise InvalidInput(f"{field}: keys that begin with {SYSTEM_PREFIX} are the system's; choose another key")
    return key


def label_change(put: Sequence[GivenLabel], remove: Sequence[str]) -> LabelChange:
    """Return what an operator asks for; raises InvalidInput naming the place."""
    if len(remove) > LABELS_MAX:
        raise InvalidInput(f"remove: {len(remove)} keys; at most {LABELS_MAX} are taken")
    labels = given_labels("set", put)
    gone = frozenset(given_key(f"remove.{place}", key) for place, key in enumerate(remove))
    if both := sorted(gone & labels.keys()):
        raise InvalidInput(f"remove: {both[0]} is also set; either is expected")
    return LabelChange(labels, gone)


def relabelled(current: Mapping[str, str], change: LabelChange) -> dict[str, str]:
    """Return an operator's labels of a node after a change; raises Conflict when there would be too many.

    What is removed and was not there stays away: the agent's value, if it has one, holds.
    """
    labels = {key: value for key, value in {**current, **change.put}.items() if key not in change.remove}
    if len(labels) > LABELS_MAX:
        raise Conflict(f"set: the node would have {len(labels)} labels of operators; at most {LABELS_MAX} are kept")
    return labels


def _given_value(field: str, value: str) -> str:
    if not is_value(value):
        raise InvalidInput(
            f"{field}: {value[:_SHOWN_MAX]!r} is no value; letters, digits and . _ - + : / ~ are, 255 at most"
        )
    return value
