"""Whether a node has as many GPUs as it should."""

import pytest

from domain.availability import Availability
from domain.conditions import ConditionStatus, Observed
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.gpu_count import ExpectedGpus, expected_gpus, gpu_count_mismatch

TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE
TWO = (Gpu(uuid="GPU-1"), Gpu(uuid="GPU-2"))


def _said(expected: ExpectedGpus | None, enumeration: Enumeration = Enumeration.COMPLETE) -> tuple[Observed, ...]:
    return gpu_count_mismatch(GpusSection(enumeration=enumeration, gpus=TWO), expected)


def test_the_policy_comes_before_the_count_at_acceptance() -> None:
    assert expected_gpus(8, 4) == ExpectedGpus(8, "its pool's policy")
    assert expected_gpus(0, 4) == ExpectedGpus(0, "its pool's policy")
    assert expected_gpus(None, 4) == ExpectedGpus(4, "its last acceptance")
    assert expected_gpus(None, None) is None


@pytest.mark.parametrize(("count", "reason"), [(3, "FewerThanExpected"), (1, "MoreThanExpected")])
def test_another_number_than_expected_is_a_mismatch(count: int, reason: str) -> None:
    (said,) = _said(ExpectedGpus(count, "its last acceptance"))
    assert (said.status, said.reason) == (TRUE, reason)
    assert said.message == f"GPUs: 2 found, {count} expected by its last acceptance"


@pytest.mark.parametrize("expected", [None, ExpectedGpus(2, "")])
def test_the_expected_number_and_no_expectation_are_no_mismatch(expected: ExpectedGpus | None) -> None:
    assert [each.status for each in _said(expected)] == [FALSE]


@pytest.mark.parametrize("enumeration", [Enumeration.INCOMPLETE, Enumeration.UNAVAILABLE])
def test_an_enumeration_that_is_not_complete_says_nothing_of_the_number(enumeration: Enumeration) -> None:
    assert _said(ExpectedGpus(8, ""), enumeration) == ()
    cut = GpusSection(enumeration=Enumeration.COMPLETE, unavailable={"gpus": Availability.TEMPORARILY_FAILED})
    assert gpu_count_mismatch(cut, ExpectedGpus(8, "")) == ()
    assert gpu_count_mismatch(None, ExpectedGpus(8, "")) == ()
