"""Running DCGM's diagnostics: whether, how long, and what is told."""

import json
import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest

from agent.gpus.busy import Busy, busy_gpus, busy_within
from agent.gpus.dcgm import NotRun, run_dcgm
from domain.dcgm_diagnosis import DcgmDiagnosis
from tests.agent.gpus.fake_nvml import LOST, NOT_SUPPORTED, h100, nvml

RUN = json.dumps(
    {"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "x", "results": [{"status": "Pass"}]}]}]}}
)


@pytest.fixture
def program(tmp_path: Path) -> Any:  # noqa: ANN401 - makes programs
    """Return what writes a program that stands for dcgmi."""

    def make(body: str) -> str:
        file = tmp_path / "dcgmi"
        file.write_text(f"#!{sys.executable}\nimport json, sys, time\nfrom pathlib import Path\n{body}\n")
        file.chmod(0o755)
        return str(file)

    return make


def unasked() -> Busy:
    pytest.fail("level 1 disturbs nobody")


def test_without_the_program_the_kind_is_unsupported() -> None:
    found = run_dcgm(1, lambda: None, unasked)
    assert isinstance(found, NotRun)
    assert found.reason == "unsupported"


def test_the_level_is_run_and_its_output_read_whatever_the_status(program: Any, tmp_path: Path) -> None:  # noqa: ANN401
    told = tmp_path / "told"
    made = program(f"Path({str(told)!r}).write_text(json.dumps(sys.argv[1:])); print({RUN!r}); sys.exit(226)")
    assert run_dcgm(1, lambda: made, unasked) == DcgmDiagnosis(1, ())
    assert json.loads(told.read_text()) == ["diag", "-r", "1", "-j"]
    assert run_dcgm(3, lambda: made, Busy) == DcgmDiagnosis(1, ())


@pytest.mark.parametrize("busy", [Busy((0, 5)), Busy(problem="Timeout")])
def test_gpus_in_use_or_perhaps_in_use_are_not_loaded(program: Any, busy: Busy, tmp_path: Path) -> None:  # noqa: ANN401
    ran = tmp_path / "ran"
    made = program(f"Path({str(ran)!r}).touch()")
    found = run_dcgm(2, lambda: made, lambda: busy)
    assert isinstance(found, NotRun)
    assert found.reason == "gpu-busy"
    assert not ran.exists()


def test_a_run_that_hangs_or_writes_no_diagnosis_is_said(program: Any) -> None:  # noqa: ANN401
    hangs = run_dcgm(1, lambda: str(program("time.sleep(600)")), seconds=0.5)
    assert isinstance(hangs, NotRun)
    assert hangs.reason == "deadline"
    fails = run_dcgm(1, lambda: str(program("print('Error: no host engine'); sys.exit(1)")))
    assert isinstance(fails, NotRun)
    assert (fails.reason, "status 1" in fails.message) == ("failed", True)


def test_a_gpu_with_a_compute_process_is_busy_and_one_that_cannot_tell_is_not() -> None:
    api, _ = nvml(
        h100(0, ComputeRunningProcesses=[]),
        h100(1, ComputeRunningProcesses=[object()]),
        h100(2, ComputeRunningProcesses=NOT_SUPPORTED),
    )
    assert busy_gpus(api) == Busy((1,))
    lost = busy_gpus(nvml(h100(0, ComputeRunningProcesses=LOST))[0])
    assert (lost.gpus, lost.problem is None) == ((), False)
    assert busy_gpus(nvml(init=pynvml.NVMLError(12))[0]) == Busy()
    assert busy_gpus(nvml(init=pynvml.NVMLError(999))[0]).problem is not None


def test_the_real_probe_answers_on_any_host_and_a_hanging_one_is_ended() -> None:
    assert busy_within(60).gpus == ()
    hangs = busy_within(0.5, (sys.executable, "-c", "import time; time.sleep(600)"))
    assert (hangs.problem or "").startswith("NVML did not answer")
    assert busy_within(30, (sys.executable, "-c", "print('no')")).problem is not None
