"""What every object of the graph shares."""

from typing import Any, ClassVar

import strawberry

from db.views.documents import UnknownFactRow
from resolvers.context import Context
from schema.enums import Availability

Info = strawberry.Info[Context, None]


@strawberry.interface(name="Node", description="An object with an id (Relay); the fleet's machine is `ComputeNode`.")
class NodeInterface:
    """Relay's Node."""

    id: strawberry.ID = strawberry.field(description="Globally unique id.")


class RowTyped:
    """A type whose objects are rows that say their type in the column `typename`."""

    @classmethod
    def is_type_of(cls, value: Any, _info: Any) -> bool:  # noqa: ANN401 - whatever a resolver returned
        """Tell the row's type by its column."""
        return bool(getattr(value, "typename", None) == cls.__name__)


@strawberry.type(description="A fact that is not known, and why.")
class UnknownFact:
    """One entry of an `unavailable` map."""

    row: ClassVar = UnknownFactRow

    fact: str = strawberry.field(description="Path of the fact, such as `gpus.3.serial`.")
    availability: Availability = strawberry.field(description="Why it has no value.")


def unknown_facts(entries: dict[str, Any]) -> list[UnknownFact]:
    """Return a map of unknown facts as a list, by path."""
    return [UnknownFact(fact=fact, availability=Availability(why)) for fact, why in sorted(entries.items())]
