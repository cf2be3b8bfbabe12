"""Heartbeats, and hellos that are not let in, past the executor: agents' own documents have one form and one answer.

Decoding a report into GraphQL values, then into inputs, costs twenty times what PostgreSQL takes to note it. Whatever
is not exactly what agents send is left to the executor, which says what is wrong with it.
"""

from typing import Final

import msgspec
import orjson
from graphql import FieldNode, OperationDefinitionNode, located_error, parse

from agent.wire import HELLO, RECORD_HASHES
from domain.errors import RateLimited
from resolvers.context import Context
from resolvers.ingest import GivenReport, record_hashes
from schema.answers import Answer
from schema.compiled import LeftToTheGraph
from schema.errors import translated
from schema.slots import SlotError, slot_error

NAME: Final = "RecordInventoryHashes"
_MARK: Final = b"mutation RecordInventoryHashes("
_FIELD: Final = "recordInventoryHashes"
HELLO_NAME: Final = "Hello"
_HELLO_MARK: Final = b"mutation Hello("
_BEGINNING: Final = 256


class _Variables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: list[GivenReport]


class _Request(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    query: str
    variables: _Variables
    operation_name: str | None = None


class _Naming(msgspec.Struct, frozen=True):
    query: str


_DECODER: Final = msgspec.json.Decoder(_Request)
_NAMING: Final = msgspec.json.Decoder(_Naming)


def given_reports(body: bytes) -> list[GivenReport] | None:
    """Return the reports of a request that is the agents' own; None for every other. Raises LeftToTheGraph."""
    if _MARK not in body[:_BEGINNING]:
        return None
    try:
        request = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LeftToTheGraph("not as agents write it") from error
    if request.query != RECORD_HASHES or request.operation_name not in {None, NAME}:
        raise LeftToTheGraph("another document")
    return request.variables.entries


async def answer(context: Context, reports: list[GivenReport]) -> Answer:
    """Take the reports, and answer as the executor would."""
    try:
        slots = await record_hashes(context, reports)
    except Exception as error:  # noqa: BLE001 - whatever it is becomes the field's error
        told = translated(located_error(error, [_FIELD_NODE], [_FIELD]), context)
        return Answer(orjson.dumps({"data": None, "errors": [told.formatted]}).decode(), failed=True)
    answers = [
        {
            "nodeId": slot.node_id,
            "requestSections": slot.names,
            "error": _refusal(slot_error(slot)),
        }
        for slot in slots
    ]
    return Answer(orjson.dumps({"data": {_FIELD: answers}}).decode())


def _refusal(error: SlotError | None) -> dict[str, object] | None:
    if error is None:
        return None
    return {
        "code": error.code,
        "message": error.message,
        "section": error.section,
        "place": error.place,
        "retryAfterSeconds": error.retry_after_seconds,
    }


def is_hello(body: bytes) -> bool:
    """Say whether a request is an agent's hello, whatever it says."""
    if _HELLO_MARK not in body[:_BEGINNING]:
        return False
    try:
        return _NAMING.decode(body).query == HELLO
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def hello_refused(context: Context, refusal: RateLimited) -> Answer:
    """Answer a hello that is not let in, as the executor would: agents come again and again until they are.

    Executed, a thousand refusals a second would leave no time for those who are let in.
    """
    told = translated(located_error(refusal, [_HELLO_NODE], ["hello"]), context)
    text = orjson.dumps({"data": None, "errors": [told.formatted]}).decode()
    return Answer(text, failed=True, retry_after_seconds=refusal.retry_after_seconds)


def _field_node(document: str) -> FieldNode:
    (operation,) = (each for each in parse(document).definitions if isinstance(each, OperationDefinitionNode))
    (found,) = (each for each in operation.selection_set.selections if isinstance(each, FieldNode))
    return found


_FIELD_NODE: Final = _field_node(RECORD_HASHES)
_HELLO_NODE: Final = _field_node(HELLO)
