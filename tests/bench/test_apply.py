import json

import pytest

from bench.applying.figures import FLOOR, OURS, Figure, Seen, figure_of
from bench.applying.meter import Meter, Spent
from bench.applying.report import report
from bench.applying.run import Run, check_equal
from bench.stand.errors import CannotMeasure
from bench.stand.postgres import OwnPostgres


def figure(ms: float) -> Figure:
    return Figure(ms, client_cpu_ms=ms / 2, database_cpu_ms=ms / 4, rounds=1)


def seen(**ours: float) -> Seen:
    """Sizes as `n1000`, and what a node costs there; the floor is a millisecond everywhere."""
    nodes = {int(size.removeprefix("n")): {OURS: figure(ms), FLOOR: figure(1.0)} for size, ms in ours.items()}
    return Seen({"cores": 2}, 10_000, nodes, {1_000: 3.0})


def test_the_floor_writes_all_that_applying_writes(own: OwnPostgres) -> None:
    # Fails when a table or a column is written that the floor does not know: name it in bench/applying/rows.py.
    figures, reporting_ms = Run(own).see(3, rounds=1)
    assert figures.keys() == {OURS, FLOOR}
    assert min(figures[OURS].ms, figures[FLOOR].ms, reporting_ms) > 0


def test_rows_that_differ_are_no_measurement() -> None:
    check_equal({"devices": "8 rows, 1"}, {"devices": "8 rows, 1"})
    with pytest.raises(CannotMeasure, match="devices"):
        check_equal({"devices": "8 rows, 1", "nodes": "1"}, {"devices": "8 rows, 2", "nodes": "1"})


def test_a_meter_counts_only_its_spans(own: OwnPostgres) -> None:
    meter = Meter(own.postmaster.pid)
    assert meter.spent() == Spent(0.0, 0.0, 0.0)
    with meter.span():
        own.execute("select sum(hashint8(i)) from generate_series(1, 3000000) i")
    first = meter.spent()
    assert first.wall > first.client_cpu > 0
    assert first.database_cpu > 0
    own.execute("select sum(hashint8(i)) from generate_series(1, 200000) i")
    assert meter.spent() == first


def test_a_figure_is_the_median_of_the_rounds_by_node() -> None:
    rounds = [Spent(2.0, 0.5, 0.1), Spent(9.0, 0.6, 0.2), Spent(1.0, 0.7, 0.3)]
    assert figure_of(rounds, 1000) == Figure(2.0, 0.6, 0.2, rounds=3)


def test_ratios_are_against_the_floor_at_the_compared_size_and_against_the_smallest() -> None:
    document = seen(n1000=2.0, n10000=3.0, n50000=2.5).document()
    assert json.loads(json.dumps(document)) == document
    assert document["ratios"] == {
        "apply_vs_floor": 3.0,
        "apply_cpu_vs_floor": 3.0,
        "growth_ours_10000_vs_1000": 1.5,
        "growth_cpu_ours_10000_vs_1000": 1.5,
        "growth_ours_50000_vs_1000": 1.25,
        "growth_cpu_ours_50000_vs_1000": 1.25,
        "growth_floor_10000_vs_1000": 1.0,
        "growth_cpu_floor_10000_vs_1000": 1.0,
        "growth_floor_50000_vs_1000": 1.0,
        "growth_cpu_floor_50000_vs_1000": 1.0,
    }
    assert document["figures"]["apply"]["50000"][OURS]["ms"] == 2.5


def test_the_table_tells_what_was_reached() -> None:
    text = report(seen(n1000=2.0, n10000=4.5))
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert lines["apply_vs_floor"].endswith("4.50   ≤ 4: not met")
    assert lines["growth_ours_10000_vs_1000"].endswith("2.25   ≤ 1.25: not met")
    assert "10,000" in lines
