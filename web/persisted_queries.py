"""Automatic persisted queries: texts that clients sent once, kept under their SHA-256, within bounds."""

import hashlib
import re
from collections import OrderedDict
from typing import Final

ENTRIES_MAX: Final = 2000
BYTES_MAX: Final = 16 * 2**20
TEXT_BYTES_MAX: Final = 64 * 2**10
"""As UTF-8. A larger text is executed all the same; its client sends it again every time."""

_SHA256: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def bare(identifier: str) -> str:
    """Return a SHA-256 without the prefix that GraphQL over HTTP gives it; any other identifier as it is."""
    found = _SHA256.fullmatch(identifier)
    return found[1] if found else identifier


def is_sha256(identifier: str) -> bool:
    """Tell whether an identifier has the form of a SHA-256."""
    return _SHA256.fullmatch(identifier) is not None


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a text as UTF-8, in hexadecimal digits."""
    return hashlib.sha256(_encoded(text)).hexdigest()


class PersistedQueries:
    """Texts by their SHA-256; of a full store, the texts go that were used longest ago.

    One store serves all tenants: whoever knows a text's hash knows the text. Each process has its own, and forgets it
    at its end: clients take "not found" for an ordinary answer and send the text.
    """

    def __init__(
        self, *, entries_max: int = ENTRIES_MAX, bytes_max: int = BYTES_MAX, text_bytes_max: int = TEXT_BYTES_MAX
    ) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._text_bytes_max = text_bytes_max
        self._texts: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._bytes = 0

    def find(self, digest: str) -> str | None:
        """Return the text of a SHA-256 (bare, see `bare`), if it is here."""
        found = self._texts.get(digest)
        if found is None:
            return None
        self._texts.move_to_end(digest)
        return found[0]

    def take(self, digest: str, text: str) -> bool:
        """Tell whether `digest` is the SHA-256 of the text; if it is, keep the text, unless it is too large."""
        if self.find(digest) == text:
            return True
        encoded = _encoded(text)
        if hashlib.sha256(encoded).hexdigest() != digest:
            return False
        if len(encoded) <= self._text_bytes_max:
            self._texts[digest] = (text, len(encoded))
            self._bytes += len(encoded)
            self._shrink()
        return True

    def _shrink(self) -> None:
        while len(self._texts) > self._entries_max or self._bytes > self._bytes_max:
            _, (_, size) = self._texts.popitem(last=False)
            self._bytes -= size


def _encoded(text: str) -> bytes:
    # Half of a surrogate pair, which JSON can write and UTF-8 cannot, must not be an error of ours.
    return text.encode("utf-8", "surrogatepass")
