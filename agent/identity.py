"""Who this node is: reads what `domain.identity_key` decides on, and keeps the key that a container needs."""

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from agent.failures import NoIdentity, WronglyCalled
from agent.host.answers import Missing
from agent.host.files import Fact, Source, ask_text, raw_text, text
from domain.identity_key import IdentityKey, NeedsState, choose, kept_key

_MACHINE_ID: Final = "/etc/machine-id"
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_HOSTNAME: Final = "/proc/sys/kernel/hostname"
_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h
_MARKERS: Final = ("/.dockerenv", "/run/.containerenv")
_VARIABLES: Final = ("container", "KUBERNETES_SERVICE_HOST")
_KEY_FILE: Final = "identity"
_KEY_BYTES_MAX: Final = 256


def node_identity(
    explicit: str | None,
    source: Source,
    environment: Mapping[str, str],
    state_dir: Path,
    new_uuid: Callable[[], UUID],
) -> IdentityKey:
    """Return the key of the node this process runs on, which is made and kept when nothing else identifies it.

    Raises WronglyCalled for an explicit key that is none, NoIdentity when a key is to be kept and cannot be.
    """
    match find_identity(explicit, source, environment, state_dir):
        case IdentityKey() as key:
            return key
        case NeedsState(reason=reason):
            return _keep_new(state_dir, reason, new_uuid)


def find_identity(
    explicit: str | None, source: Source, environment: Mapping[str, str], state_dir: Path
) -> IdentityKey | NeedsState:
    """Return what `node_identity` does, or why a key would have to be made; nothing is written."""
    machine_id = raw_text(source, _MACHINE_ID)
    try:
        choice = choose(
            explicit=explicit,
            machine_id=None if isinstance(machine_id, Missing) else machine_id,
            container=in_container(source, environment),
        )
    except ValueError as error:
        raise WronglyCalled(str(error)) from error
    return choice if isinstance(choice, IdentityKey) else _kept(state_dir) or choice


def in_container(source: Source, environment: Mapping[str, str]) -> bool:
    """Say whether any sign of a container is there.

    Unlike the `system` section this leans to yes: a machine taken for a container keeps a key of its own and loses
    nothing, while a container taken for the machine, such as one in the host's PID namespace, would merge nodes.
    """
    namespace = source.link("/proc/self/ns/pid")
    if not isinstance(namespace, Missing) and namespace != _INITIAL_PID_NAMESPACE:
        return True
    if any(environment.get(name) for name in _VARIABLES) or any(source.exists(marker) for marker in _MARKERS):
        return True
    return not isinstance(ask_text(source, Fact.CONTAINER_VARIABLE, ""), Missing)


def default_state_dir(environment: Mapping[str, str], *, root: bool) -> Path:
    """Return where the agent keeps its state: the system's place for root, else the user's."""
    if root:
        return Path("/var/lib/fleetgraph-agent")
    home = environment.get("XDG_STATE_HOME")
    return (Path(home) if home else Path("~/.local/state").expanduser()) / "fleetgraph-agent"


def boot_id(source: Source) -> str | None:
    """Return the kernel's id of this boot."""
    found = text(source, _BOOT_ID)
    return None if isinstance(found, Missing) else found


def hostname(source: Source) -> str | None:
    """Return the kernel's host name."""
    found = text(source, _HOSTNAME)
    return None if isinstance(found, Missing) else found


def _kept(state_dir: Path) -> IdentityKey | None:
    try:
        return _read_key(state_dir / _KEY_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NoIdentity(f"cannot read this node's key in {state_dir}: {error.strerror}") from error


def _keep_new(state_dir: Path, reason: str, new_uuid: Callable[[], UUID]) -> IdentityKey:
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        _create_once(state_dir / _KEY_FILE, f"{new_uuid()}\n".encode())
        return _read_key(state_dir / _KEY_FILE)
    except OSError as error:
        raise NoIdentity(
            f"this node has no identity: {reason}, and none can be kept in {state_dir} ({error.strerror}); "
            "give --identity, or --state-dir on a volume that outlives the container"
        ) from error


def _read_key(file: Path) -> IdentityKey:
    with file.open("rb") as opened:
        content = opened.read(_KEY_BYTES_MAX)
    try:
        return kept_key(content.decode("ascii", "replace"))
    except ValueError as error:
        raise NoIdentity(f"{file} does not hold a UUID; remove it to make this a new node") from error


def _create_once(file: Path, content: bytes) -> None:
    """Make the file with its content, or leave the one that another agent made first."""
    aside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        # A link, unlike a rename, never replaces the key of an agent that started at the same time.
        with suppress(FileExistsError):
            os.link(aside, file)
    finally:
        aside.unlink(missing_ok=True)
