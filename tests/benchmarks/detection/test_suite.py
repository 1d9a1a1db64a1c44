"""Committed recordings, replayed: the labels that no change of a detector may lose."""

from dataclasses import replace

import pytest

from benchmarks.detection.judging import Outcome, judge
from benchmarks.detection.labels import truth
from benchmarks.detection.recordings import FOLDER, place
from benchmarks.detection.replays import Job, run_job
from benchmarks.detection.suite import Place, load_suite
from benchmarks.detection.training import queue
from reference_trainer.config import Config

SUITE = load_suite()
JOBS = queue(SUITE)
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
    if scenario.label != "natural":
        assert bool(scenario.names) == (scenario.label == "failure")
    assert bool(scenario.kind) == (scenario.label == "failure")
    if config.stress.kind != "none":
        assert config.stress.start_step == (1 if scenario.from_start else SUITE.onset)


def test_runs_are_apart_by_use_and_none_is_reserved() -> None:
    for scenario in SUITE.scenarios:
        tune, report = scenario.places("tune"), scenario.places("report")
        assert not set(tune) & set(report)
        assert set(scenario.places()) == set(tune) | set(report)
        assert all(one.base is not None and 30 <= one.seed < 9000 for one in report)
        assert all(one.base is None or one.seed < 30 for one in tune)


def test_no_two_bases_share_a_seed() -> None:
    places = {place for one in SUITE.scenarios for place in one.places() if place.base is not None}
    assert len({one.seed for one in places}) == len(places)


def test_a_named_base_is_warmed_up_until_it_is_able() -> None:
    earlier = SUITE.config("voting-ip", 3)
    named = SUITE.config("voting-ip", 3, 2)
    assert earlier.pretrain.until is None
    assert named.pretrain.until is not None
    assert named.pretrain.seed == 2
    assert replace(named, pretrain=earlier.pretrain) == earlier


def test_nothing_differs_from_the_trunk_before_the_onset() -> None:
    for scenario in SUITE.scenarios:
        mine, trunk = SUITE.config(scenario, 3), SUITE.config(scenario.trunk, 3)
        same = ("workflow", "routing", "task", "pretrain", "rollout", "lora", "seed")
        assert all(getattr(mine, one) == getattr(trunk, one) for one in same)


def replayed(name: str, seed: int) -> Outcome:
    runs = [run_job(Job(one, Place(None, seed))) for one in (name, SCENARIOS[name].trunk)]
    (run, told), twin = ((one.facts, one.findings["as recorded"]) for one in runs)
    label = truth(SUITE, SCENARIOS[name], runs[0].workflow)
    return judge(SCENARIOS[name], Place(None, seed), label, run, told, twin)


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_a_recorded_failure_is_found_with_its_role(name: str, seed: int) -> None:
    outcome = replayed(name, seed)
    assert outcome.counts
    assert outcome.by("any", None)
    assert outcome.reported["any"].named


@pytest.mark.parametrize(("name", "seed"), CLEAN)
def test_a_recorded_healthy_run_raises_nothing_serious(name: str, seed: int) -> None:
    assert not replayed(name, seed).raised["serious"]


def test_the_recordings_are_those_of_the_suite_and_small() -> None:
    wanted = {
        place(one.name, run.seed, base=run.base).name
        for one in SUITE.scenarios
        for run in one.places()
    }
    wanted |= {place(job.scenario.name, job.place.seed, base=job.place.base).name for job in JOBS}
    there = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert there.keys() <= wanted
    assert sum(there.values()) <= 17 * 2**20
    assert max(there.values()) <= 150 * 2**10
