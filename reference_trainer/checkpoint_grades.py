"""One checkpoint, played on the validation problems and graded role by role."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from reference_trainer.checkpoint import write_atomically
from reference_trainer.paper_files import (
    Played,
    append_result,
    base_parameters,
    experiment_name,
    result_row,
    write_episodes,
)
from reference_trainer.regrading import RoleGrades, measure, regrade
from reference_trainer.rollout.engine import Sampling
from reference_trainer.rollout.grading import Grading
from reference_trainer.rollout.player import play_episodes
from reference_trainer.seeds import derive
from reference_trainer.setup import Setup


@dataclass(frozen=True, slots=True)
class CheckpointGrades:
    """What a checkpoint can do.

    Attributes:
        step: Iterations of training; 0 is the base model.
        accuracy: Share of right final answers.
        problems: Number of problems.
        rollouts: Episodes per problem.
        roles: Per role, in registry order.
    """

    step: int
    accuracy: float
    problems: int
    rollouts: int
    roles: Mapping[str, RoleGrades]


def grade_checkpoint(setup: Setup, *, out: Path, step: int, rollouts: int = 1) -> CheckpointGrades:
    """Play, grade, and write ``step_<n>.json`` and the files of the paper's code.

    The first rollout of every problem is exactly that of the run's own validation after ``step``.

    Args:
        setup: Its adapters are the checkpoint's.
        out: Folder for the results.
        step: Iterations that the adapters were trained for.
        rollouts: Episodes per problem.
    """
    start = time.perf_counter()
    played = _play(setup, step=step, rollouts=rollouts)
    workflow, config = setup.stage.workflow, setup.config
    grades = CheckpointGrades(
        step=step,
        accuracy=fmean(one.episode.correct for one in played),
        problems=config.validation.problems,
        rollouts=rollouts,
        roles=measure([one.graded for one in played], workflow.role_names),
    )
    parameters = base_parameters(setup.bank)
    name = experiment_name(config, workflow, parameters=parameters)
    write_episodes(
        out / "trajectories" / name / config.task.name / f"step_{step}",
        played,
        workflow=workflow,
        task=config.task.name,
    )
    row = result_row(
        config,
        workflow,
        played,
        step=step,
        parameters=parameters,
        seconds=time.perf_counter() - start,
    )
    append_result(out / "eval_results.jsonl", row)
    write_atomically(out / f"step_{step}.json", json.dumps(asdict(grades), indent=2) + "\n")
    return grades


def _play(setup: Setup, *, step: int, rollouts: int) -> list[Played]:
    stage, config = setup.stage, setup.config
    task = stage.scene.task
    problems = [
        (number, task.problem("validation", number)) for number in range(config.validation.problems)
    ]
    episodes = play_episodes(
        stage,
        problems,
        copies=rollouts,
        sampling=Sampling(config.rollout.temperature, config.rollout.max_new_tokens),
        seed=derive(config.seed, "validation", step),
    )
    asked = dict(problems)
    with Grading(task) as grading:
        for episode in episodes:
            for span in episode.spans:
                if stage.workflow.role(span.role).duty in ("solve", "synthesize"):
                    grading.begin(asked[episode.problem], span.text)
        graded = [
            regrade(episode, asked[episode.problem], task=grading, workflow=stage.workflow)
            for episode in episodes
        ]
    return [
        Played(
            asked[episode.problem],
            episode,
            own,
            tuple(
                str(stage.tokenizer.decode(list(span.prompt_ids))).strip() for span in episode.spans
            ),
        )
        for episode, own in zip(episodes, graded, strict=True)
    ]
