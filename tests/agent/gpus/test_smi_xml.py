import itertools

import pytest

from agent.gpus.smi_xml import read_smi_xml
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
    RetiredPages,
    RowRemap,
)
from domain.sections import encode, verify
from tests.agent.gpus.logs import DEFAULTS, FABRIC, ROWS, gpu_block, log, mig_device

SPELLINGS = (
    "",
    "N/A",
    "[N/A]",
    "None",
    "Not Supported",
    "[Not Supported]",
    "Requested functionality has been deprecated",
    "\n      None\n    ",
)


def only(content: bytes) -> Gpu:
    (gpu,) = read_smi_xml(content).gpus
    return gpu


def bytes_of(content: bytes) -> bytes:
    return encode(read_smi_xml(content))


def test_every_fact_of_a_whole_log_is_read() -> None:
    found = read_smi_xml(log(gpu_block(virtualization="Pass-Through")))
    assert found.enumeration is Enumeration.COMPLETE
    assert found.reason is None
    assert (found.driver_version, found.cuda_driver_version) == ("580.10.01", "13.0")
    assert found.gpus == (
        Gpu(
            uuid="GPU-11110000-aaaa-bbbb-cccc-000000000001",
            index=0,
            name="NVIDIA H100 80GB HBM3",
            serial="1990000000017",
            pci_bus_id="00000000:18:00.0",
            vram_mib=81559,
            unified_memory=False,
            architecture="Hopper",
            vbios="96.00.12.00.01",
            part_number="692-2G520-0200-000",
            ecc_mode=Mode(current=True, pending=False),
            mig_mode=Mode(current=False, pending=False),
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
    assert found.unavailable == dict.fromkeys(
        (
            "gpus.0.computeCapability",
            "gpus.0.health.retiredPages",
            "gpus.0.numaNode",
            "gpus.0.nvlinks",
            "kernelModule",
        ),
        Availability.UNKNOWN,
    )


def test_the_section_is_accepted_as_the_server_checks_it() -> None:
    content = bytes_of(log(gpu_block()))
    assert isinstance(verify("gpus", section_sha256(content), content), GpusSection)


def test_the_memory_of_a_mig_device_that_comes_first_is_not_the_boards() -> None:
    devices = mig_device(0, "9", "0", "9984 MiB") + mig_device(1, "2", "1", "40448 MiB")
    devices += mig_device(2, "2", "0", "40448 MiB")
    gpu = only(log(gpu_block(mig="Enabled", mig_devices=devices)))
    assert gpu.vram_mib == 81559
    assert gpu.mig_instances == (
        MigInstance(gi=2, ci=0, memory_mib=40448),
        MigInstance(gi=2, ci=1, memory_mib=40448),
        MigInstance(gi=9, ci=0, memory_mib=9984),
    )


def test_a_mig_profile_is_not_computed_and_is_taken_when_given() -> None:
    device = mig_device(0, "2", "0", "40448 MiB")
    found = read_smi_xml(log(gpu_block(mig="Enabled", mig_devices=device)))
    assert found.unavailable["gpus.0.migInstances.0.profile"] is Availability.UNKNOWN
    given = device.replace("<index>", "<profile>3g.40gb</profile><uuid>MIG-made-up</uuid><index>")
    (instance,) = only(log(gpu_block(mig="Enabled", mig_devices=given))).mig_instances
    assert (instance.profile, instance.uuid) == ("3g.40gb", "MIG-made-up")


def test_a_mig_device_without_ids_makes_the_enumeration_incomplete() -> None:
    found = read_smi_xml(log(gpu_block(mig="Enabled", mig_devices=mig_device(0, "Unknown Error", "0", "1 MiB"))))
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason == "a MIG device of GPU 00000000:18:00.0 has no ids"


def test_fewer_blocks_than_attached_gpus_are_an_incomplete_enumeration() -> None:
    found = read_smi_xml(log(gpu_block(), attached=4))
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason == "the log lists 1 of 4 attached GPUs"
    assert found.gpus[0].index is None  # which of the four it is, the log does not tell


def test_a_log_that_does_not_count_is_complete_as_listed() -> None:
    assert read_smi_xml(log(gpu_block(), attached=None)).enumeration is Enumeration.COMPLETE


def test_no_attached_gpu_is_a_complete_enumeration_of_none() -> None:
    found = read_smi_xml(log(attached=0))
    assert (found.enumeration, found.gpus) == (Enumeration.COMPLETE, ())


def test_a_log_that_neither_counts_nor_lists_proves_no_absence() -> None:
    assert read_smi_xml(log(attached=None)).enumeration is Enumeration.INCOMPLETE


@pytest.mark.parametrize("word", ["GPU is lost", "[GPU is lost]", "ERR!", "Unknown Error", "[Unknown Error]"])
def test_a_lost_gpu_is_listed_with_what_is_known_and_the_others_stay(word: str) -> None:
    lost = gpu_block(id="00000000:C1:00.0", vram=word, rows="N/A", uuid="GPU-22220000-aaaa-bbbb-cccc-000000000002")
    found = read_smi_xml(log(gpu_block(), lost))
    assert found.enumeration is Enumeration.INCOMPLETE
    assert found.reason == "GPU 00000000:C1:00.0 is lost"
    good, gone = found.gpus
    assert good.lost is None
    assert (gone.lost, gone.uuid, gone.vram_mib) == (True, "GPU-22220000-aaaa-bbbb-cccc-000000000002", None)
    reasons = {path: why for path, why in found.unavailable.items() if path.startswith("gpus.1.")}
    assert set(reasons.values()) == {Availability.TEMPORARILY_FAILED}
    assert {"gpus.1.vramMiB", "gpus.1.health.rowRemap"} <= set(reasons)


def test_a_gpu_is_lost_when_any_reading_says_so() -> None:
    assert only(log(gpu_block(ecc_pending="GPU is lost"))).lost is True


def test_a_failing_sensor_or_a_process_called_so_loses_no_gpu() -> None:
    assert only(log(gpu_block(volatile="ERR!", process="GPU is lost"))).lost is None


@pytest.mark.parametrize("field", ["serial", "part", "ecc", "retired", "rows", "fabric", "mig", "ecc_pending", "vbios"])
def test_all_spellings_of_unknown_give_the_same_bytes(field: str) -> None:
    written = {bytes_of(log(gpu_block(**{field: spelling}))) for spelling in SPELLINGS}
    assert len(written) == 1


@pytest.mark.parametrize("element", ["serial", "board_part_number", "vbios_version", "uuid", "remapped_rows", "fabric"])
def test_an_absent_element_gives_the_same_bytes_as_an_empty_one(element: str) -> None:
    whole = log(gpu_block()).decode()
    head, tail = whole.split(f"<{element}>")[0], whole.split(f"</{element}>")[1]
    absent = bytes_of((head + tail).encode())
    assert absent == bytes_of(f"{head}<{element}></{element}>{tail}".encode())
    assert absent == bytes_of(f"{head}<{element}>N/A</{element}>{tail}".encode())
    assert absent != bytes_of(whole.encode())


def test_a_group_of_unknowns_is_the_group_unknown() -> None:
    parts = (
        "<remapped_row_corr>N/A</remapped_row_corr><remapped_row_unc></remapped_row_unc>"
        "<remapped_row_pending>None</remapped_row_pending>"
    )
    assert bytes_of(log(gpu_block(rows=parts))) == bytes_of(log(gpu_block(rows="N/A")))


@pytest.mark.parametrize("blank", ["4294967295", "2147483632", "9223372036854775794", "-1"])
def test_a_blank_code_is_no_count_and_zero_is_one(blank: str) -> None:
    rows = ROWS.replace(">4<", f">{blank}<")
    health = only(log(gpu_block(rows=rows))).health
    assert health is not None
    assert health.row_remap == RowRemap(correctable=1, pending=True, failure=False)
    zero = only(log(gpu_block(rows=ROWS.replace(">4<", ">0<")))).health
    assert zero is not None
    assert zero.row_remap is not None
    assert zero.row_remap.uncorrectable == 0


def test_readings_that_change_by_the_second_never_enter() -> None:
    later = log(gpu_block(volatile="77", process="train")).replace(b"Mon Jan 01", b"Tue Jan 02")
    assert bytes_of(later) == bytes_of(log(gpu_block()))


def test_the_order_of_the_log_does_not_matter() -> None:
    blocks = [
        gpu_block(id=address, uuid=f"GPU-3333000{place}-aaaa-bbbb-cccc-000000000003", minor=str(9 - place))
        for place, address in enumerate(("00000018:06:00.0", "00000008:06:00.0", "00000009:06:00.0"))
    ]
    devices = [mig_device(place, str(gi), "0", "9984 MiB") for place, gi in enumerate((11, 3, 7))]
    written = set()
    for order in itertools.permutations(range(3)):
        migs = "".join(devices[place] for place in order)
        partitioned = gpu_block(id="00000000:01:00.0", mig="Enabled", mig_devices=migs)
        written.add(bytes_of(log(*(blocks[place] for place in order), partitioned)))
    assert len(written) == 1
    found = read_smi_xml(log(*blocks))
    assert [gpu.pci_bus_id for gpu in found.gpus] == ["00000008:06:00.0", "00000009:06:00.0", "00000018:06:00.0"]
    assert [gpu.index for gpu in found.gpus] == [0, 1, 2]


@pytest.mark.parametrize("written", ["0000:18:00.0", "18:00.0", "00000000:18:00.0", "0:18:00"])
def test_a_pci_address_of_any_width_is_canonical(written: str) -> None:
    assert only(log(gpu_block(id=written))).pci_bus_id == "00000000:18:00.0"


def test_a_malformed_bus_of_a_failing_driver_is_no_address() -> None:
    found = read_smi_xml(log(gpu_block(id="000:BA:80.0")))
    assert found.gpus[0].pci_bus_id is None
    assert found.unavailable["gpus.0.pciBusId"] is Availability.UNKNOWN


def test_an_all_zero_cluster_is_no_domain_and_its_clique_says_nothing() -> None:
    zeros = FABRIC.replace("5A1F0000-0000-4000-8000-00000000C0DE", "00000000-0000-0000-0000-000000000000")
    found = read_smi_xml(log(gpu_block(fabric=zeros)))
    assert found.gpus[0].fabric == Fabric(state="completed", status="success", health="healthy")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "<state>Completed</state><status>Insufficient Resources</status><cliqueId>0</cliqueId>",
            Fabric(state="completed", status="insufficient_resources"),
        ),
        # A failed registration says so in a word that elsewhere stands for no value.
        ("<state>Completed</state><status>Unknown Error</status>", Fabric(state="completed", status="unknown_error")),
        (
            "<state>In Progress</state><status>N/A</status><cliqueId>N/A</cliqueId><clusterUuid>N/A</clusterUuid>",
            Fabric(state="in_progress"),
        ),
        ("<state>Not Started</state>", Fabric(state="not_started")),
        ("<state>Not Supported</state>", None),
        ("<state>N/A</state><status>N/A</status>", None),
    ],
)
def test_the_words_of_the_fabric_are_normalized(written: str, expected: Fabric | None) -> None:
    assert only(log(gpu_block(fabric=written))).fabric == expected


def test_an_unhealthy_fabric_names_what_is_wrong_and_keeps_its_cluster() -> None:
    health = (
        "<health><summary>Unhealthy</summary><bandwidth>Degraded</bandwidth><route_unhealthy>True</route_unhealthy>"
        "<incorrect_configuration>No Partition</incorrect_configuration>"
        "<access_timeout_recovery>False</access_timeout_recovery></health>"
    )
    fabric = only(log(gpu_block(fabric=FABRIC.split("<health>")[0] + health))).fabric
    assert fabric is not None
    assert (fabric.health, fabric.clique_id) == ("unhealthy", 7)
    assert fabric.health_issues == ("degraded_bandwidth", "incorrect_configuration_no_partition", "route_unhealthy")


def test_the_renamed_fields_of_newer_drivers_are_the_same_facts() -> None:
    renamed = "<kmd_version>580.10.01</kmd_version><cuda_umd_version>13.0</cuda_umd_version>"
    newer_block = gpu_block(rows=ROWS + "<remapped_row_corr_inactive>3</remapped_row_corr_inactive>")
    newer_block = newer_block.replace("<fabric>", "<gpu_fabric>").replace("</fabric>", "</gpu_fabric>")
    assert bytes_of(log(newer_block, head=renamed, doctype="nvsmi_device_v13")) == bytes_of(log(gpu_block()))


def test_pending_retirement_is_read_under_both_of_its_names() -> None:
    pages = (
        "<multiple_single_bit_retirement><retired_count>0</retired_count></multiple_single_bit_retirement>"
        "<double_bit_retirement><retired_count>2</retired_count></double_bit_retirement>"
    )
    for name in ("pending_retirement", "pending_blacklist"):
        health = only(log(gpu_block(retired=f"{pages}<{name}>Yes</{name}>"))).health
        assert health is not None
        assert health.retired_pages == RetiredPages(sbe=0, dbe=2, pending=True)


def test_an_old_dialect_counts_uncorrectable_errors_as_double_bits() -> None:
    ecc = "<volatile><double_bit><l2_cache>1</l2_cache><total>3</total></double_bit></volatile>"
    health = only(log(gpu_block(ecc=ecc))).health
    assert health is not None
    assert health.ecc_uncorrectable == EccUncorrectable(volatile=3)


def test_an_old_log_with_almost_nothing_goes_through() -> None:
    block = """<gpu id="0000:01:00.0"><product_name>GeForce GTX 970</product_name>
    <uuid>GPU-44440000-aaaa-bbbb-cccc-000000000004</uuid>
    <fb_memory_usage><total>4096 MB</total></fb_memory_usage></gpu>"""
    found = read_smi_xml(log(block, attached=None, head="<timestamp/>", doctype="nvsmi_device_v10"))
    assert found.enumeration is Enumeration.COMPLETE
    assert found.driver_version is None
    (gpu,) = found.gpus
    assert (gpu.name, gpu.vram_mib, gpu.pci_bus_id) == ("GeForce GTX 970", 4096, "00000000:01:00.0")
    assert found.unavailable["gpus.0.serial"] is Availability.UNKNOWN


@pytest.mark.parametrize("name", ["NVIDIA GB10", "Orin (nvgpu)", "NVIDIA Thor"])
def test_a_unified_memory_part_lacks_vram_by_nature(name: str) -> None:
    found = read_smi_xml(log(gpu_block(name=name, vram="Not Supported", id="0000000F:01:00.0")))
    assert found.enumeration is Enumeration.COMPLETE
    (gpu,) = found.gpus
    assert (gpu.unified_memory, gpu.vram_mib, gpu.lost) == (True, None, None)
    assert found.unavailable["gpus.0.vramMiB"] is Availability.UNSUPPORTED


def test_a_board_whose_memory_is_not_told_is_not_called_unified() -> None:
    found = read_smi_xml(log(gpu_block(name="NVIDIA GB100", vram="N/A")))
    assert found.gpus[0].unified_memory is None
    assert found.unavailable["gpus.0.vramMiB"] is Availability.UNKNOWN


def test_a_vgpu_guest_goes_through_and_its_vbios_of_zeros_is_unknown() -> None:
    block = gpu_block(name="GRID P40-24Q", serial="N/A", vbios="00.00.00.00.00", virtualization="VGPU")
    found = read_smi_xml(
        log(block, head="<driver_version>550.1</driver_version><cuda_version>Not Found</cuda_version>")
    )
    (gpu,) = found.gpus
    assert (gpu.name, gpu.virtualization, gpu.vbios) == ("GRID P40-24Q", "vgpu", None)
    assert found.unavailable["gpus.0.vbios"] is Availability.UNKNOWN
    assert found.unavailable["cudaDriverVersion"] is Availability.UNKNOWN


def test_a_display_adapter_beside_the_gpus_is_none_of_them() -> None:
    display = gpu_block(id="00000000:02:00.0", name="NVIDIA DGX Display")
    found = read_smi_xml(log(display, gpu_block()))
    assert found.enumeration is Enumeration.COMPLETE
    assert [(gpu.name, gpu.index) for gpu in found.gpus] == [(DEFAULTS["name"], 1)]


def test_the_chips_part_number_is_not_the_boards() -> None:
    assert only(log(gpu_block(part="N/A"))).part_number is None
    older = gpu_block(part="N/A").replace("2330-885-A1", "692-2G520-0200-000")
    assert only(log(older)).part_number == "692-2G520-0200-000"


def test_a_masked_serial_is_a_text() -> None:
    assert only(log(gpu_block(serial="REDACTED"))).serial == "REDACTED"
