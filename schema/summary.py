"""The fleet in numbers."""

from typing import ClassVar

import strawberry

from db.declared.summary import FleetCountRow, FleetSummaryRow
from schema.allocation import Capacity


@strawberry.type(description="How many there are of one value.")
class FleetCount:
    """A row of counts."""

    row: ClassVar = FleetCountRow

    value: str | None = strawberry.field(description="The value; null for those of which it is not known.")
    count: int = strawberry.field(description="How many.")


@strawberry.type(description="The fleet in numbers, each list with the most frequent value first.")
class FleetSummary:
    """Counts by one thing at a time."""

    row: ClassVar = FleetSummaryRow

    gpu_models: list[FleetCount] = strawberry.field(description="GPUs by family, such as `H100`.")
    gpu_products: list[FleetCount] = strawberry.field(description="GPUs by product, such as `H100-SXM5-80GB`.")
    conditions: list[FleetCount] = strawberry.field(description="Nodes by the conditions that hold.")
    states: list[FleetCount] = strawberry.field(description="Nodes by state, in lower case.")
    capacity: list[Capacity] = strawberry.field(description="Atoms counted, by class.")
    pools: list[FleetCount] = strawberry.field(description="Nodes by the id of their pool.")
