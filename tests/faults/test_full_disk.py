"""PostgreSQL's disk fills up and has room again: what was acknowledged is there, and everything goes on by itself."""

import asyncio
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from db.database import Database
from tests.faults.checker import all_seen, at_rest, bugs_in, check
from tests.faults.clients import PATIENCE_SECONDS, Node, Reporter, Watcher, cursor_at
from tests.faults.stand import own_postgres, stand
from tests.faults.zygote import Zygote
from tests.support.waiting import until

DISK_MIB = 192
CHUNK = b"\0" * 65536


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A folder on a small file system of its own."""
    program, undo = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or program is None or undo is None:
        pytest.skip("only root may mount a small file system")
    folder = Path(tempfile.mkdtemp(prefix="fg-disk-"))
    mount = [program, "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        folder.rmdir()
        pytest.skip("this root may not mount a small file system (a container without CAP_SYS_ADMIN)")
    try:
        yield folder
    finally:
        subprocess.run([undo, "-l", str(folder)], check=True)
        folder.rmdir()


def _fill(file: Path) -> None:
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while True:
            filler.write(CHUNK)


async def test_a_full_disk_loses_nothing_that_was_acknowledged(
    zygote: Zygote, small_disk: Path, tmp_path: Path
) -> None:
    log, filler = tmp_path / "log", small_disk / "filler"
    async with AsyncExitStack() as stack:
        postgres = stack.enter_context(own_postgres(small_disk))
        running = await stack.enter_async_context(stand(zygote, postgres.dsn("fleetgraph"), log, apis=1, workers=1))
        watcher = Watcher(running.calm_ports, await cursor_at(running.calm_ports[0]))
        # Large ones: what PostgreSQL has room for inside its files would hide that there is none outside.
        nodes = [Node(f"n{number}", ballast=300_000) for number in range(6)]
        reporter = Reporter(running.calm_ports, nodes, random.Random(4), PATIENCE_SECONDS)  # noqa: S311 - repeatable
        watching, stop = asyncio.create_task(watcher.run()), asyncio.Event()
        reporting = asyncio.create_task(reporter.run(stop))
        await until(lambda: reporter.reports > 3)
        await asyncio.to_thread(_fill, filler)
        failed = reporter.failures
        await until(lambda: reporter.failures > failed + 3)
        filler.unlink()
        # Where its log found no room PostgreSQL has ended; starting it again is its administrator's, here ours.
        await asyncio.to_thread(postgres._cluster.ensure_running)
        taken = reporter.reports
        await until(lambda: reporter.reports > taken + 3)
        stop.set()
        await reporting
        database = await Database.connect(running.dsn, size_max=2)
        try:
            await at_rest(database)
            await all_seen(database, [watcher])
            await check(database, [node for node in nodes if node.id], [watcher])
        finally:
            await database.close()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    assert bugs_in(log) == []
