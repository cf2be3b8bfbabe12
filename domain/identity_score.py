"""Two identities compared field by field: the same machine, another one, or a question for an operator (rule 16)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from domain.hardware_key import Evidence, Field, identities

POINTS_MIN: Final = 2
SCORED: Final = (
    Field.PRODUCT_UUID,
    Field.SYSTEM_SERIAL,
    Field.BOARD_SERIAL,
    Field.PERMANENT_MAC,
    Field.GPU_UUID,
)
CONTRADICTIONS_MIN: Final = 2
"""One field that differs may be an exchanged part."""


class Verdict(StrEnum):
    """What a score means."""

    SAME = "same"
    CONFLICT = "conflict"
    """One weak field agrees: never a merge, but for an operator to look at."""
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Score:
    """The fields that agree and those that do not; a field that either side does not know is in neither."""

    matched: tuple[Field, ...]
    differing: tuple[Field, ...]

    @property
    def verdict(self) -> Verdict:
        """One point per field that agrees; two make it the same machine."""
        if len(self.matched) >= POINTS_MIN:
            return Verdict.SAME
        return Verdict.CONFLICT if self.matched else Verdict.DIFFERENT

    @property
    def explanation(self) -> str:
        """The score in words."""
        parts = [(name, fields) for name, fields in (("equal", self.matched), ("differs", self.differing)) if fields]
        return "; ".join(f"{name}: {', '.join(fields)}" for name, fields in parts) or "no field is known of both"


def score(one: Sequence[Evidence], other: Sequence[Evidence]) -> Score:
    """Compare two identities. Cards come and go: a list agrees when half of the longer one is in both."""
    here, there = identities(one), identities(other)
    both = [field for field in SCORED if field in here and field in there]
    agree = {field for field in both if _agree(here[field], there[field])}
    return Score(tuple(field for field in both if field in agree), tuple(field for field in both if field not in agree))


def is_another_machine(one: Sequence[Evidence], other: Sequence[Evidence]) -> bool:
    """Say whether nothing of one machine is in the other, and enough is known of both to tell."""
    if not one or not other:
        return False
    found = score(one, other)
    return found.verdict is Verdict.DIFFERENT and len(found.differing) >= CONTRADICTIONS_MIN


def _agree(here: frozenset[str], there: frozenset[str]) -> bool:
    return 2 * len(here & there) >= max(len(here), len(there))
