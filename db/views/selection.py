"""What is asked of rows, in the database's terms: which values, under which names, and which rows belong to them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from db.paging import Key, Order
from db.views.view import View, Where


class Form(Enum):
    """How a value is written."""

    PLAIN = auto()
    """As JSON writes the column's type."""
    TEXT = auto()
    """As a string."""


@dataclass(frozen=True, slots=True)
class Names:
    """A value that is written as the name it has; one without a name is refused."""

    names: tuple[tuple[str, str], ...]


Writing: TypeAlias = Form | Names


@dataclass(frozen=True, slots=True)
class Constant:
    """A text that is the same in every row."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column's value; a `required` one is never null."""

    key: str
    name: str
    writing: Writing
    required: bool


@dataclass(frozen=True, slots=True)
class Nested:
    """What belongs to the row by a relation. `asked` counts the relation's arguments among the selection's."""

    key: str
    relation: str
    selection: "RowSelection | PageSelection"
    required: bool
    asked: int | None = None


@dataclass(frozen=True, slots=True)
class Same:
    """The row itself, read as another type."""

    key: str
    selection: "Selection"


@dataclass(frozen=True, slots=True)
class DocumentLeaf:
    """A value inside a JSON document; `default` stands for an absent one."""

    key: str
    name: str
    writing: Writing
    required: bool
    default: Any = None


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A document inside a document, or a list of them, or what a declared document of a row holds."""

    key: str
    name: str
    many: bool
    required: bool
    fields: "tuple[DocumentLeaf | DocumentPart | Constant | Nested, ...]"
    default: Any = None


Field: TypeAlias = Constant | Leaf | Nested | Same | DocumentPart


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked of the rows of one type."""

    view: View
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Variants:
    """What is asked of rows whose type is told row by row."""

    view: View
    of: Mapping[str, Selection]


RowSelection: TypeAlias = Selection | Variants


class PagePart(Enum):
    """What a page offers."""

    EDGES = auto()
    NODES = auto()
    PAGE_INFO = auto()
    TOTAL_COUNT = auto()


@dataclass(frozen=True, slots=True)
class PageField:
    """A part of a page under a name. An edge's fields are `cursor` and `node`; a PageInfo's are its columns."""

    key: str
    part: PagePart
    rows: RowSelection | None = None
    fields: "tuple[EdgeField | Constant, ...]" = ()


@dataclass(frozen=True, slots=True)
class EdgeField:
    """A field of an edge or of a PageInfo; an edge's node has a selection."""

    key: str
    name: str
    rows: RowSelection | None = None


@dataclass(frozen=True, slots=True)
class PageSelection:
    """What is asked of a page of rows."""

    view: View
    fields: tuple[PageField | Constant, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of a read: which rows, in which order, and which page of them."""

    where: tuple[Where, ...] = ()
    order: Order | None = None
    first: int | None = None
    after: Key | None = None
    frame: tuple[str, str] = ("", "")
    """What stands before and behind a row's key in its cursor (`domain.cursor`)."""

    @property
    def shape(self) -> "Shape":
        """What the SQL text depends on: equal for reads that differ in values only."""
        order = self.order.name if self.order else None
        wheres = tuple(where.shape for where in self.where)
        return Shape(self, (wheres, order, self.first is not None, self.after is not None))

    @property
    def identity(self) -> Hashable:
        """What tells this read from any other of the same rows."""
        return (self.shape.key, tuple(self.values()))

    @property
    def width(self) -> int:
        """How many values there are to bind."""
        wheres = sum(len(where.types) for where in self.where)
        key = len(self.order.columns) if self.order is not None and self.after is not None else 0
        return wheres + key + (0 if self.first is None else 3)

    def values(self) -> list[Any]:
        """Return the values to bind, where by where, then the page's."""
        found: list[Any] = []
        for where in self.where:
            found.extend(where.values)
        found.extend(self.after or ())
        if self.first is not None:
            found.extend((*self.frame, self.first))
        return found


@dataclass(frozen=True, slots=True)
class Shape:
    """A read in the eyes of a cache of statements: one whose text is the same is equal."""

    asked: Asked = field(compare=False)
    key: Hashable
