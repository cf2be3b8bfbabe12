"""Typed identifiers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.ids import format_id, has_prefix

TIMES = st.integers(0, 2**48 - 1)
ENTROPIES = st.integers(0, 2**80 - 1)


@given(TIMES, ENTROPIES, TIMES, ENTROPIES)
def test_ids_sort_by_the_millisecond_they_were_made_in(at: int, entropy: int, later: int, other: int) -> None:
    one, two = format_id("inv", at, entropy), format_id("inv", later, other)
    assert (one < two) is ((at, entropy) < (later, other))
    assert (one == two) is ((at, entropy) == (later, other))


@given(TIMES, ENTROPIES)
def test_an_id_is_recognized_by_its_own_prefix_only(at: int, entropy: int) -> None:
    made = format_id("node", at, entropy)
    assert has_prefix(made, "node")
    assert not has_prefix(made, "inv")
    assert not has_prefix(made.upper(), "node")
    assert not has_prefix(made + "0", "node")


def test_the_written_form_is_lower_case_crockford() -> None:
    assert format_id("evt", 0, 0) == "evt_00000000000000000000000000"
    assert format_id("evt", 2**48 - 1, 2**80 - 1) == "evt_7zzzzzzzzzzzzzzzzzzzzzzzzz"


@pytest.mark.parametrize("text", ["", "node", "node_", "node_8" + "0" * 25, "node_" + "u" * 26, "node_" + "0" * 25])
def test_other_texts_are_no_ids(text: str) -> None:
    assert not has_prefix(text, "node")


@pytest.mark.parametrize(("at", "entropy"), [(-1, 0), (2**48, 0), (0, -1), (0, 2**80)])
def test_what_a_ulid_cannot_hold_is_a_bug(at: int, entropy: int) -> None:
    with pytest.raises(ValueError, match="ULID"):
        format_id("node", at, entropy)


@given(st.text(max_size=40))
def test_any_text_may_be_asked_about(text: str) -> None:
    assert has_prefix(text, "node") in {True, False}
