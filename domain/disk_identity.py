"""What identifies a disk: WWN, else controller serial and namespace; a kernel name never does.

Source: rule 16 of the product's rules (disks).
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from domain.availability import known_text
from domain.device import id_part
from domain.documents.disks import Disk

_NAA: Final = re.compile(r"(?:wwn-)?(?:0x|naa\.)?(?P<digits>[0-9a-f]{16}|[0-9a-f]{32})")
_WWN: Final = re.compile(r"[a-z0-9._:+-]{4,200}")
_NOT_IN_PART: Final = re.compile(r"[^a-z0-9._-]+")
_DIGIT_RUN: Final = "01234567890123456789"
_SERIAL_LENGTH_MAX: Final = 128
# A hypervisor's disk has whatever serial its owner gave it: it tells disks apart only within its machine.
_VIRTUAL_MODEL: Final = re.compile(r"qemu|vmware|vbox|virtual|msft|xen|persistentdisk|elastic block store")
# The same volume may be attached to several machines over these.
_SHARED_TRANSPORTS: Final = frozenset({"virtio", "iscsi", "fc", "fcoe", "tcp", "rdma"})


class Sameness(Enum):
    """Whether two descriptions are of one disk."""

    SAME = auto()
    DIFFERENT = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class DiskIdentity:
    """The identifying facts, in one spelling each; None where there is none or only a placeholder."""

    wwn: str | None
    serial: str | None
    namespace: int | None
    model: str | None
    size: str | None


def identity_of(
    *, wwn: str | None, serial: str | None, namespace: int | None, model: str | None, size: str | None
) -> DiskIdentity:
    """Bring the facts into one spelling; `size` is bytes as decimal text."""
    return DiskIdentity(canonical_wwn(wwn), _canonical_serial(serial), namespace, _folded(model), size)


def of_disk(disk: Disk) -> DiskIdentity:
    """Return the identity of a reported disk."""
    size = None if disk.size_bytes is None else str(disk.size_bytes)
    return identity_of(wwn=disk.wwn, serial=disk.serial, namespace=disk.namespace, model=disk.model, size=size)


def canonical_wwn(text: str | None) -> str | None:
    """Return the WWN in lower case, NAA ids as `0x5000c500a1b2c3d4`; None for placeholders and other texts."""
    folded = "_".join((known_text(text) or "").casefold().split())
    found = _NAA.fullmatch(folded)
    wwn = f"0x{found['digits']}" if found else folded
    digits = wwn.removeprefix("0x").partition(".")[2] or wwn.removeprefix("0x")
    if not _WWN.fullmatch(wwn) or len(set(digits) - {"-"}) <= 1:
        return None
    return wwn


def compare(one: DiskIdentity, other: DiskIdentity) -> Sameness:
    """Say whether these are one disk.

    A WWN that changes form with the kernel, appears or disappears does not make another disk of the same model,
    serial, namespace and size; another WWN of the same form does, and so does another serial.
    """
    verdicts = (_compare_wwns(one, other), _compare_serials(one, other))
    if Sameness.DIFFERENT in verdicts:
        return Sameness.DIFFERENT
    return Sameness.SAME if Sameness.SAME in verdicts else Sameness.UNKNOWN


def keys(identity: DiskIdentity) -> tuple[object, ...]:
    """Return what to look a disk up by; whoever is found must still compare as the same."""
    by_wwn = () if identity.wwn is None else (identity.wwn,)
    serial = (identity.serial, identity.namespace, identity.model, identity.size)
    return by_wwn if identity.serial is None else (*by_wwn, serial)


def own_text(identity: DiskIdentity) -> str | None:
    """Return the WWN, else `<model>:<serial>[:<namespace>]`, else None: nothing but its place identifies the disk."""
    if identity.wwn is not None:
        return identity.wwn
    if identity.serial is None:
        return None
    parts = (identity.model, identity.serial, identity.namespace)
    return id_part(":".join(_NOT_IN_PART.sub("-", str(part)) for part in parts if part is not None))


def fleet_text(disk: Disk, identity: DiskIdentity) -> str | None:
    """Return the disk's own text where it counts in the whole fleet.

    None where it tells disks apart only within their machine: a hypervisor's, or a volume that others may attach.
    """
    transport = (known_text(disk.transport) or "").casefold()
    if transport in _SHARED_TRANSPORTS or _VIRTUAL_MODEL.search(identity.model or ""):
        return None
    return own_text(identity)


def _compare_wwns(one: DiskIdentity, other: DiskIdentity) -> Sameness:
    if one.wwn is None or other.wwn is None:
        return Sameness.UNKNOWN
    if one.wwn == other.wwn:
        return Sameness.SAME
    return Sameness.DIFFERENT if _form(one.wwn) == _form(other.wwn) else Sameness.UNKNOWN


def _compare_serials(one: DiskIdentity, other: DiskIdentity) -> Sameness:
    if one.serial is None or other.serial is None:
        return Sameness.UNKNOWN
    if one.serial != other.serial or _both_differ(one.namespace, other.namespace):
        return Sameness.DIFFERENT
    same = (one.model, one.namespace, one.size) == (other.model, other.namespace, other.size)
    return Sameness.SAME if same else Sameness.UNKNOWN


def _both_differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one != other


def _form(wwn: str) -> tuple[str, int]:
    """Tell `0x…`, `eui.…` (of 8 or 16 octets), `nvme.…`, `t10.…` and `uuid.…` apart."""
    prefix = "0x" if wwn.startswith("0x") else wwn.partition(".")[0]
    return prefix, len(wwn) if prefix in {"0x", "eui"} else 0


def _canonical_serial(text: str | None) -> str | None:
    serial = _folded(text)
    if serial is None or len(serial) > _SERIAL_LENGTH_MAX or len(set(serial)) == 1 or serial in _DIGIT_RUN:
        return None
    return serial


def _folded(text: str | None) -> str | None:
    """Fold case, and the blanks and underscores that sources write for each other."""
    return " ".join((known_text(text) or "").replace("_", " ").casefold().split()) or None
