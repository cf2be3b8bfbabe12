"""The `system` section: SMBIOS through sysfs, else the device tree."""

from collections.abc import Iterator
from typing import Final

from agent.host.answers import Cause, Missing, Notes, first_known
from agent.host.files import Source, names_in, text
from agent.host.virtualization import virtualization
from domain.documents.system import SystemSection

_DMI: Final = "/sys/class/dmi/id"
_DEVICE_TREE: Final = "/sys/firmware/devicetree/base"


def collect_system(source: Source, notes: Notes) -> SystemSection:
    """Collect what the firmware says the machine is; placeholders are reported as they stand."""

    def dmi(name: str, *tree: str) -> str | Missing:
        return first_known(_dmi_then_tree(source, name, tree))

    return SystemSection(
        product_uuid=notes.take("productUuid", dmi("product_uuid")),
        system_serial=notes.take("systemSerial", dmi("product_serial", "serial-number", "system-id")),
        board_serial=notes.take("boardSerial", dmi("board_serial")),
        chassis_serial=notes.take("chassisSerial", dmi("chassis_serial")),
        vendor=notes.take("vendor", dmi("sys_vendor")),
        product=notes.take("product", dmi("product_name", "model")),
        board=notes.take("board", dmi("board_name")),
        bios_vendor=notes.take("biosVendor", dmi("bios_vendor")),
        bios_version=notes.take("biosVersion", dmi("bios_version")),
        bios_date=notes.take("biosDate", dmi("bios_date")),
        bmc_version=notes.take("bmcVersion", _bmc_version(source)),
        virtualization=notes.take("virtualization", virtualization(source)),
    )


def _dmi_then_tree(source: Source, name: str, tree: tuple[str, ...]) -> Iterator[str | Missing]:
    yield text(source, f"{_DMI}/{name}")
    for node in tree:
        yield text(source, f"{_DEVICE_TREE}/{node}")


def _bmc_version(source: Source) -> str | Missing:
    interfaces = names_in(source, "/sys/class/ipmi")
    if not interfaces:
        return Missing(Cause.ABSENT, "/sys/class/ipmi: no interface to a management controller (ipmi_si not loaded?)")
    return first_known(text(source, f"/sys/class/ipmi/{name}/device/bmc/firmware_revision") for name in interfaces)
