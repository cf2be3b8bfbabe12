# ruff: noqa: ANN401 - the answers of the fake are of any type
import itertools
from typing import Any

import pynvml
import pytest
from msgspec.structs import replace

from agent.gpus.nvml import collect_nvml, kernel_module_flavour
from agent.gpus.nvml_api import NvmlApi
from domain.availability import Availability
from domain.digest import section_sha256
from domain.documents.gpus import (
    EccUncorrectable,
    Enumeration,
    Fabric,
    Gpu,
    GpuHealth,
    GpusSection,
    LinkWidth,
    MigInstance,
    Mode,
    NvLink,
    RetiredPages,
    RowRemap,
)
from domain.sections import encode, verify
from tests.agent.gpus.fake_nvml import (
    CLUSTER,
    LOST,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_SUPPORTED,
    TIMEOUT,
    UNKNOWN_ERROR,
    Links,
    fabric,
    h100,
    mig,
    nvml,
)

PCI = ("0000:18:00.0", "0000:19:00.0", "0000:1a:00.0", "0000:1b:00.0")
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.10.01  Release Build  (builder)  Mon Jan 1"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"


def collect(*devices: dict[str, Any] | Exception, listed: int | None = None, **settings: Any) -> GpusSection:
    api, _ = nvml(*devices, **settings)
    return collect_nvml(api, PCI[: len(devices) if listed is None else listed], OPEN)


def only(**answers: Any) -> Gpu:
    (gpu,) = collect(h100(0, **answers)).gpus
    return gpu


def test_every_fact_of_a_gpu_is_read() -> None:
    found = collect(h100(0))
    assert found.enumeration is Enumeration.COMPLETE
    assert (found.driver_version, found.cuda_driver_version, found.kernel_module) == ("580.10.01", "13.2", "open")
    assert found.gpus == (
        Gpu(
            uuid="GPU-55550000-aaaa-bbbb-cccc-000000000005",
            index=0,
            name="NVIDIA H100 80GB HBM3",
            serial="1990000000100",
            pci_bus_id="00000000:18:00.0",
            numa_node=0,
            vram_mib=81559,
            unified_memory=False,
            architecture="Hopper",
            compute_capability="9.0",
            vbios="96.00.12.00.01",
            part_number="692-2G520-0200-000",
            ecc_mode=Mode(current=True, pending=False),
            mig_mode=Mode(current=False, pending=False),
            nvlinks=(NvLink(link=0, state="active", remote="00000000:C1:00.0"), NvLink(link=1, state="inactive")),
            fabric=Fabric(
                state="completed",
                status="success",
                cluster_uuid="5a1f0000-0000-4000-8000-00000000c0de",
                clique_id=7,
                health="healthy",
            ),
            health=GpuHealth(
                row_remap=RowRemap(correctable=1, uncorrectable=4, pending=True, failure=False),
                ecc_uncorrectable=EccUncorrectable(volatile=35, aggregate=71),
            ),
            pcie_link_width=LinkWidth(current=8, max=16),
            virtualization="pass_through",
        ),
    )
    assert found.unavailable == {"gpus.0.health.retiredPages": Availability.UNSUPPORTED}


def test_the_section_is_accepted_as_the_server_checks_it() -> None:
    content = encode(collect(*(h100(number) for number in range(4))))
    assert isinstance(verify("gpus", section_sha256(content), content), GpusSection)


def test_nvml_is_shut_down_also_when_counting_fails() -> None:
    api, fake = nvml(h100(0))
    collect_nvml(api, PCI[:1])
    assert fake.shut_down


@pytest.mark.parametrize("code", [12, 9])
def test_a_host_without_driver_and_without_gpus_is_complete_and_has_none(code: int) -> None:
    api, _ = nvml(init=pynvml.NVMLError(code))
    assert encode(collect_nvml(api, ())) == b'{"enumeration":"complete"}'


@pytest.mark.parametrize("code", [12, 9])
def test_gpus_that_pci_lists_without_a_driver_are_unavailable(code: int) -> None:
    found = collect(init=pynvml.NVMLError(code), listed=2)
    assert (found.enumeration, found.gpus) == (Enumeration.UNAVAILABLE, ())
    assert found.reason is not None
    assert found.reason.endswith("PCI lists 2 NVIDIA GPUs")
    assert found.unavailable["gpus"] is Availability.UNAVAILABLE


def test_a_failing_nvml_is_unavailable_even_when_pci_lists_nothing() -> None:
    api, _ = nvml(init=UNKNOWN_ERROR)
    found = collect_nvml(api, ())
    assert found.enumeration is Enumeration.UNAVAILABLE
    assert found.unavailable["gpus"] is Availability.TEMPORARILY_FAILED


def test_a_version_mismatch_names_both_versions() -> None:
    api, _ = nvml(init=pynvml.NVMLError(18), library="570.195")
    found = collect_nvml(api, PCI[:1], PROPRIETARY)
    assert found.enumeration is Enumeration.UNAVAILABLE
    assert found.reason == (
        "Driver/library version mismatch: kernel module 535.54.03, NVML library 570.195; PCI lists 1 NVIDIA GPUs"
    )
    assert (found.driver_version, found.kernel_module) == ("535.54.03", "proprietary")
    assert "driverVersion" not in found.unavailable
    assert found.unavailable["cudaDriverVersion"] is Availability.UNAVAILABLE


def test_one_lost_handle_leaves_the_other_gpus_and_is_placed_by_pci() -> None:
    found = collect(h100(0), LOST, h100(2), h100(3), by_pci={"00000000:19:00.0": LOST})
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason == "GPU 00000000:19:00.0 is lost; NVML counts 4 GPUs and reaches 3: GPU is lost"
    assert [(gpu.pci_bus_id, gpu.index, gpu.lost) for gpu in found.gpus] == [
        ("00000000:18:00.0", 0, None),
        ("00000000:19:00.0", None, True),
        ("00000000:1A:00.0", 2, None),
        ("00000000:1B:00.0", 3, None),
    ]
    assert found.unavailable["gpus.1.uuid"] is Availability.TEMPORARILY_FAILED


def test_a_gpu_that_pci_lists_and_nvml_does_not_count_is_lost() -> None:
    found = collect(h100(0), listed=2)
    assert (found.enumeration, found.reason) == (Enumeration.INCOMPLETE, "GPU 00000000:19:00.0 is lost")
    assert found.gpus[1].lost is True


def test_a_gpu_withheld_from_this_process_is_incomplete_but_not_lost() -> None:
    found = collect(h100(0), NO_PERMISSION, by_pci={"00000000:19:00.0": NO_PERMISSION})
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason is not None
    assert "GPU 00000000:19:00.0 may not be asked" in found.reason
    assert len(found.gpus) == 1


def test_a_gpu_lost_while_it_is_asked_keeps_what_it_told_and_is_asked_nothing_more() -> None:
    api, fake = nvml(h100(0, Serial=LOST), h100(1))
    found = collect_nvml(api, PCI[:2])
    assert (found.enumeration, found.reason) == (Enumeration.INCOMPLETE, "GPU 00000000:18:00.0 is lost")
    lost, good = found.gpus
    assert (lost.lost, lost.uuid, lost.vram_mib) == (True, "GPU-55550000-aaaa-bbbb-cccc-000000000005", 81559)
    assert good.lost is None
    assert fake.asked.count("VbiosVersion") == 1
    reasons = {why for path, why in found.unavailable.items() if path.startswith("gpus.0.")}
    assert reasons == {Availability.TEMPORARILY_FAILED}


def test_a_gpu_lost_before_its_address_is_told_once_by_pci() -> None:
    found = collect(h100(0), h100(1, PciInfo=LOST))
    assert [(gpu.pci_bus_id, gpu.lost) for gpu in found.gpus] == [
        ("00000000:18:00.0", None),
        ("00000000:19:00.0", True),
    ]


def test_a_gpu_that_times_out_is_asked_nothing_more_and_costs_itself_only() -> None:
    api, fake = nvml(h100(0, Serial=TIMEOUT), h100(1))
    found = collect_nvml(api, PCI[:2])
    assert found.enumeration is Enumeration.COMPLETE  # it told its UUID: it is there
    assert found.unavailable["gpus.0.vbios"] is Availability.TEMPORARILY_FAILED
    assert found.gpus[1].vbios == "96.00.12.00.01"
    assert fake.asked.count("VbiosVersion") == 1


def test_a_gpu_that_does_not_tell_its_uuid_makes_none_go_missing() -> None:
    found = collect(h100(0, UUID=UNKNOWN_ERROR))
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason == "GPU 00000000:18:00.0 does not tell its UUID"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (3, Availability.UNSUPPORTED),
        (13, Availability.UNSUPPORTED),
        (4, Availability.UNAVAILABLE),
        (999, Availability.TEMPORARILY_FAILED),
        (16, Availability.TEMPORARILY_FAILED),
        (21, Availability.UNKNOWN),
    ],
)
def test_a_failing_question_says_why_there_is_no_value(code: int, expected: Availability) -> None:
    found = collect(h100(0, Serial=pynvml.NVMLError(code)))
    assert found.gpus[0].serial is None
    assert found.unavailable["gpus.0.serial"] is expected
    assert found.enumeration is Enumeration.COMPLETE


@pytest.mark.parametrize("blank", [0x7FFFFFF0, 0x7FFFFFF2, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFF0])
def test_a_blank_code_is_unknown_and_zero_is_a_value(blank: int) -> None:
    found = collect(h100(0, CurrPcieLinkWidth=blank, RemappedRows=(0, blank, 0, 0)))
    (gpu,) = found.gpus
    assert gpu.pcie_link_width == LinkWidth(max=16)
    assert found.unavailable["gpus.0.pcieLinkWidth.current"] is Availability.UNKNOWN
    assert gpu.health is not None
    assert gpu.health.row_remap == RowRemap(correctable=0, pending=False, failure=False)


def test_a_text_that_stands_for_no_value_is_unknown() -> None:
    assert only(Serial="[N/A]").serial is None


def test_garbage_of_a_failing_board_is_no_text() -> None:
    def garbage() -> str:
        return b"\xff\xfe".decode()

    found = collect(h100(0, Serial=garbage))
    assert found.unavailable["gpus.0.serial"] is Availability.TEMPORARILY_FAILED


def partitioned(*migs: Any, **answers: Any) -> dict[str, Any]:
    return h100(0, MigMode=[1, 1], migs=migs, NvLinkState=NOT_SUPPORTED, **answers)


def test_mig_devices_are_read_by_instance_with_nvmls_own_profile() -> None:
    found = collect(
        partitioned(
            mig(9, 0, 16384, "1g.18gb+me"), NOT_FOUND, mig(2, 1, 71424, "2c.3g.71gb"), mig(2, 0, 71424, "1c.3g.71gb")
        )
    )
    assert found.enumeration is Enumeration.COMPLETE
    assert found.gpus[0].mig_instances == (
        MigInstance(gi=2, ci=0, uuid="MIG-2-0", profile="1c.3g.71gb", memory_mib=71424),
        MigInstance(gi=2, ci=1, uuid="MIG-2-1", profile="2c.3g.71gb", memory_mib=71424),
        MigInstance(gi=9, ci=0, uuid="MIG-9-0", profile="1g.18gb+me", memory_mib=16384),
    )
    assert found.unavailable["gpus.0.nvlinks"] is Availability.UNSUPPORTED


def test_mig_devices_that_could_not_all_be_listed_are_an_incomplete_enumeration() -> None:
    found = collect(partitioned(mig(2, 0, 40448, "3g.40gb"), UNKNOWN_ERROR))
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason == "the MIG devices of GPU 00000000:18:00.0 could not all be listed"


def test_a_mig_device_with_blank_ids_is_not_listed_under_them() -> None:
    found = collect(partitioned(mig(0xFFFFFFFF, 0, 40448, "3g.40gb")))
    assert (found.enumeration, found.gpus[0].mig_instances) == (Enumeration.INCOMPLETE, ())


def test_a_mig_name_without_a_profile_leaves_it_unknown() -> None:
    device = mig(2, 0, 40448, "3g.40gb") | {"Name": "NVIDIA H100 80GB HBM3"}
    assert only(MigMode=[1, 1], migs=[device]).mig_instances[0].profile is None


def test_nvlinks_end_at_the_last_link_and_name_the_far_end() -> None:
    gpu = only(NvLinkState=Links({0: "00000000:C1:00.0", 2: None, 1: "0000:c2:00.0"}))
    assert gpu.nvlinks == (
        NvLink(link=0, state="active", remote="00000000:C1:00.0"),
        NvLink(link=1, state="active", remote="00000000:C2:00.0"),
        NvLink(link=2, state="inactive"),
    )


def test_a_zeroed_far_end_is_the_address_of_nothing() -> None:
    found = collect(h100(0, NvLinkState=Links({0: "00000000:00:00.0"})))
    assert found.gpus[0].nvlinks == (NvLink(link=0, state="active"),)
    assert found.unavailable["gpus.0.nvlinks.0.remote"] is Availability.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (fabric(state=3, cluster=bytes(16), clique=0, mask=0, summary=0), Fabric(state="completed", status="success")),
        (
            fabric(state=3, cluster=bytes(16), clique=0, mask=0, summary=0, status=23),
            Fabric(state="completed", status="insufficient_resources"),
        ),
        (fabric(state=2, cluster=CLUSTER, clique=9, mask=0, summary=0), Fabric(state="in_progress")),
        (
            fabric(state=3, cluster=CLUSTER, clique=0, mask=0x10 | 0x0400 | 0x30000, summary=2),
            Fabric(
                state="completed",
                status="success",
                cluster_uuid="5a1f0000-0000-4000-8000-00000000c0de",
                clique_id=0,
                health="unhealthy",
                health_issues=("incorrect_configuration_no_partition", "route_unhealthy", "0x30000"),
            ),
        ),
        (fabric(state=0, cluster=bytes(16), clique=0, mask=0, summary=0), None),
        (NOT_SUPPORTED, None),
    ],
)
def test_the_fabric_is_decoded_field_by_field(answer: Any, expected: Fabric | None) -> None:
    assert only(GpuFabricInfoV=answer).fabric == expected


def test_an_older_driver_is_asked_for_the_older_fabric_structure() -> None:
    fill = fabric(state=3, cluster=CLUSTER, clique=1, mask=0x01, summary=0)

    def older(reference: Any) -> None:
        if isinstance(reference._obj, pynvml.c_nvmlGpuFabricInfo_v3_t):
            raise pynvml.NVMLError(25)
        fill(reference)

    found = only(GpuFabricInfoV=older).fabric
    assert found is not None
    # without a summary of the driver, the mask that names a fault is the summary
    assert (found.health, found.health_issues) == ("unhealthy", ("degraded_bandwidth",))


def test_a_unified_memory_gpu_lacks_vram_by_nature() -> None:
    found = collect(h100(0, Name="NVIDIA GB10", MemoryInfo=NOT_SUPPORTED, Architecture=10))
    (gpu,) = found.gpus
    assert (found.enumeration, gpu.unified_memory, gpu.vram_mib) == (Enumeration.COMPLETE, True, None)
    assert found.unavailable["gpus.0.vramMiB"] is Availability.UNSUPPORTED


def test_an_integrated_gpu_without_pci_address_and_uuid_is_no_fault() -> None:
    jetson = h100(0, Name="Orin (nvgpu)", PciInfo=NOT_SUPPORTED, UUID=NOT_SUPPORTED, MemoryInfo=NOT_SUPPORTED)
    api, _ = nvml(jetson, driver="N/A", cuda=12060)
    found = collect_nvml(api, (), "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  35.3.1  Release Build")
    assert (found.enumeration, found.gpus[0].unified_memory) == (Enumeration.COMPLETE, True)
    assert (found.driver_version, found.cuda_driver_version) == (None, "12.6")


@pytest.mark.parametrize(
    ("enumerator", "capability", "expected"),
    [(8, (8, 9), "Ada Lovelace"), (99, (12, 0), "Blackwell"), (99, (8, 9), "Ada Lovelace"), (99, (77, 0), None)],
)
def test_a_new_architecture_is_named_by_its_compute_capability(
    enumerator: int, capability: tuple[int, int], expected: str | None
) -> None:
    assert only(Architecture=enumerator, CudaComputeCapability=capability).architecture == expected


def test_retired_pages_are_counted_per_cause() -> None:
    gpu = only(
        RetiredPages=lambda cause: [0x10] if cause == 0 else [], RetiredPagesPendingStatus=1, RemappedRows=NOT_SUPPORTED
    )
    assert gpu.health is not None
    assert (gpu.health.row_remap, gpu.health.retired_pages) == (None, RetiredPages(sbe=1, dbe=0, pending=True))


def test_a_gpu_near_several_numa_nodes_is_attached_to_no_one() -> None:
    assert only(MemoryAffinity=[0, 1 << 3]).numa_node == 67
    assert only(MemoryAffinity=[3, 0]).numa_node is None


def test_a_vgpu_guest_goes_through() -> None:
    gpu = only(Name="GRID P40-24Q", VirtualizationMode=2, VbiosVersion="00.00.00.00.00", Serial=NOT_SUPPORTED)
    assert (gpu.virtualization, gpu.vbios, gpu.serial) == ("vgpu", None, None)


def test_a_display_adapter_beside_the_gpus_is_none_of_them() -> None:
    found = collect(h100(0), h100(1, Name="NVIDIA DGX Display", UUID="GPU-display"))
    assert found.enumeration is Enumeration.COMPLETE
    assert [gpu.pci_bus_id for gpu in found.gpus] == ["00000000:18:00.0"]


def test_listing_order_does_not_change_the_bytes() -> None:
    slots = (mig(2, 0, 40448, "3g.40gb"), mig(9, 0, 9984, "1g.10gb"), NOT_FOUND)
    written = set()
    for order in itertools.permutations(range(3)):
        remotes = {link: f"0000:c{link}:00.0" for link in order}
        devices = [h100(0, NvLinkState=Links(remotes)), h100(1, MigMode=[1, 1], migs=[slots[place] for place in order])]
        api, _ = nvml(*devices)
        written.add(encode(collect_nvml(api, [PCI[place] for place in order if place < len(devices)], OPEN)))
    assert len(written) == 1


def test_an_index_that_moved_is_the_only_change_of_a_reordered_driver() -> None:
    one, other = collect(h100(0), h100(1)), collect(h100(1), h100(0))
    assert [gpu.index for gpu in other.gpus] == [1, 0]
    assert [replace(gpu, index=None) for gpu in one.gpus] == [replace(gpu, index=None) for gpu in other.gpus]


@pytest.mark.parametrize("text", [None, "", "garbage"])
def test_a_module_that_says_nothing_has_no_flavour(text: str | None) -> None:
    assert kernel_module_flavour(text) is None


def test_the_flavour_of_the_module_is_read() -> None:
    assert kernel_module_flavour(OPEN) == "open"
    assert kernel_module_flavour(PROPRIETARY) == "proprietary"


def test_an_impossible_count_is_no_enumeration() -> None:
    api, fake = nvml()
    fake.nvmlDeviceGetCount = lambda: 4294967295  # type: ignore[method-assign]
    found = collect_nvml(api, PCI[:1])
    assert found.enumeration is Enumeration.UNAVAILABLE


def test_the_bindings_have_every_name_the_collector_asks_for() -> None:
    assert [name for name in NvmlApi.__annotations__ if not hasattr(pynvml, name)] == []
