"""Hypothesis strategies for section documents."""

import enum
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from domain.availability import Availability
from domain.division import Division
from domain.documents.cpu import CpuSection
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import (
    EccUncorrectable,
    Enumeration,
    Fabric,
    Gpu,
    GpuHealth,
    GpusSection,
    MigInstance,
    Mode,
    NvLink,
    RetiredPages,
    RowRemap,
)
from domain.documents.memory import Dimm, MemorySection
from domain.documents.nics import Nic, NicKind, NicsSection, Vf
from domain.documents.os import OsSection
from domain.documents.system import SystemSection
from domain.pool import Sharing
from domain.sections import SECTION_TYPES

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NOT_KNOWN = st.sampled_from([each for each in Availability if each is not Availability.KNOWN])


def document(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Draw any document of a declared type, whatever its fields mean."""
    return _of(inspect.type_info(kind))


def any_section() -> st.SearchStrategy[tuple[str, Section]]:
    """Draw a section's name and a document of its type."""
    drawn = {name: document(kind) for name, kind in SECTION_TYPES.items()}
    return st.one_of([st.tuples(st.just(name), each) for name, each in drawn.items()])


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911 - one line per kind of type
    match info:
        case inspect.Metadata(type=inner):
            return _of(inner)
        case inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{each.name: _of(each.type) for each in fields})
        case inspect.UnionType(types=types):
            return st.one_of([_of(each) for each in types])
        case inspect.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=3).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_of(key), _of(value), max_size=3)
        case inspect.IntType(ge=low, le=high):
            return st.integers(low, high)
        case inspect.EnumType(cls=cls):
            return NOT_KNOWN if cls is Availability else st.sampled_from(list[enum.Enum](cls))
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.StrType():
            return TEXT
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case _:
            raise NotImplementedError(info)


# Machines: few values each, so that two draws share, lose, swap and change hardware.

PLACES = [f"00000000:{bus:02X}:00.0" for bus in (0x18, 0x2A, 0x3A, 0x5D)]
UUIDS = [f"GPU-{digit * 8}-0000-4000-8000-00000000000{digit}" for digit in "1234"]
NO_UUIDS = [None, "GPU-00000000-0000-0000-0000-000000000000", "N/A"]
MODES = st.none() | st.builds(
    Mode, current=st.sampled_from([None, True, False]), pending=st.sampled_from([None, True, False])
)
MIGS = st.lists(
    st.builds(
        MigInstance,
        gi=st.integers(0, 2),
        ci=st.integers(0, 1),
        profile=st.sampled_from([None, "1g.10gb"]),
        memory_mib=st.sampled_from([None, 9984]),
    ),
    max_size=2,
    unique_by=lambda mig: (mig.gi, mig.ci),
).map(tuple)

FLAGS = st.sampled_from([None, True, False])
HEALTH = st.none() | st.builds(
    GpuHealth,
    row_remap=st.builds(RowRemap, pending=FLAGS, failure=FLAGS),
    retired_pages=st.none() | st.builds(RetiredPages, pending=FLAGS),
    ecc_uncorrectable=st.builds(EccUncorrectable, volatile=st.sampled_from([None, 0, 2])),
)
FABRICS = st.none() | st.builds(
    Fabric,
    state=st.sampled_from([None, "completed", "in_progress"]),
    status=st.sampled_from([None, "success", "insufficient_resources"]),
    health=st.sampled_from([None, "healthy", "unhealthy"]),
)
LINKS = st.lists(
    st.builds(
        NvLink,
        link=st.integers(0, 3),
        state=st.sampled_from([None, "active", "inactive"]),
        remote=st.sampled_from([None, *PLACES]),
    ),
    max_size=3,
    unique_by=lambda link: link.link,
).map(tuple)


def _gpu(uuid: str | None, place: str) -> st.SearchStrategy[Gpu]:
    return st.builds(
        Gpu,
        uuid=st.just(uuid),
        pci_bus_id=st.just(place),
        index=st.none() | st.integers(0, 7),
        name=st.sampled_from([None, "NVIDIA H100 80GB HBM3"]),
        vbios=st.sampled_from([None, "96.00.74.00.01", "96.00.99.00.01", "00.00.00.00.00"]),
        mig_mode=MODES,
        mig_instances=MIGS,
        vram_mib=st.sampled_from([None, 81559]),
        nvlinks=LINKS,
        fabric=FABRICS,
        health=HEALTH,
        lost=st.sampled_from([None, True]),
    )


@st.composite
def gpus_sections(draw: st.DrawFn) -> GpusSection:
    """Draw GPUs: each UUID and each PCI address once."""
    count = draw(st.integers(0, 4))
    places = draw(st.permutations(PLACES))[:count]
    named = draw(st.permutations(UUIDS))
    uuids = [draw(st.sampled_from([named[each], *NO_UUIDS])) for each in range(count)]
    return GpusSection(
        enumeration=draw(st.sampled_from(Enumeration)),
        driver_version=draw(st.sampled_from([None, "580.95.05", "590.44.01", "N/A"])),
        gpus=tuple(draw(_gpu(uuid, place)) for uuid, place in zip(uuids, places, strict=True)),
        unavailable=draw(st.sampled_from([{}, {"driverVersion": Availability.TEMPORARILY_FAILED}])),
    )


DISKS = st.lists(
    st.builds(
        Disk,
        name=st.sampled_from(["sda", "sdb", "nvme0n1"]),
        wwn=st.sampled_from([None, "0x5000c500a1b2c3d4", "naa.5000c500a1b2c3d5", "eui.0025385b11223344", "0x0"]),
        serial=st.sampled_from([None, "S4YNX0R111", "S4YNX0R222", "0123456789", ""]),
        namespace=st.sampled_from([None, 1]),
        model=st.sampled_from([None, "MAKER 7T", "QEMU HARDDISK"]),
        size_bytes=st.sampled_from([None, 1_000_204_886_016, 7_681_501_126_656]),
        bus_path=st.sampled_from([None, "pci-0000:00:1f.2-ata-1", "pci-0000:00:1f.2-ata-2"]),
    ),
    max_size=3,
    unique_by=lambda disk: disk.name,
).map(lambda disks: DisksSection(disks=tuple(disks)))
VFS = st.lists(
    st.builds(
        Vf,
        index=st.integers(0, 3),
        mac=st.sampled_from([None, "0c:42:a1:00:00:11", "0C-42-A1-00-00-12", "02:00:00:00:00:01"]),
    ),
    max_size=2,
    unique_by=lambda function: function.index,
).map(tuple)
NICS = st.lists(
    st.builds(
        Nic,
        name=st.sampled_from(["eth0", "eth1", "ens3"]),
        permanent_mac=st.sampled_from([None, "0c:42:a1:00:00:01", "0C-42-A1-00-00-02", "02:00:00:00:00:01", "junk"]),
        kind=st.sampled_from(NicKind),
        pci_bus_id=st.sampled_from([None, *PLACES]),
        removable=st.sampled_from([None, True]),
        vfs=VFS,
    ),
    max_size=3,
    unique_by=lambda nic: nic.name,
).map(lambda nics: NicsSection(nics=tuple(nics)))
MEMORY = st.builds(
    MemorySection,
    total_bytes=st.sampled_from([None, 2**40, 2**40 - 2**26, 2**39]),
    dimms=st.lists(
        st.builds(
            Dimm,
            locator=st.sampled_from(["A1", "A2"]),
            size_bytes=st.sampled_from([None, 0, 2**36]),
            serial=st.sampled_from([None, "8A01", "8A02"]),
        ),
        max_size=2,
    ).map(tuple),
)
CPU = st.builds(CpuSection, model=st.sampled_from([None, "N/A", "One", "Two"]), cores=st.sampled_from([None, 0, 64]))
SYSTEM = st.builds(
    SystemSection,
    bios_version=st.sampled_from([None, "1.2", "1.3"]),
    product_uuid=st.sampled_from(
        [None, "7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f", "03000200-0400-0500-0006-000700080009"]
    ),
    system_serial=st.sampled_from([None, "N/A", "QX7M-0041", "To Be Filled By O.E.M."]),
    board_serial=st.sampled_from([None, "BRD55120"]),
)
OS = st.builds(OsSection, kernel=st.sampled_from([None, "6.8.0-60", "6.8.0-62"]))


DIVISIONS = st.builds(
    Division, sharing=st.sampled_from(Sharing), slots=st.integers(0, 3), whole_node=st.booleans()
).map(lambda drawn: drawn if drawn.sharing in {Sharing.TIMESLICE, Sharing.MPS} else replace(drawn, slots=0))


def machines() -> st.SearchStrategy[dict[str, Section]]:
    """Draw a node's decoded sections by name; any of them may be missing."""
    return st.fixed_dictionaries(
        {},
        optional={
            "gpus": gpus_sections(),
            "disks": DISKS,
            "nics": NICS,
            "memory": MEMORY,
            "cpu": CPU,
            "system": SYSTEM,
            "os": OS,
        },
    )
