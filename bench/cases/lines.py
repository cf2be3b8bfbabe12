"""Lines for people: aligned columns, and facts that are not known with the reason."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent.host.answers import Missing
from domain import sections
from domain.documents.document import Section

_GAP: Final = "  "
_LIST_SHOWN_MAX: Final = 6


def unknown(why: str) -> str:
    """Say that a fact has no value."""
    return f"unknown ({why})"


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Pad every column but the last to its widest cell."""
    table = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def section_facts(section: Section, missing: Mapping[str, Missing]) -> list[str]:
    """Write each fact of a section on a line; those that are not known with the collector's words, else the reason."""
    document = sections.as_json(section)
    document.pop("unavailable", None)
    known = dict(_flat("", document))
    gaps = {
        path: unknown(f"{why.value}: {missing[path].detail}" if path in missing else why.value)
        for path, why in section.unavailable.items()
    }
    return aligned((path, text) for path, text in {**known, **gaps}.items())


def _flat(path: str, value: Any) -> Iterable[tuple[str, str]]:  # noqa: ANN401 - any JSON value
    match value:
        case dict():
            for name, inner in value.items():
                yield from _flat(f"{path}.{name}".removeprefix("."), inner)
        case list() | tuple() if all(isinstance(item, str) for item in value):
            shown = ", ".join(value[:_LIST_SHOWN_MAX])
            yield path, shown if len(value) <= _LIST_SHOWN_MAX else f"{shown}, … ({len(value)} in all)"
        case list() | tuple():
            for place, inner in enumerate(value):
                yield from _flat(f"{path}.{place}", inner)
        case _:
            yield path, repr(value) if isinstance(value, str) else str(value)
