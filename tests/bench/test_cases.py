import json
from pathlib import Path

import pytest

from bench.cases import __main__ as program
from bench.cases import plain_yaml
from bench.cases.answer import Concluded, Rule
from bench.cases.run import blocks, catalog_blocks
from bench.cases.table import CATALOGS, RULES
from domain.errors import InvalidInput
from tests.support.smi import cards, smi_log

PROFILE = """
version: "1.0"  # of the profile
system:
  driver_version: "580.10.01"
  cuda_version_major: 13
  cuda_version_minor: 0
device_defaults:
  name: "NVIDIA H100 80GB HBM3"
  serial: "1990000000010"
  board_part_number: "692-2G520-0200-000"
  vbios_version: "96.00.99.00.01"
  architecture: "hopper"
  compute_capability:
    major: 9
    minor: 0
  fabric:
    cluster_uuid: "00000000-0000-0000-0000-000000000000"
    clique_id: 3
  memory:
    total_bytes: 85520809984
  pcie:
    max_link_width: 16
    current_link_width: 8
  ecc:
    mode_current: "enabled"
    mode_pending: "enabled"
    errors:
      volatile:
        double_bit:
          total: 2
      aggregate:
        double_bit:
          total: 5
devices:
  - index: 0
    uuid: "GPU-77770000-aaaa-bbbb-cccc-000000000001"
    pci:
      bus_id: "0008:06:00.0"
"""


def write(folder: Path, name: str, content: str | bytes) -> None:
    file = folder / "files" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def run(folder: Path) -> dict[str, str]:
    """Return the text below each title, blanks folded, as no test is about the alignment."""
    found = {block.title: " ".join(" ".join(block.lines).split()) for block in blocks(folder / "files", RULES)}
    assert found
    return found


def test_every_file_has_its_block_and_none_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "smi/two.xml", smi_log(cards(2, "NVIDIA H100 80GB HBM3", 81559, "99990000")))
    write(tmp_path, "smi/torn.xml", "<nvidia_smi_log><gpu")
    write(tmp_path, "kmsg/dmesg.log", "NVRM: Xid (PCI:0000:18:00): 79\n")
    write(tmp_path, "other/thing", "?")
    assert program.main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "== smi/two.xml\n    [read_smi_xml" in printed
    assert "== smi/torn.xml\n    refused (INVALID_INPUT): " in printed
    assert "== kmsg/dmesg.log\n    [explain-log]\n    1 lines, 1 of them records of the kernel; 1 faults\n" in printed
    assert "== other/thing\n    no reader: no rule" in printed
    assert printed.endswith("4 blocks; crashed: none\n")


def test_a_crash_is_shown_with_its_traceback_and_the_other_files_still_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(files: object) -> Concluded:
        raise ZeroDivisionError(files)

    def refuse(files: object) -> Concluded:
        raise InvalidInput(f"not {files}")

    monkeypatch.setattr(program, "RULES", (Rule("a", crash), Rule("b", refuse)))
    write(tmp_path, "a", "")
    write(tmp_path, "b", "")
    assert program.main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "== a\n    CRASHED\n    Traceback" in printed
    assert "== b\n    refused (INVALID_INPUT)" in printed
    assert printed.endswith("2 blocks; crashed: a\n")


def test_a_folder_without_files_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        program.main([str(tmp_path)])
    assert "there is nothing to run" in capsys.readouterr().err


def test_gpus_are_a_line_each_in_an_order_of_their_own(tmp_path: Path) -> None:
    partitioned, whole = cards(2, "NVIDIA H100 80GB HBM3", 81559, "99990000")
    card = type(whole)(partitioned.bus, partitioned.uuid, partitioned.name, partitioned.memory_mib, mig=(2, 9))
    write(tmp_path, "smi/two.xml", smi_log([whole, card]))
    text = run(tmp_path)["smi/two.xml"]
    assert "GPUs reversed the same bytes, no change" in text
    assert (
        f"{card.uuid} NVIDIA H100 80GB HBM3 H100-SXM5-80GB H100 81559 MiB 00000000:18:00.0 no completed/success" in text
    )
    assert "on: gi2 19968 MiB (ci0 profile unknown); gi9 19968 MiB (ci0 profile unknown)" in text
    assert (
        f"{whole.uuid} NVIDIA H100 80GB HBM3 H100-SXM5-80GB H100 81559 MiB 00000000:20:00.0 yes completed/success"
        in text
    )
    assert "no multi-node domain, health unknown (unknown)" in text


def test_a_profile_is_what_nvml_answers(tmp_path: Path) -> None:
    write(tmp_path, "nvml/profile.yaml", PROFILE)
    write(tmp_path, "nvml/anchored.yaml", "a: &anchor\n  b: 1\n")
    found = run(tmp_path)
    assert "driver 580.10.01 CUDA 13.0" in found["nvml/profile.yaml"]
    assert "00000008:06:00.0 yes completed/success, no multi-node domain, health healthy" in found["nvml/profile.yaml"]
    assert "2 vol 5 agg" in found["nvml/profile.yaml"]
    assert found["nvml/anchored.yaml"].startswith("no reader: needs a YAML reader")


def test_plain_yaml_is_mappings_sequences_and_scalars() -> None:
    text = 'a:\n  - b: 0x10\n    c: [1, two]\n  - b: "x # y"\nd: true\ne:\n'
    assert plain_yaml.parse(text.replace(" # y", "")) == {
        "a": [{"b": 16, "c": [1, "two"]}, {"b": "x"}],
        "d": True,
        "e": None,
    }


def test_host_files_are_read_by_the_collectors(tmp_path: Path) -> None:
    write(tmp_path, "os-release/rolling", "ID=arch\nBUILD_ID=rolling\nVERSION_ID=1\n")
    write(tmp_path, "proc/cpuinfo/arm", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd0c\n")
    write(tmp_path, "proc/cpu_model_strings.json", json.dumps([{"raw": "Example 9000", "kind": "any"}]))
    found = run(tmp_path)
    assert "distro.version unknown (unsupported: a rolling distribution has no version)" in found["os-release/rolling"]
    assert "model 'Neoverse-N1' threads 1" in found["proc/cpuinfo/arm"]
    assert "'Example 9000' 'Example 9000'" in found["proc/cpu_model_strings.json"]


def test_files_of_one_host_are_read_together(tmp_path: Path) -> None:
    write(tmp_path, "proc/pressure-old/cpu", "some avg10=1.50 avg60=0.08 avg300=0.06 total=2\n")
    write(tmp_path, "proc/pressure-old/io", "some avg10=0.00\nfull avg10=0.25\n")
    for place, steal in enumerate((10, 20, 5)):
        write(tmp_path, f"proc/stat-a/proc{place}", f"cpu 0 0 0 {90 * place} 0 0 0 {steal}\ncpu0 0\n")
    found = run(tmp_path)
    assert "cpu some 1.5 %, full unknown (no `full` line)" in found["proc/pressure-old/: cpu, io"]
    assert "io some 0 %, full 0.25 %" in found["proc/pressure-old/: cpu, io"]
    steals = found["proc/stat-a/: proc0, proc1, proc2"]
    assert "proc0 → proc1: steal 10.00 %" in steals
    assert "proc1 → proc2: no measure: the sample is dropped" in steals


def test_listings_of_disks_become_what_sysfs_would_say(tmp_path: Path) -> None:
    disks = [
        {"name": f"/dev/nvme{each}n1", "type": "disk", "size": 1 << 40, "serial": f"MADEUP{each}", "model": "Example"}
        for each in range(2)
    ]
    part = {"name": "/dev/nvme0n1p1", "type": "part", "size": 4096}
    loop = {"name": "/dev/loop0", "type": "loop", "size": 4096}
    listed = {"blockdevices": [loop, {**disks[0], "children": [part]}, disks[1]]}
    write(tmp_path, "disk/lsblk.json", json.dumps(listed))
    nvme = {"DevicePath": "/dev/nvme0n1", "NameSpace": 1, "SerialNumber": "MADEUP0", "ModelNumber": "Example"}
    write(tmp_path, "disk/nvme-list.json", json.dumps({"Devices": [nvme]}))
    found = run(tmp_path)
    assert "3 whole block devices listed, 2 are disks" in found["disk/lsblk.json"]
    assert (
        "example:madeup1:1 nvme1n1 unknown (unknown) MADEUP1 1 Example 1099511627776 nvme" in found["disk/lsblk.json"]
    )
    assert "names of disks swapped: no change" in found["disk/lsblk.json"]
    assert "example:madeup0:1 nvme0n1" in found["disk/nvme-list.json"]


def test_other_listings_become_what_sysfs_would_say(tmp_path: Path) -> None:
    write(tmp_path, "dmi/a.txt", "System Information\n\tManufacturer: Example\n\tSerial Number: MADEUP1\n")
    port = "mlx5_0/ports/1"
    write(
        tmp_path,
        "ib/sysfs-class-infiniband-a.txt",
        f"{port}/link_layer: InfiniBand\n{port}/rate: 400 Gb/sec (4X NDR)\n{port}/state: 4: ACTIVE\n",
    )
    write(
        tmp_path,
        "smi/lspci-a.txt",
        "0008:06:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n"
        "0009:06:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:22a3] (rev a1)\n",
    )
    found = run(tmp_path)
    assert "systemSerial 'MADEUP1' vendor 'Example'" in found["dmi/a.txt"]
    assert "(not trusted: fewer than two independent identifiers)" in found["dmi/a.txt"]
    assert "systemSerial 'MADEUP1' counts as madeup1" in found["dmi/a.txt"]
    assert "node/nic/mlx5_0 unknown 1: InfiniBand 400 Gbit/s" in found["ib/sysfs-class-infiniband-a.txt"]
    assert found["smi/lspci-a.txt"].endswith("2 functions listed, 1 are NVIDIA GPUs 00000008:06:00.0")


def test_placeholders_are_judged_by_the_rule_of_their_kind(tmp_path: Path) -> None:
    kinds = {
        "serial": [{"v": "None"}, {"v": "MADEUP1"}, {"v": "Default string"}],
        "system_uuid": [{"v": "03000200-0400-0500-0006-000700080009"}],
        "mac": [{"v": "ee:ee:ee:ee:ee:ee"}, {"v": "0c:42:a1:00:00:01"}],
        "gpu_cluster_uuid": [{"v": "00000000-0000-0000-0000-000000000000"}],
    }
    write(tmp_path, "identity/placeholders.json", json.dumps(kinds))
    write(tmp_path, "nvml/dcgm.prom", '# HELP x y\nx{gpu="0"} 9223372036854775794\n')
    found = run(tmp_path)
    text = found["identity/placeholders.json"]
    assert "'None' unknown (unknown)" in text
    assert "'MADEUP1' IDENTIFIES as madeup1" in text
    assert "'Default string' no identity" in text
    assert "'03000200-0400-0500-0006-000700080009' no identity" in text
    assert "'ee:ee:ee:ee:ee:ee' no identity" in text
    assert "'0c:42:a1:00:00:01' IDENTIFIES as 0c:42:a1:00:00:01" in text
    assert "no multi-node domain" in text
    assert found["nvml/dcgm.prom"].endswith("9223372036854775794 unknown unknown")


def test_the_catalog_of_placeholders_is_held_against_the_rules(tmp_path: Path) -> None:
    (tmp_path / "smbios_placeholders.md").write_text(
        """
# Values
## UUIDs
| value | source |
|---|---|
| 00010203-0405-0607-0809-0A0B0C0D0E0F | here |
| 7f0e0c2a-51d3-4c8a-9f5e-3a1b2c4d5e6f ; Not Settable | there |

Look bad but are real
- 00000000-0000-0000-0000-AC1F6Bxxxxxx: one board each.

## Serial numbers, board serials
Default string \u00b7 all zeros (/^0+$/) \u00b7 MADEUP1 \u00b7
t.b.d \u00b7 To be filled by O.E.M (no final dot)

## MAC addresses
| value | why |
|---|---|
| any with bit 0x02 set | local |
| 00:50:56:C0:*, 0c:42:a1:00:00:01 | host adapters, and one that is real |
""",
        encoding="utf-8",
    )
    [block] = catalog_blocks(tmp_path, CATALOGS)
    verdicts = [" ".join(line.split()).partition("' ")[2] for line in block.lines[1:]]
    assert verdicts == [
        "no identity",
        "IDENTIFIES as 2a0c0e7fd3518a4c9f5e3a1b2c4d5e6f",
        "no identity",
        "IDENTIFIES as 00000000000000000000ac1f6b4c2d1e",
        "no identity",
        "IDENTIFIES as madeup1",
        "no identity",
        "no identity",
        "no identity",
        "IDENTIFIES as 0c:42:a1:00:00:01",
    ]


def test_catalogs_of_names_are_read_with_the_memory_they_tell(tmp_path: Path) -> None:
    (tmp_path / "gpu_names.md").write_text(
        """
| name as reported | MiB | form |
|---|---|---|
| NVIDIA A800-SXM4-80GB / -40GB | 81920 / 40960 | SXM4 |
| NVIDIA GB300 | 284208 (rack) / 256703 (desk) | superchip |
| NVIDIA RTX 5880 Ada Generation, 5000, 2000E Ada Generation | - | PCIe |
| name | what |
|---|---|
| NVIDIA H900 ; Orin (nvgpu) | 12345 things |
"""
    )
    (tmp_path / "gpu_pci_ids.md").write_text(
        """
| 0x0001 | 0000:0000 | NVIDIA L40S |
- NVIDIA GeForce RTX 4090: 2684
- GRID A100X (13): GRID A100X-5C, ..., GRID A100X-1-5CME
"""
    )
    found = {
        block.title: [" ".join(line.split()) for line in block.lines] for block in catalog_blocks(tmp_path, CATALOGS)
    }
    assert found["gpu_names.md"] == [
        "[normalize]",
        "9 names: 7 board, 1 unknown, 1 integrated",
        "name MiB product model kind",
        "NVIDIA A800-SXM4-80GB 81920 A800-SXM4-80GB A800 board",
        "NVIDIA A800-SXM4-40GB 40960 A800-SXM4-40GB A800 board",
        "NVIDIA GB300 284208 GB300-SUPERCHIP-278GB GB300 board",
        "NVIDIA GB300 256703 GB300-SUPERCHIP-252GB GB300 board",
        "NVIDIA RTX 5880 Ada Generation - RTX-5880-ADA-PCIE-48GB RTX-5880-ADA board",
        "NVIDIA RTX 5000 Ada Generation - RTX-5000-ADA-PCIE-32GB RTX-5000-ADA board",
        "NVIDIA RTX 2000E Ada Generation - RTX-2000E-ADA-PCIE-16GB RTX-2000E-ADA board",
        "Orin (nvgpu) - ORIN-JETSON ORIN integrated",
        "not in the table: NVIDIA H900",
    ]
    assert found["gpu_pci_ids.md"][1:] == [
        "4 names: 2 board, 2 vgpu",
        "name MiB product model kind",
        "NVIDIA L40S - L40S-PCIE-48GB L40S board",
        "NVIDIA GeForce RTX 4090 - RTX-4090-PCIE-24GB RTX-4090 board",
        "GRID A100X-5C - GRID-A100X-5C other vgpu of A100",
        "GRID A100X-1-5CME - GRID-A100X-1-5CME other vgpu of A100",
        "not in the table: none",
    ]


def test_lines_of_kernel_logs_are_concluded_under_each_driver_and_held_against_what_is_expected(tmp_path: Path) -> None:
    link = "NVRM: Xid (PCI:0000:18:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 10 (0x00000004 0x00000080)"
    entries = [
        {"line": link, "expect": {"xid": 145, "link": 11, "note": "…"}},
        {"line": "NVRM: Xid (PCI:0000:18:00): 13", "expect": None},
        {"line": "nothing", "expect": {"xid": 13}},
        {"raw": "12,4,5,-;NVRM: Xid (PCI:0000:18:00): 79", "expect": {"facility": 1, "xid": None}},
        {"raw": "EPIPE", "expect": {"note": "overrun"}},
    ]
    write(tmp_path, "kmsg/some.jsonl", "\n".join(map(json.dumps, entries)))
    text = run(tmp_path)["kmsg/some.jsonl"]
    assert "driver 570 xid 145 00000000:18:00.0 pid - 1x unknown of the gpu" in text
    assert "driver 575 xid 145 00000000:18:00.0 pid - 1x quarantine Xid145 of the gpu gpu_reset" in text
    assert "DIFFERS: link is 10, expected 11" in text
    assert "DIFFERS: expected no fault" in text
    assert "DIFFERS: expected {'xid': 13}" in text
    assert text.count("DIFFERS") == 3
    assert "record: facility 1, sequence 4, 5 µs" in text
    assert "Gap(line=5, lost=None)" in text
