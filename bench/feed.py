"""Measure the feed (the parts are in bench/feeding): latency from commit to client, fan-out under load, memory.

`.venv/bin/python bench/feed.py [--quick] [--json] [--subscribers N] [--rate R] [--seconds S] [--only SIDE]`, or with
`--soak MINUTES [--seed N]` a soak; how to read what it prints stands in docs/performance.md. The exit status is 1 when
it could not measure.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from math import inf
from typing import Final

from bench.feeding.figures import Seen
from bench.feeding.measure import Plan
from bench.feeding.report import report
from bench.feeding.run import endured, measured
from bench.feeding.sides import Kind
from bench.feeding.soak import SoakPlan
from bench.stand.command import answered

_SUBSCRIBERS: Final = 1_000
_RATE: Final = 100.0
_SOAK_SUBSCRIBERS: Final = 100
_SOAK_RATE: Final = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench/feed.py", description="Measure the feed against its peers.")
    parser.add_argument("--quick", action="store_true", help="fewer seconds: under two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--subscribers", type=int, help=f"(default {_SUBSCRIBERS}, in a soak {_SOAK_SUBSCRIBERS})")
    parser.add_argument("--rate", type=float, help=f"events a second (default {_RATE:g}, in a soak {_SOAK_RATE:g})")
    parser.add_argument("--seconds", type=float, help="how long events are committed (default 20, with --quick 5)")
    parser.add_argument("--only", choices=list(Kind), action="append", help="measure this side (may be repeated)")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="soak this server under churn, and nothing else")
    parser.add_argument("--seed", type=int, default=1, help="who leaves and stalls in a soak (default 1)")
    given = parser.parse_args(arguments)
    for name in ("subscribers", "rate", "seconds", "soak"):
        if (value := getattr(given, name)) is not None and value <= 0:
            parser.error(f"--{name} {value}: more than nothing")

    def measure() -> str:
        seen = _seen(given)
        return json.dumps(seen.document(), indent=2) if given.json else report(seen)

    return answered(measure)


def _seen(given: argparse.Namespace) -> Seen:
    if given.soak:
        followers, rate = given.subscribers or _SOAK_SUBSCRIBERS, given.rate or _SOAK_RATE
        return endured(SoakPlan(given.soak, followers, rate, given.seed))
    kinds = tuple(kind for kind in Kind if not given.only or kind in given.only)
    return measured(_plan(given), kinds)


def _plan(given: argparse.Namespace) -> Plan:
    size, rate, seconds = given.subscribers or _SUBSCRIBERS, given.rate or _RATE, given.seconds
    if given.quick:
        return Plan(size, rate, seconds or 5, 5, idle=60, light=4, beside=0, again=False, begin_seconds_max=90)
    return Plan(size, rate, seconds or 20, 40, idle=300, light=20, beside=size, again=True, begin_seconds_max=inf)


if __name__ == "__main__":
    sys.exit(main())
