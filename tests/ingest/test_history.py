"""Rows as real logs hold them: restarts, padding, evaluations, other tasks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest.form import Job
from roledrift.ingest.history import History
from roledrift.ingest.rows import Series

Rows = list[dict[str, object]]


def _steps(rows: Rows) -> tuple[dict[int, Series], Job]:
    job = Job(Path("log.jsonl"))
    history = History(job)
    for row in rows:
        step = row.get("step")
        history.add(step if isinstance(step, int) else None, row)
    return {one.step: one for one in history.events() if isinstance(one, Series)}, job


def test_an_evaluation_between_training_rows_belongs_to_its_step() -> None:
    rows: Rows = [{"step": n, "reward": 0.1 * n} for n in range(1, 5)]
    rows.insert(2, {"step": 2, "eval/accuracy": 0.4, "eval_runtime": 3.0, "eval_entropy": 9.0})
    found, _ = _steps(rows)
    assert found[2].totals == {"reward": 0.2, "val_accuracy": 0.4}
    assert found[2].groups == {}


def test_rows_say_when_they_were_logged() -> None:
    rows: Rows = [{"step": n, "reward": 0.5, "timestamp": 1767225600 + n} for n in range(1, 5)]
    rows += [{"step": n, "eval/accuracy": 0.4, "timestamp": 1767229200} for n in (2, 4)]
    rows += [{"step": 9, "gpu": "hot", "timestamp": 1767229300}]
    found, job = _steps(rows)
    assert list(found) == [1, 2, 3, 4], "a late evaluation is no restart, a time alone is no step"
    assert [found[n].totals["clock"] for n in (1, 2, 3)] == [1767225601, 1767225602, 1767225603]
    assert "restarts" not in job.facts.notes


def test_a_run_time_after_the_last_step_stands_in_that_step() -> None:
    rows: Rows = [{"step": n, "reward": 0.5} for n in (10, 20)]
    rows += [{"step": 24, "train_runtime": 3600.0, "train_loss": 0.1}]
    found, _ = _steps(rows)
    assert list(found) == [10, 20]
    assert [one.totals.get("runtime") for one in found.values()] == [None, 3600.0]


def test_steps_after_a_restart_that_were_not_repeated_are_forgotten() -> None:
    rows: Rows = [{"step": n, "reward": 0.0} for n in range(1, 101)]
    rows += [{"step": n, "reward": 1.0} for n in range(61, 81)]
    found, job = _steps(rows)
    assert max(found) == 80
    assert [found[n].totals["reward"] for n in (60, 61)] == [0.0, 1.0]
    assert job.facts.notes["restarts"] == "the log went back from step 100 to 61"


def test_a_step_logged_twice_counts_once_and_other_cadences_are_no_restart() -> None:
    rows: Rows = [{"step": n, "reward": 0.5} for n in range(1, 21) for _ in range(2)]
    rows += [{"step": 15, "grad_norm": 1.0}]
    found, job = _steps(rows)
    assert len(found) == 20
    assert "restarts" not in job.facts.notes
    assert found[15].groups["*"] == {"grad_norm": 1.0}


def test_rows_in_no_order_are_sorted() -> None:
    rows: Rows = [{"step": n, "reward": 0.1} for n in range(60, 0, -1)]
    found, job = _steps(rows)
    assert list(found) == list(range(1, 61))
    assert "order" in job.facts.notes


def test_padding_is_left_out_and_a_broken_gradient_is_kept() -> None:
    nan = math.nan
    full: Rows = [{"step": n, "reward": 0.1, "kl": 0.1, "grad_norm": 1.0} for n in range(1, 9)]
    broken: Rows = [{"step": 9, "reward": 0.1, "kl": 0.1, "grad_norm": nan}]
    padded: Rows = [{"step": 10, "eval/accuracy": 0.5, "reward": nan, "kl": nan, "grad_norm": nan}]
    found, _ = _steps(full + broken + padded)
    assert math.isnan(found[9].groups["*"]["grad_norm"])
    assert found[10].totals == {"val_accuracy": 0.5}
    assert found[10].groups == {}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"step": 1, "loss": 0.3, "mean_token_accuracy": 0.8}, "supervised fine-tuning"),
        ({"step": 1, "loss": 0.3, "eval_f1": 0.8, "eval_accuracy": 0.9}, "classification"),
        ({"step": 1, "loss": 0.3, "rewards/chosen": 0.8}, "preference training"),
        ({"step": 1, "loss": 0.3, "learning_rate": 1e-5, "grad_norm": 1.0}, "supervised"),
        ({"step": 1, "speed": 0.3}, "none of its numbers is a reward"),
        ({"reward": 0.3}, "none of which names its step"),
        ({"step": 1, "text": "hello"}, "none of its numbers|no row with a number"),
    ],
)
def test_what_is_no_reinforcement_learning_is_refused_in_a_sentence(
    row: dict[str, object], words: str
) -> None:
    with pytest.raises(StoreError, match=words):
        _steps([row])


def test_keys_that_are_not_understood_are_named_with_the_nearest_known_one() -> None:
    _, job = _steps([{"step": 1, "reward": 0.1, "entropi": 0.2, "perf/mfu": 0.4}])
    note = job.facts.notes["numbers not imported"]
    assert "entropi (nearest known: entropy)" in note
    assert "perf/mfu" in note


@pytest.mark.parametrize("prefix", ["", "train/"])
def test_trl_compares_with_the_engine_before_the_policy_moves(prefix: str) -> None:
    key = f"{prefix}sampling/sampling_logp_difference/mean"
    found, _ = _steps([{"step": n, "reward": 0.5, key: 0.01} for n in range(1, 4)])
    assert found[2].labels["rollout"].endswith(", 0 steps between")
    found, _ = _steps([{"step": n, "reward": 0.5, "mismatch_kl/mean": 0.01} for n in range(1, 4)])
    assert "rollout" not in found[2].labels
