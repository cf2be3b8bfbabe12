"""A node's identity certificate, as its agent tells of it, and when it must be renewed (rule 12)."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from domain.conditions import ConditionStatus, Observed
from domain.errors import InvalidInput
from domain.texts import storable_time

MARGIN_MIN: Final = timedelta(hours=1)
LIFE_PART: Final = 10
"""One part in so many of its life is the margin, where that is longer."""
# RFC 5280, 4.1.2.2: at most 20 octets, and never negative.
_SERIAL: Final = re.compile(r"[0-9a-f]{1,40}")


@dataclass(frozen=True, slots=True)
class Certificate:
    """What of a certificate says how long it holds; the serial number in lower-case hexadecimal."""

    serial: str
    not_before: datetime
    not_after: datetime

    @property
    def renewal_at(self) -> datetime:
        """From when on a tenth of its life, and at least an hour, is no longer left."""
        return self.not_after - max((self.not_after - self.not_before) / LIFE_PART, MARGIN_MIN)


def checked_certificate(given: Certificate) -> Certificate:
    """Return a certificate that can be, or raise InvalidInput naming the place."""
    if _SERIAL.fullmatch(given.serial) is None:
        raise InvalidInput("certificate.serial: hexadecimal of at most 20 octets, in lower case, is expected")
    storable_time("certificate.notBefore", given.not_before)
    storable_time("certificate.notAfter", given.not_after)
    if given.not_after <= given.not_before:
        raise InvalidInput("certificate.notAfter: not after notBefore: it would hold at no time")
    return given


def expiry(certificate: Certificate, now: datetime) -> Observed:
    """Say whether a certificate is about to expire, or has."""
    if now <= certificate.renewal_at:
        return Observed("CertExpiring", ConditionStatus.FALSE)
    reason, verb = ("Expired", "expired") if now > certificate.not_after else ("Expiring", "expires")
    ends = certificate.not_after.isoformat(timespec="seconds")
    return Observed("CertExpiring", ConditionStatus.TRUE, reason, f"certificate {certificate.serial} {verb} at {ends}")
