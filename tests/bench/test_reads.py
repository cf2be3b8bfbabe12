import json

from bench.reading.agreement import difference
from bench.reading.asked import FAR_PAGE, FIRST_PAGE, Places, all_asked, grouped
from bench.reading.figures import Seen
from bench.reading.fleet import Fleet
from bench.reading.load import read_wrk
from bench.reading.mapping import as_ours, comparable
from bench.reading.measure import Plan
from bench.reading.report import report
from bench.reading.rounds import Figure, Round, figure_of, in_turn
from bench.reading.sides import Kind


def figure(requests_per_second: float, p50_ms: float = 1.0) -> Figure:
    return Figure(requests_per_second, p50_ms, 2 * p50_ms, 0.5, 0.25, 3)


def seen(**reads: dict[str, Figure]) -> Seen:
    growth = {"one": {"1000": figure(1, 2.0), "20000": figure(1, 2.5)}, "list_100": {}}
    peaks = {"compiled": 100.0, "postgraphile": 400.0}
    return Seen({"nodes": 20_000, "connections": 8}, reads, growth, peaks)


def test_a_figure_is_the_median_of_its_rounds_and_cpu_time_that_of_all_by_request() -> None:
    rounds = (
        Round(100, 2.0, 5.0, 9.0, server_cpu_seconds=0.1, database_cpu_seconds=0.2),
        Round(10, 2.0, 50.0, 90.0, server_cpu_seconds=0.5, database_cpu_seconds=0.2),
        Round(140, 2.0, 4.0, 8.0, server_cpu_seconds=0.4, database_cpu_seconds=0.1),
    )
    assert figure_of(rounds) == Figure(50.0, 5.0, 9.0, 4.0, 2.0, 3)


def test_each_side_comes_first_in_its_turn() -> None:
    assert [in_turn("abc", number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]
    assert in_turn([], 1) == []


def test_the_pages_are_measured_together_and_each_by_its_own_cursor() -> None:
    asked = all_asked(Fleet("dsn", 10_000, "node_1"), Places("ours", "theirs"))
    groups = [[each.name for each in group] for group in grouped(asked)]
    assert [FIRST_PAGE, FAR_PAGE] in groups
    assert [name for group in groups for name in group] == [each.name for each in asked]
    far = next(each for each in asked if each.name == FAR_PAGE)
    assert (far.ours.variables["after"], far.peers.variables["after"]) == ("ours", "theirs")


def test_a_quick_run_leaves_out_what_no_reach_needs() -> None:
    asked = {each.name: each for each in all_asked(Fleet("dsn", 10_000, "node_1"), Places("a", "b"))}
    quick, full = Plan(2, 1, 3, quick=True), Plan(3, 3, 45, quick=False)
    assert [name for name in asked if quick.takes(Kind.PLAIN, asked[name])] == ["list_100"]
    assert {name for name in asked if not quick.takes(Kind.FLOOR, asked[name])} == {FIRST_PAGE, FAR_PAGE}
    assert all(quick.takes(Kind.COMPILED, each) for each in asked.values())
    assert all(full.takes(kind, each) for kind in Kind for each in asked.values())


def test_the_last_line_of_the_load_is_what_counts() -> None:
    line = {"requests": 7, "seconds": 1.5, "p50_ms": 2.0, "p95_ms": 3.0, "bytes": 99, "errors": {"status": 1}}
    load = read_wrk(f"Running 1s test\n  Requests/sec: 4.6\n\n{json.dumps(line)}\n")
    assert (load.requests, load.errors, load.p95_ms) == (7, {"status": 1}, 3.0)


def test_the_peers_answer_is_ours_after_its_names_are_mapped() -> None:
    node = {"id": "node_1", "provisionState": "ADOPTED", "conditions": [{"type": "true", "status": "TRUE"}]}
    counts = [{"value": "H200", "count": 3}, {"value": "A100", "count": 5}]
    ours = {"data": {"nodes": {"edges": [{"node": node}], "pageInfo": {"endCursor": "x"}}, "gpuModels": counts}}
    theirs_node = {"id": "node_1", "provisionState": "adopted", "conditions": [{"type": "true", "status": "true"}]}
    theirs_counts = [
        {"keys": ["A100"], "distinctCount": {"rowId": "5"}},
        {"keys": ["H200"], "distinctCount": {"rowId": "3"}},
    ]
    theirs = {
        "data": {
            "nodes": {"edges": [{"node": theirs_node}], "pageInfo": {"endCursor": "another"}},
            "gpuModels": theirs_counts,
        }
    }
    assert as_ours(theirs) == comparable(ours)
    theirs_node["id"] = "node_2"
    assert as_ours(theirs) != comparable(ours)


def test_a_page_that_ends_is_not_one_that_goes_on() -> None:
    assert comparable({"pageInfo": {"endCursor": None}}) != comparable({"pageInfo": {"endCursor": "x"}})


def test_a_difference_is_told_by_its_place() -> None:
    left = {"data": {"nodes": [{"id": 1, "up": True}, {"id": 2, "up": True}]}}
    right = {"data": {"nodes": [{"id": 1, "up": True}, {"id": 2, "up": False}]}}
    assert difference(left, right) == "$.data.nodes[1].up: True and False"
    assert difference({"a": [1]}, {"a": [1, 2]}) == "$.a: [1] and [1, 2]"
    assert difference({"a": "x" * 900}, {"b": 1}).startswith("$: {'a': 'xxx")


def test_the_document_holds_each_sides_figures_and_ratios_of_ours_over_the_others() -> None:
    document = seen(
        list_100={"compiled": figure(400), "plain": figure(16), "floor": figure(500), "postgraphile": figure(100)},
        page_1={"compiled": figure(900, 1.0)},
        page_90={"compiled": figure(800, 1.25), "floor": figure(1000)},
    ).document()
    assert json.loads(json.dumps(document)) == document
    assert document["figures"]["reads"]["list_100"]["floor"]["requests_per_second"] == 500
    assert document["figures"]["growth"]["one"]["20000"]["p50_ms"] == 2.5
    assert document["ratios"] == {
        "list_100_vs_postgraphile": 4.0,
        "list_100_vs_floor": 0.8,
        "list_100_vs_plain": 25.0,
        "page_90_vs_floor": 0.8,
        "page_90_vs_page_1": 1.25,
        "growth_one_20000_vs_1000": 1.25,
        "memory_vs_postgraphile": 0.25,
    }


def test_a_side_that_was_not_measured_has_no_ratio() -> None:
    ratios = seen(list_1000={"compiled": figure(40), "floor": figure(50)}).document()["ratios"]
    assert "list_1000_vs_floor" in ratios
    assert "list_1000_vs_plain" not in ratios


def test_the_table_tells_what_was_reached_and_what_was_not() -> None:
    text = report(
        seen(
            list_100={"compiled": figure(300), "floor": figure(300), "postgraphile": figure(100)},
            one={"compiled": figure(5000.25)},
        )
    )
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert lines["list_100_vs_floor"].endswith("1.00   ≥ 0.85: met")
    assert lines["list_100_vs_postgraphile"].endswith("3.00   ≥ 4: not met")
    assert lines["one_vs_postgraphile"].endswith("—   ≥ 1.2: not measured")
    assert any(line.split()[:3] == ["one", "compiled", "5,000.2"] for line in text.splitlines())
