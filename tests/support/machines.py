"""Machines with identifiers of their own."""

from typing import Any


def machine(digit: str) -> dict[str, Any]:
    """Return the sections of the machine with that digit; nothing of it is another's."""
    return {
        "system": {
            "productUuid": f"7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6{digit}",
            "systemSerial": f"QX7M-004{digit}",
            "boardSerial": f"BRD5512{digit}",
        },
        "nics": {"nics": [{"name": "eth0", "permanentMac": f"0c:42:a1:00:00:0{digit}"}]},
        "gpus": {"enumeration": "complete", "gpus": [{"uuid": f"GPU-{digit}"}]},
        "os": {"kernel": "6.8.0"},
    }
