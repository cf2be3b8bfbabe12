"""The program as people and supervisors meet it: started as a process, against a server on this machine."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
import typer
from typer.testing import CliRunner

from agent.cli import app
from agent.simulator.command import seconds_of
from tests.agent.certificates import certificate_pem
from tests.agent.fake_server import TOKEN, FakeServer, serve
from tests.agent.gpus.logs import gpu_block, log

AGENT = (sys.executable, "-c", "from agent.cli import main; main()")
SECONDS_MAX = 60


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def url(server: FakeServer) -> Iterator[str]:
    with serve(server) as address:
        yield address


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLEETGRAPH_")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "200"}


@pytest.fixture
def log_settings() -> Iterator[None]:
    """Keep what a command sets up in this process from the tests that follow."""
    kept = structlog.get_config()
    yield
    structlog.configure(**kept)


def agent(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, *arguments], env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


def test_once_reports_a_recorded_host_and_prints_one_json_object(
    server: FakeServer, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "smi.xml").write_bytes(log(gpu_block()))
    called = {**environment, "FLEETGRAPH_SERVER": url, "FLEETGRAPH_TOKEN": TOKEN}
    done = agent(called, "once", "--nvidia-smi", str(tmp_path / "smi.xml"), "--identity", "rack-1", "--output", "json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert set(answer) == {"nodeId", "snapshotId", "digest"}
    assert answer["nodeId"] == server.only.id
    assert server.only.hello["identityKey"] == "rack-1"
    assert set(server.only.contents) == {"gpus"}


def test_labels_of_the_command_line_are_said_and_otherwise_left_unsaid(
    server: FakeServer, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "smi.xml").write_bytes(log(gpu_block()))
    called = ("once", "--server", url, "--token", TOKEN, "--nvidia-smi", str(tmp_path / "smi.xml"))
    done = agent(environment, *called, "--label", "zone=a", "--label", "note=x=y")
    # A value holds no `=`; the key is what stands before the first.
    assert (done.returncode, "'x=y' is no value" in done.stderr) == (2, True)
    assert agent(environment, *called, "--label", "zone=a", "--label", "spot=").returncode == 0
    assert server.only.hello["labels"] == [{"key": "zone", "value": "a"}, {"key": "spot", "value": ""}]
    assert agent(environment, *called).returncode == 0
    assert "labels" not in server.only.hello


def test_once_reports_this_machine_in_eight_sections(
    server: FakeServer, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    arguments = ("--server", url, "--token-file", str(tmp_path / "token"), "--state-dir", str(tmp_path / "state"))
    done = agent(environment, "once", "--hostname", "one", *arguments)
    assert done.returncode == 0, done.stderr
    assert "8 sections applied" in done.stdout
    assert len(server.only.contents) == 8
    assert server.only.hello["hostname"] == "one"
    again = agent(environment, "once", "--hostname", "two", *arguments)
    assert again.returncode == 0, again.stderr
    assert server.only.hello["hostname"] == "two"


def test_a_capture_is_reported_as_the_machine_it_was_made_on(
    server: FakeServer, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    assert agent(environment, "capture", str(tmp_path / "capture")).returncode == 0
    refused = agent(environment, "capture", str(tmp_path / "capture"))
    assert refused.returncode == 1
    assert "cannot capture" in refused.stderr
    done = agent(environment, "once", "--from-capture", str(tmp_path / "capture"), "--server", url, "--token", TOKEN)
    assert done.returncode == 0, done.stderr
    assert len(server.only.contents) == 8
    assert server.only.hello["hostname"] == os.uname().nodename


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--server", "http://127.0.0.1:1", "--token", "x"), 1, "cannot reach http://127.0.0.1:1: connection refused"),
        (("--server", "URL", "--token", "wrong-token"), 1, "the server does not take this token"),
        (("--server", "URL"), 2, "no token"),
        (("--server", "fleet", "--token", "x"), 2, "'fleet' is not a URL"),
        (("--server", "URL", "--token", "x", "--nvidia-smi", "/none.xml"), 2, "cannot read /none.xml"),
        (("--server", "URL", "--token", "x", "--identity", "two words"), 2, "printable"),
        (("--server", "URL", "--token", "x", "--fabric", "rail"), 2, "NAME=DEVICE"),
        (("--server", "URL", "--token", "x", "--label", "zone"), 2, "KEY=VALUE is expected"),
        (("--server", "URL", "--token", "x", "--label", "gpu.model=H100"), 2, "told by the inventory"),
    ],
)
@pytest.mark.usefixtures("log_settings")
def test_what_goes_wrong_is_one_line_and_a_status(
    arguments: tuple[str, ...], status: int, said: str, url: str, environment: dict[str, str]
) -> None:
    told = [url if argument == "URL" else argument for argument in arguments]
    done = CliRunner().invoke(app, ["once", *told], env={**environment, "FLEETGRAPH_TOKEN": ""})
    assert done.exit_code == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "wrong-token" not in done.stderr
    assert status == 2 or len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_once_fails_when_the_server_cannot_apply(
    server: FakeServer, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    server.apply_error = "gpus.0: another node owns this GPU"
    (tmp_path / "smi.xml").write_bytes(log(gpu_block()))
    done = agent(environment, "once", "--nvidia-smi", str(tmp_path / "smi.xml"), "--server", url, "--token", TOKEN)
    assert done.returncode == 1
    assert "another node owns this GPU" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_ends_well_on_a_signal_and_its_log_is_json_without_the_token(
    number: signal.Signals, server: FakeServer, url: str, environment: dict[str, str]
) -> None:
    command = [*AGENT, "run", "--server", url, "--identity", "one", "--interval", "0.1"]
    process = subprocess.Popen(
        command, env={**environment, "FLEETGRAPH_TOKEN": TOKEN}, stderr=subprocess.PIPE, text=True
    )
    until_heard(server, process, reports=3)
    assert server.only.hello["labels"] == []  # so that one taken out of the configuration goes
    process.send_signal(number)
    _, stderr = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, stderr
    said = [json.loads(line)["message"] for line in stderr.splitlines()]
    assert said[0] == "agent started"
    assert said[-1] == "agent stopped"
    assert TOKEN not in stderr


def test_a_new_certificate_is_told_and_a_node_without_one_is_in_the_fleet_all_the_same(
    server: FakeServer, url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "node.pem"
    command = [*AGENT, "run", "--server", url, "--identity", "one", "--interval", "0.1"]
    process = subprocess.Popen(
        [*command, "--identity-certificate", str(file)],
        env={**environment, "FLEETGRAPH_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    )
    until_heard(server, process, reports=3)
    assert "certificate" not in server.only.hello
    (tmp_path / "new").write_bytes(certificate_pem(0xF00D, 90))
    (tmp_path / "new").replace(file)
    until(process, lambda: "certificate" in server.only.hello)
    assert server.only.hello["certificate"] == {
        "serial": "f00d",
        "notBefore": "2026-01-01T00:00:00Z",
        "notAfter": "2026-04-01T00:00:00Z",
    }
    process.terminate()
    _, stderr = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, stderr
    (told,) = [line for line in map(json.loads, stderr.splitlines()) if line["message"] == "no certificate is told"]
    assert told["reason"] == f"cannot read the certificate in {file}: No such file or directory"


def test_run_with_a_wrong_token_ends_in_one_line(url: str, environment: dict[str, str]) -> None:
    done = agent(environment, "run", "--server", url, "--token", "wrong-token", "--identity", "one", "--spread", "0")
    assert done.returncode == 1
    assert "does not take this token" in done.stderr.splitlines()[-1]
    assert "wrong-token" not in done.stderr


def test_simulate_reports_a_fleet_and_leaves(server: FakeServer, url: str, environment: dict[str, str]) -> None:
    done = agent(environment, "simulate", "--nodes", "25", "--once", "--server", url, "--token", TOKEN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("25 nodes applied, 200 sections sent")
    assert len(server.nodes) == 25


def test_simulate_ends_well_on_ctrl_c(server: FakeServer, url: str, environment: dict[str, str]) -> None:
    command = [*AGENT, "simulate", "--nodes", "5", "--rate", "50", "--server", url, "--token", TOKEN]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + SECONDS_MAX
    while server.sections_received <= 40 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, stderr
    assert "5 nodes applied" in stdout
    assert "Traceback" not in stderr


def test_a_simulation_of_a_given_time_ends_by_itself(server: FakeServer, url: str, environment: dict[str, str]) -> None:
    done = agent(
        environment, "simulate", "--nodes", "3", "--duration", "0.5", "--rate", "40", "--server", url, "--token", TOKEN
    )
    assert done.returncode == 0, done.stderr
    assert server.sections_received > 24


def test_a_duration_is_seconds_or_forever() -> None:
    assert (seconds_of("1.5"), seconds_of("forever")) == (1.5, math.inf)
    for wrong in ("soon", "-1", "nan", "inf"):
        with pytest.raises(typer.BadParameter, match="neither"):
            seconds_of(wrong)


def test_doctor_shows_facts_and_makes_no_identity(environment: dict[str, str], tmp_path: Path) -> None:
    done = agent(environment, "doctor", "--output", "json", "--state-dir", str(tmp_path / "state"))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert {"system", "cpu", "gpus", "readings"} <= {finding["section"] for finding in answer["findings"]}
    assert not (tmp_path / "state").exists()


def until_heard(server: FakeServer, process: subprocess.Popen[str], reports: int) -> None:
    until(process, lambda: bool(server.nodes) and server.only.reports >= reports)


def until(process: subprocess.Popen[str], holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("the agent did not say what was waited for")


def test_explain_log_tells_of_a_log_without_a_server(environment: dict[str, str], tmp_path: Path) -> None:
    log_file = tmp_path / "kernel.log"
    log_file.write_bytes(
        b"4,5,100,-;NVRM: Xid (PCI:0000:18:00): 79, pid=41, name=\\x1b[2Jx, GPU has fallen off the bus.\n"
        b"4,9,200,-;NVRM: Xid (PCI:0000:18:00 GPU-I:02): 13, bad \xff\\x1b[2J"
    )
    done = agent(environment, "explain-log", str(log_file), "--output", "json")
    assert (done.returncode, done.stderr) == (0, "fleetgraph-agent: 3 records are missing before line 2\n")
    first, second = map(json.loads, done.stdout.splitlines())
    named = ("line", "kind", "code", "pci", "pid", "mig", "verdict", "caused_by")
    assert [first[name] for name in named] == [1, "xid", 79, "00000000:18:00.0", 41, None, "node_no_schedule", None]
    assert [second[name] for name in named] == [2, "xid", 13, "00000000:18:00.0", None, "gi2", "event", None]
    assert first["rule"].startswith("xid.79/")
    people = agent(environment, "explain-log", str(log_file))
    assert "line 2: Xid 13 at 00000000:18:00.0 gi2\n  bad \N{REPLACEMENT CHARACTER}" in people.stdout
    assert "\x1b" not in people.stdout
    missing = agent(environment, "explain-log", str(tmp_path / "none"))
    assert (missing.returncode, "cannot read" in missing.stderr) == (2, True)
