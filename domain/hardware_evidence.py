"""The identifiers that a node's sections show, and what silence leaves of those known before (rule 7)."""

from collections.abc import Mapping, Sequence
from typing import Final

from domain import mac
from domain.availability import Availability, known_text, of_text
from domain.changes.gpus import is_complete
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.documents.nics import NicKind, NicsSection
from domain.documents.system import SystemSection
from domain.hardware_key import Evidence, Field, normalized
from domain.identity_score import is_another_machine
from domain.sections import gpu_uuid, section_of
from domain.smbios import identifying_serial, identifying_uuid

_SYSTEM_FACTS: Final = {
    Field.PRODUCT_UUID: ("product_uuid", "productUuid"),
    Field.SYSTEM_SERIAL: ("system_serial", "systemSerial"),
    Field.BOARD_SERIAL: ("board_serial", "boardSerial"),
    Field.CHASSIS_SERIAL: ("chassis_serial", "chassisSerial"),
}

Seen = dict[Field, list[Evidence] | None]
"""By field; None where the sections say nothing, or not everything."""


def evidence_of(sections: Mapping[str, Section], last: Sequence[Evidence] = ()) -> tuple[Evidence, ...]:
    """Return what identifies the machine; a field that the sections are silent about keeps its last evidence.

    Of another machine nothing is kept: its silence is not the old one's.
    """
    said, partial = _seen(sections)
    told = [each for entries in said.values() for each in entries or ()]
    kept = () if is_another_machine(last, told) else last
    found: list[Evidence] = []
    for field in Field:
        entries = said[field]
        if entries is None:
            entries = [each for each in kept if each.field is field and each.known] or partial.get(field)
        found += entries or [Evidence(field, None, known=False, placeholder=False)]
    return tuple(found)


def _seen(sections: Mapping[str, Section]) -> tuple[Seen, dict[Field, list[Evidence]]]:
    """Return the evidence of each field, and of those not told in full what was told."""
    said: Seen = dict.fromkeys(Field)
    partial: dict[Field, list[Evidence]] = {}
    system = section_of(sections, SystemSection)
    if system is not None:
        said.update({field: _of_system(system, field) for field in _SYSTEM_FACTS})
    nics, gpus = section_of(sections, NicsSection), section_of(sections, GpusSection)
    for field, listed in (
        (Field.PERMANENT_MAC, _of_nics(nics) if nics is not None else None),
        (Field.GPU_UUID, _of_gpus(gpus) if gpus is not None else None),
    ):
        if listed is not None:
            entries, in_full = listed
            said[field], partial[field] = (entries, []) if in_full else (None, entries)
    return said, partial


def _of_system(section: SystemSection, field: Field) -> list[Evidence] | None:
    attribute, fact = _SYSTEM_FACTS[field]
    value = known_text(getattr(section, attribute))
    if value is None:
        return None if _is_silent(section, fact, getattr(section, attribute)) else []
    if field is Field.PRODUCT_UUID:
        identity = identifying_uuid(value)
    else:
        identity = identifying_serial(value, (section.vendor, section.product, section.board))
    return [Evidence(field, value, known=True, placeholder=identity is None)]


def _of_nics(section: NicsSection) -> tuple[list[Evidence], bool]:
    """Return the permanent addresses of physical ports that stay where they are, and whether all are told."""
    found: dict[str, bool] = {}
    in_full = "nics" not in section.unavailable
    for place, nic in enumerate(section.nics):
        if nic.kind is not NicKind.PHYSICAL or nic.removable:
            continue
        address = mac.canonical(nic.permanent_mac)
        if address is not None:
            found[address] = normalized(Field.PERMANENT_MAC, address) is None
        elif _is_failing(section, f"nics.{place}.permanentMac", nic.permanent_mac):
            in_full = False
    return [
        Evidence(Field.PERMANENT_MAC, value, known=True, placeholder=void) for value, void in found.items()
    ], in_full


def _of_gpus(section: GpusSection) -> tuple[list[Evidence], bool]:
    found: dict[str, bool] = {}
    in_full = is_complete(section)
    for place, gpu in enumerate(section.gpus):
        uuid = known_text(gpu.uuid)
        if uuid is not None:
            found[uuid] = gpu_uuid(gpu) is None
        elif gpu.lost or _is_failing(section, f"gpus.{place}.uuid", gpu.uuid):
            in_full = False
    return [Evidence(Field.GPU_UUID, value, known=True, placeholder=void) for value, void in found.items()], in_full


def _is_silent(section: Section, fact: str, text: str | None) -> bool:
    """Say whether a fact without a value may have one; what cannot be had is an answer."""
    return _why(section, fact, text) is not Availability.UNSUPPORTED


def _is_failing(section: Section, fact: str, text: str | None) -> bool:
    """Say whether a part's fact could not be read now; many parts have none at all and say so by leaving it out."""
    return _why(section, fact, text) in {Availability.UNAVAILABLE, Availability.TEMPORARILY_FAILED}


def _why(section: Section, fact: str, text: str | None) -> Availability:
    return section.unavailable.get(fact, Availability.UNKNOWN) if text is None else of_text(text)
