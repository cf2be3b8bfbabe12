"""What an operator wants to run on a node: units by kind, whose every change is a generation (rule 15)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import InvalidInput
from domain.texts import required_text

UNITS_MAX: Final = 64
DRIVER_UNIT: Final = "nvidia-driver"
_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that is to run, in a version where that matters."""

    kind: str
    version: str | None = None


def read_units(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """Return the units by kind; raises InvalidInput naming the place and what would be right."""
    if len(units) > UNITS_MAX:
        raise InvalidInput(f"units: {len(units)}; at most {UNITS_MAX} are taken")
    kinds: dict[str, int] = {}
    for place, unit in enumerate(units):
        if _KIND.fullmatch(unit.kind) is None:
            raise InvalidInput(f"units.{place}.kind: {unit.kind[:64]!r}; a word like {DRIVER_UNIT!r} is expected")
        if unit.version is not None:
            required_text(f"units.{place}.version", unit.version)
        first = kinds.setdefault(unit.kind, place)
        if first != place:
            raise InvalidInput(f"units.{place}.kind: {unit.kind!r} stands at {first} already; once is expected")
    return tuple(sorted(units, key=lambda unit: unit.kind))
