"""What the process counts, for Prometheus."""

from typing import Final

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from db.replica import Source
from domain.admission import Why, Work
from resolvers.context import Entrance

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The process's counters; a `resolvers.context.Meter`."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        operations = Counter(
            "fleetgraph_operations", "Operations answered.", ["entrance", "outcome"], registry=self.registry
        )
        seconds = Histogram(
            "fleetgraph_operation_seconds",
            "Time until an operation was answered.",
            ["entrance"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        # Looked up once: finding a label's counter costs more than counting.
        self._operations = {
            (entrance, failed): operations.labels(entrance.value, "failed" if failed else "answered")
            for entrance in Entrance
            for failed in (False, True)
        }
        self._seconds = {entrance: seconds.labels(entrance.value) for entrance in Entrance}
        self._reads = Counter(
            "fleetgraph_reads",
            "Reads by the field that asked, and whether they were compiled or executed field by field.",
            ["field", "way"],
            registry=self.registry,
        )
        turned_away = Counter(
            "fleetgraph_turned_away",
            "Reports and changes that were not let in (RATE_LIMITED), by kind of work and why.",
            ["work", "reason"],
            registry=self.registry,
        )
        self._turned_away = {(work, why): turned_away.labels(work.value, why.value) for work in Work for why in Why}
        self._behind = Gauge(
            "fleetgraph_behind_seconds",
            "How far behind the process is with its work; from 4 seconds on some of it is turned away.",
            registry=self.registry,
        )
        # Bound once: a bound logger whose level is off costs nothing.
        self._log = structlog.get_logger("operations").bind()
        self._read: dict[tuple[str, bool], Counter] = {}
        queries = Counter(
            "fleetgraph_queries_read",
            "Queries by where they were read, in a process that has a replica.",
            ["source", "reason"],
            registry=self.registry,
        )
        self._sources = {
            source: queries.labels(source.value, "")
            if source in {Source.REPLICA, Source.PRIMARY}
            else queries.labels("fallback", source.value)
            for source in Source
        }
        self._subscribers = Gauge(
            "fleetgraph_feed_subscribers", "Subscriptions that follow the feed.", registry=self.registry
        )
        self._head = Gauge(
            "fleetgraph_feed_position", "Newest position of the feed that this process read.", registry=self.registry
        )

    def operation(self, entrance: Entrance, name: str | None, seconds: float, *, failed: bool) -> None:
        """Count a query or a mutation that was answered."""
        self._operations[entrance, failed].inc()
        self._seconds[entrance].observe(seconds)
        self._log.debug("operation", operation=name, entrance=entrance.value, seconds=seconds, failed=failed)

    def read(self, name: str, *, compiled: bool) -> None:
        """Count a read by its field, of which the schema has a limited number."""
        counter = self._read.get((name, compiled))
        if counter is None:
            counter = self._read[name, compiled] = self._reads.labels(name, "compiled" if compiled else "executed")
        counter.inc()

    def source(self, source: Source) -> None:
        """Count a query by where it was read; the primary is a fallback when the query did not ask for it."""
        self._sources[source].inc()

    def turned_away(self, work: Work, why: Why) -> None:
        """Count an entry that was not let in."""
        self._turned_away[work, why].inc()

    def exposition(self, *, subscribers: int, head: int, behind_seconds: float) -> bytes:
        """Return everything in Prometheus's text format, with the present state of feed and process."""
        self._behind.set(behind_seconds)
        self._subscribers.set(subscribers)
        self._head.set(head)
        return generate_latest(self.registry)
