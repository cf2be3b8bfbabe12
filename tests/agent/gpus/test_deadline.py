import sys
import time
from pathlib import Path

import pytest

from agent.gpus.deadline import collect_with_deadline
from domain.availability import Availability
from domain.documents.gpus import Enumeration, GpusSection


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_real_probe_answers_on_any_host() -> None:
    found = collect_with_deadline(60)
    assert not (found.reason or "").startswith(("the NVML probe", "NVML did not answer"))


def test_the_section_of_the_probe_is_returned() -> None:
    program = 'print(\'{"enumeration": "complete", "driverVersion": "580.1"}\')'
    assert collect_with_deadline(30, python(program)) == GpusSection(
        enumeration=Enumeration.COMPLETE, driver_version="580.1"
    )


def test_a_hanging_probe_and_its_children_end_at_the_deadline(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(600)
"""
    started = time.monotonic()
    found = collect_with_deadline(2, python(program))
    assert time.monotonic() - started < 6
    assert (found.enumeration, found.reason) == (Enumeration.UNAVAILABLE, "NVML did not answer within 2 s")
    assert found.unavailable == dict.fromkeys(
        ("cudaDriverVersion", "driverVersion", "gpus", "kernelModule"), Availability.TEMPORARILY_FAILED
    )
    deadline = time.monotonic() + 5
    while any(is_running(int(pid)) for pid in pids.read_text().split()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(is_running(int(pid)) for pid in pids.read_text().split())


def test_a_child_that_keeps_the_output_open_does_not_hold_the_caller() -> None:
    program = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print('{"enumeration": "complete"}', flush=True)
"""
    found = collect_with_deadline(1.5, python(program))
    assert found.enumeration is Enumeration.UNAVAILABLE


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit(3)", "the NVML probe ended with status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "the NVML probe ended with status -11"),
        ("print('no section')", "the NVML probe wrote no section"),
    ],
)
def test_a_probe_that_dies_is_a_failure_and_no_host_without_gpus(program: str, reason: str) -> None:
    found = collect_with_deadline(30, python(program))
    assert found.enumeration is Enumeration.UNAVAILABLE
    assert found.reason is not None
    assert found.reason.startswith(reason)


def test_output_without_an_end_is_cut_off() -> None:
    found = collect_with_deadline(3, python("while True: print('x' * 100000)"))
    assert found.enumeration is Enumeration.UNAVAILABLE
