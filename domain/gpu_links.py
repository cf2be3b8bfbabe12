"""The NVLinks of a GPU as they were last told: a link that is silent keeps what was known of it."""

from collections.abc import Iterable, Mapping
from typing import Final

from domain.device import Device, fact, numbers
from domain.documents.gpus import Gpu
from domain.jsonvalue import JsonValue

ACTIVE: Final = "active"
INACTIVE: Final = "inactive"
LOST: Final = "lost"
"""Inactive, and active before."""
_STATES: Final = (ACTIVE, INACTIVE, LOST)

Links = Mapping[str, frozenset[int]]
"""Numbers of links by their state."""


def reported_links(gpu: Gpu) -> dict[str, JsonValue]:
    """Return the attribute `nvlinks`: the numbers of the links that are active, and of those that are not."""
    found: dict[str, list[int]] = {ACTIVE: [], INACTIVE: []}
    for link in gpu.nvlinks:
        state = (link.state or "").strip().casefold()
        if state in found:
            found[state].append(link.link)
    return _attribute(found)


def links_of(gpu: Device) -> Links:
    """Return a GPU's links, by all states."""
    return {state: frozenset(numbers(gpu, f"nvlinks.{state}")) for state in _STATES}


def remember_links(seen: Device, known: Device, *, peer_left: bool) -> dict[str, JsonValue]:
    """Return the attribute with what is remembered of links.

    In MIG mode a GPU has no links, so nothing is learned then. Where a GPU at the other end left or cannot be asked,
    links that are inactive with it are none that this GPU lost.
    """
    if seen.attributes.get("nvlinks") == known.attributes.get("nvlinks"):
        return {}
    now, was = links_of(seen), links_of(known)
    if fact(seen, "migMode.current") is True and any(was.values()):
        return _attribute(was)
    had = frozenset() if peer_left else was[ACTIVE] | was[LOST]
    told = now[ACTIVE] | now[INACTIVE]
    return _attribute(
        {
            ACTIVE: now[ACTIVE] | (was[ACTIVE] - told),
            INACTIVE: (now[INACTIVE] - had) | (was[INACTIVE] - told),
            LOST: (now[INACTIVE] & had) | (was[LOST] - told),
        }
    )


def _attribute(links: Mapping[str, Iterable[int]]) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {state: sorted(found) for state, found in links.items() if found}
    return {"nvlinks": told} if told else {}
