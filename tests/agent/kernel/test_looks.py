"""Looking at the hardware anew after faults."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from agent.failures import Refused
from agent.kernel.looks import Looks
from domain.errors import Code
from tests.agent.fake_server import until


@dataclass
class Machine:
    """A time that only sleeping makes pass, faults that come at their times, and when the hardware was looked at."""

    faults: dict[float, int] = field(default_factory=dict)
    every: tuple[float, int] | None = None
    until: float = 3600.0
    now: float = 0.0
    looked: list[float] = field(default_factory=list)
    refusal: Refused | None = None
    looks: Looks = field(init=False)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.looks = Looks(self.refresh, sleep=self.sleep)

    async def refresh(self) -> None:
        self.looked.append(self.now)
        if self.refusal is not None:
            raise self.refusal

    async def have_looked(self, times: int) -> None:
        await until(lambda: len(self.looked) >= times)

    async def sleep(self, seconds: float) -> None:
        before, self.now = self.now, self.now + seconds
        codes = [code for at, code in self.faults.items() if before <= at < self.now]
        if self.every is not None and int(before / self.every[0]) != int(self.now / self.every[0]):
            codes.append(self.every[1])
        if codes:
            self.looks.ask(codes)
        if self.now > self.until:
            self.over.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)


@asynccontextmanager
async def looking(machine: Machine) -> AsyncIterator[None]:
    task = asyncio.create_task(machine.looks.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_fault_is_looked_at_two_seconds_later_and_nothing_else_is() -> None:
    machine = Machine()
    async with looking(machine):
        await asyncio.sleep(0.01)
        assert machine.looked == []
        machine.looks.ask([79])
        await until(lambda: machine.looked)
    assert machine.looked == [2.0]


async def test_a_burst_is_one_look_after_its_end() -> None:
    machine = Machine(faults={1.0: 154, 3.5: 45})
    async with looking(machine):
        machine.looks.ask([79])
        await until(lambda: machine.looked)
        await asyncio.sleep(0.01)
    assert machine.looked == [6.0]


async def test_a_storm_is_looked_at_no_more_often_than_each_thirty_seconds() -> None:
    machine = Machine(every=(1.0, 13))
    async with looking(machine):
        machine.looks.ask([13])
        await until(machine.over.is_set)
    assert 60 < len(machine.looked) <= 120
    assert all(after - before >= 30 for before, after in pairwise(machine.looked))


async def test_while_a_gpus_processor_hangs_looks_become_ever_rarer_and_afterwards_not() -> None:
    machine = Machine(every=(6.0, 119))
    async with looking(machine):
        machine.looks.ask([119])
        await until(machine.over.is_set)
    gaps = [after - before for before, after in pairwise(machine.looked)]
    assert gaps == sorted(gaps)
    assert (gaps[0], len(machine.looked)) == (62.0, 7)


async def test_once_nothing_hangs_any_more_looks_are_as_often_as_before() -> None:
    machine = Machine()
    async with looking(machine):
        for number, code in enumerate((119, 13, 13), start=1):
            machine.looks.ask([code])
            await machine.have_looked(number)
    assert machine.looked == [2.0, 64.0, 96.0]


async def test_an_inventory_that_is_not_taken_ends_nothing() -> None:
    machine = Machine(refusal=Refused("too long", Code.INVALID_INPUT))
    async with looking(machine):
        machine.looks.ask([79])
        await until(lambda: machine.looked)
        machine.looks.ask([79])
        await until(lambda: len(machine.looked) == 2)
