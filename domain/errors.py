"""Refusals: what the system declines to do, each with the code its clients rely on.

A refusal is an answer, not a bug: it names the place and what would be right. Anything else that is raised is a bug
of ours and is logged and masked at the edge.
"""

from enum import StrEnum


class Code(StrEnum):
    """The `extensions.code` of a GraphQL error, or the code of a batch's result slot."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    INVALID_INPUT = "INVALID_INPUT"
    CONFLICT = "CONFLICT"
    UNSUPPORTED = "UNSUPPORTED"
    CURSOR_EXPIRED = "CURSOR_EXPIRED"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"
    """The database is away or gave up a wait: the same request may succeed a moment later."""
    INTERNAL = "INTERNAL"
    """A fault of the server, whose log has its cause."""


class Refusal(Exception):  # noqa: N818 - a refusal is not an error of the program
    """The base of everything the system declines, with its code and a text for people."""

    code: Code = Code.INVALID_INPUT

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unauthenticated(Refusal):
    """No principal: the token is missing, unknown, expired or revoked."""

    code = Code.UNAUTHENTICATED


class Forbidden(Refusal):
    """A known principal without the permission."""

    code = Code.FORBIDDEN


class NotFound(Refusal):
    """It does not exist, or the principal may not know that it does."""

    code = Code.NOT_FOUND


class InvalidInput(Refusal):
    """The input is wrong; the message says where and what would be right."""

    code = Code.INVALID_INPUT


class Conflict(Refusal):
    """The input is well formed but the present state forbids it."""

    code = Code.CONFLICT


class CursorExpired(Refusal):
    """The feed no longer reaches back to this cursor: query afresh and subscribe from the new cursor."""

    code = Code.CURSOR_EXPIRED


class Broken(Refusal):
    """A fault of ours that concerns this entry alone; it is logged where it happened."""

    code = Code.INTERNAL

    def __init__(self) -> None:
        super().__init__("an error of the server; its log has the cause under this node's id")


class RateLimited(Refusal):
    """Too much for now: the same is taken after `retry_after_seconds`."""

    code = Code.RATE_LIMITED

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class InvalidSection(InvalidInput):
    """One inventory section is wrong, at a place inside it such as `gpus.3.uuid` (empty: the whole section)."""

    def __init__(self, section: str, place: str, problem: str) -> None:
        where = f"section {section!r} at {place}" if place else f"section {section!r}"
        super().__init__(f"{where}: {problem}")
        self.section = section
        self.place = place
