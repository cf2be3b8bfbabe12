"""The plain part of YAML that mock profiles are written in; anything else is refused, as there is no YAML parser here.

Block mappings and sequences, lists of scalars in brackets, quoted texts, comments.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

_LINE: Final = re.compile(r"(?P<dash>- +)?(?:(?P<key>[A-Za-z0-9_]+):(?: +|$))?(?P<value>.*)")
_SCALAR: Final = re.compile(r"[A-Za-z0-9_.+-]+")
_WORDS: Final = {"true": True, "false": False, "null": None}


@dataclass(slots=True)
class _Lines:
    """Lines as (indent, text), without comments and blanks."""

    lines: list[tuple[int, str]]
    place: int = field(default=0)

    @property
    def indent(self) -> int:
        """Return the indent of the line to read, -1 at the end."""
        return self.lines[self.place][0] if self.place < len(self.lines) else -1


def parse(text: str) -> Any:  # noqa: ANN401 - any value of YAML
    """Return the document; raises ValueError on what is not plain."""
    lines = []
    for raw in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", raw).rstrip()
        if line:
            lines.append((len(line) - len(line.lstrip()), line.lstrip()))
    return _block(_Lines(lines), 0)


def _block(lines: _Lines, indent: int) -> Any:  # noqa: ANN401 - as above
    if lines.indent == indent and lines.lines[lines.place][1].startswith("- "):
        return _sequence(lines, indent)
    found: dict[str, Any] = {}
    while lines.indent == indent:
        match = _LINE.fullmatch(lines.lines[lines.place][1])
        if match is None or match["dash"] or not match["key"] or match["key"] in found:
            raise ValueError(f"not plain YAML: {lines.lines[lines.place][1]!r}")
        lines.place += 1
        nested = not match["value"] and lines.indent > indent
        found[match["key"]] = _block(lines, lines.indent) if nested else _value(match["value"])
    if lines.indent > indent:
        raise ValueError(f"not plain YAML: unexpected indent at {lines.lines[lines.place][1]!r}")
    return found


def _sequence(lines: _Lines, indent: int) -> list[Any]:
    items = []
    while lines.indent == indent and lines.lines[lines.place][1].startswith("- "):
        match = _LINE.fullmatch(lines.lines[lines.place][1])
        if match is not None and match["key"]:
            # The mapping starts on the line of the dash: read it as a line of its own, further in.
            inner = indent + len(match["dash"] or "")
            lines.lines[lines.place] = (inner, lines.lines[lines.place][1].removeprefix(match["dash"] or ""))
            items.append(_block(lines, inner))
        else:
            items.append(_value(lines.lines[lines.place][1].removeprefix("- ").strip()))
            lines.place += 1
    return items


def _value(text: str) -> Any:  # noqa: ANN401 - as above
    if text.startswith("[") and text.endswith("]"):
        return [_value(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    if len(text) > 1 and text[0] == text[-1] == '"' and "\\" not in text:
        return text[1:-1]
    if text in _WORDS or not text:
        return _WORDS.get(text)
    if not _SCALAR.fullmatch(text):
        raise ValueError(f"not plain YAML: {text!r}")
    try:
        return int(text, 0)
    except ValueError:
        return text
