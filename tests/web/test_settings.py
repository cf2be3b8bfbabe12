"""Settings from the environment."""

import pytest
from pydantic import ValidationError

from domain.pressure import THRESHOLDS, Pressure, Thresholds
from web.settings import Settings


def test_thresholds_of_pressure_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().pressure_thresholds == THRESHOLDS
    monkeypatch.setenv("FLEETGRAPH_PRESSURE_STEAL", "5/2.5")
    assert Settings().pressure_thresholds == {**THRESHOLDS, Pressure.STEAL: Thresholds(5, 2.5)}


def test_pressure_that_would_end_where_it_begins_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEETGRAPH_PRESSURE_IO", "40/60")
    with pytest.raises(ValidationError, match="pressure_io"):
        Settings()
