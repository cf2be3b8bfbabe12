"""Files of the agent's state folder: for its user alone, replaced as a whole, on the disk when they are written."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def replace_file(file: Path, content: bytes) -> None:
    """Write a file (0600) and its folder; when this returns the content outlives a crash. Raises OSError."""
    folder = file.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
    # The name outlives a crash only when its folder was written too.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)
