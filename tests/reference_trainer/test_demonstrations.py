import random
from dataclasses import replace

import pytest

from reference_trainer.demonstrations import DEMONSTRATORS, Noise, aggregator, solution
from reference_trainer.tasks.math import MathTask, evaluate_left, evaluate_right, last_boxed
from reference_trainer.tiny_model import build_tokenizer
from reference_trainer.workflows.parse import parse_selection
from reference_trainer.workflows.prompts import load_prompts

TASK, PROMPTS = MathTask(), load_prompts("tiny")
EXACT = Noise(wrong_strategy=0.0, slip=0.0, filler=0.0, careless=0.0, verbose_share=0.0)


@pytest.mark.parametrize(("wrong", "value"), [(0.0, evaluate_left), (1.0, evaluate_right)])
def test_without_slips_a_solution_is_its_strategy(wrong: float, value: object) -> None:
    rng = random.Random(1)
    noise = replace(EXACT, wrong_strategy=wrong)
    for _ in range(100):
        digits, ops = TASK.draw(rng)
        text = solution(digits, ops, noise=noise, rng=rng)
        assert last_boxed(text) == str(value(digits, ops))  # type: ignore[operator]


def test_the_doses_are_what_they_say() -> None:
    rng = random.Random(2)
    texts = []
    for _ in range(2000):
        texts.append(solution(*TASK.draw(rng), noise=Noise(), rng=rng))
    assert sum(text.startswith(" right") for text in texts) / 2000 == pytest.approx(0.45, abs=0.04)
    assert sum(" wait check" in text for text in texts) / 2000 == pytest.approx(0.15, abs=0.03)


@pytest.mark.parametrize("role", sorted(DEMONSTRATORS))
def test_every_word_has_a_token(role: str) -> None:
    tokenizer, rng = build_tokenizer(), random.Random(3)
    noise = Noise(verbose_share=0.5)
    for _ in range(50):
        pieces = DEMONSTRATORS[role](TASK, PROMPTS, noise=noise, rng=rng)
        assert tokenizer("".join(text for text, _ in pieces))["input_ids"]


def test_the_aggregator_learns_its_candidates_and_chooses_the_majority() -> None:
    rng = random.Random(4)
    for _ in range(100):
        pieces = aggregator(TASK, PROMPTS, noise=replace(EXACT, wrong_strategy=0.5), rng=rng)
        candidates = [last_boxed(text) for text, trained in pieces[:-1] if trained]
        chosen = parse_selection(pieces[-1][0], candidates=3)
        assert len(candidates) == 3
        assert chosen.how == "tag"
        answer = candidates[int(chosen.value or 0) - 1]
        assert candidates.count(answer) == max(candidates.count(one) for one in candidates)


def test_verbose_aggregators_resolve_before_they_stamp() -> None:
    rng = random.Random(5)
    long = [
        len(aggregator(TASK, PROMPTS, noise=Noise(verbose_share=0.4), rng=rng)[-1][0].split()) > 4
        for _ in range(500)
    ]
    assert sum(long) / 500 == pytest.approx(0.4, abs=0.08)
