"""A trainer's own metric dictionary, logged live, is judged as ``check`` judges the same log."""

import json
import logging
from pathlib import Path
from random import Random
from typing import Any

import pytest

from roledrift import open_monitor
from roledrift.detect.suite import replay
from roledrift.errors import ConfigError
from roledrift.store.reader import StoredRun, open_run
from tests.ingest.logs import imported, write_lines


def course(kind: str, steps: int = 120) -> list[dict[str, Any]]:
    """Rows as TRL logs them, of a run that is truncated, loses its entropy, or is well."""
    noise = Random(7)
    rows = []
    for step in range(1, steps + 1):
        late = max(0.0, (step - 60) / 20)
        cut = min(0.95, 0.02 + 0.4 * late) if kind == "truncated" else 0.02
        entropy = 0.9 * 0.4**late if kind == "entropy" else 0.9
        rows.append(
            {
                "reward": 0.4 + noise.gauss(0, 0.02),
                "reward_std": 0.3 + noise.gauss(0, 0.01),
                "completions/mean_length": 200 + noise.gauss(0, 4),
                "completions/clipped_ratio": max(0.0, cut + noise.gauss(0, 0.005)),
                "entropy": max(1e-3, entropy * (1 + noise.gauss(0, 0.02))),
                "frac_reward_zero_std": 0.1 + noise.gauss(0, 0.01),
                "grad_norm": 0.5 + noise.gauss(0, 0.02),
                "learning_rate": 1e-6,
                "step": step,
            }
        )
    return rows


def logged(rows: list[dict[str, Any]], out: Path) -> StoredRun:
    monitor = open_monitor(out, notifiers=())
    for row in rows:
        monitor.log(row, row["step"])
    monitor.close()
    return open_run(out)


def found(run: StoredRun) -> set[tuple[str, str, str, int | None]]:
    verdicts = replay(run.steps(), run.header.workflow)
    return {(one.detector, one.role, one.state, one.onset) for one in verdicts.verdicts}


@pytest.mark.parametrize(
    ("kind", "finding"), [("truncated", "truncation"), ("entropy", "entropy"), ("well", "")]
)
def test_a_failure_is_found_while_it_is_logged(tmp_path: Path, kind: str, finding: str) -> None:
    run = logged(course(kind), tmp_path / "run")
    names = {one.finding for one in run.alerts()}
    assert run.header.workflow.role_names == ("policy",)
    assert len(run.steps()) == 120
    assert any(finding in name for name in names) if finding else not names


@pytest.mark.parametrize("kind", ["truncated", "entropy"])
def test_what_is_logged_live_is_what_check_reads(tmp_path: Path, kind: str) -> None:
    rows = course(kind)
    rows[10]["grad_norm"] = float("nan")
    rows[11]["entropy"] = float("nan")
    live = logged(rows, tmp_path / "live")
    _, read = imported(write_lines(tmp_path / "log.jsonl", rows), tmp_path / "read")
    for mine, theirs in zip(live.steps(), read.steps(), strict=True):
        assert mine.step == theirs.step
        assert repr(plain(mine)) == repr(plain(theirs))  # NaN is not equal to itself
    assert found(live) == found(read)


def plain(record: Any) -> dict[str, Any]:
    groups = {
        f"{group}:{name}": (stat.n, stat.mean)
        for group, stats in record.groups.items()
        for name, stat in stats.items()
    }
    return dict(sorted({**groups, **record.totals}.items()))


def test_unknown_keys_are_named_once_with_the_nearest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        monitor = open_monitor(tmp_path / "run")
        for step in range(3):
            monitor.log({"reward": 0.1, "grad_nrom": 1.0, "zzz": 2.0}, step)
        monitor.close()
    told = [one.getMessage() for one in caplog.records if "grad_nrom" in one.getMessage()]
    assert len(told) == 1
    assert "grad_norm" in told[0]
    assert "zzz" in told[0]


@pytest.mark.parametrize("metrics", [{}, {"zzz": 1.0}, {"reward": None}, [1, 2], None, {1: 2}])
def test_what_cannot_be_used_is_said_once_and_raises_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, metrics: Any
) -> None:
    with caplog.at_level(logging.WARNING):
        monitor = open_monitor(tmp_path / "run")
        for step in range(3):
            assert not monitor.log(metrics, step).stop
        monitor.log({"reward": 0.5}, 3)
        monitor.close()
    assert sum("metrics" in one.getMessage() for one in caplog.records) == 1
    (record,) = open_run(tmp_path / "run").steps()
    assert record.step == 3
    assert sum(record.faults.values()) == 3


def test_steps_that_do_not_grow_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[Any] = [1, 2, 2, 1, None, 3]
    with caplog.at_level(logging.WARNING):
        monitor = open_monitor(tmp_path / "run")
        for step in steps:
            monitor.log({"reward": 0.5}, step)
        monitor.close()
    records = open_run(tmp_path / "run").steps()
    assert [one.step for one in records] == [1, 2, 3]
    assert sum(records[-1].faults.values()) == 3


def test_scalars_nested_keys_and_an_evaluation(tmp_path: Path) -> None:
    import numpy
    import torch

    monitor = open_monitor(out=tmp_path / "run")
    monitor.log({"reward": {"mean": numpy.float32(0.5)}, "entropy": torch.tensor(0.25)}, 1)
    monitor.log({"eval_accuracy": 0.75}, 1)
    monitor.log({"eval/accuracy": 0.75}, 2)  # comes alone: of the next record
    monitor.log({"reward": 0.5, "grad_norm": torch.ones(3)}, 3)
    monitor.close()
    first, second = open_run(tmp_path / "run").steps()
    assert first.totals["reward"] == 0.5
    assert first.mean("policy", "entropy") == 0.25
    assert second.totals["val_accuracy"] == 0.75
    assert second.mean("policy", "grad_norm") is None


def test_roles_of_a_workflow_keep_their_own(tmp_path: Path) -> None:
    monitor = open_monitor({"generator": 1, "aggregator": 1}, tmp_path / "run")
    rows = {"entropy": 0.5, "actor/generator/entropy": 0.25, "actor/judge/entropy": 0.1}
    monitor.log(rows, 1)
    monitor.close()
    (record,) = open_run(tmp_path / "run").steps()
    assert record.mean("*", "entropy") == 0.5
    assert record.mean("generator", "entropy") == 0.25
    assert record.mean("aggregator", "entropy") is None
    assert "judge" in json.dumps(dict(record.faults))


def test_a_finding_that_stops_stops_the_loop(tmp_path: Path) -> None:
    config = {"stop_on": ["failing", "input problem"]}
    monitor = open_monitor(tmp_path / "run", config=config, notifiers=())
    stopped = [row["step"] for row in course("truncated") if monitor.log(row, row["step"]).stop]
    monitor.close()
    assert stopped
    assert stopped[0] > 60


def test_a_path_is_no_workflow(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="path, not a workflow"):
        open_monitor(tmp_path, tmp_path)
