"""Putting GPUs together into the `gpus` section, in an order that no listing order changes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent.gpus.facts import Fact, gather, known, listing, missing
from domain.availability import Availability
from domain.documents.document import INT32_MAX
from domain.documents.gpus import Enumeration, Gpu, GpusSection

_LAST: Final = "~"  # sorts after every PCI address
_TOLD_WHEN_PRESENT: Final = frozenset({"virtualization"})
_SECTION_FACTS: Final = ("cuda_driver_version", "driver_version", "gpus", "kernel_module")


def gpu(facts: Mapping[str, Fact[Any]]) -> Fact[Gpu]:
    """Build one GPU; unlike its parts, a GPU of which nothing is known still is one."""
    found = gather(facts)
    return Fact(Gpu(**found.value or {}), found.gaps)


def lost_gpu(address: str) -> Fact[Gpu]:
    """Build a GPU of which only the PCI address is left to tell."""
    silent: Fact[Any] = missing(Availability.TEMPORARILY_FAILED)
    facts = dict.fromkeys((name for name in Gpu.__struct_fields__ if name not in _TOLD_WHEN_PRESENT), silent)
    return gpu({**facts, "pci_bus_id": known(address), "lost": known(value=True)})


def section(
    enumeration: Enumeration, problems: Sequence[str], facts: Mapping[str, Fact[Any]], gpus: Sequence[Fact[Gpu]]
) -> GpusSection:
    """Build the section: `facts` are those of the driver, `problems` say why the enumeration is not complete."""
    found = gather({**facts, "gpus": listing(sorted(gpus, key=_order))})
    reason = "; ".join(sorted(problems)) or None
    unavailable = dict(sorted(found.gaps.items()))
    return GpusSection(enumeration=enumeration, reason=reason, unavailable=unavailable, **found.value or {})


def unavailable(problem: str, why: Availability, facts: Mapping[str, Fact[Any]] | None = None) -> GpusSection:
    """Build the section of a node whose GPUs could not be asked for; `facts` are what is known all the same."""
    absent: Fact[Any] = missing(why)
    found = gather({**dict.fromkeys(_SECTION_FACTS, absent), **(facts or {})})
    return GpusSection(
        enumeration=Enumeration.UNAVAILABLE,
        reason=problem,
        unavailable=dict(sorted(found.gaps.items())),
        **found.value or {},
    )


def _order(found: Fact[Gpu]) -> tuple[str, int, str]:
    value = found.value or Gpu()
    index = INT32_MAX if value.index is None else value.index
    return value.pci_bus_id or _LAST, index, value.uuid or _LAST
