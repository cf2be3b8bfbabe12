"""Batches of reports: one slot per entry, in order, so that a refused entry fails alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import InvalidInput, NotFound, Refusal
from domain.ids import has_prefix

REPORTS_MAX: Final = 1000
SECTIONS_MAX: Final = 200
"""Nodes whose sections one request takes."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One entry's answer in a batch: names of what it is about, or why the entry was refused."""

    node_id: str
    names: tuple[str, ...] = ()
    generation: int | None = None
    refusal: Refusal | None = None


class Places:
    """The places of a batch's nodes, of which each may stand in it once."""

    def __init__(self, length: int, most: int) -> None:
        """Begin a batch; raises InvalidInput for more entries than are taken."""
        if length > most:
            raise InvalidInput(f"entries: {length}; at most {most} are taken at once")
        self._first: dict[str, int] = {}

    def take(self, place: int, node_id: str) -> None:
        """Refuse what is no node's id, and a node that stood in the batch before."""
        if not has_prefix(node_id, "node"):
            raise no_node(node_id)
        first = self._first.setdefault(node_id, place)
        if first != place:
            raise InvalidInput(
                f"nodeId: entry {first} of this batch is already node {node_id!r}'s; send the next one later"
            )


def answer(node_id: str, names: Sequence[str] | Refusal | None, generation: int | None = None) -> Slot:
    """Return the slot of an entry that was taken, refused, or has no node in its tenant."""
    if isinstance(names, Refusal):
        return Slot(node_id, refusal=names)
    if names is None:
        return Slot(node_id, refusal=no_node(node_id))
    return Slot(node_id, tuple(names), generation)


def in_order(slots: Mapping[int, Slot]) -> list[Slot]:
    """Return the slots by their places."""
    return [slots[place] for place in sorted(slots)]


def no_node(node_id: str) -> NotFound:
    """Return the refusal of a node that the tenant does not have."""
    return NotFound(f"no node {node_id[:64]!r}; say hello first")
