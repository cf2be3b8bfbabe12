"""Processes of the product in an instant: one that has imported everything forks itself for each.

A program's start costs seconds of CPU, nearly all of it imports; a test that kills dozens cannot pay them each time.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import psutil

CONSTANTS = "TEST_CONSTANTS"
"""A variable with constants that a program has otherwise: a JSON object, values by module and name."""


class Zygote:
    """The process that forks; close it after what it made has ended."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )

    def start(self, arguments: Sequence[str], env: Mapping[str, str], log: Path) -> psutil.Process:
        """Run `fleetgraph` with arguments; what it prints is appended to `log`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        wanted = {"arguments": list(arguments), "env": dict(env), "log": str(log)}
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return psutil.Process(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def _become(arguments: Sequence[str], env: Mapping[str, str], log: str) -> NoReturn:
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(env)
    for name, value in json.loads(env.get(CONSTANTS, "{}")).items():
        module, _, constant = name.rpartition(".")
        setattr(import_module(module), constant, value)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    status = 1
    try:
        app(list(arguments), standalone_mode=False)
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    from web.cli import app

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what it forks
    for line in sys.stdin:
        given = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(given["arguments"], given["env"], given["log"])
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
