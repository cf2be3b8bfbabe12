"""The known facts of a document, by their names on the wire."""

from collections.abc import Iterable
from functools import lru_cache

from domain.availability import known_text
from domain.documents.document import Document, wire_name
from domain.jsonvalue import JsonValue
from domain.sections import as_json

# A whole fleet's facts are written under the same few names.
_wire_name = lru_cache(maxsize=512)(wire_name)


def facts(document: Document, names: Iterable[str]) -> dict[str, JsonValue]:
    """Return the named fields that are known, 64-bit amounts as strings; a text such as `N/A` is no value."""
    found: dict[str, JsonValue] = {}
    for name in names:
        value = _value(name, getattr(document, name))
        if value is not None:
            found[_wire_name(name)] = value
    return found


def _value(name: str, value: object) -> JsonValue:
    match value:
        case None:
            return None
        case str():
            return value if known_text(value) is not None else None
        case bool():
            return value
        case int():
            return str(value) if name.endswith("bytes") else value
        case Document():
            return as_json(value) or None
        case _:
            raise NotImplementedError(f"{name}: no fact is a {type(value).__name__}")
