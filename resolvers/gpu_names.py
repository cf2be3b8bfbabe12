"""What GPUs are called, asked by people and tools."""

from domain.access import Permission
from domain.errors import InvalidInput
from domain.gpu_models import GpuModelTable, gpu_models
from domain.gpu_names import GpuName, canonicalize, normalize
from domain.texts import required_text
from resolvers.context import Context


def gpu_name(context: Context, name: str, vram_mib: int | None) -> GpuName:
    """Say what a GPU of this name and memory is; raises InvalidInput."""
    context.require(Permission.READ)
    required_text("name", name)
    if not canonicalize(name):
        raise InvalidInput("name: without a letter or digit; give it as NVML reports it, such as `NVIDIA H200`")
    if vram_mib is not None and vram_mib <= 0:
        raise InvalidInput(f"vramMiB: {vram_mib}; give MiB above 0, or leave it out when it is not known")
    return normalize(name, vram_mib)


def gpu_model_table(context: Context) -> GpuModelTable:
    """Return the table by which GPUs are named."""
    context.require(Permission.READ)
    return gpu_models()
