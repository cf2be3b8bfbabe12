"""The fingerprint: changes with driver or hardware, and with nothing transient."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.availability import Availability
from domain.documents.document import Section
from domain.documents.gpus import EccUncorrectable, Enumeration, Gpu, GpuHealth, GpusSection
from domain.documents.os import Distro, OsSection, Software
from domain.fingerprint import fingerprint

OS: Final = OsSection(distro=Distro(id="debian", version="12"), kernel="6.8.0-60", arch="x86_64")
ONE: Final = Gpu(
    uuid="GPU-1", name="NVIDIA H100", pci_bus_id="00000000:18:00.0", vram_mib=81559, compute_capability="9.0", index=0
)
TWO: Final = Gpu(
    uuid="GPU-2", name="NVIDIA H100", pci_bus_id="00000000:2A:00.0", vram_mib=81559, compute_capability="9.0", index=1
)
GPUS: Final = GpusSection(
    enumeration=Enumeration.COMPLETE, driver_version="580.95.05", cuda_driver_version="13.0", gpus=(ONE, TWO)
)
SECTIONS: Final[dict[str, Section]] = {"os": OS, "gpus": GPUS}
replace = msgspec.structs.replace


def _of(changed: Mapping[str, Section] = SECTIONS, key: str = "n1") -> str | None:
    return fingerprint(key, {**SECTIONS, **changed})


def _one(**changed: Any) -> GpusSection:  # noqa: ANN401 - any fact
    return replace(GPUS, gpus=(replace(ONE, **changed), TWO))


@pytest.mark.parametrize(
    "changed",
    [
        {"os": replace(OS, kernel="6.8.0-62")},
        {"os": replace(OS, arch="aarch64")},
        {"os": replace(OS, distro=Distro(id="debian", version="13"))},
        {"gpus": replace(GPUS, driver_version="590.44.01")},
        {"gpus": replace(GPUS, cuda_driver_version="13.1")},
        {"gpus": replace(GPUS, gpus=(ONE,))},
        {"gpus": _one(uuid="GPU-3")},
        {"gpus": _one(name="NVIDIA H200")},
        {"gpus": _one(pci_bus_id="00000000:3A:00.0")},
        {"gpus": _one(vram_mib=143771)},
        {"gpus": _one(compute_capability="10.0")},
    ],
)
def test_driver_and_hardware_change_it(changed: dict[str, Section]) -> None:
    assert _of(changed) not in {None, _of()}


def test_it_is_the_nodes_own() -> None:
    assert _of(key="n1") != _of(key="n2")


@pytest.mark.parametrize(
    "changed",
    [
        {"gpus": replace(GPUS, gpus=(TWO, ONE))},
        {"gpus": _one(index=7)},
        {"gpus": _one(health=GpuHealth(ecc_uncorrectable=EccUncorrectable(volatile=3)))},
        {"gpus": _one(pci_bus_id="18:00.0")},
        {"os": replace(OS, container_runtimes=(Software(name="containerd", version="2.1"),))},
        {"os": replace(OS, distro=Distro(id="debian", version="12", pretty_name="Debian GNU/Linux 12"))},
    ],
)
def test_what_is_transient_or_no_hardware_does_not(changed: dict[str, Section]) -> None:
    assert _of(changed) == _of() is not None


@pytest.mark.parametrize(
    "silent",
    [
        {"gpus": replace(GPUS, enumeration=Enumeration.INCOMPLETE)},
        {"gpus": _one(lost=True, vram_mib=None)},
        {"gpus": replace(_one(vram_mib=None), unavailable={"gpus.0.vramMiB": Availability.TEMPORARILY_FAILED})},
        {"gpus": replace(GPUS, driver_version=None, unavailable={"driverVersion": Availability.TEMPORARILY_FAILED})},
        {"os": replace(OS, kernel=None, unavailable={"kernel": Availability.UNAVAILABLE})},
    ],
)
def test_what_cannot_be_read_now_gives_none(silent: dict[str, Section]) -> None:
    assert _of(silent) is None


@given(st.sampled_from(["os", "gpus"]))
def test_a_section_that_did_not_come_gives_none(name: str) -> None:
    assert fingerprint("n1", {other: section for other, section in SECTIONS.items() if other != name}) is None
