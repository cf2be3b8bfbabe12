"""Disks and network ports that were replaced, as opposed to renamed: kernel names swap between boots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from domain import disk_identity, mac
from domain.changes.change import Change, ChangeType
from domain.disk_identity import DiskIdentity, Sameness
from domain.documents.disks import Disk, DisksSection
from domain.documents.nics import Nic, NicKind, NicsSection
from domain.facts import facts

Item = TypeVar("Item")

_DISK_FACTS: Final = ("name", "wwn", "serial", "namespace", "model", "size_bytes")
_NIC_FACTS: Final = ("name", "permanent_mac", "pci_bus_id", "driver")


def disk_changes(before: DisksSection, after: DisksSection) -> tuple[Change, ...]:
    """Tell the kernel names that hold another disk, whose old disk is gone and whose new one was not there before."""
    if "disks" in before.unavailable or "disks" in after.unavailable:
        return ()
    old = {disk.name: _Known(disk) for disk in before.disks}
    new = {disk.name: _Known(disk) for disk in after.disks}
    # An identity that reads unknown now may be any of those that seem gone.
    if _nameless(new.values()) > _nameless(old.values()):
        return ()
    moved = _moves(old, new, _disk_keys, _is_same_disk)
    return tuple(
        Change(
            ChangeType.DISK_REPLACED,
            disk_identity.fleet_text(came.disk, came.identity),
            facts(gone.disk, _DISK_FACTS),
            facts(came.disk, _DISK_FACTS),
        )
        for gone, came in _replaced(old, new, moved)
        if disk_identity.compare(gone.identity, came.identity) is Sameness.DIFFERENT
    )


def nic_changes(before: NicsSection, after: NicsSection) -> tuple[Change, ...]:
    """Tell the names that hold another physical port, by its permanent address."""
    if "nics" in before.unavailable or "nics" in after.unavailable:
        return ()
    old, new = _identified_nics(before.nics), _identified_nics(after.nics)
    old_addresses, new_addresses = ({mac.identity(nic.permanent_mac) for nic in nics.values()} for nics in (old, new))
    moved = _moves(old, new, _nic_keys, lambda one, other: _nic_keys(one) == _nic_keys(other))
    return tuple(
        Change(
            ChangeType.NIC_REPLACED, mac.identity(came.permanent_mac), facts(gone, _NIC_FACTS), facts(came, _NIC_FACTS)
        )
        for gone, came in _replaced(old, new, moved)
        if mac.identity(came.permanent_mac) not in old_addresses
        and mac.identity(gone.permanent_mac) not in new_addresses
    )


class _Known:
    """A disk with its identity, worked out once."""

    __slots__ = ("disk", "identity")

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.identity: DiskIdentity = disk_identity.of_disk(disk)


def _nameless(disks: Iterable[_Known]) -> int:
    return sum(known.identity.wwn is None and known.identity.serial is None for known in disks)


def _disk_keys(known: _Known) -> Sequence[object]:
    return disk_identity.keys(known.identity)


def _is_same_disk(one: _Known, other: _Known) -> bool:
    return disk_identity.compare(one.identity, other.identity) is Sameness.SAME


def _identified_nics(nics: Iterable[Nic]) -> dict[str, Nic]:
    return {
        nic.name: nic
        for nic in nics
        if nic.kind is NicKind.PHYSICAL and not nic.removable and mac.identity(nic.permanent_mac) is not None
    }


def _nic_keys(nic: Nic) -> Sequence[object]:
    return (mac.identity(nic.permanent_mac),)


def _moves(
    before: Mapping[str, Item],
    after: Mapping[str, Item],
    keys: Callable[[Item], Sequence[object]],
    is_same: Callable[[Item, Item], bool],
) -> dict[str, str]:
    """Find the items that are on both sides: name after → name before. Linear in their number."""
    moved = {name: name for name in after if name in before and is_same(before[name], after[name])}
    candidates: dict[object, list[str]] = {}
    for name in sorted(before.keys() - moved.keys(), reverse=True):
        for key in keys(before[name]):
            candidates.setdefault(key, []).append(name)
    taken: set[str] = set()
    for name in sorted(after.keys() - moved.keys()):
        for key in keys(after[name]):
            free = candidates.get(key, [])
            while free and free[-1] in taken:
                free.pop()
            if free and is_same(before[free[-1]], after[name]):
                moved[name] = free.pop()
                taken.add(moved[name])
                break
    return moved


def _replaced(
    before: Mapping[str, Item], after: Mapping[str, Item], moved: Mapping[str, str]
) -> Iterator[tuple[Item, Item]]:
    """Yield (gone, new) for every new item that took the place of one that is gone.

    Names shift when a disk fails and another is put in: the new one may hold the name of a disk that moved on to the
    name of the failed one. So follow the names until one whose holder is gone; without one, the item was added.
    """
    went_to = {old: new for new, old in moved.items()}
    for name in sorted(after.keys() - moved.keys()):
        place = name
        while place in went_to:
            place = went_to[place]
        if place in before:
            yield before[place], after[name]
