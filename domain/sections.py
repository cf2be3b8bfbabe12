"""Reading and writing section bytes: the only place that turns them into documents and back.

Source: rule 1 of the product's rules.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, TypeVar

import msgspec

from domain import pci
from domain.availability import Availability, known_text
from domain.digest import are_sha256, is_sha256, section_sha256
from domain.documents.cpu import CpuSection
from domain.documents.disks import DisksSection
from domain.documents.document import Document, Section
from domain.documents.gpus import Gpu, GpusSection
from domain.documents.images import ImagesSection
from domain.documents.memory import MemorySection
from domain.documents.nics import NicsSection
from domain.documents.os import OsSection
from domain.documents.system import SystemSection
from domain.errors import InvalidSection

Item = TypeVar("Item")
Wanted = TypeVar("Wanted", bound=Section)

SECTION_TYPES: Final[Mapping[str, type[Section]]] = {
    "system": SystemSection,
    "cpu": CpuSection,
    "memory": MemorySection,
    "gpus": GpusSection,
    "nics": NicsSection,
    "disks": DisksSection,
    "os": OsSection,
    "images": ImagesSection,
}
SECTION_NAMES: Final = tuple(SECTION_TYPES)
_NAMES: Final = {kind: name for name, kind in SECTION_TYPES.items()}
SECTION_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest section accepted; the largest real ones (flags, DIMMs, hundreds of images) stay under 200 KiB."""

_DECODERS: Final = {name: msgspec.json.Decoder(kind) for name, kind in SECTION_TYPES.items()}
_NUL: Final = rb"\u0000"
# `\\u0000` is an escaped backslash before the letters u0000; only an odd number of backslashes escapes a NUL.
_ESCAPED_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_MASKED_UUID: Final = re.compile(r"(?:GPU-)?([0-9a-f]{8})-0000-0000-0000-0000\1", re.IGNORECASE)
_UUID: Final = re.compile(r"[A-Za-z0-9._:-]+")
_UUID_LENGTH_MAX: Final = 128
_IDENTITY_SHOWN_MAX: Final = 80
_PLACE: Final = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")


def known_section_name(name: str) -> str:
    """Return `name`, or raise InvalidSection naming the eight that exist."""
    if name not in SECTION_TYPES:
        raise InvalidSection(name, "", f"unknown section name; the sections are {', '.join(SECTION_NAMES)}")
    return name


def known_hash(name: str, sha256: str) -> str:
    """Return the hash in lower case, or raise InvalidSection."""
    folded = sha256.lower()
    if not is_sha256(folded):
        raise InvalidSection(name, "sha256", "not a SHA-256: 64 hexadecimal digits are expected")
    return folded


def are_known_hashes(hashes: Mapping[str, str]) -> bool:
    """Say whether all of it is as `known_section_name` and `known_hash` return it."""
    return hashes.keys() <= SECTION_TYPES.keys() and are_sha256(hashes.values())


def verify(name: str, sha256: str, content: bytes) -> Section:
    """Check a received section against its name, size, hash, type and the ids inside it, and return its document.

    Raises InvalidSection naming the section and the place. `content` is what came; it is never re-encoded.
    """
    known_section_name(name)
    if len(content) > SECTION_BYTES_MAX:
        raise InvalidSection(name, "", f"{len(content)} bytes; at most {SECTION_BYTES_MAX} are accepted")
    actual = section_sha256(content)
    if known_hash(name, sha256) != actual:
        raise InvalidSection(name, "sha256", f"the received {len(content)} bytes hash to {actual}, not to {sha256}")
    return decode(name, content)


def decode(name: str, content: bytes) -> Section:
    """Decode a section's bytes; raises InvalidSection when they are not JSON, of a wrong type, or name an id twice."""
    nul = _ESCAPED_NUL.search(content) if _NUL in content else None
    if nul is not None:
        raise InvalidSection(name, f"byte {nul.start()}", "a text holds U+0000, which no source of facts reports")
    try:
        content.decode()  # msgspec passes over what no field reads
        section = _DECODERS[name].decode(content)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PLACE.search(text)
        place = found["place"].replace("[", ".").replace("]", "").removeprefix(".") if found else ""
        raise InvalidSection(name, place, _PLACE.sub("", text)) from error
    except msgspec.DecodeError as error:
        raise InvalidSection(name, "", f"not a JSON document: {error}") from error
    except (RecursionError, UnicodeDecodeError) as error:
        raise InvalidSection(name, "", f"not a readable JSON document: {error}") from error
    _refuse_known_as_unavailable(name, section)
    _refuse_duplicates(name, section)
    return section


def encode(section: Section) -> bytes:
    """Write a section so that equal facts give equal bytes."""
    return msgspec.json.encode(section, order="deterministic")


def section_of(sections: Mapping[str, Section], kind: type[Wanted]) -> Wanted | None:
    """Return the section of that kind from a set of sections by name, or None when it did not come."""
    found = sections.get(_NAMES[kind])
    return found if isinstance(found, kind) else None


def as_json(document: Document) -> dict[str, Any]:
    """Return a decoded section, or a part of one, for storage: like the bytes, but 64-bit amounts are strings."""
    if not _has_amounts(type(document)):
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
        return plain
    built = msgspec.to_builtins(document)
    return {key: _stringify_bytes(key, value) for key, value in built.items()}


@cache
def _has_amounts(kind: type[Document]) -> bool:
    """Say whether a document of this kind, or a part of it, may hold a 64-bit amount."""
    return b'Bytes":' in msgspec.json.encode(msgspec.json.schema(kind))


def _stringify_bytes(key: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case dict():
            return {inner: _stringify_bytes(inner, item) for inner, item in value.items()}
        case list() | tuple():
            return [_stringify_bytes(key, item) for item in value]
        case int() if key.endswith("Bytes"):
            return str(value)
        case _:
            return value


def _refuse_known_as_unavailable(name: str, section: Section) -> None:
    for fact, availability in section.unavailable.items():
        if availability is Availability.KNOWN:
            raise InvalidSection(name, f"unavailable.{fact}", "a known fact is not listed among the unavailable")


def _refuse_duplicates(name: str, section: Section) -> None:
    match section:
        case GpusSection():
            _refuse_repeats(name, "gpus", section.gpus, "uuid", gpu_uuid)
            _refuse_repeats(name, "gpus", section.gpus, "pciBusId", lambda gpu: pci.canonical(gpu.pci_bus_id))
            for index, gpu in enumerate(section.gpus):
                place = f"gpus.{index}.migInstances"
                _refuse_repeats(name, place, gpu.mig_instances, "(gi, ci)", lambda mig: f"gi{mig.gi}/ci{mig.ci}")
        case NicsSection():
            _refuse_repeats(name, "nics", section.nics, "name", lambda nic: nic.name)
            for index, nic in enumerate(section.nics):
                _refuse_repeats(name, f"nics.{index}.vfs", nic.vfs, "index", lambda function: str(function.index))
        case DisksSection():
            _refuse_repeats(name, "disks", section.disks, "name", lambda disk: disk.name)
            _refuse_repeats(name, "filesystems", section.filesystems, "mount", lambda item: item.mount)
        case _:
            return


def _refuse_repeats(
    section: str, place: str, items: Iterable[Item], field: str, key: Callable[[Item], str | None]
) -> None:
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        identity = key(item)
        if identity is None:
            continue
        first = seen.setdefault(identity, index)
        if first != index:
            shown = identity[:_IDENTITY_SHOWN_MAX]
            problem = f"{field} {shown!r} is already that of {place}.{first}; an id may stand once in a section"
            raise InvalidSection(section, f"{place}.{index}", problem)


def gpu_uuid(gpu: Gpu) -> str | None:
    """Return the UUID that identifies the GPU, or None.

    An all-zero UUID, one that a masked capture counts up (`GPU-00000003-0000-0000-0000-000000000003`, the same on
    every masked host) and a text of another kind identify nothing.
    """
    uuid = known_text(gpu.uuid)
    return None if uuid is None or len(uuid) > _UUID_LENGTH_MAX else _identifying(uuid)


# Read several times while its node's report is applied.
@lru_cache(maxsize=16_384)
def _identifying(uuid: str) -> str | None:
    if not _UUID.fullmatch(uuid):
        return None
    is_zero = set(uuid.removeprefix("GPU-")) <= {"0", "-"}
    return None if is_zero or _MASKED_UUID.fullmatch(uuid) else uuid
