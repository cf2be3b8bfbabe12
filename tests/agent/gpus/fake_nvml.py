# ruff: noqa: ANN401, N802, N815 - answers are of any type, and the questions have the names of the bindings
"""An NVML of made-up devices, in the shape of the bindings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pynvml

from agent.gpus.nvml_api import NvmlApi

NOT_SUPPORTED = pynvml.NVMLError(3)
NO_PERMISSION = pynvml.NVMLError(4)
NOT_FOUND = pynvml.NVMLError(6)
TIMEOUT = pynvml.NVMLError(10)
LOST = pynvml.NVMLError(15)
UNKNOWN_ERROR = pynvml.NVMLError(999)

CLUSTER = bytes.fromhex("5a1f000000004000800000000000c0de")


def h100(number: int, **answers: Any) -> dict[str, Any]:
    """Describe one H100 by the answers to NVML's questions, `nvmlDeviceGetName` under `Name`."""
    return {
        "Name": "NVIDIA H100 80GB HBM3",
        "UUID": f"GPU-5555000{number}-aaaa-bbbb-cccc-000000000005",
        "Serial": f"199000000010{number}",
        "PciInfo": SimpleNamespace(busId=f"00000000:{0x18 + number:02X}:00.0".encode()),
        "MemoryAffinity": [1 << number % 2, 0],
        "MemoryInfo": SimpleNamespace(total=81559 << 20),
        "Architecture": 9,
        "CudaComputeCapability": (9, 0),
        "VbiosVersion": "96.00.12.00.01",
        "BoardPartNumber": "692-2G520-0200-000",
        "EccMode": [1, 0],
        "MigMode": [0, 0],
        "NvLinkState": Links({0: "00000000:C1:00.0", 1: None}),
        "GpuFabricInfoV": fabric(state=3, cluster=CLUSTER, clique=7, mask=0xAA, summary=1),
        "RemappedRows": (1, 4, 1, 0),
        "RetiredPages": NOT_SUPPORTED,
        "RetiredPagesPendingStatus": NOT_SUPPORTED,
        "TotalEccErrors": lambda kind, counter: (35, 71)[counter] if kind == 1 else 9,
        "CurrPcieLinkWidth": 8,
        "MaxPcieLinkWidth": 16,
        "VirtualizationMode": 1,
        **answers,
    }


@dataclass(frozen=True)
class Links:
    """Answer NvLinkState by the far ends of the links; one without a far end is inactive, and none lies beyond."""

    remotes: Mapping[int, str | None]

    def __call__(self, link: int) -> int:
        if link not in self.remotes:
            raise pynvml.NVMLError(2)
        return int(self.remotes[link] is not None)


def fabric(
    *, state: int, cluster: bytes, clique: int, mask: int, summary: int, status: int = 0
) -> Callable[[Any], None]:
    def fill(reference: Any) -> None:
        info = reference._obj
        info.state, info.status, info.cliqueId, info.healthMask = state, status, clique, mask
        info.clusterUuid[:] = cluster
        if hasattr(info, "healthSummary"):
            info.healthSummary = summary

    return fill


def mig(gi: int, ci: int, memory: int, profile: str) -> dict[str, Any]:
    return {
        "GpuInstanceId": gi,
        "ComputeInstanceId": ci,
        "UUID": f"MIG-{gi}-{ci}",
        "Name": f"NVIDIA H100 80GB HBM3 MIG {profile}",
        "Attributes": SimpleNamespace(memorySizeMB=memory),
    }


@dataclass
class FakeNvml:
    """Devices by index, one of which may be the error that its handle gives; answers are values, calls or errors."""

    devices: Sequence[dict[str, Any] | Exception] = ()
    init: Exception | None = None
    driver: Any = "580.10.01"
    library: Any = "13.580.10"
    cuda: Any = 13020
    by_pci: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    shut_down: bool = False

    NVMLError = pynvml.NVMLError
    c_nvmlGpuFabricInfo_v3_t = pynvml.c_nvmlGpuFabricInfo_v3_t
    c_nvmlGpuFabricInfo_v2_t = pynvml.c_nvmlGpuFabricInfo_v2_t

    def nvmlInit(self) -> None:
        if self.init is not None:
            raise self.init

    def nvmlShutdown(self) -> None:
        self.shut_down = True

    def nvmlErrorString(self, code: int) -> str:
        return {23: "Insufficient Resources"}[code]

    def nvmlSystemGetDriverVersion(self) -> Any:
        return answered(self.driver)

    def nvmlSystemGetNVMLVersion(self) -> Any:
        return answered(self.library)

    def nvmlSystemGetCudaDriverVersion_v2(self) -> Any:
        return answered(self.cuda)

    def nvmlDeviceGetCount(self) -> int:
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return answered(self.devices[index])

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> Any:
        raise self.by_pci.get(address, NOT_FOUND)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: dict[str, Any]) -> int:
        return len(handle["migs"])

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: dict[str, Any], slot: int) -> Any:
        return answered(handle["migs"][slot])

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: dict[str, Any], link: int) -> Any:
        return SimpleNamespace(busId=handle["NvLinkState"].remotes[link])

    def __getattr__(self, name: str) -> Callable[..., Any]:
        question = name.removeprefix("nvmlDeviceGet")

        def ask(handle: dict[str, Any], *arguments: Any) -> Any:
            self.asked.append(question)
            answer = answered(handle[question])
            return answer(*arguments) if callable(answer) else answer

        return ask


def answered(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def nvml(*devices: dict[str, Any] | Exception, **settings: Any) -> tuple[NvmlApi, FakeNvml]:
    """Return the fake, as the collector sees it and as the test does."""
    fake = FakeNvml(devices, **settings)
    return cast("NvmlApi", fake), fake
