"""What a host tells of itself: only what it can see, and that always."""

from pathlib import Path

import pytest

from agent.vitals import HostVitals
from agent.wire_status import ReportedCondition, ReportedPressure
from tests.agent.host.trees import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "root")
    tree.write("/var/lib/dpkg/status", "")
    return tree


def test_a_reboot_that_packages_ask_for_is_told_with_who_asks(tree: Tree) -> None:
    vitals = HostVitals(tree.source, is_container=False)
    assert vitals.conditions() == ()
    tree.write("/run/reboot-required", "*** System restart required ***\n")
    assert vitals.conditions() == (
        ReportedCondition(type="RebootRequired", reason="PackagesInstalled", message="a package asks for a reboot"),
    )
    tree.write("/run/reboot-required.pkgs", "linux-base\nlibc6\nlinux-base\n\n")
    (told,) = vitals.conditions() or ()
    assert told.message == "asked for by libc6, linux-base"
    tree.write("/run/reboot-required.pkgs", "".join(f"package-{number:03}\n" for number in range(200)))
    (told,) = vitals.conditions() or ()
    assert told.message is not None
    assert told.message.endswith("package-015 and 184 more")


def test_a_host_without_the_mechanism_and_a_container_say_nothing(tree: Tree, tmp_path: Path) -> None:
    tree.write("/run/reboot-required", "")
    assert HostVitals(tree.source, is_container=True).conditions() is None
    other = Tree(tmp_path / "other")
    other.write("/run/reboot-required", "")
    assert HostVitals(other.source, is_container=False).conditions() is None


def test_pressure_is_told_as_it_was_sampled(tree: Tree) -> None:
    vitals = HostVitals(tree.source, is_container=False)
    assert vitals.pressure() == ReportedPressure(unsupported=("CPU", "MEMORY", "IO"))
    tree.write("/proc/pressure/io", "some avg10=61.25 avg60=0 avg300=0 total=0\n")
    assert vitals.pressure() == ReportedPressure(io=61.25, unsupported=("CPU", "MEMORY"))
