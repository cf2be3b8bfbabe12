"""Status reports: what nodes' daemons say of them beside their inventory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from db.liveness import SignOfLife
from domain.access import Permission
from domain.admission import Work
from domain.conditions import Observed
from domain.daemon_conditions import DaemonStatement, not_the_daemons, repeated
from domain.errors import Broken, InvalidInput, Refusal
from domain.fault_intake import ToldFault
from domain.ids import NodeId
from domain.liveness import skew_seconds
from domain.pressure import AllThresholds, Pressure, PressureStatement, Sample
from domain.standing import Statement
from domain.texts import given_text, required_text
from domain.told_faults import GivenFault, fault_of_condition, told_faults
from resolvers.context import Context
from resolvers.reports import StatusReport
from resolvers.slots import REPORTS_MAX, Places, Slot, answer, in_order

CONDITIONS_MAX: Final = 256
MESSAGE_LENGTH_MAX: Final = 1000
PERCENT_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class GivenCondition(Observed):
    """A condition as given; `device_id` names the GPU of one that names an Xid."""

    device_id: str | None = None


@dataclass(frozen=True, slots=True)
class GivenStatus:
    """A status report as given; what is None stays as it is."""

    node_id: str
    conditions: Sequence[GivenCondition] | None
    xids: Sequence[GivenFault] | None = None
    sent_at: datetime | None = None
    observed_generation: int | None = None
    pressure: Mapping[Pressure, float | None] | None = None


async def report_statuses(context: Context, entries: Sequence[GivenStatus]) -> list[Slot]:
    """Take what many nodes say of themselves, together with other requests' reports.

    The slots name the types of conditions that are no daemon's to say.
    """
    tenant_id = context.require(Permission.REPORT)
    places = Places(len(entries), REPORTS_MAX)
    now, thresholds = context.services.now(), context.services.pressure_thresholds
    reports: dict[int, StatusReport] = {}
    slots: dict[int, Slot] = {}
    for place, given in enumerate(entries):
        try:
            places.take(place, given.node_id)
            context.admit(Work.STATUS, tenant_id, given.node_id)
            sign = SignOfLife(tenant_id, NodeId(given.node_id), skew_seconds(given.sent_at, now))
            reports[place] = StatusReport(
                sign, _statements(given, thresholds), _faults(given), given.observed_generation
            )
        except Refusal as refusal:
            slots[place] = Slot(given.node_id, refusal=refusal)
    if reports:
        heard = await context.services.reports.statuses.submit(list(reports.values()))
        context.forget()
        for (place, report), generation in zip(reports.items(), heard, strict=True):
            if isinstance(generation, Broken):
                slots[place] = Slot(report.node_id, refusal=generation)
                continue
            left_out = not_the_daemons(entries[place].conditions or ())
            slots[place] = answer(report.node_id, None if generation is None else left_out, generation)
    return in_order(slots)


def _statements(given: GivenStatus, thresholds: AllThresholds) -> tuple[Statement, ...]:
    """Return what each source has to say: one statement for each that the report has a word of."""
    said: list[Statement] = []
    if given.conditions is not None:
        said.append(DaemonStatement(_known_conditions(given.conditions)))
    if given.pressure is not None:
        said.append(PressureStatement(_known_pressure(given.pressure), thresholds))
    return tuple(said)


def _known_pressure(given: Mapping[Pressure, float | None]) -> Sample:
    known = {each: percent for each, percent in given.items() if percent is not None}
    for each, percent in known.items():
        if not 0 <= percent <= PERCENT_MAX:
            raise InvalidInput(f"pressure.{each}: {percent}; a percentage from 0 to {PERCENT_MAX} is expected")
    return known


def _faults(given: GivenStatus) -> tuple[ToldFault, ...]:
    """Return the faults of the kernel log, whichever way they are told."""
    of_conditions = (
        fault_of_condition(each.type, each.status, each.message, each.device_id) for each in given.conditions or ()
    )
    return (*told_faults(given.xids or ()), *filter(None, of_conditions))


def _known_conditions(given: Sequence[GivenCondition]) -> tuple[Observed, ...]:
    if len(given) > CONDITIONS_MAX:
        raise InvalidInput(f"conditions: {len(given)}; at most {CONDITIONS_MAX} are taken")
    for place, each in enumerate(given):
        required_text(f"conditions.{place}.type", each.type)
        given_text(f"conditions.{place}.reason", each.reason or None)
        given_text(f"conditions.{place}.deviceId", each.device_id)
        message = each.message or ""
        if len(message) > MESSAGE_LENGTH_MAX or "\0" in message:
            raise InvalidInput(
                f"conditions.{place}.message: at most {MESSAGE_LENGTH_MAX} characters without U+0000 are taken"
            )
    twice = repeated(given)
    if twice is not None:
        raise InvalidInput(f"conditions: {twice!r} stands there twice; once is expected")
    return tuple(given)
