"""Nothing is pulled from under a live booking, and nothing that overlaps one is offered."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from domain.device import Device, DeviceClass
from domain.device_plan import DevicePlan, Terms, plan_devices
from domain.devices import devices_of, hardware_of
from domain.division import UNPOOLED, Division
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection, MigInstance, Mode
from domain.documents.nics import Nic, NicsSection, Vf
from domain.ids import DeviceId, NodeId
from domain.pool import Sharing
from tests.domain import strategies
from tests.domain.bookings import booked as at_once

NODE: Final = NodeId("node_00000000000000000000000001")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
SOON: Final = NOW + timedelta(minutes=2)
"""Before anything else has its time."""
MIG: Final = Division(Sharing.MIG)
TWO: Final = Division(Sharing.TIMESLICE, 2)
FOUR: Final = Division(Sharing.TIMESLICE, 4)
METAL: Final = Division(whole_node=True)
WHOLE: Final = Gpu(uuid="GPU-1", pci_bus_id="18:00.0", mig_mode=Mode(current=False, pending=False))
PARTED: Final = structs.replace(
    WHOLE, mig_mode=Mode(current=True, pending=True), mig_instances=(MigInstance(gi=1, ci=0), MigInstance(gi=2, ci=0))
)

Rows = Mapping[DeviceId, Device]


def _gpus(*gpus: Gpu, enumeration: Enumeration = Enumeration.COMPLETE) -> dict[str, Section]:
    return {"gpus": GpusSection(enumeration=enumeration, gpus=gpus)}


def _rows(devices: Iterable[Device]) -> Rows:
    return {device.id: device for device in devices}


def _plan(
    rows: Rows,
    sections: Mapping[str, Section],
    division: Division,
    booked: AbstractSet[str],
    begins_at: datetime | None = None,
) -> DevicePlan:
    terms = Terms(now=NOW, division=division, booked=at_once(booked, begins_at))
    return plan_devices(NODE, list(rows.values()), hardware_of(NODE, sections), sections, terms)


def _write(rows: Rows, plan: DevicePlan) -> Rows:
    return {each: device for each, device in {**rows, **_rows(plan.upsert)}.items() if each not in plan.delete}


def _next(
    before: Rows, sections: Mapping[str, Section], division: Division, *booked: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return each device in a word, and what the plan is held by."""
    plan = _plan(before, sections, division, frozenset(booked))
    return {each: _word(device) for each, device in sorted(_write(before, plan).items())}, plan.waits.held_by


def _word(device: Device) -> str:
    said = ["atom" if device.bookable else "no atom"]
    said += ["missing"] if device.missing else []
    said += [] if device.healthy else ["unhealthy"]
    return ", ".join(said)


@st.composite
def _booked(draw: st.DrawFn, rows: Rows) -> frozenset[DeviceId]:
    """Draw some of the atoms: only those are booked."""
    atoms = sorted(each for each, device in rows.items() if device.bookable)
    return draw(st.frozensets(st.sampled_from(atoms))) if atoms else frozenset()


MACHINES = strategies.machines()


@given(MACHINES, MACHINES, strategies.DIVISIONS, strategies.DIVISIONS, st.data())
def test_whatever_changes_a_booked_atom_stays_and_overlaps_nothing_that_is_offered(
    before: dict[str, Section], after: dict[str, Section], old: Division, new: Division, data: st.DataObject
) -> None:
    rows = _rows(devices_of(NODE, before, old))
    booked = data.draw(_booked(rows))
    plan = _plan(rows, after, new, booked)
    written = _write(rows, plan)
    assert booked <= written.keys()
    assert all(device.parent_id in written for device in written.values() if device.parent_id is not None)
    for each in booked:
        device = written[each]
        assert device.bookable or device.partition_pending
        tree = device.parent_id or device.id
        if device.device_class in {DeviceClass.GPU, DeviceClass.GPU_MIG, DeviceClass.GPU_SLOT}:
            offered = {
                other.device_class
                for other in written.values()
                if (other.parent_id or other.id) == tree and other.bookable and other.id not in booked
            }
            assert offered <= {device.device_class}


@given(MACHINES, MACHINES, strategies.DIVISIONS, strategies.DIVISIONS, st.data())
def test_a_plan_that_bookings_bend_says_so_settles_and_straightens_when_they_end(
    before: dict[str, Section], after: dict[str, Section], old: Division, new: Division, data: st.DataObject
) -> None:
    rows = _rows(devices_of(NODE, before, old))
    booked = data.draw(_booked(rows))
    free = _write(rows, _plan(rows, after, new, frozenset()))
    bent = _plan(rows, after, new, booked)
    held = _write(rows, bent)
    again = _plan(held, after, new, booked)
    assert (again.upsert, again.delete, again.waits.held_by) == ((), (), bent.waits.held_by)
    assert set(bent.waits.held_by) <= booked
    assert (held == free) == (not bent.waits.held_by)
    assert _write(held, _plan(held, after, new, frozenset())) == free


@given(MACHINES, MACHINES, strategies.DIVISIONS, strategies.DIVISIONS, st.data())
def test_what_is_booked_for_later_stays_in_nobodys_way_until_it_begins_and_is_then_as_if_it_were_booked_all_along(
    before: dict[str, Section], after: dict[str, Section], old: Division, new: Division, data: st.DataObject
) -> None:
    rows = _rows(devices_of(NODE, before, old))
    booked = data.draw(_booked(rows))
    free = _write(rows, _plan(rows, after, new, frozenset()))
    reserved = _plan(rows, after, new, booked, SOON)
    kept = _write(rows, reserved)
    again = _plan(kept, after, new, booked, SOON)
    assert (again.upsert, again.delete, again.waits) == ((), (), reserved.waits)
    added = kept.keys() - free.keys()
    assert {each: kept[each] for each in free} == free
    assert set(map(str, reserved.waits.held_by)) == added <= booked
    assert not any(kept[each].bookable for each in added)
    assert added == {
        each
        for each in booked - free.keys()
        if rows[each].device_class is DeviceClass.NODE or rows[each].parent_id in free
    }
    assert _write(kept, _plan(kept, after, new, frozenset())) == free
    begun = _plan(kept, after, new, booked & kept.keys())
    assert (reserved.waits.due_at == SOON) == bool(begun.waits.held_by)
    assert _write(kept, begun) == _write(rows, _plan(rows, after, new, booked & kept.keys()))


def test_slots_that_the_pool_no_longer_has_stay_while_they_are_booked() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE), FOUR))
    assert _next(before, _gpus(WHOLE), TWO, "GPU-1/s0", "GPU-1/s3") == (
        {"GPU-1": "no atom", "GPU-1/s0": "atom", "GPU-1/s1": "atom", "GPU-1/s3": "atom, missing"},
        ("GPU-1/s3",),
    )
    assert _next(before, _gpus(WHOLE), UNPOOLED, "GPU-1/s3") == (
        {"GPU-1": "no atom", "GPU-1/s3": "atom, missing"},
        ("GPU-1/s3",),
    )
    assert _next(before, _gpus(WHOLE), UNPOOLED) == ({"GPU-1": "atom"}, ())


def test_a_gpu_that_is_booked_whole_is_shared_only_afterwards() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE)))
    assert _next(before, _gpus(WHOLE), TWO, "GPU-1") == ({"GPU-1": "atom"}, ("GPU-1",))
    assert _next(before, _gpus(WHOLE), TWO) == ({"GPU-1": "no atom", "GPU-1/s0": "atom", "GPU-1/s1": "atom"}, ())


def test_a_tenant_that_partitions_its_gpu_shares_it_with_nobody() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE)))
    assert _next(before, _gpus(PARTED), UNPOOLED, "GPU-1") == (
        {"GPU-1": "atom", "GPU-1/gi1/ci0": "no atom", "GPU-1/gi2/ci0": "no atom"},
        ("GPU-1",),
    )


def test_a_layout_that_is_gone_keeps_the_booked_instance_and_the_whole_is_not_offered() -> None:
    before = _rows(devices_of(NODE, _gpus(PARTED), MIG))
    assert _next(before, _gpus(WHOLE), UNPOOLED, "GPU-1/gi2/ci0") == (
        {"GPU-1": "no atom", "GPU-1/gi2/ci0": "atom, missing, unhealthy"},
        ("GPU-1/gi2/ci0",),
    )


def test_a_gpu_that_vanished_stays_as_long_as_a_part_of_it_is_booked() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE), TWO))
    kept = {"GPU-1": "no atom, missing, unhealthy", "GPU-1/s1": "atom, missing, unhealthy"}
    assert _next(before, _gpus(), TWO, "GPU-1/s1") == (kept, ("GPU-1/s1",))
    assert _next(before, _gpus(), TWO) == ({}, ())
    gone = _write(before, _plan(before, _gpus(), TWO, {"GPU-1/s1"}))
    cut = _gpus(enumeration=Enumeration.INCOMPLETE)
    assert _next(gone, cut, TWO, "GPU-1/s1") == (kept, ("GPU-1/s1",))
    # It was counted out by a complete enumeration: one that shows less does not bring it back.
    assert _next(gone, cut, TWO) == ({}, ())


def test_a_mode_that_is_about_to_change_takes_no_booking_more_and_keeps_the_ones_there_are() -> None:
    changing = structs.replace(WHOLE, mig_mode=Mode(current=False, pending=True))
    before = _rows(devices_of(NODE, _gpus(WHOLE), TWO))
    words, held_by = _next(before, _gpus(changing), TWO, "GPU-1/s0")
    assert words == {"GPU-1": "no atom", "GPU-1/s0": "no atom", "GPU-1/s1": "no atom"}
    assert held_by == ()


def test_slots_that_wait_for_a_booked_gpu_about_to_change_its_mode_come_when_the_booking_ends() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE), UNPOOLED))
    turning = _gpus(structs.replace(WHOLE, mig_mode=Mode(current=False, pending=True)))
    assert _next(before, turning, TWO, "GPU-1") == ({"GPU-1": "no atom"}, ("GPU-1",))
    assert _next(before, turning, TWO) == (dict.fromkeys(("GPU-1", "GPU-1/s0", "GPU-1/s1"), "no atom"), ())


def test_a_booked_node_stays_an_atom_when_its_pool_is_no_metal() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE), METAL))
    assert _next(before, _gpus(WHOLE), UNPOOLED, NODE) == ({"GPU-1": "atom", NODE: "atom, missing"}, (DeviceId(NODE),))
    assert _next(before, _gpus(WHOLE), UNPOOLED) == ({"GPU-1": "atom"}, ())


def test_functions_that_come_and_go_are_followed_and_kept_while_booked() -> None:
    def nics(*functions: int) -> dict[str, Section]:
        port = Nic(name="eth0", permanent_mac="0c:42:a1:00:00:01", vfs=tuple(Vf(index=each) for each in functions))
        return {"nics": NicsSection(nics=(port,))}

    port, first, third = (f"0c:42:a1:00:00:01{end}" for end in ("", "/vf0", "/vf2"))
    before = _rows(devices_of(NODE, nics(0, 1)))
    words, held_by = _next(before, nics(2), UNPOOLED, first)
    assert words == {port: "no atom", first: "atom, missing, unhealthy", third: "atom"}
    assert held_by == (first,)


def test_a_layout_that_cannot_be_read_changes_nothing() -> None:
    before = _rows(devices_of(NODE, _gpus(PARTED), MIG))
    silent = Gpu(uuid="GPU-1", pci_bus_id="18:00.0")
    words = {each: _word(device) for each, device in before.items()}
    assert _next(before, _gpus(silent), MIG)[0] == words
    lost = structs.replace(silent, lost=True)
    assert set(_next(before, _gpus(lost), MIG)[0].values()) == {"no atom, unhealthy", "atom, unhealthy"}
    nameless = structs.replace(lost, uuid=None)
    assert _next(before, _gpus(nameless), MIG)[0].keys() == before.keys()


def test_the_pool_divides_gpus_that_a_cut_enumeration_does_not_show() -> None:
    before = _rows(devices_of(NODE, _gpus(WHOLE)))
    cut = _gpus(enumeration=Enumeration.UNAVAILABLE)
    assert _next(before, cut, TWO)[0] == {"GPU-1": "no atom", "GPU-1/s0": "atom", "GPU-1/s1": "atom"}
