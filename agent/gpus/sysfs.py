"""Which NVIDIA GPUs the PCI bus lists, from sysfs: the second opinion on what the driver says."""

from pathlib import Path
from typing import Final

from domain import pci

DEVICES_MAX: Final = 4096
_ATTRIBUTE_BYTES_MAX: Final = 64
_NVIDIA: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"  # VGA, 3D and other display controllers; an NVSwitch is a bridge (0x06)
_DGX_DISPLAY: Final = ("0x1fb0", "0x1485")  # device and subsystem: drives the screen of a DGX Station A100


def nvidia_gpu_addresses(sys: Path) -> tuple[str, ...]:
    """Return the canonical addresses of the NVIDIA GPUs under a sysfs root, sorted; at most 4,096 devices are read.

    Virtual functions of a GPU on this host are no GPUs of their own, and neither is a DGX Station's display adapter.
    """
    devices = sys / "bus/pci/devices"
    if not devices.is_dir():
        return ()  # a kernel without PCI, such as some Jetsons'
    found = (pci.canonical(device.name) for device in sorted(devices.iterdir())[:DEVICES_MAX] if _is_gpu(device))
    return tuple(sorted(address for address in found if address is not None))


def _is_gpu(device: Path) -> bool:
    if _attribute(device, "vendor") != _NVIDIA or not _attribute(device, "class").startswith(_DISPLAY_CLASS):
        return False
    model = (_attribute(device, "device"), _attribute(device, "subsystem_device"))
    return model != _DGX_DISPLAY and not (device / "physfn").exists()


def _attribute(device: Path, name: str) -> str:
    try:
        with (device / name).open("rb") as file:
            return file.read(_ATTRIBUTE_BYTES_MAX).decode("ascii", "replace").strip().lower()
    except OSError:
        return ""  # a device may be unplugged between listing and reading
