"""Running calls that may hang: each gets a thread and all of a batch share one deadline.

A thread that hangs in the kernel cannot be ended. It is remembered, and while it hangs the same call is not started
again, so that a dead NFS server costs one thread and not one per round.
"""

import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")

BATCH_MAX: Final = 256


class TimedOut(Exception):  # noqa: N818 - an outcome of the probe, not an error of the program
    """The call had no result in time, or an earlier one of the same name still hangs."""


class _Call(Generic[T]):
    def __init__(self, name: str, function: Callable[[], T]) -> None:
        self._name = name
        self._function = function
        self.results: list[T] = []
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self._run, name=f"probe {name}", daemon=True)

    def _run(self) -> None:
        try:
            self.results.append(self._function())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self.errors.append(error)

    def outcome(self, seconds_max: float) -> T | BaseException:
        if self.results:
            return self.results[0]
        return self.errors[0] if self.errors else TimedOut(f"{self._name}: no answer within {seconds_max:g} s")


class Probes:
    """Calls with a deadline; one instance lives as long as the process that probes."""

    def __init__(self) -> None:
        self._hanging: dict[str, threading.Thread] = {}

    def run(self, name: str, function: Callable[[], T], seconds_max: float) -> T:
        """Run one call; raises TimedOut, or what the call raised."""
        outcome = self.run_all({name: function}, seconds_max)[name]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def run_all(self, functions: Mapping[str, Callable[[], T]], seconds_max: float) -> dict[str, T | BaseException]:
        """Run the calls at once and return each one's result, what it raised, or TimedOut.

        Beyond BATCH_MAX calls the rest is not started and counts as TimedOut.
        """
        self._hanging = {name: thread for name, thread in self._hanging.items() if thread.is_alive()}
        started = [name for name in functions if name not in self._hanging][:BATCH_MAX]
        calls: dict[str, _Call[T]] = {name: _Call(name, functions[name]) for name in started}
        for call in calls.values():
            call.thread.start()
        deadline = monotonic() + seconds_max
        for call in calls.values():
            call.thread.join(max(0.0, deadline - monotonic()))
        self._hanging |= {name: call.thread for name, call in calls.items() if call.thread.is_alive()}
        busy = TimedOut("an earlier call still hangs")
        return {name: calls[name].outcome(seconds_max) if name in calls else busy for name in functions}
