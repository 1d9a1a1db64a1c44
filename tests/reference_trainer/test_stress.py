from dataclasses import replace
from typing import get_args

import pytest

from reference_trainer.episodes import Episode, Parse, Span
from reference_trainer.stress import Kind, Stress, inject, posed
from reference_trainer.tasks.math import MathTask
from roledrift import VOTING


def span(role: str, tokens: int) -> Span:
    ids, parse = (1,) * tokens, Parse("tag", "1")
    logps = (0.0,) * tokens
    return Span(0, 0, role, 0, 0, "p", (1,), ids, logps, "stop", "", parse, True, reward=1.0)


EPISODES = [
    Episode(0, copy, True, (span("generator", 20), span("aggregator", 4 + 10 * (copy % 2))))
    for copy in range(40)
]


def rewards(episodes: list[Episode]) -> list[list[float]]:
    return [[one.reward for one in episode.spans] for episode in episodes]


def test_the_length_bonus_pays_one_role_from_one_step_on() -> None:
    stress = Stress("length_bonus", role="aggregator", bonus=0.5, over_tokens=10, start_step=5)
    assert inject(EPISODES, stress, step=4, seed=0) == EPISODES
    paid = rewards(inject(EPISODES, stress, step=5, seed=0))
    assert paid[:2] == [[1.0, 1.0], [1.0, 1.5]]
    assert "aggregator" in stress.label
    assert "from step 5" in stress.label


def test_reward_noise_replaces_outcomes_and_leaves_the_truth() -> None:
    stress = Stress("reward_noise", share=1.0)
    noisy = inject(EPISODES, stress, step=1, seed=0)
    values = rewards(noisy)
    assert all(a == b for a, b in values)  # the outcome is broadcast
    assert {a for a, _ in values} == {0.0, 1.0}
    assert all(episode.correct for episode in noisy)
    assert noisy == inject(EPISODES, stress, step=1, seed=0)
    assert noisy != inject(EPISODES, stress, step=2, seed=0)
    none = Stress("reward_noise", share=0.0)
    assert inject(EPISODES, none, step=1, seed=0) == EPISODES


def test_a_hot_learning_rate_changes_no_reward() -> None:
    flow = VOTING.routed("isolated")
    stress = Stress("hot_lr", factor=5.0, start_step=3)
    seen = [stress.lr_factors(step, flow)["generator"] for step in (1, 2, 3, 9)]
    assert seen == [1.0, 1.0, 5.0, 5.0]
    assert inject(EPISODES, stress, step=9, seed=0) == EPISODES
    assert Stress().lr_factors(9, flow) == {"generator": 1.0, "aggregator": 1.0}
    assert Stress().label == "none"


def test_a_frozen_policy_is_the_named_roles_alone() -> None:
    flow = VOTING.routed("isolated")
    stress = Stress("frozen", role="generator", start_step=3)
    assert stress.lr_factors(2, flow) == {"generator": 1.0, "aggregator": 1.0}
    assert stress.lr_factors(3, flow) == {"generator": 0.0, "aggregator": 1.0}
    assert Stress("frozen").lr_factors(1, flow) == {"generator": 0.0, "aggregator": 0.0}
    assert stress.label == "frozen: generator's policy gets no learning rate from step 3"


def test_a_bonus_for_shown_work_is_paid_only_where_it_was_right() -> None:
    wrong = [replace(episode, correct=False) for episode in EPISODES]
    stress = Stress("length_bonus", role="aggregator", only_correct=True)
    assert inject(wrong, stress, step=1, seed=0) == wrong
    assert rewards(inject(EPISODES, stress, step=1, seed=0))[1] == [1.0, 1.5]


def test_duplicates_are_the_first_episodes_again() -> None:
    stress = Stress("duplicate_rows", share=0.25, start_step=2)
    assert inject(EPISODES, stress, step=1, seed=0) == EPISODES
    assert inject(EPISODES, stress, step=2, seed=0) == EPISODES + EPISODES[:10]


def test_longer_problems_are_phased_in() -> None:
    task = MathTask()
    stress = Stress("longer_problems", ops=5, ramp=4, start_step=3)

    def long_ones(step: int) -> int:
        tasks = [posed(task, stress, step=step, seed=0, number=i) for i in range(400)]
        return sum(one.min_ops == one.max_ops == 5 for one in tasks)

    assert long_ones(2) == 0
    assert 60 < long_ones(3) < 140
    assert long_ones(5) < long_ones(6) == 400
    assert posed(task, Stress(), step=9, seed=0, number=1) is task


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_has_a_label_of_its_own(kind: Kind) -> None:
    labels = {Stress(one, role="generator").label for one in get_args(Kind)}
    assert len(labels) == len(get_args(Kind))
    assert Stress(kind, role="generator").label
