"""Host pressure: Linux PSI and CPU steal. Readings, never inventory."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from agent.host.answers import Cause, Missing
from agent.host.files import LARGE_READ_BYTES_MAX, Source, raw_text

Resource = Literal["cpu", "memory", "io"]
RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory", "io")
_AVERAGE: Final = re.compile(r"^(some|full) avg10=([\d.]+)", re.MULTILINE)
_CPU_LINE: Final = re.compile(r"^cpu\d+ ", re.MULTILINE)
_FIELDS: Final = 8  # user nice system idle iowait irq softirq steal; guest time is already part of user
_STEAL: Final = 7


@dataclass(frozen=True, slots=True)
class Pressure:
    """Percent of the last ten seconds in which some, or all, tasks waited; old kernels have no `full` for CPUs."""

    some_avg10: float
    full_avg10: float | None


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """One sample of /proc/stat: ticks since boot by kind, and the number of CPUs they are the sum of."""

    ticks: tuple[int, ...]
    cpus: int


def read_pressure(source: Source) -> dict[Resource, Pressure | Missing]:
    """Return each resource's pressure; Missing is `absent` without PSI and `disabled` where it is switched off."""
    return {resource: _pressure(source, resource) for resource in RESOURCES}


def read_cpu_times(source: Source) -> CpuTimes | Missing:
    """Return a sample of the CPU times."""
    content = raw_text(source, "/proc/stat", LARGE_READ_BYTES_MAX)
    return content if isinstance(content, Missing) else parse_cpu_times(content)


def parse_cpu_times(content: str) -> CpuTimes | Missing:
    """Read the first line of /proc/stat and count the CPUs."""
    name, _, rest = content.partition("\n")[0].partition(" ")
    fields = rest.split()
    if name != "cpu" or len(fields) < _FIELDS or not all(field.isdecimal() for field in fields):
        return Missing(Cause.FAILED, "/proc/stat does not begin with the CPU times")
    return CpuTimes(tuple(map(int, fields[:_FIELDS])), len(_CPU_LINE.findall(content)))


def steal_percent(before: CpuTimes, after: CpuTimes) -> float | None:
    """Return the stolen share of the interval in percent, or None when the two samples do not measure one.

    Counters that went backwards, another number of CPUs, or no time between them: the sample is dropped and `after`
    is the next one's `before`.
    """
    spent = [new - old for old, new in zip(before.ticks, after.ticks, strict=True)]
    total = sum(spent)
    if before.cpus != after.cpus or min(spent) < 0 or total == 0:
        return None
    return 100 * spent[_STEAL] / total


def _pressure(source: Source, resource: Resource) -> Pressure | Missing:
    path = f"/proc/pressure/{resource}"
    content = raw_text(source, path)
    if isinstance(content, Missing):
        return content
    averages = {found[1]: float(found[2]) for found in _AVERAGE.finditer(content)}
    if "some" not in averages:
        return Missing(Cause.FAILED, f"{path} has no `some` line")
    return Pressure(averages["some"], averages.get("full"))


@dataclass(frozen=True, slots=True)
class HostPressure:
    """How pressed the host is, in percent; what is not known is None, what the host does not measure is named."""

    cpu: float | None = None
    memory: float | None = None
    io: float | None = None
    steal: float | None = None
    unsupported: tuple[Resource, ...] = ()


class PressureSampler:
    """Samples again and again: CPU steal is the share of the time between two samples."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._before: CpuTimes | None = None

    def sample(self) -> HostPressure | None:
        """Return the pressure now; None when nothing of it is known."""
        read = read_pressure(self._source)
        found = {
            resource: None if isinstance(pressure, Missing) else pressure.some_avg10
            for resource, pressure in read.items()
        }
        unsupported = tuple(
            resource
            for resource, pressure in read.items()
            if isinstance(pressure, Missing) and pressure.cause in {Cause.ABSENT, Cause.DISABLED}
        )
        sample = HostPressure(found["cpu"], found["memory"], found["io"], self._steal(), unsupported)
        return None if sample == HostPressure() else sample

    def _steal(self) -> float | None:
        now = read_cpu_times(self._source)
        before, self._before = self._before, None if isinstance(now, Missing) else now
        return None if before is None or isinstance(now, Missing) else steal_percent(before, now)
