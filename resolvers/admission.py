"""Admission: each entry is let in or turned away before anything is done for it. A process decides by what it sees."""

import time
from collections.abc import Callable
from typing import Final

from domain.admission import OVERLOAD_RETRY_SECONDS, Rate, Rates, TurnedAway, Why, Work, sheds, taken, too_early
from domain.ids import TenantId

SENDERS_MAX: Final = 200_000

Sender = tuple[TenantId, str]


class Admission:
    """Lets entries in by their senders' rates, and by how many seconds the process is behind."""

    def __init__(
        self,
        rates: Rates | None = None,
        behind_seconds: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
        senders_max: int = SENDERS_MAX,
    ) -> None:
        self._rates = rates or Rates()
        self.behind_seconds = behind_seconds
        """How far behind the process is."""
        self._clock = clock
        self._senders_max = senders_max
        self._nodes: dict[Sender, float] = {}
        self._tenants: dict[TenantId, float] = {}

    def shed(self, work: Work) -> None:
        """Raise TurnedAway when the process is too far behind for this kind of work."""
        if sheds(work, self.behind_seconds()):
            raise TurnedAway(work, Why.OVERLOAD, OVERLOAD_RETRY_SECONDS)

    def admit(self, work: Work, tenant_id: TenantId, node: str) -> None:
        """Count one entry of a node, named by its id or, where it has none yet, its identity; raises TurnedAway."""
        self.shed(work)
        now = self._clock()
        sender = (tenant_id, node)
        rates = self._rates
        node_until, tenant_until = self._nodes.get(sender, 0.0), self._tenants.get(tenant_id, 0.0)
        # What the one refuses is not charged to the other.
        _refuse_early(work, Why.NODE, node_until, rates.node, now)
        _refuse_early(work, Why.TENANT, tenant_until, rates.tenant, now)
        if rates.node.per_second:
            self._nodes[sender] = taken(node_until, rates.node, now)
            if len(self._nodes) > self._senders_max:
                self._forget_rested(now)
        if rates.tenant.per_second:
            self._tenants[tenant_id] = taken(tenant_until, rates.tenant, now)

    def _forget_rested(self, now: float) -> None:
        """Forget who may send as much as one that never did; were all of them busy, the memory would be worth more."""
        self._nodes = {sender: until for sender, until in self._nodes.items() if until > now}
        if len(self._nodes) > self._senders_max:
            self._nodes.clear()


def _refuse_early(work: Work, why: Why, sent_until: float, rate: Rate, now: float) -> None:
    if rate.per_second and (seconds := too_early(sent_until, rate, now)):
        raise TurnedAway(work, why, seconds)
