"""Who reads which files, by their path below the folder of recorded files; the first pattern that matches counts."""

from typing import Final

from bench.cases import gpu_names, gpus, host, identifiers, identity, kmsg, listings, nvml
from bench.cases.answer import Rule, no_reader

_TEXT: Final = "text of a tool for people; the product asks the kernel or the driver"

RULES: Final = (
    Rule("smi/*.xml", gpus.smi),
    Rule("smi/lspci*.txt", listings.lspci),
    Rule("smi/*.txt", no_reader(f"{_TEXT}, or reads nvidia-smi -q -x")),
    Rule("nvml/*.yaml", nvml.profile),
    Rule("nvml/go-nvml-mock-dgx.json", nvml.servers),
    Rule("nvml/*.prom", identity.sentinels),
    Rule("os-release/*", host.os_release),
    Rule("proc/cpuinfo/*", host.cpuinfo),
    Rule("proc/cpu_model_strings.json", host.cpu_models),
    Rule("proc/lscpu/*", no_reader(f"{_TEXT}; an expectation to hold the cpu collector against")),
    Rule("proc/pressure-*/*", host.pressure, together=True),
    Rule("proc/stat-*/*", host.steal, together=True),
    Rule("dmi/*.txt", listings.dmidecode),
    Rule("disk/lsblk*.json", listings.lsblk),
    Rule("disk/nvme-list*.json", listings.nvme_list),
    Rule("disk/*", no_reader(_TEXT)),
    Rule("ib/sysfs-class-infiniband-*.txt", listings.infiniband),
    Rule("ib/*", no_reader(f"{_TEXT}; of an adapter it reads /sys/class/infiniband")),
    Rule("identity/placeholders.json", identity.placeholders),
    Rule("kmsg/*.jsonl", kmsg.entries),
    Rule("kmsg/*", kmsg.log),
    Rule("SOURCES.md", no_reader("says where the files come from")),
)

CATALOGS: Final = (
    Rule("gpu_names.md", gpu_names.names_with_memory),
    Rule("gpu_pci_ids.md", gpu_names.driver_names),
    Rule("smbios_placeholders.md", identifiers.placeholder_catalog),
)
"""Lists for people, in the folder of cases itself, that the product can be held against."""
