"""Labels of the drivers that a node's agent serves, which it advertises at its hello (rule 6)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from domain.errors import InvalidInput
from domain.label_text import label_value
from domain.labels import SYSTEM_PREFIX

DRIVERS_MAX: Final = 64
KINDS_MAX: Final = 32
ID_LENGTH_MAX: Final = 128
DRIVER_PREFIX: Final = f"{SYSTEM_PREFIX}driver."
KIND_PREFIX: Final = f"{SYSTEM_PREFIX}driver-kind."
DRIVER_PREFIXES: Final = (DRIVER_PREFIX, KIND_PREFIX)
"""Where the labels of drivers are: what a hello does not advertise of them is dropped."""

_NO_VERSION: Final = "unknown"
_ID: Final = re.compile("[a-z0-9._-]+")
_KIND: Final = re.compile("[a-z][a-z0-9-]{0,31}")


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver as advertised."""

    id: str
    version: str | None = None
    kinds: Sequence[str] = ()


def driver_labels(drivers: Sequence[Driver]) -> dict[str, str]:
    """Return the drivers' labels; ids and kinds that no label can carry are skipped.

    Of two drivers with one id the later stands. Raises InvalidInput for more drivers than a node can have.
    """
    if len(drivers) > DRIVERS_MAX:
        raise InvalidInput(f"drivers: {len(drivers)}; at most {DRIVERS_MAX} are taken")
    labels: dict[str, str] = {}
    for driver in {each.id: each for each in drivers if _is_id(each.id)}.values():
        labels[f"{DRIVER_PREFIX}{driver.id}"] = label_value(driver.version) or _NO_VERSION
        kinds = dict.fromkeys(kind for kind in driver.kinds if _KIND.fullmatch(kind))
        labels |= {f"{KIND_PREFIX}{driver.id}.{kind}": "1" for kind in islice(kinds, KINDS_MAX)}
    return labels


def _is_id(text: str) -> bool:
    return len(text) <= ID_LENGTH_MAX and _ID.fullmatch(text) is not None
