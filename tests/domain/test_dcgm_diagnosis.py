"""Outputs of DCGM's diagnostics, made up in the shapes that its versions write."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dcgm_diagnosis import FAILURES_MAX, DcgmDiagnosis, UnreadableDiagnosis, read_dcgm
from domain.nvml_diagnosis import FailedCheck


def written(tests: list[dict[str, Any]], name: str = "DCGM Diagnostic") -> bytes:
    return json.dumps({name: {"test_categories": [{"category": "Hardware", "tests": tests}]}}).encode()


def test_a_run_without_failures_passes_whatever_was_skipped() -> None:
    results = [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}, {"entity_id": 1, "status": "Skip"}]
    assert read_dcgm(written([{"name": "memory", "results": results}])) == DcgmDiagnosis(1, ())


def test_failures_of_every_version_name_their_test_and_gpu() -> None:
    old = {"name": "PCIe", "results": [{"gpu_ids": "0,3", "status": "FAIL", "warnings": "too slow"}]}
    text = [{"gpu_id": "1", "status": "Fail", "warnings": ["a", {"warning": "b", "error_id": 7}]}]
    new = {"name": "memtest", "results": [{"entity_id": 2, "status": "Fail"}]}
    found = read_dcgm(written([old, {"name": "memory", "results": text}, new], "DCGM GPU Diagnostic"))
    assert found.failures == (
        FailedCheck("PCIe", "too slow", "0,3"),
        FailedCheck("memory", "a; b", "1"),
        FailedCheck("memtest", "failed", "2"),
    )
    assert not found.passed


def test_words_around_the_json_are_passed_over() -> None:
    run = written([{"name": "x", "results": [{"status": "pass"}]}])
    assert read_dcgm(b"Successfully started.\n" + run + b"\nbye\n").passed


def test_a_run_that_tested_nothing_has_not_passed() -> None:
    for tests in ([], [{"name": "x", "results": [{"status": "Skip"}]}], [{"name": "x"}], [7]):
        found = read_dcgm(written(tests))  # type: ignore[arg-type]
        assert (found.tests, found.passed) == (0, False)


def test_an_error_of_the_run_itself_is_a_failure() -> None:
    found = read_dcgm(json.dumps({"DCGM Diagnostic": {"runtime_error": "no GPU\0"}}).encode())
    assert found.failures == (FailedCheck("runtime", "no GPU\N{REPLACEMENT CHARACTER}"),)


def test_however_many_tests_failed_a_bounded_number_is_told() -> None:
    failed = {"name": "x" * 1000, "results": [{"status": "Fail", "warnings": "y" * 1000}]}
    found = read_dcgm(written([failed] * 100))
    assert (len(found.failures), found.tests) == (FAILURES_MAX, 100)
    assert {(len(each.check), len(each.reason)) for each in found.failures} == {(200, 200)}


@pytest.mark.parametrize("output", [b"", b"Error: unable to connect", b"{", b"{}", b'{"a": 1}', b"[1]", b"\xff{}\xff"])
def test_what_holds_no_diagnosis_is_said(output: bytes) -> None:
    with pytest.raises(UnreadableDiagnosis):
        read_dcgm(output)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["test_categories", "tests", "results", "status", "warnings", "name", "runtime_error", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=64))
def test_no_output_makes_it_fail_otherwise(output: bytes) -> None:
    try:
        found = read_dcgm(output)
    except UnreadableDiagnosis:
        return
    assert not (found.passed and found.failures)
