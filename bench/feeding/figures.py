"""What the bench answers: figures by side, and ratios, ours over the other's or over what is to be reached."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench.feeding.latency import Latency
from bench.feeding.sides import Kind
from bench.feeding.soak import Soaked

IDLE_P50_MS: Final = 15
LOADED_P99_MS: Final = 1000
OTHER_PROCESS: Final = "other_process"
OWN_MUTATION: Final = "own_mutation"
"""Who commits: a process beside the server, or the server for a mutation, from whose request on it counts."""
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class Load:
    """What came of events committed at a rate, at so many subscribers."""

    subscribers: int
    offered: float
    """Events a second that were to be committed."""
    committed: int
    delivered: int
    """Of committed times subscribers, within the time that the bench waits."""
    lost: int
    doubled: int
    disordered: int
    commit_seconds: float
    """From the first commit to the last."""
    deliver_seconds: float
    """From the first commit to the last delivery; where not all came, to the end of the wait."""
    latency: Latency
    """What did not come counts as if it came at the end of the wait: it is later than that."""
    server_cpu_seconds: float
    database_cpu_seconds: float
    client_cpu_seconds: float
    rss_mib: float
    """The server's, at the end."""

    @property
    def complete(self) -> float:
        """The share that was delivered."""
        return self.delivered / (self.committed * self.subscribers)

    @property
    def rate(self) -> float:
        """Events a second that each subscriber got, from the first commit to the last delivery."""
        return self.delivered / self.subscribers / max(self.deliver_seconds, 1e-9)

    @property
    def kept_up(self) -> bool:
        """Whether all was delivered not later than a second after the last commit."""
        return self.complete == 1 and self.deliver_seconds - self.commit_seconds <= 1

    @property
    def cpu_us(self) -> float:
        """CPU time of the server for one delivery, in microseconds."""
        return 1e6 * self.server_cpu_seconds / max(1, self.delivered)


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a server in MiB: before its first subscriber, and by number of idle subscribers."""

    before: float
    at: Mapping[int, float]

    @property
    def kib_each(self) -> float:
        """What one subscriber of the largest number costs, in KiB."""
        most = max(self.at)
        return 1024 * (self.at[most] - self.before) / most


@dataclass(frozen=True, slots=True)
class SideSeen:
    """What one side did."""

    idle: Mapping[str, Latency]
    """By who committed."""
    memory: Memory
    light: Load
    """One event a second, which each side can do: what a delivery costs and takes."""
    loads: Sequence[Load]
    """The first is the compared one; a second one, at a lower rate, follows where that was too much."""


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one run saw."""

    setting: Mapping[str, Any]
    sides: Mapping[str, SideSeen]
    soak: Soaked | None = None

    def ratios(self) -> dict[str, float]:
        """Return the ratios."""
        found = self.soak.ratios() if self.soak else {}
        if Kind.OURS not in self.sides:
            return found
        ours = self.sides[Kind.OURS]
        load = ours.loads[0]
        found |= {f"idle_p50_{who}_vs_{IDLE_P50_MS}_ms": each.p50_ms / IDLE_P50_MS for who, each in ours.idle.items()}
        found["loaded_p99_vs_1_s"] = load.latency.p99_ms / LOADED_P99_MS
        found["loaded_delivered"] = load.complete
        for name, side in self.sides.items():
            if name == Kind.OURS:
                continue
            theirs = side.loads[0]
            found[f"rate_vs_{name}"] = load.rate / theirs.rate
            found[f"loaded_cpu_vs_{name}"] = load.cpu_us / theirs.cpu_us
            found[f"light_p99_vs_{name}"] = ours.light.latency.p99_ms / side.light.latency.p99_ms
            found[f"light_cpu_vs_{name}"] = ours.light.cpu_us / side.light.cpu_us
            found[f"idle_p50_vs_{name}"] = ours.idle[OTHER_PROCESS].p50_ms / side.idle[OTHER_PROCESS].p50_ms
            found[f"memory_vs_{name}"] = ours.memory.kib_each / side.memory.kib_each
        return found

    def document(self) -> dict[str, Any]:
        """Return the JSON object that is printed."""
        figures: dict[str, Any] = {
            "setting": dict(self.setting),
            "idle": {name: {who: asdict(each) for who, each in side.idle.items()} for name, side in self.sides.items()},
            "light": {name: _load(side.light) for name, side in self.sides.items()},
            "loaded": {name: [_load(each) for each in side.loads] for name, side in self.sides.items()},
            "memory": {name: _memory(side.memory) for name, side in self.sides.items()},
        }
        if self.soak is not None:
            figures["soak"] = self.soak.document()
        return {"figures": _rounded(figures), "ratios": _rounded(self.ratios())}


def _load(load: Load) -> dict[str, Any]:
    computed = {"complete": load.complete, "rate": load.rate, "kept_up": load.kept_up, "server_cpu_us": load.cpu_us}
    return {**asdict(load), **computed}


def _memory(memory: Memory) -> dict[str, Any]:
    at = {str(subscribers): mib for subscribers, mib in memory.at.items()}
    return {"before_mib": memory.before, "mib": at, "kib_each": memory.kib_each}


def _rounded(found: Any) -> Any:  # noqa: ANN401 - whatever is JSON
    match found:
        case dict():
            return {name: _rounded(each) for name, each in found.items()}
        case list():
            return [_rounded(each) for each in found]
        case float():
            return round(found, _DIGITS)
        case _:
            return found
