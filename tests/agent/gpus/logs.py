"""Small nvidia-smi logs, written for these tests; serials and UUIDs are made up."""

GPU_TEMPLATE = """
<gpu id="{id}">
  <product_name>{name}</product_name>
  <product_architecture>Hopper</product_architecture>
  <mig_mode><current_mig>{mig}</current_mig><pending_mig>{mig}</pending_mig></mig_mode>
  <mig_devices>{mig_devices}</mig_devices>
  <serial>{serial}</serial>
  <uuid>{uuid}</uuid>
  <minor_number>{minor}</minor_number>
  <vbios_version>{vbios}</vbios_version>
  <board_part_number>{part}</board_part_number>
  <gpu_part_number>2330-885-A1</gpu_part_number>
  <gpu_virtualization_mode><virtualization_mode>{virtualization}</virtualization_mode></gpu_virtualization_mode>
  <pci>
    <pci_bus_id>{id}</pci_bus_id>
    <pci_gpu_link_info><link_widths>
      <max_link_width>16x</max_link_width><current_link_width>8x</current_link_width>
    </link_widths></pci_gpu_link_info>
    <replay_counter>{volatile}</replay_counter>
  </pci>
  <fb_memory_usage>
    <total>{vram}</total><reserved>480 MiB</reserved><used>{volatile} MiB</used><free>7 MiB</free>
  </fb_memory_usage>
  <utilization><gpu_util>{volatile} %</gpu_util></utilization>
  <ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>{ecc_pending}</pending_ecc></ecc_mode>
  <ecc_errors>{ecc}</ecc_errors>
  <retired_pages>{retired}</retired_pages>
  <remapped_rows>{rows}</remapped_rows>
  <temperature><gpu_temp>{volatile} C</gpu_temp></temperature>
  <gpu_power_readings><instant_power_draw>{volatile}.50 W</instant_power_draw></gpu_power_readings>
  <clocks><sm_clock>{volatile} MHz</sm_clock></clocks>
  <fabric>{fabric}</fabric>
  <processes><process_info><process_name>{process}</process_name></process_info></processes>
</gpu>
"""

FABRIC = """<state>Completed</state><status>Success</status><cliqueId>7</cliqueId>
<clusterUuid>5A1F0000-0000-4000-8000-00000000C0DE</clusterUuid>
<health><summary>Healthy</summary><bandwidth>Full</bandwidth><route_unhealthy>False</route_unhealthy></health>"""
ROWS = """<remapped_row_corr>1</remapped_row_corr><remapped_row_unc>4</remapped_row_unc>
<remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>"""
ECC = """<volatile><sram_correctable>9</sram_correctable><sram_uncorrectable_parity>1</sram_uncorrectable_parity>
<sram_uncorrectable_secded>2</sram_uncorrectable_secded><dram_uncorrectable>32</dram_uncorrectable></volatile>
<aggregate><sram_uncorrectable>0</sram_uncorrectable><dram_uncorrectable>71</dram_uncorrectable></aggregate>"""
MIG_DEVICE = """<mig_device><index>{index}</index><gpu_instance_id>{gi}</gpu_instance_id>
<compute_instance_id>{ci}</compute_instance_id>
<fb_memory_usage><total>{memory}</total><used>12 MiB</used></fb_memory_usage></mig_device>"""

DEFAULTS = {
    "id": "00000000:18:00.0",
    "name": "NVIDIA H100 80GB HBM3",
    "mig": "Disabled",
    "mig_devices": "None",
    "serial": "1990000000017",
    "uuid": "GPU-11110000-aaaa-bbbb-cccc-000000000001",
    "minor": "5",
    "vbios": "96.00.12.00.01",
    "part": "692-2G520-0200-000",
    "virtualization": "None",
    "volatile": "40",
    "vram": "81559 MiB",
    "ecc_pending": "Disabled",
    "ecc": ECC,
    "retired": "N/A",
    "rows": ROWS,
    "fabric": FABRIC,
    "process": "python",
}


def gpu_block(**facts: str) -> str:
    return GPU_TEMPLATE.format(**{**DEFAULTS, **facts})


def mig_device(index: int, gi: str, ci: str, memory: str) -> str:
    return MIG_DEVICE.format(index=index, gi=gi, ci=ci, memory=memory)


def log(
    *blocks: str, attached: int | str | None = "listed", head: str = "", doctype: str = "nvsmi_device_v12"
) -> bytes:
    """Write a log of the given GPUs; `attached` is the count it claims (None: it claims none)."""
    count = len(blocks) if attached == "listed" else attached
    claim = "" if count is None else f"<attached_gpus>{count}</attached_gpus>"
    versions = head or "<driver_version>580.10.01</driver_version><cuda_version>13.0</cuda_version>"
    text = (
        f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "{doctype}.dtd">\n'
        f"<nvidia_smi_log><timestamp>Mon Jan 01 00:00:00 2024</timestamp>{versions}{claim}{''.join(blocks)}"
        "</nvidia_smi_log>"
    )
    return text.encode()
