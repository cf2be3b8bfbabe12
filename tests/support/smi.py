"""Small `nvidia-smi -q -x` logs with made-up identities."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU of a log."""

    bus: str
    uuid: str
    name: str
    memory_mib: int
    mig: Sequence[int] = ()
    """GPU instance ids, each with one compute instance; any make the mode enabled."""
    vbios: str = "96.00.99.00.01"


def cards(count: int, name: str, memory_mib: int, stem: str) -> list[Card]:
    """Make GPUs with UUIDs that start with `stem` (eight hexadecimal digits)."""
    return [
        Card(f"{0x18 + 8 * index:02X}", f"GPU-{stem}-5a1e-4b2f-9c3d-{index + 1:012x}", name, memory_mib)
        for index in range(count)
    ]


def smi_log(gpus: Sequence[Card], *, attached: int | None = None, driver: str = "580.105.08") -> bytes:
    """Write a log of these GPUs; `attached` says how many the driver counts."""
    count = len(gpus) if attached is None else attached
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
  <driver_version>{driver}</driver_version>
  <cuda_version>13.0</cuda_version>
  <attached_gpus>{count}</attached_gpus>
  {"".join(_gpu(gpu) for gpu in gpus)}
</nvidia_smi_log>
""".encode()


def _gpu(gpu: Card) -> str:
    mode = "Enabled" if gpu.mig else "Disabled"
    instances = "".join(
        f"""<mig_device><index>{index}</index><gpu_instance_id>{gi}</gpu_instance_id>
        <compute_instance_id>0</compute_instance_id>
        <fb_memory_usage><total>19968 MiB</total></fb_memory_usage></mig_device>"""
        for index, gi in enumerate(gpu.mig)
    )
    return f"""
  <gpu id="00000000:{gpu.bus}:00.0">
    <product_name>{gpu.name}</product_name>
    <product_architecture>Hopper</product_architecture>
    <mig_mode><current_mig>{mode}</current_mig><pending_mig>{mode}</pending_mig></mig_mode>
    <mig_devices>{instances or "None"}</mig_devices>
    <serial>N/A</serial>
    <uuid>{gpu.uuid}</uuid>
    <vbios_version>{gpu.vbios}</vbios_version>
    <pci><pci_bus_id>00000000:{gpu.bus}:00.0</pci_bus_id></pci>
    <fb_memory_usage><total>{gpu.memory_mib} MiB</total></fb_memory_usage>
    <fabric><state>Completed</state><status>Success</status><cliqueId>0</cliqueId>
      <clusterUuid>00000000-0000-0000-0000-000000000000</clusterUuid></fabric>
  </gpu>"""
