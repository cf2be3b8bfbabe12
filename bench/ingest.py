"""Measure ingest against the bare statements that it ends in: heartbeats that change nothing, and sections.

`.venv/bin/python bench/ingest.py [--quick] [--json] [--nodes N]`; how to read what it prints stands in
docs/performance.md. The exit status is 1 when it could not measure.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from bench.ingesting.report import report
from bench.ingesting.run import Plan, measured
from bench.stand.command import answered

_FULL: Final = Plan(nodes=10_000, rounds=3, seconds=6)
_QUICK: Final = Plan(nodes=4_000, rounds=1, seconds=3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench/ingest.py", description="Measure ingest.")
    parser.add_argument("--quick", action="store_true", help="a small fleet, once: under two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--nodes", type=int, help="size of the fleet")
    given = parser.parse_args(arguments)
    base = _QUICK if given.quick else _FULL
    plan = Plan(given.nodes or base.nodes, base.rounds, base.seconds)
    if plan.nodes < 1:
        parser.error(f"--nodes {plan.nodes}: at least 1")

    def measure() -> str:
        seen = measured(plan)
        return json.dumps(seen.document(), indent=2) if given.json else report(seen)

    return answered(measure)


if __name__ == "__main__":
    sys.exit(main())
