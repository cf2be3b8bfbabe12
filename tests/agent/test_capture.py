import json
from pathlib import Path

import pytest

from agent.capture import capture, collect_captured
from agent.host.answers import Cause, Missing
from agent.host.files import Fact
from agent.host.inventory import collect
from agent.host.options import HostOptions
from agent.host.recording import MANIFEST_NAME, CapturedSource
from domain.sections import encode
from tests.agent.host.trees import Tree, write_server

OPTIONS = HostOptions(weights_dirs=("/models",), engine_dirs=(), fabrics={"compute": ("mlx5_0",)})


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "root")
    write_server(tree)
    tree.write("/models/llama/config.json")
    tree.facts[Fact.TREE_BYTES, "/models/llama"] = 1 << 34
    return tree


def test_a_capture_mirrors_the_paths_and_replays_to_equal_bytes(tree: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    capture(tree.source, folder, OPTIONS)
    assert (folder / "sys/class/dmi/id/product_uuid").read_text() == "4c4c4544-0051-4210-8031-b8c04f4a3533\n"
    live = {name: encode(section) for name, section in collect(tree.source, OPTIONS).items()}
    assert {name: encode(section) for name, section in collect_captured(folder).items()} == live


def test_only_its_owner_may_read_a_capture(tree: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    capture(tree.source, folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o077 for path in [folder, *files]} == {0}


def test_a_capture_never_mixes_with_what_is_there(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture/old").touch()
    with pytest.raises(FileExistsError, match="not empty"):
        capture(tree.source, tmp_path / "capture")


def test_what_was_denied_is_denied_in_the_replay(tree: Tree, tmp_path: Path) -> None:
    tree.facts[Fact.PERMANENT_MAC, "eno1np0"] = Missing(Cause.DENIED, "eno1np0: permission denied")
    capture(tree.source, tmp_path / "capture")
    answer = CapturedSource(tmp_path / "capture").ask(Fact.PERMANENT_MAC, ["eno1np0"])["eno1np0"]
    assert answer == Missing(Cause.DENIED, "eno1np0: permission denied")


def test_a_capture_cannot_lead_out_of_its_folder(tree: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    capture(tree.source, folder)
    (tmp_path / "secret").write_text("secret")
    manifest = json.loads((folder / MANIFEST_NAME).read_text())
    manifest["files"] += ["/../secret", "/planted"]
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    (folder / "planted").symlink_to(tmp_path / "secret")
    captured = CapturedSource(folder)
    for path in ("/../secret", "/planted"):
        answer = captured.read(path)
        assert isinstance(answer, Missing)
        assert "leads out" in answer.detail


def test_what_was_never_asked_is_unknown(tree: Tree, tmp_path: Path) -> None:
    capture(tree.source, tmp_path / "capture")
    captured = CapturedSource(tmp_path / "capture")
    answers = [
        captured.read("/new"),
        captured.entries("/new"),
        captured.link("/new"),
        captured.ask(Fact.VF_MACS, ["x"])["x"],
    ]
    assert {answer.cause for answer in answers if isinstance(answer, Missing)} == {Cause.NOT_CAPTURED}
    assert len(answers) == 4
    assert not captured.exists("/new")


@pytest.mark.parametrize("content", ["{", '{"version": "x"}', '{"version": 99}'])
def test_a_folder_that_is_no_capture_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST_NAME).write_text(content)
    with pytest.raises(ValueError, match="capture"):
        CapturedSource(tmp_path)
