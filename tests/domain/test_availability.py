"""Unknown is one thing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.availability import Availability, known_number, known_text, of_number, of_text

BLANKS_32 = range(0x7FFFFFF0, 0x80000000)
BLANKS_64 = range(0x7FFFFFFFFFFFFFF0, 0x8000000000000000)


@pytest.mark.parametrize(
    ("text", "availability"),
    [
        (None, Availability.UNKNOWN),
        ("", Availability.UNKNOWN),
        (" \n None \n", Availability.UNKNOWN),
        ("CUDA Version : Not Found".rpartition(": ")[2], Availability.UNKNOWN),
        ("N/A", Availability.UNSUPPORTED),
        ("[N/A]", Availability.UNSUPPORTED),
        ("[Not Supported]", Availability.UNSUPPORTED),
        ("Requested functionality has been deprecated", Availability.UNSUPPORTED),
        ("[Insufficient Permissions]", Availability.UNAVAILABLE),
        ("[Unknown Error]", Availability.TEMPORARILY_FAILED),
        ("[GPU requires reset]", Availability.TEMPORARILY_FAILED),
        ("GPU is lost.  Reboot the system to recover this GPU", Availability.TEMPORARILY_FAILED),
        ("ERR!", Availability.TEMPORARILY_FAILED),
        ("0", Availability.KNOWN),
        ("NVIDIA H100 NVL", Availability.KNOWN),
        ("Nonesuch", Availability.KNOWN),
    ],
)
def test_texts_say_whether_they_are_values(text: str | None, availability: Availability) -> None:
    assert of_text(text) is availability


@given(st.text(max_size=20))
def test_a_known_text_is_trimmed_and_stays_known(text: str) -> None:
    known = known_text(text)
    if known is not None:
        assert known == known.strip() != ""
        assert known_text(known) == known


@given(st.text(max_size=20), st.sampled_from(["{}", " {} ", "[{}]", "<{}>", "{}."]))
def test_blanks_and_brackets_do_not_turn_an_unknown_into_a_value(text: str, form: str) -> None:
    if of_text(text) is not Availability.KNOWN:
        assert of_text(form.format(text)) is not Availability.KNOWN


@pytest.mark.parametrize("code", [*BLANKS_32, *BLANKS_64, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 4294967295.0])
def test_blank_codes_are_unknown_also_after_a_float_round_trip(code: float) -> None:
    assert of_number(code) is Availability.UNKNOWN
    assert of_number(float(code)) is Availability.UNKNOWN


@pytest.mark.parametrize("code", [float("nan"), float("inf"), float("-inf"), 140737488355328.0, None])
def test_numbers_that_are_none_are_unknown(code: float | None) -> None:
    assert of_number(code) is Availability.UNKNOWN


@given(st.integers(-(2**63), 0x7FFFFFEF))
def test_other_numbers_are_values_and_zero_is_one(number: int) -> None:
    assert known_number(number) == number
    assert known_number(0) == 0


@given(st.integers() | st.floats())
def test_any_number_is_known_or_unknown(number: float) -> None:
    assert of_number(number) in {Availability.KNOWN, Availability.UNKNOWN}


@pytest.mark.parametrize("length", [1, 128, 129, 1000])
def test_a_text_of_any_length_is_read_alike(length: int) -> None:
    text = "x" * length
    assert known_text(f" {text} ") == text
    assert known_text(" " * length) is None
    assert known_text("N/A".center(length)) is None
