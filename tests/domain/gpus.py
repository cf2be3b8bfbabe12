"""GPUs for tests."""

from domain.documents.gpus import NvLink


def links(active: int = 0, inactive: int = 0, unknown: int = 0) -> tuple[NvLink, ...]:
    """Return links by number: first the active ones, then the inactive, then those that did not answer."""
    states = ["active"] * active + ["inactive"] * inactive + [None] * unknown
    return tuple(NvLink(link=number, state=state) for number, state in enumerate(states))
