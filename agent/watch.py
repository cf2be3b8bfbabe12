"""A cheap look at what is plugged in: when it changes, the inventory is collected anew.

Listings only, no NVML: this runs at every heartbeat, and a driver in trouble must not be asked in a loop.
"""

from typing import Final

from agent.host.answers import Missing
from agent.host.files import Source, names_in, text
from agent.identity import boot_id

_NVIDIA: Final = "0x10de"
_PCI: Final = "/sys/bus/pci/devices"

Fingerprint = frozenset[str]


def hardware_fingerprint(source: Source) -> Fingerprint:
    """Return what is there: the boot, interfaces and disks with hardware behind them, NVIDIA's devices and driver.

    Container links, loop devices and other things without hardware come and go, and are left out.
    """
    found = {f"boot {boot_id(source)}"}
    found |= {f"net {name}" for name in names_in(source, "/sys/class/net") if _is_device(source, f"net/{name}")}
    found |= {f"disk {name}" for name in names_in(source, "/sys/block") if source.exists(f"/sys/block/{name}/device")}
    found |= {f"pci {name}" for name in names_in(source, _PCI) if text(source, f"{_PCI}/{name}/vendor") == _NVIDIA}
    driver = text(source, "/sys/module/nvidia/version")
    return frozenset(found if isinstance(driver, Missing) else found | {f"driver {driver}"})


def _is_device(source: Source, name: str) -> bool:
    return source.exists(f"/sys/class/{name}/device")
