import os
from pathlib import Path
from threading import Barrier, Thread
from uuid import UUID, uuid4

import pytest

from agent.failures import NoIdentity, WronglyCalled
from agent.host.answers import Cause, Missing
from agent.host.files import Fact
from agent.identity import boot_id, default_state_dir, find_identity, hostname, in_container, node_identity
from domain.identity_key import IdentityKey, KeySource, NeedsState
from tests.agent.host.trees import Tree

INITIAL = "pid:[4026531836]"


def never() -> UUID:
    raise AssertionError("no key may be made here")


@pytest.fixture
def machine(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "root")
    tree.write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    namespace = tree.root / "proc/self/ns/pid"
    namespace.parent.mkdir(parents=True)
    namespace.symlink_to(INITIAL)
    return tree


def test_a_machine_is_known_by_its_machine_id_and_nothing_is_written(machine: Tree, tmp_path: Path) -> None:
    key = node_identity(None, machine.source, {}, tmp_path / "state", never)
    assert key.source is KeySource.MACHINE_ID
    assert not (tmp_path / "state").exists()


def test_every_sign_of_a_container_is_enough(machine: Tree) -> None:
    assert not in_container(machine.source, {})
    assert in_container(machine.source, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    machine.facts[Fact.CONTAINER_VARIABLE, ""] = "podman"
    assert in_container(machine.source, {})
    machine.facts[Fact.CONTAINER_VARIABLE, ""] = Missing(Cause.DENIED, "permission denied")
    assert not in_container(machine.source, {})
    machine.write("/.dockerenv")
    assert in_container(machine.source, {})


def test_another_pid_namespace_is_a_container(machine: Tree) -> None:
    (machine.root / "proc/self/ns/pid").unlink()
    (machine.root / "proc/self/ns/pid").symlink_to("pid:[4026532999]")
    assert in_container(machine.source, {})


def test_a_container_keeps_a_key_of_its_own_for_its_owner_only(machine: Tree, tmp_path: Path) -> None:
    machine.write("/.dockerenv")
    state = tmp_path / "state"
    first = node_identity(None, machine.source, {}, state, uuid4)
    assert first.source is KeySource.STATE
    assert node_identity(None, machine.source, {}, state, never) == first
    assert [path.name for path in state.iterdir()] == ["identity"]
    assert (state / "identity").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700


def test_agents_that_start_at_once_agree_on_one_key(machine: Tree, tmp_path: Path) -> None:
    machine.write("/.dockerenv")
    barrier = Barrier(8)
    keys: list[IdentityKey] = []

    def start() -> None:
        barrier.wait(5)
        keys.append(node_identity(None, machine.source, {}, tmp_path / "state", uuid4))

    threads = [Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(keys) == 8
    assert len(set(keys)) == 1


def test_a_spoiled_key_is_an_error_and_not_a_new_node(machine: Tree, tmp_path: Path) -> None:
    machine.write("/.dockerenv")
    (tmp_path / "identity").write_text("half a ke")
    with pytest.raises(NoIdentity, match="remove it to make this a new node"):
        node_identity(None, machine.source, {}, tmp_path, never)


def test_a_state_folder_that_cannot_be_made_says_what_to_give(machine: Tree, tmp_path: Path) -> None:
    machine.write("/.dockerenv")
    (tmp_path / "file").touch()
    with pytest.raises(NoIdentity, match="--identity, or --state-dir"):
        node_identity(None, machine.source, {}, tmp_path / "file" / "state", uuid4)


def test_looking_for_the_identity_makes_none(machine: Tree, tmp_path: Path) -> None:
    machine.write("/.dockerenv")
    assert isinstance(find_identity(None, machine.source, {}, tmp_path / "state"), NeedsState)
    assert not (tmp_path / "state").exists()


def test_an_explicit_key_that_is_none_is_a_wrong_call(machine: Tree, tmp_path: Path) -> None:
    with pytest.raises(WronglyCalled, match="printable"):
        node_identity("two words", machine.source, {}, tmp_path, never)


def test_state_is_kept_where_the_system_keeps_it() -> None:
    assert default_state_dir({}, root=True) == Path("/var/lib/fleetgraph-agent")
    assert default_state_dir({"XDG_STATE_HOME": "/home/one/state"}, root=False) == Path(
        "/home/one/state/fleetgraph-agent"
    )
    home = os.path.expanduser("~")  # noqa: PTH111 - what pathlib is compared with
    assert default_state_dir({}, root=False) == Path(home, ".local/state/fleetgraph-agent")


def test_boot_and_name_are_the_kernels(machine: Tree) -> None:
    assert (boot_id(machine.source), hostname(machine.source)) == (None, None)
    machine.write("/proc/sys/kernel/random/boot_id", "5a1f0000-0000-4000-8000-00000000c0de\n")
    machine.write("/proc/sys/kernel/hostname", "gpu-7\n")
    assert boot_id(machine.source) == "5a1f0000-0000-4000-8000-00000000c0de"
    assert hostname(machine.source) == "gpu-7"
