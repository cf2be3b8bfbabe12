"""GPU names over the wire."""

from collections.abc import AsyncIterator

import pytest

from db.database import Database
from tests.support.server import RunningServer, running_server

NORMALIZE = """
query ($name: String!, $vram: Int) {
  normalizeGpuProduct(name: $name, vramMiB: $vram) { gpuProduct gpuModel kind known partOf tableVersion }
}
"""


@pytest.fixture
async def server(database: Database) -> AsyncIterator[RunningServer]:
    async with running_server(database, reconcile=False) as running:
        yield running


async def test_a_name_is_answered_with_product_family_and_kind(server: RunningServer) -> None:
    found = await server.agent.data(NORMALIZE, name="NVIDIA GH200", vram=146_831)
    assert found["normalizeGpuProduct"] == {
        "gpuProduct": "GH200-SUPERCHIP-144GB",
        "gpuModel": "GH200",
        "kind": "BOARD",
        "known": True,
        "partOf": None,
        "tableVersion": 3,
    }
    found = await server.operator.data(NORMALIZE, name="NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    assert (found["normalizeGpuProduct"]["kind"], found["normalizeGpuProduct"]["partOf"]) == ("MIG", "H100")


@pytest.mark.parametrize(
    ("name", "vram", "said"),
    [
        ("", None, "name: empty"),
        ("(…)", None, "name: without a letter or digit"),
        ("N" * 256, None, "name: at most 255"),
        ("NVIDIA H200", 0, "vramMiB: 0; give MiB above 0"),
    ],
)
async def test_what_names_nothing_is_refused_with_its_place(
    server: RunningServer, name: str, vram: int | None, said: str
) -> None:
    (error,) = (await server.operator.send(NORMALIZE, name=name, vram=vram))["errors"]
    assert error["extensions"]["code"] == "INVALID_INPUT"
    assert said in error["message"]


async def test_the_table_tells_its_version_and_rows_with_their_sources(server: RunningServer) -> None:
    query = """
    { gpuModels { version models
        products { product model form memoryGB architecture unified names since nameSources memorySources }
        vgpuStems { stem model since } sources { key description } } }
    """
    table = (await server.operator.data(query))["gpuModels"]
    assert table["version"] == 3
    rows = {row["product"]: row for row in table["products"]}
    assert rows["GB10-SUPERCHIP"] == {
        "product": "GB10-SUPERCHIP",
        "model": "GB10",
        "form": "SUPERCHIP",
        "memoryGB": None,
        "architecture": "Blackwell",
        "unified": True,
        "names": ["NVIDIA GB10"],
        "since": 3,
        "nameSources": ["driver"],
        "memorySources": [],
    }
    assert {row["model"] for row in rows.values()} == set(table["models"])
    assert {"stem": "GRID A100X", "model": "A100", "since": 3} in table["vgpuStems"]
    assert "driver" in {source["key"] for source in table["sources"]}
