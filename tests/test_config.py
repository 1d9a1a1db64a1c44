"""Reading, checking and re-reading configurations."""

from collections import UserList
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from roledrift.config import Config, from_mapping, recorded
from roledrift.detect.settings import checked, load
from roledrift.errors import ConfigError


def test_defaults_survive_a_round_trip() -> None:
    assert from_mapping(asdict(Config())) == Config()
    assert recorded(asdict(Config())) == Config()


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "roledrift.toml"
    path.write_text(
        'tier = "economy"\nstop_on = ["length_inflation", "failing"]\nfindings = ["truncation"]\n'
        "false_alerts_per_run = 0.2\n[baseline]\nwindow = 5\n"
        '[detectors.length_inflation]\nroles = ["aggregator"]\nlimit = 200\n'
    )
    config = load(path)
    assert config.tier == "economy"
    assert config.stop_on == ("length_inflation", "failing")
    assert config.findings == ("truncation",)
    assert config.false_alerts_per_run == 0.2
    assert config.baseline.window == 5
    assert config.detectors == {"length_inflation": {"roles": ["aggregator"], "limit": 200}}


def test_names_may_be_any_sequence() -> None:
    """A host's configuration has lists of its own: OmegaConf's are no Python lists."""
    assert from_mapping({"stop_on": UserList(["failing"])}).stop_on == ("failing",)


def test_all_problems_of_a_file_are_reported_together() -> None:
    body = {
        "teir": "full",
        "tier": "first",
        "baseline": {"window": "ten", "windw": 1},
        "sampling": 3,
        "detectors": {"length_inflation": 3},
        "rescore": {"every": True},
    }
    with pytest.raises(ConfigError) as caught:
        from_mapping(body, source="x.toml")
    message = str(caught.value)
    assert message.startswith("x.toml: ")
    for part in (
        "unknown key 'teir', did you mean 'tier'?",
        "tier: must be one of",
        "baseline.window: needs a finite whole number >= 0, got 'ten'",
        "unknown key 'baseline.windw', did you mean 'window'?",
        "sampling: needs a section",
        "detectors.length_inflation: needs a section of keys, got 3",
        "rescore.every: needs a finite whole number >= 0, got True",
    ):
        assert part in message


@pytest.mark.parametrize("value", [0, 1.5])
def test_a_rate_of_false_alerts_is_above_0_and_at_most_1(value: float) -> None:
    with pytest.raises(ConfigError, match="false_alerts_per_run must be above 0 and at most 1"):
        from_mapping({"false_alerts_per_run": value})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"baseline": {"skip": 4}}, "'baseline.skip' is gone: learning-rate warm-up"),
        ({"extensions": {"shouting": {}}}, "'extensions' is gone: .*detectors.<name>"),
    ],
)
def test_keys_of_earlier_versions_say_what_to_do_instead(body: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        from_mapping(body)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"stop_on": ["length_inflaton"]}, "unknown finding or severity 'length_inflaton', did"),
        ({"findings": ["truncaton"]}, "unknown finding 'truncaton', did you mean 'truncation'"),
        ({"detectors": {"length_inflaton": {}}}, "did you mean 'length_inflation'"),
        ({"detectors": {"length_inflation": {"lmit": 3}}}, "did you mean 'limit'"),
        ({"detectors": {"length_inflation": {"limit": -1}}}, "needs a finite number >= 0, got -1"),
        ({"detectors": {"length_inflation": {"roles": "judge"}}}, "needs a list of names"),
    ],
)
def test_findings_and_sections_of_detectors_are_checked(body: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        checked(from_mapping(body))


@pytest.mark.parametrize("text", [None, "tier = ", "= 3"])
def test_unreadable_files_are_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "c.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.toml"):
        load(path)


def test_a_header_of_an_earlier_version_is_read() -> None:
    """What had another meaning is dropped; what means the same is kept."""
    old = {
        "tier": "full",
        "stop_on": ["policy_drift", "hygiene"],
        "close_after": 3,
        "baseline": {"window": 6, "skip": 12, "reference": ""},
        "extensions": {"shouting": {"share": 0.4}},
        "detectors": {"length_inflation": {"drift_ratio": 1.5}, "hygiene": {"truncated": 0.5}},
    }
    config = recorded(old)
    assert (config.tier, config.close_after, config.baseline.window) == ("full", 3, 6)
    assert (config.stop_on, config.detectors) == ((), {})
    assert config.false_alerts_per_run == Config().false_alerts_per_run
