import errno

import pytest

from agent.host.answers import Cause, Missing, of_error
from agent.host.files import READ_BYTES_MAX, TreeSource
from agent.host.pressure import (
    RESOURCES,
    CpuTimes,
    HostPressure,
    Pressure,
    PressureSampler,
    parse_cpu_times,
    read_cpu_times,
    read_pressure,
    steal_percent,
)
from tests.agent.host.trees import Tree

SOME = "some avg10=12.50 avg60=0.21 avg300=0.25 total=73759571\n"
FULL = "full avg10=3.00 avg60=0.00 avg300=0.00 total=1846\n"


class DisabledPressure(TreeSource):
    """A kernel built with CONFIG_PSI_DEFAULT_DISABLED: the files open, and refuse to be read."""

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        if path.startswith("/proc/pressure/"):
            return of_error(path, OSError(errno.EOPNOTSUPP, "Operation not supported"))
        return super().read(path, limit)


def test_absent_disabled_and_present_are_three_answers(tree: Tree) -> None:
    tree.write("/proc/pressure/memory", SOME + FULL)
    answers = read_pressure(tree.source)
    assert answers["memory"] == Pressure(12.5, 3.0)
    assert isinstance(answers["io"], Missing)
    assert answers["io"].cause is Cause.ABSENT
    disabled = read_pressure(DisabledPressure(tree.root, tree.source.ask))["memory"]
    assert isinstance(disabled, Missing)
    assert disabled.cause is Cause.DISABLED


def test_an_old_kernel_has_no_full_for_cpus_which_is_not_zero(tree: Tree) -> None:
    tree.write("/proc/pressure/cpu", SOME)
    assert read_pressure(tree.source)["cpu"] == Pressure(12.5, None)


def test_a_file_without_the_line_failed(tree: Tree) -> None:
    tree.write("/proc/pressure/cpu", "?\n")
    answer = read_pressure(tree.source)["cpu"]
    assert isinstance(answer, Missing)
    assert answer.cause is Cause.FAILED


def times(*ticks: int, cpus: int = 2) -> CpuTimes:
    return CpuTimes(ticks, cpus)


def test_steal_is_the_share_of_the_interval() -> None:
    before, after = times(100, 0, 50, 800, 10, 0, 0, 40), times(130, 0, 60, 840, 10, 0, 0, 60)
    assert steal_percent(before, after) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (times(18, 0, 0, 100, 80, 2, 0, 0), times(38, 0, 0, 100, 40, 1, 0, 0)),
        (times(1, 0, 0, 1, 0, 0, 0, 900), times(9, 0, 0, 9, 0, 0, 0, 1)),
        (times(1, 0, 0, 1, 0, 0, 0, 0), times(2, 0, 0, 2, 0, 0, 0, 0, cpus=1)),
        (times(1, 0, 0, 1, 0, 0, 0, 0), times(1, 0, 0, 1, 0, 0, 0, 0)),
    ],
)
def test_samples_that_measure_no_interval_are_dropped(before: CpuTimes, after: CpuTimes) -> None:
    assert steal_percent(before, after) is None


def test_a_sample_counts_its_cpus(tree: Tree) -> None:
    tree.write(
        "/proc/stat", "cpu  9 0 3 80 1 0 0 2 7 0\ncpu0 5 0 2 40 1 0 0 1 7 0\ncpu1 4 0 1 40 0 0 0 1 0 0\nctxt 7\n"
    )
    assert read_cpu_times(tree.source) == times(9, 0, 3, 80, 1, 0, 0, 2)
    assert isinstance(parse_cpu_times("cpu 1 2 x\n"), Missing)
    assert isinstance(parse_cpu_times(""), Missing)


def stat(steal: int, idle: int, cpus: int = 1) -> str:
    return f"cpu  0 0 0 {idle} 0 0 0 {steal} 0 0\n" + "".join(f"cpu{n} 0 0 0 0 0 0 0 0 0 0\n" for n in range(cpus))


def test_the_first_sample_knows_no_steal_and_one_that_measures_nothing_is_dropped(tree: Tree) -> None:
    tree.write("/proc/pressure/cpu", SOME)
    tree.write("/proc/stat", stat(10, 1000))
    sampler = PressureSampler(tree.source)
    assert sampler.sample() == HostPressure(cpu=12.5, unsupported=("memory", "io"))
    tree.write("/proc/stat", stat(40, 1070))
    assert sampler.sample() == HostPressure(cpu=12.5, steal=30.0, unsupported=("memory", "io"))
    # A CPU that was taken away, and counters that went backwards: the next sample measures again.
    tree.write("/proc/stat", stat(90, 1100, cpus=2))
    assert sampler.sample() == HostPressure(cpu=12.5, unsupported=("memory", "io"))
    tree.write("/proc/stat", stat(80, 1200, cpus=2))
    assert sampler.sample() == HostPressure(cpu=12.5, unsupported=("memory", "io"))
    tree.write("/proc/stat", stat(80, 1300, cpus=2))
    assert sampler.sample() == HostPressure(cpu=12.5, steal=0.0, unsupported=("memory", "io"))


def test_a_host_without_pressure_says_that_it_does_not_measure_it(tree: Tree) -> None:
    sampler = PressureSampler(tree.source)
    assert sampler.sample() == HostPressure(unsupported=RESOURCES)
    tree.write("/proc/stat", stat(1, 1))
    assert sampler.sample() == HostPressure(unsupported=RESOURCES)
    tree.write("/proc/stat", stat(1, 2))
    assert sampler.sample() == HostPressure(steal=0.0, unsupported=RESOURCES)


def test_pressure_that_is_switched_off_is_none_of_it(tree: Tree) -> None:
    tree.write("/proc/pressure/cpu", SOME)
    found = PressureSampler(DisabledPressure(tree.root, tree.source.ask)).sample()
    assert found == HostPressure(unsupported=RESOURCES)
