"""Which recorded placeholders and blank codes count as no value, as far as the product judges them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from agent.gpus.fabric import fabric_fact
from bench.cases.answer import Concluded
from bench.cases.lines import aligned, unknown
from domain import disk_identity, mac
from domain.availability import of_number, of_text
from domain.documents.gpus import Gpu
from domain.sections import gpu_uuid
from domain.smbios import identifying_serial, identifying_uuid


def placeholders(files: Sequence[Path]) -> Concluded:
    """Judge each placeholder by the rule of its kind."""
    rows = []
    for kind, entries in json.loads(files[0].read_bytes()).items():
        judge = _JUDGES.get(kind)
        for entry in entries:
            shown = repr(entry.get("v", entry.get("prefix", entry.get("pattern", entry.get("case")))))
            said = judge(entry["v"]) if judge and "v" in entry else "no rule: a pattern, not a value"
            rows.append((kind, shown, said))
    return Concluded(
        "identifying_serial, identifying_uuid, mac.identity, gpu_uuid, fabric_fact, canonical_wwn", aligned(rows)
    )


def sentinels(files: Sequence[Path]) -> Concluded:
    """Judge each number of a metrics text; nothing reads the text itself."""
    rows = []
    for line in files[0].read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            series, _, number = line.rpartition(" ")
            value = float(number) if "." in number else int(number)
            rows.append((series, number, of_number(value).value, of_number(float(value)).value))
    head = ("series", "number", "as it stands", "after a float round trip")
    return Concluded("of_number on each number; the exporter's text has no reader", aligned([head, *rows]))


def _text(value: str, identity: Callable[[str], str | None]) -> str:
    availability = of_text(value)
    return unknown(availability.value) if availability.value != "known" else _identifies(identity(value))


def _identifies(identity: object) -> str:
    return "no identity" if identity is None else f"IDENTIFIES as {identity}"


def _cluster(value: str) -> str:
    registered = fabric_fact(state="completed", status="success", cluster_uuid=value, clique_id=0, health=None).value
    cluster = None if registered is None else registered.cluster_uuid
    return "no multi-node domain" if cluster is None else f"DOMAIN {cluster}"


_JUDGES: Final[dict[str, Callable[[Any], str]]] = {
    "serial": lambda value: _text(value, identifying_serial),
    "system_uuid": lambda value: _text(value, identifying_uuid),
    "mac": lambda value: _identifies(mac.identity(value)),
    "gpu_uuid": lambda value: _identifies(gpu_uuid(Gpu(uuid=value))),
    "gpu_cluster_uuid": _cluster,
    "wwn_or_nguid": lambda value: _identifies(disk_identity.canonical_wwn(value)),
}
