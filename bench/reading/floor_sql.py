"""The floor's statements: one JSON text per row, children as arrays of a correlated subquery."""

# ruff: noqa: S608 - put together of constants

from typing import Final

_CONDITIONS: Final = """array_to_json(array(select one from (
    select type, upper(status) as status from node_conditions where node_id = n.id order by type
) one))"""
_DEVICES: Final = """json_build_object('nodes', array_to_json(array(select one from (
    select id, gpu_model as "gpuModel", healthy, bookable, vram_gib as "vramGiB"
    from devices where node_id = n.id order by id limit 8
) one)))"""
_LABELS: Final = """array_to_json(array(select one from (
    select key, value from jsonb_each_text(n.labels) order by key
) one))"""
_HEAD: Final = 'n.id, n.hostname, upper(n.provision_state) as "provisionState"'
_SHORT: Final = f"""(select row_to_json(one)::text from (
    select {_HEAD}, upper(n.role) as role, n.generation, {_CONDITIONS} as conditions
) one)"""
_PAGE: Final = "from nodes n where n.tenant_id = $1 and n.id > $2 order by n.id limit $3"

LIST: Final = f"""select n.id, (select row_to_json(one)::text from (
    select {_HEAD}, {_LABELS} as labels, {_CONDITIONS} as conditions, {_DEVICES} as devices
) one) {_PAGE}"""
ROWS: Final = f"select n.id, {_SHORT} {_PAGE}"
# Not `labels @> …`: of a value it does not know PostgreSQL expects so few rows that it collects and sorts them all.
FILTERED: Final = f"""select n.id, {_SHORT} from nodes n
where n.tenant_id = $1 and n.provision_state = any ($2) and n.labels ->> $3 = $4 order by n.id limit $5"""
ONE: Final = f"""select (select row_to_json(one)::text from (select {_HEAD}, {_DEVICES} as devices) one)
from nodes n where n.tenant_id = $1 and n.id = $2"""
COUNTS: Final = """select array_to_json(array(select one from (
    select gpu_model as value, count(*) as count from devices
    where tenant_id = $1 and device_class = 'gpu' group by gpu_model order by count(*) desc, gpu_model
) one))::text"""
