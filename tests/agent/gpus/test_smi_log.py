import pytest

from agent.gpus.smi_log import DEPTH_MAX, ELEMENTS_MAX, SMI_BYTES_MAX, parse_log
from domain.errors import InvalidInput
from tests.agent.gpus.logs import gpu_block, log

BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE nvidia_smi_log [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<nvidia_smi_log>&b;</nvidia_smi_log>"""
EXTERNAL = b"""<!DOCTYPE nvidia_smi_log [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<nvidia_smi_log>&a;</nvidia_smi_log>"""
PARAMETER = b"""<!DOCTYPE nvidia_smi_log [<!ENTITY % p "<!ELEMENT x ANY>"> %p;]><nvidia_smi_log/>"""
UNDECLARED = b"""<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>&a;</nvidia_smi_log>"""


@pytest.mark.parametrize("content", [BILLION_LAUGHS, EXTERNAL, PARAMETER, UNDECLARED])
def test_an_entity_is_refused_with_its_line(content: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"line \d+: an entity is declared or used"):
        parse_log(content)


@pytest.mark.parametrize("content", [b"", b"No devices were found\n", b"\x00\x01", log(gpu_block())[:-40]])
def test_what_is_not_xml_is_refused_with_its_place_and_what_would_be_right(content: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"line \d+, column \d+: not XML .* `nvidia-smi -q -x` is expected"):
        parse_log(content)


def test_another_document_is_refused_by_its_root() -> None:
    with pytest.raises(InvalidInput, match="<inventory>: not the element <nvidia_smi_log>"):
        parse_log(b"<inventory/>")


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not XML"):
        parse_log(b'<?xml version="1.0" encoding="x-none"?><nvidia_smi_log/>')


def test_a_log_over_the_size_bound_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"at most {SMI_BYTES_MAX}"):
        parse_log(b"<" * (SMI_BYTES_MAX + 1))


def test_depth_and_number_of_elements_are_bounded() -> None:
    with pytest.raises(InvalidInput, match=f"deeper than {DEPTH_MAX}"):
        parse_log(b"<nvidia_smi_log>" + b"<a>" * 1000)
    with pytest.raises(InvalidInput, match=f"more than {ELEMENTS_MAX} elements"):
        parse_log(b"<nvidia_smi_log>" + b"<a/>" * (ELEMENTS_MAX + 1))


def test_the_dtd_that_every_log_names_is_not_read() -> None:
    root = parse_log(log(gpu_block(), doctype="../../../etc/absent"))
    assert root.findtext("attached_gpus") == "1"
