"""What a host tells of itself again and again beside its inventory: how pressed it is, and what holds on it."""

from typing import Final, Protocol

from agent.host.files import Source
from agent.host.pressure import PressureSampler
from agent.host.reboot_required import reboot_required, says_reboots
from agent.wire_status import ReportedCondition, ReportedPressure

_MESSAGE_LENGTH_MAX: Final = 1000


class Vitals(Protocol):
    """The host as status reports see it; the calls block."""

    def pressure(self) -> ReportedPressure | None:
        """Return the pressure since the last call; None where nothing is known of it."""

    def conditions(self) -> tuple[ReportedCondition, ...] | None:
        """Return all conditions that hold; None on a host that cannot tell of any, which never changes."""


class HostVitals:
    """This machine."""

    def __init__(self, source: Source, *, is_container: bool) -> None:
        self._source = source
        self._sampler = PressureSampler(source)
        self._says_reboots = says_reboots(source, is_container=is_container)

    def pressure(self) -> ReportedPressure | None:
        """Sample the pressure."""
        found = self._sampler.sample()
        if found is None:
            return None
        unsupported = tuple(resource.upper() for resource in found.unsupported) or None
        return ReportedPressure(
            cpu=found.cpu, memory=found.memory, io=found.io, steal=found.steal, unsupported=unsupported
        )

    def conditions(self) -> tuple[ReportedCondition, ...] | None:
        """Look whether a reboot is asked for: a list once is a list always, so that what is over is said to be."""
        if not self._says_reboots:
            return None
        why = reboot_required(self._source)
        if why is None:
            return ()
        return (
            ReportedCondition(type="RebootRequired", reason="PackagesInstalled", message=why[:_MESSAGE_LENGTH_MAX]),
        )
