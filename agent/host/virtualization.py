"""Whether the machine is real, and if not, what makes it."""

from collections.abc import Iterator
from typing import Final

from agent.host.answers import Cause, Missing
from agent.host.files import LARGE_READ_BYTES_MAX, Fact, Source, ask_text, raw_text, text

_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"  # PROC_PID_INIT_INO of linux/proc_ns.h
# Folded beginnings of "vendor product", as the firmware of each hypervisor sets them.
_FIRMWARE_NAMES: Final = (
    ("qemu", "qemu"),
    ("kvm", "kvm"),
    ("amazon ec2", "amazon"),
    ("google google compute engine", "google"),
    ("microsoft corporation virtual machine", "microsoft"),
    ("vmware", "vmware"),
    ("innotek gmbh", "oracle"),
    ("oracle corporation virtualbox", "oracle"),
    ("xen", "xen"),
    ("bochs", "bochs"),
    ("parallels", "parallels"),
    ("openstack", "kvm"),
    ("alibaba cloud alibaba cloud ecs", "kvm"),
    ("digitalocean", "kvm"),
    ("hetzner vserver", "kvm"),
    ("apple inc. apple virtualization", "apple"),
    ("bhyve", "bhyve"),
    ("nutanix ahv", "kvm"),
)
# The clock that a hypervisor offers tells its kind where the firmware has no name (such as Firecracker).
_CLOCKS: Final = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"))
_TREE_NAMES: Final = (("linux,kvm", "kvm"), ("xen,xen", "xen"), ("vmware", "vmware"))


def virtualization(source: Source) -> str | Missing:
    """Return `none` on bare metal, else the container technology or the hypervisor (names as systemd's)."""
    return _container(source) or _hypervisor(source)


def _container(source: Source) -> str | None:
    # A root filesystem made from a container image keeps the markers; in the first PID namespace they mean nothing.
    namespace = source.link("/proc/self/ns/pid")
    if namespace == _INITIAL_PID_NAMESPACE:
        return None
    variable = ask_text(source, Fact.CONTAINER_VARIABLE, "")
    if not isinstance(variable, Missing):
        return variable
    if source.exists("/run/.containerenv"):
        return "podman"
    if source.exists("/.dockerenv"):
        return "docker"
    return None if isinstance(namespace, Missing) else "container"


def _hypervisor(source: Source) -> str | Missing:
    if "control_d" in _text_or_blank(source, "/proc/xen/capabilities"):
        return "none"  # Xen's first domain drives the hardware itself
    firmware = _firmware(source)
    name = _text_or_blank(source, "/sys/hypervisor/type") or next(_names(source, firmware), None)
    cpuinfo = raw_text(source, "/proc/cpuinfo", LARGE_READ_BYTES_MAX)
    flags = None if isinstance(cpuinfo, Missing) else _first_flags(cpuinfo)
    if flags is not None:
        return (name or "hypervisor") if "hypervisor" in flags or name not in {None, "amazon", "google"} else "none"
    if name is not None:
        return name if ".metal" not in firmware else "none"
    if firmware or source.exists("/sys/firmware/devicetree/base/model"):
        return "none"
    return Missing(Cause.BLANK, "neither processor nor firmware says whether the machine is virtual")


def _names(source: Source, firmware: str) -> Iterator[str]:
    yield from (name for start, name in _FIRMWARE_NAMES if firmware.startswith(start))
    tree = _text_or_blank(source, "/sys/firmware/devicetree/base/hypervisor/compatible")
    yield from (name for start, name in _TREE_NAMES if tree.startswith(start))
    clocks = _text_or_blank(source, "/sys/devices/system/clocksource/clocksource0/available_clocksource")
    yield from (name for start, name in _CLOCKS if any(clock.startswith(start) for clock in clocks.split()))


def _firmware(source: Source) -> str:
    vendor = _text_or_blank(source, "/sys/class/dmi/id/sys_vendor")
    product = _text_or_blank(source, "/sys/class/dmi/id/product_name")
    return f"{vendor} {product}".strip().casefold()


def _text_or_blank(source: Source, path: str) -> str:
    content = text(source, path)
    return "" if isinstance(content, Missing) else content


def _first_flags(cpuinfo: str) -> frozenset[str] | None:
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":  # x86; others list features and say nothing of a hypervisor
            return frozenset(value.split())
    return None
