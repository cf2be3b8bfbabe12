"""The catalog of identifiers that identify nothing, held against the product, and the key of a recorded machine."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.cases.answer import Concluded
from bench.cases.lines import aligned, unknown
from domain import mac
from domain.availability import known_text
from domain.documents.document import Section
from domain.hardware_evidence import evidence_of
from domain.hardware_key import Evidence, identify
from domain.smbios import identifying_serial, identifying_uuid

_REMARK: Final = re.compile(r"\s*\((?:/\^|no final).*?\)(?= |$)")


def placeholder_catalog(files: Sequence[Path]) -> Concluded:
    """Read the tables of UUIDs and MACs, and the serials between dots; what looks bad and is not is read too."""
    rows = []
    for part, value in _values(files[0].read_text(encoding="utf-8")):
        rows.append((part, repr(value), judged(part, value)))
    return Concluded("identifying_uuid, identifying_serial, mac.identity", aligned(rows))


def judged(part: str, value: str) -> str:
    """Say whether a value of that part of the catalog identifies a machine."""
    match part:
        case "UUIDs" | "Look bad but are real":
            identity = identifying_uuid(known_text(value))
        case "MAC addresses":
            identity = mac.identity(value)
        case _:
            identity = identifying_serial(known_text(value))
    return "no identity" if identity is None else f"IDENTIFIES as {identity}"


def key_lines(sections: Mapping[str, Section]) -> list[str]:
    """Write the hardware key of a machine of which these sections are known, and what it rests on."""
    found = identify(evidence_of(sections))
    trust = "trusted" if found.strong else "not trusted: fewer than two independent identifiers"
    own = [("hardware key", f"{found.key} ({trust})" if found.key else unknown("nothing identifies it"))]
    return aligned([*own, *((f"  {each.field.value}", _evidence(each)) for each in found.evidence)])


def _evidence(each: Evidence) -> str:
    if not each.known:
        return unknown("not told")
    return f"{each.value!r}, a placeholder" if each.placeholder else f"{each.value!r} counts as {each.identity}"


def _values(text: str) -> Iterator[tuple[str, str]]:
    part = ""
    for line in text.splitlines():
        if line.startswith(("## ", "Look bad")):
            part = line.removeprefix("## ").partition(",")[0]
        elif part.startswith("Serial") and " · " in line:
            yield from ((part, value) for value in _serials(line))
        elif part in {"UUIDs", "MAC addresses"} and line.startswith("| ") and not line.startswith("| value"):
            cell = line.split("|")[1].strip()
            yield from ((part, _example(value)) for value in re.split(r" ; |, ", cell) if not value.startswith("any "))
        elif part.startswith("Look bad") and line.startswith("- "):
            yield part, _example(line.removeprefix("- ").partition(": ")[0])


def _serials(line: str) -> Iterator[str]:
    for value in line.split(" · "):
        bare = _REMARK.sub("", value.strip(" ·"))
        if not bare.startswith(("all ", "only ")):
            yield bare


def _example(value: str) -> str:
    """Put digits where the catalog leaves them open."""
    if value.endswith("-..."):
        return f"{value[:-4]}-1a2b-4c3d-8e5f-6a7b8c9d0e1f"
    if value.endswith(":*"):
        return value.removesuffix(":*") + ":7c" * (6 - value.count(":"))
    return re.sub("x+", lambda found: "4c2d1e9a"[: len(found[0])], value)
