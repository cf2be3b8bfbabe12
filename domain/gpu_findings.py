"""What an inventory shows to be wrong with GPUs (rules 8 and 16; the thresholds are explained in docs/health.md).

A finding that a GPU's facts do not decide is left out: what is not known neither raises nor lifts anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from domain.device import Device, fact, numbers, word
from domain.ids import DeviceId
from domain.jsonvalue import JsonValue

RULES: Final = "inventory/1"
"""Id and version of these rules: a verdict that changes raises the version."""
FABRIC_PENDING_MAX: Final = timedelta(minutes=10)
"""How long a registration with the fabric may be in progress: after a boot it is so for minutes."""
FABRIC_PENDING_SINCE: Final = "fabricPendingSince"
"""The attribute that remembers since when a registration is in progress, by the server's clock."""
_COMPLETED: Final = "completed"
_IN_PROGRESS: Final = "in_progress"


class Cause(StrEnum):
    """What may be found to be wrong with a GPU."""

    REMAP_PENDING = "RemapPending"
    RETIREMENT_PENDING = "PageRetirementPending"
    REMAP_FAILED = "RemapFailed"
    VOLATILE_ERRORS = "VolatileErrors"
    LINK_INACTIVE = "LinkInactive"
    FEWER_LINKS = "FewerLinks"
    FABRIC_FAILED = "FabricFailed"
    FABRIC_UNHEALTHY = "FabricUnhealthy"
    FABRIC_PENDING = "FabricPending"


REASONS: Final[Mapping[Cause, str]] = {
    Cause.REMAP_PENDING: "RowRemapPending",
    Cause.RETIREMENT_PENDING: "RowRemapPending",
    Cause.REMAP_FAILED: "RowRemapFailed",
    Cause.VOLATILE_ERRORS: "UncorrectableEcc",
    Cause.LINK_INACTIVE: "NvlinkDegraded",
    Cause.FEWER_LINKS: "NvlinkDegraded",
    Cause.FABRIC_FAILED: "NvlinkDegraded",
    Cause.FABRIC_UNHEALTHY: "NvlinkDegraded",
    Cause.FABRIC_PENDING: "NvlinkDegraded",
}
"""The type of condition that each cause amounts to."""

Findings = Mapping[Cause, str | None]
"""By what was decided: what is wrong, in words, or None where nothing is."""


def findings(gpus: Sequence[Device], now: datetime, *, in_full: bool) -> dict[DeviceId, Findings]:
    """Return what is found of GPUs that told of themselves; `in_full` says that they are all that the node has."""
    fewer = dict(_fewer_links(gpus)) if in_full else {}
    return {
        gpu.id: {
            **dict(_memory(gpu)),
            **dict(_fabric(gpu, now)),
            **dict(_links(gpu)),
            **({Cause.FEWER_LINKS: fewer[gpu.id]} if gpu.id in fewer else {}),
        }
        for gpu in gpus
    }


def due_at(gpus: Iterable[Device], now: datetime) -> datetime | None:
    """Return when time alone will change what is found of these GPUs, if it will."""
    ends = (_pending_since(gpu) for gpu in gpus)
    return min(
        (since + FABRIC_PENDING_MAX for since in ends if since and since + FABRIC_PENDING_MAX > now), default=None
    )


def remember_fabric(seen: Device, known: Device | None, now: datetime) -> dict[str, JsonValue]:
    """Return the attribute that says since when the registration is in progress; a state that is not told ends none."""
    last = fact(known, FABRIC_PENDING_SINCE) if known is not None else None
    state = word(seen, "fabricState")
    if state == _IN_PROGRESS:
        return {FABRIC_PENDING_SINCE: last if isinstance(last, str) else now.isoformat()}
    return {FABRIC_PENDING_SINCE: last} if state is None and isinstance(last, str) else {}


def _memory(gpu: Device) -> Iterator[tuple[Cause, str | None]]:
    for cause, name, words in (
        (Cause.REMAP_PENDING, "health.rowRemap.pending", "a row remap waits for a reset"),
        (Cause.RETIREMENT_PENDING, "health.retiredPages.pending", "a page retirement waits for a reset"),
        (Cause.REMAP_FAILED, "health.rowRemap.failure", "a row could not be remapped: no spare is left"),
    ):
        holds = fact(gpu, name)
        if isinstance(holds, bool):
            yield cause, words if holds else None
    # The errors of the board's whole life are history: what was repaired is no fault.
    errors = fact(gpu, "health.eccUncorrectable.volatile")
    if isinstance(errors, int):
        yield (
            Cause.VOLATILE_ERRORS,
            f"uncorrectable ECC errors since the driver was loaded: {errors}" if errors else None,
        )
    elif fact(gpu, "eccMode.current") is False:
        # Turning it off takes a reset, with which the counters began anew.
        yield Cause.VOLATILE_ERRORS, None


def _fabric(gpu: Device, now: datetime) -> Iterator[tuple[Cause, str | None]]:
    state = word(gpu, "fabricState")
    if state is not None:
        since = _pending_since(gpu)
        is_late = since is not None and since + FABRIC_PENDING_MAX <= now
        yield Cause.FABRIC_PENDING, f"its fabric registration is in progress since {since}" if is_late else None
    status = word(gpu, "fabricStatus")
    if state != _COMPLETED:
        return
    if status is not None:
        yield Cause.FABRIC_FAILED, None if status == "success" else f"its fabric registration failed: {status}"
    health = word(gpu, "fabricHealth")
    listed = fact(gpu, "fabricHealthIssues")
    issues = [str(each) for each in listed] if isinstance(listed, list | tuple) else []
    named = [each for each in issues if not each.startswith("0x")]
    if health == "healthy":
        yield Cause.FABRIC_UNHEALTHY, None
    elif health is not None or named:
        yield Cause.FABRIC_UNHEALTHY, f"the fabric says of it: {', '.join([*([health] if health else []), *issues])}"


def _links(gpu: Device) -> Iterator[tuple[Cause, str | None]]:
    if "nvlinks" in gpu.attributes:
        lost = [] if _is_partitioned(gpu) else numbers(gpu, "nvlinks.lost")
        words = f"inactive NVLinks that were active: {', '.join(map(str, lost))}"
        yield Cause.LINK_INACTIVE, words if lost else None


def _fewer_links(gpus: Sequence[Device]) -> Iterator[tuple[DeviceId, str | None]]:
    """Compare GPUs of one product by how many links are active: most of them tell what is usual.

    One without any active link may have no bridge, and nothing is said where one of them did not tell its links.
    """
    products: dict[str, list[Device]] = {}
    for gpu in gpus:
        if _is_partitioned(gpu):
            yield gpu.id, None
        elif gpu.gpu_product is not None:
            products.setdefault(gpu.gpu_product, []).append(gpu)
    for alike in products.values():
        if not all("nvlinks" in gpu.attributes for gpu in alike):
            continue
        counts = [len(numbers(gpu, "nvlinks.active")) for gpu in alike]
        usual = sorted(counts, reverse=True)[len(counts) // 2]
        for gpu, active in zip(alike, counts, strict=True):
            is_fewer = 0 < active < usual and bool(numbers(gpu, "nvlinks.inactive") or numbers(gpu, "nvlinks.lost"))
            words = f"active NVLinks: {active}, most of its kind in the node have {usual}"
            yield gpu.id, words if is_fewer else None


def _is_partitioned(gpu: Device) -> bool:
    """Say whether it works in MIG mode, in which it has no links."""
    return fact(gpu, "migMode.current") is True


def _pending_since(gpu: Device) -> datetime | None:
    since = fact(gpu, FABRIC_PENDING_SINCE)
    is_pending = isinstance(since, str) and word(gpu, "fabricState") == _IN_PROGRESS
    return datetime.fromisoformat(str(since)) if is_pending else None
