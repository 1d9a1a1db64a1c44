"""The training loop: roll out, grade, compute advantages, update every policy, validate."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import torch

from reference_trainer.checkpoint import (
    Position,
    checkpoints,
    save_adapters,
    save_checkpoint,
)
from reference_trainer.config import Config
from reference_trainer.episodes import Episode, Span
from reference_trainer.evaluate import (
    Evaluation,
    evaluate,
    evaluation_of,
    play_validation,
    summarise,
)
from reference_trainer.grpo import advantages, group_keys
from reference_trainer.observation import Observation
from reference_trainer.paper_compat import released_order, tick
from reference_trainer.rescoring import Rescored, rescore, token_means
from reference_trainer.rollout.engine import Sampling
from reference_trainer.rollout.player import Stage, play_episodes
from reference_trainer.rows import is_trained, paid
from reference_trainer.run_folder import RunFolder
from reference_trainer.seeds import derive
from reference_trainer.setup import Setup, hand_over
from reference_trainer.starting_point import StartingPoint, drop_the_rest, take_up
from reference_trainer.stress import inject, posed
from reference_trainer.tasks.datasets import DapoMathTask, DeepCoderTask
from reference_trainer.updating import PolicyReport, Watcher, look_at, update_policy


@dataclass(frozen=True, slots=True)
class StepReport:
    """One iteration, as the trainer itself sees it.

    Attributes:
        step: From 1.
        reward: Mean reward of all spans, stress included.
        accuracy: Share of episodes whose final answer was right.
        lr: Learning rate of the iteration.
        roles: Per role: lengths, parse shares, own accuracy, and how far the update moved it.
        policies: Per policy.
        validation: If this iteration ended with one.
        seconds: Of the processor, or on a GPU of the wall: ``generation`` (rollouts, grading
            included), ``training`` (the updates), and ``all`` of it.
    """

    step: int
    reward: float
    accuracy: float
    lr: float
    roles: dict[str, dict[str, float | None]]
    policies: dict[str, PolicyReport]
    validation: Evaluation | None
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run, or the last stretch of it if it was resumed.

    Attributes:
        before: Validation before the first iteration; None if validation is off, or the first
            iteration was in an earlier stretch.
        steps: One report per iteration of this stretch.
        stopped: Why the run ended early, empty if it did not.
        closing: What the monitor says of the run; empty without a monitor.
    """

    before: Evaluation | None
    steps: tuple[StepReport, ...]
    stopped: str
    closing: str = ""


def train(
    setup: Setup,
    *,
    out: Path | None = None,
    resume: bool = False,
    on_step: Callable[[StepReport], None] | None = None,
) -> Result:
    """Run the whole training, or what is left of it.

    Args:
        setup: From :func:`prepare`; its adapters are trained in place.
        out: Run directory of the monitor; ``trainer/`` in it is a
            :class:`~reference_trainer.run_folder.RunFolder`. None writes nothing and trains without
            a monitor.
        resume: Go on from the latest checkpoint of the run in ``out``, if there is one; its trace
            and its weights become those of a run that was never interrupted.
        on_step: Called after every iteration.

    Of several ranks each returns the same; only the first writes.

    Raises:
        RoleDriftError: If ``out`` holds a run and ``resume`` is False, or another one.
    """
    config, ranks = setup.config, setup.stage.ranks
    folder = None if out is None else RunFolder(out)
    start = StartingPoint(0) if folder is None else take_up(setup, folder, resume=resume)
    if start.ended is not None:
        return Result(None, (), start.stopped)
    done = start.done
    ranks.wait()  # all have looked into the folder before the first one writes
    if ranks.number > 0:
        folder = None
    observation = None if out is None else _observation(setup, out, resume=resume, done=done)
    hand_over(setup, setup.bank.policies, done=done)
    first = [] if done or not config.validation.every else _validate_base(setup)
    before = evaluation_of(first, setup.stage) if first else None
    if folder is not None:
        with folder.storing("the start"):
            _begin(folder, config, start, before)
    if before is not None and observation is not None:
        observation.before_training(first, before)
        if config.train.steps == 0:
            observation.validated(before)
            observation.only_validated()
    reports: list[StepReport] = []
    stopped = ""
    for report, stopped in _iterations(setup, observation, done=done):
        reports.append(report)
        if folder is not None:
            last = bool(stopped) or report.step == config.train.steps
            with folder.storing(f"iteration {report.step}"):
                _store(setup, folder, report, observation, last=last)
        if on_step is not None:
            on_step(report)
    closing = "" if observation is None else observation.close()
    if folder is not None:
        with folder.storing("the last iteration"):
            save_adapters(setup.bank, folder.adapters)
            folder.finish(steps=done + len(reports), stopped=stopped)
    return Result(before, tuple(reports), stopped, closing)


def _observation(setup: Setup, out: Path, *, resume: bool, done: int) -> Observation | None:
    """The monitor's side, if it is on; it knows the checkpoint that the run goes on from."""
    if not setup.config.monitor.enabled:
        return None
    notes = {"sandbox": setup.protection.label} if setup.protection else {}
    observation = Observation(
        setup.config, setup.stage, setup.bank, out=out, resume=resume, done=done, notes=notes
    )
    if where := checkpoints(RunFolder(out).checkpoints).get(done):
        observation.monitor.note_checkpoint(done, where)
    return observation


def _iterations(
    setup: Setup, observation: Observation | None, *, done: int
) -> Iterator[tuple[StepReport, str]]:
    """Iterations after ``done``, each with why it is the last one (empty for: it is not)."""
    for step in range(done + 1, setup.config.train.steps + 1):
        report, rescored = _iterate(setup, step, observation)
        stopped = ""
        if observation is not None:
            if report.validation is not None:
                observation.validated(report.validation)
            decision = observation.end_step(step, rescored, _totals(report))
            # The monitor's first rank alone knows the reason.
            reason = setup.stage.ranks.spread(decision.reason)
            stopped = reason if decision.stop else ""
        yield report, stopped
        if stopped:
            return


def _validate_base(setup: Setup) -> list[Episode]:
    return play_validation(setup.stage, setup.config, step=0)


def _begin(
    folder: RunFolder, config: Config, start: StartingPoint, before: Evaluation | None
) -> None:
    """Open the trace; at the very start with the validation of the base."""
    drop_the_rest(folder, config, start)
    if start.done == 0:
        folder.write({"step": 0, "validation": before and asdict(before)})


def _store(
    setup: Setup,
    folder: RunFolder,
    report: StepReport,
    observation: Observation | None,
    *,
    last: bool,
) -> None:
    """Write what is left of an iteration: its line of the trace, and a checkpoint if one is due."""
    folder.write(asdict(report))
    advised = () if observation is None else observation.advised
    kept = _keep(setup, folder, report, last=last, spare=advised)
    if kept is not None and observation is not None:
        observation.monitor.note_checkpoint(report.step, kept)


def _keep(
    setup: Setup, folder: RunFolder, report: StepReport, *, last: bool, spare: Collection[int]
) -> Path | None:
    """Make a checkpoint if one is due; its folder. Those of ``spare`` are not dropped for it."""
    config = setup.config
    every = config.checkpoint.every
    kept: Path | None = None
    if every and (last or report.step % every == 0):
        accuracy = None if report.validation is None else report.validation.accuracy
        position = Position(report.step, report.step * config.rollout.problems, accuracy)
        kept = save_checkpoint(
            setup.bank, folder.checkpoints, position, keep=config.checkpoint.keep, spare=spare
        )
    return kept


def _iterate(
    setup: Setup, step: int, observation: Observation | None
) -> tuple[StepReport, list[Rescored]]:
    config, bank, ranks = setup.config, setup.bank, setup.stage.ranks
    start = _clock()
    lr = _set_lr(setup, step)
    rollouts = _roll_out(setup, step)
    generated = _clock()
    episodes = _with_advantages(paid(rollouts, config.train), config)
    if observation is not None:
        observation.after_rollout(step, episodes)
    spans = [span for episode in episodes for span in episode.spans]
    setup.stage.engine.rest()
    begin = _clock()
    policies = _update_policies(setup, spans, step=step, watch=observation)
    trained = _clock()
    hand_over(setup, tuple(policies), done=step)
    with ranks.whole_model():
        rescored = [
            part
            for own in _by_role(spans, setup.stage.workflow.role_names)
            for part in rescore(
                bank, own, config=config, updates=_updates(policies, own[0].policy), ranks=ranks
            )
        ]
    every = config.validation.every
    due = every > 0 and (step % every == 0 or step == config.train.steps)
    validation = evaluate(setup.stage, config, step=step) if due else None
    report = StepReport(
        step=step,
        reward=fmean(span.reward for span in spans),
        accuracy=fmean(episode.correct for episode in episodes),
        lr=lr,
        roles=_role_reports(episodes, rescored, setup.stage),
        policies=policies,
        validation=validation,
        seconds={
            "generation": generated - start,
            "training": trained - begin,
            "all": _clock() - start,
        },
    )
    return report, rescored


def _clock() -> float:
    """Seconds of this process's processor; on a GPU of the wall, after all that was queued."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def _update_policies(
    setup: Setup, spans: Sequence[Span], *, step: int, watch: Watcher | None
) -> dict[str, PolicyReport]:
    """Train every policy on its rows, and look at those that stay out of the loss."""
    config, bank, ranks = setup.config, setup.bank, setup.stage.ranks
    policies = {}
    for place, policy in enumerate(bank.policies):
        if config.paper_compat.lr_ticks_per_update:
            _set_lr(setup, step, tick(step, place=place, policies=len(bank.policies)))
        own = [span for span in spans if span.policy == policy]
        trained = [span for span in own if is_trained(span, config.train)]
        left_out = [span for span in own if not is_trained(span, config.train)]
        if left_out and watch is not None:
            look_at(bank, left_out, config=config, watch=watch, ranks=ranks)
        if trained:
            policies[policy] = update_policy(
                bank, trained, config=config, step=step, watch=watch, ranks=ranks
            )
    return policies


def _updates(policies: Mapping[str, PolicyReport], policy: str) -> int:
    """Optimizer steps that ``policy`` made; none if all of its rows stay out of the loss."""
    return policies[policy].updates if policy in policies else 0


def _set_lr(setup: Setup, step: int, position: int | None = None) -> float:
    """Set the learning rate of iteration ``step``, or that of another position in the schedule."""
    return setup.bank.set_lr(
        step if position is None else position,
        total=setup.config.train.steps,
        factors=setup.config.stress.lr_factors(step, setup.stage.workflow),
    )


def _totals(report: StepReport) -> dict[str, float]:
    """What the monitor's record of the step says about the run as a whole."""
    totals = {"reward": report.reward, "accuracy": report.accuracy, "lr": report.lr}
    for policy, update in report.policies.items():
        totals[f"lr/{policy}"] = update.lr
        totals[f"grad_norm/{policy}"] = update.grad_norm
        totals[f"clipped/{policy}"] = update.clipped
    return totals


def _roll_out(setup: Setup, step: int) -> list[Episode]:
    config = setup.config
    first = (step - 1) * config.rollout.problems
    numbers = range(first, first + config.rollout.problems)
    # The run's seed picks its problems too: runs with different seeds see different data.
    offset = derive(config.seed, "problems") % 1_000_000_000
    tasks = [
        posed(setup.stage.scene.task, config.stress, step=step, seed=config.seed, number=number)
        for number in numbers
    ]
    rows: Sequence[int] = [offset + number for number in numbers]
    data = setup.stage.scene.task
    if config.paper_compat.data_order and isinstance(data, DapoMathTask | DeepCoderTask):
        rows = released_order(len(data.splits.train), problems=config.rollout.problems, step=step)
    problems = [
        (number, task.problem("train", row))
        for number, row, task in zip(numbers, rows, tasks, strict=True)
    ]
    episodes = play_episodes(
        setup.stage,
        problems,
        copies=config.rollout.copies,
        sampling=Sampling(config.rollout.temperature, config.rollout.max_new_tokens),
        seed=derive(config.seed, "rollout", step),
    )
    return inject(episodes, config.stress, step=step, seed=config.seed)


def _with_advantages(episodes: list[Episode], config: Config) -> list[Episode]:
    rewards = [span.reward for episode in episodes for span in episode.spans]
    groups = group_keys(
        episodes, by=config.train.grouping, agentwise=config.interventions.agentwise
    )
    computed = advantages(rewards, groups, normalisation=config.train.normalisation)
    values = iter(computed.tolist())
    return [
        replace(
            episode, spans=tuple(replace(span, advantage=next(values)) for span in episode.spans)
        )
        for episode in episodes
    ]


def _by_role(spans: Sequence[Span], roles: Sequence[str]) -> list[list[Span]]:
    groups = [[span for span in spans if span.role == role] for role in roles]
    return [group for group in groups if group]


def _role_reports(
    episodes: Sequence[Episode], rescored: Sequence[Rescored], stage: Stage
) -> dict[str, dict[str, float | None]]:
    roles = summarise(episodes, stage.workflow.role_names)
    moved = {
        role: token_means([part for part in rescored if part.role == role], stage.ranks)
        for role in dict.fromkeys(part.role for part in rescored)
    }
    return {role: asdict(summary) | moved[role] for role, summary in roles.items()}
