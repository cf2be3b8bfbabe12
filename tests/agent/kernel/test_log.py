"""Following the kernel log: faults are known at once and kept, and nothing that goes wrong ends the agent."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from structlog.testing import capture_logs

from agent.kernel.fault_file import FaultFile
from agent.kernel.log import FaultLog, followed_log
from agent.kernel.sources import KMSG
from domain.known_faults import KnownFaults
from tests.agent.fake_server import until
from tests.agent.kernel.records import BOOT, HERE_PCI, FakeRecords, frame, xid


@dataclass
class Told:
    changes: int = 0
    alarms: list[frozenset[int]] = field(default_factory=list)

    def changed(self) -> None:
        self.changes += 1

    def log(self, records: FakeRecords, state_dir: Path, boot: str = BOOT) -> FaultLog:
        file = FaultFile(state_dir, KMSG, boot)
        return FaultLog(records, KMSG, file, changed=self.changed, alarmed=self.alarms.append)


@asynccontextmanager
async def following(log: FaultLog) -> AsyncIterator[None]:
    task = asyncio.create_task(log.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def short(log: FaultLog) -> list[tuple[int, int, int]]:
    return [(each.fault.code, each.sequence, each.count) for each in log.known.faults.values()]


async def test_what_the_log_holds_at_the_start_is_known_and_only_what_comes_later_alarms(tmp_path: Path) -> None:
    told, records = Told(), FakeRecords([frame(1, xid(48))])
    log = told.log(records, tmp_path)
    async with following(log):
        await until(lambda: records.reads >= 2)
        assert (short(log), told.changes, told.alarms) == ([(48, 1, 1)], 1, [])
        records.feed([frame(2, xid(79)), frame(3, xid(45))])
        await until(lambda: told.alarms)
    assert told.alarms == [frozenset({79, 45})]
    assert FaultFile(tmp_path, KMSG, BOOT).read() == log.known


async def test_a_restart_knows_what_the_log_has_lost_and_a_reboot_knows_nothing(tmp_path: Path) -> None:
    log = Told().log(FakeRecords([frame(1, xid(48)), frame(2, xid(31))]), tmp_path)
    async with following(log):
        await until(lambda: FaultFile(tmp_path, KMSG, BOOT).read().faults)
    again = Told().log(FakeRecords([frame(2, xid(31)), frame(3, xid(79))]), tmp_path)
    async with following(again):
        await until(lambda: len(again.known.faults) == 3)
    assert short(again) == [(48, 1, 1), (31, 2, 1), (79, 3, 1)]
    assert short(Told().log(FakeRecords(), tmp_path, "another-boot")) == []


async def test_a_log_that_cannot_be_read_is_said_once_and_tried_again(tmp_path: Path) -> None:
    records = FakeRecords(error=PermissionError(errno.EPERM, "Operation not permitted"))
    log = Told().log(records, tmp_path)
    with capture_logs() as logs:
        for _ in range(3):
            assert log._turn(records) > 1
        records.error = None
        records.feed([frame(1, xid(79))])
        assert log._turn(records) == 0
    assert [entry["reason"] for entry in logs] == [f"{KMSG}: not permitted: run as root or give CAP_SYSLOG"]
    assert short(log) == [(79, 1, 1)]


async def test_lost_records_are_said(tmp_path: Path) -> None:
    log, records = Told().log(FakeRecords(), tmp_path), FakeRecords([frame(1, "a"), frame(100, "b")])
    with capture_logs() as logs:
        log._turn(records)
    assert [(entry["event"], entry["records"]) for entry in logs] == [("records of the kernel log were lost", 98)]


async def test_faults_that_cannot_be_kept_are_known_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    log = Told().log(FakeRecords([frame(1, xid(79))]), tmp_path / "state")
    with capture_logs() as logs:
        async with following(log):
            await until(lambda: log.known.faults)
    assert [entry["reason"] for entry in logs if "reason" in entry] == ["faults cannot be kept: File exists"]


def test_a_storm_of_known_faults_is_not_written_each_time(tmp_path: Path) -> None:
    now, writes = [0.0], 0

    class Counting(FaultFile):
        def write(self, known: KnownFaults) -> None:
            nonlocal writes
            writes += 1
            super().write(known)

    records = FakeRecords()
    log = FaultLog(
        records,
        KMSG,
        Counting(tmp_path, KMSG, BOOT),
        changed=lambda: None,
        alarmed=lambda _: None,
        clock=lambda: now[0],
    )
    for number in range(1, 1001):
        now[0] += 0.01
        records.feed([frame(number, xid(13))])
        log._turn(records)
        log._keep()
    assert writes == 2
    assert short(log) == [(13, 1000, 1000)]


def test_places_of_gpus_and_what_is_forgotten_are_kept(tmp_path: Path) -> None:
    records = FakeRecords([frame(1, xid(48))])
    log = Told().log(records, tmp_path)
    log._turn(records)
    log.place({HERE_PCI: "GPU-1"})
    kept = FaultFile(tmp_path, KMSG, BOOT).read()
    assert [known.device_id for known in kept.faults.values()] == ["GPU-1"]
    log.forget("GPU-1", up_to=1)
    kept = FaultFile(tmp_path, KMSG, BOOT).read()
    assert (kept.faults, kept.read_to) == ({}, 1)


async def test_an_operator_names_a_file_or_no_log(tmp_path: Path) -> None:
    (tmp_path / "kernel.log").write_text(f"[   12.000000] {xid(79)}\n")
    told = Told()
    log = followed_log(str(tmp_path / "kernel.log"), tmp_path, BOOT, changed=told.changed, alarmed=told.alarms.append)
    async with following(log):
        await until(lambda: told.changes)
    assert short(log) == [(79, 12_000_000, 1)]
    none = followed_log("none", tmp_path, BOOT, changed=told.changed, alarmed=told.alarms.append)
    await none.run()
    assert short(none) == []
