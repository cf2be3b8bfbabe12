"""The `system` section: what the firmware says the machine is."""

from typing import Annotated

from msgspec import Meta

from domain.documents.document import Section


class SystemSection(Section, frozen=True):
    """Identity and firmware of the machine, from SMBIOS, as reported: placeholders are kept, not believed."""

    product_uuid: Annotated[str | None, Meta(description="SMBIOS product UUID.")] = None
    system_serial: Annotated[str | None, Meta(description="Serial number of the system.")] = None
    board_serial: Annotated[str | None, Meta(description="Serial number of the base board.")] = None
    chassis_serial: Annotated[str | None, Meta(description="Serial number of the chassis.")] = None
    vendor: Annotated[str | None, Meta(description="Maker of the system.")] = None
    product: Annotated[str | None, Meta(description="Product name of the system.")] = None
    board: Annotated[str | None, Meta(description="Product name of the base board.")] = None
    bios_vendor: Annotated[str | None, Meta(description="Maker of the firmware.")] = None
    bios_version: Annotated[str | None, Meta(description="Version of the firmware.")] = None
    bios_date: Annotated[str | None, Meta(description="Release date of the firmware, as the firmware writes it.")] = (
        None
    )
    bmc_version: Annotated[str | None, Meta(description="Firmware version of the management controller.")] = None
    virtualization: Annotated[
        str | None, Meta(description="`none` on bare metal, else the hypervisor or container technology.")
    ] = None
