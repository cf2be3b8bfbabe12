"""The node's identity certificate: what of it the server is told."""

from pathlib import Path
from typing import Final

from cryptography import x509

from agent.failures import WronglyCalled
from agent.wire import Certificate

BYTES_MAX: Final = 64 * 1024


def read_certificate(file: Path) -> Certificate:
    """Return the first certificate of a PEM file, which is the node's own where its issuers follow.

    Raises WronglyCalled for a file that cannot be read or holds none.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(BYTES_MAX)
    except OSError as error:
        raise WronglyCalled(f"cannot read the certificate in {file}: {error.strerror or error}") from error
    try:
        found = x509.load_pem_x509_certificate(content)
        return Certificate(
            serial=f"{found.serial_number:x}",
            not_before=found.not_valid_before_utc,
            not_after=found.not_valid_after_utc,
        )
    except ValueError as error:
        raise WronglyCalled(f"{file} holds no certificate in PEM") from error
