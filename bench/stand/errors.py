"""The one way in which the bench fails."""


class CannotMeasure(RuntimeError):  # noqa: N818 - it says what is missing or wrong
    """Something is missing, does not start, or answers otherwise than it must: there is no figure to give."""
