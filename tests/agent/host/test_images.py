from agent.host.answers import Cause, Missing, Notes
from agent.host.files import Fact
from agent.host.images import ENTRIES_MAX, collect_images
from domain.availability import Availability
from domain.documents.images import Image, ImagesSection, Weights
from tests.agent.host.trees import Tree, mount

DIGEST = "ab" * 32


def test_nothing_is_searched_for_that_nobody_named(tree: Tree) -> None:
    assert collect_images(tree.source, (), None, Notes()) == ImagesSection()
    assert collect_images(tree.source, (), (), Notes()).weights == ()


def test_images_carry_the_digest_that_is_stated(tree: Tree) -> None:
    tree.write("/images/noble.img")
    tree.write("/images/noble.img.sha256", f"{DIGEST.upper()}  noble.img\n")
    tree.write(f"/images/sha256-{DIGEST}")
    tree.write("/images/plain.qcow2")
    tree.write("/images/.lock")
    for name in ("noble.img", "plain.qcow2"):
        tree.facts[Fact.TREE_BYTES, f"/images/{name}"] = 4096
    notes = Notes()
    assert collect_images(tree.source, ("/images",), None, notes).images == (
        Image(reference="noble.img", digest=f"sha256:{DIGEST}", size_bytes=4096),
        Image(reference="plain.qcow2", size_bytes=4096),
        Image(reference=f"sha256-{DIGEST}", digest=f"sha256:{DIGEST}"),
    )
    assert set(notes.missing) == {"images.2.sizeBytes"}


def test_weights_say_whether_other_nodes_see_them_too(tree: Tree) -> None:
    tree.write("/models/llama/config.json")
    tree.write("/scratch/qwen/config.json")
    tree.write(
        "/proc/self/mountinfo",
        mount("8:1", "/", "/", "ext4", "/dev/sda1") + mount("0:9", "/", "/models", "nfs4", "f:/m"),
    )
    tree.facts[Fact.TREE_BYTES, "/models/llama"] = 16 << 30
    tree.facts[Fact.TREE_BYTES, "/scratch/qwen"] = Missing(Cause.TOO_LARGE, "more than 100000 files")
    notes = Notes()
    assert collect_images(tree.source, (), ("/scratch", "/models/"), notes).weights == (
        Weights(path="/models/llama", size_bytes=16 << 30, shared=True),
        Weights(path="/scratch/qwen", shared=False),
    )
    assert notes.unavailable() == {"weights.1.sizeBytes": Availability.UNAVAILABLE}


def test_a_folder_that_is_gone_is_named_and_the_others_are_read(tree: Tree) -> None:
    tree.write("/models/llama/config.json")
    notes = Notes()
    weights = collect_images(tree.source, (), ("/gone", "/models"), notes).weights
    assert weights is not None
    assert [item.path for item in weights] == ["/models/llama"]
    assert notes.unavailable()["weights./gone"] is Availability.UNSUPPORTED


def test_a_listing_cut_short_says_so(tree: Tree) -> None:
    for number in range(ENTRIES_MAX + 1):
        tree.write(f"/images/{number:05}")
    notes = Notes()
    assert len(collect_images(tree.source, ("/images",), None, notes).images) == ENTRIES_MAX
    assert notes.unavailable()[f"images.{ENTRIES_MAX}"] is Availability.UNAVAILABLE
