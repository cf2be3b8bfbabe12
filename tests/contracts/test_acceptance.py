"""Acceptance with the agent's own program: what it answers keeps its node out, or lets it in."""

from pathlib import Path
from typing import Any

from reconcilers.acceptance import acceptance
from reconcilers.loop import run
from tests.contracts.test_commands import agent_process, applied_node
from tests.support.server import RunningServer
from tests.support.waiting import until_seen
from web.app import utc_now
from web.server import background

SITE = 'mutation { createSite(input: {name: "s", iamRegion: "r"}) { id } }'
POOL = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
PATCH = "mutation ($id: ID!, $input: PoolPatch!) { updatePool(id: $id, input: $input) { id } }"
ASSIGN = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
ADOPT = "mutation ($id: ID!) { adoptNode(id: $id) { acceptance { attempt } } }"
NODE = "query ($id: ID!) { computeNode(id: $id) { provisionState acceptance { attempt state reason } } }"
MORE_THAN_ANY = {"acceptance": ["diag.nvml"], "expect": {"gpuCount": 64}}


async def test_a_machine_that_lacks_gpus_stays_out_until_it_is_asked_for_what_it_has(
    served: tuple[RunningServer, str], tmp_path: Path
) -> None:
    server, address = served
    operator, database = server.operator, server.services.database
    site = (await operator.data(SITE))["createSite"]["id"]
    made = {"name": "p", "siteId": site, "policy": MORE_THAN_ANY}
    pool = (await operator.data(POOL, input=made))["createPool"]["id"]

    async def ended() -> dict[str, Any]:
        found: dict[str, Any] = {}

        async def has_ended() -> bool:
            found.update((await operator.data(NODE, id=node_id))["computeNode"])
            return found["acceptance"]["state"] in {"PASSED", "FAILED"}

        await until_seen(has_ended)
        return found

    options = ("--identity", "accepted", "--state-dir", str(tmp_path))
    async with (
        background(run(acceptance(database, utc_now))),
        agent_process(address, server.agent.token, *options),
    ):
        node_id = await applied_node(operator)
        await operator.data(ASSIGN, id=node_id, pool=pool)
        await operator.data(ADOPT, id=node_id)
        failed = {"attempt": 1, "state": "FAILED", "reason": "diag.nvml:gpu.count"}
        assert await ended() == {"provisionState": "ADOPTING", "acceptance": failed}
        await operator.data(PATCH, id=pool, input={"policy": {"acceptance": ["inventory.refresh"]}})
        await operator.data(ADOPT, id=node_id)
        passed = {"attempt": 2, "state": "PASSED", "reason": "Passed"}
        assert await ended() == {"provisionState": "ADOPTED", "acceptance": passed}
