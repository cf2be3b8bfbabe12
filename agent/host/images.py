"""The `images` section: what configured folders hold. Nothing is searched for that nobody named."""

import re
from typing import Final

from agent.host.answers import Cause, Missing, Notes
from agent.host.files import LARGE_READ_BYTES_MAX, Fact, Source, Value, raw_text, text
from agent.host.filesystems import MOUNTINFO_PATH, Mount, parse_mountinfo
from domain.documents.images import Image, ImagesSection, Weights

ENTRIES_MAX: Final = 1_000
_SHA256: Final = re.compile(r"(?:sha256[:-])?([0-9a-f]{64})\b")
_SIDECAR: Final = ".sha256"


def collect_images(
    source: Source, image_dirs: tuple[str, ...], weights_dirs: tuple[str, ...] | None, notes: Notes
) -> ImagesSection:
    """Collect the entries of the folders; `weights_dirs` is None when the node was not asked for weights."""
    return ImagesSection(
        images=_images(source, image_dirs, notes),
        weights=None if weights_dirs is None else _weights(source, weights_dirs, notes),
    )


def _images(source: Source, folders: tuple[str, ...], notes: Notes) -> tuple[Image, ...]:
    paths = _entries(source, folders, "images", notes)
    sizes = source.ask(Fact.TREE_BYTES, paths)
    keyed = sorted((path.rsplit("/", 1)[-1], _digest(source, path) or "", path) for path in paths)
    return tuple(
        Image(
            reference=reference,
            digest=digest or None,
            size_bytes=notes.take(f"images.{index}.sizeBytes", _size(sizes[path])),
        )
        for index, (reference, digest, path) in enumerate(keyed)
    )


def _weights(source: Source, folders: tuple[str, ...], notes: Notes) -> tuple[Weights, ...]:
    paths = _entries(source, folders, "weights", notes)
    sizes = source.ask(Fact.TREE_BYTES, paths)
    content = raw_text(source, MOUNTINFO_PATH, LARGE_READ_BYTES_MAX)
    mounts = () if isinstance(content, Missing) else parse_mountinfo(content)
    return tuple(
        Weights(
            path=path,
            size_bytes=notes.take(f"weights.{index}.sizeBytes", _size(sizes[path])),
            shared=notes.take(f"weights.{index}.shared", _is_shared(path, mounts)),
        )
        for index, path in enumerate(paths)
    )


def _entries(source: Source, folders: tuple[str, ...], fact: str, notes: Notes) -> list[str]:
    paths: set[str] = set()
    for folder in folders:
        names = source.entries(folder)
        if isinstance(names, Missing):
            # What the other folders hold is still known.
            notes.missing[f"{fact}.{folder}"] = names
            continue
        paths |= {
            f"{folder.rstrip('/')}/{name}"
            for name in names
            if not name.startswith(".") and not _is_sidecar(name, names)
        }
    if len(paths) > ENTRIES_MAX:
        notes.missing[f"{fact}.{ENTRIES_MAX}"] = Missing(Cause.TOO_LARGE, f"more than {ENTRIES_MAX} {fact}")
    return sorted(paths)[:ENTRIES_MAX]


def _is_sidecar(name: str, names: tuple[str, ...]) -> bool:
    return name.endswith(_SIDECAR) and name.removesuffix(_SIDECAR) in names


def _digest(source: Source, path: str) -> str | None:
    """Return the digest that the name or the file beside it states; a large image is never hashed for it."""
    stated = _SHA256.search(path.rsplit("/", 1)[-1])
    if stated is None:
        content = text(source, path + _SIDECAR)
        stated = None if isinstance(content, Missing) else _SHA256.match(content.lower())
    return None if stated is None else f"sha256:{stated[1]}"


def _size(answer: Value | Missing) -> int | Missing:
    return answer if isinstance(answer, Missing) else int(answer)


def _is_shared(path: str, mounts: tuple[Mount, ...]) -> bool | Missing:
    above = [mount for mount in mounts if path == mount.mount or path.startswith(mount.mount.rstrip("/") + "/")]
    if not above:
        return Missing(Cause.BLANK, f"no mount holds {path}")
    # The last of the longest: a later mount on the same point hides the earlier one.
    return max(enumerate(above), key=lambda pair: (len(pair[1].mount), pair[0]))[1].shared
