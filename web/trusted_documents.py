"""Trusted documents: those of the operator's manifest, and those that this product's own programs send."""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

import orjson
from graphql import GraphQLError, GraphQLSchema, OperationDefinitionNode

from agent.simulator.client import FOLLOW_FLEET, TAKEN_AT_ONCE_MAX, take_query
from agent.wire import (
    COMPLETE_COMMAND,
    FOLLOW_COMMANDS,
    HELLO,
    INGEST,
    RECORD_HASHES,
    START_COMMAND,
    TAKE_COMMANDS,
    status_query,
)
from agent.wire_status import REPORT_STATUS
from schema.limits import ALIASES_MAX, problems, read_document
from web.persisted_queries import bare, is_sha256, sha256_of

CONSOLE: Final = Path(str(files("web"))) / "static/console/documents.graphql"
"""What the console sends, always as a whole: it loads this very file."""
_APOLLO: Final = "apollo-persisted-query-manifest"


class ManifestRefused(Exception):  # noqa: N818 - it says what is wrong with the manifest
    """The manifest cannot be used; the message names the file, the entry and the reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"FLEETGRAPH_TRUSTED_DOCUMENTS={path}: {reason}")


class TrustedDocuments:
    """Documents by their ids and by their SHA-256, and whether a text is one of them."""

    def __init__(self, documents: Mapping[str, str], more: Iterable[str] = ()) -> None:
        """`documents` by their ids; `more` have none but their SHA-256."""
        self._texts = {text: text for text in (*documents.values(), *more)}
        self._by_id = {sha256_of(text): text for text in self._texts} | dict(documents)

    def find(self, identifier: str) -> str | None:
        """Return the document of an id or of a bare SHA-256."""
        return self._by_id.get(identifier)

    def same(self, text: str) -> str | None:
        """Return the document whose text this is, letter for letter."""
        return self._texts.get(text)


def trusted_documents(manifest: Path, schema: GraphQLSchema) -> TrustedDocuments:
    """Return the documents of a manifest and our own; raises ManifestRefused."""
    return TrustedDocuments(read_manifest(manifest, schema), own_documents())


def own_documents() -> list[str]:
    """Return what the console and the agents of this version send."""
    statuses = [status_query(count) for count in range(1, ALIASES_MAX + 1)]
    of_fleet = [take_query(count) for count in range(1, TAKEN_AT_ONCE_MAX + 1)]
    commands = [TAKE_COMMANDS, START_COMMAND, COMPLETE_COMMAND, FOLLOW_COMMANDS, FOLLOW_FLEET, *of_fleet]
    return [CONSOLE.read_bytes().decode(), HELLO, RECORD_HASHES, INGEST, REPORT_STATUS, *commands, *statuses]


def read_manifest(path: Path, schema: GraphQLSchema) -> dict[str, str]:
    """Return the documents of a manifest, by their ids without the prefix of a SHA-256; raises ManifestRefused."""
    documents: dict[str, str] = {}
    for place, given, text in _entries(path):
        identifier = bare(given)
        if not identifier:
            raise ManifestRefused(path, f"{place}: the id is empty")
        if is_sha256(identifier) and identifier != sha256_of(text):
            raise ManifestRefused(path, f"{place}: the id is a SHA-256, but that of the text is {sha256_of(text)}")
        if documents.setdefault(identifier, text) != text:
            raise ManifestRefused(path, f"{place}: the id {given!r} stands for another document too")
        problem = _problem(text, schema)
        if problem:
            raise ManifestRefused(path, f"{place}: {problem}")
    return documents


def _entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """Give each entry's place, id and text."""
    match _decoded(path):
        case {"format": kind, "version": 1, "operations": list(operations)} if kind == _APOLLO:
            for number, operation in enumerate(operations):
                match operation:
                    case {"id": str(identifier), "body": str(text)}:
                        yield f"operations[{number}] ({operation.get('name', identifier)})", identifier, text
                    case _:
                        raise ManifestRefused(path, f"operations[{number}] must have the strings `id` and `body`")
        case {"format": _} | {"operations": _}:
            raise ManifestRefused(
                path, f"a manifest of Apollo's has `format` {_APOLLO!r}, `version` 1 and a list `operations`"
            )
        case dict(documents):
            for identifier, text in documents.items():
                if not isinstance(text, str):
                    raise ManifestRefused(path, f"entry {identifier!r} must be the text of a document")
                yield f"entry {identifier!r}", identifier, text
        case _:
            raise ManifestRefused(path, "it must be an object: ids with their documents, or a manifest of Apollo's")


def _decoded(path: Path) -> object:
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise ManifestRefused(path, f"cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ManifestRefused(path, f"is not JSON: {error}") from error


def _problem(text: str, schema: GraphQLSchema) -> str | None:
    """Say why a document could never be executed, if so."""
    try:
        document = read_document(text)
    except GraphQLError as error:
        return _located(error)
    if not any(isinstance(definition, OperationDefinitionNode) for definition in document.definitions):
        return "it has no operation"
    errors = problems(schema, document)
    return _located(errors[0]) if errors else None


def _located(error: GraphQLError) -> str:
    if not error.locations:
        return error.message
    return f"{error.message} (line {error.locations[0].line}, column {error.locations[0].column})"
