"""The `os` section: read from files that are there, never by running what they belong to."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from agent.host.answers import Cause, Missing, Notes, first_known, known
from agent.host.files import Fact, Source, ask_text, names_in, raw_text, text
from domain.documents.os import Distro, Imex, OsSection, Software

_KVM: Final = "/dev/kvm"
_IMEX_NODES: Final = "/etc/nvidia-imex/nodes_config.cfg"
_IMEX_NODES_MAX: Final = 4_096
_CRIO_VERSION: Final = "/var/lib/crio/version"
# Where each program shows itself (sockets, then binaries), and the Debian packages that carry it.
_RUNTIMES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "containerd": (
        (
            "/run/containerd/containerd.sock",
            "/run/k3s/containerd/containerd.sock",
            "/usr/bin/containerd",
            "/usr/local/bin/containerd",
        ),
        ("containerd.io", "containerd"),
    ),
    "crio": (("/run/crio/crio.sock", "/usr/bin/crio", "/usr/local/bin/crio"), ("cri-o",)),
    "docker": (
        ("/run/docker.sock", "/var/run/docker.sock", "/usr/bin/dockerd", "/usr/local/bin/dockerd"),
        ("docker-ce", "docker.io", "moby-engine"),
    ),
    "podman": (("/run/podman/podman.sock", "/usr/bin/podman", "/usr/local/bin/podman"), ("podman",)),
}
_FABRIC_MANAGER: Final = ("/usr/bin/nv-fabricmanager", "/usr/share/nvidia/nvswitch/fabricmanager.cfg")
_IMEX: Final = ("/usr/bin/nvidia-imex", _IMEX_NODES, "/etc/nvidia-imex/config.cfg")
_ENGINE: Final = re.compile(
    r"(vllm|sglang|tensorrt_llm|lmdeploy|text_generation_server|tritonserver|xinference)-([^-]+)\.dist-info"
)


def collect_os(source: Source, engine_dirs: tuple[str, ...] | None, notes: Notes) -> OsSection:
    """Collect the operating system; `engine_dirs` is None when the node was not asked for engines."""
    return OsSection(
        distro=notes.take("distro", _distro(source, notes)),
        kernel=notes.take("kernel", text(source, "/proc/sys/kernel/osrelease")),
        arch=notes.take("arch", ask_text(source, Fact.MACHINE, "")),
        kvm_available=notes.take("kvmAvailable", _kvm(source)),
        container_runtimes=_container_runtimes(source, notes),
        fabric_manager=_fabric_manager(source, notes),
        imex=_imex(source, notes),
        engines=None if engine_dirs is None else _engines(source, engine_dirs),
    )


def parse_os_release(content: str) -> dict[str, str]:
    """Read os-release(5): shell-like assignments, never executed; a line that is none is skipped."""
    values: dict[str, str] = {}
    for line in content.splitlines():
        name, separator, value = line.strip().partition("=")
        if not separator or name.startswith("#") or not name.isidentifier():
            continue
        values[name] = _unquote(value)
    return values


def _unquote(value: str) -> str:
    """Read one word as a shell would: quotes may begin and end anywhere, a backslash takes the next character."""
    result, quote, characters = "", "", iter(value)
    for character in characters:
        if character == "\\" and quote != "'":
            result += next(characters, "")
        elif character == quote:
            quote = ""
        elif character in "\"'" and not quote:
            quote = character
        else:
            result += character
    return result.strip()


def _distro(source: Source, notes: Notes) -> Distro | Missing:
    content = first_known((text(source, "/etc/os-release"), text(source, "/usr/lib/os-release")))
    if isinstance(content, Missing):
        return content
    values = parse_os_release(content)

    def told(name: str) -> str | Missing:
        return (
            known(f"{name} of os-release", values[name])
            if name in values
            else Missing(Cause.ABSENT, f"os-release has no {name}")
        )

    rolling = values.get("BUILD_ID") == "rolling"
    version = Missing(Cause.ABSENT, "a rolling distribution has no version") if rolling else told("VERSION_ID")
    return Distro(
        id=notes.take("distro.id", told("ID")),
        version=notes.take("distro.version", version),
        pretty_name=notes.take("distro.prettyName", told("PRETTY_NAME")),
    )


def _kvm(source: Source) -> bool | Missing:
    if not source.exists(_KVM):
        return False
    answer = source.ask(Fact.OPENS_READ_WRITE, [_KVM])[_KVM]
    return answer if isinstance(answer, Missing) else bool(answer)


def _version(source: Source, packages: Iterable[str]) -> str | Missing:
    versions = source.ask(Fact.PACKAGE_VERSION, packages)
    found = (answer for answer in versions.values() if not isinstance(answer, Missing) and answer)
    version = next(found, None)
    return (
        Missing(Cause.ABSENT, "no file says the version, and nothing is run to ask")
        if version is None
        else str(version)
    )


def _runtime_version(source: Source, name: str, packages: tuple[str, ...]) -> str | Missing:
    if name == "crio":
        written = text(source, _CRIO_VERSION)
        if not isinstance(written, Missing):
            return written.strip('"')
    return _version(source, packages)


def _container_runtimes(source: Source, notes: Notes) -> tuple[Software, ...]:
    runtimes: list[Software] = []
    for name, (places, packages) in _RUNTIMES.items():
        if _any_exists(source, places):
            version = notes.take(f"containerRuntimes.{len(runtimes)}.version", _runtime_version(source, name, packages))
            runtimes.append(Software(name=name, version=version))
    return tuple(runtimes)


def _fabric_manager(source: Source, notes: Notes) -> Software | None:
    if not _any_exists(source, _FABRIC_MANAGER):
        return None
    version = notes.take("fabricManager.version", _version(source, ["nvidia-fabricmanager"]))
    return Software(name="nvidia-fabricmanager", version=version)


def _imex(source: Source, notes: Notes) -> Imex | None:
    if not _any_exists(source, _IMEX):
        return None
    content = raw_text(source, _IMEX_NODES)
    lines = notes.take("imex.nodes", content)
    # The file's order is the nodes' numbering: it is kept.
    nodes = [line.strip() for line in (lines or "").splitlines() if line.strip() and not line.strip().startswith("#")]
    version = notes.take("imex.version", _version(source, ["nvidia-imex"]))
    return Imex(version=version, nodes=tuple(nodes[:_IMEX_NODES_MAX]))


def _engines(source: Source, folders: tuple[str, ...]) -> tuple[Software, ...]:
    found: set[tuple[str, str]] = set()
    for folder in folders:
        for place in (folder, *_site_packages(source, folder)):
            matches = map(_ENGINE.fullmatch, names_in(source, place))
            found |= {(match[1].replace("_", "-"), match[2]) for match in matches if match}
    return tuple(Software(name=name, version=version) for name, version in sorted(found))


def _site_packages(source: Source, folder: str) -> list[str]:
    pythons = [name for name in names_in(source, f"{folder}/lib") if name.startswith("python3")]
    return [f"{folder}/lib/{name}/{kind}" for name in pythons for kind in ("site-packages", "dist-packages")]


def _any_exists(source: Source, places: Iterable[str]) -> bool:
    # Every place is looked at, so that a capture knows of all of them.
    found = [source.exists(place) for place in places]
    return any(found)
