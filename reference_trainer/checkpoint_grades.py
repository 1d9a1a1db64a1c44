"""One checkpoint, played on the validation problems and graded role by role."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from reference_trainer.checkpoint import write_atomically
from reference_trainer.episodes import Episode
from reference_trainer.evaluate import play_validation
from reference_trainer.regrading import Graded, RoleGrades, measure, regrade
from reference_trainer.rollout.grading import Grading
from reference_trainer.rollout.player import Stage
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
    """Play, grade, and write ``step_<n>.json``.

    The first rollout of every problem is exactly that of the run's own validation after ``step``.

    Args:
        setup: Its adapters are the checkpoint's.
        out: Folder for the results.
        step: Iterations that the adapters were trained for.
        rollouts: Episodes per problem.
    """
    stage, config = setup.stage, setup.config
    episodes = play_validation(stage, config, step=step, copies=rollouts)
    grades = CheckpointGrades(
        step=step,
        accuracy=fmean(episode.correct for episode in episodes),
        problems=config.validation.problems,
        rollouts=rollouts,
        roles=measure(_regraded(episodes, stage), stage.workflow.role_names),
    )
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / f"step_{step}.json", json.dumps(asdict(grades), indent=2) + "\n")
    return grades


def _regraded(episodes: Sequence[Episode], stage: Stage) -> list[tuple[Graded, ...]]:
    """Every episode's spans, graded one by one, several at a time."""
    task, workflow = stage.scene.task, stage.workflow
    asked = {episode.problem: task.problem("validation", episode.problem) for episode in episodes}
    with Grading(task) as grading:
        for episode in episodes:
            for span in episode.spans:
                if workflow.role(span.role).duty in ("solve", "synthesize"):
                    grading.begin(asked[episode.problem], span.text)
        return [
            regrade(episode, asked[episode.problem], task=grading, workflow=workflow)
            for episode in episodes
        ]
