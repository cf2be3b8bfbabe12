"""Cursors: opaque to clients. A page cursor belongs to one list and order, a feed cursor to the event log."""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import msgspec

from domain.errors import InvalidInput

CURSOR_LENGTH_MAX: Final = 4096
_INT64_MAX: Final = 2**63 - 1


class _Page(msgspec.Struct, frozen=True, array_like=True, tag="p"):
    scope: str
    key: tuple[str, ...]


class _Feed(msgspec.Struct, frozen=True, array_like=True, tag="f", omit_defaults=True):
    position: int
    snapshot: str | None = None
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """A place in the feed: everything up to `position` was seen.

    `snapshot` is PostgreSQL's `xmin:xmax:in-progress` text of the query that made the cursor, when `waiting` events
    had no position yet then: those whose transaction it saw are already in the query's result.
    """

    position: int
    snapshot: str | None = None
    waiting: int = 0


_DECODER: Final = msgspec.json.Decoder(_Page | _Feed)


def page_frame(scope: str) -> tuple[str, str]:
    """Return what a page cursor's text has before and behind the row's key, a JSON list of texts without brackets."""
    return f'["p",{msgspec.json.encode(scope).decode()},[', "]]"


def feed_frame(cursor: FeedCursor) -> tuple[str, str]:
    """Return what a feed cursor's text has before and behind the position."""
    rest = msgspec.json.encode(_Feed(0, cursor.snapshot, cursor.waiting)).decode().removeprefix('["f",0')
    return '["f",', rest


def encode_framed(frame: tuple[str, str], key: str) -> str:
    """Write the cursor of a row by its key as it stands between the two texts of the frame."""
    before, behind = frame
    return _encode(before + key + behind)


def encode_page(scope: str, key: tuple[str, ...]) -> str:
    """Write the cursor of a row by its sort key, whose parts are texts."""
    return encode_framed(page_frame(scope), ",".join(msgspec.json.encode(part).decode() for part in key))


def encode_feed(cursor: FeedCursor) -> str:
    """Write a feed cursor."""
    return encode_framed(feed_frame(cursor), str(cursor.position))


def decode_page(text: str, scope: str, length: int) -> tuple[str, ...]:
    """Read a page cursor of that list and order; raises InvalidInput when it is another kind or list's."""
    match _decode(text):
        case _Page(scope=found, key=key) if found == scope and len(key) == length and "\0" not in "".join(key):
            return key
        case _Page(scope=found):
            raise InvalidInput(f"after: this cursor pages {found!r}, not {scope!r}; use one that this list returned")
        case _:
            raise InvalidInput("after: this is a feed cursor; a list takes a cursor that the list returned")


def decode_feed(text: str, place: str = "after") -> FeedCursor:
    """Read the feed cursor that stood at `place`; raises InvalidInput when it is a page's."""
    match _decode(text, place):
        case _Feed(position=position, snapshot=snapshot, waiting=waiting) if 0 <= position <= _INT64_MAX:
            return FeedCursor(position, snapshot, waiting)
        case _:
            raise InvalidInput(f"{place}: not a feed cursor; use `feedCursor` of a query or `cursor` of an event")


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(text: str, place: str = "after") -> _Page | _Feed:
    if len(text) > CURSOR_LENGTH_MAX:
        raise InvalidInput(f"{place}: too long for a cursor")
    try:
        return _DECODER.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise InvalidInput(f"{place}: not a cursor of this server") from error
