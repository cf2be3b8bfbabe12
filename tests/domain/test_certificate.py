"""When a certificate must be renewed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from domain.certificate import Certificate, checked_certificate, expiry
from domain.conditions import ConditionStatus
from domain.errors import InvalidInput

T0: Final = datetime(2026, 1, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)


def _lasting(life: timedelta) -> Certificate:
    return Certificate("f00d", T0, T0 + life)


@pytest.mark.parametrize(
    ("life", "margin"),
    [
        (timedelta(days=90), timedelta(days=9)),
        (timedelta(hours=10), timedelta(hours=1)),
        (timedelta(hours=9), timedelta(hours=1)),
        (timedelta(minutes=61), timedelta(hours=1)),
    ],
)
def test_the_last_tenth_of_its_life_and_at_least_the_last_hour_is_the_time_to_renew_it(
    life: timedelta, margin: timedelta
) -> None:
    certificate = _lasting(life)
    ends = T0 + life
    assert expiry(certificate, ends - margin).status is ConditionStatus.FALSE
    for now, reason in ((ends - margin + SECOND, "Expiring"), (ends, "Expiring"), (ends + SECOND, "Expired")):
        said = expiry(certificate, now)
        assert (said.status, said.reason) == (ConditionStatus.TRUE, reason)


def test_what_is_said_of_it_does_not_change_from_sweep_to_sweep() -> None:
    certificate = _lasting(timedelta(days=90))
    said = expiry(certificate, T0 + timedelta(days=85))
    assert said == expiry(certificate, T0 + timedelta(days=89))
    assert said.message == "certificate f00d expires at 2026-04-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"serial": ""}, "certificate.serial"),
        ({"serial": "F00D"}, "certificate.serial"),
        ({"serial": "a" * 41}, "certificate.serial"),
        ({"not_before": T0.replace(tzinfo=None)}, "certificate.notBefore"),
        ({"not_after": T0.replace(year=9999)}, "certificate.notAfter"),
        ({"not_after": T0}, "certificate.notAfter"),
    ],
)
def test_what_can_be_no_certificate_is_refused_naming_the_place(given: dict[str, object], place: str) -> None:
    whole = _lasting(timedelta(days=1))
    assert checked_certificate(whole) == whole
    with pytest.raises(InvalidInput, match=place):
        checked_certificate(replace(whole, **given))  # type: ignore[arg-type]
