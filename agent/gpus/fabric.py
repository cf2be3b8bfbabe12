"""The NVLink fabric of a GPU, from either source, in one vocabulary.

Source: `NVML_GPU_FABRIC_*` in `nvml.h`; case A5 and rule 16 of the product's rules.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agent.gpus.facts import Fact, document, known, missing
from domain.availability import Availability
from domain.documents.gpus import Fabric

COMPLETED: Final = "completed"

STATES: Final[Mapping[int, str]] = {1: "not_started", 2: "in_progress", 3: COMPLETED}
SUMMARIES: Final[Mapping[int, str]] = {1: "healthy", 2: "unhealthy", 3: "limited_capacity"}

# Two-bit fields of the mask: where each stands, the value that reports something, and its name.
_FLAGS: Final = (
    (0, 1, "degraded_bandwidth"),
    (2, 1, "route_recovery_in_progress"),
    (4, 1, "route_unhealthy"),
    (6, 1, "access_timeout_recovery"),
    (12, 2, "partition_unassigned"),
    (14, 2, "fabric_manager_disconnected"),
)
_FLAG: Final = 0x3
_FLAG_VALUES: Final = 3  # not supported, true, false; a fourth value has no meaning yet
_CONFIGURATION_AT: Final = 8
_CONFIGURATION: Final = 0xF
_CONFIGURATION_FINE: Final = frozenset({0, 1})  # not supported, none
_CONFIGURATIONS: Final[Mapping[int, str]] = {
    2: "incorrect_sysguid",
    3: "incorrect_chassis_sn",
    4: "no_partition",
    5: "insufficient_nvlinks",
    6: "incompatible_gpu_fw",
    7: "invalid_location",
    8: "gpu_state_invalid",
}
_NAMED_BITS: Final = 0xFFFF


def snake(words: str) -> str:
    """Fold words to snake case: `In Progress` is `in_progress`."""
    return re.sub(r"[^a-z0-9]+", "_", words.casefold()).strip("_")


def mask_issues(mask: int) -> tuple[str, ...]:
    """Name what the health mask reports, field by field; bits and values without a name stay raw (`0x10000`)."""
    raw = mask & ~_NAMED_BITS
    issues = []
    for shift, reported, name in _FLAGS:
        value = mask >> shift & _FLAG
        if value == reported:
            issues.append(name)
        elif value >= _FLAG_VALUES:
            raw |= value << shift
    configuration = mask >> _CONFIGURATION_AT & _CONFIGURATION
    if configuration in _CONFIGURATIONS:
        issues.append(f"incorrect_configuration_{_CONFIGURATIONS[configuration]}")
    elif configuration not in _CONFIGURATION_FINE:
        raw |= configuration << _CONFIGURATION_AT
    return (*sorted(issues), *([hex(raw)] if raw else []))


def fabric_fact(  # noqa: PLR0913 - these are the facts of a registration, each of its own
    *,
    state: str | None,
    status: str | None,
    cluster_uuid: str | None,
    clique_id: int | None,
    health: str | None,
    issues: Iterable[str] = (),
    why: Availability = Availability.UNKNOWN,
) -> Fact[Fabric]:
    """Build the registration; an all-zero cluster names no multi-node domain, and a clique has no meaning without one.

    Without a summary, a mask that names a fault is unhealthy; one that names none proves nothing.
    """
    named = tuple(issues)
    summary = health or ("unhealthy" if any(not issue.startswith("0x") for issue in named) else None)
    joined = cluster_uuid.lower() if cluster_uuid and set(cluster_uuid) - {"0", "-"} else None
    return document(
        Fabric,
        {
            "state": _or_missing(state, why),
            "status": _or_missing(status, why),
            "cluster_uuid": known(joined),
            "clique_id": known(clique_id if joined else None),
            "health": _or_missing(summary, why),
            "health_issues": known(named),
        },
    )


def _or_missing(word: str | None, why: Availability) -> Fact[str]:
    return missing(why) if word is None else known(word)
