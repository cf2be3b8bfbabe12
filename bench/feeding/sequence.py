"""What one subscriber got: every number once and in order, or what was wrong with it."""

from array import array
from dataclasses import dataclass, field


@dataclass(slots=True)
class Sequence:
    """The numbers that came, in the order in which they came, and when the first of each did."""

    first: int | None = None
    following: int = 0
    lost: int = 0
    """Numbers that had not come when a later one did; one of them that comes after all is out of order."""
    again: int = 0
    disordered: int = 0
    missing: set[int] = field(default_factory=set)
    arrivals: "array[int]" = field(default_factory=lambda: array("q"))
    """From `first` on, in nanoseconds of the machine's clock; 0 for what is missing."""
    keeps: bool = True

    def take(self, number: int, at_ns: int) -> None:
        """Note a number."""
        if number != self.following or self.first is None:
            self._irregular(number, at_ns)
            return
        self.following = number + 1
        if self.keeps:
            self.arrivals.append(at_ns)

    def _irregular(self, number: int, at_ns: int) -> None:
        if self.first is None:
            self.first = number
        elif number in self.missing:
            self.missing.discard(number)
            self.lost -= 1
            self.disordered += 1
            return
        elif number < self.following:
            self.again += 1
            return
        else:
            gap = range(self.following, number)
            self.missing.update(gap)
            self.lost += len(gap)
            if self.keeps:
                self.arrivals.extend([0] * len(gap))
        self.following = number + 1
        if self.keeps:
            self.arrivals.append(at_ns)

    def arrived(self, number: int) -> int:
        """Return when a number came, or 0."""
        place = number - (self.first or 0)
        return self.arrivals[place] if self.first is not None and 0 <= place < len(self.arrivals) else 0
