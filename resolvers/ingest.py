"""How inventory travels in: hello, hash reports, section bytes. Every batch answers one slot per entry."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from db import inventory
from db.certificates import save_certificate
from db.events import NewEvent, write_events
from db.identifiers import new_id
from db.inventory import HashReport, ReceivedSection
from db.labels import save_reported_labels
from db.liveness import SignOfLife, hear
from db.node_changes import node_states, tell_changes
from db.nodes import Arrival, Hello, node_with, register
from domain import sections
from domain.acceptance import NO_CHECKS
from domain.access import Permission
from domain.admission import TurnedAway, Work
from domain.certificate import checked_certificate
from domain.errors import Broken, InvalidInput, InvalidSection, Refusal
from domain.events import node_adopted
from domain.ids import NodeId, TenantId
from domain.liveness import skew_seconds
from domain.node import ProvisionState, provision_state_at_join
from domain.texts import given_text, required_text
from resolvers.context import Context
from resolvers.labels import LabelsAtHello, reported_labels
from resolvers.reports import NodeSections
from resolvers.slots import REPORTS_MAX, SECTIONS_MAX, Places, Slot, answer, in_order

FEATURES_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Greeted:
    """What a hello answers."""

    node_id: NodeId
    session_id: str
    request_sections: tuple[str, ...]


class GivenHash(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A section's hash as given."""

    name: str
    sha256: str


class GivenReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A node's hashes as given, and the time by its clock as it sent them."""

    node_id: str
    hashes: Sequence[GivenHash]
    sent_at: datetime | None = None


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
    context.shed_hello()
    context.admit(Work.HELLO, tenant_id, given.identity_key)
    said = reported_labels(labels or LabelsAtHello())
    reported = None if hashes is None else _known_hashes(hashes)
    arrival = Arrival(new_id("sess"), NodeId(new_id("node")), provision_state_at_join(checks=0))
    async with context.hello_transaction() as tx:
        known = await node_with(tx, tenant_id, given.identity_key)
        before = await node_states(tx, [] if known is None else [known])
        node_id = await register(tx, tenant_id, given, arrival)
        await save_reported_labels(tx, node_id, said)
        if given.certificate is not None:
            await save_certificate(tx, tenant_id, node_id, given.certificate)
        if node_id == arrival.node_id and arrival.state is ProvisionState.ADOPTED:
            adopted = node_adopted(NO_CHECKS)
            await write_events(tx, [NewEvent(tenant_id, node_id, adopted.type, adopted.payload)])
        else:
            await tell_changes(tx, before, [(tenant_id, node_id)])
        if reported is None:
            (row,) = await hear(tx, [SignOfLife(tenant_id, node_id)])
        else:
            row = (await inventory.record_reports(tx, [HashReport(tenant_id, node_id, reported)]))[node_id]
    if row.is_back:
        context.services.database.heard_again.set()
    if reported is None:
        return Greeted(node_id, arrival.session_id, ())
    _wake_reconciler(context)
    return Greeted(node_id, arrival.session_id, tuple(row.missing))


async def record_hashes(context: Context, entries: Sequence[GivenReport]) -> list[Slot]:
    """Note what many nodes report, together with other requests' reports; the slots say which sections to send."""
    tenant_id = context.require(Permission.REPORT)
    places = Places(len(entries), REPORTS_MAX)
    now = context.services.now()
    reports: dict[int, HashReport] = {}
    slots: dict[int, Slot] = {}
    for place, given in enumerate(entries):
        try:
            places.take(place, given.node_id)
            skew = skew_seconds(given.sent_at, now)
            node_id = NodeId(given.node_id)
            _admit_heartbeat(context, tenant_id, node_id, skew)
            reports[place] = HashReport(tenant_id, node_id, _known_hashes(given.hashes), skew)
        except Refusal as refusal:
            slots[place] = Slot(given.node_id, refusal=refusal)
    if reports:
        rows = await context.services.reports.heartbeats.submit(list(reports.values()))
        context.forget()
        for (place, report), row in zip(reports.items(), rows, strict=True):
            slots[place] = answer(report.node_id, row if row is None or isinstance(row, Broken) else row.missing)
    return in_order(slots)


async def ingest_sections(context: Context, entries: Sequence[tuple[str, Sequence[GivenSection]]]) -> list[Slot]:
    """Verify and store many nodes' sections, with other requests'; a bad entry stores nothing and fails alone."""
    tenant_id = context.require(Permission.REPORT)
    places = Places(len(entries), SECTIONS_MAX)
    received: dict[int, NodeSections] = {}
    slots: dict[int, Slot] = {}
    for place, (node_id, given) in enumerate(entries):
        try:
            places.take(place, node_id)
            context.admit(Work.SECTIONS, tenant_id, node_id)
            received[place] = NodeSections(NodeId(node_id), _verified(tenant_id, NodeId(node_id), given))
        except Refusal as refusal:
            slots[place] = Slot(node_id, refusal=refusal)
        # Two hundred nodes' documents take most of a second, which heartbeats do not wait for.
        await asyncio.sleep(0)
    if received:
        stored = await context.services.reports.sections.submit(list(received.values()))
        context.forget()
        for (place, entry), names in zip(received.items(), stored, strict=True):
            slots[place] = answer(entry.node_id, names)
    return in_order(slots)


def _admit_heartbeat(context: Context, tenant_id: TenantId, node_id: NodeId, skew: float | None) -> None:
    try:
        context.admit(Work.HEARTBEAT, tenant_id, node_id)
    except TurnedAway:
        # Our refusal is no silence of the node's.
        context.services.reports.late_signs.note(SignOfLife(tenant_id, node_id, skew))
        raise


def _verified(tenant_id: TenantId, node_id: NodeId, given: Sequence[GivenSection]) -> tuple[ReceivedSection, ...]:
    if not given:
        raise InvalidInput("sections: at least one section is expected")
    _refuse_repeated_names([section.name for section in given])
    found = []
    for section in given:
        content = _decoded(section)
        document = sections.as_json(sections.verify(section.name, section.sha256, content))
        found.append(ReceivedSection(tenant_id, node_id, section.name, section.sha256.lower(), content, document))
    return tuple(found)


def _decoded(given: GivenSection) -> bytes:
    # Four characters carry three bytes: what is too long is refused before it is decoded.
    if len(given.content) > sections.SECTION_BYTES_MAX * 4 // 3 + 4:
        raise InvalidSection(given.name, "content", f"more than the {sections.SECTION_BYTES_MAX} bytes accepted")
    try:
        return base64.b64decode(given.content, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSection(given.name, "content", f"not base64: {error}") from error


def _known_hashes(hashes: Sequence[GivenHash]) -> dict[str, str]:
    said = {given.name: given.sha256 for given in hashes}
    if len(said) == len(hashes) and sections.are_known_hashes(said):
        return said  # as agents write it; what is wrong with anything else is said one by one
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
    if given.certificate is not None:
        checked_certificate(given.certificate)


def _wake_reconciler(context: Context) -> None:
    context.services.database.inventory_pending.set()
