"""What keys and values of labels may be: what selectors can say (`domain.selector`)."""

import re
from typing import Final

from domain.availability import known_text
from domain.selector import KEY_LENGTH_MAX, KEY_PATTERN, VALUE_LENGTH_MAX, VALUE_PATTERN

_NOT_IN_VALUE: Final = re.compile(r"[^A-Za-z0-9._+:/~-]+")


def is_key(text: str) -> bool:
    """Say whether a selector can name the key."""
    return len(text) <= KEY_LENGTH_MAX and KEY_PATTERN.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Say whether a selector can name the value."""
    return len(text) <= VALUE_LENGTH_MAX and VALUE_PATTERN.fullmatch(text) is not None


def label_value(text: str | None) -> str | None:
    """Bring a text into a value, with `-` for every run of other characters; None when it says nothing."""
    known = known_text(text)
    return None if known is None else _NOT_IN_VALUE.sub("-", known)[:VALUE_LENGTH_MAX].strip("-") or None
