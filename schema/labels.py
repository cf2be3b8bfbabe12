"""Labels and drivers as they are given."""

from collections.abc import Sequence

import strawberry

from domain.driver_labels import Driver
from domain.labels import GivenLabel


@strawberry.input(description="A label to set.")
class LabelInput:
    """A key and its value."""

    key: str = strawberry.field(description="Such as `zone`; keys of the inventory and of the system are refused.")
    value: str = strawberry.field(description="Letters, digits and . _ - + : / ~, 255 at most; may be empty.")


@strawberry.input(description="A driver that an agent serves.")
class DriverInput:
    """A driver of a hello."""

    id: str = strawberry.field(description="Letters a-z, digits and . _ -; a driver with another id is skipped.")
    version: str | None = strawberry.field(default=None, description="Its version; `unknown` when left out.")
    kinds: list[str] | None = strawberry.field(
        default=None, description="What it serves, such as `power`; what is no kind is skipped, at most 32 are kept."
    )


def labels_given(given: Sequence[LabelInput] | None) -> list[GivenLabel] | None:
    """Return labels as the use case takes them."""
    return None if given is None else [GivenLabel(each.key, each.value) for each in given]


def drivers_given(given: Sequence[DriverInput] | None) -> list[Driver] | None:
    """Return drivers as the use case takes them."""
    return None if given is None else [Driver(each.id, each.version, tuple(each.kinds or ())) for each in given]
