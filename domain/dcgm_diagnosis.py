"""What a run of NVIDIA's DCGM diagnostics found, read from what `dcgmi diag --json` wrote (rule 10).

Source: the outputs of DCGM 2 to 4: test categories of tests with results, each with a status, of a GPU or of all. The
names around them changed with the versions, so only what tells a failure is asked for, and nothing else is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from domain.nvml_diagnosis import FailedCheck

FAILURES_MAX: Final = 64
_TEXT_LENGTH_MAX: Final = 200
_PASS: Final = "pass"  # noqa: S105 - a status
_FAIL: Final = "fail"
_RUNTIME_ERRORS: Final = ("runtime_error", "runtimeError", "Runtime Error")


@dataclass(frozen=True, slots=True)
class DcgmDiagnosis:
    """What a run found; `tests` counts the results that passed or failed, without those that were skipped."""

    tests: int
    failures: tuple[FailedCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether something was tested and nothing failed."""
        return self.tests > 0 and not self.failures


class UnreadableDiagnosis(ValueError):  # noqa: N818 - it says what the text is
    """The text holds no diagnosis."""


def read_dcgm(output: bytes) -> DcgmDiagnosis:
    """Read what a run wrote, whatever stands before and after its JSON; raises UnreadableDiagnosis."""
    begin, end = output.find(b"{"), output.rfind(b"}")
    try:
        document = msgspec.json.decode(output[begin : end + 1])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UnreadableDiagnosis(f"no JSON: {error}") from error
    inner = [part for part in _dict(document).values() if isinstance(part, dict)]
    parts = [_dict(document), *inner]
    if not any("test_categories" in part for part in parts) and not any(_runtime_errors(parts)):
        raise UnreadableDiagnosis("the JSON has no test_categories")
    found = [result for part in parts for result in _results(part)]
    failures = [*_runtime_errors(parts), *(failed for status, failed in found if status == _FAIL)]
    tests = sum(status in {_PASS, _FAIL} for status, _ in found)
    return DcgmDiagnosis(tests, tuple(failures[:FAILURES_MAX]))


def _runtime_errors(parts: list[dict[str, Any]]) -> Iterator[FailedCheck]:
    for part in parts:
        for name in _RUNTIME_ERRORS:
            if part.get(name):
                yield FailedCheck("runtime", _text(part[name]))


def _results(part: Mapping[str, Any]) -> Iterator[tuple[str, FailedCheck]]:
    for category in _list(part.get("test_categories")):
        for test in _list(_dict(category).get("tests")):
            name = _text(_dict(test).get("name")) or "unnamed"
            for result in _list(_dict(test).get("results")):
                fields = _dict(result)
                status = _text(fields.get("status")).casefold()
                yield status, FailedCheck(name, _reason(fields), _gpu(fields))


def _reason(result: Mapping[str, Any]) -> str:
    """Join the warnings of a result: a text, or a list of texts or of objects with one."""
    told = result.get("warnings")
    each_told = told if isinstance(told, list) else [told]
    texts = [_text(each.get("warning") if isinstance(each, dict) else each) for each in each_told]
    return "; ".join(filter(None, texts))[:_TEXT_LENGTH_MAX] or "failed"


def _gpu(result: Mapping[str, Any]) -> str | None:
    """Return which GPU a result is of, by DCGM's number."""
    for name in ("gpu_id", "gpu_ids", "entity_id"):
        if (value := result.get(name)) is not None:
            return _text(value) or None
    return None


def _text(value: object) -> str:
    shown = value if isinstance(value, str) else "" if value is None else str(value)
    # U+0000 is kept nowhere.
    return shown.replace("\0", "\N{REPLACEMENT CHARACTER}").strip()[:_TEXT_LENGTH_MAX]


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
