"""Inventories to show; every identity in them is made up."""

from typing import Any, Final

Documents = dict[str, dict[str, Any]]

GPU_ID: Final = "GPU-0a1b2c3d-0000-4000-8000-000000000001"


def machine(*, number: int = 1, driver: str = "580.95.05", kernel: str = "6.8.0-60-generic") -> Documents:
    """Return all eight sections of a machine with one GPU; machines of another number share no identity (1 to 9)."""
    return {
        "system": {
            "vendor": "Example Systems",
            "product": "Box 9",
            "systemSerial": f"EX-{number:04}",
            "biosVersion": "1.2.3",
        },
        "cpu": {"arch": "x86_64", "model": "Example 9000 Processor", "sockets": 2, "cores": 96, "threads": 192},
        "memory": {
            "totalBytes": 1 << 40,
            "swapBytes": 0,
            "dimms": [{"locator": "DIMM_A1", "sizeBytes": 64 << 30, "type": "DDR5", "speedMTs": 4800}],
        },
        "gpus": {
            "enumeration": "complete",
            "driverVersion": driver,
            "gpus": [
                {
                    "uuid": f"{GPU_ID[:-1]}{number}",
                    "index": 0,
                    "name": "NVIDIA H100 80GB HBM3",
                    "pciBusId": "00000000:18:00.0",
                    "vramMiB": 81559,
                    "health": {"rowRemap": {"correctable": 0, "uncorrectable": 0}},
                }
            ],
            "unavailable": {"gpus.0.serial": "unsupported", "cudaDriverVersion": "temporarily_failed"},
        },
        "nics": {"nics": [{"name": "ens1f0", "kind": "physical", "permanentMac": f"00:00:5e:00:53:{number:02x}"}]},
        "disks": {"disks": [{"name": "nvme0n1", "model": "Example SSD", "sizeBytes": 3_840_755_982_336}]},
        "os": {"distro": {"id": "example", "prettyName": "Example Linux 1"}, "kernel": kernel},
        "images": {"images": [{"reference": "example/engine:1", "sizeBytes": 9_240_000_000}]},
    }
