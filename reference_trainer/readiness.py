"""Whether a model in its warm-up can do the task yet."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from reference_trainer.exercises import Exercises
from reference_trainer.seeds import derive
from reference_trainer.workflows.prompts import Prompts

_MOST_TOKENS = 40


@dataclass(frozen=True, slots=True)
class Readiness:
    """How well a generator answers.

    Attributes:
        worked: Share of right answers among those that show work by the right strategy; 0 if none
            does.
        others: Share of right answers among the others, terse ones for example; 0 if there is none.
        share: Share of answers that show work by the right strategy.
    """

    worked: float
    others: float
    share: float


def readiness(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    exercises: Exercises,
    prompts: Prompts,
    *,
    answers: int,
    seed: int,
) -> Readiness:
    """Sample answers of the generator at temperature 1 and grade them.

    The same ``seed`` poses the same exercises. Torch's global generator is left as it was.
    """
    rng = random.Random(derive(seed, "readiness"))
    chains = [exercises.draw(rng) for _ in range(answers)]
    questions = [prompts.fill("generator", question=chain.question) for chain in chains]
    batch = tokenizer(
        questions, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False
    )
    was_training = model.training
    model.train(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "readiness"))
        rows = cast(Any, model).generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            do_sample=True,
            top_k=0,
            max_new_tokens=_MOST_TOKENS,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.eos_token_id,
        )
    model.train(was_training)
    width = batch["input_ids"].shape[1]
    texts = tokenizer.batch_decode(rows[:, width:], skip_special_tokens=True)
    graded = [
        (exercises.worked(text), exercises.correct(chain, text))
        for chain, text in zip(chains, texts, strict=True)
    ]
    worked = [correct for shown, correct in graded if shown]
    others = [correct for shown, correct in graded if not shown]
    return Readiness(
        worked=sum(worked) / max(len(worked), 1),
        others=sum(others) / max(len(others), 1),
        share=len(worked) / len(graded),
    )
