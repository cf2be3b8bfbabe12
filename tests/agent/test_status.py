"""Status reports: what is new at once, everything to a new session, the host's vitals twice a minute."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from agent.client import Connection, connect
from agent.inventory import Inventory, inventory_of
from agent.kernel.fault_file import FaultFile
from agent.kernel.log import FaultLog
from agent.kernel.looks import Looks, Pace
from agent.kernel.sources import KMSG
from agent.loop import Agent
from agent.status import StatusReporter
from agent.wire_status import ReportedCondition, ReportedPressure
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from tests.agent.fake_server import TOKEN, FakeServer, until
from tests.agent.kernel.records import BOOT, HERE_PCI, FakeRecords, frame, xid
from tests.agent.test_loop import FAST, FakeHost

UUID = "GPU-0a1b2c3d-0000-4000-8000-000000000001"


class GpuHost(FakeHost):
    """A machine with a GPU, which NVML may lose."""

    def __init__(self) -> None:
        super().__init__()
        self.gpus: tuple[Gpu, ...] = (Gpu(uuid=UUID, pci_bus_id=HERE_PCI),)

    def collect(self) -> Inventory:
        self.collections += 1
        return inventory_of({"gpus": GpusSection(enumeration=Enumeration.COMPLETE, gpus=self.gpus)})


@dataclass
class FakeVitals:
    """Vitals that a test sets."""

    pressed: ReportedPressure | None = None
    holding: tuple[ReportedCondition, ...] | None = None

    def pressure(self) -> ReportedPressure | None:
        return self.pressed

    def conditions(self) -> tuple[ReportedCondition, ...] | None:
        return self.holding


@dataclass
class Node:
    """An agent with its log and its reports, against a server that is seen through."""

    state_dir: Path
    server: FakeServer = field(default_factory=FakeServer)
    host: GpuHost = field(default_factory=GpuHost)
    vitals: FakeVitals = field(default_factory=FakeVitals)
    records: FakeRecords = field(default_factory=FakeRecords)
    beat_seconds: float = 3600

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        news = asyncio.Event()
        async with connect(Connection("http://fleet.test", TOKEN), self.server.transport()) as client:
            agent = Agent(client, self.host, FAST, news)
            looks = Looks(agent.refresh, Pace(settle=0.01, gap=0.01))
            file = FaultFile(self.state_dir, KMSG, BOOT)
            log = FaultLog(self.records, KMSG, file, changed=news.set, alarmed=looks.ask)
            reporter = StatusReporter(
                client,
                agent,
                log,
                self.vitals,
                news=news,
                timing=FAST,
                beat_seconds=self.beat_seconds,
                join_seconds=0.01,
            )
            works = [each.run() for each in (agent, log, looks, reporter)]
            tasks = [asyncio.ensure_future(work) for work in works]
            try:
                yield
                assert not any(task.done() for task in tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def xids(self) -> list[list[tuple[int, str, int, str | None]]]:
        """What was told of faults, report by report: code, sequence, count, GPU."""
        return [
            [(each["code"], each["sequence"], each.get("count", 1), each.get("deviceId")) for each in report["xids"]]
            for report in self.statuses
            if "xids" in report
        ]

    @property
    def statuses(self) -> list[dict[str, Any]]:
        return [report for node in self.server.nodes.values() for report in node.statuses]


async def test_a_fault_is_told_at_once_with_its_gpu_and_the_hardware_looked_at(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.running():
        await until(lambda: node.server.nodes and node.server.only.contents)
        collections = node.host.collections
        node.records.feed([frame(7, xid(79, ", pid=12, name=python, GPU has fallen off the bus.")), frame(8, xid(45))])
        await until(lambda: node.xids and node.host.collections > collections)
    assert node.xids == [[(79, "7", 1, UUID), (45, "8", 1, UUID)]]
    told, removed = node.statuses[0]["xids"]
    assert told == {
        "kind": "XID",
        "code": 79,
        "address": "0000:18:00",
        "message": "GPU has fallen off the bus.",
        "sequence": "7",
        "deviceId": UUID,
        "bootId": BOOT,
    }
    assert removed["causedBy"] == 79


async def test_a_gpu_that_nvml_lost_is_told_by_where_it_was_also_after_a_restart(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.running():
        await until(lambda: FaultFile(tmp_path, KMSG, BOOT).read().gpus)
    again = Node(tmp_path)
    again.host.gpus = ()
    async with again.running():
        await until(lambda: again.server.nodes and again.server.only.contents)
        again.records.feed([frame(9, xid(79))])
        await until(lambda: again.xids)
    assert again.xids == [[(79, "9", 1, UUID)]]


async def test_a_restart_and_every_new_session_are_told_everything_again(tmp_path: Path) -> None:
    first = Node(tmp_path, records=FakeRecords([frame(1, xid(48))]))
    async with first.running():
        await until(lambda: first.xids)
    node = Node(tmp_path, first.server)
    first.server.only.statuses.clear()
    async with node.running():
        await until(lambda: node.xids)
        node.server.forget()
        await until(lambda: node.server.nodes and node.xids)
        assert node.server.only.hellos == 1
    assert node.xids == [[(48, "1", 1, UUID)]]


async def test_a_report_that_was_lost_is_repeated(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with capture_logs() as logs:
        async with node.running():
            await until(lambda: node.server.nodes and node.server.only.reports)
            node.server.failing = 503
            node.records.feed([frame(1, xid(62))])
            await until(lambda: [entry for entry in logs if entry["event"] == "status reports wait"])
            node.server.failing = None
            await until(lambda: node.xids)
    assert node.xids == [[(62, "1", 1, UUID)]]


async def test_a_storm_of_one_fault_is_few_reports_and_loses_none(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with node.running():
        await until(lambda: node.server.nodes and node.server.only.contents)
        for number in range(1, 201):
            node.records.feed([frame(number, xid(31))])
            await asyncio.sleep(0.002)
        await until(lambda: FaultFile(tmp_path, KMSG, BOOT).read().faults)
    assert len(node.xids) == 1
    again = Node(tmp_path, records=FakeRecords([frame(number, xid(31)) for number in range(1, 201)]))
    async with again.running():
        await until(lambda: again.xids)
    assert again.xids[-1] == [(31, "200", 200, UUID)]


async def test_what_154_asks_for_now_is_told_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    change = ", GPU recovery action changed from 0x{} (a) to 0x{} (b)"
    async with node.running():
        await until(lambda: node.server.nodes and node.server.only.contents)
        node.records.feed([frame(1, xid(154, change.format(0, 1)))])
        await until(lambda: node.xids)
        node.records.feed([frame(2, xid(154, change.format(1, 0)))])
        await until(lambda: len(node.xids) == 2)
    assert node.statuses[-1]["xids"][0]["message"] == change.format(1, 0).removeprefix(", ")


async def test_vitals_are_told_at_the_beat_and_what_is_not_known_is_not_said(tmp_path: Path) -> None:
    node = Node(tmp_path, beat_seconds=0.05)
    node.vitals = FakeVitals(
        ReportedPressure(cpu=0.0, steal=3.5), (ReportedCondition(type="RebootRequired", reason="PackagesInstalled"),)
    )
    async with node.running():
        await until(lambda: len(node.statuses) >= 2)
        node.vitals.holding = ()
        await until(lambda: node.statuses[-1]["conditions"] == [])
    first = {key: value for key, value in node.statuses[0].items() if key not in {"sentAt", "nodeId"}}
    assert first == {
        "pressure": {"cpu": 0.0, "steal": 3.5},
        "conditions": [{"type": "RebootRequired", "reason": "PackagesInstalled"}],
    }
    assert node.statuses[0]["sentAt"]


async def test_a_host_that_knows_nothing_of_itself_says_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path, beat_seconds=0.01)
    async with node.running():
        await until(lambda: node.server.nodes and node.server.only.reports >= 5)
    assert node.statuses == []


async def test_a_generation_is_observed_once_and_a_newer_one_with_the_report_after(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.generation = 1
    async with node.running():
        await until(lambda: node.statuses)
        node.server.generation = 2
        node.records.feed([frame(1, xid(13))])
        await until(lambda: node.statuses[-1].get("observedGeneration") == 2)
        node.records.feed([frame(2, xid(48))])
        await until(lambda: len(node.xids) == 2)
    assert [report.get("observedGeneration") for report in node.statuses] == [1, None, 2, None]


async def test_a_report_that_is_refused_is_said_and_not_repeated(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.server.refuse_status = "xids.0.code: too large"
    with capture_logs() as logs:
        async with node.running():
            await until(lambda: node.server.nodes and node.server.only.contents)
            node.records.feed([frame(1, xid(62))])
            await until(lambda: [entry for entry in logs if entry["event"] == "status report refused"])
            node.server.refuse_status = None
            node.records.feed([frame(2, xid(79))])
            await until(lambda: node.xids)
    assert node.xids == [[(79, "2", 1, UUID)]]
