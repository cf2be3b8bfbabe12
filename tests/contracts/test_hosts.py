"""Recorded hosts and this machine become nodes with devices and the right differences, through the agent's program."""

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import start
from tests.support.server import RunningServer
from tests.support.smi import Card, cards, smi_log

Served = tuple[RunningServer, str]
NODE = """
query ($id: ID!) {
  computeNode(id: $id) {
    identityKey
    devices(class: GPU) { nodes { id vramGiB bookable healthy fabricCluster notKnown { fact } } }
    conditions(status: TRUE) { type }
    latestSnapshot { digest diff { changes { type deviceId } } }
  }
}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A host as it was recorded first and afterwards, and what must follow."""

    before: bytes
    after: bytes
    gpus: int
    changes: list[tuple[str, str | None]]
    conditions: tuple[str, ...] = ()


H100 = cards(8, "NVIDIA H100 80GB HBM3", 81559, "0a1b2c3d")
B200 = cards(8, "NVIDIA B200", 183359, "1a1b2c3d")
A100 = replace(cards(1, "NVIDIA A100-SXM4-40GB", 40960, "2a1b2c3d")[0], mig=(1, 2))
L40S = cards(1, "NVIDIA L40S", 46068, "3a1b2c3d")[0]
LATE: Card = cards(1, "NVIDIA L4", 23034, "4a1b2c3d")[0]
FOUR = cards(4, "NVIDIA A100-SXM4-80GB", 81920, "5a1b2c3d")
CASES = {
    "8xh100-loses-one": Case(smi_log(H100), smi_log(H100[:-1]), 7, [("GPU_MISSING", H100[-1].uuid)]),
    "8xb200-gets-a-driver": Case(smi_log(B200), smi_log(B200, driver="590.48.01"), 8, [("DRIVER_CHANGED", None)]),
    "a100-is-partitioned-anew": Case(
        smi_log([A100]), smi_log([replace(A100, mig=(3, 4, 5))]), 1, [("MIG_LAYOUT_CHANGED", A100.uuid)]
    ),
    "l40s-gets-a-video-bios": Case(
        smi_log([L40S]), smi_log([replace(L40S, vbios="95.02.66.00.02")]), 1, [("FIRMWARE_CHANGED", L40S.uuid)]
    ),
    "a-host-without-gpus-gets-one": Case(smi_log([]), smi_log([LATE]), 1, [("GPU_ADDED", LATE.uuid)]),
    "an-enumeration-that-is-cut-short": Case(
        smi_log(FOUR), smi_log(FOUR[:1], attached=4), 4, [], conditions=("InventoryDegraded",)
    ),
}


async def once(address: str, token: str, *arguments: str) -> dict[str, Any]:
    """Run `fleetgraph-agent once` and return what it prints; it must succeed."""
    reach = ("--server", address, "--token", token, "--output", "json")
    process = await start("fleetgraph-agent", "once", *reach, *arguments, env={})
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode == 0
    return dict(json.loads(out))


@pytest.mark.parametrize("name", CASES)
async def test_a_recorded_host_becomes_a_node_with_devices_and_the_right_diff(
    served: Served, tmp_path: Path, name: str
) -> None:
    server, address = served
    case = CASES[name]
    file = tmp_path / "smi.xml"
    for content in (case.before, case.after):
        file.write_bytes(content)
        said = await once(address, server.agent.token, "--identity", name, "--nvidia-smi", str(file))
    node = (await server.operator.data(NODE, id=said["nodeId"]))["computeNode"]
    assert node["identityKey"].endswith(name)
    assert node["latestSnapshot"]["digest"] == said["digest"]
    changes = node["latestSnapshot"]["diff"]["changes"]
    assert [(change["type"], change["deviceId"]) for change in changes] == case.changes
    assert len(node["devices"]["nodes"]) == case.gpus
    assert tuple(condition["type"] for condition in node["conditions"]) == case.conditions
    for device in node["devices"]["nodes"]:
        assert device["vramGiB"] > 0
        assert device["fabricCluster"] is None
        assert "serial" in {entry["fact"] for entry in device["notKnown"]}


async def test_this_machine_becomes_a_node_with_its_eight_sections_and_stays_the_same(served: Served) -> None:
    server, address = served
    first = await once(address, server.agent.token)
    second = await once(address, server.agent.token)
    assert first == second
    query = """
    query ($id: ID!) {
      computeNode(id: $id) {
        state
        latestSnapshot {
          sections {
            system { virtualization notKnown { fact availability } }
            cpu { model threads } memory { totalBytes } gpus { enumeration }
            nics { nics { name } } disks { disks { name sizeBytes } }
            os { kernel distro { id } } images { images { reference } }
          }
        }
        snapshots { totalCount }
      }
    }
    """
    node = (await server.operator.data(query, id=first["nodeId"]))["computeNode"]
    sections = node["latestSnapshot"]["sections"]
    assert all(section is not None for section in sections.values())
    assert len(sections) == 8
    assert sections["cpu"]["threads"] > 0
    assert int(sections["memory"]["totalBytes"]) > 0
    assert sections["os"]["kernel"]
    assert node["snapshots"]["totalCount"] == 1
    assert node["state"] == "READY"
