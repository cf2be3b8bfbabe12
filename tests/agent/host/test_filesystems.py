from agent.host.answers import Cause, Missing, Notes
from agent.host.files import Fact
from agent.host.filesystems import collect_filesystems, parse_mountinfo
from domain.availability import Availability
from domain.documents.disks import Filesystem
from tests.agent.host.trees import Tree, mount

GIB = 1 << 30


def mounts(tree: Tree, *lines: str) -> list[str]:
    tree.write("/proc/self/mountinfo", "".join(lines))
    return [filesystem.mount for filesystem in collect_filesystems(tree.source, Notes())]


def test_what_the_node_fills_is_kept_and_what_it_shares_is_marked(tree: Tree) -> None:
    tree.facts[Fact.FILESYSTEM_BYTES, "/"] = 5 * GIB + 4096
    tree.facts[Fact.FILESYSTEM_BYTES, "/data sets"] = 900 * GIB + 12345
    root = mount("259:2", "/", "/", "ext4", "/dev/nvme0n1p2")
    shared = mount("0:50", "/", "/data\\040sets", "nfs4", "filer:/data")
    tree.write("/proc/self/mountinfo", shared + root)
    assert collect_filesystems(tree.source, Notes()) == (
        Filesystem(mount="/", type="ext4", total_bytes=5 * GIB + 4096, shared=False),
        # A file server's total moves: whole GiB only.
        Filesystem(mount="/data sets", type="nfs4", total_bytes=900 * GIB, shared=True),
    )


def test_kernel_overlay_image_and_loop_filesystems_are_left_out(tree: Tree) -> None:
    kept = mounts(
        tree,
        mount("0:21", "/", "/proc", "proc", "proc"),
        mount("0:24", "/", "/run", "tmpfs", "tmpfs"),
        mount("0:60", "/", "/merged", "overlay", "overlay"),
        mount("7:1", "/", "/snap/core20/2318", "squashfs", "/dev/loop1"),
        mount("7:2", "/", "/mnt/image", "ext4", "/dev/loop2"),
        mount("259:1", "/", "/boot/efi", "vfat", "/dev/nvme0n1p1"),
        mount("0:70", "/", "/net", "autofs", "auto.net"),
        mount("0:71", "/", "/var/lib/lxcfs", "fuse.lxcfs", "lxcfs"),
        mount("0:72", "/", "/models", "fuse.juicefs", "JuiceFS:models"),
    )
    assert kept == ["/models"]


def test_binds_subvolumes_and_datasets_are_one_filesystem(tree: Tree) -> None:
    kept = mounts(
        tree,
        mount("259:3", "/scratch/a", "/a", "xfs", "/dev/nvme1n1"),
        mount("259:3", "/", "/scratch", "xfs", "/dev/nvme1n1"),
        mount("0:40", "/@home", "/home", "btrfs", "/dev/sda2"),
        mount("0:40", "/@", "/", "btrfs", "/dev/sda2"),
        mount("0:45", "/", "/tank", "zfs", "tank"),
        mount("0:46", "/", "/tank/models", "zfs", "tank/models"),
    )
    assert kept == ["/", "/scratch", "/tank"]


def test_what_runtimes_mount_for_workloads_is_left_out(tree: Tree) -> None:
    kept = mounts(
        tree,
        mount("8:16", "/", "/var/lib/kubelet/pods/0a/volumes/kubernetes.io~csi/pv/mount", "ext4", "/dev/sdb"),
        mount("0:80", "/", "/var/lib/kubelet/pods/0a/volumes/kubernetes.io~nfs/pv", "nfs4", "filer:/pv"),
        mount("259:2", "/docker/0a/hosts", "/etc/hosts", "ext4", "/dev/nvme0n1p2"),
    )
    assert kept == []


def test_a_dead_server_costs_its_size_and_nothing_else(tree: Tree) -> None:
    tree.facts[Fact.FILESYSTEM_BYTES, "/"] = GIB
    tree.facts[Fact.FILESYSTEM_BYTES, "/nfs"] = Missing(Cause.TIMED_OUT, "no answer within 3 s")
    tree.write(
        "/proc/self/mountinfo", mount("8:1", "/", "/", "ext4", "/dev/sda1") + mount("0:9", "/", "/nfs", "nfs", "f:/x")
    )
    notes = Notes()
    assert [item.total_bytes for item in collect_filesystems(tree.source, notes)] == [GIB, None]
    assert notes.unavailable() == {"filesystems.1.totalBytes": Availability.TEMPORARILY_FAILED}


def test_a_pooled_dataset_has_no_size_of_its_own(tree: Tree) -> None:
    tree.write("/proc/self/mountinfo", mount("0:45", "/", "/tank", "zfs", "tank"))
    notes = Notes()
    (filesystem,) = collect_filesystems(tree.source, notes)
    assert filesystem.total_bytes is None
    assert notes.unavailable() == {"filesystems.0.totalBytes": Availability.UNSUPPORTED}


def test_a_later_mount_hides_the_earlier_one(tree: Tree) -> None:
    tree.write(
        "/proc/self/mountinfo", mount("8:1", "/", "/mnt", "ext4", "/dev/sda1") + mount("0:9", "/", "/mnt", "tmpfs", "t")
    )
    assert collect_filesystems(tree.source, Notes()) == ()


def test_lines_that_are_no_mounts_are_skipped() -> None:
    assert parse_mountinfo("garbage\n1 2 3 - ext4\n") == ()
