"""From a selection to one statement whose rows are JSON text.

One text per row: joining them is the reader's work, because PostgreSQL is slow at building one large text
(docs/performance.md has the figures).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import sqlalchemy as sa
from sqlalchemy import Select
from sqlalchemy.dialects.postgresql import JSON, aggregate_order_by

from db.views import json_text
from db.views.documents import PART, PART_RELATIONS
from db.views.draft import Bound, Draft, Labelled, Opened, columns_in
from db.views.json_text import NotCompilable, list_of, named, one_of, present, row_of, text_literal
from db.views.selection import (
    Asked,
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
_ONE: Final = sa.literal_column("1", sa.BigInteger)
Put = Callable[[sa.FromClause], Opened]
_BOOLEANS: Final = {value: sa.literal_column(str(value).lower(), sa.Boolean) for value in (True, False)}


def row_statement(selection: Selection, asked: Sequence[Asked]) -> Select[Any]:
    """Return the statement of one row: its JSON text, or no row."""
    draft = Draft(asked)
    columns = _fields(draft, selection)
    opened = draft.open(selection.view, 0, _expressions(columns))
    return _text(opened.sorted(columns).limit(_ONE).subquery(draft.name("x")))


def page_statement(selection: PageSelection, asked: Sequence[Asked]) -> Select[Any]:
    """Return the statement of a page.

    A page of which one list is asked gives its rows as the column `r0`. Any other gives at least one row: the parts
    that are no lists as the columns `h0`, `h1`, … of the first row, each list as `r0`, `r1`, … of every row that has
    a place in the page, in the order of the selection.
    """
    draft = Draft(asked)
    page = _Page(draft, selection, None, 0)
    return page.rows_alone() if page.is_one_list else page.rows_behind_head()


def _text(rows: sa.Subquery) -> Select[Any]:
    return sa.select(sa.cast(json_text.object_of(rows), sa.Text).label("r0"))


# ---- rows ------------------------------------------------------------------------------------------------------------


def _row(draft: Draft, selection: RowSelection) -> Expression:
    """Return the enclosing row as a JSON object."""
    match selection:
        case Selection():
            return one_of(row_of(_fields(draft, selection)).subquery(draft.name("x")))
        case Variants(view=view, of=of):
            if view.variant is None:
                raise NotCompilable(f"{view.name} has no types of its own")
            rows = {text_literal(name): _row(draft, of[name]) for name in of}
            return sa.case(rows, value=view.variant, else_=sa.cast(sa.func.absent_value(), JSON))
        case _:
            assert_never(selection)


def _fields(draft: Draft, selection: Selection) -> Labelled:
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
            return _row(draft, selection)
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
            page = _Page(draft, selection, relation, field.asked)
            return page.one_list_object() if page.is_one_list else page.whole_object()
        case Variants():
            raise NotCompilable("rows of several types stand in pages only")
        case Selection() as selection:
            columns = _fields(draft, selection)
            opened = draft.open(selection.view, field.asked, _expressions(columns), relation=relation)
            if relation.many:
                return list_of(opened.sorted(columns).subquery(draft.name("x")))
            found = opened.sorted(columns).limit(_ONE) if relation.first_only else opened.select(columns)
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
class _Page:
    """A page in the making."""

    draft: Draft
    selection: PageSelection
    relation: Relation | None
    asked: int | None

    @property
    def parts(self) -> list[PageField]:
        return [field for field in self.selection.fields if isinstance(field, PageField)]

    @property
    def lists(self) -> list[PageField]:
        return [field for field in self.parts if field.part in LISTS]

    @property
    def is_one_list(self) -> bool:
        """Whether nothing but one list is asked: no head is needed then."""
        return len(self.parts) == 1 and len(self.lists) == 1

    @property
    def bound(self) -> Bound:
        return self.draft.bound(self.asked)

    def open(self, used: Sequence[Expression], *, paged: bool = True) -> Opened:
        return self.draft.open(self.selection.view, self.asked, used, relation=self.relation, paged=paged)

    # One list alone.

    def rows_alone(self) -> Select[Any]:
        rows, is_object = self._list()
        if is_object:
            return sa.select(sa.cast(rows.c.item, sa.Text).label("r0"))
        return _text(rows)

    def one_list_object(self) -> Expression:
        rows, is_object = self._list()
        found = list_of(rows)
        if is_object:
            found = sa.func.array_to_json(sa.func.array(sa.select(rows.c.item).scalar_subquery()), type_=JSON)
        return one_of(row_of(self._columns({self.lists[0].key: found})).subquery(self.draft.name("x")))

    def _list(self) -> tuple[sa.Subquery, bool]:
        item = self._item(self.lists[0])
        columns = [("item", item)] if isinstance(item, sa.ColumnElement) else item
        opened = self.open(_expressions(columns))
        rows = opened.sorted(columns).limit(self.bound.first).subquery(self.draft.name("x"))
        return rows, isinstance(item, sa.ColumnElement)

    # A page with its head.

    def whole_object(self) -> Expression:
        items = {field.key: self._item_object(field) for field in self.lists}
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
        head = self._head_with(rows, placed, lists)
        columns = self._columns({key: head.c[f"l{number}"] for number, key in enumerate(items)}, head)
        found = sa.select(*(column.label(key) for key, column in columns)).correlate_except(head)
        return one_of(found.subquery(self.draft.name("x")))

    def rows_behind_head(self) -> Select[Any]:
        items = [self._item_object(field) for field in self.lists]
        page, put = self._page(items)
        rows = page.cte("page")
        head = self._head_of(rows, put)
        wanted = [(field.key, self._part(field, head)) for field in self.parts if field.part not in LISTS]
        if not items:
            return sa.select(
                *(_as_text(part).label(f"h{number}") for number, (_, part) in enumerate(named(wanted)))
            ).select_from(head)
        in_page = sa.select(rows).where(rows.c.place <= self.bound.first).subquery(self.draft.name("r"))
        placed = put(in_page)
        first = sa.func.coalesce(in_page.c.place, _ONE) == _ONE
        heads = [sa.case((first, _as_text(part))).label(f"h{n}") for n, (_, part) in enumerate(named(wanted))]
        # A head without rows is a row too; its lists have nothing.
        texts = [
            sa.case((in_page.c.place.is_not(None), _as_text(placed.put(item)))).label(f"r{number}")
            for number, item in enumerate(items)
        ]
        return (
            sa.select(*heads, *texts)
            .select_from(head.outerjoin(in_page, sa.true()))
            .order_by(in_page.c.place)
            .limit(sa.func.greatest(self.bound.first, _ONE))
        )

    def _page(self, items: Sequence[Expression]) -> tuple[Select[Any], Put]:
        """Return the select of the page's rows, one more than asked, each with its place; and what reads from it."""
        cursor = self._cursor()
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
            .limit(self.bound.first + _ONE)
            .correlate_except(*opened.own)
        )

        def put(rows: sa.FromClause) -> Opened:
            return Opened(rows, (rows,), {identity: rows.c[f"c{number}"] for number, (identity, _) in enumerate(used)})

        return page, put

    def _head_of(self, page: sa.CTE, put: "Put") -> sa.Subquery:
        """Return what is known of a page that is read more than once: only the cursors asked for are made."""
        in_page = sa.select(page).where(page.c.place <= self.bound.first)

        def cursor(order: Expression) -> Select[Any]:
            row = in_page.order_by(order).limit(_ONE).subquery(self.draft.name("e"))
            return sa.select(put(row).put(self._cursor())).select_from(row)

        known = {
            "has_next_page": sa.exists().where(page.c.place > self.bound.first).select(),
            "start_cursor": cursor(page.c.place),
            "end_cursor": cursor(page.c.place.desc()),
        }
        shown = {name: select.scalar_subquery() for name, select in known.items()} | {"total_count": self._total()}
        wanted = [shown[name].label(name) for name in shown if name in _names_in(self.parts)]
        return sa.select(*wanted, _ONE.label("here")).subquery(self.draft.name("h"))

    def _head_with(self, rows: sa.Subquery, placed: Opened, lists: Labelled) -> sa.Subquery:
        """Return what is known of a page, with its lists, in one pass over its rows."""
        in_page = rows.c.place <= self.bound.first
        cursor = placed.put(self._cursor())
        last_first = aggregate_order_by(cursor, rows.c.place.desc())
        known: dict[str, Expression] = {
            "has_next_page": sa.func.coalesce(sa.func.bool_or(rows.c.place > self.bound.first), _BOOLEANS[False]),
            "start_cursor": sa.func.max(cursor).filter(in_page & (rows.c.place == _ONE)),
            "end_cursor": sa.func.array_agg(last_first, type_=sa.ARRAY(sa.Text)).filter(in_page)[_ONE],
            "total_count": self._total(),
        }
        shown = [known[name].label(name) for name in known if name in _names_in(self.parts)]
        shown += [column.label(name) for name, column in lists]
        # An aggregate without GROUP BY gives one row, whatever the page holds.
        found = sa.select(*shown, sa.func.count().label("here")).select_from(rows).correlate_except(rows)
        return found.subquery(self.draft.name("h"))

    def _total(self) -> Expression:
        opened = self.open((), paged=False)
        counted = sa.select(sa.func.count()).select_from(opened.source).where(*opened.where)
        return counted.correlate_except(*opened.own).scalar_subquery()

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

    def _item(self, field: PageField) -> Labelled | Expression:
        """Return one row of a list: the columns of its object, or the object where its type is told row by row."""
        if field.part is PagePart.EDGES:
            return self._edge(field)
        if isinstance(field.rows, Selection):
            return _fields(self.draft, field.rows)
        return self._item_object(field)

    def _item_object(self, field: PageField) -> Expression:
        if field.part is PagePart.EDGES:
            return one_of(row_of(self._edge(field)).subquery(self.draft.name("x")))
        if field.rows is None:
            raise NotCompilable("a list of nothing")
        return _row(self.draft, field.rows)

    def _edge(self, field: PageField) -> Labelled:
        columns: list[tuple[str, Expression]] = []
        for each in field.fields:
            match each:
                case Constant(key=key, text=text):
                    columns.append((key, text_literal(text)))
                case _ if each.rows is not None:
                    columns.append((each.key, _row(self.draft, each.rows)))
                case _:
                    columns.append((each.key, self._cursor()))
        return named(columns)

    def _cursor(self) -> Expression:
        order = self.draft.asked[self.asked].order if self.asked is not None else None
        if order is None:
            raise NotCompilable("a page without an order")
        bound = self.bound
        return order.cursor(bound.before_key, bound.behind_key)


def _names_in(parts: Sequence[PageField]) -> set[str]:
    names = {each.name for field in parts for each in field.fields if not isinstance(each, Constant)}
    return names | {"total_count" for field in parts if field.part is PagePart.TOTAL_COUNT}


def _as_text(expression: Expression) -> Expression:
    return sa.cast(expression, sa.Text)
