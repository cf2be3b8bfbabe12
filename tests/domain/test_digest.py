"""Hashes and digests."""

import hashlib
import random
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from domain.digest import inventory_digest, is_sha256, section_sha256
from domain.sections import SECTION_NAMES

HASHES = st.dictionaries(st.sampled_from(SECTION_NAMES), st.binary(max_size=4).map(section_sha256))


def test_the_digest_is_over_sorted_name_nul_hash_lf_lines() -> None:
    one, two = section_sha256(b"1"), section_sha256(b"2")
    lines = f"cpu\0{two}\ngpus\0{one}\n".encode()
    assert inventory_digest({"gpus": one, "cpu": two}) == hashlib.sha256(lines).hexdigest()


@given(HASHES, st.randoms())
def test_the_digest_does_not_depend_on_the_order(hashes: dict[str, str], shuffler: random.Random) -> None:
    items = list(hashes.items())
    shuffler.shuffle(items)
    assert inventory_digest(dict(items)) == inventory_digest(hashes)


@given(HASHES, HASHES)
def test_other_sets_have_other_digests(one: Mapping[str, str], other: Mapping[str, str]) -> None:
    assert (inventory_digest(one) == inventory_digest(other)) is (one == other)


def test_only_64_lower_case_hexadecimal_digits_are_a_hash() -> None:
    assert is_sha256("0" * 64)
    for text in ("", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n", "\u0660" * 64):
        assert not is_sha256(text)
