"""Facts with the reasons for those that are missing, gathered into documents."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from domain.availability import Availability, known_number, known_text
from domain.documents.document import INT32_MAX, Document, wire_name

T = TypeVar("T")
Doc = TypeVar("Doc", bound=Document)

TEXT_LENGTH_MAX: Final = 256
"""No fact of a GPU is longer (NVML's longest buffer holds 96 characters); what is, is cut."""

_NATURALLY_UNIFIED: Final = re.compile(r"\b(GB10|Orin|Thor|Xavier|Tegra|nvgpu)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value, or the reasons for what is missing by its path below the fact (the empty path is the fact itself)."""

    value: T | None
    gaps: Mapping[str, Availability] = field(default_factory=dict)


def known(value: T | None) -> Fact[T]:
    """Make a fact that is known; None says that by its nature there is nothing to tell."""
    return Fact(value)


def missing(why: Availability) -> Fact[Any]:
    """Make a fact that is not known."""
    return Fact(None, {"": why})


def text_fact(text: str | None, why: Availability = Availability.UNKNOWN) -> Fact[str]:
    """Read a text with its blanks folded; a text that only stands for a value is missing, whatever it says."""
    value = known_text(" ".join(text.split())) if text is not None else None
    return missing(why) if value is None else known(value[:TEXT_LENGTH_MAX])


def count_fact(number: int | None, why: Availability = Availability.UNKNOWN) -> Fact[int]:
    """Read an amount; blank codes and what no counter of the document holds are missing."""
    value = known_number(number)
    return known(value) if value is not None and 0 <= value <= INT32_MAX else missing(why)


def vbios_fact(text: str | None) -> Fact[str]:
    """Read a VBIOS version; a vGPU's version of zeros is missing."""
    found = text_fact(text)
    return missing(Availability.UNKNOWN) if found.value is not None and set(found.value) <= set("0.") else found


def memory_facts(name: str | None, vram: Fact[int]) -> tuple[Fact[int], Fact[bool]]:
    """Return the board's memory in MiB and whether it is the host's.

    Integrated parts (GB10, Jetson) have none of their own: that is their nature, which `unsupported` says, no fault.
    """
    if vram.value is None and (
        _NATURALLY_UNIFIED.search(name or "") or set(vram.gaps.values()) == {Availability.UNSUPPORTED}
    ):
        return missing(Availability.UNSUPPORTED), known(value=True)
    return vram, missing(Availability.UNKNOWN) if vram.value is None else known(value=False)


def gather(facts: Mapping[str, Fact[Any]]) -> Fact[dict[str, Any]]:
    """Return the known values by field name, and all reasons by wire path."""
    values = {name: fact.value for name, fact in facts.items() if fact.value is not None}
    return Fact(values, {_join(wire_name(name), path): why for name, fact in facts.items() for path, why in gaps(fact)})


def document(kind: type[Doc], facts: Mapping[str, Fact[Any]]) -> Fact[Doc]:
    """Build a part of the section; one of which nothing is known is missing as a whole.

    So a group that a driver leaves out, marks as `N/A`, or fills with `N/A` gives the same bytes.
    """
    found = gather(facts)
    if any(value != () for value in (found.value or {}).values()):
        return Fact(kind(**found.value or {}), found.gaps)
    reasons = set(found.gaps.values())
    return Fact(None, {"": reasons.pop()} if len(reasons) == 1 else found.gaps)


def listing(items: Iterable[Fact[Doc]]) -> Fact[tuple[Doc, ...]]:
    """Join facts that are already in their order; reasons carry the item's place."""
    kept = [item for item in items if item.value is not None]
    paths = {_join(str(place), path): why for place, item in enumerate(kept) for path, why in gaps(item)}
    return Fact(tuple(item.value for item in kept if item.value is not None), paths)


def failed(fact: Fact[T]) -> Fact[T]:
    """Say of everything missing that it failed for now, as on a GPU that does not answer any more."""
    return Fact(fact.value, dict.fromkeys(fact.gaps, Availability.TEMPORARILY_FAILED))


def gaps(fact: Fact[Any]) -> Sequence[tuple[str, Availability]]:
    """Return the reasons of a fact by path."""
    return tuple(fact.gaps.items())


def _join(head: str, path: str) -> str:
    return f"{head}.{path}" if path else head
