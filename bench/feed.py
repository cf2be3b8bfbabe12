"""Measure the feed (the parts are in bench/feeding): latency from commit to client, fan-out under load, memory.

`.venv/bin/python bench/feed.py [--quick] [--json] [--subscribers N] [--rate R] [--seconds S] [--only SIDE]`; how to
read what it prints stands in docs/performance.md. The exit status is 1 when it could not measure.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from bench.feeding.measure import Plan
from bench.feeding.report import report
from bench.feeding.run import measured
from bench.feeding.sides import Kind
from bench.stand.command import answered

_SUBSCRIBERS: Final = 1_000
_RATE: Final = 100.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench/feed.py", description="Measure the feed against its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer seconds: under two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--subscribers", type=int, default=_SUBSCRIBERS, help=f"(default {_SUBSCRIBERS})")
    parser.add_argument("--rate", type=float, default=_RATE, help=f"events a second (default {_RATE:g})")
    parser.add_argument("--seconds", type=float, help="how long events are committed (default 20, with --quick 5)")
    parser.add_argument("--only", choices=list(Kind), action="append", help="measure this side (may be repeated)")
    given = parser.parse_args(arguments)
    if min(given.subscribers, given.rate, given.seconds or 1) <= 0:
        parser.error("--subscribers, --rate and --seconds are more than nothing")
    plan = _plan(given)
    kinds = tuple(kind for kind in Kind if not given.only or kind in given.only)

    def measure() -> str:
        seen = measured(plan, kinds)
        return json.dumps(seen.document(), indent=2) if given.json else report(seen)

    return answered(measure)


def _plan(given: argparse.Namespace) -> Plan:
    size, rate, seconds = given.subscribers, given.rate, given.seconds
    if given.quick:
        return Plan(size, rate, seconds or 5, drain=5, idle=60, light=4, beside=0, again=False)
    return Plan(size, rate, seconds or 20, drain=40, idle=300, light=20, beside=size, again=True)


if __name__ == "__main__":
    sys.exit(main())
