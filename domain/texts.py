"""Texts that people and agents give: bounded, and free of what no store takes."""

from typing import Final

from domain.errors import InvalidInput

TEXT_LENGTH_MAX: Final = 255


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
