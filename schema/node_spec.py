"""What is to run on a node."""

from typing import ClassVar

import strawberry

from domain import node_spec


@strawberry.type(description="One thing that is to run on a node.")
class Unit:
    """An entry of nodes.units."""

    document: ClassVar = node_spec.Unit

    kind: str = strawberry.field(description="Such as `nvidia-driver`.")
    version: str | None = strawberry.field(description="In which version, where that matters.")


@strawberry.input(description="One thing that is to run on a node.")
class UnitInput:
    """A unit."""

    kind: str = strawberry.field(
        description="Such as `nvidia-driver`, of which the version's first part is the branch."
    )
    version: str | None = strawberry.field(default=None, description="In which version, where that matters.")

    def given(self) -> node_spec.Unit:
        """Return the unit as the use case takes it."""
        return node_spec.Unit(self.kind, self.version)
