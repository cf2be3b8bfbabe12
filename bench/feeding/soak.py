"""A soak: followers that churn, a steady rate of events, and whether the server's memory is flat all the while."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Any, Final

from bench.feeding.sides import Side
from bench.stand.processes import cpu_seconds
from bench.stand.progress import say
from bench.stand.talk import Helper, helper

_SLICE_SECONDS: Final = 5
_SAID_SLICES: Final = 12
_FINISH_SECONDS_MAX: Final = 120


@dataclass(frozen=True, slots=True)
class SoakPlan:
    """How long, how many, and how many events a second; `seed` says who leaves and stalls."""

    minutes: float
    followers: int
    rate: float
    seed: int
    away_seconds_max: float = 5.0
    """After how long who left is back."""


@dataclass(frozen=True, slots=True)
class Soaked:
    """What a soak saw."""

    plan: SoakPlan
    events: int
    got: dict[str, Any]
    """By the followers: events got, lost, doubled, disordered, late ones, and how they churned."""
    rss_mib: tuple[float, ...]
    """The server's memory, every five seconds."""
    server_cpu_seconds: float

    @property
    def growth(self) -> float:
        """How often the memory of the second quarter that of the last is; the first is the server's warming up."""
        quarter = max(1, len(self.rss_mib) // 4)
        return fmean(self.rss_mib[-quarter:]) / fmean(self.rss_mib[quarter : 2 * quarter] or self.rss_mib)

    @property
    def slope(self) -> float:
        """MiB an hour, by least squares over all but the first quarter."""
        settled = self.rss_mib[len(self.rss_mib) // 4 :]
        if len(settled) < 2:  # noqa: PLR2004 - a line needs two
            return 0.0
        return linear_regression(range(len(settled)), settled).slope * 3600 / _SLICE_SECONDS

    @property
    def faults(self) -> int:
        """Events that were lost, came twice or out of order, and followers that did not come to the end."""
        return int(sum(self.got[name] for name in ("lost", "doubled", "disordered", "late")))

    def ratios(self) -> dict[str, float]:
        """Return what is to be reached."""
        return {"soak_growth": self.growth, "soak_faults": float(self.faults)}

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "minutes": self.plan.minutes,
            "followers": self.plan.followers,
            "rate": self.plan.rate,
            "seed": self.plan.seed,
            "events": self.events,
            **self.got,
            "mib_an_hour": self.slope,
            "growth": self.growth,
            "server_cpu_seconds": self.server_cpu_seconds,
            "rss_mib": list(self.rss_mib),
        }


def soaked(side: Side, plan: SoakPlan, folder: Path, writer: Helper) -> Soaked:
    """Soak a server; raises CannotMeasure when a follower is refused."""
    target = json.dumps(side.arguments())
    with helper("bench.feeding.churn", folder / "churn.log", target, str(plan.seed)) as churn:
        begin = {"followers": plan.followers, "away_seconds_max": plan.away_seconds_max}
        churn.ask(do="begin", **begin, seconds_max=_FINISH_SECONDS_MAX)
        each = max(1, round(plan.rate * min(_SLICE_SECONDS, 60 * plan.minutes)))
        rss = []
        used = cpu_seconds([side.process])
        slices = max(1, round(60 * plan.minutes / _SLICE_SECONDS))
        for place in range(slices):
            sent = str(folder / "soak.times")
            writer.ask(first=1 + place * each, count=each, rate=plan.rate, jitter=0.5, sent=sent, seconds_max=600)
            rss.append(side.rss_mib())
            if place % _SAID_SLICES == 0:
                say(f"soak: {place * _SLICE_SECONDS // 60} min, {rss[-1]:.0f} MiB …")
        used = cpu_seconds([side.process]) - used
        last = slices * each
        got = churn.ask(do="finish", number=last, patience=_FINISH_SECONDS_MAX, seconds_max=2 * _FINISH_SECONDS_MAX)
    got.pop("wrong")
    return Soaked(plan, last, got, tuple(rss), used)
