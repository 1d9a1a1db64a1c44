"""What the code of arXiv 2605.24202 does differently, one switch per item, all off by default.

Each switch restores one behaviour of that code where this trainer does something else, to find out
how much of a result depends on it. ``docs/paper_compat.md`` lists them beside the settings that
already cover the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from reference_trainer.episodes import Span


@dataclass(frozen=True, slots=True)
class PaperCompat:
    """Switches.

    Attributes:
        lr_ticks_per_update: The schedule advances with every policy's update instead of once per
            iteration, from 0: with R policies a warm-up of W lasts W / R iterations, policies of
            one iteration have different learning rates, and the first update of a run has none.
        rows_by_length: Rows are laid out short, long, short instead of shuffled; mini-batches of a
            shared policy then hold mostly one role, because length is role.
        full_minibatches: Mini-batches are filled one after another and the last one may be short;
            its gradient is divided by the full size all the same.
        rollout_logps_at_one: The monitor gets rollout log-probabilities at temperature 1, whatever
            the sampling temperature. They are labelled so, and it then refuses to compare them.
        padding_ranks: Rows of a policy are padded to a multiple of this with copies of its first
            rows, which count in the loss and in everything measured. 1 pads nothing.
        on_policy_single: With a single optimizer step per iteration the ratio is exactly 1 by
            construction, so nothing can be clipped whatever the engine reported.
        chat: Conversations are rendered as that code does it for Qwen3, not by the model's chat
            template, and what is taken for a reply are its rules.
        parsers: Selections, verdicts and plans are read by its rules.
        graders: Answers and programs are graded by its rules.
        data_order: Training problems come in its order: all rows in a random order that is the same
            in every run, in another one per epoch.
    """

    lr_ticks_per_update: bool = False
    rows_by_length: bool = False
    full_minibatches: bool = False
    rollout_logps_at_one: bool = False
    padding_ranks: int = 1
    on_policy_single: bool = False
    chat: bool = False
    parsers: bool = False
    graders: bool = False
    data_order: bool = False


def problems(compat: PaperCompat, *, lenient: bool, task: str) -> list[str]:
    """What is wrong with ``compat`` in a run with this selection and task."""
    wrong = []
    if compat.parsers and not lenient:
        wrong.append("paper_compat.parsers needs rollout.lenient_selection = true")
    if task not in ("dapo_math", "deepcoder"):
        wrong += [
            f"paper_compat.{name} needs task.name dapo_math or deepcoder, got {task!r}"
            for name, on in (("graders", compat.graders), ("data_order", compat.data_order))
            if on
        ]
    return wrong


def tick(step: int, *, place: int, policies: int) -> int:
    """Updates of any policy before the one at ``place`` in iteration ``step`` (from 1)."""
    return (step - 1) * policies + place


def released_order(rows: int, *, problems: int, step: int) -> list[int]:
    """Rows of the training split that iteration ``step`` (from 1) takes.

    Epochs are random permutations from one generator of torch with its own default seed, which no
    setting of the released code changes; what does not fill an iteration is left out.

    Args:
        rows: Rows of the split, at least ``problems``.
        problems: Problems of an iteration.
        step: Iteration.
    """
    epoch, place = divmod(step - 1, rows // problems)
    generator = torch.Generator()
    # torch's sampler draws a second permutation at the end of every epoch, and uses none of it.
    order = [torch.randperm(rows, generator=generator) for _ in range(2 * epoch + 1)][-1]
    return [int(row) for row in order[place * problems : (place + 1) * problems]]


def by_length(spans: Sequence[Span]) -> list[Span]:
    """Every other row in ascending order of length, then the rest in descending order."""
    rising = sorted(spans, key=lambda span: len(span.prompt_ids) + len(span.output_ids))
    return rising[::2] + rising[1::2][::-1]


def padded(spans: Sequence[Span], *, ranks: int) -> list[Span]:
    """``spans`` and copies of the first ones, up to a multiple of ``ranks``."""
    rows = list(spans)
    while len(rows) % ranks:
        rows += spans[: ranks - len(rows) % ranks]
    return rows


def filled(spans: Sequence[Span], *, size: int) -> list[list[Span]]:
    """Consecutive mini-batches of ``size`` rows; the last one may be short."""
    return [list(spans[start : start + size]) for start in range(0, len(spans), size)]
