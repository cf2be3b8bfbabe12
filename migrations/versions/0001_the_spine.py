"""The spine."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '0001'
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table('events',
    sa.Column('position', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('node_id', sa.Text(), nullable=True),
    sa.Column('type', sa.Text(), nullable=False),
    sa.Column('payload', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('transaction', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('position', name=op.f('events_pkey'))
    )
    op.create_index('events_id_idx', 'events', ['id'], unique=False)
    op.create_index('events_node_idx', 'events', ['node_id', 'position'], unique=False)
    op.create_index('events_tenant_idx', 'events', ['tenant_id', 'position'], unique=False)
    op.create_table('feed_head',
    sa.Column('singleton', sa.Boolean(), server_default=sa.text('true'), nullable=False),
    sa.Column('position', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('floor', sa.BigInteger(), server_default='0', nullable=False),
    sa.CheckConstraint('singleton', name=op.f('feed_head_single_row_check')),
    sa.PrimaryKeyConstraint('singleton', name=op.f('feed_head_pkey'))
    )
    op.create_table('outbox',
    sa.Column('sequence', sa.BigInteger(), sa.Identity(always=True), autoincrement=True, nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('node_id', sa.Text(), nullable=True),
    sa.Column('type', sa.Text(), nullable=False),
    sa.Column('payload', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('transaction', sa.BigInteger(), server_default=sa.text('pg_current_xact_id()::text::bigint'), nullable=False),
    sa.PrimaryKeyConstraint('sequence', name=op.f('outbox_pkey'))
    )
    op.create_table('tenants',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('tenants_pkey')),
    sa.UniqueConstraint('name', name=op.f('tenants_name_key'))
    )
    op.create_table('api_tokens',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('role', sa.Text(), nullable=False),
    sa.Column('sha256', sa.LargeBinary(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('api_tokens_tenant_id_fkey'), ondelete='NO ACTION'),
    sa.PrimaryKeyConstraint('id', name=op.f('api_tokens_pkey')),
    sa.UniqueConstraint('sha256', name=op.f('api_tokens_sha256_key'))
    )
    op.create_index(op.f('api_tokens_tenant_id_idx'), 'api_tokens', ['tenant_id'], unique=False)
    op.create_table('sites',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('iam_region', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), server_default=sa.text("'shared'"), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('sites_tenant_id_fkey'), ondelete='NO ACTION'),
    sa.PrimaryKeyConstraint('id', name=op.f('sites_pkey')),
    sa.UniqueConstraint('tenant_id', 'name', name=op.f('sites_tenant_id_name_key'))
    )
    op.create_table('pools',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('site_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('pool_class', sa.Text(), server_default=sa.text("'metal-host'"), nullable=False),
    sa.Column('gpu_model', sa.Text(), nullable=True),
    sa.Column('sharing', sa.Text(), server_default=sa.text("'exclusive'"), nullable=False),
    sa.Column('agent', sa.Text(), server_default=sa.text("'bcd'"), nullable=False),
    sa.Column('policy', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['site_id'], ['sites.id'], name=op.f('pools_site_id_fkey'), ondelete='NO ACTION'),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('pools_tenant_id_fkey'), ondelete='NO ACTION'),
    sa.PrimaryKeyConstraint('id', name=op.f('pools_pkey')),
    sa.UniqueConstraint('tenant_id', 'name', name=op.f('pools_tenant_id_name_key'))
    )
    op.create_index(op.f('pools_site_id_idx'), 'pools', ['site_id'], unique=False)
    op.create_table('nodes',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('identity_key', sa.Text(), nullable=False),
    sa.Column('hostname', sa.Text(), nullable=True),
    sa.Column('display_name', sa.Text(), nullable=True),
    sa.Column('management_address', sa.Text(), nullable=True),
    sa.Column('site_id', sa.Text(), nullable=True),
    sa.Column('pool_id', sa.Text(), nullable=True),
    sa.Column('provision_state', sa.Text(), server_default=sa.text("'adopting'"), nullable=False),
    sa.Column('maintenance', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('cordoned', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('draining', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('power', sa.Text(), server_default=sa.text("'unknown'"), nullable=False),
    sa.Column('role', sa.Text(), server_default=sa.text("'unassigned'"), nullable=False),
    sa.Column('trust', sa.Text(), server_default=sa.text("'platform'"), nullable=False),
    sa.Column('generation', sa.Integer(), server_default='0', nullable=False),
    sa.Column('observed_generation', sa.Integer(), server_default='0', nullable=False),
    sa.Column('labels', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('no_schedule_reasons', postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    sa.Column('agent_version', sa.Text(), nullable=True),
    sa.Column('protocol', sa.Text(), nullable=True),
    sa.Column('features', postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    sa.Column('boot_id', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['pool_id'], ['pools.id'], name=op.f('nodes_pool_id_fkey'), ondelete='NO ACTION'),
    sa.ForeignKeyConstraint(['site_id'], ['sites.id'], name=op.f('nodes_site_id_fkey'), ondelete='NO ACTION'),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('nodes_tenant_id_fkey'), ondelete='NO ACTION'),
    sa.PrimaryKeyConstraint('id', name=op.f('nodes_pkey')),
    sa.UniqueConstraint('tenant_id', 'identity_key', name=op.f('nodes_tenant_id_identity_key_key'))
    )
    op.create_index('nodes_labels_idx', 'nodes', ['labels'], unique=False, postgresql_using='gin', postgresql_ops={'labels': 'jsonb_path_ops'})
    op.create_index('nodes_hostname_idx', 'nodes', ['tenant_id', sa.literal_column("COALESCE(hostname, '')"), 'id'], unique=False)
    op.create_index('nodes_page_idx', 'nodes', ['tenant_id', 'id'], unique=False)
    op.create_index(op.f('nodes_pool_id_idx'), 'nodes', ['pool_id'], unique=False)
    op.create_index(op.f('nodes_site_id_idx'), 'nodes', ['site_id'], unique=False)
    op.create_index('nodes_text_idx', 'nodes', [sa.literal_column("((((coalesce(hostname, '') || ' ') || coalesce(display_name, '')) || ' ') || identity_key)").label("searched")], unique=False, postgresql_using='gin', postgresql_ops={'searched': 'gin_trgm_ops'})
    op.create_table('devices',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('device_class', sa.Text(), nullable=False),
    sa.Column('parent_id', sa.Text(), nullable=True),
    sa.Column('bookable', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('healthy', sa.Boolean(), server_default=sa.text('true'), nullable=False),
    sa.Column('missing', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('partition_pending', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('gpu_product', sa.Text(), nullable=True),
    sa.Column('gpu_model', sa.Text(), nullable=True),
    sa.Column('vram_gib', sa.Double(), nullable=True),
    sa.Column('index', sa.Integer(), nullable=True),
    sa.Column('pci_bus_id', sa.Text(), nullable=True),
    sa.Column('numa_node', sa.Integer(), nullable=True),
    sa.Column('architecture', sa.Text(), nullable=True),
    sa.Column('compute_capability', sa.Text(), nullable=True),
    sa.Column('driver_version', sa.Text(), nullable=True),
    sa.Column('mig_capable', sa.Boolean(), nullable=True),
    sa.Column('nvlink_peers', postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    sa.Column('fabric_cluster', sa.Text(), nullable=True),
    sa.Column('fabric_clique', sa.Text(), nullable=True),
    sa.Column('attributes', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('not_known', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('devices_node_id_fkey'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('devices_tenant_id_fkey'), ondelete='NO ACTION'),
    sa.PrimaryKeyConstraint('id', name=op.f('devices_pkey'))
    )
    op.create_index('devices_class_idx', 'devices', ['tenant_id', 'device_class', 'id'], unique=False)
    op.create_index('devices_node_idx', 'devices', ['node_id', 'id'], unique=False)
    op.create_index('devices_page_idx', 'devices', ['tenant_id', 'id'], unique=False)
    op.create_index(op.f('devices_parent_id_idx'), 'devices', ['parent_id'], unique=False)
    op.create_table('inventory_sections',
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('content', sa.LargeBinary(), nullable=False),
    sa.Column('document', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('received_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('inventory_sections_node_id_fkey'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('node_id', 'name', 'sha256', name=op.f('inventory_sections_pkey'))
    )
    op.create_table('inventory_snapshots',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('sections', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('trust', sa.Text(), server_default=sa.text("'platform'"), nullable=False),
    sa.Column('received_at', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('inventory_snapshots_node_id_fkey'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['tenant_id'], ['tenants.id'], name=op.f('inventory_snapshots_tenant_id_fkey'), ondelete='NO ACTION'),
    sa.PrimaryKeyConstraint('id', name=op.f('inventory_snapshots_pkey'))
    )
    op.create_index('inventory_snapshots_as_of_idx', 'inventory_snapshots', ['node_id', 'received_at', 'id'], unique=False)
    op.create_index('inventory_snapshots_digest_idx', 'inventory_snapshots', ['node_id', 'digest'], unique=False)
    op.create_index('inventory_snapshots_history_idx', 'inventory_snapshots', ['node_id', 'id'], unique=False)
    op.create_table('node_conditions',
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('type', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('message', sa.Text(), nullable=True),
    sa.Column('no_schedule', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('since', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('node_conditions_node_id_fkey'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('node_id', 'type', name=op.f('node_conditions_pkey'))
    )
    op.create_table('node_inventory',
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('reported', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('reported_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('missing', postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    sa.Column('applied', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('applied_digest', sa.Text(), nullable=True),
    sa.Column('applied_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('snapshot_id', sa.Text(), nullable=True),
    sa.Column('replan', sa.Boolean(), server_default=sa.text('false'), nullable=False),
    sa.Column('failed', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('failed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('node_inventory_node_id_fkey'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('node_id', name=op.f('node_inventory_pkey')),
    postgresql_with={'fillfactor': 70}
    )
    op.create_index('node_inventory_pending_idx', 'node_inventory', ['reported_at'], unique=False, postgresql_where=sa.text("reported is not null and missing = '{}'::text[] and (applied is distinct from reported or replan) and failed is distinct from reported"))
    op.create_table('node_liveness',
    sa.Column('node_id', sa.Text(), nullable=False),
    sa.Column('tenant_id', sa.Text(), nullable=False),
    sa.Column('session_id', sa.Text(), nullable=True),
    sa.Column('last_seen_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['node_id'], ['nodes.id'], name=op.f('node_liveness_node_id_fkey'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('node_id', name=op.f('node_liveness_pkey')),
    postgresql_with={'fillfactor': 50}
    )
    op.execute("insert into feed_head default values")


def downgrade() -> None:
    """Undo the change."""
    op.drop_table('node_liveness')
    op.drop_index('node_inventory_pending_idx', table_name='node_inventory', postgresql_where=sa.text("reported is not null and missing = '{}'::text[] and (applied is distinct from reported or replan) and failed is distinct from reported"))
    op.drop_table('node_inventory')
    op.drop_table('node_conditions')
    op.drop_index('inventory_snapshots_history_idx', table_name='inventory_snapshots')
    op.drop_index('inventory_snapshots_digest_idx', table_name='inventory_snapshots')
    op.drop_index('inventory_snapshots_as_of_idx', table_name='inventory_snapshots')
    op.drop_table('inventory_snapshots')
    op.drop_table('inventory_sections')
    op.drop_index(op.f('devices_parent_id_idx'), table_name='devices')
    op.drop_index('devices_page_idx', table_name='devices')
    op.drop_index('devices_node_idx', table_name='devices')
    op.drop_index('devices_class_idx', table_name='devices')
    op.drop_table('devices')
    op.drop_index('nodes_text_idx', table_name='nodes', postgresql_using='gin')
    op.drop_index(op.f('nodes_site_id_idx'), table_name='nodes')
    op.drop_index(op.f('nodes_pool_id_idx'), table_name='nodes')
    op.drop_index('nodes_page_idx', table_name='nodes')
    op.drop_index('nodes_labels_idx', table_name='nodes', postgresql_using='gin', postgresql_ops={'labels': 'jsonb_path_ops'})
    op.drop_table('nodes')
    op.drop_index(op.f('pools_site_id_idx'), table_name='pools')
    op.drop_table('pools')
    op.drop_table('sites')
    op.drop_index(op.f('api_tokens_tenant_id_idx'), table_name='api_tokens')
    op.drop_table('api_tokens')
    op.drop_table('tenants')
    op.drop_table('outbox')
    op.drop_table('feed_head')
    op.drop_index('events_tenant_idx', table_name='events')
    op.drop_index('events_node_idx', table_name='events')
    op.drop_index('events_id_idx', table_name='events')
    op.drop_table('events')
