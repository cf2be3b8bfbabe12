"""What two answers must have in common: every value; not the texts of cursors, which are each server's own."""

from typing import Any, Final

_ENUMS: Final = frozenset({"provisionState", "status", "role"})


def comparable(answer: Any) -> Any:  # noqa: ANN401 - JSON
    """Return an answer with its page's end reduced to whether there is one, and counts in the order of their values."""
    return _walked(answer, lambda _, value: value)


def as_ours(answer: Any) -> Any:  # noqa: ANN401 - JSON
    """Return PostGraphile's answer as this server would give it, in the same comparable form."""
    return _walked(answer, _renamed)


def _walked(value: Any, change: Any) -> Any:  # noqa: ANN401 - JSON
    match value:
        case dict():
            return {key: _walked(_reduced(key, change(key, each)), change) for key, each in value.items()}
        case list():
            return [_walked(each, change) for each in value]
        case _:
            return value


def _reduced(key: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    match key:
        case "endCursor":
            return value is not None
        case "gpuModels":
            return sorted(value, key=lambda each: str(each["value"]))
        case _:
            return value


def _renamed(key: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    match key, value:
        case "gpuModels", list():
            return [{"value": each["keys"][0], "count": int(each["distinctCount"]["rowId"])} for each in value]
        case _, str() if key in _ENUMS:
            return value.upper().replace("-", "_")
        case _:
            return value
