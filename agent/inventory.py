"""One inventory: the bytes of a node's sections with their hashes, as collected or as recorded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.gpus.deadline import collect_with_deadline
from agent.host.deadline import Probes
from agent.host.files import Source
from agent.host.inventory import collect
from agent.host.options import HostOptions
from agent.wire import SectionContent, SectionHash
from domain.digest import inventory_digest, section_sha256
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, GpusSection
from domain.sections import decode, encode, section_of

GPUS_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True, slots=True)
class Inventory:
    """Sections by name, with what is derived from their bytes."""

    contents: Mapping[str, bytes]
    hashes: tuple[SectionHash, ...]
    digest: str
    complete: bool
    """The enumeration of the GPUs is complete, or was not asked for."""

    @property
    def gpus(self) -> GpusSection | None:
        """The `gpus` section; None where it was not asked for."""
        content = self.contents.get("gpus")
        section = None if content is None else decode("gpus", content)
        return section if isinstance(section, GpusSection) else None

    def pick(self, names: tuple[str, ...]) -> tuple[SectionContent, ...]:
        """Return the sections of those names, ready to send; names that the inventory lacks are left out."""
        wanted = set(names)
        return tuple(
            SectionContent(name=entry.name, sha256=entry.sha256, content=self.contents[entry.name])
            for entry in self.hashes
            if entry.name in wanted
        )


def inventory_of(sections: Mapping[str, Section]) -> Inventory:
    """Encode and hash sections."""
    contents = {name: encode(section) for name, section in sorted(sections.items())}
    hashes = {name: section_sha256(content) for name, content in contents.items()}
    gpus = section_of(sections, GpusSection)
    return Inventory(
        contents=contents,
        hashes=tuple(SectionHash(name=name, sha256=sha256) for name, sha256 in hashes.items()),
        digest=inventory_digest(hashes),
        complete=gpus is None or gpus.enumeration is Enumeration.COMPLETE,
    )


class LiveHost:
    """The machine this process runs on, whose collectors share their knowledge of calls that hang."""

    def __init__(self, source: Source, options: HostOptions) -> None:
        self._source = source
        self._options = options
        self._probes = Probes()

    def collect(self) -> Inventory:
        """Collect all eight sections; takes up to some minutes on a host whose probes hang, and blocks."""
        gpus = collect_with_deadline(GPUS_SECONDS_MAX)
        return inventory_of({**collect(self._source, self._options, self._probes), "gpus": gpus})
