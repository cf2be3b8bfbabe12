"""Which of the listed GPUs are some to compute with."""

from domain.availability import Availability
from domain.compute_gpus import without_display_adapters
from domain.documents.disks import DisksSection
from domain.documents.gpus import Gpu, GpusSection

A100 = Gpu(uuid="GPU-1", name="NVIDIA A100-SXM4-80GB")
SCREEN = Gpu(uuid="GPU-2", name="NVIDIA DGX Display")
UNSUPPORTED, FAILED = Availability.UNSUPPORTED, Availability.TEMPORARILY_FAILED


def test_a_display_adapter_is_none_and_what_is_not_known_of_the_others_stays_theirs() -> None:
    listed = GpusSection(
        gpus=(SCREEN, A100, SCREEN),
        unavailable={
            "gpus": FAILED,
            "driverVersion": FAILED,
            "gpus.0.serial": UNSUPPORTED,
            "gpus.1.migMode.current": UNSUPPORTED,
            "gpus.1": FAILED,
            "gpus.2": FAILED,
        },
    )
    assert without_display_adapters(listed) == GpusSection(
        gpus=(A100,),
        unavailable={
            "gpus": FAILED,
            "driverVersion": FAILED,
            "gpus.0.migMode.current": UNSUPPORTED,
            "gpus.0": FAILED,
        },
    )


def test_whatever_else_is_listed_is_a_gpu() -> None:
    nameless = GpusSection(gpus=(A100, Gpu(), Gpu(name="Orin (nvgpu)"), Gpu(name="N/A")))
    assert without_display_adapters(nameless) is nameless
    assert without_display_adapters(DisksSection()) == DisksSection()
