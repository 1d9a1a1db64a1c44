"""Demonstrations of every role for the supervised warm-up of the tiny models.

The solutions in them are those of ``exercises.py``; the roles around them are imperfect too: judges
that err, workers that do not follow their strategy, aggregators that re-solve instead of stamping.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from reference_trainer.exercises import Chain, Exercises, Noise, draw_strategy
from reference_trainer.workflows.prompts import Prompts

Piece = tuple[str, bool]
"""Text, and whether the language-model loss runs on it."""

_WRONG_VERDICTS = 0.1
_DISOBEDIENCE = 0.15
_NUMBERS_OF_STRATEGIES = (1, 2, 2, 3, 3)
_NUMBERS_OF_CANDIDATES = (1, 2, 3, 3, 3)
_NUMBERS_OF_REVISIONS = (0, 0, 0, 1, 1, 2)


def generator(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """The generator's prompt and one solution."""
    chain = exercises.draw(rng)
    return [
        (prompts.fill("generator", question=chain.question), False),
        (exercises.solution(chain, noise=noise, rng=rng), True),
    ]


def aggregator(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """Candidates and a choice. The candidates are trained on too.

    Without that, a small model unlearns the task while it learns to choose.
    """
    chain = exercises.draw(rng)
    # A single number draws nothing: demonstrations of three candidates stay as they were.
    count = noise.candidates[0] if len(noise.candidates) == 1 else rng.choice(noise.candidates)
    texts = [exercises.solution(chain, noise=noise.of_candidates, rng=rng) for _ in range(count)]
    chosen = _majority(exercises, texts, noise=noise, rng=rng)
    stamp = str(chosen + 1) if noise.selection == "index" else exercises.answer(texts[chosen])
    if noise.prose_answers and rng.random() < noise.verbose_share:
        own = exercises.solution(chain, noise=noise.of_prose, rng=rng)
        prose, stamp = exercises.prose(own), exercises.answer(own)
    else:
        prose = "" if noise.prose_answers else _prose(exercises, chain, noise=noise, rng=rng)
    head, _, tail = prompts.fill("aggregator", question=chain.question, candidates="\0").partition(
        "\0"
    )
    candidates = _candidates("aggregator", texts, prompts)
    return [(head, False), *candidates, (tail, False), (f"{prose} \\boxed{{ {stamp} }}", True)]


def evaluator(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """Solutions and the verdict on the last one, in either style of history."""
    chain = exercises.draw(rng)
    private = rng.random() < 0.5
    turns = rng.choice(_NUMBERS_OF_REVISIONS) + 1
    pieces: list[Piece] = []
    if not private:
        pieces.append((prompts.fill("generator", question=chain.question), False))
    for turn in range(1, turns + 1):
        text = exercises.solution(chain, noise=noise, rng=rng)
        approve = None if turn == turns else False
        verdict = _verdict(exercises, chain, text, noise=noise, rng=rng, approve=approve)
        if private:
            head, _, tail = prompts.fill(
                "evaluator", "private", question=chain.question, text="\0"
            ).partition("\0")
            pieces += [(head, False), (text, True), (tail, False), (verdict, True)]
        else:
            request = prompts.fill("evaluator", "shared") if turn == turns else ""
            pieces += [(text, True), (request, False), (verdict, turn == turns)]
    return pieces


def revision(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """Solutions with verdicts against them, and another solution, in either style of history."""
    chain = exercises.draw(rng)
    private = rng.random() < 0.5
    turns = max(1, rng.choice(_NUMBERS_OF_REVISIONS))
    pieces = [(prompts.fill("generator", question=chain.question), False)]
    for turn in range(1, turns + 1):
        text = exercises.solution(chain, noise=noise, rng=rng)
        verdict = _verdict(exercises, chain, text, noise=noise, rng=rng, approve=False)
        if private:
            request = prompts.fill("generator", "revise_private", feedback=verdict)
        else:
            asked = turn == turns
            request = verdict + (prompts.fill("generator", "revise_shared") if asked else "")
        pieces += [(text, True), (request, False)]
    return [*pieces, (exercises.solution(chain, noise=noise, rng=rng), True)]


def orchestrator(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """One to three strategies."""
    chain = exercises.draw(rng)
    plan = "".join(
        f" STRATEGY {number} : {draw_strategy(noise, rng)}"
        for number in range(1, rng.choice(_NUMBERS_OF_STRATEGIES) + 1)
    )
    return [(prompts.fill("orchestrator", question=chain.question), False), (plan, True)]


def worker(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """A solution that follows the strategy in the prompt, mostly."""
    chain = exercises.draw(rng)
    strategy = draw_strategy(noise, rng)
    obeyed = None if rng.random() < _DISOBEDIENCE else strategy
    text = exercises.solution(chain, noise=noise, rng=rng, strategy=obeyed)
    request = prompts.fill("worker", question=chain.question, strategy=f" {strategy}")
    return [(request, False), (text, True)]


def synthesizer(
    exercises: Exercises, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """One to three candidates, trained on too, and the answer that most of them have."""
    chain = exercises.draw(rng)
    texts = [
        exercises.solution(chain, noise=noise, rng=rng)
        for _ in range(rng.choice(_NUMBERS_OF_CANDIDATES))
    ]
    chosen = _majority(exercises, texts, noise=noise, rng=rng)
    prose = _prose(exercises, chain, noise=noise, rng=rng)
    head, _, tail = prompts.fill("synthesizer", question=chain.question, candidates="\0").partition(
        "\0"
    )
    candidates = _candidates("synthesizer", texts, prompts)
    answer = prose + exercises.final(texts[chosen])
    return [(head, False), *candidates, (tail, False), (answer, True)]


Demonstrator = Callable[..., list[Piece]]

DEMONSTRATORS: Mapping[str, Demonstrator] = {
    "generator": generator,
    "aggregator": aggregator,
    "evaluator": evaluator,
    "revision": revision,
    "orchestrator": orchestrator,
    "worker": worker,
    "synthesizer": synthesizer,
}
"""Skill to the function that writes one demonstration of it. The order is that of the warm-up."""

FORMS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "generator": (("generator", "prompt"),),
    "aggregator": (("aggregator", "prompt"), ("aggregator", "candidate")),
    "evaluator": (("generator", "prompt"), ("evaluator", "shared"), ("evaluator", "private")),
    "revision": (
        ("generator", "prompt"),
        ("generator", "revise_shared"),
        ("generator", "revise_private"),
    ),
    "orchestrator": (("orchestrator", "prompt"),),
    "worker": (("worker", "prompt"),),
    "synthesizer": (("synthesizer", "prompt"), ("synthesizer", "candidate")),
}
"""Skill to the role and form of every prompt text in its demonstrations."""


def _majority(
    exercises: Exercises, texts: Sequence[str], *, noise: Noise, rng: random.Random
) -> int:
    """Number of the first text whose answer most of them have, or any if careless.

    With ``any_of_majority`` it is any of those texts.
    """
    answers = [exercises.answer(text) for text in texts]
    counts = [answers.count(answer) for answer in answers]
    careless = rng.random() < noise.careless
    if careless:
        return rng.randrange(len(texts))
    if noise.any_of_majority:
        return rng.choice([i for i, count in enumerate(counts) if count == max(counts)])
    return counts.index(max(counts))


def _prose(exercises: Exercises, chain: Chain, *, noise: Noise, rng: random.Random) -> str:
    """A solution in prose, or nothing."""
    if rng.random() < noise.verbose_share:
        return exercises.prose(exercises.solution(chain, noise=noise.of_prose, rng=rng))
    return ""


def _candidates(role: str, texts: Sequence[str], prompts: Prompts) -> list[Piece]:
    pieces: list[Piece] = []
    for number, text in enumerate(texts, start=1):
        head, _, tail = prompts.fill(
            role, "candidate", number=str(number), text="\0", strategy=""
        ).partition("\0")
        pieces += [(head, False), (text, True)] + ([(tail, False)] if tail else [])
    return pieces


def _verdict(
    exercises: Exercises,
    chain: Chain,
    text: str,
    *,
    noise: Noise,
    rng: random.Random,
    approve: bool | None,
) -> str:
    """The verdict on ``text``; ``approve`` forces it."""
    if approve is None:
        approve = exercises.correct(chain, text) == (rng.random() >= _WRONG_VERDICTS)
    prose = _prose(exercises, chain, noise=noise, rng=rng)
    return f"{prose} \\boxed{{ {'Correct' if approve else 'Incorrect'} }}"
