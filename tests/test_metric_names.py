"""What trainers call their metrics."""

import pytest

from roledrift.metric_names import (
    STATISTICS,
    TOTALS,
    Metric,
    nearest,
    not_understood,
    pays_for_form,
    pays_for_outcome,
    resolve,
)


def test_every_alias_means_what_the_table_says() -> None:
    for table, kind in ((STATISTICS, "statistic"), (TOTALS, "total")):
        for name, keys in table.items():
            for key in keys:
                found = resolve(key)
                assert found is not None
                assert (found.kind, found.name) == (kind, name), key


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("train/reward", "reward"),
        ("policy/entropy", "entropy"),
        ("response_length_mean", "length"),
        ("Train/Grad_Norm", "grad_norm"),
        ("rewards/correct/mean", "reward.correct"),
        ("rewards/correct/std", "reward_std.correct"),
        ("rewards/accuracy_reward", "reward.accuracy_reward"),
        ("actor/pg_clipfrac", "clip_fraction"),
    ],
)
def test_keys_are_found_as_they_stand_by_their_end_and_by_their_words(key: str, name: str) -> None:
    found = resolve(key)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("key", ["eval_entropy", "val/response_length/mean", "eval_loss"])
def test_an_evaluation_is_never_training(key: str) -> None:
    assert resolve(key) == Metric("evaluation")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("eval/accuracy", "val_accuracy"),
        ("val-core/gsm8k/acc/mean@8", "val_accuracy"),
        ("test/solve_rate", "val_accuracy"),
        ("eval_reward", "eval_reward"),
        ("eval_rewards/correct/mean", "eval_reward"),
    ],
)
def test_scores_of_an_evaluation(key: str, name: str) -> None:
    assert resolve(key) == Metric("validation", name)


@pytest.mark.parametrize("key", ["val-core/gsm8k/acc/std@8", "eval_rewards/format/mean"])
def test_what_is_no_score_of_an_evaluation(key: str) -> None:
    assert resolve(key) == Metric("evaluation")


@pytest.mark.parametrize("key", ["mean", "value", "rewards/chosen", "nonsense", "a/b/mean"])
def test_what_says_nothing_is_not_understood(key: str) -> None:
    assert resolve(key) is None


def test_steps_and_extremes_are_understood_as_no_measure() -> None:
    for key in ("step", "_step", "train/global_step", "completions/min_length"):
        assert resolve(key) == Metric("counter")


def test_when_a_row_was_logged_is_known() -> None:
    assert resolve("_timestamp") == Metric("total", "clock")
    assert resolve("train_runtime") == Metric("total", "runtime")
    assert resolve("eval_runtime") == Metric("evaluation")


def test_the_nearest_known_key() -> None:
    assert nearest("grad_nrm") == "grad_norm"
    assert nearest("xyz") == ""
    assert not_understood([]) == ""
    assert not_understood(["xyz", "grad_nrm"]).startswith("2 keys: grad_nrm (nearest known:")


def test_what_a_reward_pays_for_is_told_by_its_name() -> None:
    assert pays_for_outcome("accuracy_reward")
    assert pays_for_outcome("correctness")
    assert not pays_for_outcome("format_accuracy")
    assert pays_for_form("soft_format_reward")
