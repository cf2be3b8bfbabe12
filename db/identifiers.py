"""New ids, at the edge where time and randomness are allowed."""

import os
import threading
import time

from domain.ids import ENTROPY_BITS, Prefix, format_id, next_id

_lock = threading.Lock()
_last = (0, 0)


def new_id(prefix: Prefix) -> str:
    """Return a new id; those made by one process sort in the order they were made."""
    global _last  # noqa: PLW0603 - the last id drawn is what makes the next one larger
    with _lock:
        at_ms = time.time_ns() // 1_000_000
        last_ms, last_entropy = _last
        if at_ms <= last_ms:
            at_ms, entropy = last_ms, last_entropy + 1
        else:
            # The top bit stays clear, so that counting up within the millisecond has room.
            entropy = int.from_bytes(os.urandom(ENTROPY_BITS // 8)) >> 1
        _last = (at_ms, entropy)
    return format_id(prefix, at_ms, entropy)


def new_id_after(prefix: Prefix, previous: str | None) -> str:
    """Return a new id that sorts behind another, whichever process's clock made that one."""
    made = new_id(prefix)
    return made if previous is None or made > previous else next_id(previous)
