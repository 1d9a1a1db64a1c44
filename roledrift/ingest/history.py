"""Rows of logged numbers, put in order: restarts, repeated steps, padding, other cadences.

Real logs hold a training row and an evaluation row of one step, rows that a table has padded with
NaN, steps that two processes logged, and the steps of a run that crashed and was taken back to a
checkpoint. What is left is one set of numbers per step of the run that went on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from statistics import median

from roledrift.errors import StoreError
from roledrift.ingest.form import Job
from roledrift.ingest.keys import (
    Translator,
    compared,
    fails,
    only_times,
    passed_note,
    useful,
)
from roledrift.ingest.rows import Events, Series, StepDone
from roledrift.ingest.values import number
from roledrift.metric_names import CLOCKS, COMPONENT, resolve

LABELS = {"source": "foreign series", "pooling": "as logged, n unknown"}

_BACKWARD = 0.05
"""Share of rows that go back to an earlier step from which on the rows are merely out of order."""

_LIKE_TRAINING = 0.5
"""Share of the metrics of the usual row that a row of training has."""

_OF_RL = (
    *("reward", "score", "success", "accuracy", "zero_variance", "advantage", "truncated"),
    *("reference.k3", "rollout.k3", "rollout.chi2", "rollout.k1", "clip_fraction"),
)
_OF_ANY_TRAINING = frozenset(
    {*("pg_loss", "lr", "grad_norm", "entropy", "model_tokens", "throughput", "step_time"), ""}
)
_PREFERENCES = frozenset({"rewards/chosen", "rewards/rejected", "logps/chosen", "rewards/margins"})
_SUPERVISED = frozenset({"mean_token_accuracy", "eval_mean_token_accuracy", "perplexity"})
_CLASSIFIER = frozenset({"eval_accuracy", "eval_f1", "eval_precision", "eval_recall", "eval_auc"})


class History:
    """Collects logged rows in the order in which they were written."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rows: list[tuple[int, dict[str, object]]] = []
        self._keys: Counter[str] = Counter()
        self._passed: dict[str, None] = {}
        self._stepless = 0

    def add(self, step: int | None, data: Mapping[str, object], where: object = "") -> None:
        """Take one row."""
        numbers = [key for key, value in data.items() if number(value) is not None]
        self._keys.update(numbers)
        if step is None:
            if numbers:
                self._stepless += 1
                self._job.ledger.skip("row without a step", where)
            return
        numbers_of_use = useful(data, self._passed)
        if numbers_of_use.keys() - CLOCKS:
            self._rows.append((step, numbers_of_use))

    def events(self) -> Events:
        """The steps of the run that went on, in order.

        Raises:
            StoreError: If there is nothing to judge a reinforcement learning run by.
        """
        self._refuse()
        merged = _without_times_alone(self._merged(self._unpadded()))
        translate = Translator(passed=self._passed)
        labels = LABELS | compared(self._keys)
        for step in sorted(merged):
            groups, totals = translate(merged[step])
            if groups or totals:
                yield Series(step, groups, totals, labels)
                yield StepDone(step)
        facts = self._job.facts
        if not translate.roles:
            facts.slots.setdefault("policy", 1)
        facts.notes.update(passed_note(translate.passed))

    def _refuse(self) -> None:
        source, keys = self._job.shown, set(self._keys)
        what = _other_task(keys)
        if what and not self._of_rl():
            raise StoreError(
                f"{source}: this looks like {what}: it holds no reward. roledrift judges "
                "reinforcement learning; log at least a step and a mean reward"
            )
        if not keys:
            raise StoreError(f"{source}: holds no row with a number in it")
        if not self._rows and self._stepless:
            raise StoreError(
                f"{source}: {self._stepless} rows, none of which names its step; name the column "
                "'step' (or 'global_step'), or map it with --mapping"
            )
        if not self._of_rl():
            listed = ", ".join(sorted(keys)[:8])
            raise StoreError(
                f"{source}: none of its numbers is a reward, and nothing else says that it is a "
                f"reinforcement learning run (there are {listed}); map the columns with --mapping"
            )

    def _of_rl(self) -> bool:
        known = {metric.name for key in self._keys if (metric := resolve(key)) is not None}
        roles = any(key.startswith(("actor/", "rollout_corr/", "batch/")) for key in self._keys)
        parts = any(name.startswith(COMPONENT) for name in known)
        return roles or parts or bool(known & set(_OF_RL))

    def _unpadded(self) -> list[tuple[int, dict[str, object]]]:
        """The rows without the NaN that a table has padded them with.

        In a row of training a gradient or a loss that is not finite is kept: it is a fact.
        """
        counts = [sum(_finite(value) for value in data.values()) for _, data in self._rows]
        usual = median(counts) if counts else 0
        rows = []
        for (step, data), count in zip(self._rows, counts, strict=True):
            training = count >= _LIKE_TRAINING * usual
            kept = {
                key: value
                for key, value in data.items()
                if _finite(value) or (training and fails(key))
            }
            if kept:
                rows.append((step, kept))
        return rows

    def _merged(self, rows: list[tuple[int, dict[str, object]]]) -> dict[int, dict[str, object]]:
        """One row per step; what was logged before a restart and not repeated is left out."""
        steps = [step for step, _ in rows]
        backward = sum(step < before for before, step in pairwise(steps))
        ordered = backward <= max(3, _BACKWARD * len(rows))
        if not ordered:
            self._job.facts.notes["order"] = "rows are not in the order of steps; sorted by step"
        merged: dict[int, dict[str, object]] = {}
        latest: dict[str, int] = {}
        restarts = []
        for step, data in rows:
            # Every row says when it was logged, that of an evaluation of an earlier step as well.
            measured = data.keys() - CLOCKS
            again = max((latest[key] for key in measured if key in latest), default=step)
            if ordered and again > step:
                for later in [step_ for step_ in merged if step_ > step]:
                    del merged[later]
                latest = {key: min(at, step) for key, at in latest.items()}
                restarts.append(f"{again} to {step}")
            row = merged.setdefault(step, {})
            first_logged = {key: row[key] for key in CLOCKS if key in row}
            row.update(data, **first_logged)
            latest.update(dict.fromkeys(measured, step))
        if restarts:
            self._job.facts.notes["restarts"] = f"the log went back from step {', '.join(restarts)}"
        return merged


def _without_times_alone(merged: dict[int, dict[str, object]]) -> dict[int, dict[str, object]]:
    """A run time that comes after the last step, as transformers logs it, stands in that step."""
    kept: dict[int, dict[str, object]] = {}
    for step in sorted(merged):
        if not only_times(merged[step]):
            kept[step] = merged[step]
        elif kept:
            kept[max(kept)].update(merged[step])
    return kept


def _finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _other_task(keys: set[str]) -> str:
    """What else than reinforcement learning a log is of, by its keys; empty if unknown."""
    bare = {key.removeprefix("train/") for key in keys}
    if bare & _PREFERENCES:
        return "a log of preference training (DPO and the like)"
    if bare & _SUPERVISED:
        return "a log of supervised fine-tuning"
    if bare & _CLASSIFIER:
        return "a log of supervised training with an evaluation (classification and the like)"
    known = [
        key for key in bare if (metric := resolve(key)) is not None and metric.kind != "counter"
    ]
    if "loss" in bare and all(_is_of_any_training(key) for key in known):
        return "a log of supervised training: it holds losses"
    return ""


def _is_of_any_training(key: str) -> bool:
    metric = resolve(key)
    return metric is None or metric.name in _OF_ANY_TRAINING
