"""Measure reads: this server, its plain execution, hand-written SQL and PostGraphile on the same rows.

`.venv/bin/python bench/reads.py [--quick] [--json] [--nodes N] [--seconds S]`; how to read what it prints stands in
docs/performance.md. The exit status is 1 when it could not measure.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from bench.reading.asked import FAR_PAGE_NUMBER, PAGE
from bench.reading.measure import Plan
from bench.reading.report import report
from bench.reading.run import Sizes, measured
from bench.stand.command import answered

_NODES: Final = 10_000
_NODES_MIN: Final = (FAR_PAGE_NUMBER + 1) * PAGE
_SMALL: Final = 1_000
_LARGE: Final = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench/reads.py", description="Measure reads against their peers.")
    parser.add_argument("--quick", action="store_true", help="short rounds and no large fleet: under two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--nodes", type=int, default=_NODES, help=f"size of the fleet (default {_NODES})")
    parser.add_argument("--seconds", type=int, help="length of a round (default 3, with --quick 1)")
    given = parser.parse_args(arguments)
    if given.nodes < _NODES_MIN:
        parser.error(f"--nodes {given.nodes}: at least {_NODES_MIN}, for page {FAR_PAGE_NUMBER} of the list")
    if given.seconds is not None and given.seconds < 1:
        parser.error(f"--seconds {given.seconds}: at least 1")
    seconds = given.seconds or (1 if given.quick else 3)
    rounds, longest = (2, 3) if given.quick else (3, 15)
    plan = Plan(rounds, seconds, longest * seconds, quick=given.quick)
    sizes = Sizes(given.nodes, tuple({_SMALL} if given.quick else {_SMALL, _LARGE} - {given.nodes}))

    def measure() -> str:
        seen = measured(sizes, plan)
        return json.dumps(seen.document(), indent=2) if given.json else report(seen)

    return answered(measure)


if __name__ == "__main__":
    sys.exit(main())
