"""What was to be reached, beside what was."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """What a ratio is to be: at least `bound`, or at most."""

    ratio: str
    bound: float
    at_least: bool = True

    @property
    def words(self) -> str:
        """Say what is to be reached."""
        return f"{'≥' if self.at_least else '≤'} {self.bound}"

    def met(self, found: float) -> str:
        """Say whether it is."""
        return "met" if (found >= self.bound if self.at_least else found <= self.bound) else "not met"


def reached(ratios: Mapping[str, float], reaches: Sequence[Reach]) -> Iterator[str]:
    """Return the lines of ratios, each with what it is to reach."""
    yield "ratios, ours over the other's; what is to be reached"
    wanted = {reach.ratio: reach for reach in reaches}
    for name, ratio in ratios.items():
        reach = wanted.pop(name, None)
        yield f"{name:<34}{ratio:>8.2f}" + (f"   {reach.words}: {reach.met(ratio)}" if reach else "")
    for name, reach in wanted.items():
        yield f"{name:<34}{'—':>8}   {reach.words}: not measured"
