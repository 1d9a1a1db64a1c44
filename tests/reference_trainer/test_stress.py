from reference_trainer.episodes import Episode, Parse, Span
from reference_trainer.stress import Stress, inject


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
    stress = Stress("hot_lr", factor=5.0, start_step=3)
    assert [stress.lr_factor(step) for step in (1, 2, 3, 9)] == [1.0, 1.0, 5.0, 5.0]
    assert inject(EPISODES, stress, step=9, seed=0) == EPISODES
    assert Stress().lr_factor(9) == 1.0
    assert Stress().label == "none"
