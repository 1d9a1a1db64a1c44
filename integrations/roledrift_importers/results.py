"""``eval_results.jsonl`` of the paper's code: the accuracy of checkpoints on a set of problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import documents
from roledrift.ingest.values import integer, number, text
from roledrift_importers.experiment import Experiment, parsed

NAME = "eval_results.jsonl"
_OF_TRAINING = ("trained_checkpoint", "training_validation")
_BASE = "base_model"


@dataclass(frozen=True, slots=True)
class Result:
    """One row: a checkpoint, a set of problems, a mode.

    Attributes:
        mode: ``trained_checkpoint``, ``base_model`` or one of the two transfers.
        lengths: ``training`` if responses could be as long as in training, else ``eval``.
        rollouts: Rollouts per problem that the accuracy is the mean of.
        shared: Whether all roles had one policy; None if the row does not say.
    """

    experiment: str
    dataset: str
    step: int
    accuracy: float
    mode: str
    lengths: str
    rollouts: int
    shared: bool | None


@dataclass(frozen=True, slots=True)
class Accuracies:
    """What the rows say of one experiment on one set of problems, at one length limit.

    Attributes:
        by_step: Accuracy of its checkpoints.
        base: Accuracy of the base model in the same workflow; None if no row has it.
        lengths: As for :class:`Result`.
    """

    dataset: str
    by_step: dict[int, float]
    base: float | None
    lengths: str
    shared: bool | None


def is_result(row: dict[str, Any]) -> bool:
    """Whether a JSON object is such a row."""
    return {"checkpoint_step", "accuracy"} <= set(row)


def results(file: Path, ledger: Ledger) -> list[Result]:
    """All rows of a file; what is no row is counted."""
    parsed_rows = []
    for where, row in documents(file, ledger):
        step, accuracy = integer(row.get("checkpoint_step")), number(row.get("accuracy"))
        if step is None or accuracy is None:
            ledger.skip("result without step or accuracy", where)
            continue
        shared = row.get("share_policy")
        parsed_rows.append(
            Result(
                experiment=text(row.get("experiment_name")) or "",
                dataset=text(row.get("dataset")) or "",
                step=step,
                accuracy=accuracy,
                mode=text(row.get("eval_mode")) or _OF_TRAINING[0],
                lengths=text(row.get("length_mode")) or "training",
                rollouts=integer(row.get("n_rollouts")) or 1,
                shared=shared if isinstance(shared, bool) else None,
            )
        )
    return parsed_rows


def experiments(rows: Sequence[Result]) -> list[tuple[str, str]]:
    """Experiments and sets of problems that rows are about, sorted."""
    return sorted({(row.experiment, row.dataset) for row in rows})


def accuracies(
    rows: Sequence[Result], experiment: str, dataset: str, ledger: Ledger
) -> Accuracies | None:
    """What the rows say of one experiment on one set of problems; None if nothing.

    Of responses that could be as long as in training and longer ones, the former count: the two
    are never mixed.
    """
    name = parsed(experiment)
    own = [row for row in rows if (row.experiment, row.dataset) == (experiment, dataset)]
    evaluates = name is not None and not name.trained
    fitting = [row for row in own if evaluates or row.mode in (*_OF_TRAINING, _BASE)]
    if len(fitting) < len(own):
        # A transfer under the name of a training says nothing about the training.
        ledger.skip("result of a transfer evaluation", experiment, n=len(own) - len(fitting))
    if not fitting:
        return None
    lengths = "training" if any(row.lengths == "training" for row in fitting) else "eval"
    alike = [row for row in fitting if row.lengths == lengths]
    checkpoints = [row for row in alike if evaluates or row.mode != _BASE]
    base = [row for row in alike if not evaluates and row.mode == _BASE]
    if not base and name is not None and name.trained:
        base = [row for row in rows if _is_base(row, name, dataset, lengths)]
    return Accuracies(
        dataset=dataset,
        # Rows come in the order of evaluation: the mean over most rollouts counts, then the last.
        by_step={
            row.step: row.accuracy for row in sorted(checkpoints, key=lambda row: row.rollouts)
        },
        base=max(base, key=lambda row: row.rollouts).accuracy if base else None,
        lengths=lengths,
        shared=next((row.shared for row in own if row.shared is not None), None),
    )


def _is_base(row: Result, of: Experiment, dataset: str, lengths: str) -> bool:
    name = parsed(row.experiment)
    return (
        row.mode == _BASE
        and (row.dataset, row.lengths) == (dataset, lengths)
        and name is not None
        and name.kind == _BASE
        and name.cell == of.cell
    )
