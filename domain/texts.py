"""Texts and times that people and agents give: bounded, and free of what no store takes."""

from datetime import datetime
from typing import Final

from domain.errors import InvalidInput

TEXT_LENGTH_MAX: Final = 255
# A time near the calendar's ends leaves it when it is brought into another zone.
_YEAR_MIN: Final = 1000
_YEAR_MAX: Final = 9000


def given_text(field: str, text: str | None) -> str | None:
    """Return an optional text, or raise InvalidInput naming the field."""
    return None if text is None else required_text(field, text)


def required_text(field: str, text: str) -> str:
    """Return a text that says something, or raise InvalidInput naming the field."""
    if not text.strip():
        raise InvalidInput(f"{field}: empty; give a text")
    if len(text) > TEXT_LENGTH_MAX or "\0" in text:
        raise InvalidInput(f"{field}: at most {TEXT_LENGTH_MAX} characters without U+0000 are taken")
    return text


def storable_time(field: str, time: datetime) -> datetime:
    """Return a time with its zone, or raise InvalidInput naming the field."""
    if time.tzinfo is None:
        raise InvalidInput(f"{field}: without a zone; write it like 2026-01-31T12:00:00Z")
    if not _YEAR_MIN <= time.year <= _YEAR_MAX:
        raise InvalidInput(f"{field}: year {time.year}; from {_YEAR_MIN} to {_YEAR_MAX} are taken")
    return time
