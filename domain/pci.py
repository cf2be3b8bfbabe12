"""PCI addresses: every width and form in the field is one (domain, bus, device, function)."""

import re
from functools import lru_cache
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)
_DEVICE_MAX: Final = 0x1F
_LENGTH_MAX: Final = 64


def canonical(text: str | None) -> str | None:
    """Return the address as `00000000:18:00.0` (NVML's form: upper-case hexadecimal), or None when it is not one.

    The domain is not always 0; a missing domain or function is 0. `000:BA:80.0`, which a failing driver prints, has
    no such device number and is not an address.
    """
    return _canonical(text) if text and len(text) <= _LENGTH_MAX else None


# A fleet has few addresses, and each is read many times over: as a key, and at the other end of every link.
@lru_cache(maxsize=16_384)
def _canonical(text: str) -> str | None:
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["device"], 16) > _DEVICE_MAX:
        return None
    domain = int(found["domain"] or "0", 16)
    function = int(found["function"] or "0")
    return f"{domain:08X}:{int(found['bus'], 16):02X}:{int(found['device'], 16):02X}.{function}"
