"""What fields of one response name have in common, and how much room a selection has."""

from dataclasses import dataclass, field, replace
from typing import Final

from graphql import GraphQLField, get_named_type


@dataclass(frozen=True, slots=True)
class Alike:
    """What has to be the same where fields have one response name; the variables are those of the arguments."""

    field: str
    arguments: str
    kind: str
    variables: frozenset[str] = frozenset()


TYPENAME: Final = Alike("__typename", "", "String!")


@dataclass(slots=True)
class Scope:
    """What the response has under each name so far: fields of one name are merged, so they have to be alike."""

    taken: dict[str, tuple[Alike, "Scope"]] = field(default_factory=dict)

    def at(self, key: str) -> Alike | None:
        """Return what stands under a name."""
        return self.taken[key][0] if key in self.taken else None

    def takes(self, other: "Scope") -> bool:
        """Say whether all of another scope may be selected beside what is here."""
        return all(
            self.at(key) in {None, alike} and (key not in self.taken or self.taken[key][1].takes(below))
            for key, (alike, below) in other.taken.items()
        )

    def take(self, other: "Scope") -> None:
        """Add all of another scope."""
        for key, (alike, below) in other.taken.items():
            self.taken.setdefault(key, (alike, Scope()))[1].take(below)


@dataclass(frozen=True, slots=True)
class Room:
    """Where a selection stands: beside what, how many levels may follow, and how many pages in pages: rows multiply."""

    scope: Scope
    levels: int = 9
    pages: int = 3

    def has_room_for(self, known: GraphQLField) -> bool:
        """Say whether a field with fields of its own may be selected."""
        return self.levels > 1 and (self.pages > 0 or not _is_page(known))

    def below(self, known: GraphQLField, scope: Scope) -> "Room":
        """Return the room of what is selected of a field."""
        return Room(scope, self.levels - 1, self.pages - _is_page(known))

    def smaller(self, scope: Scope) -> "Room":
        """Return the room of a fragment, which may be spread in several places."""
        return replace(self, scope=scope, levels=min(self.levels, 4), pages=min(self.pages, 1))


def _is_page(known: GraphQLField) -> bool:
    return get_named_type(known.type).name.endswith("Connection")
