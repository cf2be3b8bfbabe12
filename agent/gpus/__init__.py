"""The GPUs of a node, as `nvidia-smi -q -x` or NVML tells of them, in the `gpus` section's document."""
