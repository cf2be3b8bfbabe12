"""Two identities compared."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hardware_evidence import evidence_of
from domain.hardware_key import Evidence, Field
from domain.identity_score import SCORED, Verdict, is_another_machine, score
from tests.domain import strategies

VALUES: Final = {
    Field.PRODUCT_UUID: ("7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f", "8e1d0b3c-62e4-4d9b-8a6f-4b2c3d5e6f70"),
    Field.SYSTEM_SERIAL: ("QX7M-0041", "QX7M-0042"),
    Field.BOARD_SERIAL: ("BRD55120", "BRD55121"),
    Field.PERMANENT_MAC: ("0c:42:a1:00:00:01", "0c:42:a1:00:00:02"),
    Field.GPU_UUID: ("GPU-1f2e3d4c-0000-4000-8000-00000000000a", "GPU-1f2e3d4c-0000-4000-8000-00000000000b"),
}


def _evidence(choice: dict[Field, int]) -> list[Evidence]:
    return [Evidence(field, VALUES[field][place], known=True, placeholder=False) for field, place in choice.items()]


CHOICES: Final = st.dictionaries(st.sampled_from(SCORED), st.integers(0, 1))


@given(CHOICES, CHOICES)
def test_one_point_per_field_that_is_known_of_both_and_equal(one: dict[Field, int], other: dict[Field, int]) -> None:
    found = score(_evidence(one), _evidence(other))
    both = one.keys() & other.keys()
    assert set(found.matched) == {field for field in both if one[field] == other[field]}
    assert set(found.differing) == both - set(found.matched)
    points = len(found.matched)
    assert found.verdict is (Verdict.SAME if points >= 2 else Verdict.CONFLICT if points else Verdict.DIFFERENT)
    assert all(field in found.explanation for field in both)


@given(strategies.machines(), strategies.machines())
def test_a_score_is_the_same_from_both_sides(one: dict, other: dict) -> None:  # type: ignore[type-arg]
    here, there = evidence_of(one), evidence_of(other)
    assert score(here, there) == score(there, here)


def test_empty_and_placeholders_never_match() -> None:
    void = [Evidence(Field.SYSTEM_SERIAL, "Default string", known=True, placeholder=True)]
    nothing = [Evidence(Field.SYSTEM_SERIAL, None, known=False, placeholder=False)]
    for each in (void, nothing, []):
        assert score(each, each).verdict is Verdict.DIFFERENT
        assert score(each, each).explanation == "no field is known of both"


def _cards(*numbers: int) -> list[Evidence]:
    return [Evidence(Field.GPU_UUID, f"GPU-{number}", known=True, placeholder=False) for number in numbers]


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (range(8), [*range(7), 99], True),
        (range(8), range(4), True),
        (range(8), [7, 20, 21, 22, 23, 24, 25, 26], False),
        ([7], range(8), False),
    ],
)
def test_a_list_agrees_when_half_of_the_longer_is_in_both(one: list[int], other: list[int], agree: bool) -> None:  # noqa: FBT001
    assert bool(score(_cards(*one), _cards(*other)).matched) is agree


def test_another_machine_is_one_of_which_nothing_agrees_and_enough_is_known() -> None:
    all_of_one, all_of_other = _evidence(dict.fromkeys(SCORED, 0)), _evidence(dict.fromkeys(SCORED, 1))
    assert is_another_machine(all_of_one, all_of_other)
    assert not is_another_machine(_evidence({Field.GPU_UUID: 0}), all_of_other)  # a card may be exchanged
    assert not is_another_machine(all_of_one, _evidence({**dict.fromkeys(SCORED, 1), Field.BOARD_SERIAL: 0}))
    assert not is_another_machine([], all_of_other)
