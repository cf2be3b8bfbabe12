"""PCI addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import pci


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:18:00.0", "00000000:18:00.0"),
        ("00000000:18:00.0", "00000000:18:00.0"),
        ("PCI:0008:06:00", "00000008:06:00.0"),
        ("pci:0000:3f:00", "00000000:3F:00.0"),
        ("18:1f.7", "00000000:18:1F.7"),
        (" 10000:01:00.0 ", "00010000:01:00.0"),
    ],
)
def test_every_form_has_one_text(text: str, address: str) -> None:
    assert pci.canonical(text) == address


@pytest.mark.parametrize(
    "text", [None, "", "N/A", "000:BA:80.0", "0000:00000008:06:00", "0000:18:20.0", "0000:18:00.8", "0000:18:00.0\n1"]
)
def test_other_texts_are_no_address(text: str | None) -> None:
    assert pci.canonical(text) is None


def test_the_same_bus_in_another_domain_is_another_device() -> None:
    assert pci.canonical("00000000:B0:00.0") != pci.canonical("00000001:B0:00.0")


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 31), st.integers(0, 7))
def test_the_canonical_text_is_its_own(domain: int, bus: int, device: int, function: int) -> None:
    address = pci.canonical(f"{domain:x}:{bus:x}:{device:x}.{function}")
    assert address is not None
    assert pci.canonical(address) == address
    assert pci.canonical(address.lower()) == address


@given(st.text(max_size=24))
def test_any_text_is_an_address_or_none(text: str) -> None:
    address = pci.canonical(text)
    assert address is None or pci.canonical(address) == address
