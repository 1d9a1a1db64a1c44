"""What ``train`` and ``evaluate`` do and say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from reference_trainer.checkpoint import checkpoints, load_adapters, write_atomically
from reference_trainer.checkpoint_grades import CheckpointGrades, grade_checkpoint
from reference_trainer.config import Config, from_mapping
from reference_trainer.errors import SettingsError
from reference_trainer.evaluate import Evaluation, evaluate
from reference_trainer.progress import Progress
from reference_trainer.ranks import Ranks, launched
from reference_trainer.reading import merge
from reference_trainer.run_folder import MILESTONES, RunFolder, validated
from reference_trainer.setup import hand_over, prepare
from reference_trainer.tasks.datasets import DapoMathTask, DeepCoderTask
from reference_trainer.trainer import Result, StepReport, train
from roledrift.measure.milestones import phases


def train_run(config: Config, *, out: Path, cache: Path, resume: bool = False) -> Result:
    """Train one run with a progress line, and say how it went; the first rank speaks.

    Args:
        config: The run.
        out: Run directory.
        cache: Of warmed-up base models.
        resume: Go on from the latest checkpoint in ``out``, if there is one.
    """
    with launched(config.parallel) as ranks:
        if ranks.number > 0:
            return train(prepare(config, cache=cache, ranks=ranks), out=out, resume=resume)
        return _train_and_say(config, out=out, cache=cache, resume=resume, ranks=ranks)


def _train_and_say(config: Config, *, out: Path, cache: Path, resume: bool, ranks: Ranks) -> Result:
    print(f"{config.name}: {config.workflow}, routing {config.routing}, seed {config.seed}")
    if ranks.count > 1:
        print(f"{config.name}: {ranks.count} processes, {config.parallel.mode}")
    print(f"{config.name}: stress: {config.stress.label}", flush=True)
    setup = prepare(config, cache=cache, ranks=ranks)
    task = setup.stage.scene.task
    if isinstance(task, DapoMathTask | DeepCoderTask):
        print(f"{config.name}: data: {task.splits.summary}", flush=True)
    if setup.protection is not None:
        print(f"{config.name}: sandbox: {setup.protection.label}", flush=True)
    with Progress(config.name, total=config.train.steps) as progress:

        def advance(report: StepReport) -> None:
            progress.advance(report.step, _line(report))

        result = train(setup, out=out, resume=resume, on_step=advance)
    curve = [result.before, *(report.validation for report in result.steps)]
    accuracies = " ".join(
        f"{validation.accuracy:.2f}" for validation in curve if validation is not None
    )
    if accuracies:
        print(f"{config.name}: validation {accuracies}")
    if resume:
        first = f"from step {result.steps[0].step}" if result.steps else "nothing left to do"
        print(f"{config.name}: resumed {first}")
    if result.stopped:
        where = f" after step {result.steps[-1].step}" if result.steps else ""
        print(f"{config.name}: stopped{where} by the alert: {result.stopped}")
    print(result.closing or f"{config.name}: written to {out}", flush=True)
    return result


def evaluate_run(
    run: Path,
    *,
    cache: Path,
    problems: int | None,
    overrides: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Validate the adapters that ``train`` left in ``run``.

    Args:
        run: Run directory of ``train``.
        cache: Of warmed-up base models.
        problems: Number of validation problems; None for the run's own.
        overrides: Settings laid over those of the run.

    Raises:
        SettingsError: If ``run`` is not a folder that ``train`` wrote.
    """
    folder = RunFolder(run)
    config = _evaluated(folder, problems, overrides)
    setup = prepare(config, cache=cache)
    load_adapters(setup.bank, folder.adapters)
    hand_over(setup, setup.bank.policies, done=config.train.steps)
    result = evaluate(setup.stage, config, step=config.train.steps)
    print(f"{config.name}: accuracy {result.accuracy:.3f} on {result.problems} problems")
    for role, summary in result.roles.items():
        own = "" if summary.accuracy is None else f"accuracy {summary.accuracy:.3f}, "
        print(f"  {role}: {own}{summary.tokens:.1f} tokens, demanded form in {summary.tagged:.0%}")
    return result


def evaluate_all(
    run: Path,
    *,
    cache: Path,
    problems: int | None,
    rollouts: int = 1,
    milestones: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Evaluate the untrained adapters and the checkpoints of ``run``, graded again per role.

    Writes ``<run>/evaluation/step_<n>.json`` per checkpoint.

    Args:
        run: Run directory of ``train``.
        cache: Of warmed-up base models.
        problems: Number of validation problems; None for the run's own.
        rollouts: How often each is played.
        milestones: Of the checkpoints only early (halfway to the best validation), best and last;
            ``<run>/evaluation/milestones.json`` then says which steps these are.
        overrides: Settings laid over those of the run.

    Returns:
        The files ``step_<n>.json``.

    Raises:
        SettingsError: If ``run`` is not a folder that ``train`` wrote, or it has no checkpoints.
    """
    folder = RunFolder(run)
    config = _evaluated(folder, problems, overrides)
    present = checkpoints(folder.checkpoints)
    if not present:
        raise SettingsError(
            f"{folder.checkpoints} holds no checkpoint: train with checkpoint.every > 0"
        )
    named: dict[str, int] = {}
    if milestones:
        named = phases(sorted(present), validated(folder.trace()))
        present = {step: present[step] for step in sorted(set(named.values()))}
    setup = prepare(config, cache=cache)
    written = []
    with Progress(f"evaluation of {config.name}", total=len(present) + 1) as progress:
        for number, (step, checkpoint) in enumerate([(0, None), *present.items()], start=1):
            if checkpoint is not None:
                load_adapters(setup.bank, checkpoint)
            hand_over(setup, setup.bank.policies, done=step)
            graded = grade_checkpoint(setup, out=run / "evaluation", step=step, rollouts=rollouts)
            written.append(run / "evaluation" / f"step_{step}.json")
            print(f"{config.name}: step {step}: {_graded_line(graded)}", flush=True)
            progress.advance(number)
    if milestones:
        text = json.dumps({"base": 0, **named}, indent=2) + "\n"
        write_atomically(run / "evaluation" / MILESTONES, text)
    return written


def _evaluated(
    folder: RunFolder, problems: int | None, overrides: Mapping[str, Any] | None
) -> Config:
    """The run's configuration with what its evaluation has otherwise."""
    config = folder.config()
    if overrides:
        config = from_mapping(merge(json.loads(json.dumps(asdict(config))), overrides))
    validation = config.validation
    if problems is not None:
        validation = replace(validation, problems=problems)
    # It validates, whether or not the run did.
    return replace(config, validation=replace(validation, every=validation.every or 1))


def _graded_line(graded: CheckpointGrades) -> str:
    parts = [f"accuracy {graded.accuracy:.3f} on {graded.problems}"]
    for role, grades in graded.roles.items():
        words = [] if grades.accuracy is None else [f"{grades.accuracy:.2f} right"]
        if grades.pass_at_k:
            k, oracle = list(grades.pass_at_k.items())[-1]
            words.append(f"pass@{k} {oracle:.2f}")
        if grades.selection is not None:
            words.append(f"{grades.selection:.2f} where it mattered")
        for known, counts in grades.verdicts.items():
            words.append(f"of {known} answers {counts['correct']}/{sum(counts.values())} approved")
        parts.append(f"{role} {', '.join(words) or 'not graded'}")
    return "; ".join(parts)


def _line(report: StepReport) -> str:
    roles = ", ".join(
        f"{role} {values['tokens']:.0f} tok k3 {values['k3']:.1e}"
        for role, values in report.roles.items()
    )
    return f"reward {report.reward:.2f} accuracy {report.accuracy:.2f}; {roles}"
