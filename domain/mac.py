"""MAC addresses and InfiniBand port GUIDs: one text per address, and which of them identify hardware."""

import re
from functools import lru_cache
from typing import Final

_SEPARATORS: Final = re.compile(r"[:.\-]")
_HEX: Final = re.compile(r"(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40})")
_GUID_DIGITS: Final = 16
_IPOIB_DIGITS: Final = 40
_LENGTH_MAX: Final = 64
_MULTICAST: Final = 0x01
_LOCALLY_ADMINISTERED: Final = 0x02

# Addresses that many machines have. Source: GLPI `src/Blacklist.php`, FusionInventory.
_PLACEHOLDERS: Final = frozenset(
    {
        "00:00:00:00:00:00",
        "00:00:00:00:00:00:00:00",
        "44:45:53:54:00:00",
        "44:45:53:54:00:01",
        "50:50:54:50:30:30",
        "00:a0:c6:00:00:00",
        "00:0b:ca:fe:00:00",
    }
)
_VMWARE_HOST_ADAPTER: Final = "00:50:56:c0:"


def canonical(text: str | None) -> str | None:
    """Return the address as `0c:42:a1:00:00:01`, or None when it is none.

    An IPoIB address has 20 octets, of which the last 8, the port GUID, stay put; a GUID alone is taken as it is.
    """
    return _canonical(text) if text and len(text) <= _LENGTH_MAX else None


# Each is read several times while its node's report is applied.
@lru_cache(maxsize=16_384)
def _canonical(text: str) -> str | None:
    digits = _SEPARATORS.sub("", text.strip().casefold())
    if not _HEX.fullmatch(digits):
        return None
    if len(digits) == _IPOIB_DIGITS:
        digits = digits[-_GUID_DIGITS:]
    return ":".join(digits[place : place + 2] for place in range(0, len(digits), 2))


def identity(permanent: str | None) -> str | None:
    """Return the canonical address when it can identify hardware: unicast, globally administered, no placeholder."""
    address = canonical(permanent)
    if address is None or address in _PLACEHOLDERS or address.startswith(_VMWARE_HOST_ADAPTER):
        return None
    return None if int(address[:2], 16) & (_MULTICAST | _LOCALLY_ADMINISTERED) else address
