"""Settings, all from the environment; `docs/settings.md` is generated from here."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from domain.admission import Rate, Rates
from domain.liveness import LOST_SECONDS, UNREACHABLE_SECONDS
from domain.node import LEASE_SECONDS
from domain.pressure import THRESHOLDS, AllThresholds, Pressure, Thresholds
from resolvers.slots import REPORTS_MAX

_NODE_BURST_SECONDS = 10


def _thresholds(pressure: Pressure, what: str) -> Any:  # noqa: ANN401 - as pydantic has it
    description = f"{what}, in percent: from the first on there is pressure, below the second no more."
    return Field(default=str(THRESHOLDS[pressure]), description=description)


class Settings(BaseSettings):
    """What the server can be told."""

    model_config = SettingsConfigDict(env_prefix="FLEETGRAPH_", populate_by_name=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    data_dir: Path = Field(
        default=Path(".fleetgraph"), description="Folder of the embedded database and the local agent."
    )
    database_url: str | None = Field(
        default=None,
        validation_alias="DATABASE_URL",
        description="PostgreSQL 15 or newer to use instead of the embedded one.",
    )
    read_database_url: str | None = Field(
        default=None,
        validation_alias="READ_DATABASE_URL",
        description="A streaming replica of DATABASE_URL for queries that do not ask for more; see docs/clients.md.",
    )
    broadcast_url: str = Field(
        pattern=r"^(memory|postgres|postgresql|redis|rediss)://",
        default="memory://",
        validation_alias="BROADCAST_URL",
        description="Fan-out between processes: memory://, postgres://… or redis://…; see docs/processes.md.",
    )
    operator_token: SecretStr | None = Field(
        default=None, description="The first operator token, taken at the first start; else one is made and shown once."
    )
    event_retention: timedelta = Field(
        default=timedelta(days=7),
        description="How long events and what ended are kept, at least; see docs/database.md.",
    )
    unreachable_after: int = Field(
        default=UNREACHABLE_SECONDS,
        ge=LEASE_SECONDS,
        description="Seconds of silence after which a node is unreachable; it is disconnected after "
        f"{LEASE_SECONDS} already.",
    )
    lost_after: int = Field(
        default=LOST_SECONDS,
        ge=LEASE_SECONDS,
        description="Seconds of silence after which a node is lost, where its pool's policy has no `lostAfter`.",
    )
    min_agent_version: str | None = Field(
        default=None,
        pattern=r"^\d{1,9}(\.\d{1,9}){0,7}$",
        description="Agents of an older version keep work off their nodes (DaemonOutdated).",
    )
    pressure_cpu: str = _thresholds(Pressure.CPU, "PSI of the CPU")
    pressure_steal: str = _thresholds(Pressure.STEAL, "CPU time that the hypervisor keeps")
    pressure_memory: str = _thresholds(Pressure.MEMORY, "PSI of memory")
    pressure_io: str = _thresholds(Pressure.IO, "PSI of disks")
    remediation: bool = Field(
        default=True,
        description="Reboot nodes and reset GPUs for faults that this ends, a few of a pool at a time; see "
        "docs/health.md.",
    )
    body_bytes_max: int = Field(default=32 * 2**20, ge=1024, description="Largest request body, before decompression.")
    decompressed_bytes_max: int = Field(
        default=64 * 2**20, ge=1024, description="Largest request body, after decompression."
    )
    trusted_documents: Path | None = Field(
        default=None,
        description="Manifest of the only documents to execute, besides the console's and the agents'; "
        "see docs/clients.md.",
    )
    allowed_origins: tuple[str, ...] = Field(
        default=(), description="Origins besides the server's own that may open sockets."
    )
    client_buffer_bytes: int = Field(
        default=64 * 2**10,
        ge=4096,
        description="Bytes that wait for one client to take them before nothing more is written for it.",
    )
    slow_client_seconds: float = Field(
        default=30.0,
        ge=0.1,
        le=3600,
        description="How long a client may take nothing of what waits for it, or answer no ping, before it is closed.",
    )
    compiled_reads: bool = Field(
        default=True, description="Compile reads to SQL; false executes every field in Python, for comparison."
    )
    node_rate: float = Field(
        default=5,
        ge=0,
        description="Reports a second that each process takes of one node, and ten times as many at once; 0: no limit.",
    )
    tenant_rate: float = Field(
        default=20_000,
        ge=0,
        description="Reports a second that each process takes of one tenant's nodes, and as many at once but at least "
        f"{REPORTS_MAX:,}; 0: no limit.",
    )
    pool_size: int = Field(default=16, ge=2, le=200, description="Database connections of one process.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="debug, info, warning or error."
    )

    @field_validator("pressure_cpu", "pressure_steal", "pressure_memory", "pressure_io")
    @classmethod
    def _readable(cls, text: str) -> str:
        return str(Thresholds.read(text))

    @property
    def rates(self) -> Rates:
        """How often nodes and tenants may report."""
        node, tenant = self.node_rate, self.tenant_rate
        return Rates(Rate(node, _NODE_BURST_SECONDS * node), Rate(tenant, max(tenant, REPORTS_MAX)))

    @property
    def pressure_thresholds(self) -> AllThresholds:
        """Where a host's pressure begins and ends."""
        return {each: Thresholds.read(getattr(self, f"pressure_{each}")) for each in Pressure}


def settings_table() -> str:
    """Return the settings as a Markdown table."""
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        variable = str(field.validation_alias or f"FLEETGRAPH_{name.upper()}")
        rows.append(f"| `{variable}` | {_shown(field.default)} | {field.description} |")
    return "\n".join(rows)


def _shown(default: Any) -> str:  # noqa: ANN401 - any setting's default
    match default:
        case None | ():
            return "not set"
        case timedelta():
            return f"`{default.days}d`"
        case _:
            return f"`{default}`"


if __name__ == "__main__":
    sys.stdout.write(
        f"# Settings\n\nAll by environment; `make up` and `make demo` honour them.\n\n{settings_table()}\n"
    )
