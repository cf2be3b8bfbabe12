"""The demo: it prepares pools, plays its plot on the made-up fleet, and prints that and what the server does."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, assert_never

from agent.failures import AgentFailure
from agent.retry import ALONE, Backoff
from agent.simulator.fleet import Fleet, Pace
from agent.simulator.gpus import gpu_uuid
from agent.simulator.node import Change
from agent.simulator.operator import Operator
from agent.simulator.plot import GPUS, ROUND_SECONDS, Act, Cast, Request, Scene, scenes

_TRAINING: Final = {
    "class": "METAL_HOST",
    "policy": {"acceptance": ["diag.nvml"], "expect": {"gpuCount": GPUS}},
}
_HOSTS: Final = {"class": "VPS_HOST"}
_JOB_GPUS: Final = 2


class Demo:
    """A plot on a fleet and its cast. Cancel `run` to end it."""

    def __init__(self, fleet: Fleet, operator: Operator, cast: Cast, pace: Pace, say: Callable[[str], None]) -> None:
        self._fleet = fleet
        self._operator = operator
        self._cast = cast
        self._pace = pace
        self._say = say

    async def run(self) -> None:
        """Prepare, then play round after round."""
        await self._fleet.persist(self._prepare)
        begun = await self._fleet.persist(self._operator.now)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tell(begun))
            for number in count():
                await self._play(scenes(self._cast, number))

    async def _prepare(self) -> None:
        for name, facts, members in (("training", _TRAINING, self._cast.training), ("hosts", _HOSTS, self._cast.hosts)):
            await self._operator.assign(self._ids(members), await self._operator.pool(name, facts))
            self._say(f"{len(members)} nodes are in the pool {name}")

    async def _play(self, plot: tuple[Scene, ...]) -> None:
        begun = self._pace.clock()
        for scene in plot:
            await self._pace.sleep(max(0.0, begun + scene.at - self._pace.clock()))
            self._say(scene.says)
            try:
                await self._do(scene.play)
            except AgentFailure as failure:
                self._say(f"that could not be done: {failure}")
        await self._pace.sleep(max(0.0, begun + ROUND_SECONDS - self._pace.clock()))

    async def _do(self, play: Change | Request) -> None:
        if isinstance(play, Change):
            await self._fleet.happen([play])
            return
        node_id = self._fleet.node(play.node).node_id
        match play.act:
            case Act.ALLOCATE:
                await self._operator.allocate(_job(node_id), [self._gpu(play.node, slot) for slot in range(_JOB_GPUS)])
            case Act.RELEASE:
                await self._operator.release(_job(node_id))
            case Act.CLEAR:
                await self._operator.clear(self._gpu(play.node, play.slot))
            case Act.ADOPT:
                await self._operator.adopt(node_id)
            case _:
                assert_never(play.act)

    async def _tell(self, begun: str) -> None:
        """Print what the server makes of it."""
        node_ids = self._ids([*self._cast.training, *self._cast.hosts])
        after: str | None = begun
        backoff = Backoff(self._pace.fraction, ALONE)
        while True:
            try:
                async for told in self._operator.follow(node_ids, after):
                    after = told.cursor
                    backoff.succeeded()
                    if told.is_of_interest:
                        self._say(f"  server: {told}")
            except AgentFailure as failure:
                self._say(f"the server's events are waited for: {failure}")
                after = after if failure.transient else None
            await self._pace.sleep(backoff.seconds())

    def _ids(self, indexes: Iterable[int]) -> list[str]:
        return [self._fleet.node(index).node_id for index in indexes]

    def _gpu(self, index: int, slot: int) -> str:
        return gpu_uuid(self._fleet.material(index), self._fleet.node(index).state, slot)


def _job(node_id: str) -> str:
    return f"demo-{node_id}"
