"""Addresses of network ports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import mac


@pytest.mark.parametrize("text", ["0C:42:A1:00:00:01", "0c-42-a1-00-00-01", "0c42.a100.0001", " 0c42a1000001 "])
def test_every_form_has_one_text(text: str) -> None:
    assert mac.canonical(text) == "0c:42:a1:00:00:01"


def test_an_ipoib_address_is_its_port_guid() -> None:
    address = "80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:d1:e0:01"
    assert mac.canonical(address) == mac.canonical("0x0c42a10300d1e001"[2:]) == "0c:42:a1:03:00:d1:e0:01"
    assert mac.identity(address) == "0c:42:a1:03:00:d1:e0:01"


@pytest.mark.parametrize("text", [None, "", "N/A", "0c:42:a1:00:00", "0c:42:a1:00:00:0g", "0c:42:a1:00:00:01:02"])
def test_other_texts_are_no_address(text: str | None) -> None:
    assert mac.canonical(text) is None


@pytest.mark.parametrize(
    "address",
    [
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "fe:ff:ff:ff:ff:ff",
        "ee:ee:ee:ee:ee:ee",
        "02:42:ac:11:00:02",
        "01:00:5e:00:00:01",
        "44:45:53:54:00:00",
        "50:50:54:50:30:30",
        "00:50:56:C0:00:08",
        "0a:00:27:00:00:00",
        "00:A0:C6:00:00:00",
    ],
)
def test_placeholders_and_local_addresses_identify_nothing(address: str) -> None:
    assert mac.identity(address) is None


@given(st.text(max_size=24) | st.binary(min_size=6, max_size=6).map(bytes.hex))
def test_the_canonical_text_is_its_own(text: str) -> None:
    address = mac.canonical(text)
    assert address is None or mac.canonical(address) == address
