"""Run three API processes, two workers and Redis here, and see what their clients see.

`.venv/bin/python -m bench.many [--over redis|postgres] [--json]`. An event that is missing, doubled or out of order at
any process is exit status 1.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from bench.several.programs import all_programs
from bench.several.run import Seen, seen
from bench.stand.command import answered


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.many", description="See what several processes tell.")
    parser.add_argument("--over", choices=("redis", "postgres"), default="redis", help="what hints go over")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)

    def measure() -> str:
        with all_programs(given.over) as programs:
            found = asyncio.run(seen(programs))
        return json.dumps(found.document(), indent=2) if given.json else _report(found)

    return answered(measure)


def _report(found: Seen) -> str:
    lines = [f"{found.events} events, each once and in order at every process.", ""]
    lines += [f"{name:<34} {value}" for name, value in dict(found.document()["figures"]).items()]  # type: ignore[call-overload]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
