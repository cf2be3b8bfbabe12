"""Measure applying first inventories against writing the very same rows in bulk, and by size of the fleet.

`.venv/bin/python bench/apply.py [--quick] [--json] [--nodes N]`; how to read what it prints stands in
docs/performance.md. The exit status is 1 when it could not measure.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from bench.applying.report import report
from bench.applying.run import measured
from bench.stand.command import answered

_NODES: Final = 10_000
_QUICK_NODES: Final = 3_000
_ROUNDS: Final[Mapping[int, int]] = {1_000: 3, 50_000: 1}
"""How often fleets beside the compared one are measured; a small one is easily disturbed."""
_COMPARED_ROUNDS: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench/apply.py", description="Measure applying inventories.")
    parser.add_argument("--quick", action="store_true", help="small fleets, once each: under two minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--nodes", type=int, help=f"compared fleet (default {_NODES}, with --quick {_QUICK_NODES})")
    given = parser.parse_args(arguments)
    compared = given.nodes or (_QUICK_NODES if given.quick else _NODES)
    if compared < 1:
        parser.error(f"--nodes {compared}: at least 1")
    rounds = {1_000: 1, compared: 1} if given.quick else {**_ROUNDS, compared: _COMPARED_ROUNDS}

    def measure() -> str:
        seen = measured(compared, dict(sorted(rounds.items())))
        return json.dumps(seen.document(), indent=2) if given.json else report(seen)

    return answered(measure)


if __name__ == "__main__":
    sys.exit(main())
