"""Whether a node has as many GPUs as it should (rule 8)."""

from dataclasses import dataclass
from typing import Final

from domain.changes.gpus import is_complete
from domain.conditions import ConditionStatus, Observed
from domain.documents.gpus import GpusSection

MISMATCH: Final = "GpuCountMismatch"


@dataclass(frozen=True, slots=True)
class ExpectedGpus:
    """How many GPUs a node should have, and by whose word."""

    count: int
    by: str


def expected_gpus(by_policy: int | None, accepted: int | None) -> ExpectedGpus | None:
    """Return what the pool's policy expects, else what the node was accepted with, else None."""
    if by_policy is not None:
        return ExpectedGpus(by_policy, "its pool's policy")
    return None if accepted is None else ExpectedGpus(accepted, "its last acceptance")


def counted_gpus(gpus: GpusSection | None) -> int | None:
    """Return how many GPUs a node has; None unless it counted all of them."""
    return len(gpus.gpus) if gpus is not None and is_complete(gpus) else None


def gpu_count_mismatch(gpus: GpusSection | None, expected: ExpectedGpus | None) -> tuple[Observed, ...]:
    """Compare a complete enumeration with what is expected; any other says nothing."""
    if expected is None:
        return (Observed(MISMATCH, ConditionStatus.FALSE),)
    found = counted_gpus(gpus)
    if found is None:
        return ()
    if found == expected.count:
        return (Observed(MISMATCH, ConditionStatus.FALSE),)
    reason = "FewerThanExpected" if found < expected.count else "MoreThanExpected"
    message = f"GPUs: {found} found, {expected.count} expected by {expected.by}"
    return (Observed(MISMATCH, ConditionStatus.TRUE, reason, message),)
