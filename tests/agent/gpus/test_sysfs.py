from pathlib import Path

import pytest

from agent.gpus.sysfs import nvidia_gpu_addresses


def add(sys: Path, name: str, **attributes: str) -> Path:
    device = sys / "bus/pci/devices" / name
    device.mkdir(parents=True)
    facts = {"vendor": "0x10de", "class": "0x030200", "device": "0x2330", "subsystem_device": "0x16c1", **attributes}
    for attribute, value in facts.items():
        (device / attribute).write_text(f"{value}\n")
    return device


def test_nvidia_display_functions_are_listed_by_canonical_address(tmp_path: Path) -> None:
    add(tmp_path, "0009:06:00.0")
    add(tmp_path, "0000:18:00.0", **{"class": "0x030000"})
    assert nvidia_gpu_addresses(tmp_path) == ("00000000:18:00.0", "00000009:06:00.0")


@pytest.mark.parametrize(
    "attributes",
    [
        {"class": "0x068000"},  # an NVSwitch is a bridge
        {"class": "0x040300"},  # the sound function of a board
        {"vendor": "0x1a03"},  # the screen of the management controller
        {"device": "0x1fb0", "subsystem_device": "0x1485"},  # NVIDIA DGX Display
    ],
)
def test_what_is_no_nvidia_gpu_is_not_listed(tmp_path: Path, attributes: dict[str, str]) -> None:
    add(tmp_path, "0000:18:00.0", **attributes)
    assert nvidia_gpu_addresses(tmp_path) == ()


def test_a_workstation_card_of_the_same_device_id_is_listed(tmp_path: Path) -> None:
    add(tmp_path, "0000:18:00.0", device="0x1fb0", subsystem_device="0x12db")
    assert nvidia_gpu_addresses(tmp_path) == ("00000000:18:00.0",)


def test_a_virtual_function_on_its_own_host_is_no_gpu(tmp_path: Path) -> None:
    (add(tmp_path, "0000:18:00.4") / "physfn").symlink_to(tmp_path)
    assert nvidia_gpu_addresses(tmp_path) == ()


def test_a_device_that_goes_while_it_is_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/devices/0000:18:00.0").mkdir(parents=True)
    assert nvidia_gpu_addresses(tmp_path) == ()


def test_a_kernel_without_pci_lists_nothing(tmp_path: Path) -> None:
    assert nvidia_gpu_addresses(tmp_path) == ()
