import threading
import time

import pytest

from agent.host.deadline import Probes, TimedOut


def test_a_call_returns_or_raises_what_it_does() -> None:
    probes = Probes()
    assert probes.run("a", lambda: 7, 5.0) == 7
    with pytest.raises(ZeroDivisionError):
        probes.run("b", lambda: 1 // 0, 5.0)


def test_a_hanging_call_costs_one_deadline_and_one_thread_however_often_it_is_asked() -> None:
    probes = Probes()
    release = threading.Event()
    started: list[str] = []

    def hang() -> bool:
        started.append("hang")
        return release.wait(30)

    began = time.monotonic()
    outcomes = probes.run_all({"hang": hang, "hang too": hang, "quick": lambda: True}, 0.2)
    assert time.monotonic() - began < 5
    assert outcomes["quick"] is True
    assert isinstance(outcomes["hang"], TimedOut)
    with pytest.raises(TimedOut, match="still hangs"):
        probes.run("hang", hang, 0.2)
    assert len(started) == 2
    release.set()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if probes.run_all({"hang": lambda: True}, 1.0)["hang"] is True:
            return
    pytest.fail("the call stayed barred after the earlier one had ended")
