"""The parts of a GPU that NVML lists one by one: MIG devices and NVLinks."""

from typing import Any, Final

from agent.gpus.facts import Fact, count_fact, document, known, listing, missing, text_fact
from agent.gpus.nvml_api import INVALID_ARGUMENT, NOT_FOUND, Handle, Questions
from domain import pci
from domain.availability import Availability
from domain.documents.gpus import MigInstance, Mode, NvLink

MIG_DEVICES_MAX: Final = 64  # the largest board of today holds 7
LINKS_MAX: Final = 72  # NVML_NVLINK_MAX_LINKS is 36 since driver 590
_MIG_IN_NAME: Final = " MIG "
_NOWHERE: Final = "00000000:00:00.0"


def pci_address(fact: Fact[Any]) -> Fact[str]:
    """Read the address of NVML's PCI information; a zeroed structure is the address of nothing."""
    if fact.value is None:
        return Fact(None, fact.gaps)
    raw = fact.value.busId
    address = pci.canonical(raw.decode("ascii", "replace") if isinstance(raw, bytes) else raw)
    return missing(Availability.UNKNOWN) if address in {None, _NOWHERE} else known(address)


def mig_instances(questions: Questions, handle: Handle, mode: Fact[Mode]) -> tuple[Fact[Any], bool]:
    """Return the MIG devices by (gi, ci), and whether some could not be listed."""
    if mode.value is None and Availability.TEMPORARILY_FAILED in mode.gaps.values():
        return missing(Availability.TEMPORARILY_FAILED), True
    if mode.value is None or not mode.value.current:
        return known(()), False
    nvml = questions.nvml
    slots = questions.ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle)
    if slots.value is None:
        return Fact(None, slots.gaps), True
    placed, cut = [], False
    for slot in range(min(slots.value, MIG_DEVICES_MAX)):
        device, code = questions.ask_for_code(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, slot)
        if code == NOT_FOUND:
            continue  # slots need not be filled in order
        instance = None if code is not None else _mig_instance(questions, device.value)
        if instance is None or instance.value is None:
            cut = True
        else:
            placed.append(((instance.value.gi, instance.value.ci), instance))
    placed.sort(key=lambda item: item[0])
    return listing(instance for _, instance in placed), cut


def _mig_instance(questions: Questions, device: Handle) -> Fact[MigInstance] | None:
    nvml, ask = questions.nvml, questions.ask
    gi = count_fact(ask(nvml.nvmlDeviceGetGpuInstanceId, device).value).value
    ci = count_fact(ask(nvml.nvmlDeviceGetComputeInstanceId, device).value).value
    if gi is None or ci is None:
        return None
    uuid = ask(nvml.nvmlDeviceGetUUID, device)
    attributes = ask(nvml.nvmlDeviceGetAttributes, device)
    facts: dict[str, Fact[Any]] = {
        "gi": known(gi),
        "ci": known(ci),
        "uuid": uuid if uuid.value is None else text_fact(uuid.value),
        "profile": _profile(ask(nvml.nvmlDeviceGetName, device)),
        "memory_mib": attributes if attributes.value is None else count_fact(int(attributes.value.memorySizeMB)),
    }
    return document(MigInstance, facts)


def _profile(name: Fact[str]) -> Fact[str]:
    """Take the profile from the device's name, `NVIDIA H100 80GB HBM3 MIG 1g.10gb`: NVML's word, never computed."""
    if name.value is None:
        return name
    _, _, profile = name.value.rpartition(_MIG_IN_NAME)
    return text_fact(profile) if _MIG_IN_NAME in name.value else missing(Availability.UNKNOWN)


def nvlinks(questions: Questions, handle: Handle) -> Fact[Any]:
    """Return the links by number; a GPU without any says so at its first one."""
    nvml = questions.nvml
    links: list[Fact[NvLink]] = []
    for link in range(LINKS_MAX):
        active, code = questions.ask_for_code(nvml.nvmlDeviceGetNvLinkState, handle, link)
        if code == INVALID_ARGUMENT:
            break  # beyond the last link
        if code is not None and active.gaps[""] is Availability.UNSUPPORTED:
            if link == 0:
                return Fact(None, active.gaps)
            continue  # a link that this board does not wire
        links.append(_link(questions, handle, link, active))
    return listing(links)


def _link(questions: Questions, handle: Handle, link: int, active: Fact[int]) -> Fact[NvLink]:
    state: Fact[str] = Fact(None, active.gaps)
    remote: Fact[str] = known(None)  # an inactive link leads nowhere
    if active.value is not None:
        state = known("active" if active.value else "inactive")
        if active.value:
            remote = pci_address(questions.ask(questions.nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link))
    return document(NvLink, {"link": known(link), "state": state, "remote": remote})
