# ruff: noqa: ANN401, N802, N815 - answers are of any type, and the questions have the names of the bindings
"""NVML as mock profiles describe it, asked by the product's own collector."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from uuid import NAMESPACE_OID, uuid5

import pynvml

from agent.gpus.nvml import collect_nvml
from agent.gpus.nvml_api import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlApi
from bench.cases import plain_yaml
from bench.cases.answer import Answer, Concluded, NoReader
from bench.cases.gpus import gpu_lines, verified_gpus
from domain.documents.gpus import GpusSection

_MODES: Final = {"enabled": 1, "disabled": 0}
_ARCHITECTURES: Final = {"turing": 6, "ampere": 7, "ada": 8, "hopper": 9, "blackwell": 10}
_COMPLETED, _HEALTHY = 3, 1
_TOTAL_ECC: Final = ("volatile", "aggregate")

Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProfileNvml:
    """NVML of the devices that a profile lists, each by its answers (`nvmlDeviceGetName` under `Name`)."""

    devices: Sequence[Answers]
    driver: str
    cuda: int

    NVMLError = pynvml.NVMLError
    c_nvmlGpuFabricInfo_v3_t = pynvml.c_nvmlGpuFabricInfo_v3_t
    c_nvmlGpuFabricInfo_v2_t = pynvml.c_nvmlGpuFabricInfo_v2_t

    def nvmlInit(self) -> None:
        """Start."""

    def nvmlShutdown(self) -> None:
        """End."""

    def nvmlSystemGetDriverVersion(self) -> str:
        """Return the profile's driver."""
        return self.driver

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        """Return 1000 * major + 10 * minor."""
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:
        """Return the number of devices."""
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Answers:
        """Return the device's answers."""
        return self.devices[index]

    def nvmlDeviceGetHandleByPciBusId(self, _: str) -> Answers:
        """Know no device by its address: each is handed out by its index."""
        raise pynvml.NVMLError(NOT_FOUND)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Answer a question about a device; what the profile does not tell is not supported."""

        def ask(handle: Answers, *arguments: Any) -> Any:
            answer = handle.get(name.removeprefix("nvmlDeviceGet"))
            if answer is None:
                raise pynvml.NVMLError(NOT_SUPPORTED)
            return answer(*arguments) if callable(answer) else answer

        return ask


def profile(files: Sequence[Path]) -> Answer:
    """Read a mock profile."""
    try:
        told = plain_yaml.parse(files[0].read_text(encoding="utf-8"))
    except ValueError as error:
        return NoReader(f"needs a YAML reader ({error})")
    defaults, links = told["device_defaults"], told.get("nvlink", {})
    devices = [_profile_device(_merged(defaults, own), links) for own in told["devices"]]
    system = told["system"]
    cuda = 1000 * system["cuda_version_major"] + 10 * system["cuda_version_minor"]
    nvml = ProfileNvml(devices, system["driver_version"], cuda)
    return Concluded("collect_nvml, verify, devices_of; NVML answers what the profile says", _lines(nvml))


def servers(files: Sequence[Path]) -> Concluded:
    """Read the servers of go-nvml's mock."""
    told = json.loads(files[0].read_bytes())
    lines: list[str] = ["names, memory and PCI ids are a mock's: some differ from those of the real boards (case A20)"]
    for name, server in told["servers"].items():
        count, board = int(server["gpu"][0]), told["gpus"][server["gpu"][1]]
        devices = [_mock_device(name, index, board) for index in range(count)]
        lines += [f"-- {name}", *_lines(ProfileNvml(devices, server["driver"], server["cuda_int"]))]
    return Concluded("collect_nvml, verify, devices_of; UUIDs and PCI addresses made up, the file has none", lines)


def _lines(nvml: ProfileNvml) -> list[str]:
    addresses = [device["PciInfo"].busId for device in nvml.devices]
    found: GpusSection = collect_nvml(cast("NvmlApi", nvml), addresses)
    return gpu_lines(verified_gpus(found))


def _merged(defaults: Any, own: Any) -> Any:
    if not isinstance(defaults, dict) or not isinstance(own, dict):
        return own
    return {**defaults, **{key: _merged(defaults.get(key), value) for key, value in own.items()}}


def _mock_device(server: str, index: int, board: Mapping[str, Any]) -> Answers:
    return {
        "Name": board["Name"],
        "UUID": f"GPU-{uuid5(NAMESPACE_OID, f'{server}/{index}')}",
        "PciInfo": SimpleNamespace(busId=f"0000:{index + 1:02x}:00.0"),
        "MemoryInfo": SimpleNamespace(total=board["MemoryMB"] << 20),
        "CudaComputeCapability": (board["CudaMajor"], board["CudaMinor"]),
        "MigMode": [0, 0],
    }


def _profile_device(facts: Mapping[str, Any], links: Mapping[str, Any]) -> Answers:
    capability, mig, ecc = facts["compute_capability"], facts.get("mig", {}), facts.get("ecc", {})
    return {
        "Name": facts["name"],
        "UUID": facts["uuid"],
        "Serial": facts["serial"],
        "PciInfo": SimpleNamespace(busId=facts["pci"]["bus_id"]),
        "MemoryInfo": SimpleNamespace(total=facts["memory"]["total_bytes"]),
        "Architecture": _ARCHITECTURES.get(facts["architecture"]),
        "CudaComputeCapability": (capability["major"], capability["minor"]),
        "VbiosVersion": facts["vbios_version"],
        "BoardPartNumber": facts["board_part_number"],
        "EccMode": _modes(ecc),
        "MigMode": _modes(mig),
        "MaxMigDeviceCount": 0,
        "NvLinkState": _link_state(links) if links.get("links_per_gpu") else None,
        "NvLinkRemotePciInfo": _link_remote(links),
        "GpuFabricInfoV": _fabric(facts["fabric"]) if "fabric" in facts else None,
        "RemappedRows": _rows(facts["remapped_rows"]) if "remapped_rows" in facts else None,
        **_retired(facts.get("retired_pages")),
        "TotalEccErrors": lambda _, counter: ecc["errors"][_TOTAL_ECC[counter]]["double_bit"]["total"],
        "CurrPcieLinkWidth": facts["pcie"]["current_link_width"],
        "MaxPcieLinkWidth": facts["pcie"]["max_link_width"],
        "VirtualizationMode": 0,
    }


def _modes(told: Mapping[str, Any]) -> list[int] | None:
    modes = [_MODES.get(str(told.get(key))) for key in ("mode_current", "mode_pending")]
    return None if None in modes else [mode for mode in modes if mode is not None]


def _rows(told: Mapping[str, Any]) -> tuple[int, int, int, int]:
    return told["correctable"], told["uncorrectable"], int(told["pending"]), int(told["failure_occurred"])


def _retired(told: Mapping[str, Any] | None) -> Answers:
    if told is None:
        return {}
    kinds = ("single_bit_retirement", "double_bit_retirement")
    return {
        "RetiredPages": lambda cause: told[kinds[cause]]["addresses"],
        "RetiredPagesPendingStatus": int(told["pending_retirement"]),
    }


def _link_state(links: Mapping[str, Any]) -> Callable[[int], int]:
    def state(link: int) -> int:
        if link >= links["links_per_gpu"]:
            raise pynvml.NVMLError(INVALID_ARGUMENT)
        return int(bool(links.get("switches")))

    return state


def _link_remote(links: Mapping[str, Any]) -> Callable[[int], Any]:
    switches = links.get("switches") or []
    return lambda link: SimpleNamespace(busId=switches[link % len(switches)]["bdf"])


def _fabric(told: Mapping[str, Any]) -> Callable[[Any], None]:
    """Fill the structure; the profile's `auto` is a registration that is done, and a profile without health is fine."""

    def fill(reference: Any) -> None:
        info = reference._obj  # noqa: SLF001 - the only way back from ctypes.byref
        info.state, info.status, info.cliqueId, info.healthMask = _COMPLETED, 0, told["clique_id"], 0
        info.clusterUuid[:] = bytes.fromhex(str(told["cluster_uuid"]).replace("-", ""))
        info.healthSummary = _HEALTHY

    return fill
