"""A host in memory: the files that a recording tells of, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.host.answers import Cause, Missing
from agent.host.files import READ_BYTES_MAX, Fact, Value


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Files and links by absolute path; a path is also below each link's own name, as no link is followed."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        """Return the content."""
        content = self.files.get(path)
        if content is None:
            return _not_told(path)
        return content if len(content) <= limit else Missing(Cause.TOO_LARGE, f"{path}: more than {limit} bytes")

    def entries(self, path: str) -> tuple[str, ...] | Missing:
        """Return the names right below the path."""
        start = f"{path}/"
        below = {name.removeprefix(start).partition("/")[0] for name in self._names() if name.startswith(start)}
        return tuple(sorted(below)) or _not_told(path)

    def link(self, path: str) -> str | Missing:
        """Return the target."""
        return self.links.get(path, _not_told(path))

    def exists(self, path: str) -> bool:
        """Say whether anything stands at the path or below it."""
        return any(name == path or name.startswith(f"{path}/") for name in self._names())

    def ask(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Know of none of the facts that no file holds."""
        return {name: _not_told(f"{fact.value} {name}".rstrip()) for name in arguments}

    def _names(self) -> Iterable[str]:
        return (*self.files, *self.links)


def _not_told(place: str) -> Missing:
    return Missing(Cause.NOT_CAPTURED, f"the recording tells nothing of {place}")
