"""Identity certificates to read, made here."""

from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
KEY: Final = Ed25519PrivateKey.generate()


def certificate_pem(serial: int, days: int) -> bytes:
    """Return a certificate that holds for some days from T0 on."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "node")])
    made = x509.CertificateBuilder(name, name, KEY.public_key(), serial, T0, T0 + timedelta(days=days)).sign(KEY, None)
    return made.public_bytes(serialization.Encoding.PEM)


def key_pem() -> bytes:
    """Return the key that signs them."""
    return KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
