"""Host pressure: what a machine's want of CPU, memory and disks makes of its conditions (rule 11)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from domain.conditions import Condition, ConditionStatus, Observed
from domain.node import Trust
from domain.pool import PoolClass
from domain.standing import Standing


class Pressure(StrEnum):
    """What is measured, in percent: PSI's `some avg10` of a resource, and steal, the hypervisor's part of CPU time."""

    CPU = "cpu"
    STEAL = "steal"
    MEMORY = "memory"
    IO = "io"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which percentage on pressure is raised and below which it ends; between them it stays as it is.

    Raises ValueError unless 0 < cleared < raised <= 100.
    """

    raised: float
    cleared: float

    def __post_init__(self) -> None:
        """Refuse what could never end, or would be raised and end at once."""
        if not 0 < self.cleared < self.raised <= 100:  # noqa: PLR2004 - percent
            message = f"{self}: two percentages are expected, the second below the first, such as 80/60"
            raise ValueError(message)

    def __str__(self) -> str:
        """Write them as `read` reads them."""
        return f"{self.raised:g}/{self.cleared:g}"

    @classmethod
    def read(cls, text: str) -> "Thresholds":
        """Read `RAISE/CLEAR`; raises ValueError."""
        raised, _, cleared = text.partition("/")
        return cls(float(raised), float(cleared))


Sample = Mapping[Pressure, float]
"""What of it a machine knows."""
AllThresholds = Mapping[Pressure, Thresholds]

THRESHOLDS: Final[AllThresholds] = {
    Pressure.CPU: Thresholds(80, 60),
    Pressure.STEAL: Thresholds(20, 10),
    Pressure.MEMORY: Thresholds(20, 10),
    Pressure.IO: Thresholds(60, 40),
}


@dataclass(frozen=True, slots=True)
class _Cause:
    reason: str
    message: str
    """What holds, with the percentage left out: no figure in it changes from report to report."""


_CAUSES: Final[Mapping[str, Mapping[Pressure, _Cause]]] = {
    "CpuPressure": {
        Pressure.CPU: _Cause("CpuStall", "tasks waited for a CPU for {raised:g} % of the time or more"),
        Pressure.STEAL: _Cause("Steal", "its hypervisor kept {raised:g} % of its CPU time or more for others"),
    },
    "MemoryPressure": {
        Pressure.MEMORY: _Cause("MemoryStall", "tasks waited for memory for {raised:g} % of the time or more"),
    },
    "DiskPressure": {
        Pressure.IO: _Cause("IoStall", "tasks waited for disks for {raised:g} % of the time or more"),
    },
}
PRESSURE_TYPES: Final = tuple(_CAUSES)


@dataclass(frozen=True, slots=True)
class PressureStatement:
    """A machine's pressure, as one of a report's statements."""

    sample: Sample
    thresholds: AllThresholds

    @property
    def types(self) -> tuple[str, ...]:
        """The types of pressure."""
        return PRESSURE_TYPES

    def observed(self, standing: Standing) -> tuple[Observed, ...]:
        """Say what it means where the platform speaks for the node; the pool decides whether it keeps work away."""
        if standing.trust is Trust.TENANT_CONTROLLED:
            return ()
        keeps_away = standing.pool_class is PoolClass.VPS_HOST
        return pressure(self.sample, standing.conditions, self.thresholds, no_schedule=keeps_away)


def pressure(
    sample: Sample, current: Mapping[str, Condition], thresholds: AllThresholds, *, no_schedule: bool
) -> tuple[Observed, ...]:
    """Say of each type that begins, goes on or ends whether it holds now; `no_schedule` is what it does then."""
    said = (_observed(kind, sample, current.get(kind), thresholds) for kind in PRESSURE_TYPES)
    return tuple(replace(each, no_schedule=no_schedule) for each in said if each is not None)


def _observed(kind: str, sample: Sample, known: Condition | None, thresholds: AllThresholds) -> Observed | None:
    """Say nothing where it did not hold and does not begin; the cause that was named is named until it is over."""
    causes = [each for each in _CAUSES[kind] if each in sample]
    high = [each for each in causes if sample[each] >= thresholds[each].raised]
    low = [each for each in causes if sample[each] < thresholds[each].cleared]
    if known is None or known.status is not ConditionStatus.TRUE:
        return _raised(kind, high[0], thresholds) if high else None
    stays = Observed(kind, known.status, known.reason, known.message)
    named = {each for each, cause in _CAUSES[kind].items() if cause.reason == known.reason}
    # What raised it and cannot be read now may be as high as before.
    if not named <= set(low):
        return stays
    if high:
        return _raised(kind, high[0], thresholds)
    return Observed(kind, ConditionStatus.FALSE) if low and low == causes else stays


def _raised(kind: str, by: Pressure, thresholds: AllThresholds) -> Observed:
    limits, cause = thresholds[by], _CAUSES[kind][by]
    message = f"{cause.message.format(raised=limits.raised)}; it ends below {limits.cleared:g} %"
    return Observed(kind, ConditionStatus.TRUE, cause.reason, message)
