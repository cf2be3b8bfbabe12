"""The known facts of a document, by their names on the wire."""

from collections.abc import Iterable

from domain.availability import known_text
from domain.documents.document import Document, wire_name
from domain.jsonvalue import JsonValue
from domain.sections import as_json


def facts(document: Document, names: Iterable[str]) -> dict[str, JsonValue]:
    """Return the named fields that are known; a text that only stands for a value (`N/A`) is none."""
    written = as_json(document)
    found = {wire_name(name): written.get(wire_name(name)) for name in names}
    return {name: value for name, value in found.items() if _is_known(value)}


def _is_known(value: JsonValue) -> bool:
    return known_text(value) is not None if isinstance(value, str) else value is not None
