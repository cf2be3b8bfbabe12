"""JSON that programs give: bounded, and free of what no store takes."""

import math
from typing import Final

import msgspec

from domain.errors import InvalidInput
from domain.jsonvalue import JsonValue

DEPTH_MAX: Final = 32
_INT64: Final = 2**63


def storable_json(place: str, value: object, bytes_max: int) -> JsonValue:
    """Return a JSON value of at most `bytes_max` bytes, or raise InvalidInput naming the place."""
    _refuse(place, value, DEPTH_MAX)
    size = len(msgspec.json.encode(value))
    if size > bytes_max:
        raise InvalidInput(f"{place}: {size} bytes of JSON; at most {bytes_max} are taken")
    return value  # type: ignore[return-value]  # what was looked through is JSON


def _refuse(place: str, value: object, depth: int) -> None:
    if depth == 0:
        raise InvalidInput(f"{place}: nested more than {DEPTH_MAX} deep")
    match value:
        case str() if "\0" in value:
            raise InvalidInput(f"{place}: a text holds U+0000, which is not kept")
        case bool() | str() | None:
            return
        case int() if -_INT64 <= value < _INT64:
            return
        case float() if math.isfinite(value):
            return
        case list():
            for each in value:
                _refuse(place, each, depth - 1)
        case dict():
            for key, each in value.items():
                _refuse(place, key, depth - 1)
                _refuse(place, each, depth - 1)
        case _:
            raise InvalidInput(f"{place}: a number is beyond 64 bits, or what stands there is no JSON")
