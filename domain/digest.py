"""The hash of a section's bytes, and the digest of a set of sections."""

import hashlib
import re
from collections.abc import Collection, Mapping
from typing import Final

_SHA256_HEX: Final = re.compile(r"[0-9a-f]{64}")
_LENGTHS: Final = {64}


def section_sha256(content: bytes) -> str:
    """Hash the bytes as received, in lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_sha256(text: str) -> bool:
    """Say whether `text` is a SHA-256 in lower-case hexadecimal."""
    return _SHA256_HEX.fullmatch(text) is not None


def are_sha256(texts: Collection[str]) -> bool:
    """Say whether each of `texts`, of which there is one at least, is a SHA-256 in lower-case hexadecimal."""
    joined = "".join(texts)
    try:
        # Half the time that a pattern takes. What `fromhex` is generous about, `hex` does not write.
        return set(map(len, texts)) == _LENGTHS and bytes.fromhex(joined).hex() == joined
    except ValueError:
        return False


def inventory_digest(hashes: Mapping[str, str]) -> str:
    """Return the SHA-256 over the sorted `name NUL sha256hex LF` lines (rule 2 of the product's rules)."""
    lines = "".join(f"{name}\0{sha256}\n" for name, sha256 in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
