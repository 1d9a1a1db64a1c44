"""What ``train`` and ``evaluate`` do and say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reference_trainer.checkpoint import load_adapters
from reference_trainer.config import Config
from reference_trainer.evaluate import Evaluation, evaluate
from reference_trainer.progress import Progress
from reference_trainer.run_folder import RunFolder
from reference_trainer.trainer import Result, StepReport, prepare, train


def train_run(config: Config, *, out: Path, cache: Path, resume: bool = False) -> Result:
    """Train one run with a progress line, and say how it went.

    Args:
        config: The run.
        out: Run directory.
        cache: Of warmed-up base models.
        resume: Go on from the latest checkpoint in ``out``, if there is one.
    """
    print(f"{config.name}: {config.workflow}, routing {config.routing}, seed {config.seed}")
    print(f"{config.name}: stress: {config.stress.label}", flush=True)
    setup = prepare(config, cache=cache)
    with Progress(config.name, total=config.train.steps) as progress:

        def advance(report: StepReport) -> None:
            progress.advance(report.step, _line(report))

        result = train(setup, out=out, resume=resume, on_step=advance)
    curve = [result.before, *(report.validation for report in result.steps)]
    accuracies = " ".join(f"{one.accuracy:.2f}" for one in curve if one is not None)
    if accuracies:
        print(f"{config.name}: validation {accuracies}")
    if resume:
        first = f"from step {result.steps[0].step}" if result.steps else "nothing left to do"
        print(f"{config.name}: resumed {first}")
    if result.stopped:
        where = f" after step {result.steps[-1].step}" if result.steps else ""
        print(f"{config.name}: stopped{where} by the alert: {result.stopped}")
    print(f"{config.name}: written to {out}", flush=True)
    return result


def evaluate_run(run: Path, *, cache: Path, problems: int | None) -> Evaluation:
    """Validate the adapters that ``train`` left in ``run``.

    Raises:
        SettingsError: If ``run`` is not a folder that ``train`` wrote.
    """
    folder = RunFolder(run)
    config = folder.config()
    if problems is not None:
        config = replace(config, validation=replace(config.validation, problems=problems))
    setup = prepare(config, cache=cache)
    load_adapters(setup.bank, folder.adapters)
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
