"""How inventory travels in: hello, hash reports, section bytes. Every batch answers one slot per entry."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from db import inventory
from db.identifiers import new_id
from db.inventory import HashReport, ReceivedSection
from db.labels import save_reported_labels
from db.nodes import Arrival, Hello, register
from domain import sections
from domain.access import Permission
from domain.errors import InvalidInput, InvalidSection, NotFound, Refusal
from domain.ids import NodeId, has_prefix
from domain.node import provision_state_at_join
from domain.texts import given_text, required_text
from resolvers.context import Context
from resolvers.labels import LabelsAtHello, reported_labels

REPORTS_MAX: Final = 1000
ENTRIES_MAX: Final = 200
FEATURES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Greeted:
    """What a hello answers."""

    node_id: NodeId
    session_id: str
    request_sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One entry's answer in a batch: names of sections, or why the entry was refused."""

    node_id: str
    sections: tuple[str, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class GivenHash:
    """A section's hash as given."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class GivenSection:
    """A section as given: its bytes in base64."""

    name: str
    sha256: str
    content: str


async def hello(
    context: Context, given: Hello, hashes: Sequence[GivenHash] | None, labels: LabelsAtHello | None = None
) -> Greeted:
    """Open a session for the node with this identity, making the node at its first hello."""
    tenant_id = context.require(Permission.REPORT)
    _refuse_bad_texts(given)
    said = reported_labels(labels or LabelsAtHello())
    reported = None if hashes is None else _known_hashes(hashes)
    arrival = Arrival(new_id("sess"), NodeId(new_id("node")), provision_state_at_join(checks=0))
    async with context.transaction() as tx:
        node_id = await register(tx, tenant_id, given, arrival)
        await save_reported_labels(tx, node_id, said)
        if reported is None:
            return Greeted(node_id, arrival.session_id, ())
        rows = await inventory.record_reports(tx, tenant_id, [HashReport(node_id, reported)])
    _wake_reconciler(context)
    return Greeted(node_id, arrival.session_id, tuple(rows[node_id].missing))


async def record_hashes(context: Context, entries: Sequence[tuple[str, Sequence[GivenHash]]]) -> list[Slot]:
    """Note what many nodes report, in one statement; the slots say which sections to send."""
    tenant_id = context.require(Permission.REPORT)
    _refuse_long_batch(len(entries), REPORTS_MAX)
    reports: dict[int, HashReport] = {}
    slots: dict[int, Slot] = {}
    first_place: dict[str, int] = {}
    for place, (node_id, hashes) in enumerate(entries):
        try:
            _refuse_bad_node(first_place, node_id, place)
            reports[place] = HashReport(NodeId(node_id), _known_hashes(hashes))
        except Refusal as refusal:
            slots[place] = Slot(node_id, refusal=refusal)
    if reports:
        async with context.transaction() as tx:
            rows = await inventory.record_reports(tx, tenant_id, list(reports.values()))
        for place, report in reports.items():
            row = rows.get(report.node_id)
            slots[place] = _answer(report.node_id, row.missing if row else None)
        if any(row.changed and not row.missing for row in rows.values()):
            _wake_reconciler(context)
    return [slots[place] for place in range(len(entries))]


async def ingest_sections(context: Context, entries: Sequence[tuple[str, Sequence[GivenSection]]]) -> list[Slot]:
    """Verify and store many nodes' sections, in one statement; a bad entry stores nothing and fails nobody else."""
    tenant_id = context.require(Permission.REPORT)
    _refuse_long_batch(len(entries), ENTRIES_MAX)
    received: dict[int, list[ReceivedSection]] = {}
    slots: dict[int, Slot] = {}
    first_place: dict[str, int] = {}
    for place, (node_id, given) in enumerate(entries):
        try:
            _refuse_bad_node(first_place, node_id, place)
            received[place] = _verified(NodeId(node_id), given)
        except Refusal as refusal:
            slots[place] = Slot(node_id, refusal=refusal)
    if received:
        flat = [section for group in received.values() for section in group]
        async with context.transaction() as tx:
            stored = await inventory.store_sections(tx, tenant_id, flat)
        for place in received:
            node_id = entries[place][0]
            slots[place] = _answer(node_id, stored.get(NodeId(node_id)))
        _wake_reconciler(context)
    return [slots[place] for place in range(len(entries))]


def _verified(node_id: NodeId, given: Sequence[GivenSection]) -> list[ReceivedSection]:
    if not given:
        raise InvalidInput("sections: at least one section is expected")
    _refuse_repeated_names([section.name for section in given])
    found = []
    for section in given:
        content = _decoded(section)
        document = sections.as_json(sections.verify(section.name, section.sha256, content))
        found.append(ReceivedSection(node_id, section.name, section.sha256.lower(), content, document))
    return found


def _decoded(given: GivenSection) -> bytes:
    # Four characters carry three bytes: what is too long is refused before it is decoded.
    if len(given.content) > sections.SECTION_BYTES_MAX * 4 // 3 + 4:
        raise InvalidSection(given.name, "content", f"more than the {sections.SECTION_BYTES_MAX} bytes accepted")
    try:
        return base64.b64decode(given.content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSection(given.name, "content", f"not base64: {error}") from error


def _known_hashes(hashes: Sequence[GivenHash]) -> Mapping[str, str]:
    if not hashes:
        raise InvalidInput("hashes: at least one section's hash is expected")
    _refuse_repeated_names([given.name for given in hashes])
    return {sections.known_section_name(given.name): sections.known_hash(given.name, given.sha256) for given in hashes}


def _refuse_repeated_names(names: Sequence[str]) -> None:
    if len(names) > len(sections.SECTION_NAMES):
        raise InvalidInput(f"{len(names)} sections; a node has at most {len(sections.SECTION_NAMES)}")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidSection(name, "", f"named twice, at {names.index(name)} and {place}; once is expected")


def _refuse_bad_node(first_place: dict[str, int], node_id: str, place: int) -> None:
    if not has_prefix(node_id, "node"):
        raise _no_node(node_id)
    first = first_place.setdefault(node_id, place)
    if first != place:
        raise InvalidInput(
            f"nodeId: entry {first} of this batch is already node {node_id!r}'s; send the next one later"
        )


def _refuse_long_batch(length: int, most: int) -> None:
    if length > most:
        raise InvalidInput(f"entries: {length}; at most {most} are taken at once")


def _refuse_bad_texts(given: Hello) -> None:
    required_text("identityKey", given.identity_key)
    given_text("hostname", given.hostname)
    given_text("displayName", given.display_name)
    given_text("managementAddress", given.management_address)
    given_text("agentVersion", given.agent_version)
    given_text("protocol", given.protocol)
    given_text("bootId", given.boot_id)
    if len(given.features) > FEATURES_MAX:
        raise InvalidInput(f"features: {len(given.features)}; at most {FEATURES_MAX} are taken")
    for feature in given.features:
        required_text("features", feature)


def _answer(node_id: str, names: Sequence[str] | None) -> Slot:
    if names is None:
        return Slot(node_id, refusal=_no_node(node_id))
    return Slot(node_id, tuple(names))


def _no_node(node_id: str) -> NotFound:
    return NotFound(f"no node {node_id[:64]!r}; say hello first")


def _wake_reconciler(context: Context) -> None:
    context.services.database.inventory_pending.set()
