"""Whatever is reported, repeated, lost, rebooted, reset, replaced and cleared: health is what its causes say.

A state machine walks at random through a rack (`tests/support/health`) with a server on real PostgreSQL. After every
step the rows are compared with a ledger of what was told and done; every so often all reconcilers come to rest, and
then what must have ended has, and running any of them again writes nothing.

`make test` walks a few fixed ways. FLEETGRAPH_HEALTH_WALKS=500 walks that many random ones:

    FLEETGRAPH_HEALTH_WALKS=500 .venv/bin/python -m pytest tests/contracts/test_health_machine.py -p no:cacheprovider
"""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, Final

from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from db.embedded import EmbeddedPostgres
from tests.conftest import copied
from tests.support.health.laws import counted
from tests.support.health.rack import KINDS, SLOTS, Card, Machine
from tests.support.health.stage import (
    ASSIGN,
    AXIS,
    CLEAR_NODE,
    END_ADVISORY,
    MAINTENANCE,
    TRUST,
    Stage,
    set_up,
)

NODES: Final = 4
WALKS: Final = 6
STEPS: Final = 40
LONG: Final = int(os.environ.get("FLEETGRAPH_HEALTH_WALKS", "0"))

# Few nodes are often met: what follows from what on one of them is the point.
machines = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3])
slots = st.sampled_from([0, 0, 1, 2])
kinds = st.sampled_from(sorted(KINDS))
resets = st.sampled_from(["double bit error", "link", "firmware timeout", "reset required", "row remap failed"])
reboots = st.sampled_from(["off the bus", "off the bus somewhere", "uncontained", "reboot required"])
mostly = st.sampled_from([True, True, True, False])
minutes = st.sampled_from([1, 11, 11, 11, 20, 25 * 60])
told = st.sampled_from(["at once", "at once", "at once", "short", "lost", "twice", "late", "all"])
obeys = st.sampled_from(
    ["does", "does", "does", "does", "fails", "declines", "takes", "stays away", "does not look", "is not heard"]
)


OPERATED: Final[dict[str, tuple[str, dict[str, object]]]] = {
    "maintain": (MAINTENANCE, {"on": True}),
    "end maintenance": (MAINTENANCE, {"on": False}),
    "end maintenance too": (MAINTENANCE, {"on": False}),
    "cordon": (AXIS.format("cordonNode"), {}),
    "uncordon": (AXIS.format("uncordonNode"), {}),
    "drain": (AXIS.format("drainNode"), {}),
    "adopt": (AXIS.format("adoptNode"), {}),
    "give to its tenant": (TRUST, {"trust": "TENANT_CONTROLLED"}),
    "take back": (TRUST, {"trust": "PLATFORM"}),
    "take back too": (TRUST, {"trust": "PLATFORM"}),
    "clear all": (CLEAR_NODE, {}),
    "end advisory": (END_ADVISORY, {}),
    "assign strict": (ASSIGN, {"pool": "strict"}),
    "assign plain": (ASSIGN, {"pool": "plain"}),
    "assign none": (ASSIGN, {"pool": None}),
}


class HealthMachine(RuleBasedStateMachine):
    """The walk: a loop, a database and a server of its own."""

    postgres: EmbeddedPostgres
    template: str

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.stopped = asyncio.Event()
        self.stage: Stage = self.runner.run(self._begin())

    async def _begin(self) -> Stage:
        begun: asyncio.Future[Stage] = asyncio.get_running_loop().create_future()

        # A server's tasks are begun and ended by one task.
        async def host() -> None:
            try:
                async with copied(self.postgres, self.template) as dsn, AsyncExitStack() as stack:
                    begun.set_result(await set_up(stack, dsn, NODES))
                    await self.stopped.wait()
            except BaseException as error:
                if not begun.done():
                    begun.set_exception(error)
                raise

        self.host = asyncio.get_running_loop().create_task(host())
        return await begun

    def teardown(self) -> None:
        """End the walk, at rest unless it failed."""
        try:
            self.run(self.stage.rest())
            for what, count in self.runner.run(self._counted()).items():
                event(what, count)
        finally:
            self.stopped.set()
            self.runner.run(self._ended())
            self.runner.close()

    async def _counted(self) -> dict[str, int]:
        return dict(counted(await self.stage.state()))

    async def _ended(self) -> None:
        await self.host

    def run(self, step: Coroutine[Any, Any, object]) -> None:
        """Take a step, and check what holds at any moment."""

        async def taken() -> None:
            await step
            await self.stage.check()

        self.runner.run(taken())

    def machine(self, number: int) -> Machine:
        """Return a machine."""
        return self.stage.machines[number]

    def card(self, number: int, slot: int) -> tuple[Machine, str, Card]:
        """Return a machine with one of its slots and what is in it."""
        machine = self.machine(number)
        place = SLOTS[slot % len(machine.cards)]
        return machine, place, machine.cards[place]

    @rule(number=machines, slot=slots, kind=resets, how=told, is_mapped=st.booleans())
    def need_reset(self, number: int, slot: int, kind: str, how: str, *, is_mapped: bool) -> None:
        """Let a kernel log have a line that a reset of its GPU answers."""
        self._tell(number, slot, kind, how, is_mapped=is_mapped)

    @rule(number=machines, slot=slots, kind=reboots, how=told, is_mapped=st.booleans())
    def need_reboot(self, number: int, slot: int, kind: str, how: str, *, is_mapped: bool) -> None:
        """Let a kernel log have a line that a reboot answers."""
        self._tell(number, slot, kind, how, is_mapped=is_mapped)

    @rule(number=machines, slot=slots, kind=kinds, how=told, is_mapped=st.booleans())
    def tell(self, number: int, slot: int, kind: str, how: str, *, is_mapped: bool) -> None:
        """Let a kernel log have any line."""
        self._tell(number, slot, kind, how, is_mapped=is_mapped)

    def _tell(self, number: int, slot: int, kind: str, how: str, *, is_mapped: bool) -> None:
        """Let a kernel log have a line; its agent tells it, or that is lost, or comes twice or later."""
        machine, place, _ = self.card(number, slot)
        line = machine.log(KINDS[kind], place, is_mapped=is_mapped or how == "short")
        if not machine.is_up or how == "lost":
            return
        if how == "late" or not machine.has_greeted:
            self.stage.late.append((machine, [line]))
            return
        lines = list(machine.known.values()) if how == "all" else [line]
        for _ in range(2 if how == "twice" else 1):
            self.run(self.stage.report(machine, lines, is_short=how == "short"))

    @rule(number=machines, place=st.integers(0, 3), is_new=st.booleans())
    def repeat(self, number: int, place: int, *, is_new: bool) -> None:
        """Let an agent start anew and tell all that it knows of this boot, or a report come that is late."""
        machine = self.machine(number)
        if is_new:
            machine.is_up = True
            self.run(self.stage.greet(machine))
            self.run(self.stage.report(machine, list(machine.known.values())))
        elif self.stage.late:
            machine, lines = self.stage.late.pop(place % len(self.stage.late))
            self.run(self.stage.report(machine, lines))

    @rule(number=machines, enumeration=st.sampled_from(["complete", "complete", "incomplete"]), is_sent=mostly)
    def look(self, number: int, enumeration: str, *, is_sent: bool) -> None:
        """Let an agent report its hardware."""
        if self.machine(number).is_up:
            self.run(self.stage.look(self.machine(number), enumeration, is_sent=is_sent))

    @rule(number=machines, what=st.sampled_from(["reboots", "reboots unheard", "is silent"]))
    def leave(self, number: int, what: str) -> None:
        """Let a machine reboot by itself, or its agent be away."""
        machine = self.machine(number)
        if what == "is silent":
            self.run(self.stage.fall_silent(machine))
            return
        machine.reboot()
        if what == "reboots":
            self.run(self.stage.greet(machine))

    @rule(
        number=machines,
        slot=slots,
        what=st.sampled_from(
            ["reset", "replace", "replace off", "lose", "pending", "pending", "pending unknown", "broken"]
        ),
        is_told=mostly,
    )
    def change(self, number: int, slot: int, what: str, *, is_told: bool) -> None:
        """Let something befall a GPU, or somebody see to it."""
        machine, place, card = self.card(number, slot)
        match what:
            case "reset":
                machine.reset(card.uuid)
            case "replace" | "replace off":
                machine.replace(place)
                if what == "replace off":
                    machine.reboot()
                    self.run(self.stage.greet(machine))
            case "lose":
                card.lost = not card.lost
            case "pending" | "pending unknown":
                card.pending = True if what == "pending" else None
            case "broken":
                card.pending, card.is_broken = True, True
        if is_told and machine.is_up:
            self.run(self.stage.look(machine))

    @rule(number=machines, how=obeys)
    def obey(self, number: int, how: str) -> None:
        """Let an agent do what its node is told."""
        if self.machine(number).is_up:
            self.run(self.stage.obey(self.machine(number), how))

    @rule(number=machines, slot=slots, part=st.sampled_from([None, 0, 1]), clears=mostly)
    def judge(self, number: int, slot: int, part: int | None, *, clears: bool) -> None:
        """Let an operator clear a device, or put it in quarantine."""
        _, _, card = self.card(number, slot)
        device = card.uuid if part is None else card.atoms[part % len(card.atoms)]
        self.run(self.stage.judge(device, clears=clears))

    @rule(number=machines, what=st.sampled_from(sorted(OPERATED)))
    def operate(self, number: int, what: str) -> None:
        """Let an operator keep work off a node or no longer, have it accepted anew, move it or give it away."""
        machine = self.machine(number)
        query, given = OPERATED[what]
        if what == "adopt":
            self.stage.laws.asked.add(machine.id)
        if what == "clear all":
            self.stage.ledger.clear_node(machine.id)
        if "pool" in given:
            given = {"pool": self.stage.pools.get(str(given["pool"]))}
        self.run(self.stage.operate(query, id=machine.id, **given))

    @rule(number=machines, slot=slots, what=st.sampled_from(["device", "device", "memory", "soon", "later", "release"]))
    def claim(self, number: int, slot: int, what: str) -> None:
        """Claim an atom or memory of a node, now or for later, or let go of all that is held."""
        machine, _, card = self.card(number, slot)
        match what:
            case "device":
                self.run(self.stage.claim(deviceIds=[card.atoms[0]]))
            case "memory":
                self.run(self.stage.claim(nodeId=machine.id, memoryGB=1))
            case "release":
                self.run(self.stage.release())
            case _:
                self.run(self.stage.reserve(machine, 5 if what == "soon" else 25))

    @rule(name=st.sampled_from(["inventory", "faults", "remediation", "acceptance", "commands", "liveness"]))
    def activate(self, name: str) -> None:
        """Let one reconciler look once."""
        self.run(self._activate(name))

    async def _activate(self, name: str) -> None:
        await self.stage.reconcilers[name].activate()

    @rule(minutes=minutes)
    def wait(self, minutes: int) -> None:
        """Let time pass."""
        self.run(self.stage.pass_time(timedelta(minutes=minutes)))

    @rule(minutes=minutes, how=obeys)
    def come_to_rest(self, minutes: int, how: str) -> None:
        """Let time pass, all reconcilers come to rest, agents do what they are told, and then all rest again."""
        self.run(self.stage.pass_time(timedelta(minutes=minutes)))
        self.run(self.stage.rest())
        for machine in self.stage.machines:
            if machine.is_up and machine.has_greeted:
                self.run(self.stage.obey(machine, how))
        self.run(self.stage.rest())


def test_health_is_what_its_causes_say_whatever_happens_in_whatever_order(
    postgres: EmbeddedPostgres, template: str
) -> None:
    HealthMachine.postgres, HealthMachine.template = postgres, template
    run_state_machine_as_test(
        HealthMachine,
        settings=settings(
            max_examples=LONG or WALKS,
            stateful_step_count=STEPS,
            derandomize=not LONG,
            database=None,
            deadline=None,
            # What is found is as short as its walk: to make it shorter takes far longer than to find it.
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            print_blob=bool(LONG),
        ),
    )
