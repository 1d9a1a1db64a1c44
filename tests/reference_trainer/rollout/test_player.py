from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reference_trainer.config import Config, from_mapping
from reference_trainer.episodes import Episode
from reference_trainer.errors import SettingsError
from reference_trainer.evaluate import evaluate
from reference_trainer.policies import AdapterBank
from reference_trainer.pretrain import load_base
from reference_trainer.rollout.engine import Completion, Sampling
from reference_trainer.rollout.player import Stage, play_episodes
from reference_trainer.rollout.transformers_engine import TransformersEngine
from reference_trainer.workflows import Rules, Scene, load_script
from reference_trainer.workflows.prompts import load_prompts

MakeBank = Callable[..., AdapterBank]


def stage(make_bank: MakeBank, folder: Path, workflow: str, **rules: object) -> Stage:
    config: Config = from_mapping({"workflow": workflow, "routing": "shared"})
    bank = make_bank("shared")
    scene = Scene(config.task, load_prompts("tiny"), True, Rules(**rules))  # type: ignore[arg-type]
    engine = TransformersEngine(bank, end_ids=(bank.pad_id,))
    return Stage(load_script(workflow), config.routed(), scene, engine, load_base(folder)[1])


def play(one: Stage, *, tokens: int = 12) -> list[Episode]:
    problems = [(i, one.scene.task.problem("train", i)) for i in range(4)]
    return play_episodes(one, problems, copies=3, sampling=Sampling(1.0, tokens), seed=1)


@pytest.mark.parametrize("workflow", ["eval_opt", "orch_workers"])
def test_episodes_of_different_lengths_keep_their_order(
    make_bank: MakeBank, base_folder: Path, workflow: str
) -> None:
    episodes = play(stage(make_bank, base_folder, workflow))
    assert [(one.problem, one.copy) for one in episodes] == [
        (i, j) for i in range(4) for j in range(3)
    ]
    for episode in episodes:
        turns = [span.turn for span in episode.spans]
        assert turns == sorted(turns)
        assert episode.overflowed == ()
        assert {span.reward for span in episode.spans} == {float(episode.correct)}
    if workflow == "eval_opt":
        assert {len(one.spans) for one in episodes} <= {2, 4, 6}


def test_an_episode_does_not_depend_on_what_is_played_beside_it(
    make_bank: MakeBank, base_folder: Path
) -> None:
    one = stage(make_bank, base_folder, "eval_opt")
    together = {(episode.problem, episode.copy): episode for episode in play(one)}
    alone = play_episodes(
        one,
        [(2, one.scene.task.problem("train", 2))],
        copies=2,
        sampling=Sampling(1.0, 12),
        seed=1,
    )
    assert len({episode.spans[0].output_ids for episode in together.values()}) > 6
    for episode in alone:
        other = together[episode.problem, episode.copy]
        assert [span.output_ids for span in episode.spans] == [
            span.output_ids for span in other.spans
        ]


def test_the_length_limit_is_named(make_bank: MakeBank, base_folder: Path) -> None:
    episodes = play(stage(make_bank, base_folder, "single"), tokens=2)
    for episode in episodes:
        cut = [span.role for span in episode.spans if span.finish_reason == "length"]
        assert list(episode.truncated) == cut
    assert any(episode.truncated for episode in episodes)


def test_a_prompt_that_is_too_long_leaves_no_span(make_bank: MakeBank, base_folder: Path) -> None:
    # The generator's prompt has 8 or 10 tokens; the evaluator's has its output besides.
    one = stage(make_bank, base_folder, "eval_opt", max_prompt_tokens=12, rounds=1)
    episodes = play(one)
    ended = [episode for episode in episodes if episode.overflowed]
    assert len(ended) > 6
    for episode in ended:
        assert [span.role for span in episode.spans] == ["generator"]
        assert episode.overflowed == ("evaluator",)
        assert not episode.correct
    config = from_mapping({"workflow": "eval_opt", "validation": {"problems": 4}})
    assert evaluate(one, config, step=0).overflowed > 0.0
    with pytest.raises(SettingsError, match=r"rules\.max_prompt_tokens = 3"):
        play(stage(make_bank, base_folder, "eval_opt", max_prompt_tokens=3))


class OneByOne(TransformersEngine):
    """Takes requests in while it samples others: one output at a time, the latest request first."""

    continuous = True

    def collect(self) -> dict[int, Completion]:
        self._waiting = dict(reversed(self._waiting.items()))
        return super().collect()


@pytest.mark.parametrize("workflow", ["voting", "eval_opt"])
def test_the_engine_does_not_decide_what_is_played(
    make_bank: MakeBank, base_folder: Path, workflow: str
) -> None:
    """A phase at once, in parts, or every episode at its own pace: the same episodes."""
    one = stage(make_bank, base_folder, workflow)
    bank = make_bank("shared")
    ends = (bank.pad_id,)
    expected = read(play(one, tokens=6))
    assert len({text for episode in expected for text in episode[-1]}) > 6
    for engine in (
        TransformersEngine(bank, end_ids=ends, max_rows=4),
        OneByOne(bank, end_ids=ends, max_rows=1),
    ):
        assert read(play(replace(one, engine=engine), tokens=6)) == expected


def read(episodes: list[Episode]) -> list[tuple[Any, ...]]:
    """All but log-probabilities, which are rounded as the batch has it."""
    return [
        (one.problem, one.copy, one.correct, one.overflowed, [span.text for span in one.spans])
        for one in episodes
    ]
