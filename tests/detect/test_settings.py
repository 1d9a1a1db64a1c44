"""Sections of detectors in the configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roledrift.config import Config, from_mapping
from roledrift.detect.catalogue import shipped
from roledrift.detect.settings import checked, settings_of
from roledrift.errors import ConfigError
from tests.detect import loud


def _told(body: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        checked(from_mapping(body))
    return str(caught.value)


def test_all_problems_of_sections_are_reported_together() -> None:
    told = _told(
        {
            "stop_on": ["failling", "length_inflation"],
            "findings": ["role_drfit"],
            "detectors": {
                "lenght_inflation": {},
                "accuracy_cliff": {"shar": 0.1},
                "training_data": {"duplicates": "many"},
                "length_inflation": {"roles": "generator"},
            },
        }
    )
    for part in (
        "did you mean 'failing'", "did you mean 'role_drift'", "did you mean 'length_inflation'",
        "did you mean 'share'", "training_data.duplicates: needs a finite number >= 0",
        "length_inflation.roles: needs a list of names",
    ):  # fmt: skip
        assert part in told
    assert told.count(";") >= 5


@pytest.mark.parametrize("value", [-0.1, float("inf"), True, None, "x"])
def test_values_that_are_no_number(value: object) -> None:
    assert "needs a finite number >= 0, got" in _told(
        {"detectors": {"accuracy_cliff": {"share": value}}}
    )


def test_settings_are_converted_and_unknown_keys_of_old_runs_passed_over() -> None:
    (card,) = [one for one in shipped() if one.name == "length_inflation"]
    body = {"length_inflation": {"limit": 30, "roles": ["generator"], "gone": 1}}
    settings = settings_of(card, Config(detectors=body))
    assert (settings.limit, settings.roles) == (30.0, ("generator",))
    wrong = Config(detectors={"length_inflation": {"limit": "long"}})
    assert settings_of(card, wrong) == card.settings()  # type: ignore[misc]


def test_a_card_without_settings_gets_its_section_as_it_is() -> None:
    card = replace(loud.CARD, settings=None)
    config = Config(detectors={"loudness": {"anything": 3}})
    assert settings_of(card, config) == {"anything": 3}
    assert checked(config, cards=[card]) is config
