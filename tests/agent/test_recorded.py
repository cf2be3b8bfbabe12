from pathlib import Path

import pytest

from agent.capture import capture
from agent.failures import WronglyCalled
from agent.gpus.smi_xml import read_smi_xml
from agent.recorded import complete_capture, read_capture, read_smi_file
from domain.documents.gpus import GpusSection
from domain.sections import decode
from tests.agent.gpus.logs import gpu_block, log
from tests.agent.host.trees import Tree, write_server

ONE = gpu_block(id="00000000:18:00.0", uuid="GPU-11110000-aaaa-bbbb-cccc-000000000001")
TWO = gpu_block(id="00000000:2A:00.0", uuid="GPU-11110000-aaaa-bbbb-cccc-000000000002", minor="1")


def smi_file(path: Path, *blocks: str, **facts: str) -> Path:
    path.write_bytes(log(*blocks, **facts))
    return path


def test_a_log_tells_of_gpus_and_of_nothing_else(tmp_path: Path) -> None:
    host = read_smi_file(smi_file(tmp_path / "smi.xml", ONE, TWO), None)
    assert list(host.inventory.contents) == ["gpus"]
    gpus = decode("gpus", host.inventory.contents["gpus"])
    assert isinstance(gpus, GpusSection)
    assert [gpu.pci_bus_id for gpu in gpus.gpus] == ["00000000:18:00.0", "00000000:2A:00.0"]


def test_a_log_is_the_same_node_whenever_it_was_taken(tmp_path: Path) -> None:
    first = read_smi_file(smi_file(tmp_path / "one.xml", ONE, TWO), None)
    later = read_smi_file(smi_file(tmp_path / "two.xml", TWO, ONE), None)
    other = read_smi_file(smi_file(tmp_path / "three.xml", ONE), None)
    assert (later.key, later.hostname) == (first.key, first.hostname)
    assert other.key != first.key
    assert first.hostname.startswith("recorded-")


def test_logs_whose_uuids_were_rewritten_to_the_same_are_two_nodes(tmp_path: Path) -> None:
    h100 = read_smi_file(smi_file(tmp_path / "one.xml", gpu_block(name="NVIDIA H100 80GB HBM3")), None)
    b200 = read_smi_file(smi_file(tmp_path / "two.xml", gpu_block(name="NVIDIA B200")), None)
    assert h100.key != b200.key


def test_an_older_drivers_spelling_of_the_product_is_the_same_node(tmp_path: Path) -> None:
    older = read_smi_file(smi_file(tmp_path / "one.xml", gpu_block(name="A100-SXM4-40GB")), None)
    newer = read_smi_file(smi_file(tmp_path / "two.xml", gpu_block(name="NVIDIA A100-SXM4-40GB")), None)
    assert older.key == newer.key


def test_an_identity_makes_a_recorded_host_a_node_of_its_own(tmp_path: Path) -> None:
    file = smi_file(tmp_path / "smi.xml", ONE)
    one, two = read_smi_file(file, "one"), read_smi_file(file, "two")
    assert (one.key.text, two.key.text) == ("one", "two")
    assert one.hostname != two.hostname
    assert one.inventory.digest == two.inventory.digest


def test_what_is_no_log_is_a_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "smi.xml").write_text("NVIDIA-SMI has failed")
    with pytest.raises(WronglyCalled, match=r"smi\.xml"):
        read_smi_file(tmp_path / "smi.xml", None)
    with pytest.raises(WronglyCalled, match="No such file"):
        read_smi_file(tmp_path / "missing.xml", None)


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    tree = Tree(tmp_path / "root")
    write_server(tree)
    capture(tree.source, tmp_path / "capture")
    return tmp_path / "capture"


def test_a_completed_capture_replays_gpus_and_name(captured: Path) -> None:
    gpus = read_smi_xml(log(ONE, TWO))
    complete_capture(captured, gpus, "gpu-7")
    host = read_capture(captured, None)
    assert len(host.inventory.contents) == 8
    assert host.hostname == "gpu-7"
    assert decode("gpus", host.inventory.contents["gpus"]) == gpus
    assert {(captured / name).stat().st_mode & 0o077 for name in ("gpus.json", "hostname")} == {0}


def test_a_capture_without_gpus_says_nothing_of_gpus(captured: Path) -> None:
    host = read_capture(captured, None)
    assert "gpus" not in host.inventory.contents
    assert len(host.inventory.contents) == 7


def test_what_is_no_capture_is_a_wrong_call(tmp_path: Path, captured: Path) -> None:
    with pytest.raises(WronglyCalled, match="is not a capture"):
        read_capture(tmp_path, None)
    (captured / "gpus.json").write_text('{"gpus": 7}')
    with pytest.raises(WronglyCalled, match="gpus"):
        read_capture(captured, None)
    (captured / "manifest.json").write_text("{")
    with pytest.raises(WronglyCalled, match="manifest"):
        read_capture(captured, None)
