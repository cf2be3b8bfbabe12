"""What GPUs are known for from before: a part of what they are, only their past tells."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from domain.atoms import mig_mode
from domain.device import COLUMNS, Device, DeviceClass, drop_known
from domain.gpu_findings import remember_fabric
from domain.gpu_links import remember_links
from domain.ids import DeviceId


def with_last_known(seen: Sequence[Device], ours: Mapping[DeviceId, Device], now: datetime) -> list[Device]:
    """Fill in what is remembered of GPUs, which are seen under the ids by which they are known."""
    answering = {device.id for device in seen if not is_lost(device)}

    def remembered(gpu: Device) -> Device:
        known = ours.get(gpu.id)
        gpu = gpu if known is None else _last_read(gpu, known)
        memory = remember_fabric(gpu, known, now)
        if known is not None:
            peers = (*known.nvlink_peers, *gpu.nvlink_peers)
            memory |= remember_links(gpu, known, peer_left=not answering.issuperset(peers))
        return replace(gpu, attributes={**gpu.attributes, **memory}) if memory else gpu

    return [remembered(device) if device.device_class is DeviceClass.GPU else device for device in seen]


def is_lost(gpu: Device) -> bool:
    """Say whether the driver cannot reach it, so that it says nothing of itself."""
    return gpu.attributes.get("lost") is True


def _last_read(seen: Device, known: Device) -> Device:
    """Fill in what a GPU that cannot be asked now was last known to be: silence changes nothing."""
    if seen.mig_capable is None and mig_mode(known):
        # The MIG mode could not be read: a partitioned GPU does not become whole by that.
        mode = {**mig_mode(known), **mig_mode(seen)}
        seen = replace(seen, mig_capable=known.mig_capable, attributes={**seen.attributes, "migMode": mode})
    if not is_lost(seen):
        return drop_known(seen)
    unread = {name: getattr(known, name) for name in COLUMNS.values() if getattr(seen, name) in (None, ())}
    return drop_known(replace(seen, **unread, attributes={**known.attributes, **seen.attributes}))
