import json
from dataclasses import asdict
from pathlib import Path

import pytest

from reference_trainer.config import Config, from_mapping, load, presets
from reference_trainer.errors import SettingsError
from reference_trainer.reading import merge
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask


def test_the_defaults_are_a_configuration() -> None:
    assert from_mapping({}) == Config()


def test_every_policy_makes_the_same_number_of_steps_by_default_and_the_presets_as_the_paper() -> (
    None
):
    assert Config().train.minibatch_counts == "episodes"
    assert {load(name).train.minibatch_counts for name in presets()} == {"spans"}


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(SettingsError) as error:
        from_mapping(
            {
                "train": {"adam": {"lr": "fast", "lrs": 1}, "step": 3, "grouping": "agent"},
                "rollout": 5,
                "seeds": 1,
                "monitor": {"stop_on": ["a", 1]},
            }
        )
    message = str(error.value)
    for part in (
        "train.adam.lr must be float, got 'fast'",
        "unknown key 'train.adam.lrs', did you mean 'lr'?",
        "unknown key 'train.step', did you mean 'steps'?",
        "train.grouping must be one of 'slot', 'role', 'turn', 'problem', got 'agent'",
        "rollout must be a table of settings, got 5",
        "unknown key 'seeds', did you mean 'seed'?",
        "monitor.stop_on must be",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train": {"adam": {"lr": 0}}}, "train.adam.lr must be greater than 0"),
        ({"rollout": {"temperature": -1.0}}, "rollout.temperature must be greater than 0"),
        ({"workflow": "debate"}, "workflow 'debate' is unknown"),
        ({"routing": "split"}, "routing: .*'split' is unknown"),
        ({"routing": {"generator": "g"}}, "leaves out"),
        ({"stress": {"kind": "length_bonus", "role": "poet"}}, "stress.role 'poet' is not a role"),
        ({"stress": {"share": 2}}, "stress.share must be between 0 and 1"),
        ({"task": {"max_ops": 1, "min_ops": 1}}, "task.max_ops must be at least 2"),
        ({"task": {"operators": "/"}}, "operators from"),
        ({"task": {"name": "poetry"}}, "task.name must be one of 'math', .*, got 'poetry'"),
        ({"task": {"name": "code", "operators": "+-"}}, "operators needs"),
        ({"task": {"name": "code", "tests": 0}}, "task.tests must be between 1 and 30"),
        ({"task": {"tests": 5}}, "unknown key 'task.tests'"),
        ({"rules": {"history": "none"}}, "rules.history must be one of 'shared', 'private'"),
        ({"rules": {"rounds": 0}}, "rules.rounds must be greater than 0"),
        ({"pretrain": {"skills": ["juggler"]}}, "skills .'juggler'. are unknown"),
        ({"pretrain": {"skills": []}}, "skills is empty"),
        ({"pretrain": {"until": {"worked": 1.5}}}, "pretrain.until needs"),
        ({"pretrain": {"until": {"step": 5}}}, "unknown key 'pretrain.until.step'"),
        ({"pretrain": {"until": 0.7}}, "pretrain.until must be"),
        ({"pretrain": {"noise": {"candidates": []}}}, "candidates needs"),
        ({"train": {"left_out": ["poet"]}}, "train.left_out .'poet'. are not roles"),
        ({"train": {"left_out": ["generator", "aggregator"]}}, "left_out names every role"),
        ({"seed": True}, "seed must be int, got True"),
    ],
)
def test_values_that_make_no_sense(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        from_mapping(values)


def test_the_task_goes_by_its_name_and_comes_back() -> None:
    assert from_mapping({"task": {"max_ops": 4}}).task == MathTask(max_ops=4)
    config = from_mapping({"task": {"name": "code", "tests": 4}})
    assert config.task == CodeTask(tests=4)
    assert from_mapping(json.loads(json.dumps(asdict(config)))) == config


def test_routing_may_be_a_map() -> None:
    config = from_mapping({"routing": {"generator": "g", "aggregator": "a1"}})
    assert config.routed().policies == ("g", "a1")


def test_every_preset_is_valid() -> None:
    assert {"voting-ip-healthy", "voting-ip-hot", "voting-sp-verbose"} <= set(presets())
    for name in presets():
        assert load(name).name == name


def test_a_file_with_overrides(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("name = 'mine'\n[train]\nsteps = 5\nadam = { lr = 1 }\n")
    config = load(file, {"train": {"adam": {"warmup_steps": 2}}})
    assert (config.name, config.train.steps, config.train.adam.lr) == ("mine", 5, 1.0)
    assert config.train.adam.warmup_steps == 2
    file.write_text("name = ")
    with pytest.raises(SettingsError, match="not valid TOML"):
        load(file)
    with pytest.raises(SettingsError, match="neither a TOML or JSON file nor a preset"):
        load("voting")


def test_merge_goes_table_by_table_and_changes_nothing() -> None:
    base = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge(base, {"a": {"b": 5}, "e": 6}) == {"a": {"b": 5, "c": 2}, "d": 3, "e": 6}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}
