"""What each kind of command does."""

import json
import sys
from pathlib import Path

from agent.commands.handlers import Programs, handlers
from agent.gpus.dcgm import NotRun
from agent.inventory import Inventory, inventory_of
from agent.wire import Command, CommandOutcome, CommandState
from domain.dcgm_diagnosis import DcgmDiagnosis
from domain.documents.gpus import Enumeration, Gpu, GpusSection, LinkWidth
from domain.documents.system import SystemSection
from domain.nvml_diagnosis import FailedCheck

ONE = GpusSection(
    enumeration=Enumeration.COMPLETE,
    driver_version="580.1",
    gpus=(Gpu(uuid="GPU-1", pcie_link_width=LinkWidth(current=8, max=16)),),
)
INVENTORY = inventory_of({"system": SystemSection(vendor="Example")})


async def refresh() -> Inventory:
    return INVENTORY


def command(kind: str, **payload: object) -> Command:
    return Command(id="cmd_1", sequence=1, kind=kind, payload=payload, state=CommandState.RUNNING)


def python(program: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program, *arguments)


async def test_a_diagnosis_tells_what_failed_as_a_document() -> None:
    found = await handlers(refresh, Programs(), lambda: ONE)["diag.nvml"](command("diag.nvml", gpuCount=2))
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
    found = await handlers(refresh, Programs(), lambda: ONE)["inventory.refresh"](command("inventory.refresh"))
    assert found.result == {"digest": INVENTORY.digest, "complete": True}


def test_nothing_reboots_or_resets_unless_the_operator_said_how() -> None:
    assert set(handlers(refresh, Programs())) == {"inventory.refresh", "diag.nvml", "diag.dcgm"}


async def test_a_reset_runs_the_operators_program_with_the_gpu_and_looks_anew(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = f"import json, sys; json.dump(sys.argv[1:], open({str(told)!r}, 'w')); print('reset')"
    known = handlers(refresh, Programs(gpu_reset=python(program, "-i", "{gpu}", "; rm")))
    found = await known["gpu.reset"](command("gpu.reset", deviceId="GPU-1"))
    assert json.loads(told.read_text()) == ["-i", "GPU-1", "; rm"]
    assert found.outcome is CommandOutcome.SUCCEEDED
    assert found.result == {"output": "reset\n", "digest": INVENTORY.digest}


async def test_a_program_that_fails_or_hangs_fails_the_command_with_what_it_wrote() -> None:
    fails = Programs(gpu_reset=python("import sys; print('in\\0use'); sys.exit(2)", "{gpu}"))
    found = await handlers(refresh, fails)["gpu.reset"](command("gpu.reset", deviceId="GPU-1"))
    assert (found.outcome, found.reason) == (CommandOutcome.FAILED, "failed")
    assert found.result == {"output": "in\N{REPLACEMENT CHARACTER}use\n"}
    hangs = Programs(reboot=python("import time; time.sleep(600)"), seconds_max=0.3)
    found = await handlers(refresh, hangs)["node.reboot"](command("node.reboot"))
    assert (found.outcome, found.reason) == (CommandOutcome.FAILED, "deadline")


async def test_a_machine_that_stays_up_was_not_rebooted() -> None:
    stays = Programs(reboot=python("pass"), going_down_seconds_max=0.01)
    found = await handlers(refresh, stays)["node.reboot"](command("node.reboot"))
    assert (found.outcome, found.reason) == (CommandOutcome.FAILED, "not-rebooted")


async def test_a_run_of_dcgm_tells_its_level_and_what_failed_or_why_it_was_not_run() -> None:
    levels: list[int] = []

    def dcgm(level: int) -> DcgmDiagnosis | NotRun:
        levels.append(level)
        found = DcgmDiagnosis(3, (FailedCheck("memory", "bad", "0"),))
        return found if level == 1 else NotRun("gpu-busy", "GPU 0")

    known = handlers(refresh, Programs(), dcgm=dcgm)
    found = await known["diag.dcgm"](command("diag.dcgm"))
    assert found.outcome is CommandOutcome.SUCCEEDED
    failures = [{"check": "memory", "reason": "bad", "gpu": "0"}]
    assert found.result == {"passed": False, "level": 1, "tests": 3, "failures": failures}
    found = await known["diag.dcgm"](command("diag.dcgm", level=2))
    assert (found.outcome, found.reason, found.message) == (CommandOutcome.FAILED, "gpu-busy", "GPU 0")
    assert levels == [1, 2]
