"""What a source answers: a value, or why there is none, in words that doctor shows."""

import errno
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeVar, assert_never

import msgspec

from domain.availability import Availability, of_text

T = TypeVar("T")


class Cause(StrEnum):
    """Why a source has no value."""

    ABSENT = "absent"
    DENIED = "denied"
    DISABLED = "disabled"
    BLANK = "blank"
    TOO_LARGE = "too_large"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    NOT_CAPTURED = "not_captured"


class Missing(msgspec.Struct, frozen=True):
    """A value that is not there: the cause, and the place and circumstance in words."""

    cause: Cause
    detail: str

    @property
    def availability(self) -> Availability:
        """The cause as a section names it."""
        match self.cause:
            case Cause.ABSENT | Cause.DISABLED:
                return Availability.UNSUPPORTED
            case Cause.DENIED | Cause.TOO_LARGE:
                return Availability.UNAVAILABLE
            case Cause.BLANK | Cause.NOT_CAPTURED:
                return Availability.UNKNOWN
            case Cause.FAILED | Cause.TIMED_OUT:
                return Availability.TEMPORARILY_FAILED
            case _:
                assert_never(self.cause)


_CAUSE_OF_ERRNO: Final = {
    errno.ENOENT: Cause.ABSENT,
    errno.ENOTDIR: Cause.ABSENT,
    errno.ENODEV: Cause.ABSENT,
    # A sysfs attribute whose device has no such value refuses the read with one of these.
    errno.ENXIO: Cause.ABSENT,
    errno.ENODATA: Cause.ABSENT,
    errno.EINVAL: Cause.ABSENT,
    errno.EOPNOTSUPP: Cause.DISABLED,
    errno.EACCES: Cause.DENIED,
    errno.EPERM: Cause.DENIED,
}
_WORDS: Final = {Cause.ABSENT: "absent", Cause.DENIED: "permission denied", Cause.DISABLED: "disabled in the kernel"}
_CAUSE_OF_TEXT: Final = {
    Availability.UNKNOWN: Cause.BLANK,
    Availability.UNSUPPORTED: Cause.ABSENT,
    Availability.UNAVAILABLE: Cause.DENIED,
    Availability.TEMPORARILY_FAILED: Cause.FAILED,
}


def of_error(place: str, error: OSError) -> Missing:
    """Say what a failed call on `place` means."""
    cause = _CAUSE_OF_ERRNO.get(error.errno or 0, Cause.FAILED)
    return Missing(cause, f"{place}: {_WORDS.get(cause) or error.strerror or error}")


def known(place: str, text: str) -> str | Missing:
    """Return the trimmed text, or Missing when it only stands for a value (`N/A`, blank, …)."""
    availability = of_text(text)
    if availability is Availability.KNOWN:
        return text.strip()
    said = f"says {text.strip()!r}" if text.strip() else "is empty"
    return Missing(_CAUSE_OF_TEXT[availability], f"{place} {said}")


def first_known(answers: Iterable[T | Missing]) -> T | Missing:
    """Return the first value; without one, the most telling reason (a denied place before an absent one)."""
    missing: Missing | None = None
    for answer in answers:
        if not isinstance(answer, Missing):
            return answer
        if missing is None or (missing.cause is Cause.ABSENT and answer.cause is not Cause.ABSENT):
            missing = answer
    return missing or Missing(Cause.ABSENT, "the host has no place that says it")


class Notes:
    """The facts of a section that are not known, by their path in it and with the reason."""

    def __init__(self) -> None:
        self.missing: dict[str, Missing] = {}

    def take(self, place: str, answer: T | Missing) -> T | None:
        """Return the value, or None after noting why there is none."""
        if isinstance(answer, Missing):
            self.missing[place] = answer
            return None
        return answer

    def adopt(self, prefix: str, other: "Notes") -> None:
        """Add the notes of a part, whose place in the section is known only after sorting."""
        self.missing |= {f"{prefix}.{place}": missing for place, missing in other.missing.items()}

    def unavailable(self) -> dict[str, Availability]:
        """Return the section's `unavailable` map."""
        return {place: missing.availability for place, missing in self.missing.items()}
