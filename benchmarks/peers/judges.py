"""What each tool says about a log, in its own words, at its defaults."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.peers.scenarios import Log, Row

Judge = Callable[[Log], frozenset[str] | None]
"""What a tool raises about a log; None if it cannot read the log."""

_TO_RLPROBE: Mapping[str, str] = {
    "reward": "reward_mean",
    "reward_std": "reward_std",
    "frac_reward_zero_std": "zero_variance_group_frac",
    "entropy": "entropy_mean",
    "kl": "kl_mean",
    "clip_ratio/region_mean": "clip_fraction",
    "grad_norm": "grad_norm",
    "loss": "loss",
    "learning_rate": "lr",
    "completions/mean_length": "completion_len_mean",
    "completions/clipped_ratio": "truncation_rate",
    "step_time": "step_time_s",
}


def roledrift(log: Log) -> frozenset[str]:
    """Findings of ``roledrift check`` on the log as JSON lines."""
    from roledrift.cli.check import check_run
    from roledrift.ingest import sniff
    from roledrift.ingest.importing import import_run, job_for
    from roledrift.store.reader import open_run

    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "log.jsonl", Path(folder) / "run"
        path.write_text("".join(json.dumps(row) + "\n" for row in log.rows))
        import_run(sniff(path), job_for(path), out)
        checked = check_run(open_run(out))
    # A tool that reached no verdict must not pass for one that found nothing.
    missing = {"no verdict"} if checked.outcome == "no verdict" else set()
    return frozenset({finding.finding for finding in checked.findings} | missing)


def rl_doctor(log: Log, *, critical: bool = False) -> frozenset[str]:
    """Checks of ``rl-doctor diagnose`` at WARN or worse, or the critical ones alone."""
    from rl_doctor import Severity, diagnose, run_from_records

    least = Severity.CRITICAL if critical else Severity.WARNING
    diagnosis = diagnose(run_from_records([dict(row) for row in log.rows]))
    return frozenset(
        finding.detector for finding in diagnosis.findings if finding.severity >= least
    )


def rlprobe(log: Log) -> frozenset[str]:
    """Signatures of ``rlprobe doctor``."""
    from rlprobe.doctor.engine import diagnose_view
    from rlprobe.doctor.runview import RunView
    from rlprobe.schemas import RunManifest, StepRecord

    known = set(StepRecord.model_fields)
    records = []
    for row in log.rows:
        body = {_TO_RLPROBE.get(key, key): value for key, value in row.items()}
        parts = {key.split("/")[1]: value for key, value in row.items() if _is_part(key)}
        body = {key: value for key, value in body.items() if key in known}
        records.append(StepRecord(**body, reward_components=parts))
    manifest = RunManifest(
        run_id="x", created_at="2026-01-01T00:00:00Z", algorithm="grpo", trainer_config={}
    )
    return frozenset(finding.signature_id for finding in diagnose_view(RunView(manifest, records)))


def _is_part(key: str) -> bool:
    return key.startswith("rewards/") and key.endswith("/mean")


def rlwatch(log: Log) -> frozenset[str]:
    """Alerts of rlwatch's detectors."""
    from rlwatch.config import RLWatchConfig
    from rlwatch.detectors import DetectorSuite

    suite = DetectorSuite(RLWatchConfig())
    named = set()
    for row in log.rows:
        alerts = suite.check_step(
            int(row["step"]),
            entropy=_of(row, "entropy", "entropy_mean"),
            kl_divergence=_of(row, "kl", "kl_mean"),
            reward_mean=_of(row, "reward", "reward_mean"),
            reward_std=_of(row, "reward_std"),
            advantage_std=_of(row, "adv_std"),
            loss=_of(row, "loss"),
            grad_norm=_of(row, "grad_norm"),
        )
        named |= {alert.detector for alert in alerts}
    return frozenset(named)


def martingale(log: Log) -> frozenset[str] | None:
    """Alarms of martingale's monitor on what it computes of the tokens; it reads nothing else."""
    from martingale.diagnostics.alarms import AlarmHistory, evaluate
    from martingale.diagnostics.incremental import StepDiagnosis

    if not log.engine:
        return None
    history, named = AlarmHistory(), set()
    for step in log.engine:
        diagnosis = StepDiagnosis(
            step=step["step"],
            n_new_scores=step["by_lag"][0]["n_tokens"],
            n_new_sequences=1,
            by_lag=step["by_lag"],
            cumulative_by_lag=[],
            attribution={},
            floor_mean_abs=None if step["floor"] is None else Fraction(step["floor"]),
            new_weights_digests=[step["weights"]],
            span_fraction=0.0,
            n_negative_lag=0,
            unscored_new_sequences=0,
        )
        named |= {result.kind for result in evaluate(diagnosis, history)}
    return frozenset(named)


def _of(row: Row, *keys: str) -> float | None:
    value: Any = next((row[key] for key in keys if key in row), None)
    return None if value is None or math.isnan(value) else float(value)


JUDGES: Mapping[str, Judge] = {
    "roledrift": roledrift,
    "rl-doctor": rl_doctor,
    "rlprobe": rlprobe,
    "rlwatch": rlwatch,
    "martingale": martingale,
}
