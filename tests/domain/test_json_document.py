"""JSON that programs give is kept or refused, never a fault of ours."""

from typing import Any

import pytest

from domain.errors import InvalidInput
from domain.json_document import storable_json


def nested(depth: int) -> Any:  # noqa: ANN401 - JSON
    return [] if depth == 1 else [nested(depth - 1)]


def test_json_is_kept_as_it_is() -> None:
    for value in (None, True, 1.5, "x", 2**63 - 1, -(2**63), {"a": [1, {"b": None}]}, nested(32)):
        assert storable_json("result", value, 1000) == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\0", "U\\+0000"),
        ({"a\0": 1}, "U\\+0000"),
        (2**63, "64 bits"),
        (float("inf"), "64 bits"),
        (nested(33), "nested"),
        ("x" * 1000, "1002 bytes"),
        (object(), "no JSON"),
    ],
)
def test_what_no_store_takes_is_refused_naming_the_place(value: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=f"result: .*{said}"):
        storable_json("result", value, 1000)
