"""What is generated from the code and committed keeps in step with it."""

import ast
import re
from pathlib import Path
from typing import Final

from db.migrate import check, migrate
from domain.command_kinds import KINDS
from domain.event_types import BY_NAME
from schema.graph import build, sdl
from web import health_catalog
from web.settings import settings_table

ROOT = Path(__file__).parents[2]
_EVENT: Final = re.compile(r"(node|device|pool|allocation)(\.[a-z]+){1,3}")


def test_the_committed_schema_is_the_one_that_is_served() -> None:
    assert (ROOT / "schema/schema.graphql").read_text() == sdl(build()), (
        "run: fleetgraph schema > schema/schema.graphql"
    )


def test_every_type_field_and_argument_has_a_description() -> None:
    schema = build()._schema
    missing = []
    for name, kind in schema.type_map.items():
        if name.startswith("__") or name in {"String", "Int", "Float", "Boolean", "ID"}:
            continue
        if not kind.description:
            missing.append(name)
        for field_name, field in getattr(kind, "fields", {}).items():
            if not field.description:
                missing.append(f"{name}.{field_name}")
            missing += [
                f"{name}.{field_name}({argument_name}:)"
                for argument_name, argument in getattr(field, "args", {}).items()
                if not argument.description
            ]
    assert missing == []


def test_the_settings_page_lists_the_settings() -> None:
    assert settings_table() in (ROOT / "docs/settings.md").read_text(), "run: python -m web.settings"


def test_the_health_page_has_the_tables_that_the_code_goes_by() -> None:
    document = health_catalog.DOCUMENT.read_text()
    assert health_catalog.written(document) == document, "run: python -m web.health_catalog"


def test_every_event_that_the_code_names_is_in_the_table_and_no_other() -> None:
    named = set()
    for room in ("domain", "db", "reconcilers", "resolvers"):
        for module in (ROOT / room).rglob("*.py"):
            if module.name == "event_types.py":
                continue
            for part in ast.walk(ast.parse(module.read_text())):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and _EVENT.fullmatch(part.value):
                    named.add(part.value)
    assert named - KINDS.keys() == BY_NAME.keys()


async def test_tables_and_migrations_agree(database_url: str) -> None:
    await check(database_url)


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    await migrate(database_url)
    await check(database_url)
