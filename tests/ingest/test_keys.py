import pytest

from roledrift.ingest.keys import Translator, passed_note, step_of, useful


def test_isolated_policies_have_keys_per_role() -> None:
    translate = Translator()
    groups, totals = translate(
        {
            "actor/generator/chi2_token": 0.1,
            "actor/generator/training_ppl": 1.4,
            "actor/generator/kl": 0.02,
            "actor/generator/k3_kl": 0.01,
            "actor/aggregator/grad_norm": 3,
            "actor/generator/actor": 0.4,
            "actor/entropy": 0.3,
            "batch/generator_acc": 0.5,
            "batch/aggregator_acc": 0.6,
            "batch/success": 0.6,
            "val/unknown/pass@1": 0.2,
            "timing_s/step": 9,
            "text": "x",
        }
    )
    assert groups["generator"] == {
        "rollout.chi2": 0.1,
        "rollout.training_ppl": 1.4,
        "ppl": 1.4,
        "rollout.k1": 0.02,
        "rollout.k3": 0.01,
        "correct": 0.5,
    }
    assert groups["aggregator"] == {"grad_norm": 3, "correct": 0.6}
    assert groups["*"] == {"entropy": 0.3, "step_time": 9}
    assert totals == {"success": 0.6, "reward": 0.6, "val_accuracy": 0.2}
    assert list(translate.roles) == ["generator", "aggregator"]
    assert translate.implied == {"generator": 3, "aggregator": 1}
    assert list(translate.passed) == ["actor/generator/actor"]


def test_a_shared_policy_has_one_series() -> None:
    translate = Translator()
    groups, _ = translate(
        {"rollout_corr/chi2_token": 0.1, "actor/grad_norm": 2, "actor/pg_clipfrac": 0}
    )
    assert groups == {"*": {"rollout.chi2": 0.1, "grad_norm": 2, "clip_fraction": 0}}
    assert (dict(translate.roles), translate.shared) == ({}, True)


@pytest.mark.parametrize(
    ("data", "groups", "totals"),
    [
        (
            {"train/reward": 0.5, "train/completions/mean_length": 12, "kl": 0.1},
            {"*": {"length": 12, "reference.k3": 0.1}},
            {"reward": 0.5},
        ),
        (
            {"critic/rewards/mean": 0.4, "batch/success": 0.5},
            {},
            {"reward": 0.4, "success": 0.5},
        ),
        ({"val-core/math/acc/mean@8": 0.3}, {}, {"val_accuracy": 0.3}),
        ({"mismatch_kl/mean": 0.1}, {"*": {"rollout.k3": 0.1}}, {}),
        ({"_step": 1, "_runtime": 2}, {}, {"runtime": 2}),
    ],
)
def test_other_trainers(
    data: dict[str, object], groups: dict[str, dict[str, float]], totals: dict[str, float]
) -> None:
    assert Translator()(data) == (groups, totals)


def test_the_step_and_the_note() -> None:
    assert step_of({"train/global_step": 7.0, "global_step": 8}) == 7
    assert step_of({"train/global_step": 7.5}) is None
    assert passed_note([]) == {}
    assert passed_note(map(str, range(10)))["numbers not imported"].endswith("7 and 2 more")


def test_what_nobody_translates_is_left_out_and_named() -> None:
    row = {
        "actor/generator/chi2_token": "0.5",
        "actor/generator/actor": 0.3,
        "rollout_corr/kl": 0.1,
        "batch/generator_acc": 0.5,
        "batch/n_strategies": 2,
        "val/unknown/pass@1": 0.2,
        "training/global_step": 3,
        "train/reward": 0.4,
        "timing_s/step": 9.0,
        "response_length/mean": "a text",
        "_runtime": 1.0,
        "step": 3,
        "table": {"a": 1},
    }
    passed: dict[str, None] = {}
    found = useful(row, passed)
    assert set(found) == {*list(row)[:1], *list(row)[2:9], "_runtime"}
    assert list(passed) == ["actor/generator/actor"]
    assert found["actor/generator/chi2_token"] == 0.5


def test_three_voters_are_roles_of_their_own() -> None:
    translate = Translator()
    groups, _ = translate({"batch/voter_acc": 0.5, "batch/voterB_acc": 0.25, "batch/success": 1})
    assert list(translate.implied) == ["voterA", "voterB", "voterC", "aggregator"]
    assert groups["voterB"] == {"correct": 0.25}
