from dataclasses import replace

import pytest

from reference_trainer.config import TrainSettings, from_mapping
from reference_trainer.episodes import Episode, Parse, Span
from reference_trainer.errors import SettingsError
from reference_trainer.rows import is_trained, paid


def span(role: str, slot: int, correct: bool | None, reward: float) -> Span:
    parse = Parse("tag", "7")
    return Span(
        *(0, 0, role, slot, 0, role, (1,), (2, 3), (-1.0, -1.0), "stop", "7"),
        *(parse, correct, reward, 0.0),
    )


def test_the_first_slots_are_trained_and_the_others_measured() -> None:
    settings = TrainSettings(trained_slots={"generator": 2}, left_out=("judge",))
    rows = [span(role, slot, True, 1.0) for role in ("generator", "judge") for slot in range(3)]
    assert [is_trained(row, settings) for row in rows] == [True, True, False, False, False, False]
    assert is_trained(span("aggregator", 5, None, 0.0), settings)


def test_own_reward_pays_answers_and_leaves_what_is_no_answer() -> None:
    spans = (
        span("generator", 0, True, 0.0),
        span("generator", 1, False, 1.0),
        span("generator", 2, None, 0.5),
        span("aggregator", 0, False, 1.0),
    )
    episode = Episode(0, 0, True, spans)
    (found,) = paid([episode], TrainSettings(own_reward=("generator",)))
    assert [one.reward for one in found.spans] == [1.0, 0.0, 0.5, 1.0]
    assert paid([episode], TrainSettings()) == [episode]
    assert replace(found, spans=spans) == episode


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"train": {"trained_slots": {"poet": 1}}}, "trained_slots .'poet'. are not roles"),
        ({"train": {"trained_slots": {"generator": 0}}}, "must be at least 1, got 0"),
        ({"train": {"own_reward": ["poet"]}}, "own_reward .'poet'. are not roles"),
        (
            {"routing": "shared", "train": {"updates": {"generator": 3}}},
            "train.updates: roles .* share policy 'shared' and need the same value",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_errors(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        from_mapping(settings)
