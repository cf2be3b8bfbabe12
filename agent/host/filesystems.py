"""The filesystems of the `disks` section: the ones the node fills itself, and the ones it shares with others.

Kernel and overlay filesystems, images mounted read-only, and what container runtimes mount for their workloads are
none of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from agent.host.answers import Cause, Missing, Notes
from agent.host.files import LARGE_READ_BYTES_MAX, Fact, Source, Value, raw_text
from domain.documents.disks import Filesystem

MOUNTINFO_PATH: Final = "/proc/self/mountinfo"
MOUNTS_MAX: Final = 256
_GIB: Final = 1 << 30
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_IMAGES: Final = frozenset({"squashfs", "iso9660", "erofs", "udf", "romfs", "cramfs", "vfat"})
_POOLED: Final = frozenset({"zfs"})
_SHARED: Final = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "beegfs_nodev",
        "ceph",
        "cifs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "quobyte",
        "smb3",
        "virtiofs",
        "wekafs",
    }
)
_LOCAL_FUSE: Final = frozenset(
    {
        "fuse.encfs",
        "fuse.fuse-overlayfs",
        "fuse.gocryptfs",
        "fuse.gvfsd-fuse",
        "fuse.lxcfs",
        "fuse.mergerfs",
        "fuse.portal",
        "fuse.snapfuse",
        "fuse.squashfuse",
    }
)
_WORKLOADS: Final = (
    "/var/lib/kubelet/",
    "/var/lib/docker/",
    "/var/lib/containerd/",
    "/var/lib/containers/",
    "/var/lib/rancher/",
    "/run/",
    "/var/run/",
    "/snap/",
    "/var/snap/",
    "/dev/",
    "/proc/",
    "/sys/",
)
# Single files that a container runtime binds in; their filesystem is the host's.
_BOUND_FILES: Final = frozenset({"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"})


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo."""

    device: str
    root: str
    mount: str
    type: str
    source: str

    @property
    def shared(self) -> bool:
        """Whether other nodes see the same files."""
        return self.type in _SHARED or (self.type.startswith("fuse.") and self.type not in _LOCAL_FUSE)

    @property
    def local(self) -> bool:
        """Whether the node itself fills it: a block device of its own is under it."""
        on_disk = self.source.startswith("/dev/") and not self.source.startswith(("/dev/loop", "/dev/ram", "/dev/zram"))
        return (on_disk and self.type not in _IMAGES and not self.shared) or self.type in _POOLED


def parse_mountinfo(content: str) -> tuple[Mount, ...]:
    """Read mountinfo (proc(5)): six fields, optional ones up to `-`, then type, source and options."""
    mounts = []
    for line in content.splitlines():
        head, separator, tail = line.partition(" - ")
        fields, ends = head.split(" "), tail.split(" ")
        if separator and len(fields) >= 6 and len(ends) >= 2:  # noqa: PLR2004 - the counts of proc(5)
            mounts.append(Mount(fields[2], _unescape(fields[3]), _unescape(fields[4]), ends[0], _unescape(ends[1])))
    return tuple(mounts)


def collect_filesystems(source: Source, notes: Notes) -> tuple[Filesystem, ...]:
    """Collect the filesystems by mount point; a dead server costs its size and nothing else."""
    content = notes.take("filesystems", raw_text(source, MOUNTINFO_PATH, LARGE_READ_BYTES_MAX))
    mounts = kept_mounts(parse_mountinfo(content or ""))
    if len(mounts) > MOUNTS_MAX:
        notes.missing[f"filesystems.{MOUNTS_MAX}"] = Missing(Cause.TOO_LARGE, f"more than {MOUNTS_MAX} filesystems")
        mounts = mounts[:MOUNTS_MAX]
    sizes = source.ask(Fact.FILESYSTEM_BYTES, [mount.mount for mount in mounts if mount.type not in _POOLED])
    return tuple(
        Filesystem(
            mount=mount.mount,
            type=mount.type,
            total_bytes=notes.take(f"filesystems.{index}.totalBytes", _total(mount, sizes.get(mount.mount))),
            shared=mount.shared,
        )
        for index, mount in enumerate(mounts)
    )


def kept_mounts(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Keep one mount of each filesystem, ordered by mount point."""
    # A later mount on the same point hides the earlier one.
    visible = {mount.mount: mount for mount in mounts}
    kept: dict[str, Mount] = {}
    for mount in sorted(visible.values(), key=_preference):
        if not (mount.local or mount.shared) or mount.mount.startswith(_WORKLOADS) or mount.mount in _BOUND_FILES:
            continue
        # Datasets of one pool share its space; binds and subvolumes share the device.
        kept.setdefault(mount.source.split("/", 1)[0] if mount.type in _POOLED else mount.device, mount)
    return tuple(sorted(kept.values(), key=lambda mount: mount.mount))


def _preference(mount: Mount) -> tuple[bool, bool, int, str]:
    return (mount.mount != "/", mount.root != "/", len(mount.mount), mount.mount)


def _total(mount: Mount, size: Value | Missing | None) -> int | Missing:
    if size is None:
        return Missing(Cause.ABSENT, f"{mount.mount}: a {mount.type} dataset has no size, it shares its pool's")
    if isinstance(size, Missing):
        return size
    # A file server's total may move with every write to it, and inventory holds nothing that moves by the second.
    return int(size) // _GIB * _GIB if mount.shared else int(size)


def _unescape(field: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), field)
