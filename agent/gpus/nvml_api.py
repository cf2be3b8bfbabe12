# ruff: noqa: N815 - the protocol has the names of the bindings
"""NVML behind a thin protocol, and asking it without one failure spoiling the rest.

Source: `nvml.h` (return codes) and the nvidia-ml-py bindings, whose module `pynvml` has the shape of `NvmlApi`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from agent.gpus.facts import Fact, known, missing
from domain.availability import Availability

T = TypeVar("T")
Handle = Any
"""A device handle is opaque: a pointer in the bindings."""

INVALID_ARGUMENT: Final = 2
NOT_SUPPORTED: Final = 3
NO_PERMISSION: Final = 4
NOT_FOUND: Final = 6
DRIVER_NOT_LOADED: Final = 9
TIMEOUT: Final = 10
LIBRARY_NOT_FOUND: Final = 12
GPU_IS_LOST: Final = 15
LIB_RM_VERSION_MISMATCH: Final = 18
UNKNOWN_ERROR: Final = 999

_BY_CODE: Final[Mapping[int, Availability]] = {
    NOT_SUPPORTED: Availability.UNSUPPORTED,
    13: Availability.UNSUPPORTED,  # function not found: the driver is older than the question
    22: Availability.UNSUPPORTED,  # ECC is not supported on a vGPU
    25: Availability.UNSUPPORTED,  # version of the argument: as 13
    26: Availability.UNSUPPORTED,  # deprecated
    NO_PERMISSION: Availability.UNAVAILABLE,
    8: Availability.UNAVAILABLE,  # external power is missing
    DRIVER_NOT_LOADED: Availability.UNAVAILABLE,
    LIBRARY_NOT_FOUND: Availability.UNAVAILABLE,
    LIB_RM_VERSION_MISMATCH: Availability.UNAVAILABLE,
    TIMEOUT: Availability.TEMPORARILY_FAILED,
    11: Availability.TEMPORARILY_FAILED,  # interrupt request
    GPU_IS_LOST: Availability.TEMPORARILY_FAILED,
    16: Availability.TEMPORARILY_FAILED,  # reset required
    17: Availability.TEMPORARILY_FAILED,  # blocked by the operating system
    19: Availability.TEMPORARILY_FAILED,  # in use
    20: Availability.TEMPORARILY_FAILED,  # out of memory
    23: Availability.TEMPORARILY_FAILED,  # insufficient resources
    27: Availability.TEMPORARILY_FAILED,  # not ready
    UNKNOWN_ERROR: Availability.TEMPORARILY_FAILED,
}


class NvmlApi(Protocol):
    """What the collector asks of NVML; errors are `NVMLError`, whose `value` is the return code."""

    NVMLError: type[Exception]
    c_nvmlGpuFabricInfo_v3_t: Callable[[], Any]
    c_nvmlGpuFabricInfo_v2_t: Callable[[], Any]

    nvmlInit: Callable[[], None]
    nvmlShutdown: Callable[[], None]
    nvmlErrorString: Callable[[int], str]
    nvmlSystemGetDriverVersion: Callable[[], str]
    nvmlSystemGetNVMLVersion: Callable[[], str]
    nvmlSystemGetCudaDriverVersion_v2: Callable[[], int]
    nvmlDeviceGetCount: Callable[[], int]
    nvmlDeviceGetHandleByIndex: Callable[[int], Handle]
    nvmlDeviceGetHandleByPciBusId: Callable[[str], Handle]
    nvmlDeviceGetName: Callable[[Handle], str]
    nvmlDeviceGetUUID: Callable[[Handle], str]
    nvmlDeviceGetSerial: Callable[[Handle], str]
    nvmlDeviceGetPciInfo: Callable[[Handle], Any]
    nvmlDeviceGetMemoryAffinity: Callable[[Handle, int, int], Sequence[int]]
    nvmlDeviceGetMemoryInfo: Callable[[Handle], Any]
    nvmlDeviceGetArchitecture: Callable[[Handle], int]
    nvmlDeviceGetCudaComputeCapability: Callable[[Handle], tuple[int, int]]
    nvmlDeviceGetVbiosVersion: Callable[[Handle], str]
    nvmlDeviceGetBoardPartNumber: Callable[[Handle], str]
    nvmlDeviceGetEccMode: Callable[[Handle], Sequence[int]]
    nvmlDeviceGetMigMode: Callable[[Handle], Sequence[int]]
    nvmlDeviceGetMaxMigDeviceCount: Callable[[Handle], int]
    nvmlDeviceGetMigDeviceHandleByIndex: Callable[[Handle, int], Handle]
    nvmlDeviceGetGpuInstanceId: Callable[[Handle], int]
    nvmlDeviceGetComputeInstanceId: Callable[[Handle], int]
    nvmlDeviceGetAttributes: Callable[[Handle], Any]
    nvmlDeviceGetNvLinkState: Callable[[Handle, int], int]
    nvmlDeviceGetNvLinkRemotePciInfo: Callable[[Handle, int], Any]
    nvmlDeviceGetGpuFabricInfoV: Callable[[Handle, Any], Any]
    nvmlDeviceGetRemappedRows: Callable[[Handle], Sequence[int]]
    nvmlDeviceGetRetiredPages: Callable[[Handle, int], Sequence[int]]
    nvmlDeviceGetRetiredPagesPendingStatus: Callable[[Handle], int]
    nvmlDeviceGetTotalEccErrors: Callable[[Handle, int, int], int]
    nvmlDeviceGetCurrPcieLinkWidth: Callable[[Handle], int]
    nvmlDeviceGetMaxPcieLinkWidth: Callable[[Handle], int]
    nvmlDeviceGetVirtualizationMode: Callable[[Handle], int]
    nvmlDeviceGetComputeRunningProcesses: Callable[[Handle], Sequence[Any]]


def code_of(error: Exception) -> int:
    """Return NVML's return code of an error."""
    value = getattr(error, "value", UNKNOWN_ERROR)
    return value if isinstance(value, int) else UNKNOWN_ERROR


def availability_of(code: int) -> Availability:
    """Say why there is no value, from the return code of the query."""
    return _BY_CODE.get(code, Availability.UNKNOWN)


class Questions:
    """Queries to NVML about one subject, a GPU or the driver.

    Once a GPU is lost or timed out, nothing more is asked about it: each further call could wait for the firmware
    again, and all of them together would use up the deadline of the GPUs that do answer.
    """

    def __init__(self, nvml: NvmlApi) -> None:
        self.nvml = nvml
        self.lost = False
        self._silent = False

    def ask(self, function: Callable[..., T], *arguments: object) -> Fact[T]:
        """Return the answer, or the reason why there is none."""
        answer, code = self.ask_for_code(function, *arguments)
        return answer if code is None else missing(availability_of(code))

    def ask_for_code(self, function: Callable[..., T], *arguments: object) -> tuple[Fact[T], int | None]:
        """Return the answer, and NVML's return code when it is not one."""
        if self._silent:
            return missing(Availability.TEMPORARILY_FAILED), TIMEOUT
        try:
            return known(function(*arguments)), None
        except self.nvml.NVMLError as error:
            code = code_of(error)
        except UnicodeDecodeError:
            # A failing board answers with bytes that are no text.
            code = UNKNOWN_ERROR
        self.lost = self.lost or code == GPU_IS_LOST
        self._silent = code in {GPU_IS_LOST, TIMEOUT}
        return missing(availability_of(code)), code
