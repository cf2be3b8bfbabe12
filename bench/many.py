"""Run three API processes, two workers and Redis here, and the acceptance test against them.

`.venv/bin/python -m bench.many [--over redis|postgres] [--json]`. A report that is not applied, a change that another
process does not show, an event that is missing, doubled or out of order for any subscriber, or an error in a program's
log is exit status 1.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence

from bench.several.figures import Figures
from bench.several.programs import all_programs
from bench.several.run import accepted
from bench.stand.command import answered


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.many", description="Test several processes as one.")
    parser.add_argument("--over", choices=("redis", "postgres"), default="redis", help="what hints go over")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)

    def measure() -> str:
        with all_programs(given.over) as programs:
            found = asyncio.run(accepted(programs))
        return json.dumps(found.document(), indent=2) if given.json else _report(found)

    return answered(measure)


def _report(found: Figures) -> str:
    lines = [f"Accepted: {found.events} events, each once and in order for every subscriber.", ""]
    lines += [f"{name:<34} {value}" for name, value in dict(found.document()["figures"]).items()]  # type: ignore[call-overload]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
