"""PostGraphile, installed from its lock file into its own folder, with a Node.js that it runs on."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.stand.errors import CannotMeasure
from bench.stand.processes import end_of, running
from bench.stand.progress import say

FOLDER: Final = Path(__file__).with_name("postgraphile")
_MODULES: Final = FOLDER / "node_modules"
_INSTALL_SECONDS_MAX: Final = 600
# The machine's own Node.js may be older than PostGraphile asks for, which runs on the one that is installed with it.
_QUIETLY: Final = ("--ignore-scripts", "--no-progress", "--loglevel=error")


@contextmanager
def installing(folder: Path) -> Iterator[Callable[[], None]]:
    """Install what the lock file says, unless it is there, while the block goes on; gives what waits for the end.

    Ends with the block, done or not. Raises CannotMeasure.
    """
    lock = hashlib.sha256((FOLDER / "package-lock.json").read_bytes()).hexdigest()
    installed = _MODULES / ".installed"
    if installed.exists() and installed.read_text() == lock:
        yield lambda: None
        return
    npm = shutil.which("npm")
    if npm is None:
        raise CannotMeasure("npm is missing: install it (Debian: apt-get install npm)")
    say("installing PostGraphile …")
    log = folder / "npm.log"
    with running((npm, "ci", *_QUIETLY), log, {}, FOLDER, stop_seconds_max=0) as process:

        def wait() -> None:
            if process.wait(_INSTALL_SECONDS_MAX) != 0:
                raise CannotMeasure(f"PostGraphile could not be installed:\n{end_of(log)}")
            installed.write_text(lock)

        yield wait


def command() -> tuple[Path, Path]:
    """Return what to run: Node.js and the server's file."""
    # The folder of the machine's own kind is the one that npm has installed.
    for node in sorted(_MODULES.glob("node-linux-*/bin/node")):
        return node, FOLDER / "server.mjs"
    raise CannotMeasure(f"npm installed no Node.js into {_MODULES}: its packages are for Linux on x64 and arm64")


def version() -> str:
    """Return PostGraphile's version."""
    package = json.loads((FOLDER / "package.json").read_text())
    return str(package["dependencies"]["postgraphile"])
