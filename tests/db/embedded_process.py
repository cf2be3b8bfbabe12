"""A process that uses the embedded server on BASE until it reads a line or the end of its standard input.

`python -m tests.db.embedded_process BASE [USER]` prints the server's process id, or the refusal, as one JSON line.
"""

import json
import os
import pwd
import sys
from pathlib import Path

from db.embedded import EmbeddedPostgres, EmbeddedPostgresError

FAST = {"fsync": "off", "shared_buffers": "16MB"}


def _become(user: str) -> None:
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)


def main(base: Path, user: str | None) -> None:
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
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
