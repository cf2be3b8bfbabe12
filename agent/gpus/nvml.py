"""Collecting the `gpus` section from NVML, held against what PCI lists.

`python -m agent.gpus.nvml` writes this host's section to standard output: the child process of `deadline`.
Source: rules 1 and 16, cases A7 to A10, A17, A19, I2 and K2.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import pynvml

from agent.gpus import nvml_api
from agent.gpus.facts import Fact, known, missing, text_fact
from agent.gpus.nvml_api import (
    DRIVER_NOT_LOADED,
    LIB_RM_VERSION_MISMATCH,
    LIBRARY_NOT_FOUND,
    NvmlApi,
    Questions,
    availability_of,
    code_of,
)
from agent.gpus.nvml_device import Reading, read_gpu
from agent.gpus.section import lost_gpu, section, unavailable
from agent.gpus.sysfs import nvidia_gpu_addresses
from domain import pci, sections
from domain.availability import Availability
from domain.documents.gpus import Enumeration, Gpu, GpusSection
from domain.gpu_names import is_display_adapter

GPUS_MAX: Final = 256  # NVML numbers at most 64; a count beyond this is no count
PROC_BYTES_MAX: Final = 4096
_MODULE_VERSION: Final = re.compile(r"Kernel Module(?: for \S+)?\s+([0-9]+(?:\.[0-9]+)+)")


def collect_nvml(nvml: NvmlApi, pci_addresses: Iterable[str], kernel_module: str | None = None) -> GpusSection:
    """Return the section of this host.

    `pci_addresses` are the NVIDIA GPUs that the PCI bus lists, `kernel_module` the text of
    `/proc/driver/nvidia/version`. A host without library or driver has a complete enumeration of no GPU, when PCI
    lists none either; whatever PCI lists and NVML does not reach is lost, never absent.
    """
    listed = frozenset(address for text in pci_addresses if (address := pci.canonical(text)) is not None)
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return _without_nvml(nvml, error, listed, kernel_module)
    try:
        return _counted(nvml, listed, kernel_module)
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def kernel_module_flavour(version_text: str | None) -> Literal["open", "proprietary"] | None:
    """Read the flavour from `/proc/driver/nvidia/version`: `NVRM version: NVIDIA UNIX Open Kernel Module for …`."""
    if version_text is None or "Kernel Module" not in version_text:
        return None
    return "open" if "Open Kernel Module" in version_text else "proprietary"


def _without_nvml(nvml: NvmlApi, error: Exception, listed: frozenset[str], module: str | None) -> GpusSection:
    code = code_of(error)
    if not listed and code in {LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED}:
        return GpusSection(enumeration=Enumeration.COMPLETE)
    problem = f"NVML could not be initialized: {error}"
    if code == LIB_RM_VERSION_MISMATCH:
        # The library tells its version also when it cannot talk to the kernel module.
        library = Questions(nvml).ask(nvml.nvmlSystemGetNVMLVersion).value or "unknown"
        kernel = _module_version(module).value or "unknown"
        problem = f"Driver/library version mismatch: kernel module {kernel}, NVML library {library}"
    if listed:
        problem += f"; PCI lists {len(listed)} NVIDIA GPUs"
    return unavailable(problem, availability_of(code), _module_facts(module))


def _counted(nvml: NvmlApi, listed: frozenset[str], module: str | None) -> GpusSection:
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        problem = f"NVML does not count the GPUs: {error}"
        return unavailable(problem, availability_of(code_of(error)), _module_facts(module))
    if not 0 <= count <= GPUS_MAX:
        return unavailable(f"NVML counts {count} GPUs", Availability.UNKNOWN, _module_facts(module))
    readings, problems = _read_handles(nvml, count)
    lost, lost_problems = _unreached(nvml, sorted(listed - {reading.address for reading in readings}))
    problems += [problem for reading in readings for problem in reading.problems] + lost_problems
    enumeration = Enumeration.INCOMPLETE if problems else Enumeration.COMPLETE
    founds = [reading.found for reading in readings if _is_told(reading.found.value)]
    return section(enumeration, problems, _driver_facts(nvml, module), [*founds, *lost])


def _is_told(found: Gpu | None) -> bool:
    """Say whether the reading is a GPU's: neither a display adapter nor a lost one that PCI places better."""
    if found is None or is_display_adapter(found.name):
        return False
    return not found.lost or found.uuid is not None or found.pci_bus_id is not None


def _read_handles(nvml: NvmlApi, count: int) -> tuple[list[Reading], list[str]]:
    """Read every GPU that NVML hands out; an index that fails does not end the enumeration."""
    readings, causes = [], []
    for index in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            causes.append(str(error))
            continue
        readings.append(read_gpu(nvml, handle, index))
    if not causes:
        return readings, []
    why = ", ".join(sorted(set(causes)))
    return readings, [f"NVML counts {count} GPUs and reaches {len(readings)}: {why}"]


def _unreached(nvml: NvmlApi, addresses: Sequence[str]) -> tuple[list[Fact[Gpu]], list[str]]:
    """Place the GPUs that PCI lists and NVML did not hand out; one withheld from this process is not lost."""
    lost, problems = [], []
    for address in addresses:
        _, code = Questions(nvml).ask_for_code(nvml.nvmlDeviceGetHandleByPciBusId, address)
        match code:
            case None:
                problems.append(f"GPU {address} is reached by its address only")
            case nvml_api.NO_PERMISSION:
                problems.append(f"GPU {address} may not be asked")
            case _:
                lost.append(lost_gpu(address))
                problems.append(f"GPU {address} is lost")
    return lost, problems


def _driver_facts(nvml: NvmlApi, module: str | None) -> dict[str, Fact[Any]]:
    questions = Questions(nvml)
    driver = questions.ask(nvml.nvmlSystemGetDriverVersion)
    cuda = questions.ask(nvml.nvmlSystemGetCudaDriverVersion_v2)
    return {
        **_module_facts(module),
        "driver_version": driver if driver.value is None else text_fact(driver.value),
        "cuda_driver_version": Fact(None, cuda.gaps) if cuda.value is None else _cuda_version(cuda.value),
    }


def _cuda_version(number: int) -> Fact[str]:
    """Read NVML's 1000 * major + 10 * minor."""
    return known(f"{number // 1000}.{number % 1000 // 10}") if number > 0 else missing(Availability.UNKNOWN)


def _module_facts(module: str | None) -> dict[str, Fact[Any]]:
    """Return what the kernel module tells without NVML."""
    flavour, version = kernel_module_flavour(module), _module_version(module)
    facts: dict[str, Fact[Any]] = {} if version.value is None else {"driver_version": version}
    return {**facts, "kernel_module": missing(Availability.UNKNOWN) if flavour is None else known(flavour)}


def _module_version(module: str | None) -> Fact[str]:
    found = _MODULE_VERSION.search(module or "")
    return missing(Availability.UNKNOWN) if found is None else known(found[1])


def _kernel_module_text(proc: Path) -> str | None:
    try:
        with (proc / "driver/nvidia/version").open("rb") as file:
            return file.read(PROC_BYTES_MAX).decode("utf-8", "replace")
    except OSError:
        return None


def main() -> None:
    """Write this host's section to standard output."""
    found = collect_nvml(pynvml, nvidia_gpu_addresses(Path("/sys")), _kernel_module_text(Path("/proc")))
    sys.stdout.buffer.write(sections.encode(found))


if __name__ == "__main__":
    main()
