"""How a field without a resolver reads: the like-named column of its row, or what its row class declares for it."""

from typing import Any

from db.connections import Row
from db.views.selection import Asked
from db.views.view import view_named
from domain.documents.document import wire_name
from resolvers.commands import Delivered
from resolvers.feed import FeedEvent
from resolvers.reads import Related, Summary


def read(source: Any, name: str) -> Any:  # noqa: ANN401 - whatever a resolver returned, and has under the name
    """Return a field's value: of a row, of an event, of a JSON document or of any object."""
    match source:
        case FeedEvent():
            return source.cursor if name == "cursor" else _of_row(source.row, name)
        case Delivered():
            return _of_row(source.row, name)
        case Row():
            return _of_row(source, name)
        case Summary():
            return source.part(name)
        case dict():
            return source.get(wire_name(name))
        case _:
            return getattr(source, name)


def _of_row(row: Row, name: str) -> Any:  # noqa: ANN401
    view = view_named(row.typename)
    if name in view.relations:
        return Related(view, name, Asked(), row)
    key = view.keys.get(name)
    return row[name] if key is None else key.read(row)
