"""Scalars that GraphQL itself does not have."""

from datetime import UTC, datetime
from typing import Any, Final, NewType

import strawberry
from strawberry.exceptions import StrawberryInputCoercionError
from strawberry.schema.types.base_scalars import DateTimeDefinition
from strawberry.types.scalar import ScalarDefinition

BigInt = NewType("BigInt", int)
Cursor = NewType("Cursor", str)
Base64 = NewType("Base64", str)
JsonValue = NewType("JsonValue", object)

_INT64: Final = 2**63
_ZONE_LENGTH: Final = len("+00:00")


def _big_int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise StrawberryInputCoercionError(f"BigInt takes an integer as a string, not {value!r}")
    try:
        number = int(value)
    except ValueError as error:
        raise StrawberryInputCoercionError(f"BigInt takes an integer as a string, not {value!r}") from error
    if not -_INT64 <= number < _INT64:
        raise StrawberryInputCoercionError(f"BigInt holds 64 bits; {number} is beyond")
    return number


def _text(kind: str) -> Any:  # noqa: ANN401 - a parser as Strawberry takes it
    def parse(value: object) -> str:
        if not isinstance(value, str):
            raise StrawberryInputCoercionError(f"{kind} takes a string, not {type(value).__name__}")
        return value

    return parse


def _time_text(value: datetime) -> str:
    """Write a time as PostgreSQL writes it in JSON: in UTC, without a fraction's trailing zeros."""
    text = value.astimezone(UTC).isoformat()
    if not value.microsecond:
        return text
    head, zone = text[:-_ZONE_LENGTH], text[-_ZONE_LENGTH:]
    return head.rstrip("0") + zone


SCALARS: Final[dict[object, ScalarDefinition]] = {
    BigInt: strawberry.scalar(
        name="BigInt", description="A 64-bit integer as a string.", serialize=str, parse_value=_big_int
    ),
    Cursor: strawberry.scalar(
        name="Cursor",
        description="An opaque place in a list or in the feed; feed cursors and page cursors are not interchangeable.",
        serialize=str,
        parse_value=_text("Cursor"),
    ),
    # Decoded by the use case, so that a bad one is refused in its own result slot.
    Base64: strawberry.scalar(
        name="Base64", description="Bytes in base64.", serialize=str, parse_value=_text("Base64")
    ),
    datetime: strawberry.scalar(
        name="DateTime",
        description="A time in ISO 8601 with its zone; answers are in UTC.",
        serialize=_time_text,
        parse_value=DateTimeDefinition.parse_value,
    ),
    JsonValue: strawberry.scalar(
        name="JSON",
        description="Any JSON value; 64-bit integers in it are strings.",
        serialize=lambda value: value,
        parse_value=lambda value: value,
    ),
}
