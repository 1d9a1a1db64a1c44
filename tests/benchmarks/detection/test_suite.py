"""Committed recordings, replayed: the labels that no change of a detector may lose."""

import pytest
from benchmarks.detection.panel_runs import findings

from benchmarks.detection.judging import judge
from benchmarks.detection.recordings import FOLDER, load
from benchmarks.detection.suite import load_suite
from reference_trainer.config import Config

SUITE = load_suite()
SCENARIOS = {one.name: one for one in SUITE.scenarios}
FOUND = (("weak-sp-verbose", 10), ("voting-ip-hot", 10), ("voting-ip-duplicates", 10))
CLEAN = (("voting-ip", 10), ("eval-opt-sp", 10))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_a_run_that_can_be_trained(name: str) -> None:
    scenario = SCENARIOS[name]
    config = SUITE.config(scenario, 3)
    assert isinstance(config, Config)
    roles = set(config.routed().role_names)
    assert set(scenario.roles) <= roles | {"*"}
    assert not set(scenario.tune) & set(scenario.report)
    assert bool(scenario.names) == (scenario.label == "failure")
    if config.stress.kind != "none":
        assert config.stress.start_step == SUITE.onset


def test_nothing_differs_from_the_trunk_before_the_onset() -> None:
    for scenario in SUITE.scenarios:
        mine, trunk = SUITE.config(scenario, 3), SUITE.config(scenario.trunk, 3)
        same = ("workflow", "routing", "task", "pretrain", "rollout", "lora", "seed")
        assert all(getattr(mine, one) == getattr(trunk, one) for one in same)


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_a_recorded_failure_is_found_with_its_role(name: str, seed: int) -> None:
    recording = load(name, seed)
    outcome = judge(SCENARIOS[name], recording, findings(recording), onset=SUITE.onset)
    assert outcome.role
    assert outcome.name
    assert outcome.errors == 0


@pytest.mark.parametrize(("name", "seed"), CLEAN)
def test_a_recorded_healthy_run_raises_no_error(name: str, seed: int) -> None:
    recording = load(name, seed)
    outcome = judge(SCENARIOS[name], recording, findings(recording), onset=SUITE.onset)
    assert outcome.errors == 0


def test_the_recordings_are_those_of_the_suite_and_small() -> None:
    wanted = {f"{one.name}-{seed}.json.xz" for one in SUITE.scenarios for seed in one.seeds}
    there = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert there.keys() <= wanted
    assert sum(there.values()) <= 6 * 2**20
