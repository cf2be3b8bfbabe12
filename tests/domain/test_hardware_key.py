"""The hardware key: the same whatever the order, whatever says nothing, and whatever is silent."""

from collections.abc import Mapping
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.availability import Availability
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.documents.nics import Nic, NicKind, NicsSection
from domain.documents.system import SystemSection
from domain.hardware_evidence import evidence_of
from domain.hardware_key import Evidence, Field, Identity, identify
from domain.smbios_placeholders import SERIALS, UUIDS
from tests.domain import strategies

UUID: Final = "7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f"
MACS: Final = ("0c:42:a1:00:00:01", "0c:42:a1:00:00:02")
GPUS: Final = ("GPU-1f2e3d4c-0000-4000-8000-00000000000a", "GPU-1f2e3d4c-0000-4000-8000-00000000000b")
SYSTEM: Final = SystemSection(product_uuid=UUID, system_serial="QX7M-0041", board_serial="BRD55120")


def _nics(*macs: str | None) -> NicsSection:
    return NicsSection(nics=tuple(Nic(name=f"eth{place}", permanent_mac=each) for place, each in enumerate(macs)))


def _gpus(*uuids: str | None, enumeration: Enumeration = Enumeration.COMPLETE) -> GpusSection:
    return GpusSection(enumeration=enumeration, gpus=tuple(Gpu(uuid=each) for each in uuids))


MACHINE: Final[dict[str, Section]] = {"system": SYSTEM, "nics": _nics(*MACS), "gpus": _gpus(*GPUS)}


def _identity(sections: Mapping[str, Section], last: Identity | None = None) -> Identity:
    before = () if last is None else last.evidence
    return identify(evidence_of(sections, before), before)


def _key(sections: Mapping[str, Section]) -> str | None:
    return _identity(sections).key


@given(strategies.machines(), st.data())
def test_the_order_of_sections_ports_and_gpus_never_matters(machine: dict[str, Section], data: st.DataObject) -> None:
    shuffled = dict(data.draw(st.permutations(list(machine.items()))))
    nics, gpus = shuffled.get("nics"), shuffled.get("gpus")
    if isinstance(nics, NicsSection):
        shuffled["nics"] = msgspec.structs.replace(nics, nics=tuple(data.draw(st.permutations(nics.nics))))
    if isinstance(gpus, GpusSection):
        shuffled["gpus"] = msgspec.structs.replace(gpus, gpus=tuple(data.draw(st.permutations(gpus.gpus))))
    assert _identity(shuffled) == _identity(machine)


@given(strategies.machines(), st.data())
def test_a_placeholder_never_changes_the_key(machine: dict[str, Section], data: st.DataObject) -> None:
    system = machine.get("system", SystemSection())
    assert isinstance(system, SystemSection)
    void = {
        "product_uuid": data.draw(st.sampled_from(UUIDS)),
        "board_serial": data.draw(st.sampled_from(SERIALS)),
        "chassis_serial": data.draw(st.sampled_from(SERIALS)),
    }
    absent = {name: text for name, text in void.items() if getattr(system, name) is None}
    nics = machine.get("nics", NicsSection())
    assert isinstance(nics, NicsSection)
    empty = [
        Nic(name="x0", permanent_mac="00:00:00:00:00:00"),
        Nic(name="x1", permanent_mac="02:11:22:33:44:55"),
        Nic(name="x2", permanent_mac="0c:42:a1:99:00:01", kind=NicKind.BOND),
        Nic(name="x3", permanent_mac="0c:42:a1:99:00:02", kind=NicKind.VIRTUAL),
        Nic(name="x4", permanent_mac="0c:42:a1:99:00:03", removable=True),
    ]
    more = {
        **machine,
        "system": msgspec.structs.replace(system, **absent),
        "nics": msgspec.structs.replace(nics, nics=(*empty, *nics.nics)),
    }
    gpus = machine.get("gpus")
    if isinstance(gpus, GpusSection):
        zero = Gpu(uuid="GPU-00000000-0000-0000-0000-000000000000")
        more["gpus"] = msgspec.structs.replace(gpus, gpus=(*gpus.gpus, zero))
    assert _key(more) == _key(machine)


@given(strategies.machines())
def test_the_evidence_explains_the_key(machine: dict[str, Section]) -> None:
    found = _identity(machine)
    again = identify(found.evidence)
    assert (again.key, again.strong) == (found.key, found.strong)
    without = identify([each for each in found.evidence if each.known and not each.placeholder])
    assert without.key == found.key
    assert {each.field for each in found.evidence} == set(Field)


@given(strategies.machines())
def test_the_same_report_again_is_the_same_identity(machine: dict[str, Section]) -> None:
    first = _identity(machine)
    assert (_identity(machine, first).key, _identity(machine, first).strong) == (first.key, first.strong)


@given(st.sets(st.sampled_from(["system", "nics", "gpus"])))
def test_a_section_that_did_not_come_leaves_the_key_as_it_was(silent: set[str]) -> None:
    known = _identity(MACHINE)
    rest = {name: section for name, section in MACHINE.items() if name not in silent}
    assert _identity(rest, known).key == known.key
    assert known.strong


@pytest.mark.parametrize(
    "silent",
    [
        {"gpus": _gpus(GPUS[0], enumeration=Enumeration.INCOMPLETE)},
        {"gpus": _gpus(enumeration=Enumeration.UNAVAILABLE)},
        {"gpus": _gpus(GPUS[0], "GPU is lost")},
        {"gpus": msgspec.structs.replace(_gpus(GPUS[0], None), unavailable={"gpus.1.uuid": Availability.UNAVAILABLE})},
        {"nics": NicsSection(unavailable={"nics": Availability.TEMPORARILY_FAILED})},
        {
            "nics": msgspec.structs.replace(
                _nics(MACS[0], None), unavailable={"nics.1.permanentMac": Availability.TEMPORARILY_FAILED}
            )
        },
        {"system": SystemSection(vendor="Maker")},
        {"system": SystemSection(product_uuid="None", unavailable={"systemSerial": Availability.UNAVAILABLE})},
    ],
)
def test_what_cannot_be_read_now_leaves_the_key_as_it_was(silent: dict[str, Section]) -> None:
    known = _identity(MACHINE)
    assert _identity({**MACHINE, **silent}, known).key == known.key


@pytest.mark.parametrize(
    "exchanged",
    [
        {"gpus": _gpus(GPUS[0])},
        {"nics": _nics(MACS[0], "0c:42:a1:00:00:03")},
        {"system": msgspec.structs.replace(SYSTEM, system_serial="QX7M-0042")},
        {"system": msgspec.structs.replace(SYSTEM, product_uuid="03000200-0400-0500-0006-000700080009")},
    ],
)
def test_an_exchanged_part_is_another_key_and_the_evidence_says_which(exchanged: dict[str, Section]) -> None:
    known = _identity(MACHINE)
    now = _identity({**MACHINE, **exchanged}, known)
    assert now.key != known.key
    assert {each.matched for each in known.evidence} == {None}
    unmatched = {each.field for each in now.evidence if not each.matched and each.field is not Field.CHASSIS_SERIAL}
    assert unmatched <= {Field.PERMANENT_MAC, Field.SYSTEM_SERIAL, Field.PRODUCT_UUID}


def test_the_serial_is_the_systems_else_the_boards_else_the_chassis() -> None:
    def key(system: str | None, board: str | None = None, chassis: str | None = None) -> str | None:
        return _key({"system": SystemSection(system_serial=system, board_serial=board, chassis_serial=chassis)})

    assert key("AA11", "BB22") == key("aa-11")
    assert key("Default string", "BB22", "CC33") == key(None, "BB22")
    assert key(None, "0123456789", "CC33") == key(None, None, "CC33") is not None
    assert key("System Serial Number") is None


@pytest.mark.parametrize(
    ("sections", "strong"),
    [
        ({"system": SYSTEM}, True),
        ({"system": SystemSection(product_uuid=UUID)}, False),
        ({"system": SystemSection(product_uuid=UUID), "nics": _nics(MACS[0])}, True),
        ({"nics": _nics(*MACS)}, False),
        ({"gpus": _gpus(*GPUS)}, False),
        ({"nics": _nics(MACS[0]), "gpus": _gpus(GPUS[0])}, True),
        ({"system": SystemSection(product_uuid=UUID, system_serial="To Be Filled By O.E.M.")}, False),
        ({"system": SystemSection(system_serial="RACK 9", product="Rack-9"), "gpus": _gpus(*GPUS)}, False),
        # A UUID made of the board's address says nothing that the address does not say.
        ({"system": SystemSection(product_uuid=f"00000000-0000-0000-0000-{MACS[0]}".replace(":", ""))}, False),
        (
            {
                "system": SystemSection(product_uuid=f"00000000-0000-0000-0000-{MACS[0]}".replace(":", "")),
                "nics": _nics(*MACS),
            },
            False,
        ),
    ],
)
def test_a_key_is_trusted_with_two_independent_identifiers(sections: dict[str, Section], strong: bool) -> None:  # noqa: FBT001
    assert _identity(sections).strong is strong


def test_ipoib_counts_by_its_port_guid() -> None:
    long = "80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:d1:e0:01"
    other_queue = "80:00:0a:41:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:d1:e0:01"
    assert _key({"nics": _nics(long)}) == _key({"nics": _nics(other_queue)}) is not None


def test_nothing_known_is_no_key() -> None:
    assert _identity({}) == Identity(
        None, strong=False, evidence=tuple(Evidence(field, None, known=False, placeholder=False) for field in Field)
    )


def test_of_another_machine_nothing_is_kept() -> None:
    known = _identity(MACHINE)
    other = {"nics": _nics("0c:42:a1:77:00:01"), "gpus": _gpus("GPU-77777777-0000-4000-8000-000000000001")}
    assert _identity(other, known).key == _key(other)
