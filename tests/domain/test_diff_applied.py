"""What changes tell is enough: an inventory with its changes applied is the one after them (rule 3)."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.diff import Change, ChangeType, diff
from domain.documents.cpu import CpuSection
from domain.documents.disks import Disk, DisksSection
from domain.documents.document import Section
from domain.documents.gpus import Enumeration, Gpu, GpusSection, MigInstance, Mode
from domain.documents.memory import Dimm, MemorySection
from domain.documents.nics import Nic, NicsSection
from domain.documents.os import OsSection
from domain.documents.system import SystemSection

NAMES: Final = ("nvme0n1", "nvme1n1", "nvme2n1")
PORTS: Final = ("eth0", "eth1", "eth2")
Facts = dict[str, Any]


def _gpu(digit: int) -> st.SearchStrategy[Gpu]:
    """Draw what may change of a card; what it is never does."""
    return st.builds(
        Gpu,
        uuid=st.just(f"GPU-{digit:08}-1111-4222-8333-444444444444"),
        name=st.just(f"NVIDIA H{digit}00"),
        serial=st.just(f"13206230{digit}"),
        index=st.integers(0, 7),
        pci_bus_id=st.just(f"00000000:{digit:02X}:00.0"),
        vbios=st.sampled_from(["96.00.74.00.01", "96.00.99.00.01"]),
        mig_mode=st.builds(Mode, current=st.booleans()),
        mig_instances=st.lists(
            st.builds(MigInstance, gi=st.integers(0, 2), ci=st.integers(0, 1), profile=st.sampled_from(["1g", "2g"])),
            max_size=3,
            unique_by=lambda mig: (mig.gi, mig.ci),
        ).map(tuple),
    )


@st.composite
def _machines(draw: st.DrawFn) -> dict[str, Section]:
    """Draw machines of which everything is known, with a disk and a card in each place that has one."""
    cards = draw(st.lists(st.integers(1, 4), unique=True))
    disks = draw(st.lists(st.integers(1, 5), min_size=len(NAMES), max_size=len(NAMES), unique=True))
    ports = draw(st.lists(st.integers(1, 5), min_size=len(PORTS), max_size=len(PORTS), unique=True))
    modules = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True))
    text = st.sampled_from(["1.0", "1.1"])
    return {
        "gpus": GpusSection(
            enumeration=Enumeration.COMPLETE,
            driver_version=draw(text),
            cuda_driver_version=draw(text),
            gpus=tuple(draw(_gpu(card)) for card in cards),
        ),
        "disks": DisksSection(
            disks=tuple(
                Disk(name=name, wwn=f"0x5000c500a1b2c3d{disk}", serial=f"S4YNX0R11{disk}", size_bytes=10**12)
                for name, disk in zip(NAMES, disks, strict=True)
            )
        ),
        "nics": NicsSection(
            nics=tuple(
                Nic(name=name, permanent_mac=f"0c:42:a1:00:00:0{port}") for name, port in zip(PORTS, ports, strict=True)
            )
        ),
        "memory": MemorySection(
            dimms=tuple(Dimm(locator=f"A{place}", serial=f"8A0{each}") for place, each in enumerate(modules))
        ),
        "cpu": draw(st.builds(CpuSection, model=text, cores=st.sampled_from([32, 64]), threads=st.just(128))),
        "system": draw(st.builds(SystemSection, bios_version=text, bmc_version=text)),
        "os": draw(st.builds(OsSection, kernel=text)),
    }


# What is compared of an inventory, as plain values.


def _compared(sections: Mapping[str, Any]) -> Facts:
    gpus: Sequence[Gpu] = sections["gpus"].gpus
    return {
        "cards": {gpu.uuid: (gpu.name, gpu.serial) for gpu in gpus},
        "layouts": {gpu.uuid: _layout(gpu) for gpu in gpus},
        "vbios": {gpu.uuid: gpu.vbios for gpu in gpus},
        "driver": {
            "driverVersion": sections["gpus"].driver_version,
            "cudaDriverVersion": sections["gpus"].cuda_driver_version,
        },
        # Names swap between boots: which disks and ports there are is compared, not what they are called.
        "disks": Counter((disk.wwn, disk.serial) for disk in sections["disks"].disks),
        "ports": Counter(nic.permanent_mac for nic in sections["nics"].nics),
        "modules": Counter(dimm.serial for dimm in sections["memory"].dimms),
        "cpu": {"model": sections["cpu"].model, "cores": sections["cpu"].cores, "threads": sections["cpu"].threads},
        "firmware": {"biosVersion": sections["system"].bios_version, "bmcVersion": sections["system"].bmc_version},
        "kernel": {"kernel": sections["os"].kernel},
    }


def _layout(gpu: Gpu) -> Any:  # noqa: ANN401 - compared as it is
    mode = gpu.mig_mode.current if gpu.mig_mode else None
    return mode, frozenset((mig.gi, mig.ci, mig.profile) for mig in gpu.mig_instances)


def _apply(facts: Facts, changes: Sequence[Change]) -> Facts:
    after = {name: value.copy() for name, value in facts.items()}
    for change in changes:
        _apply_one(after, change, change.before, change.after)
    return after


def _apply_one(facts: Facts, change: Change, old: Any, new: Any) -> None:  # noqa: ANN401 - JSON
    match change.type:
        case ChangeType.GPU_MISSING:
            assert facts["cards"].pop(change.device_id) == (old["name"], old["serial"])
        case ChangeType.GPU_ADDED:
            assert change.device_id not in facts["cards"]
            facts["cards"][change.device_id] = (new["name"], new["serial"])
        case ChangeType.MIG_LAYOUT_CHANGED:
            assert facts["layouts"][change.device_id] == _told_layout(old)
            facts["layouts"][change.device_id] = _told_layout(new)
        case ChangeType.DISK_REPLACED:
            _exchange(facts["disks"], [old], [new], lambda disk: (disk["wwn"], disk["serial"]))
        case ChangeType.NIC_REPLACED:
            _exchange(facts["ports"], [old], [new], lambda port: port["permanentMac"])
        case ChangeType.MEMORY_CHANGED:
            _exchange(facts["modules"], old["dimms"], new["dimms"], lambda dimm: dimm["serial"])
        case ChangeType.FIRMWARE_CHANGED if change.device_id is not None:
            assert facts["vbios"][change.device_id] == old["vbios"]
            facts["vbios"][change.device_id] = new["vbios"]
        case _:
            name = change.type.value.split(".")[1]
            assert old.items() <= facts[name].items()
            facts[name] |= new


def _told_layout(told: Any) -> Any:  # noqa: ANN401
    return told["mode"], frozenset((mig["gi"], mig["ci"], mig["profile"]) for mig in told["instances"])


def _exchange(held: Counter[Any], gone: Sequence[Any], came: Sequence[Any], key: Callable[[Any], Hashable]) -> None:
    out = Counter(key(each) for each in gone)
    assert out <= held
    held.subtract(out)
    held.update(key(each) for each in came)
    for each in [each for each, count in held.items() if not count]:
        del held[each]


@settings(max_examples=50)
@given(_machines(), _machines())
def test_an_inventory_with_its_changes_applied_is_the_one_after_them(
    before: dict[str, Section], after: dict[str, Section]
) -> None:
    changed = _apply(_compared(before), diff(before, after))
    expected = _compared(after)
    # Of a card that came or left only that is told; its layout and firmware are those of the inventory that has it.
    stayed = _compared(before)["cards"].keys() & expected["cards"].keys()
    for name in ("layouts", "vbios"):
        for facts in (changed, expected):
            facts[name] = {card: value for card, value in facts[name].items() if card in stayed}
    assert changed == expected
