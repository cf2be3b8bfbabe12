"""What firmware writes where an identifier should stand: values that many machines have, as data.

Sources: SMBIOS 2.6 (a UUID of zeros or of ones is not set); osquery `core/system.cpp`; GLPI `src/Blacklist.php`
(shared with OCS Inventory and FusionInventory); the bad-UUID list of openslx; Elkeid's agent; FOGProject #196, #198;
rockstor-core #2143; SolidRun lx2160a #4; netbox-agent #296; xcat-core #5428; netbird #2203; eve #6381; Dasharo #730;
public dmidecode dumps. How they are compared is said in `domain.smbios`.
"""

from typing import Final

UUIDS: Final = (
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "fefefefe-fefe-fefe-fefe-fefefefefefe",
    "01010101-0101-0101-0101-010101010101",
    "00010203-0405-0607-0809-0a0b0c0d0e0f",
    "03020100-0504-0706-0809-0a0b0c0d0e0f",
    "00000000-0000-0000-0807-060504030201",
    "10000000-0000-8000-0040-000000000000",
    "11111111-2222-3333-4444-555555555555",
    "02000100-0300-0400-0005-000600070008",
    # AMI's template around a MAC of zeros; around a board's own MAC it is that board's.
    "03000200-0400-0500-0006-000700080009",
    "6ab5b300-538d-1014-9fb5-b0684d007b53",
    "8a95d198-7f46-11e5-bf8b-08002704d48e",
)
"""In either byte order."""

UUID_BEGINNINGS: Final = ("deadbeef",)
"""Beginnings that only people write, without dashes."""

SERIALS: Final = (
    "(null string)",
    "123-1234-123",
    "123456789000",
    "<BAD INDEX>",
    "<OUT OF SPEC>",
    "Asset-1234567890",
    "Base Board Asset Tag",
    "Base Board Serial Number",
    "Chassis Serial Number",
    "Default",
    "Default string",
    "Empty",
    "Enter Serial",
    "EVAL",
    "IATPASS",
    "INVALID",
    "MB serial number",
    "MB-1234567890",
    "N/A",
    "No Asset Information",
    "No Asset Tag",
    "None",
    "Not Applicable",
    "Not Available",
    "Not Present",
    "Not Settable",
    "Not Specified",
    "Null",
    "O.E.M.",
    "OEM not specify",
    "OEM Serial",
    "Product Name",
    "Serial Number",
    "Serial Number xxxxxx",
    "SN-12345",
    "SN-1234567890",
    "SN-123456fvgv3i0b8o5n6n7k",
    "Standard",
    "SYS-1234567890",
    "SYS-9876543210",
    "System manufacturer",
    "System Product Name",
    "System Serial Number",
    "System Version",
    "SystemSerialNumb",
    "T.B.D.",
    "To Be Filled By O.E.M.",
    "Tulip Computers",
    "Unknow",
    "Unknown",
)
"""Whatever their case, blanks and punctuation."""
