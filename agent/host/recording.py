"""Recording what is read from a source, and reading it again from the folder it was written to.

A capture mirrors the paths below its folder (`sys/class/dmi/id/product_uuid`); `manifest.json` holds the rest:
listings, link targets, what was missing and why, and the facts that no file holds.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from agent.host.answers import Cause, Missing
from agent.host.files import LARGE_READ_BYTES_MAX, READ_BYTES_MAX, Fact, Source, Value
from agent.host.options import HostOptions

MANIFEST_NAME: Final = "manifest.json"
MANIFEST_VERSION: Final = 1


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a capture holds beside the contents of files."""

    version: int = MANIFEST_VERSION
    options: HostOptions = HostOptions()
    files: tuple[str, ...] = ()
    missing: dict[str, Missing] = {}
    listings: dict[str, tuple[str, ...] | Missing] = {}
    links: dict[str, str | Missing] = {}
    existing: dict[str, bool] = {}
    facts: dict[Fact, dict[str, Value | Missing]] = {}


class RecordingSource:
    """Passes every question on and remembers the answers."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._contents: dict[str, bytes | Missing] = {}
        self._listings: dict[str, tuple[str, ...] | Missing] = {}
        self._links: dict[str, str | Missing] = {}
        self._existing: dict[str, bool] = {}
        self._facts: dict[Fact, dict[str, Value | Missing]] = {fact: {} for fact in Fact}

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        """Read, and remember the content."""
        # The first answer stands: a clock rate that moved between two reads must not make a capture of its own.
        if path not in self._contents:
            self._contents[path] = self._source.read(path, limit)
        return self._contents[path]

    def entries(self, path: str) -> tuple[str, ...] | Missing:
        """List, and remember the names."""
        self._listings[path] = names = self._source.entries(path)
        return names

    def link(self, path: str) -> str | Missing:
        """Read a link, and remember its target."""
        self._links[path] = target = self._source.link(path)
        return target

    def exists(self, path: str) -> bool:
        """Look, and remember whether it is there."""
        self._existing[path] = there = self._source.exists(path)
        return there

    def ask(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Ask, and remember the answers."""
        answers = self._source.ask(fact, arguments)
        self._facts[fact].update(answers)
        return answers

    def write(self, folder: Path, options: HostOptions) -> Manifest:
        """Write everything that was read to an empty or new folder that only its owner may read.

        Raises FileExistsError for a folder that holds something, OSError when it cannot be written.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(f"{folder} is not empty; a capture is written to a folder of its own")
        # Copies: a probe that outlived its deadline may still be recording.
        contents = dict(self._contents)
        manifest = Manifest(
            options=options,
            files=tuple(sorted(path for path, content in contents.items() if isinstance(content, bytes))),
            missing={path: content for path, content in contents.items() if isinstance(content, Missing)},
            listings=dict(self._listings),
            links=dict(self._links),
            existing=dict(self._existing),
            facts={fact: dict(answers) for fact, answers in self._facts.items()},
        )
        for path, content in contents.items():
            if isinstance(content, bytes):
                _write_private(folder / path.lstrip("/"), content)
        encoded = msgspec.json.encode(manifest, order="deterministic")
        _write_private(folder / MANIFEST_NAME, msgspec.json.format(encoded))
        return manifest


def _write_private(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


class CapturedSource:
    """A host as it was when it was captured."""

    def __init__(self, folder: Path) -> None:
        """Open a capture; raises OSError without a manifest, ValueError when it is not one of this version."""
        self._folder = folder.resolve()
        content = (folder / MANIFEST_NAME).read_bytes()
        try:
            self.manifest = msgspec.json.decode(content, type=Manifest)
        except msgspec.DecodeError as error:
            raise ValueError(f"{folder / MANIFEST_NAME} is not the manifest of a capture: {error}") from error
        if self.manifest.version != MANIFEST_VERSION:
            raise ValueError(f"capture version {self.manifest.version}; this agent reads {MANIFEST_VERSION}")
        self._files = frozenset(self.manifest.files)

    def read(self, path: str, limit: int = READ_BYTES_MAX) -> bytes | Missing:
        """Return the captured content."""
        if path not in self._files:
            return self.manifest.missing.get(path) or _not_captured(path)
        file = (self._folder / path.lstrip("/")).resolve()
        # The folder may come from another machine: neither `..` nor a planted link leads out of it.
        if not file.is_relative_to(self._folder):
            return Missing(Cause.FAILED, f"{path} leads out of the capture")
        try:
            size = file.stat().st_size
            return file.read_bytes() if size <= min(limit, LARGE_READ_BYTES_MAX) else _too_large(path, limit)
        except OSError as error:
            return Missing(Cause.FAILED, f"{path} cannot be read in the capture: {error.strerror}")

    def entries(self, path: str) -> tuple[str, ...] | Missing:
        """Return the captured names."""
        return self.manifest.listings.get(path, _not_captured(path))

    def link(self, path: str) -> str | Missing:
        """Return the captured target."""
        return self.manifest.links.get(path, _not_captured(path))

    def exists(self, path: str) -> bool:
        """Say whether it was there."""
        return self.manifest.existing.get(path, False)

    def ask(self, fact: Fact, arguments: Iterable[str]) -> dict[str, Value | Missing]:
        """Return the captured answers."""
        answers = self.manifest.facts.get(fact, {})
        return {name: answers.get(name, _not_captured(f"{fact} {name}".rstrip())) for name in arguments}


def _too_large(path: str, limit: int) -> Missing:
    return Missing(Cause.TOO_LARGE, f"{path}: more than {limit} bytes")


def _not_captured(place: str) -> Missing:
    return Missing(Cause.NOT_CAPTURED, f"{place} is not in the capture")
