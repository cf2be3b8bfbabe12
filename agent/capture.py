"""Capturing a host: everything that its collectors read, in a folder that replays to the same bytes."""

from pathlib import Path

from agent.doctor import probe_readings
from agent.host.files import Source
from agent.host.inventory import collect
from agent.host.options import HostOptions
from agent.host.recording import CapturedSource, Manifest, RecordingSource
from domain.documents.document import Section


def capture(source: Source, folder: Path, options: HostOptions | None = None) -> Manifest:
    """Run every collector against the source and write what it read to a new or empty folder.

    The folder holds serial numbers and addresses: only its owner may read it. Raises FileExistsError for a folder
    that is not empty, OSError when it cannot be written. Without privileges the capture holds what was denied, too.
    """
    configured = options or HostOptions()
    recording = RecordingSource(source)
    collect(recording, configured)
    probe_readings(recording)
    return recording.write(folder, configured)


def collect_captured(folder: Path) -> dict[str, Section]:
    """Return the sections of a captured host, asked as it was; raises OSError or ValueError for what is no capture."""
    captured = CapturedSource(folder)
    return collect(captured, captured.manifest.options)
