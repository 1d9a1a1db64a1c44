"""Settings of the supervised warm-up that makes the tiny base models."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference_trainer.demonstrations import DEMONSTRATORS
from reference_trainer.exercises import Noise
from reference_trainer.tiny_model import Size


@dataclass(frozen=True, slots=True)
class Until:
    """When the warm-up of a base model is over: once the model can do the task.

    The number of steps that takes differs several times between seeds.

    Attributes:
        worked: Share of right answers, among sampled answers of the generator that show their work
            by the right strategy, that ends the first phase of the warm-up.
        every: Steps between two checks.
        answers: Answers that are sampled for a check.
        decay_steps: Steps of the second phase, in which the learning rate falls to almost 0.
        most_steps: Steps after which the first phase ends anyway.
    """

    worked: float = 0.7
    every: int = 25
    answers: int = 96
    decay_steps: int = 100
    most_steps: int = 2000


@dataclass(frozen=True, slots=True)
class PretrainSettings:
    """The supervised warm-up that stands in for a pretrained model.

    Attributes:
        size: Model size.
        steps: Optimizer steps; not used with ``until``.
        lr: Peak learning rate, cosine decay.
        rows: Rows of a batch of generator demonstrations; batches of other roles have half as many.
        seed: For the weights and the demonstrations. Not the run's seed: runs share a base model.
        clean_share: Share of the steps, from the first, in which the arithmetic of the
            demonstrations is right: slips slow the learning of the 300 facts down threefold, and a
            few steps suffice to make the model doubt them again.
        noise: How imperfect the demonstrations are.
        skills: What is demonstrated: names in ``demonstrations.DEMONSTRATORS``.
        until: End the warm-up when the model can do the task instead of after ``steps``. The
            learning rate stays at its peak until then; the arithmetic is right until then unless
            ``clean_share`` is 0, and if that is 1, after it too.
    """

    size: Size = "M"
    steps: int = 550
    lr: float = 6e-3
    rows: int = 64
    clean_share: float = 0.7
    seed: int = 0
    noise: Noise = field(default_factory=Noise)
    skills: tuple[str, ...] = ("generator", "aggregator")
    until: Until | None = None


def problems(pretrain: PretrainSettings) -> list[str]:
    """What is wrong although every value has the right type."""
    wrong = []
    if pretrain.rows < 2:
        wrong.append(f"pretrain.rows must be at least 2, got {pretrain.rows}")
    if unknown := sorted(set(pretrain.skills) - set(DEMONSTRATORS)):
        wrong.append(f"pretrain.skills {unknown} are unknown; there are {list(DEMONSTRATORS)}")
    if not pretrain.skills:
        wrong.append("pretrain.skills is empty: name at least one")
    if not pretrain.noise.candidates or min(pretrain.noise.candidates) < 1:
        wrong.append("pretrain.noise.candidates needs numbers of at least 1")
    if (until := pretrain.until) is not None:
        counts = (until.every, until.answers, until.decay_steps, until.most_steps)
        if min(counts) < 1 or not 0.0 < until.worked <= 1.0:
            wrong.append("pretrain.until needs counts of at least 1 and 0 < worked <= 1")
    return wrong
