"""Section documents with every field of `domain.documents`, made from its declarations: a new field joins in."""

import types
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from zlib import crc32

import msgspec
from msgspec import Meta

from domain.availability import Availability
from domain.documents.document import INT32_MAX, INT64_MAX
from domain.sections import SECTION_TYPES

ODD_TEXT: Final = '"quoted" back\\slash\ttab \u2028 Zoë 東京 🚀'
NOT_KNOWN: Final = {
    f"{why.value}.{number}.fact 🚀": why.value
    for number, why in enumerate(each for each in Availability if each is not Availability.KNOWN)
}


class Given(Enum):
    """How much of a document is given."""

    FULL = "every field; each list has an item of each of these kinds"
    HOLLOW = "every field, with nothing in it: null, an empty list, a document without facts"
    LEAST = "what is required"


def example(section: str, given: Given) -> dict[str, Any]:
    """Return a section's document."""
    return _document(SECTION_TYPES[section], section, given)


def _document(kind: type[msgspec.Struct], path: str, given: Given) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if given is Given.LEAST and not field.required:
            continue
        is_map = field.name == "unavailable"
        value = _unknown(given) if is_map else _value(hints[field.name], f"{path}.{field.name}", given)
        if value is not None or field.default is None:
            found[field.encode_name] = value
    return found


def _unknown(given: Given) -> dict[str, str]:
    return NOT_KNOWN if given is Given.FULL else {}


def _value(annotation: Any, path: str, given: Given, *, wide: bool = False) -> Any:  # noqa: ANN401, PLR0911 - by kind
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        wide = wide or any(isinstance(meta, Meta) and meta.le == INT64_MAX for meta in arguments[1:])
        return _value(arguments[0], path, given, wide=wide)
    if origin in (Union, types.UnionType):
        inner = _value(arguments[0], path, given, wide=wide)
        return inner if given is Given.FULL or isinstance(inner, dict | list) else None
    if origin is tuple:
        kinds = list(Given) if given is Given.FULL else []
        return [_value(arguments[0], f"{path}.{number}", each) for number, each in enumerate(kinds)]
    if origin is Literal:
        return arguments[-1]
    if issubclass(annotation, msgspec.Struct):
        return _document(annotation, path, given)
    if issubclass(annotation, Enum):
        return list(annotation)[-1].value if given is Given.FULL else None
    if annotation is bool:
        return len(path) % 2 == 0
    if annotation is int:
        return (INT64_MAX if wide else INT32_MAX) if given is Given.FULL else crc32(path.encode()) % 1000
    return f"{path} {ODD_TEXT if given is Given.FULL else ''}"
