"""What is generated from the code and committed keeps in step with it."""

from pathlib import Path

from db.migrate import check, migrate
from schema.graph import build, sdl
from web.settings import settings_table

ROOT = Path(__file__).parents[2]


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


async def test_tables_and_migrations_agree(database_url: str) -> None:
    await check(database_url)


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    await migrate(database_url)
    await check(database_url)
