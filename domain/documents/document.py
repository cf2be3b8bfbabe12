"""What every document shares: frozen, camel-cased on the wire, absent when not known, with named unknowns."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from domain.availability import Availability

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

Count = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Bytes = Annotated[int, Meta(ge=0, le=INT64_MAX)]
"""A 64-bit amount. Its field's name ends in `bytes`: that is how it is told from a Count (see `sections.as_json`)."""

# Spellings that plain camel-casing would get wrong.
_UNITS: Final = {"mib": "MiB", "kib": "KiB", "gib": "GiB", "mts": "MTs", "mhz": "MHz"}


def wire_name(name: str) -> str:
    """Turn `vram_mib` into `vramMiB`, as documents and the schema write it."""
    head, *rest = name.split("_")
    return head + "".join(_UNITS.get(word, word.capitalize()) for word in rest)


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=wire_name):
    """A part of a section. Unknown extra fields of a newer agent are ignored; the received bytes keep them."""


class Section(Document, frozen=True, kw_only=True, omit_defaults=True, rename=wire_name):
    """A whole section, with the facts that are not known by their path and why (`{"gpus.3.serial": "unsupported"}`)."""

    unavailable: dict[str, Availability] = {}
