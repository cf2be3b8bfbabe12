"""Which text a request means: what it sends, what was sent before, or one of the trusted documents.

Sources: Apollo's protocol of automatic persisted queries (`extensions.persistedQuery`), and the appendix "Persisted
Documents" of GraphQL over HTTP (`documentId`).
"""

from collections.abc import Mapping
from typing import Any, Final

from domain.errors import Code
from web.persisted_queries import PersistedQueries, bare, is_sha256
from web.trusted_documents import TrustedDocuments

PERSISTED_QUERY_NOT_FOUND: Final = "PERSISTED_QUERY_NOT_FOUND"
"""Apollo's code, no domain's: a step of the protocol, after which the client sends the text with its hash."""
_VERSION: Final = 1
_SHOWN_MAX: Final = 80


class DocumentRefused(Exception):  # noqa: N818 - an answer, not an error
    """The request means no text that may be executed; carries `extensions.code` and the message of its one error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Documents:
    """The texts that requests may mean; one for a process, so that its entrances share what clients have sent.

    Callers authenticate first: a client without a token must not fill the store or learn what it holds.
    """

    def __init__(self, trusted: TrustedDocuments | None = None) -> None:
        """With `trusted`, these documents run and no others, and nothing that clients send is kept."""
        self._trusted = trusted
        self._persisted = PersistedQueries()

    def text(self, request: Mapping[str, Any]) -> str:
        """Return the text to execute for a decoded request, of which anything may be wrong; raises DocumentRefused."""
        query = request.get("query")
        if (
            self._trusted is None
            and isinstance(query, str)
            and query
            and request.get("extensions") is None
            and request.get("documentId") is None
        ):
            return query
        if not isinstance(query, str | None):
            raise _invalid("`query` must be a string or null")
        identifier = _identifier(request)
        if not query and identifier is None:
            raise _invalid("the request has no `query`")
        if self._trusted is not None:
            return _trusted_text(self._trusted, query, identifier)
        return self._persisted_text(query, identifier)

    def _persisted_text(self, query: str | None, identifier: str | None) -> str:
        if query and identifier is None:
            return query
        if identifier is None or not is_sha256(identifier):
            raise _invalid(
                f"{_shown(identifier)} is not the SHA-256 of a document, 64 lower-case hexadecimal digits with or "
                "without `sha256:`; this server knows no other ids, because it has no trusted documents"
            )
        if not query:
            found = self._persisted.find(identifier)
            if found is None:
                raise DocumentRefused(PERSISTED_QUERY_NOT_FOUND, "PersistedQueryNotFound")
            return found
        if not self._persisted.take(identifier, query):
            raise _invalid(f"{_shown(identifier)} is not the SHA-256 of `query` as UTF-8")
        return query


def malformed_request(request: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a request's parts of known types; its document may be named in other ways than `query`."""
    for name, kind, wanted in (
        ("query", str, "a string"),
        ("variables", dict, "an object"),
        ("operationName", str, "a string"),
        ("extensions", dict, "an object"),
    ):
        if not isinstance(request.get(name), kind | None):
            return f"`{name}` must be {wanted} or null"
    return None


def _trusted_text(trusted: TrustedDocuments, query: str | None, identifier: str | None) -> str:
    found = trusted.find(identifier) if identifier else trusted.same(query or "")
    if found is None:
        # Not FORBIDDEN: no other token would help. The server does not do this for anybody.
        which = f"none has the id {_shown(identifier)}" if identifier else "`query` is none of them, letter for letter"
        raise DocumentRefused(
            Code.UNSUPPORTED,
            f"this server runs trusted documents only, and {which}: send the `documentId` or the text of one, or have "
            "this document added to the manifest of FLEETGRAPH_TRUSTED_DOCUMENTS",
        )
    if query and query != found:
        raise _invalid(f"`query` is not the trusted document {_shown(identifier)}: send one of the two")
    return found


def _identifier(request: Mapping[str, Any]) -> str | None:
    """Return the identifier that a request gives instead of a text, or with it; a SHA-256 without its prefix."""
    extensions, given = request.get("extensions"), request.get("documentId")
    if not isinstance(extensions, dict | None):
        raise _invalid("`extensions` must be an object or null")
    if not isinstance(given, str | None) or given == "":
        raise _invalid("`documentId` must be the id of a document, a string")
    identifier = None if given is None else bare(given)
    persisted = extensions.get("persistedQuery") if extensions else None
    if persisted is None:
        return identifier
    hashed = _persisted_hash(persisted)
    if identifier not in {None, hashed}:
        raise _invalid("`documentId` and `extensions.persistedQuery.sha256Hash` are not the same: send one of the two")
    return hashed


def _persisted_hash(persisted: object) -> str:
    match persisted:
        case {"version": int(version), "sha256Hash": str(given)} if version == _VERSION and given:
            return bare(given)
        case {"version": version, "sha256Hash": str()} if version != _VERSION:
            raise _invalid(
                f"`extensions.persistedQuery.version` is {_shown(version)}; this server speaks version {_VERSION}"
            )
        case _:
            raise _invalid("`extensions.persistedQuery` must be an object with `version` 1 and `sha256Hash`, a string")


def _invalid(message: str) -> DocumentRefused:
    return DocumentRefused(Code.INVALID_INPUT, message)


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
