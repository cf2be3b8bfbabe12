"""Typed identifiers: `<prefix>_<26-character lower-case Crockford ULID>`."""

import re
from typing import Final, Literal, NewType

TenantId = NewType("TenantId", str)
TokenId = NewType("TokenId", str)
SiteId = NewType("SiteId", str)
PoolId = NewType("PoolId", str)
NodeId = NewType("NodeId", str)
DeviceId = NewType("DeviceId", str)
SnapshotId = NewType("SnapshotId", str)
EventId = NewType("EventId", str)
AllocationId = NewType("AllocationId", str)
BookingId = NewType("BookingId", str)
CommandId = NewType("CommandId", str)
RunId = NewType("RunId", str)

Prefix = Literal["tenant", "tok", "site", "pool", "node", "inv", "evt", "alloc", "bkg", "cmd", "run", "sess", "req"]

CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"
ENTROPY_BITS: Final = 80
TIME_BITS: Final = 48
ULID_LENGTH: Final = 26
# Two digits at a time: every request gets an id.
_PAIRS: Final = tuple(first + second for first in CROCKFORD for second in CROCKFORD)
# 26 digits of 5 bits hold 130, of which a ULID uses 128.
_BODY: Final = re.compile(f"[0-7][{CROCKFORD}]{{{ULID_LENGTH - 1}}}")
_SHIFTS: Final = tuple(range(5 * (ULID_LENGTH - 2), -1, -10))


def format_id(prefix: Prefix, at_ms: int, entropy: int) -> str:
    """Write an id that sorts by the millisecond it was made in.

    `at_ms` is milliseconds since the epoch (48 bits), `entropy` 80 bits; raises ValueError beyond those.
    Source: the ULID specification, in lower case.
    """
    if not 0 <= at_ms < 1 << TIME_BITS or not 0 <= entropy < 1 << ENTROPY_BITS:
        message = "a ULID holds 48 bits of milliseconds and 80 bits of entropy"
        raise ValueError(message)
    value = at_ms << ENTROPY_BITS | entropy
    return f"{prefix}_{_body(value)}"


def next_id(previous: str) -> str:
    """Return the id that follows another of its kind, one step of entropy on."""
    prefix, _, body = previous.partition("_")
    value = 0
    for char in body:
        value = value << 5 | CROCKFORD.index(char)
    value += 1
    return f"{prefix}_{_body(value)}"


def _body(value: int) -> str:
    return "".join([_PAIRS[value >> shift & 1023] for shift in _SHIFTS])


def has_prefix(text: str, prefix: Prefix) -> bool:
    """Say whether `text` is an id of that kind."""
    head, _, body = text.partition("_")
    return head == prefix and _BODY.fullmatch(body) is not None
