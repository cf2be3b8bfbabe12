"""The options that several commands share, and how their texts become values."""

import os
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from agent.client import Connection
from agent.commands.handlers import GPU_PLACEHOLDER, Programs
from agent.host.options import HostOptions
from agent.identity import default_state_dir
from agent.wire import Label
from domain.errors import InvalidInput
from domain.labels import GivenLabel, given_labels

TOKEN_BYTES_MAX: Final = 4096


class Output(StrEnum):
    """How a command prints its result."""

    TEXT = "text"
    JSON = "json"


ServerOption = Annotated[
    str,
    typer.Option(
        "--server", envvar="FLEETGRAPH_SERVER", metavar="URL", help="The server, such as http://127.0.0.1:8000."
    ),
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="FLEETGRAPH_TOKEN",
        metavar="TOKEN",
        show_default=False,
        help="A token for agents or operators. Others on this machine see arguments: prefer the variable or the file.",
    ),
]
TokenFileOption = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="A file that holds the token alone.")
]
IdentityOption = Annotated[
    str | None,
    typer.Option(
        "--identity",
        metavar="KEY",
        help="The key the node is known by. Without it: from the machine id, in containers a UUID that is kept.",
    ),
]
HostnameOption = Annotated[
    str | None, typer.Option("--hostname", metavar="NAME", help="The node's name for people, instead of the kernel's.")
]
StateDirOption = Annotated[
    Path | None,
    typer.Option("--state-dir", metavar="DIR", help="Where the agent keeps its state (its identity in a container)."),
]
OutputOption = Annotated[Output, typer.Option("--output", help="What is printed: text for people, or one JSON object.")]
ImageDirsOption = Annotated[
    list[str] | None, typer.Option("--image-dir", metavar="DIR", help="A folder of cached images; repeatable.")
]
WeightsDirsOption = Annotated[
    list[str] | None, typer.Option("--weights-dir", metavar="DIR", help="A folder of model weights; repeatable.")
]
EngineDirsOption = Annotated[
    list[str] | None,
    typer.Option("--engine-dir", metavar="DIR", help="A Python environment with inference engines; repeatable."),
]
FabricsOption = Annotated[
    list[str] | None,
    typer.Option("--fabric", metavar="NAME=DEVICE,…", help="A fabric and the RDMA devices on it; repeatable."),
]

LabelsOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="A label of the node, such as zone=a; repeatable."),
]
CertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--identity-certificate",
        envvar="FLEETGRAPH_IDENTITY_CERTIFICATE",
        metavar="FILE",
        help="The node's identity certificate in PEM: the server warns before it expires. "
        "A new one is told with the next heartbeat.",
    ),
]
RebootOption = Annotated[
    str | None,
    typer.Option(
        "--reboot-command",
        envvar="FLEETGRAPH_REBOOT_COMMAND",
        metavar="PROGRAM ARGUMENT…",
        help="What reboots this machine, such as 'systemctl reboot'; without it node.reboot is unsupported. No shell.",
    ),
]
GpuResetOption = Annotated[
    str | None,
    typer.Option(
        "--gpu-reset-command",
        envvar="FLEETGRAPH_GPU_RESET_COMMAND",
        metavar="PROGRAM ARGUMENT…",
        help="What resets a GPU, {gpu} standing for its UUID, such as 'nvidia-smi --gpu-reset -i {gpu}'; without it "
        "gpu.reset is unsupported. No shell.",
    ),
]
KernelLogOption = Annotated[
    str,
    typer.Option(
        "--kernel-log",
        envvar="FLEETGRAPH_KERNEL_LOG",
        metavar="PATH",
        help="The kernel log that tells of faults: the device, or a file or FIFO that is followed as it grows, in any "
        "form that explain-log reads (`-` is standard input); `none` for no log.",
    ),
]
CommandSecondsOption = Annotated[
    float,
    typer.Option("--command-seconds", metavar="SECONDS", min=1, max=600, help="How long these programs may take."),
]


def programs_of(reboot: str | None, gpu_reset: str | None, seconds_max: float) -> Programs:
    """Return the operator's programs; raises BadParameter for one that cannot be."""
    resets = _arguments("--gpu-reset-command", gpu_reset)
    if resets is not None and not any(GPU_PLACEHOLDER in each for each in resets[1:]):
        raise typer.BadParameter(f"--gpu-reset-command: {GPU_PLACEHOLDER} has to stand where the GPU is named")
    return Programs(_arguments("--reboot-command", reboot), resets, seconds_max)


def _arguments(option: str, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        found = tuple(shlex.split(text))
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from error
    if not found:
        raise typer.BadParameter(f"{option}: names no program")
    return found


def connection(server: str, token: str | None, token_file: Path | None) -> Connection:
    """Return where to report to; raises BadParameter (a usage error) for what cannot be right."""
    parts = urlsplit(server)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise typer.BadParameter(f"{server!r} is not a URL; one such as http://127.0.0.1:8000 is expected")
    if parts.username or parts.password:
        raise typer.BadParameter("the server's URL names a user; a token is expected instead")
    if token_file is not None:
        token = _token_of(token_file)
    if not token:
        raise typer.BadParameter("no token: give --token-file or --token, or set FLEETGRAPH_TOKEN")
    # What else would not fit in a header; the token itself is never shown.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise typer.BadParameter("the token holds blanks or characters that no token has")
    return Connection(server.removesuffix("/graphql"), token)


def host_options(
    image_dirs: list[str] | None,
    weights_dirs: list[str] | None,
    engine_dirs: list[str] | None,
    fabrics: list[str] | None,
) -> HostOptions:
    """Return what the operator tells the collectors; raises BadParameter for a fabric that names no device."""
    named: dict[str, tuple[str, ...]] = {}
    for text in fabrics or ():
        name, _, devices = text.partition("=")
        adapters = tuple(device.strip() for device in devices.split(",") if device.strip())
        if not name.strip() or not adapters:
            raise typer.BadParameter(f"--fabric {text!r}: NAME=DEVICE,… is expected, such as rail=mlx5_0,mlx5_1")
        named[name.strip()] = adapters
    return HostOptions(
        image_dirs=tuple(image_dirs or ()),
        weights_dirs=None if weights_dirs is None else tuple(weights_dirs),
        engine_dirs=None if engine_dirs is None else tuple(engine_dirs),
        fabrics=named,
    )


def labels_of(texts: list[str] | None) -> tuple[Label, ...] | None:
    """Return the labels given, None when none are; raises BadParameter for one that cannot be."""
    if texts is None:
        return None
    pairs = [text.partition("=") for text in texts]
    for key, separator, _ in pairs:
        if not separator:
            raise typer.BadParameter(f"--label {key!r}: KEY=VALUE is expected, such as zone=a")
    try:
        labels = given_labels("--label", [GivenLabel(key, value) for key, _, value in pairs])
    except InvalidInput as refusal:
        raise typer.BadParameter(refusal.message) from refusal
    return tuple(Label(key=key, value=value) for key, value in labels.items())


def state_dir_or_default(state_dir: Path | None) -> Path:
    """Return the folder given, else this user's place for state."""
    return state_dir or default_state_dir(os.environ, root=os.geteuid() == 0)


def _token_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(TOKEN_BYTES_MAX)
    except OSError as error:
        raise typer.BadParameter(f"cannot read the token in {file}: {error.strerror or error}") from error
    return content.decode("utf-8", "replace").strip()
