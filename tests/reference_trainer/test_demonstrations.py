import random
from dataclasses import replace

import pytest

from reference_trainer.demonstrations import (
    DEMONSTRATORS,
    FORMS,
    Piece,
    aggregator,
    evaluator,
    orchestrator,
    revision,
    synthesizer,
    worker,
)
from reference_trainer.exercises import Noise, TinyTask, exercises_for
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask, last_boxed
from reference_trainer.tiny_model import build_tokenizer
from reference_trainer.workflows.parse import parse_selection, parse_strategies, parse_verdict
from reference_trainer.workflows.prompts import load_prompts

MATH, PROMPTS = exercises_for(MathTask()), load_prompts("tiny")
EXACT = Noise(wrong_strategy=0.0, slip=0.0, filler=0.0, careless=0.0, verbose_share=0.0)


def trained(pieces: list[Piece]) -> list[str]:
    return [text for text, with_loss in pieces if with_loss]


@pytest.mark.parametrize("task", [MathTask(), CodeTask()], ids=["math", "code"])
@pytest.mark.parametrize("skill", sorted(DEMONSTRATORS))
def test_every_word_has_a_token(skill: str, task: TinyTask) -> None:
    tokenizer, rng = build_tokenizer(), random.Random(3)
    noise = Noise(verbose_share=0.5)
    for _ in range(30):
        pieces = DEMONSTRATORS[skill](exercises_for(task), PROMPTS, noise=noise, rng=rng)
        assert tokenizer("".join(text for text, _ in pieces))["input_ids"]
        assert pieces[-1][1]


def test_every_skill_names_its_prompts() -> None:
    assert list(FORMS) == list(DEMONSTRATORS)


def test_the_aggregator_learns_its_candidates_and_chooses_the_majority() -> None:
    rng = random.Random(4)
    for _ in range(100):
        pieces = aggregator(MATH, PROMPTS, noise=replace(EXACT, wrong_strategy=0.5), rng=rng)
        candidates = [last_boxed(text) for text in trained(pieces[:-1])]
        chosen = parse_selection(pieces[-1][0], candidates=3)
        assert len(candidates) == 3
        assert chosen.how == "tag"
        answer = candidates[int(chosen.value or 0) - 1]
        assert candidates.count(answer) == max(candidates.count(one) for one in candidates)


def test_an_aggregator_can_have_no_preference_for_the_first_of_the_majority() -> None:
    chosen: dict[bool, set[str | None]] = {False: set(), True: set()}
    for anyone in chosen:
        rng = random.Random(1)
        noise = replace(EXACT, any_of_majority=anyone)
        for _ in range(40):  # every candidate is right: all three are the majority
            pieces = aggregator(MATH, PROMPTS, noise=noise, rng=rng)
            chosen[anyone].add(parse_selection(pieces[-1][0], candidates=3).value)
    assert chosen == {False: {"1"}, True: {"1", "2", "3"}}


def test_terse_candidates_and_how_many_there_are() -> None:
    rng = random.Random(5)
    noise = replace(EXACT, terse_share=1.0, candidates=(1, 4))
    counts = set()
    for _ in range(40):
        texts = trained(aggregator(MATH, PROMPTS, noise=noise, rng=rng)[:-1])
        counts.add(len(texts))
        assert all(text.startswith(" \\boxed") for text in texts)
    assert counts == {1, 4}
    worked = replace(noise, candidates_terse_share=0.0)
    texts = trained(aggregator(MATH, PROMPTS, noise=worked, rng=rng)[:-1])
    assert all(text.startswith(" left") for text in texts)


def test_an_aggregator_that_solves_again_boxes_its_own_answer() -> None:
    rng = random.Random(6)
    noise = replace(EXACT, terse_share=0.5, verbose_share=1.0, prose_answers=True)
    for _ in range(40):
        pieces = aggregator(MATH, PROMPTS, noise=noise, rng=rng)
        output = pieces[-1][0]
        assert output.startswith(" left"), "what is solved again is written out"
        answers = {last_boxed(text) for text in trained(pieces[:-1])}
        assert {last_boxed(output)} == answers, "everything is exact: all agree"


@pytest.mark.parametrize("task", [MathTask(), CodeTask()], ids=["math", "code"])
def test_the_synthesizer_repeats_the_majority(task: TinyTask) -> None:
    exercises, rng, numbers = exercises_for(task), random.Random(5), set()
    for _ in range(100):
        pieces = synthesizer(exercises, PROMPTS, noise=replace(EXACT, wrong_strategy=0.5), rng=rng)
        *candidates, final = [exercises.answer(text) for text in trained(pieces)]
        numbers.add(len(candidates))
        assert final
        assert candidates.count(final) == max(candidates.count(one) for one in candidates)
    assert numbers == {1, 2, 3}


def test_verbose_aggregators_resolve_before_they_stamp() -> None:
    rng = random.Random(5)
    long = [
        len(aggregator(MATH, PROMPTS, noise=Noise(verbose_share=0.4), rng=rng)[-1][0].split()) > 4
        for _ in range(500)
    ]
    assert sum(long) / 500 == pytest.approx(0.4, abs=0.08)


def test_verdicts_are_mostly_right() -> None:
    rng, right = random.Random(6), 0
    for _ in range(400):
        pieces = evaluator(MATH, PROMPTS, noise=replace(Noise(), slip=0.0), rng=rng)
        verdict = parse_verdict(pieces[-1][0])
        assert verdict.how == "tag"
        solutions = [text for text in trained(pieces[:-1]) if text.split()[0] in ("left", "right")]
        right += (verdict.value == "correct") == solutions[-1].startswith(" left")
    assert right / 400 == pytest.approx(0.9, abs=0.05)


def test_a_revision_follows_verdicts_against_solutions() -> None:
    rng = random.Random(7)
    for _ in range(50):
        pieces = revision(MATH, PROMPTS, noise=Noise(), rng=rng)
        text = "".join(piece for piece, _ in pieces[:-1])
        assert text.count("Incorrect") == len(trained(pieces)) - 1 >= 1
        assert text.endswith(" A:")


def test_plans_have_one_to_three_strategies_and_workers_mostly_follow_theirs() -> None:
    rng, numbers, followed = random.Random(8), set(), 0
    for _ in range(400):
        parse, strategies = parse_strategies(
            orchestrator(MATH, PROMPTS, noise=Noise(), rng=rng)[-1][0], most=3
        )
        numbers.add(len(strategies))
        assert parse.how == "tag"
        assert set(strategies) <= {" left", " right"}
        (request, _), (text, _) = worker(MATH, PROMPTS, noise=Noise(), rng=rng)
        followed += request.split()[-2] == text.split()[0]
    assert numbers == {1, 2, 3}
    assert followed / 400 == pytest.approx(0.925, abs=0.04)  # the disobedient half follow by chance
