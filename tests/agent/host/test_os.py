import pytest

from agent.host.answers import Cause, Missing, Notes
from agent.host.files import Fact
from agent.host.os import collect_os, parse_os_release
from agent.host.packages import installed_versions, version_of
from domain.availability import Availability
from domain.documents.os import Distro, Imex, OsSection, Software
from tests.agent.host.trees import Tree


def collected(tree: Tree) -> OsSection:
    return collect_os(tree.source, None, Notes())


def test_os_release_is_parsed_with_its_quotes_and_escapes() -> None:
    content = (
        "# comment\n"
        'NAME="Example \\"Linux\\" \\$HOME"\n'
        'ID=ex\\"007\\"\n'
        "PRETTY_NAME='It is \\n plain'\n"
        "VERSION=a'b c'\"d e\"\n"
        "  VERSION_ID=12 \n"
        "not an assignment\n"
        'EVIL="$(touch /tmp/owned)`id`"\n'
        'OPEN="never closed\n'
    )
    assert parse_os_release(content) == {
        "NAME": 'Example "Linux" $HOME',
        "ID": 'ex"007"',
        "PRETTY_NAME": "It is \\n plain",
        "VERSION": "ab cd e",
        "VERSION_ID": "12",
        "EVIL": "$(touch /tmp/owned)`id`",
        "OPEN": "never closed",
    }


def test_etc_is_read_before_usr_lib(tree: Tree) -> None:
    tree.write("/usr/lib/os-release", "ID=vendor\nVERSION_ID=1\nPRETTY_NAME=Vendor\n")
    assert collected(tree).distro == Distro(id="vendor", version="1", pretty_name="Vendor")
    tree.write("/etc/os-release", "ID=local\nVERSION_ID=2\nPRETTY_NAME=Local\n")
    assert collected(tree).distro == Distro(id="local", version="2", pretty_name="Local")


@pytest.mark.parametrize("version", ["", "VERSION_ID=20250101.0.1\n", "VERSION_ID=20250102.0.9\n"])
def test_a_rolling_distribution_has_no_version(tree: Tree, version: str) -> None:
    tree.write("/etc/os-release", f"ID=arch\nBUILD_ID=rolling\n{version}")
    notes = Notes()
    section = collect_os(tree.source, None, notes)
    assert section.distro == Distro(id="arch")
    assert notes.unavailable()["distro.version"] is Availability.UNSUPPORTED


def test_kvm_is_there_or_denied_or_absent(tree: Tree) -> None:
    assert collected(tree).kvm_available is False
    tree.write("/dev/kvm")
    tree.facts[Fact.OPENS_READ_WRITE, "/dev/kvm"] = True
    assert collected(tree).kvm_available is True
    tree.facts[Fact.OPENS_READ_WRITE, "/dev/kvm"] = Missing(Cause.DENIED, "/dev/kvm: permission denied")
    notes = Notes()
    assert collect_os(tree.source, None, notes).kvm_available is None
    assert notes.unavailable()["kvmAvailable"] is Availability.UNAVAILABLE


def test_runtimes_are_found_by_their_files_and_never_run(tree: Tree) -> None:
    tree.write("/run/k3s/containerd/containerd.sock")
    tree.write("/usr/bin/crio")
    tree.write("/var/lib/crio/version", '"1.31.2"')
    tree.write("/usr/bin/dockerd")
    tree.facts[Fact.PACKAGE_VERSION, "docker-ce"] = "5:27.3.1-1~ubuntu.22.04~jammy"
    notes = Notes()
    assert collect_os(tree.source, None, notes).container_runtimes == (
        Software(name="containerd"),
        Software(name="crio", version="1.31.2"),
        Software(name="docker", version="5:27.3.1-1~ubuntu.22.04~jammy"),
    )
    assert notes.unavailable()["containerRuntimes.0.version"] is Availability.UNSUPPORTED


def test_fabric_manager_and_imex_are_told_by_their_files(tree: Tree) -> None:
    assert (collected(tree).fabric_manager, collected(tree).imex) == (None, None)
    tree.write("/usr/bin/nv-fabricmanager")
    tree.facts[Fact.PACKAGE_VERSION, "nvidia-fabricmanager"] = "580.105.08-1"
    tree.write("/etc/nvidia-imex/nodes_config.cfg", "# the domain\n10.0.0.2\n\n10.0.0.1\n")
    section = collected(tree)
    assert section.fabric_manager == Software(name="nvidia-fabricmanager", version="580.105.08-1")
    assert section.imex == Imex(nodes=("10.0.0.2", "10.0.0.1"))


def test_engines_tell_not_asked_from_none(tree: Tree) -> None:
    assert collect_os(tree.source, None, Notes()).engines is None
    assert collect_os(tree.source, ("/opt/venv",), Notes()).engines == ()
    for name in ("vllm-0.9.2.dist-info", "tensorrt_llm-1.0.0.dist-info", "numpy-2.1.0.dist-info"):
        tree.write(f"/opt/venv/lib/python3.12/site-packages/{name}/METADATA")
    assert collect_os(tree.source, ("/opt/venv",), Notes()).engines == (
        Software(name="tensorrt-llm", version="1.0.0"),
        Software(name="vllm", version="0.9.2"),
    )


def test_only_installed_packages_have_a_version() -> None:
    status = (
        "Package: podman\nStatus: deinstall ok config-files\nVersion: 4.9\n\n"
        "Package: nvidia-imex-580\nStatus: hold ok installed\nDescription: long\n Version: 9\nVersion: 580.105.08-1\n\n"
        "Package: nvidia-imex-570\nStatus: install ok installed\nVersion: 570.1\n"
    )
    versions = installed_versions(status.splitlines(keepends=True))
    assert versions == {"nvidia-imex-580": "580.105.08-1", "nvidia-imex-570": "570.1"}
    assert version_of("nvidia-imex", versions) == "580.105.08-1"
    assert version_of("podman", versions) == ""
