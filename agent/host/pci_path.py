"""Reading the place of a device from its path under /sys/devices."""

import re
from typing import Final

from domain import pci

_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_USB: Final = re.compile(r"usb\d+")


def last_address(device_path: str) -> str | None:
    """Return the canonical address of the PCI function nearest to the device; None off the PCI bus."""
    raw = last_raw_address(device_path)
    return None if raw is None else pci.canonical(raw)


def last_raw_address(device_path: str) -> str | None:
    """Return that address as sysfs writes it (`0000:18:00.0`)."""
    return next((part for part in reversed(device_path.split("/")) if _ADDRESS.fullmatch(part)), None)


def is_on_usb(device_path: str) -> bool:
    """Say whether the path leads over a USB bus."""
    return any(_USB.fullmatch(part) for part in device_path.split("/"))


def is_virtual(device_path: str) -> bool:
    """Say whether the device has no hardware behind it."""
    return "/devices/virtual/" in f"/{device_path}"
