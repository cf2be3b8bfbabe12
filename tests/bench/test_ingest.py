import json
from pathlib import Path

import pytest

from bench.ingesting.figures import FLOOR, OURS, Figure, Seen
from bench.ingesting.fleet import write_heartbeats, write_sections
from bench.ingesting.floor import heartbeats
from bench.ingesting.load import load
from bench.ingesting.report import report
from tests.support.server import RunningServer
from tests.support.server import report as report_node

SECTIONS = {"os": {"kernel": "6.12"}, "system": {"vendor": "Example"}}


async def test_bodies_are_what_the_server_takes_and_an_answer_that_is_none_ends_the_bench(
    served: tuple[RunningServer, str], tmp_path: Path
) -> None:
    server, address = served
    dsn, port = server.services.database.dsn, int(address.rpartition(":")[2])
    for number in range(3):
        await report_node(server.agent, f"n{number}", SECTIONS)
    await write_heartbeats(dsn, tmp_path / "beats", 2)
    beats = (tmp_path / "beats").read_bytes().splitlines()
    seen = await load(port, server.agent.token, beats, 2, 0.2)
    assert seen.requests >= len(beats) == 2
    assert seen.p50_ms <= seen.p95_ms <= seen.p99_ms
    await write_sections(dsn, tmp_path / "sections", 1)
    bodies = (tmp_path / "sections").read_bytes().splitlines()
    assert (await load(port, server.agent.token, bodies, 2, 0)).requests == 3
    assert (await heartbeats(dsn, 2, 2, 0.1)).nodes >= 3
    with pytest.raises(RuntimeError, match="UNAUTHENTICATED"):
        await load(port, "wrong", beats, 2, 0)


def test_ratios_are_ours_over_the_floors() -> None:
    kinds = {"heartbeats_batched": {OURS: Figure(600.0, 0.1, 0.02, 1.0, 2.0, 3.0), FLOOR: Figure(1000.0, 0.01, 0.02)}}
    seen = Seen({"cores": 2}, kinds)
    document = seen.document()
    assert json.loads(json.dumps(document)) == document
    assert document["ratios"] == {"heartbeats_batched_vs_floor": 0.6}
    assert "p50_ms" not in document["figures"]["heartbeats_batched"][FLOOR]
    text = report(seen)
    assert "≥ 0.5: met" in text
    assert "heartbeats_single_vs_floor" in text
