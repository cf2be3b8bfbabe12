"""The load: wrk, which costs the machine far less than what it loads."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.stand.errors import CannotMeasure
from bench.stand.processes import output_of
from bench.stand.progress import say

CONNECTIONS: Final = 8
_SCRIPT: Final = Path(__file__).with_name("load.lua")
_INSTALL_SECONDS_MAX: Final = 300
_TIMEOUT_SECONDS: Final = 60
_PACKAGES: Final = ("apt-get", "-qq", "-y", "--no-install-recommends")


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk saw in one run."""

    requests: int
    seconds: float
    p50_ms: float
    p95_ms: float
    bytes: int
    errors: dict[str, int]
    """How many failed, by what wrk calls it; those of `status` are other answers than 200."""


def ensure_wrk() -> None:
    """Install Debian's wrk when it is missing and this may be done; raises CannotMeasure when it may not."""
    if shutil.which("wrk"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise CannotMeasure("wrk is missing: install it (Debian: apt-get install wrk)")
    say("installing Debian's wrk …")
    for command in (("apt-get", "update", "-qq"), (*_PACKAGES, "install", "wrk")):
        output_of(command, env={"DEBIAN_FRONTEND": "noninteractive"}, seconds_max=_INSTALL_SECONDS_MAX)


def load(url: str, token: str, body: Path, seconds: int) -> Load:
    """Post the body of a file from all connections for so long; raises CannotMeasure when a request fails."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", f"--timeout={_TIMEOUT_SECONDS}s", "-s", _SCRIPT, url]
    env = {"LOAD_BODY": str(body), "LOAD_TOKEN": token}
    seen = read_wrk(output_of(command, env=env, seconds_max=seconds + _TIMEOUT_SECONDS + 10))
    if failed := {kind: count for kind, count in seen.errors.items() if count}:
        raise CannotMeasure(f"of {seen.requests} requests of {body.stem} failed: {failed}")
    return seen


def read_wrk(printed: str) -> Load:
    """Read the last line that the script printed."""
    seen: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return Load(**seen)
