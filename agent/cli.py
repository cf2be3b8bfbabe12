"""The command line of the agent, `fleetgraph-agent`."""

import asyncio
import os
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import msgspec
import structlog
import typer
from msgspec import UNSET, UnsetType
from rich.console import Console

from agent import identity
from agent.arguments import (
    CertificateOption,
    CommandSecondsOption,
    EngineDirsOption,
    FabricsOption,
    GpuResetOption,
    HostnameOption,
    IdentityOption,
    ImageDirsOption,
    KernelLogOption,
    LabelsOption,
    Output,
    OutputOption,
    RebootOption,
    ServerOption,
    StateDirOption,
    TokenFileOption,
    TokenOption,
    WeightsDirsOption,
    connection,
    host_options,
    labels_of,
    programs_of,
    state_dir_or_default,
)
from agent.capture import capture as capture_host
from agent.certificate import read_certificate
from agent.client import Connection, connect
from agent.commands.handlers import PROGRAM_SECONDS_MAX, Programs, handlers, kinds_of
from agent.commands.ledger import Ledger
from agent.commands.worker import CommandWorker
from agent.console import one_line_failures
from agent.doctor import examine, render
from agent.explain import explain_log
from agent.failures import CaptureFailed, WronglyCalled
from agent.gpus.deadline import collect_with_deadline
from agent.host.files import Source
from agent.host.live import live_source
from agent.host.options import HostOptions
from agent.introduction import introduction
from agent.inventory import GPUS_SECONDS_MAX, Inventory, LiveHost
from agent.kernel.log import followed_log
from agent.kernel.looks import Looks
from agent.kernel.sources import KMSG
from agent.logs import configure_logs
from agent.loop import HEARTBEAT_SECONDS, Agent, Timing
from agent.recorded import RecordedHost, complete_capture, read_capture, read_smi_file
from agent.report import Reported, report_once
from agent.retry import SPREAD_SECONDS
from agent.signals import together, until_signalled
from agent.simulator.command import simulate
from agent.status import StatusReporter
from agent.vitals import HostVitals
from agent.watch import Fingerprint, hardware_fingerprint
from agent.wire import Certificate, Hello, Label
from domain.identity_key import IdentityKey, NeedsState

app = typer.Typer(
    name="fleetgraph-agent",
    help="Reports this machine's hardware to a Fleetgraph server.\n\nFirst steps: `doctor` shows what the agent can "
    "see here, `once` reports it and leaves, `run` keeps the node in the fleet.",
    no_args_is_help=True,
    add_completion=False,
    # Rich tracebacks print local variables, and the token is one.
    pretty_exceptions_enable=False,
)
_log = structlog.get_logger(__name__)


def main() -> NoReturn:
    """Run the command line: 0 when it was done, 1 when it failed, 2 when it was called wrongly."""
    app()
    sys.exit(0)


@app.callback()
def configure() -> None:
    """Set up what all commands need."""
    configure_logs()


@app.command()
def once(  # noqa: PLR0913 - each is an option of the command line
    *,
    server: ServerOption,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    identity_key: IdentityOption = None,
    hostname: HostnameOption = None,
    nvidia_smi: Annotated[
        Path | None,
        typer.Option("--nvidia-smi", metavar="FILE.xml", help="Report the recorded host of an `nvidia-smi -q -x` log."),
    ] = None,
    from_capture: Annotated[
        Path | None, typer.Option("--from-capture", metavar="DIR", help="Report the recorded host of a capture.")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for the server to apply it.")
    ] = 60,
    output: OutputOption = Output.TEXT,
    state_dir: StateDirOption = None,
    image_dir: ImageDirsOption = None,
    weights_dir: WeightsDirsOption = None,
    engine_dir: EngineDirsOption = None,
    fabric: FabricsOption = None,
    label: LabelsOption = None,
) -> None:
    """Report one inventory and leave; the status is 0 only when the server has applied it."""
    with one_line_failures():
        target = connection(server, token, token_file)
        options = host_options(image_dir, weights_dir, engine_dir, fabric)
        if nvidia_smi is not None and from_capture is not None:
            raise WronglyCalled("--nvidia-smi and --from-capture are two recorded hosts: give one of them")
        said = _Said(hostname, labels=labels_of(label))
        if nvidia_smi is not None:
            subject = _recorded(read_smi_file(nvidia_smi, identity_key), said)
        elif from_capture is not None:
            subject = _recorded(read_capture(from_capture, identity_key), said)
        else:
            machine = _this_machine(identity_key, state_dir, options, said)
            subject = _Subject(machine.hello(), machine.collect())
        reported = asyncio.run(_report(target, subject, wait))
    if output is Output.JSON:
        typer.echo(msgspec.json.encode(reported).decode())
        return
    typer.echo(f"{reported.node_id}: {len(subject.inventory.contents)} sections applied")
    typer.echo(f"snapshot {reported.snapshot_id}\ndigest   {reported.digest}")


@app.command()
def run(  # noqa: PLR0913 - each is an option of the command line
    *,
    server: ServerOption,
    token: TokenOption = None,
    token_file: TokenFileOption = None,
    identity_key: IdentityOption = None,
    hostname: HostnameOption = None,
    management_address: Annotated[
        str | None,
        typer.Option("--management-address", metavar="ADDRESS", help="Where the machine's management is reached."),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, max=3600, help="About how often to be heard.")
    ] = HEARTBEAT_SECONDS,
    spread: Annotated[
        float,
        typer.Option(
            "--spread", metavar="SECONDS", min=0, help="Over how long agents that start at one moment say hello."
        ),
    ] = SPREAD_SECONDS,
    state_dir: StateDirOption = None,
    image_dir: ImageDirsOption = None,
    weights_dir: WeightsDirsOption = None,
    engine_dir: EngineDirsOption = None,
    fabric: FabricsOption = None,
    label: LabelsOption = None,
    identity_certificate: CertificateOption = None,
    reboot_command: RebootOption = None,
    gpu_reset_command: GpuResetOption = None,
    command_seconds: CommandSecondsOption = PROGRAM_SECONDS_MAX,
    kernel_log: KernelLogOption = KMSG,
) -> None:
    """Keep this machine in the fleet until SIGINT or SIGTERM: heartbeats, a new inventory when it changed, commands."""
    with one_line_failures():
        target = connection(server, token, token_file)
        options = host_options(image_dir, weights_dir, engine_dir, fabric)
        # Without an option it says that there are none: a label taken out of its configuration goes.
        programs = programs_of(reboot_command, gpu_reset_command, command_seconds)
        said = _Said(hostname, management_address, labels_of(label) or (), identity_certificate, kinds_of(programs))
        machine = _this_machine(identity_key, state_dir, options, said)
        work = _Work(Timing(heartbeat=interval, spread=spread), programs, state_dir_or_default(state_dir), kernel_log)
        asyncio.run(_run(target, machine, work))


@app.command()
def doctor(  # noqa: PLR0913 - each is an option of the command line
    *,
    identity_key: IdentityOption = None,
    output: OutputOption = Output.TEXT,
    state_dir: StateDirOption = None,
    image_dir: ImageDirsOption = None,
    weights_dir: WeightsDirsOption = None,
    engine_dir: EngineDirsOption = None,
    fabric: FabricsOption = None,
    kernel_log: KernelLogOption = KMSG,
) -> None:
    """Show what the agent can see here, what it cannot, and why; nothing is sent."""
    with one_line_failures():
        options = host_options(image_dir, weights_dir, engine_dir, fabric)
        findings = examine(live_source(), options, collect_with_deadline(GPUS_SECONDS_MAX), kernel_log)
        found = identity.find_identity(identity_key, live_source(), os.environ, state_dir_or_default(state_dir))
    if output is Output.JSON:
        typer.echo(msgspec.json.encode({"identity": found, "findings": findings}).decode())
        return
    match found:
        case IdentityKey():
            told = f"identity {found.text} (from: {found.source})"
        case NeedsState():
            told = f"no identity yet: {found.reason}; a UUID will be kept in {state_dir_or_default(state_dir)}"
    console = Console()
    console.print(told, highlight=False)
    console.print(render(findings))


@app.command()
def capture(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    image_dir: ImageDirsOption = None,
    weights_dir: WeightsDirsOption = None,
    engine_dir: EngineDirsOption = None,
    fabric: FabricsOption = None,
) -> None:
    """Record this machine in a folder, for `once --from-capture`; it holds serial numbers and addresses."""
    with one_line_failures():
        options = host_options(image_dir, weights_dir, engine_dir, fabric)
        source = live_source()
        try:
            capture_host(source, folder, options)
            complete_capture(folder, collect_with_deadline(GPUS_SECONDS_MAX), identity.hostname(source))
        except OSError as error:
            raise CaptureFailed(f"cannot capture to {folder}: {error.strerror or error}") from error
    typer.echo(f"captured to {folder}; report it with: fleetgraph-agent once --from-capture {folder}")


app.command()(simulate)
app.command()(explain_log)


@dataclass(frozen=True, slots=True)
class _Said:
    """What the command line says of the machine; None is left as the server knows it."""

    hostname: str | None = None
    management_address: str | None = None
    labels: tuple[Label, ...] | None = None
    certificate: Path | None = None
    features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Subject:
    """What `once` reports: this machine or a recorded one."""

    hello: Hello
    inventory: Inventory


@dataclass(frozen=True, slots=True)
class _Work:
    """How `run` goes about it."""

    timing: Timing
    programs: Programs
    state_dir: Path
    kernel_log: str


class _ThisMachine(LiveHost):
    """The machine the agent runs on, with who it is."""

    def __init__(self, source: Source, options: HostOptions, key: IdentityKey, said: _Said) -> None:
        super().__init__(source, options)
        self.key = key
        self._source = source
        self._said = said
        self._refused: str | None = None

    def boot_id(self) -> str | None:
        return identity.boot_id(self._source)

    def vitals(self) -> HostVitals:
        return HostVitals(self._source, is_container=identity.in_container(self._source, os.environ))

    def fingerprint(self) -> Fingerprint:
        return hardware_fingerprint(self._source)

    def hello(self) -> Hello:
        said = introduction(
            self.key.text,
            hostname=self._said.hostname or identity.hostname(self._source),
            boot_id=self.boot_id(),
            management_address=self._said.management_address,
            labels=self._said.labels,
        )
        does = UNSET if self._said.features is None else self._said.features
        return msgspec.structs.replace(said, certificate=self._certificate(), features=does)

    def _certificate(self) -> Certificate | UnsetType:
        """Return what is told of it; a node whose certificate cannot be read is in the fleet all the same."""
        if self._said.certificate is None:
            return UNSET
        try:
            found = read_certificate(self._said.certificate)
        except WronglyCalled as failure:
            # Once, and not with every heartbeat.
            if str(failure) != self._refused:
                self._refused = str(failure)
                _log.warning("no certificate is told", reason=self._refused)
            return UNSET
        self._refused = None
        return found


def _this_machine(explicit: str | None, state_dir: Path | None, options: HostOptions, said: _Said) -> _ThisMachine:
    source = live_source()
    key = identity.node_identity(explicit, source, os.environ, state_dir_or_default(state_dir), uuid.uuid4)
    return _ThisMachine(source, options, key, said)


def _recorded(host: RecordedHost, said: _Said) -> _Subject:
    hostname = said.hostname or host.hostname
    return _Subject(introduction(host.key.text, hostname=hostname, labels=said.labels), host.inventory)


async def _report(target: Connection, subject: _Subject, seconds_max: float) -> Reported:
    async with connect(target) as client:
        return await report_once(
            client,
            subject.hello,
            subject.inventory,
            seconds_max=seconds_max,
            clock=time.monotonic,
            sleep=asyncio.sleep,
        )


async def _run(target: Connection, machine: _ThisMachine, work: _Work) -> None:
    _log.info("agent started", identity=machine.key.text, identity_from=machine.key.source.value, server=target.server)
    boot_id, timing, news = machine.boot_id(), work.timing, asyncio.Event()
    async with connect(target) as client:
        agent = Agent(client, machine, timing, news)
        looks = Looks(agent.refresh)
        log = followed_log(work.kernel_log, work.state_dir, boot_id, changed=news.set, alarmed=looks.ask)
        reporter = StatusReporter(client, agent, log, machine.vitals(), news=news, timing=timing)
        worker = CommandWorker(
            client,
            handlers(agent.refresh, work.programs, log),
            Ledger(work.state_dir),
            node_id=lambda: agent.node_id,
            boot_id=boot_id,
            timing=timing,
        )
        works = (agent.run(), worker.run(), log.run(), looks.run(), reporter.run())
        await until_signalled(together(*works))
    _log.info("agent stopped")
