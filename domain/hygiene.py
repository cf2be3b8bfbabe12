"""Faults that no single report shows: a driver, an agent or a certificate that is not what is wanted (rule 12)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain.certificate import Certificate, expiry
from domain.conditions import ConditionStatus, Observed
from domain.node_spec import DRIVER_UNIT, Unit
from domain.protocol import PROTOCOL

HYGIENE_TYPES: Final = ("DriverMismatch", "DaemonOutdated", "CertExpiring")
_NUMBERS: Final = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,7})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What a node is to have and has; `drivers` are those that its GPUs report."""

    generation: int
    observed_generation: int
    units: Sequence[Unit]
    drivers: frozenset[str]
    agent_version: str | None
    protocol: str | None
    certificate: Certificate | None

    @property
    def converged(self) -> bool:
        """Its agent has observed the newest generation."""
        return self.observed_generation == self.generation


def hygiene(upkeep: Upkeep, agent_version_min: str | None, now: datetime) -> tuple[Observed, ...]:
    """Say what is wrong with a node; of what is not known nothing is said."""
    certificate = () if upkeep.certificate is None else (expiry(upkeep.certificate, now),)
    return (*_driver(upkeep), *_daemon(upkeep, agent_version_min), *certificate)


def version_numbers(text: str | None) -> tuple[int, ...] | None:
    """Return the numbers a version begins with, without zeros at the end; None when it begins with none."""
    found = _NUMBERS.match(text or "")
    if found is None:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _driver(upkeep: Upkeep) -> Iterable[Observed]:
    """Compare branches, which NVIDIA numbers by the first part of a driver's version."""
    wanted = next((unit.version for unit in upkeep.units if unit.kind == DRIVER_UNIT), None)
    branch = version_numbers(wanted)
    if branch is None or not upkeep.converged:
        return [Observed("DriverMismatch", ConditionStatus.FALSE)]
    found = {driver: numbers for driver in upkeep.drivers if (numbers := version_numbers(driver)) is not None}
    other = sorted(driver for driver, numbers in found.items() if numbers[0] != branch[0])
    if other:
        message = f"driver {', '.join(other)}; its {DRIVER_UNIT} unit wants {wanted}"
        return [Observed("DriverMismatch", ConditionStatus.TRUE, "OtherBranch", message)]
    return [Observed("DriverMismatch", ConditionStatus.FALSE)] if found else []


def _daemon(upkeep: Upkeep, agent_version_min: str | None) -> Iterable[Observed]:
    protocol, version = version_numbers(upkeep.protocol), version_numbers(upkeep.agent_version)
    least = version_numbers(agent_version_min)
    if protocol is not None and protocol < (version_numbers(PROTOCOL) or ()):
        message = f"its agent speaks protocol {upkeep.protocol}; the server speaks {PROTOCOL}"
        return [Observed("DaemonOutdated", ConditionStatus.TRUE, "OlderProtocol", message)]
    if least is not None and version is not None and version < least:
        message = f"its agent is {upkeep.agent_version}; at least {agent_version_min} is wanted"
        return [Observed("DaemonOutdated", ConditionStatus.TRUE, "OlderVersion", message)]
    # An agent that does not say what it is may be as old as before.
    known = protocol is not None and (least is None or version is not None)
    return [Observed("DaemonOutdated", ConditionStatus.FALSE)] if known else []
