"""The statements that make a fleet: what a node is, is drawn once into `made`; every table follows from it."""

from typing import Final

FUNCTIONS: Final = """
create function pg_temp.ulid(seed text) returns text immutable language sql as
    $$ select '01k' || substr(md5(seed), 1, 23) $$
"""
MADE: Final = """
create temporary table made (
    place bigint, node_id text, tenant_id text, hostname text, site text, site_id text, pool text, pool_id text,
    state text, model text, product text, vram_gib int, architecture text, capability text
) on commit drop
"""
TENANT: Final = "insert into tenants (id, name) values ($1, $2)"
# Drawn by hashes, not remainders: neighbours differ as in a fleet that grew. Ids of both tenants are of one row of
# milliseconds, so that their index entries mix.
MAKE: Final = """
insert into made
select place, 'node_01k' || lpad(to_hex(place), 9, '0') || substr(md5($1 || place), 1, 14), $1,
    format('gpu-%s-%s', site, lpad(place::text, 6, '0')), site, pg_temp.ulid($1 || site),
    pool, pg_temp.ulid($1 || pool), state, kind.*
from generate_series(0, ($2::int - 1) * $3::bigint, $3) place,
    lateral (select hashint8(place) & 1023, hashint8(-place - 1) & 1023, hashint8(place + (1 << 30)) & 3)
        drawn (a, b, c),
    lateral (select 'site-' || c) sites (site),
    lateral (
        select state from (values (717, 'adopted'), (870, 'deployed'), (930, 'commissioning'), (985, 'adopting'),
            (1024, 'failed')) states (below, state) where a < below order by below limit 1
    ) in_state,
    lateral (
        select model, product, vram_gib, architecture, capability from (values
            (410, 'H100', 'H100-SXM5-80GB', 80, 'Hopper', '9.0'),
            (665, 'H200', 'H200-SXM5-141GB', 141, 'Hopper', '9.0'),
            (820, 'A100', 'A100-SXM4-80GB', 80, 'Ampere', '8.0'),
            (940, 'B200', 'B200-SXM6-180GB', 180, 'Blackwell', '10.0'),
            (1024, 'L40S', 'L40S-PCIE-48GB', 48, 'Ada', '8.9')
        ) kinds (below, model, product, vram_gib, architecture, capability)
        where b < below order by below limit 1
    ) kind,
    lateral (select site || '-' || lower(model)) pools (pool)
"""
SITES: Final = """
insert into sites (id, tenant_id, name, iam_region)
select distinct site_id, tenant_id, site, 'eu-central' from made
"""
POOLS: Final = """
insert into pools (id, tenant_id, site_id, name, gpu_model)
select distinct pool_id, tenant_id, site_id, pool, model from made
"""
NODES: Final = """
insert into nodes (id, tenant_id, identity_key, hostname, site_id, pool_id, provision_state, power, role, generation,
    observed_generation, agent_version, protocol, features, boot_id, inventory_labels)
select node_id, tenant_id, md5(node_id || 'identity')::uuid, hostname, site_id, pool_id, state, 'on', 'host', 1, 1,
    '0.1.0', '1', array['sections', 'hashes'], md5(node_id || 'boot')::uuid, jsonb_build_object(
        'gpu.present', 'true', 'gpu.count', '8', 'gpu.product', product, 'gpu.model', model,
        'gpu.vramGiB', vram_gib::text, 'cuda.driver.major', '13', 'nvidia.driver.version', '580.105.08',
        'mig.capable', (model <> 'L40S')::text, 'cpu.arch', 'x86_64', 'cpu.vendor', 'AuthenticAMD',
        'cpu.model', 'AMD-EPYC-9654-96-Core-Processor', 'cpu.cores', '192', 'numa.nodes', '2', 'memory.GiB', '2304',
        'os.distro', 'ubuntu-24.04', 'kvm.available', (hashint8(place) & 1 = 0)::text
    )
from made order by place
"""
LIVENESS: Final = """
insert into node_liveness (node_id, tenant_id, session_id, last_seen_at)
select node_id, tenant_id, 'sess_' || pg_temp.ulid(node_id || 'session'), now() from made order by place
"""
INVENTORY: Final = "insert into node_inventory (node_id, tenant_id) select node_id, tenant_id from made order by place"
CONDITIONS: Final = """
insert into node_conditions (node_id, type, tenant_id, status, reason, no_schedule, since)
select node_id, type, tenant_id,
    case hashint8(place * 8 + number) & 63 when 0 then 'true' when 1 then 'unknown' else 'false' end,
    'AsReported', false, now() - make_interval(mins => (hashint8(place) & 65535))
from made, unnest(array['GpuCountMismatch', 'GpuModelUnknown', 'InventoryDegraded', 'NvlinkDegraded',
    'RowRemapPending', 'UncorrectableEcc']) with ordinality types (type, number)
order by place, number
"""
DEVICES: Final = """
insert into devices (id, tenant_id, node_id, device_class, bookable, healthy, gpu_product, gpu_model, vram_gib, index,
    pci_bus_id, numa_node, architecture, compute_capability, driver_version, mig_capable)
select 'GPU-' || md5(node_id || place_in)::uuid, tenant_id, node_id, 'gpu',
    state in ('adopted', 'deployed') and drawn <> 0, drawn <> 0, product, model, vram_gib, place_in,
    format('0000%s:18:00.0', lpad(to_hex(place_in), 4, '0')), place_in / 4, architecture, capability,
    '580.105.08', model <> 'L40S'
from made, generate_series(0, 7) place_in, lateral (select hashint8(place * 8 + place_in) & 63) draws (drawn)
order by place, place_in
"""
ROWS: Final = (SITES, POOLS, NODES, LIVENESS, INVENTORY, CONDITIONS, DEVICES)
NODE: Final = "select id from nodes where tenant_id = $1 order by id offset $2 limit 1"
# PostGraphile shows a function of a table's row as its field: how its users give a jsonb column a type.
PEERS_LABELS: Final = """
create type label as (key text, value text);
create function nodes_label_pairs(node nodes) returns setof label stable language sql as
    $$ select key, value from jsonb_each_text(node.labels) order by key $$
"""
