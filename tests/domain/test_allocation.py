"""Which atoms of a node a request gets: never what somebody holds, never more of the host than there is."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.allocation import NoRoom, decide
from domain.allocation_request import AllocationRequest, DeviceFacts, check_request, differences
from domain.device import Device, DeviceClass
from domain.errors import InvalidInput
from domain.ids import AllocationId, DeviceId, NodeId
from domain.room import Booking, HostClaim, Room, Span

NODE = NodeId("node_1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def hour(number: int) -> datetime:
    return NOW + timedelta(hours=number)


def gpu(device_id: str, **facts: Any) -> Device:  # noqa: ANN401 - any fact of a device
    return Device(id=DeviceId(device_id), node_id=NODE, **{"device_class": DeviceClass.GPU, "bookable": True, **facts})


def room(*devices: Device, **more: Any) -> Room:  # noqa: ANN401 - any part of a room
    empty: dict[str, Any] = {
        "unschedulable_reasons": (),
        "memory_bytes": None,
        "cpu_cores": None,
        "bookings": (),
        "claims": (),
    }
    return Room(node_id=NODE, devices={device.id: device for device in devices}, **{**empty, **more})


def asked(*device_ids: str, **more: Any) -> AllocationRequest:  # noqa: ANN401 - any part of a request
    return AllocationRequest(shard_id="s", device_ids=tuple(DeviceId(each) for each in device_ids), **more)


def booked(device_id: str, start: int, end: int | None) -> Booking:
    span = Span(hour(start), None if end is None else hour(end))
    return Booking(DeviceId(device_id), AllocationId("alloc_1"), span)


SPANS = st.tuples(st.integers(0, 6), st.none() | st.integers(1, 4)).map(
    lambda drawn: Span(hour(drawn[0]), None if drawn[1] is None else hour(drawn[0] + drawn[1]))
)


@given(SPANS, SPANS)
def test_times_overlap_exactly_when_they_share_a_moment(one: Span, other: Span) -> None:
    # Every bound is a whole hour, and the last lies before the twelfth.
    moments = [hour(number) for number in range(12)]
    assert one.overlaps(other) is any(one.contains(each) and other.contains(each) for each in moments)


@given(st.lists(st.tuples(st.sampled_from("abcd"), SPANS), max_size=6), SPANS, st.integers(1, 4))
def test_nothing_is_chosen_that_somebody_holds(held: Sequence[tuple[str, Span]], span: Span, count: int) -> None:
    bookings = tuple(Booking(DeviceId(name), AllocationId("alloc_1"), each) for name, each in held)
    full = room(*map(gpu, "abcd"), bookings=bookings)
    free = set("abcd") - {name for name, each in held if each.overlaps(span)}
    try:
        chosen = decide(full, asked(count=count), span)
    except NoRoom:
        assert len(free) < count
    else:
        assert len(set(chosen)) == count
        assert set(chosen) <= free


@given(st.lists(st.tuples(SPANS, st.integers(0, 9)), max_size=5), SPANS, st.integers(1, 20))
def test_memory_is_never_claimed_beyond_what_there_is_at_any_moment(
    held: Sequence[tuple[Span, int]], span: Span, memory: int
) -> None:
    claims = tuple(HostClaim(each, amount or None, None) for each, amount in held)
    host = room(memory_bytes=20 * 10**9, claims=claims)
    moments = [hour(number) for number in range(12) if span.contains(hour(number))]
    most = max(sum(amount for each, amount in held if each.contains(moment)) for moment in moments)
    try:
        decide(host, asked(memory_gb=memory), span)
    except NoRoom:
        assert most + memory > 20
    else:
        assert most + memory <= 20


@given(st.permutations([gpu(name, numa_node=number % 2) for number, name in enumerate("abcdef")]), st.integers(1, 6))
def test_the_choice_does_not_depend_on_the_order_of_devices(devices: list[Device], count: int) -> None:
    found = decide(room(*devices), asked(count=count), Span(NOW))
    assert found == decide(room(*sorted(devices, key=lambda device: device.id)), asked(count=count), Span(NOW))


def test_a_numa_node_with_just_enough_is_preferred() -> None:
    devices = [gpu(name, numa_node=numa) for name, numa in zip("abcde", (0, 0, 0, 1, None), strict=True)]
    assert decide(room(*devices), asked(count=1), Span(NOW)) == ("d",)
    assert decide(room(*devices), asked(count=2), Span(NOW)) == ("a", "b")
    assert decide(room(*devices), asked(count=4), Span(NOW)) == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("facts", "fits"),
    [
        ({}, "abc"),
        ({"gpu_model": "H100"}, "ab"),
        ({"gpu_product": "H100-PCIE-80GB"}, "b"),
        ({"vram_gib_min": 80}, "a"),
        ({"numa_node": 1}, "c"),
        ({"device_class": DeviceClass.NIC_VF}, "d"),
    ],
)
def test_devices_are_selected_by_their_facts(facts: dict[str, Any], fits: str) -> None:
    devices = (
        gpu("a", gpu_model="H100", gpu_product="H100-SXM5-80GB", vram_gib=80.0),
        gpu("b", gpu_model="H100", gpu_product="H100-PCIE-80GB", vram_gib=79.6),
        gpu("c", numa_node=1),
        gpu("d", device_class=DeviceClass.NIC_VF),
    )
    request = asked(count=len(fits), facts=DeviceFacts(**facts))
    assert "".join(decide(room(*devices), request, Span(NOW))) == fits
    with pytest.raises(NoRoom):
        decide(room(*devices), replace(request, count=len(fits) + 1), Span(NOW))


def test_reasons_that_say_nothing_of_new_work_are_waived() -> None:
    waived = ("observedGeneration=0", "connectivity=disconnected")
    assert decide(room(gpu("a"), unschedulable_reasons=waived), asked("a"), Span(NOW)) == ("a",)
    for reason in ("cordoned", "connectivity=lost", "provisionState=retired", "Xid79"):
        with pytest.raises(NoRoom, match=f"takes no new work: {reason}"):
            decide(room(gpu("a"), unschedulable_reasons=(*waived, reason)), asked("a"), Span(NOW))


def test_a_refusal_names_what_is_taken_and_until_when() -> None:
    full = room(*map(gpu, "abc"), bookings=(booked("a", 0, None), booked("b", 2, 3)))
    with pytest.raises(NoRoom) as refused:
        decide(full, asked("c", "b", "a"), Span(NOW))
    assert refused.value.message == (
        "deviceIds.1: b is held by alloc_1 until 2026-01-01T03:00:00+00:00; "
        "deviceIds.2: a is held by alloc_1 without an end"
    )


def test_a_start_that_has_passed_is_now_and_an_end_must_come_after() -> None:
    assert asked(count=1, start=hour(-1)).span(NOW) == Span(NOW)
    assert asked(count=1, start=hour(1), end=hour(2)).span(NOW) == Span(hour(1), hour(2))
    for times in ({"end": NOW}, {"start": hour(2), "end": hour(1)}):
        with pytest.raises(InvalidInput, match=r"during\.to"):
            asked(count=1, **times).span(NOW)


def test_requests_are_the_same_whatever_the_order_of_ids_and_the_zone_of_times() -> None:
    elsewhere = hour(3).astimezone(datetime.strptime("+0200", "%z").tzinfo)
    one = asked("a", "b", end=hour(3)).document()
    assert differences(one, asked("b", "a", end=elsewhere).document()) == ()
    assert differences(one, asked("b", end=hour(3), memory_gb=1).document()) == ("deviceIds", "memoryGB")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0])
def test_a_power_that_is_no_amount_is_refused(number: float) -> None:
    with pytest.raises(InvalidInput, match="powerW"):
        check_request(asked(count=1, power_w=number))


def test_a_circle_of_parents_is_left_again() -> None:
    circle = room(gpu("a", parent_id=DeviceId("b")), gpu("b", parent_id=DeviceId("a")))
    assert list(circle.holds(DeviceId("a"))) == ["a", "b", NODE]


def test_a_refusal_names_what_is_wrong_with_the_atom_or_its_board() -> None:
    board = gpu("GPU-1", healthy=False, bookable=False, attributes={"lost": True})
    part = gpu("GPU-1/gi1/ci0", healthy=False, parent_id=board.id, device_class=DeviceClass.GPU_MIG)
    faults = {board.id: ("RowRemapPending", "NvlinkDegraded"), part.id: ("Xid31",)}
    with pytest.raises(NoRoom, match=r"is unhealthy \(NvlinkDegraded, RowRemapPending, Xid31, lost\)"):
        decide(room(board, part, faults=faults), asked(part.id), Span(hour(0)))
