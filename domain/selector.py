"""Selectors: which labelled things are meant, in Kubernetes' language of label selectors with four comparisons.

    selector    = [ requirement { "," requirement } ]
    requirement = [ "!" ] KEY
                | KEY ( "=" | "==" | "!=" ) [ VALUE ]
                | KEY ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"
                | KEY ( ">" | "<" | ">=" | "<=" ) NUMBER

Every requirement must hold. Blanks, tabs and line ends may stand between the parts. A VALUE left out is the empty text.
`!=` and `notin` also hold where the key is missing. Every key and value of Kubernetes is one here; longer ones are too,
because our labels tell what hardware reports. Source: kubernetes.io/docs/concepts/overview/working-with-objects/labels
and `labels.Parse` of k8s.io/apimachinery, which compares 64-bit integers by `>` and `<` only.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, NamedTuple

from domain.errors import InvalidInput

LENGTH_MAX: Final = 4096
REQUIREMENTS_MAX: Final = 32
VALUES_MAX: Final = 100
NUMBER_PATTERN: Final = "-?[0-9]{1,30}([.][0-9]{1,30})?"
"""What a comparison takes for a number: decimal, compared exactly, and short enough for any database's numeric.

Any other value (`mixed`, `NaN`, `1e3`, `0x10`) meets no comparison. Python and PostgreSQL read the pattern alike.
"""


class Operator(StrEnum):
    """How a label relates to the values; `=` is `in` with one value and `!=` is `notin` with one."""

    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"
    AT_LEAST = ">="
    AT_MOST = "<="


COMPARISONS: Final[Mapping[Operator, Callable[[Any, Any], Any]]] = {
    Operator.GREATER_THAN: operator.gt,
    Operator.LESS_THAN: operator.lt,
    Operator.AT_LEAST: operator.ge,
    Operator.AT_MOST: operator.le,
}
"""What the comparing operators do with the label's number, on the left, and the requirement's."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term as `parse` makes it: `in` and `notin` with their values sorted, a comparison with its number."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


def parse(written: str) -> tuple[Requirement, ...]:
    """Read a selector; raises InvalidInput with the place, in characters from 1, and what would be right there."""
    # White space does not count, for the canonical form may have more of it than what was read.
    length = len("".join(written.split()))
    if length > LENGTH_MAX:
        raise InvalidInput(f"selector: {length} characters without white space; at most {LENGTH_MAX} are taken")
    return _Parser(written).selector()


def text(requirements: Sequence[Requirement]) -> str:
    """Write the canonical form, which parses to the same requirements."""
    return ",".join(_term(requirement) for requirement in requirements)


def matches(requirements: Sequence[Requirement], labels: Mapping[str, str]) -> bool:
    """Tell whether the labels meet every requirement."""
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in requirements)


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case Operator.IN:
            return value in requirement.values
        case Operator.NOT_IN:
            return value not in requirement.values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case comparing:
            if value is None or not re.fullmatch(NUMBER_PATTERN, value):
                return False
            return bool(COMPARISONS[comparing](Decimal(value), Decimal(requirement.values[0])))


def _term(requirement: Requirement) -> str:
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case Operator.EXISTS:
            return key
        case Operator.DOES_NOT_EXIST:
            return f"!{key}"
        case Operator.IN | Operator.NOT_IN as listing if len(values) != 1:
            return f"{key} {listing} ({','.join(values)})"
        case Operator.IN:
            return f"{key}={values[0]}"
        case Operator.NOT_IN:
            return f"{key}!={values[0]}"
        case comparing:
            return f"{key}{comparing}{values[0]}"


class _Token(NamedTuple):
    text: str
    place: int


class _Word(NamedTuple):
    pattern: re.Pattern[str]
    length_max: int
    expected: str


_SYMBOLS: Final = "=!<>(),"
_TOKEN: Final = re.compile(rf"[=!<>]=|[{_SYMBOLS}]|[^{_SYMBOLS} \t\r\n]+")
_OPERATORS: Final = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    **{known.value: known for known in (Operator.IN, Operator.NOT_IN, *COMPARISONS)},
}
KEY_PATTERN: Final = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
KEY_LENGTH_MAX: Final = 253 + len("/") + 63
"""Kubernetes' lengths of a prefix and a name."""
VALUE_PATTERN: Final = re.compile("[A-Za-z0-9._+:/~-]*")
VALUE_LENGTH_MAX: Final = 255

_KEY: Final = _Word(
    KEY_PATTERN,
    KEY_LENGTH_MAX,
    "a key like gpu.model or bc.dev/driver.x: letters, digits and . _ - with at most one /, 317 characters at most",
)
_VALUE: Final = _Word(
    VALUE_PATTERN,
    VALUE_LENGTH_MAX,
    "a value without quotes: letters, digits and . _ - + : / ~, 255 characters at most (any value: the key alone)",
)
_NUMBER: Final = _Word(
    re.compile(NUMBER_PATTERN),
    62,
    "a number like 4 or -0.5, with at most 30 digits before and after the point",
)
_SHOWN_MAX: Final = 40


class _Parser:
    def __init__(self, written: str) -> None:
        self._tokens = [_Token(found.group(), found.start()) for found in _TOKEN.finditer(written)]
        self._tokens.append(_Token("", len(written)))
        self._next = 0

    def selector(self) -> tuple[Requirement, ...]:
        if not self._token.text:
            return ()
        found = [self._requirement()]
        while self._took(","):
            if len(found) == REQUIREMENTS_MAX:
                raise _wrong(self._token, f"at most {REQUIREMENTS_MAX} requirements")
            found.append(self._requirement())
        if self._token.text:
            raise _wrong(self._token, "a comma and another requirement, or the end")
        return tuple(found)

    def _requirement(self) -> Requirement:
        if self._took("!"):
            return Requirement(self._word(_KEY), Operator.DOES_NOT_EXIST)
        key = self._word(_KEY)
        sign = self._token
        if sign.text in {"", ","}:
            return Requirement(key, Operator.EXISTS)
        found = _OPERATORS.get(sign.text)
        if found is None:
            raise _wrong(sign, f"one of {' '.join(_OPERATORS)} or a comma after the key")
        self._next += 1
        if found in COMPARISONS:
            return Requirement(key, found, (self._word(_NUMBER),))
        return Requirement(key, found, self._values() if sign.text == found else (self._value(),))

    def _values(self) -> tuple[str, ...]:
        if not self._took("("):
            raise _wrong(self._token, "values in parentheses, like (a,b)")
        values = {self._value()}
        while self._took(","):
            token = self._token
            values.add(self._value())
            if len(values) > VALUES_MAX:
                raise _wrong(token, f"at most {VALUES_MAX} values")
        if not self._took(")"):
            raise _wrong(self._token, "a comma and another value, or the closing parenthesis")
        return tuple(sorted(values))

    def _value(self) -> str:
        return "" if self._token.text in {"", ",", ")"} else self._word(_VALUE)

    def _word(self, word: _Word) -> str:
        token = self._token
        found = word.pattern.match(token.text)
        length = min(found.end(), word.length_max) if found else 0
        if length < len(token.text) or not token.text:
            raise _wrong(_Token(token.text[length:], token.place + length), word.expected)
        self._next += 1
        return token.text

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _took(self, symbol: str) -> bool:
        took = self._token.text == symbol
        self._next += took
        return took


def _wrong(token: _Token, expected: str) -> InvalidInput:
    found = repr(token.text[:_SHOWN_MAX]) if token.text else "the end"
    return InvalidInput(f"selector at character {token.place + 1}: found {found}; expected {expected}")
