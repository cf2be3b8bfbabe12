"""This machine itself, whatever it is."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agent.capture import capture, collect_captured
from agent.host.answers import Cause, Missing
from agent.host.ethtool import vf_macs
from agent.host.files import Fact
from agent.host.inventory import collect
from agent.host.live import LiveAsker, live_source
from domain.sections import decode, encode

ROOT = Path(__file__).resolve().parents[3]
AS_NOBODY = """
import os, sys
from pathlib import Path
from agent.capture import capture, collect_captured
from agent.doctor import examine, render
from agent.host.inventory import collect
from agent.host.live import live_source
from domain.sections import encode
import rich.console
os.setgroups([]); os.setgid(65534); os.setuid(65534)
folder = Path(sys.argv[1]) / "capture"
live = {name: encode(section) for name, section in collect(live_source()).items()}
capture(live_source(), folder)
assert {name: encode(section) for name, section in collect_captured(folder).items()} == live
for finding in examine(live_source()):
    print(finding.section, finding.fact, finding.outcome.value, finding.reason, sep="|")
"""

BEHIND_A_DEAD_SERVER = """
import ctypes, os, sys
from agent.host.deadline import Probes
from agent.host.inventory import collect
from agent.host.live import live_source
libc = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, PRIVATE_AND_BELOW = 0x20000, 0x44000
channel = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={channel},rootmode=40000,user_id=0,group_id=0".encode()
target = sys.argv[1].encode()
if (
    libc.unshare(NEW_MOUNTS)
    or libc.mount(None, b"/", None, PRIVATE_AND_BELOW, None)
    or libc.mount(b"filer:models", target, b"fuse.filer", 0, options)
):
    sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
source, probes = live_source(), Probes()
for _ in range(2):
    disks = collect(source, probes=probes)["disks"]
    place, = [index for index, item in enumerate(disks.filesystems) if item.mount == sys.argv[1]]
    print(disks.unavailable[f"filesystems.{place}.totalBytes"].value, disks.filesystems[place].shared)
"""
CANNOT_MOUNT = os.geteuid() != 0 or not Path("/dev/fuse").exists()


def test_two_runs_give_equal_bytes_that_decode() -> None:
    first, second = collect(live_source()), collect(live_source())
    assert {name: encode(section) for name, section in first.items()} == {
        name: encode(section) for name, section in second.items()
    }
    for name, section in first.items():
        assert decode(name, encode(section)) == section


def test_a_capture_replays_to_the_bytes_of_the_live_run(tmp_path: Path) -> None:
    live = {name: encode(section) for name, section in collect(live_source()).items()}
    capture(live_source(), tmp_path / "capture")
    replayed = {name: encode(section) for name, section in collect_captured(tmp_path / "capture").items()}
    assert replayed == live


def run(script: str, folder: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, folder]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can turn into nobody")
def test_nobody_collects_captures_and_is_told_what_is_denied() -> None:
    # pytest's own folders are closed to others.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = run(AS_NOBODY, folder)
    assert done.returncode == 0, done.stderr
    lines = [line.split("|") for line in done.stdout.splitlines()]
    denied = {fact: reason for _, fact, outcome, reason in lines if outcome == "unavailable"}
    assert all("permission denied" in reason for reason in denied.values())
    if "kernelLog" in denied:
        assert denied["kernelLog"] == "/dev/kmsg: permission denied: run as root or give CAP_SYSLOG"


@pytest.mark.skipif(CANNOT_MOUNT, reason="mounting a server that never answers takes root and /dev/fuse")
def test_a_server_that_never_answers_costs_the_size_of_its_filesystem(tmp_path: Path) -> None:
    done = run(BEHIND_A_DEAD_SERVER, str(tmp_path))
    if "cannot mount" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["temporarily_failed True"] * 2


def test_a_log_is_readable_when_it_can_be_opened_and_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_text("")
    asker = LiveAsker()
    for name in ("fifo", "file"):
        path = str(tmp_path / name)
        assert asker(Fact.READS, [path])[path] is True
    folder = asker(Fact.READS, [str(tmp_path)])[str(tmp_path)]
    assert isinstance(folder, Missing)
    assert folder.cause is Cause.FAILED


def test_questions_about_nothing_are_answered() -> None:
    asker = LiveAsker()
    for fact in (Fact.PERMANENT_MAC, Fact.NIC_FIRMWARE, Fact.VF_MACS, Fact.FILESYSTEM_BYTES, Fact.READS):
        for name in ("no-such-thing", "a-name-that-no-interface-may-have"):
            answer = asker(fact, [name])[name]
            assert isinstance(answer, Missing)
            assert answer.cause is Cause.ABSENT
    assert asker(Fact.PACKAGE_VERSION, ["no-such-package"])["no-such-package"] in {
        "",
        Missing(Cause.ABSENT, "/var/lib/dpkg/status: absent"),
    }


def test_the_loopback_interface_has_no_functions() -> None:
    assert vf_macs("lo") == ""


def test_the_sizes_of_folders_are_summed_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights.bin").write_bytes(b"x" * 5000)
    (tmp_path / "model/link").symlink_to("weights.bin")
    (tmp_path / "single").write_bytes(b"x" * 70)
    folder, single = str(tmp_path / "model"), str(tmp_path / "single")
    assert LiveAsker()(Fact.TREE_BYTES, [folder, single]) == {folder: 5000 + len("weights.bin"), single: 70}
