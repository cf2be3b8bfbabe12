"""Reading and writing section bytes."""

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from domain.digest import section_sha256
from domain.documents.cpu import CpuSection
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection, MigInstance
from domain.documents.memory import MemorySection, NumaMemory
from domain.errors import InvalidSection
from domain.sections import (
    SECTION_BYTES_MAX,
    SECTION_NAMES,
    SECTION_TYPES,
    as_json,
    decode,
    encode,
    gpu_uuid,
    known_hash,
    section_of,
    verify,
)
from tests.domain import strategies

NAMES = st.sampled_from(SECTION_NAMES)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def _fields(name: str) -> st.SearchStrategy[dict[str, Any]]:
    written = json.loads(encode(SECTION_TYPES[name]()))
    keys = [*written, "gpus", "nics", "disks", "dimms", "unavailable", "enumeration", "totalBytes", "model"]
    return st.dictionaries(st.sampled_from(keys) | st.text(max_size=4), JSON, max_size=4)


def _decode(name: str, content: bytes) -> Section | InvalidSection:
    try:
        return decode(name, content)
    except InvalidSection as refusal:
        return refusal


def _refused(name: str, content: bytes) -> InvalidSection:
    with pytest.raises(InvalidSection) as caught:
        decode(name, content)
    return caught.value


@given(NAMES, st.binary(max_size=64))
@example("cpu", b"")
@example("cpu", b"\xef\xbb\xbf{}")
@example("cpu", b'{"model":"\\ud800"}')
@example("cpu", b'{"model":"\\udc00\\ud800"}')
@example("cpu", b'{"model":"a\x00b"}')
@example("cpu", b"[" * 100_000)
@example("cpu", b'{"x":' + b"[" * 100_000)
@example("disks", b'{"disks":[{"name":"a","sizeBytes":1e999}]}')
@example("disks", b'{"disks":[{"name":"a","sizeBytes":' + b"9" * 500 + b"}]}")
def test_arbitrary_bytes_decode_or_are_refused(name: str, content: bytes) -> None:
    outcome = _decode(name, content)
    if isinstance(outcome, InvalidSection):
        assert outcome.section == name
    else:
        assert isinstance(outcome, SECTION_TYPES[name])


@given(st.data(), NAMES)
def test_arbitrary_json_decodes_or_is_refused(data: st.DataObject, name: str) -> None:
    document = data.draw(JSON | _fields(name))
    outcome = _decode(name, json.dumps(document).encode())
    if isinstance(outcome, InvalidSection):
        assert outcome.section == name
    else:
        assert encode(decode(name, encode(outcome))) == encode(outcome)


@given(strategies.any_section())
def test_what_is_encoded_decodes_to_the_same(drawn: tuple[str, Section]) -> None:
    name, section = drawn
    content = encode(section)
    try:
        decoded = decode(name, content)
    except InvalidSection as refusal:
        # Only ids that stand twice may be refused of what the types allow.
        assume("is already that of" not in str(refusal))
        raise
    assert decoded == section
    assert encode(decoded) == content


@given(strategies.any_section())
def test_decoded_documents_for_storage_hold_no_number_beyond_32_bits(drawn: tuple[str, Section]) -> None:
    def numbers(value: object) -> list[int]:
        match value:
            case dict():
                return [each for item in value.values() for each in numbers(item)]
            case list():
                return [each for item in value for each in numbers(item)]
            case bool():
                return []
            case int():
                return [value]
            case _:
                return []

    stored = as_json(drawn[1])
    assert json.loads(json.dumps(stored)) == stored
    assert all(abs(each) < 2**31 for each in numbers(stored))


def test_equal_facts_give_equal_bytes_whatever_order_the_unavailable_came_in() -> None:
    one = decode("cpu", b'{"unavailable":{"model":"unknown","arch":"unsupported"},"cores":8}')
    other = decode("cpu", b'{"cores":8,"unavailable":{"arch":"unsupported","model":"unknown"}}')
    assert encode(one) == encode(other)


def test_the_bytes_of_a_section_are_these() -> None:
    section = GpusSection(
        enumeration=Enumeration.COMPLETE,
        gpus=(Gpu(uuid="GPU-1", vram_mib=81559, mig_instances=(MigInstance(gi=1, ci=0),)),),
    )
    assert encode(section) == (
        b'{"enumeration":"complete","gpus":[{"uuid":"GPU-1","vramMiB":81559,"migInstances":[{"gi":1,"ci":0}]}]}'
    )


def test_a_null_and_an_absent_fact_are_the_same() -> None:
    assert decode("cpu", b'{"model":null}') == decode("cpu", b"{}") == CpuSection()


def test_zero_is_a_value_and_survives() -> None:
    assert encode(CpuSection(cores=0)) == b'{"cores":0}'


def test_a_section_that_does_not_say_it_is_complete_is_not() -> None:
    assert decode("gpus", b"{}") == GpusSection(enumeration=Enumeration.INCOMPLETE)


def test_64_bit_amounts_are_strings_in_the_stored_document_only() -> None:
    section = MemorySection(total_bytes=2**53 + 1, numa_nodes=(NumaMemory(id=0, total_bytes=2**63 - 1),))
    assert b"9007199254740993" in encode(section)
    assert as_json(section) == {
        "totalBytes": "9007199254740993",
        "numaNodes": [{"id": 0, "totalBytes": "9223372036854775807"}],
    }


def test_fields_of_a_newer_agent_are_ignored() -> None:
    assert decode("cpu", b'{"cores":2,"quantumCores":[1,{"a":null}]}') == CpuSection(cores=2)


def test_a_wrong_type_is_refused_with_its_place() -> None:
    refusal = _refused("gpus", b'{"gpus":[{"uuid":"GPU-1"},{"uuid":7}]}')
    assert refusal.place == "gpus.1.uuid"


def test_a_duplicated_gpu_uuid_is_refused_with_its_place() -> None:
    refusal = _refused("gpus", b'{"gpus":[{"uuid":"GPU-1"},{"uuid":"GPU-1"}]}')
    assert refusal.place == "gpus.1"


def test_a_duplicated_pci_address_is_refused_in_any_spelling() -> None:
    refusal = _refused("gpus", b'{"gpus":[{"pciBusId":"0000:3f:00.0"},{"pciBusId":"00000000:3F:00.0"}]}')
    assert refusal.place == "gpus.1"


def test_a_duplicated_mig_instance_is_refused_with_its_place() -> None:
    refusal = _refused("gpus", b'{"gpus":[{"migInstances":[{"gi":1,"ci":0},{"gi":1,"ci":0}]}]}')
    assert refusal.place == "gpus.0.migInstances.1"


def test_duplicated_names_and_mounts_are_refused() -> None:
    assert _refused("disks", b'{"disks":[{"name":"sda"},{"name":"sda"}]}').place == "disks.1"
    assert _refused("disks", b'{"filesystems":[{"mount":"/"},{"mount":"/"}]}').place == "filesystems.1"
    assert _refused("nics", b'{"nics":[{"name":"eth0"},{"name":"eth0"}]}').place == "nics.1"


def test_a_refusal_does_not_repeat_a_long_id_in_full() -> None:
    name = "x" * 10_000
    assert len(str(_refused("disks", json.dumps({"disks": [{"name": name}, {"name": name}]}).encode()))) < 300


def test_two_gpus_with_all_zero_uuids_are_no_duplicates() -> None:
    zero = "GPU-00000000-0000-0000-0000-000000000000"
    section = decode("gpus", json.dumps({"gpus": [{"uuid": zero}, {"uuid": zero}]}).encode())
    assert isinstance(section, GpusSection)
    assert [gpu_uuid(gpu) for gpu in section.gpus] == [None, None]


def test_a_uuid_that_a_masked_capture_counts_up_identifies_no_gpu_and_any_other_does() -> None:
    assert gpu_uuid(Gpu(uuid="GPU-0000000a-0000-0000-0000-00000000000A")) is None
    for uuid in ("GPU-00000000-0000-0000-0000-000000000001", "GPU-0000000a-0000-0000-0000-00000000000b"):
        assert gpu_uuid(Gpu(uuid=uuid)) == uuid


@pytest.mark.parametrize(
    "uuid", [None, "", " ", "N/A", "[Unknown Error]", "GPU-", "0000", "a b", "node_1/gpu/x", "x" * 200]
)
def test_texts_that_identify_no_gpu(uuid: str | None) -> None:
    assert gpu_uuid(Gpu(uuid=uuid)) is None


def test_a_uuid_is_taken_without_the_blanks_around_it_and_without_a_prefix() -> None:
    assert gpu_uuid(Gpu(uuid=" GPU-1a2b ")) == "GPU-1a2b"
    assert gpu_uuid(Gpu(uuid="11111111-2222-3333-4444-555555555555")) == "11111111-2222-3333-4444-555555555555"


def test_a_nul_in_a_text_is_refused() -> None:
    assert _refused("cpu", b'{"model":"a\\u0000b"}').place.startswith("byte ")


def test_a_backslash_before_the_letters_u0000_is_no_nul() -> None:
    section = CpuSection(model="a\\u0000b")
    assert decode("cpu", encode(section)) == section


def test_a_known_fact_among_the_unavailable_is_refused() -> None:
    assert _refused("cpu", b'{"unavailable":{"model":"known"}}').place == "unavailable.model"


def test_verify_accepts_the_bytes_under_their_hash_in_any_case() -> None:
    content = b'{ "cores": 4 }'
    assert verify("cpu", section_sha256(content).upper(), content) == CpuSection(cores=4)


def test_verify_refuses_other_bytes() -> None:
    with pytest.raises(InvalidSection, match="hash to"):
        verify("cpu", section_sha256(b"{}"), b"{ }")


def test_verify_refuses_a_text_that_is_no_hash() -> None:
    with pytest.raises(InvalidSection) as caught:
        known_hash("cpu", "abc")
    assert caught.value.place == "sha256"


def test_verify_refuses_an_unknown_section_and_names_those_that_exist() -> None:
    with pytest.raises(InvalidSection, match="system, cpu, memory"):
        verify("fans", section_sha256(b"{}"), b"{}")


def test_verify_refuses_a_section_over_the_size_limit() -> None:
    content = b" " * (SECTION_BYTES_MAX + 1)
    with pytest.raises(InvalidSection, match="are accepted"):
        verify("cpu", section_sha256(content), content)


def test_a_section_is_found_by_its_kind_only_under_its_own_name() -> None:
    disks = DisksSection(disks=(Disk(name="sda"),))
    assert section_of({"disks": disks}, DisksSection) is disks
    assert section_of({}, DisksSection) is None
    assert section_of({"gpus": disks}, GpusSection) is None


def test_a_gpu_uuid_has_at_most_128_characters() -> None:
    longest = "GPU-" + "a1" * 62
    assert gpu_uuid(Gpu(uuid=longest)) == longest
    assert gpu_uuid(Gpu(uuid=longest + "b")) is None
