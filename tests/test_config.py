from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from roledrift.config import Config, check_installed, from_mapping, load
from roledrift.errors import ConfigError


def test_defaults_survive_a_round_trip() -> None:
    assert from_mapping(asdict(Config())) == Config()


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "roledrift.toml"
    path.write_text(
        'tier = "economy"\nstop_on = ["length_inflation"]\n[baseline]\nwindow = 5\n'
        '[detectors.length_inflation]\nroles = ["aggregator"]\ndrift_ratio = 2\n'
    )
    config = load(path)
    assert config.tier == "economy"
    assert config.stop_on == ("length_inflation",)
    assert config.baseline.window == 5
    assert config.detectors.length_inflation.roles == ("aggregator",)
    assert config.detectors.length_inflation.drift_ratio == 2.0
    assert config.detectors.sp_role_capture == Config().detectors.sp_role_capture


def test_every_problem_of_a_file_is_told_at_once() -> None:
    body = {
        "teir": "full",
        "tier": "first",
        "baseline": {"window": "ten", "skp": 1},
        "sampling": 3,
        "detectors": {"length_inflation": {"drift_ratio": -1, "roles": "aggregator"}, "echo": {}},
        "rescore": {"every": True},
    }
    with pytest.raises(ConfigError) as caught:
        from_mapping(body, source="x.toml")
    message = str(caught.value)
    assert message.startswith("x.toml: ")
    for part in (
        "unknown key 'teir', did you mean 'tier'?",
        "tier: must be one of",
        "baseline.window: needs a int, got 'ten'",
        "unknown key 'baseline.skp', did you mean 'skip'?",
        "sampling: needs a section",
        "detectors.length_inflation.drift_ratio: needs a finite number >= 0, got -1",
        "detectors.length_inflation.roles: needs a list of names",
        "unknown key 'detectors.echo'",
        "rescore.every: needs a int, got True",
    ):
        assert part in message


def test_stop_on_must_name_a_detector() -> None:
    with pytest.raises(ConfigError, match="'length_inflaton' is no detector, did you mean"):
        from_mapping({"stop_on": ["length_inflaton"]})


@pytest.mark.parametrize("text", [None, "tier = ", "= 3"])
def test_unreadable_files_are_told(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "c.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.toml"):
        load(path)


def test_a_section_of_an_extension_that_nobody_reads(install: Any, tmp_path: Path) -> None:
    body: dict[str, Any] = {"extensions": {"shoutng": {"share": 0.5}}}
    with pytest.raises(ConfigError, match="shoutng: no detector of that name is installed; there"):
        check_installed(from_mapping(body))
    install("dist_a", {"detectors": {"shouting": "part:part"}, "probes": {"other": "part:part"}})
    for name in ("shoutng", "other"):
        with pytest.raises(ConfigError, match=f"extensions.{name}: no detector of that name"):
            check_installed(from_mapping({"extensions": {name: {}}}))
    with pytest.raises(ConfigError, match="did you mean 'shouting'"):
        check_installed(from_mapping(body))
    file = tmp_path / "roledrift.toml"
    file.write_text("[extensions.shoutng]\nshare = 0.5\n")
    with pytest.raises(ConfigError, match=r"roledrift\.toml: extensions\.shoutng"):
        load(file)
    file.write_text("[extensions.shouting]\nshare = 0.5\n")
    assert load(file).extensions == {"shouting": {"share": 0.5}}
    with pytest.raises(ConfigError, match="enabled: needs true or false, got 'no'"):
        check_installed(from_mapping({"extensions": {"shouting": {"enabled": "no"}}}))
    with pytest.raises(ConfigError, match=r"stop_on: 'shouting' needs a section \[extensions"):
        from_mapping({"stop_on": ["shouting"]})
