"""Running PostgreSQL's programs: as which user, for how long, and where their output goes."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from db.embedded.errors import EmbeddedPostgresError

LOG_BYTES_MAX: Final = 8 << 20
_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Account:
    """An unprivileged user of the operating system, in its one group."""

    uid: int
    gid: int


def account_for(data: Path, *, unprivileged_user: str) -> Account | None:
    """Return whom to become for a server on `data`: None to stay who we are.

    PostgreSQL refuses to run as root, and on a data directory that another user owns: root becomes the owner of an
    existing one, and `unprivileged_user` for a new one.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam(unprivileged_user)
    except KeyError:
        raise EmbeddedPostgresError(
            f"PostgreSQL does not run as root, and there is no user {unprivileged_user!r} to run it as: "
            "start as an ordinary user, or set DATABASE_URL to a PostgreSQL server"
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def exit_status(  # noqa: PLR0913 - each is one property of the process
    program: Path,
    *arguments: str,
    account: Account | None,
    output: int,
    seconds_max: float,
    pass_fds: tuple[int, ...] = (),
    text: str = "",
) -> int:
    """Run a program to its end with `text` on its standard input, and return its exit status.

    Raises OSError when it cannot be executed, EmbeddedPostgresError when it is not done after `seconds_max`.
    """
    try:
        return subprocess.run(  # noqa: S603 - PostgreSQL's programs, without a shell
            [program, *arguments],
            check=False,
            input=text.encode(),
            stdout=output,
            stderr=output,
            timeout=seconds_max,
            pass_fds=pass_fds,
            cwd="/",
            # The server inherits it: our tokens and passwords, PGPORT and the like must not reach it.
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            # Ctrl-C in a terminal is for us alone.
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        ).returncode
    except subprocess.TimeoutExpired:
        raise EmbeddedPostgresError(f"{program.name} was not done after {seconds_max:g} s") from None


def reaches(account: Account, directory: Path) -> bool:
    """Tell whether `account` may pass through `directory` and all its parents."""
    shell = (Path("/bin/sh"), "-c", 'cd -- "$1"', "sh", str(directory))
    return exit_status(*shell, account=account, output=subprocess.DEVNULL, seconds_max=10) == 0


def rotate(log: Path) -> None:
    """Keep the log and one older one within about LOG_BYTES_MAX each."""
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_name(f"{log.name}.1"))


def tail(log: Path) -> str:
    """Return the last lines of a log."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read(_TAIL_BYTES).decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
