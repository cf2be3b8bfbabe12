"""The order in which hardware is listed decides nothing."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from domain.availability import Availability
from domain.device_plan import Terms, plan_devices
from domain.devices import hardware_of
from domain.division import Division
from domain.documents.disks import DisksSection
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.documents.nics import NicsSection
from domain.ids import NodeId
from tests.domain import strategies
from tests.domain.bookings import booked as at_once

NODE = NodeId("node_00000000000000000000000001")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Item = TypeVar("Item")
AVAILABILITIES = st.sampled_from([Availability.UNSUPPORTED, Availability.TEMPORARILY_FAILED])
FACTS = {
    "gpus": ("serial", "migMode", "migInstances", "migInstances.0.profile", "migInstances.1.memoryMiB", "vramMiB"),
    "nics": ("permanentMac", "vfs", "vfs.0.mac", "vfs.1.mac"),
    "disks": ("wwn", "serial"),
}
LISTS = {"gpus": ("mig_instances", "nvlinks"), "nics": ("vfs",)}
PARTS = {"mig_instances", "vfs"}


@st.composite
def _machines(draw: st.DrawFn) -> dict[str, Section]:
    """Draw machines with facts that are not known, item by item."""
    drawn = draw(strategies.machines())
    for name in FACTS.keys() & drawn.keys():
        paths = [f"{name}.{item}.{fact}" for item in range(4) for fact in FACTS[name]]
        unavailable = draw(st.dictionaries(st.sampled_from(paths), AVAILABILITIES, max_size=4))
        drawn[name] = structs.replace(drawn[name], unavailable=unavailable)
    return drawn


def _order(items: Sequence[Item], shuffler: random.Random) -> tuple[tuple[Item, ...], dict[str, str]]:
    """Return the items in another order, and the new place of each old one."""
    places = list(range(len(items)))
    shuffler.shuffle(places)
    return tuple(items[old] for old in places), {str(old): str(new) for new, old in enumerate(places)}


def _shuffled(section: Section, shuffler: random.Random) -> Section:
    match section:
        case GpusSection():
            name, items = "gpus", list[Any](section.gpus)
        case NicsSection():
            name, items = "nics", list[Any](section.nics)
        case DisksSection():
            name, items = "disks", list[Any](section.disks)
        case _:
            return section
    parts: dict[str, dict[str, str]] = {}
    for place, item in enumerate(items):
        for field in LISTS.get(name, ()):
            listed, moved = _order(getattr(item, field), shuffler)
            items[place] = structs.replace(items[place], **{field: listed})
            parts.setdefault(str(place), {}).update(moved if field in PARTS else {})
    listed, moved = _order(items, shuffler)
    unavailable = {_path(path, moved, parts): why for path, why in section.unavailable.items()}
    return structs.replace(section, **{name: listed}, unavailable=unavailable)


def _path(path: str, moved: dict[str, str], parts: dict[str, dict[str, str]]) -> str:
    names = path.split(".")
    if len(names) > 3 and names[2] in {"migInstances", "vfs"}:
        names[3] = parts.get(names[1], {}).get(names[3], names[3])
    if len(names) > 1:
        names[1] = moved.get(names[1], names[1])
    return ".".join(names)


@given(_machines(), _machines(), strategies.DIVISIONS, strategies.DIVISIONS, st.randoms(), st.data())
def test_neither_plan_nor_health_depends_on_the_order_of_what_is_listed(  # noqa: PLR0917
    before: dict[str, Section],
    after: dict[str, Section],
    old: Division,
    new: Division,
    shuffler: random.Random,
    data: st.DataObject,
) -> None:
    written = plan_devices(NODE, (), hardware_of(NODE, before), before, Terms(now=NOW, division=old))
    current, faults = list(written.upsert), list(written.health.stands)
    ids = sorted(device.id for device in current)
    booked = data.draw(st.frozensets(st.sampled_from(ids), max_size=3)) if ids else frozenset()
    terms = Terms(now=NOW + timedelta(hours=1), division=new, booked=at_once(booked), health=tuple(faults))
    plan = plan_devices(NODE, current, hardware_of(NODE, after), after, terms)
    shuffler.shuffle(current)
    shuffler.shuffle(faults)
    other = {name: _shuffled(section, shuffler) for name, section in after.items()}
    again = replace(terms, health=tuple(faults))
    assert plan_devices(NODE, current, hardware_of(NODE, other), other, again) == plan
