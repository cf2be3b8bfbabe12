"""Cutting what is to be sent into requests that the server takes."""

from collections.abc import Iterable, Iterator

from agent.wire import BODY_BYTES_MAX, ENTRIES_MAX, SectionContent, Sections


def in_batches(
    entries: Iterable[Sections], entries_max: int = ENTRIES_MAX, bytes_max: int = BODY_BYTES_MAX
) -> Iterator[tuple[Sections, ...]]:
    """Yield the entries in batches of a bounded number and size on the wire; no node stands twice in a batch.

    A node whose sections exceed a batch alone is cut between sections; the entries are read as batches are taken.
    """
    batch: list[Sections] = []
    used = 0
    for entry in entries:
        for part in _cut(entry, bytes_max):
            size = sum(map(_wire_bytes, part.sections))
            repeated = any(other.node_id == part.node_id for other in batch)
            if batch and (len(batch) >= entries_max or used + size > bytes_max or repeated):
                yield tuple(batch)
                batch, used = [], 0
            batch.append(part)
            used += size
    if batch:
        yield tuple(batch)


def _cut(entry: Sections, bytes_max: int) -> Iterator[Sections]:
    part: list[SectionContent] = []
    used = 0
    for section in entry.sections:
        size = _wire_bytes(section)
        if part and used + size > bytes_max:
            yield Sections(node_id=entry.node_id, sections=tuple(part))
            part, used = [], 0
        part.append(section)
        used += size
    if part:
        yield Sections(node_id=entry.node_id, sections=tuple(part))


def _wire_bytes(section: SectionContent) -> int:
    # base64, and the names, hash and punctuation around it.
    return (len(section.content) + 2) // 3 * 4 + 256
