import pytest

from reference_trainer.episodes import Reply
from reference_trainer.errors import SettingsError
from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import MathTask
from reference_trainer.workflows import NAMES, Scene, load_script
from reference_trainer.workflows.prompts import load_prompts


def test_one_ask_one_grade() -> None:
    script = load_script("single")
    play = script.play(Problem("p", " 1 + 1", "2"), Scene(MathTask(), load_prompts("tiny")))
    (ask,) = next(play)
    assert (ask.role, ask.messages[0].text) == ("generator", " <gen> Q: 1 + 1 A:")
    with pytest.raises(StopIteration) as end:
        play.send([Reply(" so \\boxed{ 2 }", "stop")])
    assert end.value.value.correct
    assert len(end.value.value.judgements) == 1


def test_scripts_and_shapes_go_by_one_name() -> None:
    assert [load_script(name).shape.name for name in NAMES] == list(NAMES)


def test_unknown_prompts_are_named() -> None:
    with pytest.raises(
        SettingsError,
        match=r"no family 'huge': set it to one of chat-code, .*, tiny, weak, or to the path of",
    ):
        load_prompts("huge")
    with pytest.raises(SettingsError, match="no form 'prompt' for role 'poet'"):
        load_prompts("tiny").fill("poet")
