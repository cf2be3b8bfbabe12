"""What a read may bring, reckoned before it is made: rows, as its arguments ask for them, times fields."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from db.views.selection import Asked


@dataclass(slots=True)
class Cost:
    """How many values a selection has in each row, and what is nested in it, each with how many rows."""

    values: int = 0
    nested: "list[tuple[int, int | None, Cost]]" = field(default_factory=list)

    def below(self, size: int = 1, *, asked: int | None = None) -> "Cost":
        """Return the cost of what is nested: `size` rows of it, or as many as the arguments of that index ask for."""
        inner = Cost()
        self.nested.append((size, asked, inner))
        return inner

    def of(self, asked: Sequence[Asked]) -> int:
        """Return how many values one row may bring."""
        total = self.values
        for size, index, cost in self.nested:
            first = None if index is None else asked[index].first
            total += (size if first is None else first) * cost.of(asked)
        return total
