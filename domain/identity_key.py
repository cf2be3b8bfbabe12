"""The key by which a node is known again: never its hostname, never another machine's.

Source: rule 7 of the product's rules. A container shows the machine id of its host or of its image, which many
nodes share, so there it identifies nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid5

NAMESPACE: Final = UUID("873e2ff1-5bf1-480a-ade6-6882b0ec43f0")
"""The namespace of every key derived here. Changing it would make every node a new one."""

_MACHINE_ID: Final = re.compile(r"[0-9a-f]{32}")
_TEXT: Final = re.compile(r"[\x21-\x7e]{1,128}")


class KeySource(StrEnum):
    """Where a key comes from."""

    EXPLICIT = "explicit"
    MACHINE_ID = "machine id"
    STATE = "state volume"
    RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class IdentityKey:
    """A node's key and where it comes from."""

    text: str
    source: KeySource


@dataclass(frozen=True, slots=True)
class NeedsState:
    """Nothing about the machine identifies it: the key is a UUID that the agent makes once and keeps."""

    reason: str


def choose(*, explicit: str | None, machine_id: str | None, container: bool) -> IdentityKey | NeedsState:
    """Return the node's key, or say that one has to be kept. Raises ValueError for an explicit key that is none."""
    if explicit is not None:
        return explicit_key(explicit)
    if container:
        return NeedsState("a container's machine id is its host's or its image's")
    folded = (machine_id or "").strip().lower()
    if not _MACHINE_ID.fullmatch(folded) or len(set(folded)) == 1:
        return NeedsState(f"the machine id is {folded[:40]!r}" if folded else "there is no machine id")
    return IdentityKey(str(uuid5(NAMESPACE, f"machine-id:{folded}")), KeySource.MACHINE_ID)


def explicit_key(text: str) -> IdentityKey:
    """Return a key as an operator gave it; raises ValueError when it is no key."""
    if not _TEXT.fullmatch(text):
        raise ValueError("an identity is 1 to 128 printable ASCII characters without blanks")
    return IdentityKey(text, KeySource.EXPLICIT)


def kept_key(text: str) -> IdentityKey:
    """Return the key that a state volume kept; raises ValueError when it is not a UUID."""
    return IdentityKey(str(UUID(text.strip())), KeySource.STATE)


def recorded_key(identifiers: Iterable[str], fallback: str) -> IdentityKey:
    """Return the key of a recorded host: from its hardware's identifiers, without any from all that was recorded.

    The order of the identifiers does not matter.
    """
    known = sorted(set(identifiers))
    name = "recording:" + "\n".join(known) if known else "recording-content:" + fallback
    return IdentityKey(str(uuid5(NAMESPACE, name)), KeySource.RECORDING)
