"""Running every file of a folder through its reader."""

import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, assert_never

from bench.cases.answer import Concluded, NoReader, Rule, no_reader
from domain.errors import Refusal

_INDENT: Final = "    "
_UNMATCHED: Final = Rule("*", no_reader("no rule in bench/cases/table.py names it"))


@dataclass(frozen=True, slots=True)
class Block:
    """What is printed of one file, or of files that are read together, and whether the product crashed on it."""

    title: str
    lines: tuple[str, ...]
    crashed: bool = False

    @property
    def text(self) -> str:
        """The headed block."""
        return "\n".join((f"== {self.title}", *(f"{_INDENT}{line}".rstrip() for line in self.lines), ""))


def blocks(folder: Path, rules: Sequence[Rule]) -> Iterator[Block]:
    """Yield a block per file below the folder, in order of path; the first rule that matches reads it."""
    for rule, files in _grouped(folder, rules):
        yield _block(_title(folder, files), rule, files)


def catalog_blocks(folder: Path, rules: Sequence[Rule]) -> Iterator[Block]:
    """Yield a block per catalog that the folder itself has and a rule reads."""
    for rule in rules:
        for file in sorted(folder.glob(rule.pattern)):
            yield _block(file.name, rule, [file])


def _grouped(folder: Path, rules: Sequence[Rule]) -> Iterable[tuple[Rule, list[Path]]]:
    groups: dict[Path, tuple[Rule, list[Path]]] = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        rule = next((rule for rule in rules if fnmatchcase(name, rule.pattern)), _UNMATCHED)
        groups.setdefault(file.parent if rule.together else file, (rule, []))[1].append(file)
    return groups.values()


def _title(folder: Path, files: Sequence[Path]) -> str:
    first = files[0].relative_to(folder)
    if len(files) == 1:
        return first.as_posix()
    return f"{first.parent.as_posix()}/: {', '.join(file.name for file in files)}"


def _block(title: str, rule: Rule, files: Sequence[Path]) -> Block:
    try:
        answer = rule.reader(files)
    except Refusal as error:
        return Block(title, (f"refused ({error.code}): {error.message}",))
    except Exception:  # noqa: BLE001 - whatever it is, it is what this program looks for
        return Block(title, ("CRASHED", *traceback.format_exc().splitlines()), crashed=True)
    match answer:
        case Concluded(how, lines):
            return Block(title, (f"[{how}]", *lines))
        case NoReader(why):
            return Block(title, (f"no reader: {why}",))
        case _:
            assert_never(answer)
