"""`python -m bench.cases FOLDER`: print what the product concludes from every file of FOLDER/files.

FOLDER's own catalogs of names follow. The exit status is 1 when the product crashed on a file, 2 without such a folder.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.cases.run import blocks, catalog_blocks
from bench.cases.table import CATALOGS, RULES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with its arguments (None: those of the process); returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.cases", description="Show what is concluded from each file.")
    parser.add_argument("folder", type=Path, help="folder of cases, with the recorded files in its `files` folder")
    files = parser.parse_args(arguments).folder / "files"
    if not files.is_dir():
        parser.error(f"{files} is no folder: there is nothing to run")
    count, crashed = 0, []
    for block in (*blocks(files, RULES), *catalog_blocks(files.parent, CATALOGS)):
        count += 1
        crashed += [block.title] if block.crashed else []
        print(block.text)
    print(f"{count} blocks; crashed: {', '.join(crashed) or 'none'}")
    return 1 if crashed else 0


if __name__ == "__main__":
    raise SystemExit(main())
