"""The typed sections: GraphQL types made from the documents that `domain` declares, so that a fact is declared once."""

import inspect
import types
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import strawberry
from msgspec import Meta

from domain.documents.document import INT32_MAX, Section, wire_name
from domain.sections import SECTION_TYPES
from schema.objects import UnknownFact, unknown_facts
from schema.scalars import BigInt

# Names that would say too little, or another thing, in the graph.
_RENAMED: Final = {"Fabric": "GpuFabric", "Mode": "GpuMode", "Image": "CachedImage", "Software": "InstalledSoftware"}

_made: dict[type, Any] = {}


def graph_type(document: type[msgspec.Struct]) -> Any:  # noqa: ANN401 - a type made at run time
    """Return the GraphQL type of a document; the same one at every call."""
    if document in _made:
        return _made[document]
    hints = get_type_hints(document, include_extras=True)
    namespace: dict[str, Any] = {"__annotations__": {"document": ClassVar}, "__doc__": document.__doc__}
    namespace["document"] = document
    for name in document.__struct_fields__:
        if name == "unavailable":
            continue
        description, annotation = _described(hints[name])
        namespace["__annotations__"][name] = _graph_annotation(annotation)
        namespace[name] = strawberry.field(name=wire_name(name), description=description)
    if issubclass(document, Section):
        namespace["not_known"] = strawberry.field(resolver=_not_known, description="Facts without a value, and why.")
    made = type(_RENAMED.get(document.__name__, document.__name__), (), namespace)
    _made[document] = strawberry.type(made, description=inspect.cleandoc(document.__doc__ or ""))
    return _made[document]


def _not_known(root: strawberry.Parent[Any]) -> list[UnknownFact]:
    return unknown_facts(dict(root.unavailable))


def _described(annotation: Any) -> tuple[str | None, Any]:  # noqa: ANN401 - any annotation
    if get_origin(annotation) is not Annotated:
        return None, annotation
    inner, *metas = get_args(annotation)
    said = next((meta.description for meta in metas if isinstance(meta, Meta) and meta.description), None)
    return said, inner


def _graph_annotation(annotation: Any) -> Any:  # noqa: ANN401, PLR0911 - one answer per kind of annotation
    if get_origin(annotation) is Annotated:
        inner, *metas = get_args(annotation)
        wide = inner is int and any(isinstance(meta, Meta) and (meta.le or 0) > INT32_MAX for meta in metas)
        return BigInt if wide else _graph_annotation(inner)
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_graph_annotation(part) for part in get_args(annotation) if part is not type(None)]
        return parts[0] | None if len(parts) == 1 else annotation
    if get_origin(annotation) is tuple:
        return list[_graph_annotation(get_args(annotation)[0])]  # type: ignore[misc]  # made at run time
    if get_origin(annotation) is Literal:
        return str
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return graph_type(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return strawberry.enum(annotation, description=inspect.cleandoc(annotation.__doc__ or ""))
    return annotation


SECTION_GRAPH_TYPES: Final = {name: graph_type(document) for name, document in SECTION_TYPES.items()}
