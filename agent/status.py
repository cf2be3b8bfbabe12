"""Status reports: new faults at once, all of them to every new session, and the host's vitals twice a minute."""

import asyncio
from contextlib import suppress
from typing import Final

import structlog
from msgspec.structs import replace

from agent.client import Client
from agent.failures import AgentFailure, Refused
from agent.inventory import Inventory
from agent.kernel.log import FaultLog
from agent.kernel.told import reported_xid
from agent.loop import Agent, Timing
from agent.report import refused_slot
from agent.threads import in_thread
from agent.vitals import Vitals
from agent.wire_status import StatusReport
from domain.errors import Code
from domain.known_faults import Key, KnownFault, places_of

BEAT_SECONDS: Final = 30.0
REPEAT_SECONDS: Final = 300.0
"""How often all faults are told again: what is repeated changes nothing, and what was not taken then is taken now."""
GROWTH_SECONDS: Final = 10.0
"""How often is told that known faults came again."""
JOIN_SECONDS: Final = 0.4
"""How long a burst is waited for: with the log's poll and the way to the server, less than a second."""

_log = structlog.get_logger(__name__)


class StatusReporter:
    """The status reports of one node's agent. Cancel `run` to end it.

    `news` is set by whoever has something to say: the kernel log of faults, the agent of a new session.
    """

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        client: Client,
        agent: Agent,
        log: FaultLog,
        vitals: Vitals,
        *,
        news: asyncio.Event,
        timing: Timing,
        beat_seconds: float = BEAT_SECONDS,
        join_seconds: float = JOIN_SECONDS,
    ) -> None:
        self._client = client
        self._agent = agent
        self._log = log
        self._vitals = vitals
        self._news = news
        self._timing = timing
        self._beat_seconds = beat_seconds
        self._join_seconds = join_seconds
        self._session_id: str | None = None
        self._inventory: Inventory | None = None
        self._said: dict[Key, KnownFault] = {}
        self._generation = self._observed = 0
        self._said_at = float("-inf")
        self._beat_at = self._repeat_at = float("-inf")
        self._told_of: str | None = None

    async def run(self) -> None:
        """Report for ever."""
        backoff = self._timing.backoff()
        while True:
            self._news.clear()
            pause, told_to_wait = self._beat_seconds, False
            try:
                pause = await self._turn()
                self._told_of = None
                backoff.succeeded()
            except AgentFailure as failure:
                pause = backoff.seconds(failure)
                told_to_wait = isinstance(failure, Refused) and failure.retry_after_seconds is not None
                if str(failure) != self._told_of:
                    self._told_of = str(failure)
                    _log.warning("status reports wait", reason=str(failure))
            await self._rest(pause, waking=not told_to_wait)
            await asyncio.sleep(self._join_seconds)

    async def _rest(self, seconds: float, *, waking: bool) -> None:
        """Wait, or, unless the server said how long, until there is news."""
        if not waking:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def _turn(self) -> float:
        """Report what there is to say, and return how long nothing more has to be."""
        self._place()
        node_id, session_id = self._agent.node_id, self._agent.session_id
        if node_id is None or session_id is None:
            return self._beat_seconds
        now = self._timing.clock()
        if session_id != self._session_id:
            self._session_id, self._beat_at = session_id, now
            self._generation, self._observed = self._agent.generation, 0
            self._repeat_at = now
        if now >= self._repeat_at:
            self._said, self._repeat_at = {}, now + self._timing.jittered(REPEAT_SECONDS)
        changed = self._changed(now)
        is_beat = now >= self._beat_at
        if changed or is_beat or self._generation != self._observed:
            await self._report(node_id, changed, is_beat=is_beat)
            self._said = {key: known for key, known in self._said.items() if key in self._log.known.faults}
            self._said |= {known.key: known for known in changed}
            self._said_at = now if changed else self._said_at
            self._beat_at = now + self._timing.jittered(self._beat_seconds) if is_beat else self._beat_at
        if self._generation != self._observed:
            return 0.0
        return max(0.0, min(self._beat_at, self._growth_at()) - self._timing.clock())

    def _place(self) -> None:
        """Let the log know which GPUs are where, by the inventory that was collected last."""
        inventory = self._agent.inventory
        if inventory is None or inventory is self._inventory:
            return
        self._inventory = inventory
        section = inventory.gpus
        if section is not None:
            self._log.place(places_of(section))

    def _changed(self, now: float) -> list[KnownFault]:
        """Return the faults that the server does not know as they are; of mere repetitions only now and then."""
        changed = [known for key, known in self._log.known.faults.items() if self._said.get(key) != known]
        is_urgent = any(_is_other(self._said.get(known.key), known) for known in changed)
        if not is_urgent and now < self._said_at + GROWTH_SECONDS:
            return []
        return sorted(changed, key=lambda known: known.sequence)

    def _growth_at(self) -> float:
        is_grown = any(self._said.get(key) != known for key, known in self._log.known.faults.items())
        return self._said_at + GROWTH_SECONDS if is_grown else float("inf")

    async def _report(self, node_id: str, changed: list[KnownFault], *, is_beat: bool) -> None:
        boot_id = self._log.known.boot_id
        vitals = self._vitals
        report = StatusReport(
            node_id=node_id,
            sent_at=self._timing.now(),
            xids=tuple(reported_xid(known, boot_id) for known in changed) or None,
            conditions=await in_thread(vitals.conditions) if is_beat else None,
            pressure=await in_thread(vitals.pressure) if is_beat else None,
            observed_generation=self._generation if self._generation != self._observed else None,
        )
        if (report.xids, report.conditions, report.pressure, report.observed_generation) == (None,) * 4:
            return
        if await self._send(report):
            return
        # One odd line must not silence the others: what is refused alone is not taken a second time either.
        for xid in report.xids or ():
            await self._send(StatusReport(node_id=node_id, xids=(xid,)))
        if report.xids:
            await self._send(replace(report, xids=None))

    async def _send(self, report: StatusReport) -> bool:
        """Send a report; False where the server does not take its words."""
        (answer,) = await self._client.report_status([report])
        self._observed = self._generation
        if answer.error is None:
            # What it is to be now is observed with the next report, at once.
            self._generation = self._generation if answer.generation is None else answer.generation
            return True
        refusal = refused_slot(answer.error)
        if refusal.code is not Code.INVALID_INPUT:
            raise refusal
        _log.error("status report refused", reason=str(refusal))
        return False


def _is_other(said: KnownFault | None, known: KnownFault) -> bool:
    """Say whether a fault is more than a known one again."""
    if said is None:
        return True
    return (said.device_id, said.fault.recovery) != (known.device_id, known.fault.recovery)
