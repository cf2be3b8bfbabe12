"""Hosts that were recorded elsewhere: an `nvidia-smi -q -x` file, or the folder of a capture.

A recorded host is not this machine: nothing of this machine, its identity least of all, enters its report.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.capture import collect_captured
from agent.failures import WronglyCalled
from agent.gpus.smi_xml import read_smi_xml
from agent.inventory import Inventory, inventory_of
from domain import mac
from domain.documents.document import Section
from domain.documents.gpus import GpusSection
from domain.documents.nics import NicsSection
from domain.documents.system import SystemSection
from domain.errors import InvalidInput
from domain.identity_key import IdentityKey, explicit_key, recorded_key
from domain.sections import SECTION_BYTES_MAX, decode, encode, gpu_uuid, section_of

SMI_BYTES_MAX: Final = 64 * 1024 * 1024
_GPUS_FILE: Final = "gpus.json"
_HOSTNAME_FILE: Final = "hostname"
_HOSTNAME_BYTES_MAX: Final = 255
_SHORT: Final = 8


@dataclass(frozen=True, slots=True)
class RecordedHost:
    """What is known of a recorded host."""

    inventory: Inventory
    key: IdentityKey
    hostname: str


def read_smi_file(file: Path, identity: str | None) -> RecordedHost:
    """Read a host of which only the GPUs are known; raises WronglyCalled saying what is wrong with the file."""
    content = _read_bounded(file, SMI_BYTES_MAX)
    try:
        gpus = read_smi_xml(content)
    except InvalidInput as error:
        raise WronglyCalled(f"{file}: {error}") from error
    return _recorded({"gpus": gpus}, identity, None)


def read_capture(folder: Path, identity: str | None) -> RecordedHost:
    """Read a captured host; raises WronglyCalled saying what is wrong with the folder."""
    try:
        sections = collect_captured(folder)
    except OSError as error:
        raise WronglyCalled(f"{folder} is not a capture: {error.strerror or error}") from error
    except ValueError as error:
        raise WronglyCalled(str(error)) from error
    gpus, name = folder / _GPUS_FILE, folder / _HOSTNAME_FILE
    if gpus.exists():
        try:
            sections = {**sections, "gpus": decode("gpus", _read_bounded(gpus, SECTION_BYTES_MAX))}
        except InvalidInput as error:
            raise WronglyCalled(f"{gpus}: {error}") from error
    hostname = _read_bounded(name, _HOSTNAME_BYTES_MAX).decode("utf-8", "replace").strip() if name.exists() else None
    return _recorded(sections, identity, hostname or None)


def complete_capture(folder: Path, gpus: GpusSection, hostname: str | None) -> None:
    """Add to a capture what no file of the host holds: its GPUs as collected, and its host name."""
    _write_private(folder / _GPUS_FILE, encode(gpus))
    if hostname is not None:
        _write_private(folder / _HOSTNAME_FILE, hostname.encode())


def _recorded(sections: Mapping[str, Section], identity: str | None, hostname: str | None) -> RecordedHost:
    inventory = inventory_of(sections)
    try:
        key = explicit_key(identity) if identity is not None else recorded_key(_identifiers(sections), inventory.digest)
    except ValueError as error:
        raise WronglyCalled(str(error)) from error
    short = recorded_key((), key.text).text[:_SHORT]
    return RecordedHost(inventory, key, hostname or f"recorded-{short}")


def _identifiers(sections: Mapping[str, Section]) -> Iterator[str]:
    gpus = section_of(sections, GpusSection)
    for gpu in gpus.gpus if gpus else ():
        uuid = gpu_uuid(gpu)
        # Published logs have their UUIDs and serials rewritten, often to the same few: the product tells them apart.
        product = (gpu.name or "").casefold().removeprefix("nvidia ")
        if uuid is not None:
            yield f"gpu:{uuid}:{product}"
        elif gpu.serial is not None:
            yield f"gpu-serial:{gpu.serial}:{product}"
    nics = section_of(sections, NicsSection)
    for nic in nics.nics if nics else ():
        address = mac.identity(nic.permanent_mac)
        if address is not None and not nic.removable:
            yield f"mac:{address}"
    system = section_of(sections, SystemSection)
    if system is not None and system.product_uuid is not None:
        yield f"product:{system.product_uuid.lower()}"


def _read_bounded(file: Path, limit: int) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(limit + 1)
    except OSError as error:
        raise WronglyCalled(f"cannot read {file}: {error.strerror or error}") from error
    if len(content) > limit:
        raise WronglyCalled(f"{file} holds more than {limit} bytes")
    return content


def _write_private(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(content)
