"""UUIDs and serials of firmware: which are equal, and which say nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.smbios import identifying_serial, identifying_uuid, is_derived, uuid_digits
from domain.smbios_placeholders import SERIALS, UUIDS

REAL = "7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f"
SWAPPED = "2A0C0E7F-D351-8A4C-9F5E-3A1B2C4D5E6F"


@given(st.uuids())
def test_a_uuid_is_equal_in_any_case_decoration_and_byte_order(uuid: object) -> None:
    text = str(uuid)
    digits = text.replace("-", "")
    swapped = digits[6:8] + digits[4:6] + digits[2:4] + digits[:2] + digits[10:12] + digits[8:10]
    swapped += digits[14:16] + digits[12:14] + digits[16:]
    forms = [text, text.upper(), f"{{{text}}}", f' "{text}"\0', digits, swapped]
    assert len({uuid_digits(form) for form in forms}) == 1


def test_the_mixed_endian_form_is_the_same_uuid() -> None:
    assert identifying_uuid(REAL) == identifying_uuid(SWAPPED) is not None


@given(st.sampled_from(UUIDS), st.booleans())
def test_a_placeholder_uuid_identifies_nothing(uuid: str, upper: bool) -> None:  # noqa: FBT001 - drawn
    assert identifying_uuid(uuid.upper() if upper else uuid) is None


@pytest.mark.parametrize(
    "uuid",
    [
        None,
        "",
        "2",
        "Not Settable",
        "Not Present",
        "00020003-0004-0005-0006-000700080009",  # AMI's template, bytes swapped
        "12121212-1212-1212-1212-121212121212",
        "DEADBEEF-0102-4304-8506-0708090a0b0c",
        "efbeadde-0201-0443-8506-0708090a0b0c",
        "7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e",
        "7g0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f",
    ],
)
def test_what_is_no_uuid_or_hardly_one_identifies_nothing(uuid: str | None) -> None:
    assert identifying_uuid(uuid) is None


@pytest.mark.parametrize(
    "uuid",
    [
        "00000000-0000-0000-0000-AC1F6B4D2E19",  # Supermicro: an address behind zeros
        "03D40274-0435-05E1-9A06-4C0700080009",  # AMI's template around a board's own address
    ],
)
def test_a_uuid_that_only_looks_bad_is_kept(uuid: str) -> None:
    assert identifying_uuid(uuid) is not None


@given(st.sampled_from(SERIALS), st.sampled_from([str, str.upper, str.lower, lambda text: f' "{text}" ']))
def test_a_placeholder_serial_identifies_nothing(serial: str, spoken: object) -> None:
    assert callable(spoken)
    assert identifying_serial(spoken(serial)) is None


@pytest.mark.parametrize(
    "serial",
    [
        None,
        "",
        "  ",
        "-",
        "..",
        "x.x",
        "Default_string",
        "To be filled by O.E.M",
        "00000000",
        "1111",
        "0101100",
        "xxxxxxxxxxx",
        "FFFFFFFFFFFFFFFF",
        "12345",
        "0123456789",
        "123456789012",
        "987654321",
        "None",
        "null",
        "N/A",
    ],
)
def test_a_serial_that_counts_repeats_or_is_a_word_identifies_nothing(serial: str | None) -> None:
    assert identifying_serial(serial) is None


def test_a_serial_that_repeats_a_name_is_none() -> None:
    assert identifying_serial("RACK-9000", ["Maker", "Rack 9000"]) is None
    assert identifying_serial("RACK-9000", ["Maker", None]) == "rack9000"


@given(st.from_regex(r"[A-Z]{2}[0-9]{2}[A-Z][0-9]{3}", fullmatch=True))
def test_a_real_serial_is_equal_in_any_case_and_punctuation(serial: str) -> None:
    spaced = f" {serial[:4].lower()}-{serial[4:]}\0"
    assert identifying_serial(spaced) == identifying_serial(serial) is not None


@pytest.mark.parametrize(
    ("uuid", "serial", "addresses"),
    [
        ("4c4c4544-0058-5210-8039-b7c04f375432", "7XR9 7T2", []),  # Dell: `LLED` and the service tag
        ("44454c4c-5800-1052-8039-b7c04f375432", "7XR97T2", []),
        ("33313850-3634-4d32-3236-333031504e46", "2M2630 1PNF", []),  # HPE: the product's and the serial's text
        ("00000000-0000-0000-0000-ac1f6b4d2e19", None, ["ac:1f:6b:4d:2e:19"]),
        ("03d40274-0435-05e1-9a06-4c0700080009", None, ["74:d4:35:e1:9a:4c"]),
    ],
)
def test_a_uuid_that_repeats_a_serial_or_an_address_is_no_second_witness(
    uuid: str, serial: str | None, addresses: list[str]
) -> None:
    digits, folded = identifying_uuid(uuid), identifying_serial(serial)
    assert digits is not None
    assert is_derived(digits, folded, addresses)
    assert not is_derived(digits, "ZZ41X7Q", ["0c:42:a1:00:00:01"])
