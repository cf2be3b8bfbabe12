"""What each kind of command does."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.commands.handlers import Programs, handlers
from agent.gpus.dcgm import NotRun
from agent.inventory import Inventory, inventory_of
from agent.wire import Command, CommandOutcome, CommandState
from domain.availability import Availability
from domain.dcgm_diagnosis import DcgmDiagnosis
from domain.documents.gpus import EccUncorrectable, Enumeration, Gpu, GpuHealth, GpusSection, LinkWidth, RowRemap
from domain.documents.system import SystemSection
from domain.fault_book import FaultBook
from domain.kernel_log import read_record
from domain.known_faults import NOTHING_READ, KnownFaults
from domain.nvml_diagnosis import FailedCheck

UUID = "GPU-0a1b2c3d-0000-4000-8000-000000000001"

ONE = GpusSection(
    enumeration=Enumeration.COMPLETE,
    driver_version="580.1",
    gpus=(Gpu(uuid="GPU-1", pcie_link_width=LinkWidth(current=8, max=16)),),
)
INVENTORY = inventory_of({"system": SystemSection(vendor="Example")})


HERE = "00000000:18:00.0"


class Faults:
    """What the agent knows of a GPU (`GPU-1`) and of another one."""

    def __init__(self) -> None:
        self.known = KnownFaults(gpus={HERE: UUID})

    def tell(self, sequence: int, code: int, gpu: str = "0000:18:00") -> None:
        book = FaultBook(self.known)
        record = read_record(f"4,{sequence},{sequence},-;NVRM: Xid (PCI:{gpu}): {code}, it failed")
        assert record is not None
        book.read(record)
        self.known = book.known

    def place(self, gpus: Mapping[str, str]) -> None:
        self.known = self.known.placed(gpus)

    def forget(self, device_id: str, up_to: int) -> None:
        self.known = self.known.without(device_id, up_to)

    @property
    def codes(self) -> list[int]:
        return [each.fault.code for each in self.known.faults.values()]


async def refresh() -> Inventory:
    return INVENTORY


def command(kind: str, **payload: object) -> Command:
    return Command(id="cmd_1", sequence=1, kind=kind, payload=payload, state=CommandState.RUNNING)


def python(program: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, *arguments)


async def test_a_diagnosis_tells_what_failed_as_a_document() -> None:
    found = await handlers(refresh, Programs(), Faults(), lambda: ONE)["diag.nvml"](command("diag.nvml", gpuCount=2))
    assert found.outcome is CommandOutcome.SUCCEEDED
    assert found.result == {
        "passed": False,
        "gpuCount": 1,
        "driverVersion": "580.1",
        "failures": [
            {"check": "gpu.count", "reason": "1 GPUs, 2 are expected", "gpu": None},
            {"check": "pcie.link", "reason": "8 of 16 lanes", "gpu": "GPU-1"},
        ],
    }


async def test_a_refresh_tells_the_digest_that_was_reported() -> None:
    found = await handlers(refresh, Programs(), Faults(), lambda: ONE)["inventory.refresh"](
        command("inventory.refresh")
    )
    assert found.result == {"digest": INVENTORY.digest, "complete": True}


def test_nothing_reboots_or_resets_unless_the_operator_said_how() -> None:
    assert set(handlers(refresh, Programs(), Faults())) == {"inventory.refresh", "diag.nvml", "diag.dcgm"}


async def test_a_reset_runs_the_operators_program_with_the_gpu_and_looks_anew(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = f"import json, sys; json.dump(sys.argv[1:], open({str(told)!r}, 'w')); print('reset')"
    known = handlers(refresh, Programs(gpu_reset=python(program, "-i", "{gpu}", "; rm")), Faults())
    found = await known["gpu.reset"](command("gpu.reset", deviceId="GPU-1"))
    assert json.loads(told.read_text()) == ["-i", "GPU-1", "; rm"]
    assert found.outcome is CommandOutcome.SUCCEEDED
    assert found.result == {
        "output": "reset\n",
        "digest": INVENTORY.digest,
        "healthy": False,
        "upTo": str(NOTHING_READ),
    }


async def test_a_program_that_fails_or_hangs_fails_the_command_with_what_it_wrote() -> None:
    fails = Programs(gpu_reset=python("import sys; print('in\\0use'); sys.exit(2)", "{gpu}"))
    found = await handlers(refresh, fails, Faults())["gpu.reset"](command("gpu.reset", deviceId="GPU-1"))
    assert (found.outcome, found.reason) == (CommandOutcome.FAILED, "failed")
    assert found.result == {"output": "in\N{REPLACEMENT CHARACTER}use\n"}
    hangs = Programs(reboot=python("import time; time.sleep(600)"), seconds_max=0.3)
    found = await handlers(refresh, hangs, Faults())["node.reboot"](command("node.reboot"))
    assert (found.outcome, found.reason) == (CommandOutcome.FAILED, "deadline")


async def test_a_machine_that_stays_up_was_not_rebooted() -> None:
    stays = Programs(reboot=python("pass"), going_down_seconds_max=0.01)
    found = await handlers(refresh, stays, Faults())["node.reboot"](command("node.reboot"))
    assert (found.outcome, found.reason) == (CommandOutcome.FAILED, "not-rebooted")


async def test_a_run_of_dcgm_tells_its_level_and_what_failed_or_why_it_was_not_run() -> None:
    levels: list[int] = []

    def dcgm(level: int) -> DcgmDiagnosis | NotRun:
        levels.append(level)
        found = DcgmDiagnosis(3, (FailedCheck("memory", "bad", "0"),))
        return found if level == 1 else NotRun("gpu-busy", "GPU 0")

    known = handlers(refresh, Programs(), Faults(), dcgm=dcgm)
    found = await known["diag.dcgm"](command("diag.dcgm"))
    assert found.outcome is CommandOutcome.SUCCEEDED
    failures = [{"check": "memory", "reason": "bad", "gpu": "0"}]
    assert found.result == {"passed": False, "level": 1, "tests": 3, "failures": failures}
    found = await known["diag.dcgm"](command("diag.dcgm", level=2))
    assert (found.outcome, found.reason, found.message) == (CommandOutcome.FAILED, "gpu-busy", "GPU 0")
    assert levels == [1, 2]


async def test_a_diagnosis_counts_the_faults_of_this_boot_on_the_gpus_that_they_are_of() -> None:
    faults = Faults()
    for sequence, code in enumerate((13, 45, 62), start=1):
        faults.tell(sequence, code)
    faults.tell(9, 79, "0000:3b:00")
    gpus = GpusSection(
        enumeration=Enumeration.COMPLETE,
        gpus=(Gpu(uuid=UUID, pci_bus_id=HERE), Gpu(uuid=UUID[:-1] + "2", pci_bus_id="00000000:3B:00.0")),
    )
    found = await handlers(refresh, Programs(), faults, lambda: gpus)["diag.nvml"](command("diag.nvml"))
    assert found.result is not None
    assert found.result["failures"] == [
        {"check": "xid.recent", "reason": "Xid 62 in this boot", "gpu": UUID},
        {"check": "xid.recent", "reason": "Xid 79 in this boot", "gpu": UUID[:-1] + "2"},
    ]


def gpus_of(gpu: Gpu, **unavailable: Availability) -> Inventory:
    named = {name.replace("_", "."): why for name, why in unavailable.items()}
    return inventory_of({"gpus": GpusSection(enumeration=Enumeration.COMPLETE, gpus=(gpu,), unavailable=named)})


def health(*, pending: bool = False, failure: bool = False, volatile: int = 0) -> GpuHealth:
    remap = RowRemap(correctable=1, uncorrectable=1, pending=pending, failure=failure)
    return GpuHealth(row_remap=remap, ecc_uncorrectable=EccUncorrectable(volatile=volatile, aggregate=9))


WELL = Gpu(uuid=UUID, pci_bus_id=HERE, health=health(), pcie_link_width=LinkWidth(current=8, max=16))


@pytest.mark.parametrize(
    ("seen", "is_well"),
    [
        (gpus_of(WELL), True),
        (gpus_of(Gpu(uuid=UUID, pci_bus_id=HERE)), True),
        (gpus_of(Gpu(uuid=UUID, pci_bus_id=HERE, lost=True)), False),
        (gpus_of(Gpu(uuid=UUID, pci_bus_id=HERE, health=health(pending=True))), False),
        (gpus_of(Gpu(uuid=UUID, pci_bus_id=HERE, health=health(failure=True))), False),
        (gpus_of(Gpu(uuid=UUID, pci_bus_id=HERE, health=health(volatile=1))), False),
        (gpus_of(WELL, gpus_0_health_rowRemap=Availability.TEMPORARILY_FAILED), False),
        (gpus_of(WELL, gpus_0_health_rowRemap=Availability.UNSUPPORTED), True),
        (gpus_of(Gpu(uuid=UUID[:-1] + "2")), False),
        (INVENTORY, False),
    ],
)
async def test_a_reset_that_leaves_the_gpu_well_ends_its_faults_and_no_others(
    seen: Inventory, *, is_well: bool
) -> None:
    faults = Faults()
    faults.tell(1, 48)
    faults.tell(2, 79, "0000:3b:00")

    async def later() -> Inventory:
        faults.tell(3, 119)
        return seen

    programs = Programs(gpu_reset=python("pass", "{gpu}"))
    found = await handlers(later, programs, faults)["gpu.reset"](command("gpu.reset", deviceId=UUID))
    assert found.result is not None
    assert found.result["healthy"] is is_well
    assert faults.codes == ([79, 119] if is_well else [48, 79, 119])


async def test_a_reset_that_failed_ends_no_fault() -> None:
    faults = Faults()
    faults.tell(1, 48)
    fails = Programs(gpu_reset=python("raise SystemExit(1)", "{gpu}"))
    await handlers(refresh, fails, faults)["gpu.reset"](command("gpu.reset", deviceId=UUID))
    assert faults.codes == [48]
