"""The rack in front of a server: what agents send, operators say and reconcilers do, with the ledger going along."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from db.database import Database
from domain.liveness import Patience
from reconcilers.acceptance import acceptance
from reconcilers.commands import commands
from reconcilers.conflicts import conflicts
from reconcilers.draining import draining
from reconcilers.faults import faults
from reconcilers.hygiene import hygiene
from reconcilers.inventory import inventory
from reconcilers.liveness import liveness
from reconcilers.loop import Reconciler
from reconcilers.remediation import remediation
from tests.support.health.laws import Laws, hold_at_rest
from tests.support.health.ledger import Ledger
from tests.support.health.rack import Line, Machine, rack
from tests.support.health.written import State, let_pass, read_state
from tests.support.rows import Rows, written_rows
from tests.support.server import INGEST, RECORD, Client, RunningServer, hash_of, hello, running_server, section
from tests.support.silence import silence
from web.app import utc_now

ROUNDS_MAX: Final = 8
"""Rounds of all reconcilers after which nothing may be left to do."""
POOLS: Final = {
    "strict": {
        "disruptionBudget": 0.4,
        "acceptance": ["diag.nvml"],
        "xids": {"13": "quarantine", "64": "node_no_schedule"},
    },
    "plain": {"disruptionBudget": 0.05, "xids": {"63": "node_no_schedule"}},
}
SITE: Final = 'mutation { createSite(input: {name: "s", iamRegion: "eu"}) { id } }'
POOL: Final = "mutation ($input: PoolInput!) { createPool(input: $input) { id } }"
REPORT: Final = "mutation ($entries: [StatusInput!]!) { reportStatus(entries: $entries) { error { message } } }"
TAKE: Final = "mutation ($id: ID!) { takeCommands(nodeId: $id) { id kind payload issuedBy } }"
START: Final = "mutation ($input: StartCommandInput!) { startCommand(input: $input) { id } }"
COMPLETE: Final = "mutation ($input: CommandResultInput!) { completeCommand(input: $input) { state } }"
ALLOCATE: Final = "mutation ($input: AllocateInput!) { allocate(input: $input) { allocation { id } } }"
RELEASE: Final = "mutation ($shard: ID) { release(shardId: $shard) { shardId } }"
ASSIGN: Final = "mutation ($id: ID!, $pool: ID) { assignPool(id: $id, poolId: $pool) { id } }"
TRUST: Final = "mutation ($id: ID!, $trust: Trust!) { setTrust(id: $id, trust: $trust) { id } }"
END_ADVISORY: Final = "mutation ($id: ID!) { endAdvisoryInventory(id: $id) { id } }"
MAINTENANCE: Final = 'mutation ($id: ID!, $on: Boolean!) { setMaintenance(id: $id, on: $on, reason: "told") { id } }'
CLEAR: Final = "mutation ($id: ID!) { clearDeviceHealth(deviceId: $id) { id } }"
CLEAR_NODE: Final = "mutation ($id: ID!) { clearNodeFaults(id: $id) { id } }"
QUARANTINE: Final = 'mutation ($id: ID!) { quarantineDevice(deviceId: $id, reason: "looked odd") { id } }'
AXIS: Final = "mutation ($id: ID!) {{ {0}(id: $id) {{ id }} }}"
DEGRADED: Final = "{ nodes { nodes { allocations { id degradedReasons } } } }"
TOLD: Final = """
select distinct on (payload ->> 'allocationId')
    payload ->> 'allocationId' as id, payload -> 'degradedReasons' as reasons
from outbox where type in ('allocation.degraded', 'allocation.recovered')
order by payload ->> 'allocationId', sequence desc
"""
REFUSALS: Final = frozenset({"OK", "CONFLICT", "NOT_FOUND"})


@dataclass
class Stage:
    """Machines, the server that hears of them, and what has to hold of it."""

    database: Database
    server: RunningServer
    machines: list[Machine]
    pools: dict[str, str]
    reconcilers: dict[str, Reconciler]
    ledger: Ledger = field(default_factory=Ledger)
    laws: Laws = field(default_factory=Laws)
    late: list[tuple[Machine, list[Line]]] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)

    async def state(self) -> State:
        """Read what is written."""
        return await read_state(self.database)

    async def check(self) -> State:
        """Check what holds at any moment."""
        state = await self.state()
        self.ledger.compare(state)
        self.laws.hold_now(state)
        return state

    async def operate(self, query: str, **variables: object) -> str:
        """Return the code with which an operator is answered, which is no bug of the server's."""
        return await _answered(self.server.operator, query, variables)

    # What agents do.

    async def greet(self, machine: Machine) -> None:
        """Say hello in the machine's present boot."""
        machine.id = await hello(self.server.agent, machine.name, bootId=machine.boot)
        machine.has_greeted = True

    async def report(self, machine: Machine, lines: Sequence[Line], *, is_short: bool = False) -> None:
        """Tell lines of a kernel log; those that name their GPU may be told as conditions."""
        state = await self.state()
        short = [line for line in lines if is_short and line.uuid and not line.instance and not line.kind.caused_by]
        whole = [line for line in lines if line not in short]
        entry = {
            "nodeId": machine.id,
            "xids": [line.told() for line in whole],
            "conditions": [_condition(line) for line in short] if short else None,
        }
        for line in (*whole, *short):
            self.ledger.tell(machine.id, line, state, is_short=line in short)
        (slot,) = (await self.server.agent.data(REPORT, entries=[entry]))["reportStatus"]
        assert slot["error"] is None, slot

    async def look(self, machine: Machine, enumeration: str = "complete", *, is_sent: bool = True) -> str:
        """Report the hardware; the sections of one that is not sent are lost on their way. Returns the digest."""
        given = section("gpus", machine.gpus(enumeration))
        entry = {"nodeId": machine.id, "hashes": [hash_of(given)]}
        (slot,) = (await self.server.agent.data(RECORD, entries=[entry]))["recordInventoryHashes"]
        if slot["requestSections"] and is_sent:
            await self.server.agent.data(INGEST, entries=[{"nodeId": machine.id, "sections": [given]}])
        return hashlib.sha256(f"gpus\0{given['sha256']}\n".encode()).hexdigest()

    async def obey(self, machine: Machine, how: str) -> None:
        """Do what the node is told, well or badly."""
        for command in (await self.server.agent.data(TAKE, id=machine.id))["takeCommands"]:
            if how != "takes":
                await self._do(machine, command, how)

    async def _do(self, machine: Machine, command: Mapping[str, Any], how: str) -> None:
        ref = {"nodeId": machine.id, "commandId": command["id"]}
        if how == "declines":
            await self._complete(ref, "FAILED", reason="unsupported")
            return
        run = f"{machine.name}-{command['id']}"
        if await _answered(self.server.agent, START, {"input": {**ref, "runId": run}}) != "OK":
            return
        if command["issuedBy"] == "remediation":
            held = [each for each in (await self.state()).held if each["node_id"] == machine.id and each["is_now"]]
            assert not held, f"{command['kind']} of a node that somebody holds"
        if how == "fails":
            await self._complete(ref, "FAILED", reason="exit-1")
            return
        result = await self._act(machine, command, how)
        if result is None or how == "is not heard":
            return
        for _ in range(2):
            await self._complete(ref, "SUCCEEDED", result=result)
        self.ledger.tick += 1
        self.ledger.done[command["id"]] = (self.ledger.tick, machine.number)

    async def _act(self, machine: Machine, command: Mapping[str, Any], how: str) -> dict[str, Any] | None:
        """Do a command; returns its result, None while the machine is away for it."""
        match command["kind"]:
            case "node.reboot":
                machine.reboot()
                if how == "stays away":
                    return None
                await self.greet(machine)
                return {}
            case "gpu.reset":
                machine.reset(command["payload"]["deviceId"])
                result: dict[str, Any] = {"upTo": machine.number}
                return result if how == "does not look" else {**result, "digest": await self.look(machine)}
            case _:
                passed = how == "does"
                return {"passed": passed, "failures": [] if passed else [{"check": "xid.recent", "reason": "48"}]}

    async def _complete(self, ref: Mapping[str, str], outcome: str, **more: object) -> None:
        await _answered(self.server.agent, COMPLETE, {"input": {**ref, "outcome": outcome, **more}})

    # What passes.

    async def pass_time(self, time: timedelta) -> None:
        """Let time pass, in which agents that are up are heard of."""
        await let_pass(self.database, time)
        heard = [{"nodeId": machine.id} for machine in self.machines if machine.is_up and machine.has_greeted]
        if heard:
            await self.server.agent.data(REPORT, entries=heard)

    async def fall_silent(self, machine: Machine) -> None:
        """Let an agent be away for a minute."""
        machine.is_up = False
        await silence(self.database, 60, machine.id)

    async def rows(self) -> Rows:
        """Return every row as it was written."""
        async with self.database.session() as session:
            return await written_rows(session)

    async def rest(self) -> None:
        """Let all reconcilers run until none has anything to do; then none of them writes anything."""
        for _ in range(ROUNDS_MAX):
            done = [(await each.activate()).done for each in self.reconcilers.values()]
            await self.check()
            if not any(done):
                break
        else:
            raise AssertionError(f"never at rest: {dict(zip(self.reconcilers, done, strict=True))}")
        before = await self.rows()
        for name, each in self.reconcilers.items():
            await each.activate()
            after = await self.rows()
            changed = {table: (before[table], after[table]) for table in before if before[table] != after[table]}
            assert not changed, f"{name} writes again: {changed}"
        state = await self.check()
        self.ledger.compare_at_rest(state)
        hold_at_rest(state)
        await self._degraded(state)

    async def _degraded(self, state: State) -> None:
        """See that allocations read degraded for their unhealthy atoms, and that their last event said so."""
        nodes = (await self.server.operator.data(DEGRADED))["nodes"]["nodes"]
        read = {each["id"]: each["degradedReasons"] for node in nodes for each in node["allocations"]}
        async with self.database.session() as session:
            told = {row.id: row.reasons for row in await session.fetch(TOLD)}
            held = await session.fetch("select allocation_id, device_id from bookings order by device_id")
        for allocation_id, reasons in read.items():
            atoms = [row.device_id for row in held if row.allocation_id == allocation_id]
            unhealthy = [each for each in atoms if each not in state.devices or not state.devices[each]["healthy"]]
            assert reasons == [f"AtomUnhealthy: {each}" for each in unhealthy]
            assert told.get(allocation_id, []) == reasons, (
                f"{allocation_id} was told {told.get(allocation_id)}: {reasons}"
            )

    async def claim(self, **asked: object) -> str:
        """Claim as a new shard; returns the code."""
        shard = f"shard-{len(self.shards)}"
        self.shards.append(shard)
        return await self.operate(ALLOCATE, input={"shardId": shard, **asked})

    async def release(self) -> None:
        """Let go of everything."""
        for shard in self.shards:
            await self.operate(RELEASE, shard=shard)

    async def judge(self, device: str, *, clears: bool) -> None:
        """Clear a device or put it in quarantine, as an operator."""
        before = await self.state()
        if await self.operate(CLEAR if clears else QUARANTINE, id=device) != "OK":
            assert device not in before.devices
        elif clears:
            self.ledger.clear(device, before)
        else:
            self.ledger.quarantined.add(device)

    async def reserve(self, machine: Machine, minutes: int) -> str:
        """Reserve memory of a node for later."""
        begins = datetime.now(UTC) + timedelta(minutes=minutes)
        return await self.claim(nodeId=machine.id, memoryGB=1, during={"from": begins.isoformat()})


async def _answered(client: Client, query: str, variables: Mapping[str, object]) -> str:
    answer = await client.send(query, **variables)
    code = str(answer["errors"][0]["extensions"]["code"]) if "errors" in answer else "OK"
    assert code in REFUSALS, answer
    return code


def _condition(line: Line) -> dict[str, Any]:
    return {"type": f"Xid{line.kind.code}", "deviceId": line.uuid, "message": line.kind.words}


async def set_up(stack: AsyncExitStack, dsn: str, count: int) -> Stage:
    """Open a server without loops on a new database, with two pools and a rack whose inventory it has."""
    database = await Database.connect(dsn)
    stack.push_async_callback(database.close)
    server = await stack.enter_async_context(running_server(database, reconcile=False))
    site = (await server.operator.data(SITE))["createSite"]["id"]
    pools = {}
    for name, policy in POOLS.items():
        given = {"name": name, "siteId": site, "class": "VPS_HOST", "sharing": "EXCLUSIVE", "policy": policy}
        pools[name] = (await server.operator.data(POOL, input=given))["createPool"]["id"]
    loops = (
        inventory(database, utc_now),
        conflicts(database),
        liveness(database, Patience(), utc_now),
        hygiene(database, None, utc_now),
        commands(database, utc_now),
        faults(database, utc_now),
        draining(database),
        acceptance(database, utc_now),
        remediation(database, utc_now),
    )
    stage = Stage(database, server, list(rack(count)), pools, {each.name: each for each in loops})
    for machine in stage.machines:
        await stage.greet(machine)
        await stage.look(machine)
        await stage.operate(ASSIGN, id=machine.id, pool=pools["strict"])
    return stage
