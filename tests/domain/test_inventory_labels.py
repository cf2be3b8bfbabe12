"""Labels that a node's inventory gives it."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.availability import Availability
from domain.device import Device, DeviceClass
from domain.documents.cpu import CpuSection, NumaCpus
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, GpusSection
from domain.documents.memory import HugePages, MemorySection
from domain.documents.os import Distro, OsSection
from domain.ids import DeviceId, NodeId
from domain.inventory_labels import INVENTORY_KEYS, cpu_model, inventory_labels
from domain.label_text import is_key, is_value
from domain.sections import SECTION_TYPES
from tests.domain.strategies import TEXT, document

NODE = NodeId("node_00000000000000000000000001")
GPU_KEYS = {key for key in INVENTORY_KEYS if key.split(".")[0] in {"gpu", "mig", "fabric", "cuda", "nvidia"}}


def _gpu(number: int, **facts: Any) -> Device:  # noqa: ANN401 - a device's facts
    given_facts = {"gpu_product": "H100-SXM5-80GB", "gpu_model": "H100", "vram_gib": 79.6, "mig_capable": True, **facts}
    return Device(id=DeviceId(f"GPU-{number}"), node_id=NODE, device_class=DeviceClass.GPU, **given_facts)


def _gpus(*gpus: Device, known: Mapping[str, str] | None = None, **section: Any) -> dict[str, str]:  # noqa: ANN401
    told = {"enumeration": Enumeration.COMPLETE, "driver_version": "580.95.05", "cuda_driver_version": "13.0"}
    return inventory_labels(known or {}, {"gpus": GpusSection(**(told | section))}, gpus)


SECTIONS = st.fixed_dictionaries({}, optional={name: document(kind) for name, kind in SECTION_TYPES.items()})
DEVICES = st.lists(
    st.builds(
        Device,
        id=st.sampled_from(["GPU-1", "GPU-2", "disk-1"]),
        node_id=st.just(NODE),
        device_class=st.sampled_from([DeviceClass.GPU, DeviceClass.DISK, DeviceClass.GPU_MIG]),
        missing=st.booleans(),
        gpu_product=st.none() | TEXT,
        gpu_model=st.none() | TEXT,
        vram_gib=st.none() | st.floats(0, 2**21),
        mig_capable=st.none() | st.booleans(),
        fabric_cluster=st.none() | TEXT,
        fabric_clique=st.none() | TEXT,
        not_known=st.dictionaries(
            st.sampled_from(["gpuProduct", "fabricCluster"]), st.sampled_from(Availability), max_size=2
        ),
    ),
    max_size=3,
)
LABELS = st.dictionaries(st.sampled_from(sorted(INVENTORY_KEYS)), st.sampled_from(["before", "7"]))


@given(LABELS, SECTIONS, DEVICES)
def test_whatever_is_reported_selectors_can_say_it_and_telling_it_again_changes_nothing(
    known: dict[str, str], sections: dict[str, Section], devices: list[Device]
) -> None:
    labels = inventory_labels(known, sections, devices)
    assert labels.keys() <= INVENTORY_KEYS
    assert all(is_key(key) and is_value(value) and value for key, value in labels.items())
    assert inventory_labels(labels, sections, devices) == labels


@given(LABELS, SECTIONS, DEVICES, st.sets(st.sampled_from(sorted(SECTION_TYPES))))
def test_a_section_that_did_not_come_keeps_its_labels_and_no_others(
    known: dict[str, str], sections: dict[str, Section], devices: list[Device], silent: set[str]
) -> None:
    sources = {
        "cpu": {key for key in INVENTORY_KEYS if key.startswith("cpu.") or key == "numa.nodes"},
        "memory": {"memory.GiB", "hugepages.1GiB"},
        "os": {"os.distro", "os.kernel", "kvm.available"},
        "gpus": GPU_KEYS,
    }
    assert set().union(*sources.values()) == INVENTORY_KEYS
    full = inventory_labels(known, sections, devices)
    part = inventory_labels(known, {name: each for name, each in sections.items() if name not in silent}, devices)
    kept = {key for name in silent for key in sources.get(name, ())}
    expected = {key: value for key, value in full.items() if key not in kept}
    assert part == expected | {key: value for key, value in known.items() if key in kept}


@pytest.mark.parametrize("enumeration", [Enumeration.INCOMPLETE, Enumeration.UNAVAILABLE])
def test_gpus_not_counted_to_the_end_keep_all_labels_of_gpus(enumeration: Enumeration) -> None:
    before = _gpus(_gpu(1), _gpu(2))
    assert _gpus(_gpu(1), known=before, enumeration=enumeration, driver_version="590.1") == before
    assert _gpus(_gpu(1), enumeration=enumeration) == {}


def test_a_host_of_equal_gpus_is_labelled_by_what_they_are() -> None:
    domain = {"fabric_cluster": "c0ffee00-0000-4000-8000-000000000001", "fabric_clique": "3"}
    assert _gpus(_gpu(1, **domain), _gpu(2, **domain)) == {
        "gpu.present": "true",
        "gpu.count": "2",
        "gpu.product": "H100-SXM5-80GB",
        "gpu.model": "H100",
        "gpu.vramGiB": "80",
        "mig.capable": "true",
        "fabric.domain": "c0ffee00-0000-4000-8000-000000000001.3",
        "nvidia.driver.version": "580.95.05",
        "cuda.driver.major": "13",
    }


def test_gpus_that_disagree_read_mixed_and_one_that_says_nothing_does_not_disagree() -> None:
    other = _gpu(2, gpu_product="A30-PCIE-24GB", gpu_model="A30", vram_gib=23.6, mig_capable=False)
    silent = _gpu(3, gpu_product=None, gpu_model=None, vram_gib=None, mig_capable=None)
    mixed = _gpus(_gpu(1), other)
    assert {mixed[key] for key in ("gpu.product", "gpu.model", "gpu.vramGiB", "mig.capable")} == {"mixed"}
    assert _gpus(_gpu(1), silent) == _gpus(_gpu(1)) | {"gpu.count": "2"}


def test_memory_that_differs_by_less_than_a_gib_is_no_disagreement() -> None:
    assert _gpus(_gpu(1, vram_gib=79.65), _gpu(2, vram_gib=79.58))["gpu.vramGiB"] == "80"


def test_a_complete_enumeration_of_no_gpu_takes_away_what_was_said_of_them() -> None:
    before = _gpus(_gpu(1, fabric_cluster="c", fabric_clique="1"))
    assert _gpus(known=before) == {
        "gpu.present": "false",
        "gpu.count": "0",
        "nvidia.driver.version": "580.95.05",
        "cuda.driver.major": "13",
    }
    assert _gpus(known=before, driver_version=None, cuda_driver_version=None) == {
        "gpu.present": "false",
        "gpu.count": "0",
    }


def test_a_gpu_that_is_gone_but_booked_is_not_counted() -> None:
    assert _gpus(_gpu(1), _gpu(2, missing=True, gpu_model="A30"))["gpu.count"] == "1"
    assert _gpus(_gpu(1), _gpu(2, missing=True, gpu_model="A30"))["gpu.model"] == "H100"


def test_a_fact_that_could_not_be_read_keeps_its_label_and_one_that_cannot_be_had_takes_it_away() -> None:
    before = {"nvidia.driver.version": "580.95.05", "gpu.vramGiB": "80"}
    failed = Availability.TEMPORARILY_FAILED
    silent = _gpus(
        _gpu(1, vram_gib=None, not_known={"vramGiB": failed}),
        known=before,
        driver_version=None,
        unavailable={"driverVersion": failed},
    )
    assert {key: silent.get(key) for key in before} == before
    none = Availability.UNSUPPORTED
    without = _gpus(
        _gpu(1, vram_gib=None, not_known={"vramGiB": none}),
        known=before,
        driver_version=None,
        unavailable={"driverVersion": none},
    )
    assert not before.keys() & without.keys()


def test_a_node_is_in_a_fabric_domain_only_when_every_gpu_is_joined() -> None:
    one, two = {"fabric_cluster": "c1", "fabric_clique": "1"}, {"fabric_cluster": "c2", "fabric_clique": "1"}
    known = {"fabric.domain": "c1.1"}
    assert _gpus(_gpu(1, **one), _gpu(2, **one))["fabric.domain"] == "c1.1"
    assert _gpus(_gpu(1, **one), _gpu(2, **two))["fabric.domain"] == "mixed"
    assert "fabric.domain" not in _gpus(_gpu(1, **one), _gpu(2), known=known)
    unread = {"fabricCluster": Availability.TEMPORARILY_FAILED}
    assert _gpus(_gpu(1, **one), _gpu(2, not_known=unread), known=known)["fabric.domain"] == "c1.1"


def test_a_host_is_labelled_by_its_processors_memory_and_system() -> None:
    sections: dict[str, Section] = {
        "cpu": CpuSection(
            arch="x86_64",
            vendor="AuthenticAMD",
            model="AMD EPYC 9654 96-Core Processor",
            sockets=2,
            cores=192,
            threads=384,
            numa_nodes=(NumaCpus(id=0, cpus="0-191"), NumaCpus(id=1, cpus="192-383"), NumaCpus(id=2)),
        ),
        "memory": MemorySection(
            total_bytes=1_622_000_000_000,
            huge_pages=(HugePages(size_kib=2048, count=512), HugePages(size_kib=1048576, count=64)),
        ),
        "os": OsSection(distro=Distro(id="ubuntu", version="24.04"), kernel="6.8.0-60-generic", kvm_available=True),
    }
    assert inventory_labels({}, sections, ()) == {
        "cpu.arch": "x86_64",
        "cpu.vendor": "AuthenticAMD",
        "cpu.model": "AMD-EPYC-9654-96-Core-Processor",
        "cpu.sockets": "2",
        "cpu.cores": "192",
        "cpu.threads": "384",
        "numa.nodes": "2",
        "memory.GiB": "1511",
        "hugepages.1GiB": "64",
        "os.distro": "ubuntu",
        "os.kernel": "6.8.0-60-generic",
        "kvm.available": "true",
    }


def test_zero_is_a_value_and_a_size_that_is_not_among_those_listed_has_no_page() -> None:
    small = MemorySection(huge_pages=(HugePages(size_kib=2048, count=0),))
    assert inventory_labels({"hugepages.1GiB": "4"}, {"memory": small}, ()) == {"hugepages.1GiB": "0"}
    assert inventory_labels({"hugepages.1GiB": "4"}, {"memory": MemorySection()}, ()) == {"hugepages.1GiB": "4"}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("AMD EPYC 9654 96-Core Processor", "AMD-EPYC-9654-96-Core-Processor"),
        ("Intel(R) Xeon(R) Platinum 8480+", "Intel-Xeon-Platinum-8480"),
        ("Intel® Core™ i7-8700 CPU @ 3.20GHz", "Intel-Core-i7-8700-CPU-3.20GHz"),
        ("Intel(r) Core(tm)2 Duo CPU  T7700", "Intel-Core2-Duo-CPU-T7700"),
        ("Neoverse-N1 (Ampere(R) Altra(R) Processor)", "Neoverse-N1-Ampere-Altra-Processor"),
        ("N/A", None),
        ("(R)", None),
        (None, None),
    ],
)
def test_a_processors_model_is_its_name_without_marks(name: str | None, model: str | None) -> None:
    assert cpu_model(name) == model


def test_labels_that_inventory_no_longer_gives_are_dropped() -> None:
    assert inventory_labels({"of.an.earlier.version": "1"}, {}, ()) == {}
