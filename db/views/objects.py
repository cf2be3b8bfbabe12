"""From what is selected of a row to the expression that writes it as a JSON object, with all that is nested in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import sqlalchemy as sa
from sqlalchemy import Select
from sqlalchemy.dialects.postgresql import JSON, aggregate_order_by

from db.paging import Order
from db.views import json_text
from db.views.documents import PART, PART_RELATIONS
from db.views.draft import Bound, Draft, Labelled, Opened, columns_in
from db.views.json_text import NotCompilable, list_of, named, one_of, present, row_of, text_literal
from db.views.selection import (
    Constant,
    DocumentLeaf,
    DocumentPart,
    Field,
    Leaf,
    Nested,
    PageField,
    PagePart,
    PageSelection,
    RowSelection,
    Same,
    Selection,
    Variants,
)
from db.views.view import Expression, Relation, View

LISTS: Final = frozenset({PagePart.EDGES, PagePart.NODES})
ONE: Final = sa.literal_column("1", sa.BigInteger)
Put = Callable[[sa.FromClause], Opened]
_BOOLEANS: Final = {value: sa.literal_column(str(value).lower(), sa.Boolean) for value in (True, False)}


# ---- rows ------------------------------------------------------------------------------------------------------------


def row_object(draft: Draft, selection: RowSelection) -> Expression:
    """Return the enclosing row as a JSON object; raises NotCompilable."""
    match selection:
        case Selection():
            return one_of(row_of(columns_of(draft, selection)).subquery(draft.name("x")))
        case Variants(view=view, of=of):
            if view.variant is None:
                raise NotCompilable(f"{view.name} has no types of its own")
            rows = {text_literal(name): row_object(draft, of[name]) for name in of}
            return sa.case(rows, value=view.variant, else_=sa.cast(sa.func.absent_value(), JSON))
        case _:
            assert_never(selection)


def columns_of(draft: Draft, selection: Selection) -> Labelled:
    """Return the fields of a row's object under their names; raises NotCompilable."""
    return named([(field.key, _field(draft, selection.view, field)) for field in selection.fields])


def _field(draft: Draft, view: View, field: Field) -> Expression:
    match field:
        case Constant(text=text):
            return text_literal(text)
        case Leaf(name="cursor") if view.feed is not None:
            bound = draft.bound(0)
            return view.feed.cursor(bound.before_key, bound.behind_key)
        case Leaf():
            return json_text.leaf(view, field)
        case Nested():
            return _nested(draft, view.relations[field.relation], field)
        case Same(selection=selection):
            return row_object(draft, selection)
        case DocumentPart(name=name):
            return _part(draft, _document(view, name), field)
        case _:
            assert_never(field)


def _document(view: View, name: str) -> Expression:
    found = view.documents.get(name)
    if found is not None:
        return found
    key = view.keys[name]
    return json_text.inside(view.table.c[key.column], key.key)


def _nested(draft: Draft, relation: Relation, field: Nested) -> Expression:
    match field.selection:
        case PageSelection() as selection:
            return PageObject(draft, selection, relation, field.asked).whole()
        case Variants():
            raise NotCompilable("rows of several types stand in pages only")
        case Selection() as selection:
            columns = columns_of(draft, selection)
            opened = draft.open(selection.view, field.asked, _expressions(columns), relation=relation)
            if relation.many:
                return list_of(opened.sorted(columns).subquery(draft.name("x")))
            found = opened.sorted(columns).limit(ONE) if relation.first_only else opened.select(columns)
            one = one_of(found.subquery(draft.name("x")))
            return present(one) if field.required else one
        case _:
            assert_never(field.selection)


def _expressions(columns: Labelled) -> list[Expression]:
    return [column for _, column in columns]


# ---- documents -------------------------------------------------------------------------------------------------------


def _part(draft: Draft, document: Expression, part: DocumentPart) -> Expression:
    columns = named([(field.key, _part_field(draft, field)) for field in part.fields])
    if part.many:
        each = (
            sa.func.jsonb_array_elements(document)
            .table_valued("document", with_ordinality="place")
            .render_derived(name=draft.name("d"))
        )
        opened = Opened(each, (each,), {id(PART.c.document): each.c.document})
        rows = opened.select(columns).order_by(each.c.place)
        is_list = sa.func.jsonb_typeof(document) == text_literal("array")
        many = sa.case((is_list, list_of(rows.subquery(draft.name("x")))))
        return present(many) if part.required else many
    given = sa.select(document.label("document")).correlate_except().subquery(draft.name("d"))
    # JSON's own null, and what is absent, are no document.
    held = sa.func.jsonb_typeof(given.c.document) == text_literal("object")
    opened = Opened(given, (given,), {id(PART.c.document): given.c.document}, (held,))
    one = one_of(opened.select(columns).subquery(draft.name("x")))
    return present(one) if part.required else one


def _part_field(draft: Draft, field: DocumentLeaf | DocumentPart | Constant | Nested) -> Expression:
    match field:
        case Constant(text=text):
            return text_literal(text)
        case DocumentLeaf():
            return json_text.document_leaf(PART.c.document, field)
        case DocumentPart(name=name, default=default):
            return _part(draft, json_text.inside(PART.c.document, name, default), field)
        case Nested(relation=name):
            return _nested(draft, PART_RELATIONS[name], field)
        case _:
            assert_never(field)


# ---- pages -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageObject:
    """A page in the making: the `asked` of the draft's reads says which; `relation` leads to it from a row, if any."""

    draft: Draft
    selection: PageSelection
    relation: Relation | None
    asked: int | None

    @property
    def _parts(self) -> list[PageField]:
        return [field for field in self.selection.fields if isinstance(field, PageField)]

    @property
    def _lists(self) -> list[PageField]:
        return [field for field in self._parts if field.part in LISTS]

    @property
    def bound(self) -> Bound:
        """The parameters of the page's arguments."""
        return self.draft.bound(self.asked)

    def open(self, used: Sequence[Expression], *, paged: bool = True) -> Opened:
        """Open the rows of the page, or of the whole list."""
        return self.draft.open(self.selection.view, self.asked, used, relation=self.relation, paged=paged)

    def whole(self) -> Expression:
        """Return the page as a JSON object."""
        match self._parts:
            # Where nothing but one list is asked, no place and no head are needed.
            case [PageField(part=PagePart.EDGES) as field]:
                return self._one_list(field, self._edge(field))
            case [PageField(part=PagePart.NODES, rows=Selection() as rows) as field]:
                return self._one_list(field, columns_of(self.draft, rows))
            case _:
                return self._with_head()

    def total_count(self) -> Expression:
        """Return the number of rows in the whole list."""
        opened = self.open((), paged=False)
        counted = sa.select(sa.func.count()).select_from(opened.source).where(*opened.where)
        return counted.correlate_except(*opened.own).scalar_subquery()

    def told_before(self, field: PageField) -> Expression:
        """Return a PageInfo as a JSON object, known before a row of the page is written."""
        page, put = self._page(())
        rows = page.subquery(self.draft.name("p"))
        head = self._head(rows, put(rows), ())
        return sa.select(self._part(field, head)).select_from(head).scalar_subquery()

    def cursor(self) -> Expression:
        """Return a row's cursor."""
        bound = self.bound
        return self.order.cursor(bound.before_key, bound.behind_key)

    @property
    def order(self) -> Order:
        """The order of the page; raises NotCompilable without one."""
        order = self.draft.asked[self.asked].order if self.asked is not None else None
        if order is None:
            raise NotCompilable("a page without an order")
        return order

    def _one_list(self, field: PageField, columns: Labelled) -> Expression:
        opened = self.open(_expressions(columns))
        rows = opened.sorted(columns).limit(self.bound.first).subquery(self.draft.name("x"))
        return one_of(row_of(self._columns({field.key: list_of(rows)})).subquery(self.draft.name("x")))

    def _with_head(self) -> Expression:
        items = {field.key: self._item(field) for field in self._lists}
        page, put = self._page(list(items.values()))
        rows = page.subquery(self.draft.name("p"))
        placed = put(rows)
        in_page = rows.c.place <= self.bound.first
        lists = [
            (
                f"l{number}",
                sa.func.coalesce(
                    sa.func.array_to_json(
                        sa.func.array_agg(aggregate_order_by(placed.put(item), rows.c.place)).filter(in_page),
                        type_=JSON,
                    ),
                    sa.literal_column("'[]'::json", JSON),
                ),
            )
            for number, item in enumerate(items.values())
        ]
        head = self._head(rows, placed, lists)
        columns = self._columns({key: head.c[f"l{number}"] for number, key in enumerate(items)}, head)
        found = sa.select(*(column.label(key) for key, column in columns)).correlate_except(head)
        return one_of(found.subquery(self.draft.name("x")))

    def _page(self, items: Sequence[Expression]) -> tuple[Select[Any], Put]:
        """Return the select of the page's rows, one more than asked, each with its place; and what reads from it."""
        cursor = self.cursor()
        opened = self.open([*items, cursor])
        read = columns_in([*items, cursor])
        used = [(identity, column) for identity, column in opened.columns.items() if identity in read]
        place = sa.func.row_number().over(order_by=opened.clauses())
        columns = [column.label(f"c{number}") for number, (_, column) in enumerate(used)]
        page = (
            sa.select(*columns, place.label("place"))
            .select_from(opened.source)
            .where(*opened.where)
            .order_by(*opened.clauses())
            .limit(self.bound.first + ONE)
            .correlate_except(*opened.own)
        )

        def put(rows: sa.FromClause) -> Opened:
            return Opened(rows, (rows,), {identity: rows.c[f"c{number}"] for number, (identity, _) in enumerate(used)})

        return page, put

    def _head(self, rows: sa.Subquery, placed: Opened, lists: Labelled) -> sa.Subquery:
        """Return what is known of a page, with its lists, in one pass over its rows."""
        in_page = rows.c.place <= self.bound.first
        cursor = placed.put(self.cursor())
        last_first = aggregate_order_by(cursor, rows.c.place.desc())
        known: dict[str, Expression] = {
            "has_next_page": sa.func.coalesce(sa.func.bool_or(rows.c.place > self.bound.first), _BOOLEANS[False]),
            "start_cursor": sa.func.max(cursor).filter(in_page & (rows.c.place == ONE)),
            "end_cursor": sa.func.array_agg(last_first, type_=sa.ARRAY(sa.Text)).filter(in_page)[ONE],
            "total_count": self.total_count(),
        }
        shown = [known[name].label(name) for name in known if name in _names_in(self._parts)]
        shown += [column.label(name) for name, column in lists]
        # An aggregate without GROUP BY gives one row, whatever the page holds.
        found = sa.select(*shown, sa.func.count().label("here")).select_from(rows).correlate_except(rows)
        return found.subquery(self.draft.name("h"))

    def _columns(self, lists: dict[str, Expression], head: sa.Subquery | None = None) -> Labelled:
        columns: list[tuple[str, Expression]] = []
        for field in self.selection.fields:
            if isinstance(field, Constant):
                columns.append((field.key, text_literal(field.text)))
            elif field.key in lists:
                columns.append((field.key, lists[field.key]))
            elif head is not None:
                columns.append((field.key, self._part(field, head)))
        return named(columns)

    def _part(self, field: PageField, head: sa.Subquery) -> Expression:
        """Return a part that is no list."""
        if field.part is PagePart.TOTAL_COUNT:
            return head.c.total_count
        fields: list[tuple[str, Expression]] = []
        for each in field.fields:
            match each:
                case Constant(key=key, text=text):
                    fields.append((key, text_literal(text)))
                case _ if each.name == "has_previous_page":
                    behind = self.asked is not None and self.draft.asked[self.asked].after is not None
                    fields.append((each.key, _BOOLEANS[behind]))
                case _:
                    fields.append((each.key, head.c[each.name]))
        return one_of(row_of(named(fields)).subquery(self.draft.name("x")))

    def _item(self, field: PageField) -> Expression:
        if field.part is PagePart.EDGES:
            return one_of(row_of(self._edge(field)).subquery(self.draft.name("x")))
        if field.rows is None:
            raise NotCompilable("a list of nothing")
        return row_object(self.draft, field.rows)

    def _edge(self, field: PageField) -> Labelled:
        columns: list[tuple[str, Expression]] = []
        for each in field.fields:
            match each:
                case Constant(key=key, text=text):
                    columns.append((key, text_literal(text)))
                case _ if each.rows is not None:
                    columns.append((each.key, row_object(self.draft, each.rows)))
                case _:
                    columns.append((each.key, self.cursor()))
        return named(columns)


def _names_in(parts: Sequence[PageField]) -> set[str]:
    names = {each.name for field in parts for each in field.fields if not isinstance(each, Constant)}
    return names | {"total_count" for field in parts if field.part is PagePart.TOTAL_COUNT}
