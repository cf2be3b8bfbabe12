"""What each kind of command does on this machine; one that has no handler here is unsupported."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from agent.gpus.dcgm import NotRun, run_dcgm
from agent.gpus.deadline import collect_with_deadline
from agent.inventory import Inventory
from agent.program import Ended, run_within
from agent.threads import in_thread
from agent.wire import Command, CommandOutcome, CommandResult
from domain.command_kinds import (
    DIAG_DCGM,
    DIAG_NVML,
    GPU_RESET,
    INVENTORY_REFRESH,
    NODE_REBOOT,
    DiagDcgm,
    DiagNvml,
    GpuReset,
    read_payload,
)
from domain.dcgm_diagnosis import DcgmDiagnosis
from domain.documents.gpus import GpusSection
from domain.known_faults import KnownFault, KnownFaults, places_of
from domain.nvml_diagnosis import diagnose, is_well

DIAG_SECONDS_MAX: Final = 60.0
PROGRAM_SECONDS_MAX: Final = 300.0
GOING_DOWN_SECONDS_MAX: Final = 600.0
OUTPUT_BYTES_MAX: Final = 16 * 1024
GPU_PLACEHOLDER: Final = "{gpu}"

Handler = Callable[[Command], Awaitable[CommandResult]]


@dataclass(frozen=True, slots=True)
class Programs:
    """What the operator has configured for kinds that the agent itself never does: argument vectors.

    In that of the reset `{gpu}` stands for the GPU's UUID. Without a program its kind is unsupported.
    """

    reboot: tuple[str, ...] | None = None
    gpu_reset: tuple[str, ...] | None = None
    seconds_max: float = PROGRAM_SECONDS_MAX
    going_down_seconds_max: float = GOING_DOWN_SECONDS_MAX


class FaultBookkeeper(Protocol):
    """Who knows the faults of this boot."""

    @property
    def known(self) -> KnownFaults:
        """What is known now."""

    def place(self, gpus: Mapping[str, str]) -> None:
        """Learn which GPU (UUID) is at which canonical PCI address."""

    def forget(self, device_id: str, up_to: int) -> None:
        """Forget a GPU's faults up to a place in the log."""


def kinds_of(programs: Programs) -> tuple[str, ...]:
    """Return the kinds of commands that an agent with these programs does."""
    configured = {NODE_REBOOT: programs.reboot, GPU_RESET: programs.gpu_reset}
    has_program = tuple(kind for kind, program in configured.items() if program is not None)
    return (INVENTORY_REFRESH, DIAG_NVML, DIAG_DCGM, *has_program)


def failed(reason: str, message: str | None = None, **found: Any) -> CommandResult:  # noqa: ANN401 - JSON
    """Return the result of what was not done, or not to its end."""
    return CommandResult(outcome=CommandOutcome.FAILED, reason=reason, message=message, result=found or None)


def succeeded(**found: Any) -> CommandResult:  # noqa: ANN401 - JSON
    """Return the result of what was done."""
    return CommandResult(outcome=CommandOutcome.SUCCEEDED, result=found)


def handlers(
    refresh: Callable[[], Awaitable[Inventory]],
    programs: Programs,
    faults: FaultBookkeeper,
    probe: Callable[[], GpusSection] = lambda: collect_with_deadline(DIAG_SECONDS_MAX),
    dcgm: Callable[[int], DcgmDiagnosis | NotRun] = run_dcgm,
) -> Mapping[str, Handler]:
    """Return the handlers by kind.

    `refresh` collects and reports anew; `probe` looks at the GPUs and `dcgm` tests them at a level, and both block.
    """

    async def refreshed(_command: Command) -> CommandResult:
        inventory = await refresh()
        return succeeded(digest=inventory.digest, complete=inventory.complete)

    async def diagnosed(command: Command) -> CommandResult:
        payload = read_payload(command.kind, command.payload)
        section = await in_thread(probe)
        faults.place(places_of(section))
        asked = payload if isinstance(payload, DiagNvml) else DiagNvml()
        standing = [each for each in faults.known.faults.values() if not _is_cleared(each, asked)]
        found = diagnose(section, asked.gpu_count, standing)
        return succeeded(
            passed=found.passed,
            gpuCount=found.gpu_count,
            driverVersion=section.driver_version,
            failures=[asdict(each) for each in found.failures],
        )

    async def tested(command: Command) -> CommandResult:
        payload = read_payload(command.kind, command.payload)
        level = payload.level if isinstance(payload, DiagDcgm) else 1
        found = await in_thread(lambda: dcgm(level))
        if isinstance(found, NotRun):
            return failed(found.reason, found.message)
        failures = [asdict(each) for each in found.failures]
        return succeeded(passed=found.passed, level=level, tests=found.tests, failures=failures)

    known: dict[str, Handler] = {INVENTORY_REFRESH: refreshed, DIAG_NVML: diagnosed, DIAG_DCGM: tested}
    if programs.reboot is not None:
        known[NODE_REBOOT] = _reboot(programs.reboot, programs)
    if programs.gpu_reset is not None:
        known[GPU_RESET] = _gpu_reset(programs.gpu_reset, programs, refresh, faults)
    return known


def _is_cleared(known: KnownFault, asked: DiagNvml) -> bool:
    """Say whether an operator called a fault over, which the agent is told by who asks for the diagnosis."""
    place = asked.cleared.get(known.device_id) if known.device_id is not None else None
    return place is not None and known.sequence <= int(place)


def _reboot(arguments: Sequence[str], programs: Programs) -> Handler:
    async def reboot(_command: Command) -> CommandResult:
        ended = await _run(arguments, programs.seconds_max)
        if ended.status != 0:
            return _of_program(ended)
        # The machine goes down under this very wait; the next boot tells of the success.
        await asyncio.sleep(programs.going_down_seconds_max)
        return failed("not-rebooted", "the program ended well, and the machine is still up", output=_text(ended))

    return reboot


def _gpu_reset(
    arguments: Sequence[str],
    programs: Programs,
    refresh: Callable[[], Awaitable[Inventory]],
    faults: FaultBookkeeper,
) -> Handler:
    async def reset(command: Command) -> CommandResult:
        payload = read_payload(command.kind, command.payload)
        if not isinstance(payload, GpuReset):
            raise TypeError("the parameters of a gpu.reset name a GPU")
        given = [each.replace(GPU_PLACEHOLDER, payload.device_id) for each in arguments]
        ended = await _run(given, programs.seconds_max)
        if ended.status != 0:
            return _of_program(ended)
        # What the log tells from here on is of the GPU after its reset.
        up_to = faults.known.read_to
        inventory = await refresh()
        section = inventory.gpus
        well = section is not None and is_well(section, payload.device_id)
        if section is not None and well:
            faults.place(places_of(section))
            faults.forget(payload.device_id, up_to)
        return succeeded(output=_text(ended), digest=inventory.digest, healthy=well, upTo=str(up_to))

    return reset


async def _run(arguments: Sequence[str], seconds: float) -> Ended:
    return await in_thread(lambda: run_within(arguments, seconds, output_bytes_max=OUTPUT_BYTES_MAX, errors_too=True))


def _text(ended: Ended) -> str:
    # U+0000 is kept nowhere.
    return ended.output.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _of_program(ended: Ended) -> CommandResult:
    if ended.status is None:
        return failed("deadline", "the program did not end in time", output=_text(ended))
    return failed("failed", f"the program ended with status {ended.status}", output=_text(ended))
