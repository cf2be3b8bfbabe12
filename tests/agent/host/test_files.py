import os
from pathlib import Path

from agent.host.answers import Cause, Missing, first_known
from agent.host.files import number, raw_text, text
from tests.agent.host.trees import Tree


def cause(answer: object) -> Cause | None:
    return answer.cause if isinstance(answer, Missing) else None


def test_reads_are_bounded(tree: Tree) -> None:
    tree.write("/proc/large", "x" * 101)
    assert cause(tree.source.read("/proc/large", 100)) is Cause.TOO_LARGE
    assert tree.source.read("/proc/large", 101) == b"x" * 101


def test_what_is_not_there_and_what_is_a_folder_are_told_apart(tree: Tree) -> None:
    tree.write("/sys/folder/file", "1")
    assert cause(tree.source.read("/sys/none")) is Cause.ABSENT
    assert cause(tree.source.read("/sys/folder")) is Cause.FAILED
    assert cause(tree.source.entries("/sys/folder/file")) is Cause.ABSENT
    assert tree.source.entries("/sys/folder") == ("file",)


def test_a_pipe_without_a_writer_does_not_hang(tree: Tree) -> None:
    tree.root.mkdir()
    os.mkfifo(tree.root / "pipe")
    assert tree.source.read("/pipe") == b""


def test_text_is_trimmed_and_blanks_are_missing(tree: Tree) -> None:
    tree.write("/a", "  value\0\n")
    tree.write("/b", "N/A\n")
    tree.write("/c", b"caf\xe9")
    assert text(tree.source, "/a") == "value"
    assert cause(text(tree.source, "/b")) is Cause.ABSENT
    assert raw_text(tree.source, "/c") == "caf\N{REPLACEMENT CHARACTER}"


def test_a_negative_number_is_none(tree: Tree) -> None:
    tree.write("/a", "-1\n")
    tree.write("/b", "0\n")
    tree.write("/c", "many\n")
    assert cause(number(tree.source, "/a")) is Cause.ABSENT
    assert number(tree.source, "/b") == 0
    assert cause(number(tree.source, "/c")) is Cause.FAILED


def test_a_denied_place_explains_more_than_an_absent_one() -> None:
    absent, denied = Missing(Cause.ABSENT, "a"), Missing(Cause.DENIED, "b")
    assert first_known([absent, denied]) is denied
    assert first_known([absent, 0, denied]) == 0
    assert cause(first_known([])) is Cause.ABSENT


def test_a_link_is_seen_without_its_target(tree: Tree) -> None:
    Path(tree.root).mkdir()
    (tree.root / "link").symlink_to("nowhere")
    assert tree.source.exists("/link")
    assert tree.source.link("/link") == "nowhere"
    assert cause(tree.source.link("/none")) is Cause.ABSENT
