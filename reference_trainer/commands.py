"""What ``train`` and ``evaluate`` do and say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from reference_trainer.checkpoint import load_checkpoint
from reference_trainer.config import Config, from_mapping
from reference_trainer.errors import SettingsError
from reference_trainer.evaluate import Evaluation, evaluate
from reference_trainer.progress import Progress
from reference_trainer.trainer import Result, StepReport, prepare, train


def train_run(config: Config, *, out: Path, cache: Path) -> Result:
    """Train one run with a progress line, and say how it went."""
    print(f"{config.name}: {config.workflow}, routing {config.routing}, seed {config.seed}")
    print(f"{config.name}: stress: {config.stress.label}", flush=True)
    setup = prepare(config, cache=cache)
    with Progress(config.name, total=config.train.steps) as progress:

        def advance(report: StepReport) -> None:
            progress.advance(report.step, _line(report))

        result = train(setup, out=out, on_step=advance)
    curve = [result.before, *(report.validation for report in result.steps)]
    accuracies = " ".join(f"{one.accuracy:.2f}" for one in curve if one is not None)
    if accuracies:
        print(f"{config.name}: validation {accuracies}")
    if result.stopped:
        print(
            f"{config.name}: stopped after step {len(result.steps)} by the alert: {result.stopped}"
        )
    print(f"{config.name}: written to {out}", flush=True)
    return result


def evaluate_run(run: Path, *, cache: Path, problems: int | None) -> Evaluation:
    """Validate the adapters that ``train`` left in ``run``.

    Raises:
        SettingsError: If ``run`` is not a folder that ``train`` wrote.
    """
    file = run / "trainer" / "config.json"
    if not file.is_file():
        raise SettingsError(f"{run} holds no trainer/config.json: give a folder written by `train`")
    config = from_mapping(json.loads(file.read_text("utf-8"))["config"])
    if problems is not None:
        config = replace(config, validation=replace(config.validation, problems=problems))
    setup = prepare(config, cache=cache)
    load_checkpoint(setup.bank, run / "trainer" / "adapters")
    setup.served.check()
    result = evaluate(setup.stage, config, step=config.train.steps)
    print(f"{config.name}: accuracy {result.accuracy:.3f} on {result.problems} problems")
    for role, one in result.roles.items():
        own = "" if one.accuracy is None else f"accuracy {one.accuracy:.3f}, "
        print(f"  {role}: {own}{one.tokens:.1f} tokens, demanded form in {one.tagged:.0%}")
    return result


def _line(report: StepReport) -> str:
    roles = ", ".join(
        f"{role} {one['tokens']:.0f} tok k3 {one['k3']:.1e}" for role, one in report.roles.items()
    )
    return f"reward {report.reward:.2f} accuracy {report.accuracy:.2f}; {roles}"
