import json
import math
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.feeding import frames
from bench.feeding.figures import OTHER_PROCESS, OWN_MUTATION, Load, Memory, Seen, SideSeen
from bench.feeding.latency import Latency, latency_of
from bench.feeding.measure import Plan
from bench.feeding.report import report
from bench.feeding.run import Stand
from bench.feeding.sequence import Sequence
from bench.feeding.sides import Kind
from bench.feeding.soak import Soaked, SoakPlan
from bench.feeding.subscriber import NUMBERED
from bench.feeding.times import keep_times, kept_times
from bench.stand.errors import CannotMeasure
from bench.stand.postgres import OwnPostgres, scratch_folder
from bench.stand.talk import helper

TINY = Plan(5, 40, 1, 20, idle=3, light=1, beside=2, again=False, begin_seconds_max=math.inf)


def taken(*numbers: int) -> Sequence:
    sequence = Sequence()
    for at, number in enumerate(numbers, start=1):
        sequence.take(number, at)
    return sequence


def wrong(sequence: Sequence) -> tuple[int, int, int]:
    return sequence.lost, sequence.again, sequence.disordered


def latency(p50_ms: float) -> Latency:
    return Latency(p50_ms, 2 * p50_ms, 3 * p50_ms, 4 * p50_ms, 100)


def load(delivered: int, seconds: float = 10.0, p50_ms: float = 100.0, cpu: float = 1.0) -> Load:
    return Load(10, 100, 1000, delivered, 0, 0, 0, 10.0, seconds, latency(p50_ms), cpu, 0.5, 0.5, 200.0)


def side(idle_ms: float, delivered: int, cpu: float, mib: float) -> SideSeen:
    return SideSeen(
        {OTHER_PROCESS: latency(idle_ms), OWN_MUTATION: latency(idle_ms / 2)},
        Memory(100.0, {1000: 100.0 + mib}),
        load(10_000, p50_ms=idle_ms, cpu=cpu),
        [load(delivered, cpu=cpu)],
    )


def soaked(*rss_mib: float, lost: int = 0) -> Soaked:
    got = {"late": 0, "got": 100, "lost": lost, "doubled": 0, "disordered": 0}
    return Soaked(SoakPlan(1, 10, 5, 1), 10, got, rss_mib, 1.0)


def test_numbers_that_come_once_and_in_order_leave_nothing_to_say() -> None:
    sequence = taken(7, 8, 9)
    assert wrong(sequence) == (0, 0, 0)
    assert [sequence.arrived(number) for number in (6, 7, 9, 10)] == [0, 1, 3, 0]


def test_a_number_that_is_left_out_is_lost() -> None:
    sequence = taken(1, 2, 5)
    assert wrong(sequence) == (2, 0, 0)
    assert [sequence.arrived(number) for number in (2, 3, 4, 5)] == [2, 0, 0, 3]


def test_a_number_that_comes_late_is_out_of_order_and_not_lost() -> None:
    assert wrong(taken(1, 3, 2, 4)) == (0, 0, 1)


def test_a_number_that_comes_again_is_doubled() -> None:
    assert wrong(taken(1, 2, 2, 1, 3)) == (0, 2, 0)


@given(st.lists(st.binary(max_size=70_000), max_size=4), st.data())
def test_frames_come_whole_wherever_the_bytes_are_cut(payloads: list[bytes], data: st.DataObject) -> None:
    # As a server sends them: a client's frame without its mask.
    sent = b"".join(_unmasked(frames.frame(frames.TEXT, payload)) for payload in payloads)
    cut = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    pieces = [sent[begin:end] for begin, end in zip([0, *cut], [*cut, len(sent)], strict=True)]
    reader = frames.Frames()
    found = [frame for piece in pieces for frame in reader.take(piece)]
    assert found == [(frames.TEXT, payload) for payload in payloads]


def _unmasked(frame: bytes) -> bytes:
    width = {126: 2, 127: 8}.get(frame[1] & 0x7F, 0)
    return bytes((frame[0], frame[1] & 0x7F)) + frame[2 : 2 + width] + frame[2 + width + 4 :]


def test_the_number_is_read_in_whatever_way_a_server_writes_json() -> None:
    for text in (b'{"reason":"bench-12"}', b'{"reason": "bench-12", "x": 1}'):
        found = NUMBERED.search(text)
        assert found is not None
        assert found[1] == b"12"
    assert NUMBERED.search(b'{"reason":"Silence"}') is None


def test_quantiles_are_waits_that_were_seen() -> None:
    found = latency_of([n * 1_000_000 for n in range(100, 0, -1)])
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.max_ms, found.count) == (51, 96, 100, 100, 100)
    assert latency_of([2_000_000]).p99_ms == 2


def test_times_are_kept_as_they_are(tmp_path: Path) -> None:
    path = str(tmp_path / "times")
    keep_times(path, [1, 2**62])
    assert kept_times(path) == array("q", [1, 2**62])


def test_a_side_keeps_up_when_all_came_a_second_after_the_last_commit() -> None:
    assert load(10_000, seconds=10.9).kept_up
    assert not load(10_000, seconds=11.1).kept_up
    behind = load(9_999, seconds=10.5)
    assert not behind.kept_up
    assert (behind.complete, load(2_000, seconds=20.0).rate) == (0.9999, 10.0)


def test_ratios_are_ours_over_the_others_and_over_what_is_to_be_reached() -> None:
    sides = {Kind.OURS.value: side(30.0, 10_000, 1.0, 50.0), Kind.BROADCASTER.value: side(10.0, 5_000, 2.0, 100.0)}
    document = Seen({"cores": 2}, sides).document()
    assert json.loads(json.dumps(document)) == document
    assert document["ratios"] == {
        "idle_p50_other_process_vs_15_ms": 2.0,
        "idle_p50_own_mutation_vs_15_ms": 1.0,
        "loaded_p99_vs_1_s": 0.3,
        "loaded_delivered": 1.0,
        "rate_vs_broadcaster": 2.0,
        "loaded_cpu_vs_broadcaster": 0.25,
        "light_p99_vs_broadcaster": 3.0,
        "light_cpu_vs_broadcaster": 0.5,
        "idle_p50_vs_broadcaster": 3.0,
        "memory_vs_broadcaster": 0.5,
    }
    assert document["figures"]["memory"]["ours"]["kib_each"] == 51.2
    assert document["figures"]["loaded"]["broadcaster"][0]["complete"] == 0.5


def test_the_table_tells_what_was_reached() -> None:
    text = report(Seen({"cores": 2}, {Kind.OURS.value: side(30.0, 9_000, 1.0, 50.0)}))
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert lines["idle_p50_other_process_vs_15_ms"].endswith("2.00   ≤ 1: not met")
    assert lines["loaded_delivered"].endswith("0.90   ≥ 1: not met")
    assert "soak_growth" not in lines


def test_a_soak_is_judged_by_what_was_lost_and_by_memory_after_warming_up() -> None:
    flat = soaked(50, 80, 100, 100, 100, 100, 100, 100)
    assert flat.ratios() == {"soak_growth": 1.0, "soak_faults": 0.0}
    assert flat.slope == 0
    growing = soaked(*range(100, 180, 10), lost=2)
    assert growing.ratios()["soak_growth"] == 165 / 125
    assert growing.slope == pytest.approx(10 * 720)
    text = report(Seen({"cores": 2}, {}, growing))
    assert "2.00   ≤ 0: not met" in text
    assert "loaded" not in text


def test_a_helper_that_ends_is_no_measurement(tmp_path: Path) -> None:
    with helper("bench.feeding.subscribers", tmp_path / "log", "no JSON") as told, pytest.raises(CannotMeasure):
        told.ask(do="connect", count=1)
    assert "JSONDecodeError" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("kind", [Kind.OURS, Kind.BROADCASTER])
def test_every_subscriber_gets_every_event_while_a_side_is_measured(
    kind: Kind, own: OwnPostgres, template: str
) -> None:
    with scratch_folder("feed-test") as folder:
        seen = Stand(folder, own, template).see(kind, TINY)
    (loaded,) = seen.loads
    assert (loaded.subscribers, loaded.committed, loaded.delivered) == (5, 40, 200)
    assert (loaded.lost, loaded.doubled, loaded.disordered) == (0, 0, 0)
    assert (seen.light.committed, seen.light.delivered) == (1, 5)
    assert seen.idle[OTHER_PROCESS].count == 3
    assert (OWN_MUTATION in seen.idle) == (kind is Kind.OURS)
    assert min(loaded.latency.p50_ms, loaded.cpu_us, seen.memory.before) > 0
    assert seen.memory.at.keys() == {5, 7}


def test_followers_that_churn_get_every_event(own: OwnPostgres, template: str) -> None:
    with scratch_folder("feed-test") as folder:
        seen = Stand(folder, own, template).soak(SoakPlan(2 / 60, 40, rate=20, seed=1, away_seconds_max=0.2))
    assert (seen.events, seen.faults) == (40, 0)
    assert seen.got["left"] > 0
    assert seen.got["connections"] > 40
