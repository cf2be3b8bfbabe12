"""The event log in partitions, which two functions of its owner make and drop; what pruning looks for."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_FIRST_SIZE = 4096
_INDEXES = {"events_id_idx": ["id"], "events_node_idx": ["node_id", "position"], "events_tenant_idx": ["tenant_id", "position"]}

# What holds all positions after the one before `first`, up to `last`; each begins where the one before it ends.
_PARTITIONS = """
create view event_partitions as
select c.relname::text as name, p.first, coalesce(lead(p.first) over (order by p.first) - 1, h.room) as last
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
cross join lateral (select substr(c.relname, length('events_p') + 1)::bigint as first) p
cross join feed_head h
where i.inhparent = 'events'::regclass
"""
# Attached, and not made as a partition: that would wait for everybody who reads the log, and they for it. Who places
# events waits: a statement knows the partitions that there were when it was given its lock.
_MAKE = """
create function make_event_partition(size bigint) returns bigint
language plpgsql security definer set search_path = {schema}, pg_temp set lock_timeout = '100ms' as $$
declare
    head feed_head;
    name text;
begin
    if size is null or size not between 1 and 100000000 then
        raise exception 'no size of a partition: %', size using errcode = '22023';
    end if;
    lock table only events in share row exclusive mode;
    select * into strict head from feed_head for update;
    name := 'events_p' || head.room + 1;
    execute format('create table %I (like events including all)', name);
    execute format(
        'alter table events attach partition %I for values from (%s) to (%s)',
        name, head.room + 1, head.room + size + 1
    );
    update feed_head set room = head.room + size;
    return head.room + size;
exception when lock_not_available then
    return null;
end $$
"""
# What is old is looked for first, as that takes time. Then the locks, in the relay's order: the log, its head.
_DROP = """
create function drop_event_partitions(before timestamptz) returns bigint
language plpgsql security definer set search_path = {schema}, pg_temp set lock_timeout = '100ms' as $$
declare
    seen feed_head;
    head feed_head;
    part event_partitions;
    newest timestamptz;
    doomed text[] := '{{}}';
    reach bigint;
    name text;
begin
    select * into strict seen from feed_head;
    if seen.floor = seen.position then
        return null;
    end if;
    for part in select * from event_partitions order by first loop
        execute format('select at from %I order by position desc limit 1', part.name) into newest;
        exit when newest >= before;
        execute format('select max(at) from %I', part.name) into newest;
        exit when newest >= before;
        doomed := doomed || part.name;
        reach := part.last;
    end loop;
    if reach is null then
        return null;
    end if;
    lock table only events in access exclusive mode;
    select * into strict head from feed_head for update;
    if head.floor <> seen.floor
        or (reach > seen.position and (head.position, head.room) <> (seen.position, seen.room))
    then
        return null;  -- what is to go is no longer what was looked at
    end if;
    foreach name in array doomed loop
        execute format('drop table %I', name);
    end loop;
    update feed_head set floor = least(reach, head.position),
        room = case when reach < head.room then head.room else head.position end;
    if reach >= head.room then
        perform make_event_partition({first_size});
    end if;
    return least(reach, head.position);
exception when lock_not_available then
    return null;
end $$
"""
# Asked of the log and not only of its head: a snapshot keeps the head as it was, but no partition that was dropped.
_FOLLOWS = """
create or replace function log_follows(place bigint) returns boolean language plpgsql stable as $$
declare
    head feed_head;
begin
    select * into strict head from feed_head;
    if place = head.position or exists (
        select from events where place between head.floor and head.position and position = place + 1
    ) then
        return true;
    end if;
    raise exception 'the log does not hold what follows a cursor' using
        errcode = 'FG002', detail = concat_ws(
            ' ', place, coalesce((select min(position) - 1 from events), head.position), head.position
        );
end $$
"""
_FOLLOWED = """
create or replace function log_follows(place bigint) returns boolean language plpgsql stable as $$
declare
    head feed_head;
begin
    select * into strict head from feed_head;
    if place between head.floor and head.position then
        return true;
    end if;
    raise exception 'the log does not hold what follows a cursor' using
        errcode = 'FG002', detail = concat_ws(' ', place, head.floor, head.position);
end $$
"""
# The log as it was becomes the first partition, without being copied.
_TAKE_OVER = """
do $$
declare
    head feed_head;
    name text;
    index text;
begin
    select * into strict head from feed_head;
    if head.position > head.floor then
        name := 'events_p' || head.floor + 1;
        execute format('alter table events_before rename to %I', name);
        foreach index in array array['pkey', 'id_idx', 'node_idx', 'tenant_idx'] loop
            execute format('alter index %I rename to %I', 'events_before_' || index, name || '_' || index);
        end loop;
        execute format(
            'alter table events attach partition %I for values from (%s) to (%s)',
            name, head.floor + 1, head.position + 1
        );
    else
        drop table events_before;
    end if;
    update feed_head set room = head.position;
end $$
"""


def upgrade() -> None:
    """Apply the change."""
    op.add_column("feed_head", sa.Column("room", sa.BigInteger(), server_default="0", nullable=False))
    op.execute("alter table events rename to events_before")
    for name in ("events_pkey", *_INDEXES):
        op.execute(f"alter index {name} rename to {name.replace('events', 'events_before')}")
    _create_log(postgresql_partition_by="range (position)")
    op.execute(_TAKE_OVER)
    op.execute(_PARTITIONS)
    schema = op.get_bind().scalar(sa.text("select quote_ident(current_schema())"))
    for function in (_MAKE, _DROP):
        op.execute(function.format(schema=schema, first_size=_FIRST_SIZE))
    op.execute("revoke execute on function make_event_partition(bigint), drop_event_partitions(timestamptz) from public")
    op.execute(f"select make_event_partition({_FIRST_SIZE})")
    op.execute(_FOLLOWS)
    finished = sa.text("finished_at IS NOT NULL")
    op.create_index("remediation_runs_command_id_idx", "remediation_runs", ["command_id"])
    op.create_index("commands_finished_idx", "commands", ["finished_at"], postgresql_where=finished)


def downgrade() -> None:
    """Undo the change."""
    op.drop_index("commands_finished_idx", table_name="commands")
    op.drop_index("remediation_runs_command_id_idx", table_name="remediation_runs")
    op.execute(_FOLLOWED)
    op.execute("drop function drop_event_partitions(timestamptz)")
    op.execute("drop function make_event_partition(bigint)")
    op.execute("drop view event_partitions")
    op.execute("alter table events rename to events_before")
    for name in ("events_pkey", *_INDEXES):
        op.execute(f"alter index {name} rename to {name.replace('events', 'events_before')}")
    _create_log()
    op.execute("insert into events select * from events_before")
    op.drop_table("events_before")
    op.drop_column("feed_head", "room")


def _create_log(**options: Any) -> None:
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("transaction", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("events_pkey")),
        **options,
    )
    for name, columns in _INDEXES.items():
        op.create_index(name, "events", columns)
