"""The seam to roledrift: what the trainer hands over, and where.

The loop calls an :class:`Observation` at three places: after the rollout, around every forward of
an update, and at the end of the step. It only reads: it draws from no random generator of the run,
and with or without it a run computes the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reference_trainer.config import Config
from reference_trainer.episodes import Episode, Span
from reference_trainer.evaluate import Evaluation
from reference_trainer.grpo import group_of
from reference_trainer.policies import AdapterBank
from reference_trainer.reading import merge
from reference_trainer.rescoring import Rescored
from reference_trainer.rollout.engine import Sampling
from reference_trainer.rollout.player import Stage, play_episodes
from reference_trainer.scoring import Batch
from reference_trainer.seeds import derive
from reference_trainer.updating import Forward
from roledrift import (
    Config as MonitorConfig,
)
from roledrift import (
    Decision,
    RoleBatch,
    RoleGradientProbe,
    Sample,
    SpanTable,
    TextSampler,
    TokenCapture,
    open_monitor,
)
from roledrift.capture.ranks import TorchReducer
from roledrift.records import NOTE_TRANSFER

_MOST_PLACES = 1000
"""Slots of a role, and turns of an episode, that group numbers tell apart."""


class Observation:
    """A monitor with its captures for one run.

    Args:
        config: The run.
        stage: To play the canary problems with.
        bank: Its adapters' gradients are split by role and slot.
        out: Run directory of the monitor.
        resume: Write a further segment of the run in ``out``, if there is one. What is judged and
            which problems are followed is as if there had been one segment.
        done: Iterations of earlier segments that are not done again.
        notes: More for the run's header.

    Raises:
        RoleDriftError: If the monitor's settings are wrong, or ``out`` already holds a run and
            ``resume`` is False.
    """

    def __init__(
        self,
        config: Config,
        stage: Stage,
        bank: AdapterBank,
        *,
        out: Path,
        resume: bool = False,
        done: int = 0,
        notes: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._out = out
        self._stage = stage
        self._bank = bank
        self._workflow = stage.workflow
        self.monitor = open_monitor(
            stage.workflow,
            out,
            config=_options(config),
            resume=resume,
            reducer=TorchReducer.if_several(),
            host="reference_trainer",
            task=stage.scene.task.name,
            scale=config.scale,
            seed=config.seed,
            notes=_notes(config) | dict(notes or {}),
            announce=False,  # the trainer says itself what begins and how it ended
        )
        self.advised: set[int] = set()
        """Steps whose checkpoints an alert of this process names as the last clean one."""
        self._tokens = TokenCapture(stage.workflow)
        self.monitor.attach(self._tokens)
        self._gradients: RoleGradientProbe | None = None
        if config.monitor.gradients_every:
            self._gradients = RoleGradientProbe(
                stage.workflow,
                every=config.monitor.gradients_every,
                reduction="sum",
                halves=True,
            )
            # The probe counts steps by its drains: it goes on in the same rhythm.
            for _ in range(done % config.monitor.gradients_every):
                self._gradients.drain_gradients()
            self._gradients.attach(bank.model, adapters=bank.adapters)
            self.monitor.attach(self._gradients)
        sampling = replace(MonitorConfig().sampling, **self.monitor.header.config["sampling"])
        self._canaries = [
            (i, stage.scene.task.problem("validation", i)) for i in range(sampling.canaries)
        ]
        self._texts_every = sampling.every
        self._sampler = TextSampler(sampling, [problem.id for _, problem in self._canaries])

    def before_training(self, episodes: Sequence[Episode], evaluation: Evaluation) -> None:
        """Hand over what the base policy wrote in the validation before the first iteration."""
        if self._stage.ranks.number > 0:  # every rank has all episodes
            return
        self.monitor.add_totals({"base_accuracy": evaluation.accuracy})
        with self.monitor.fenced("base policy"):
            self.monitor.observe_base(self._outputs(episodes))

    def only_validated(self) -> None:
        """Finish the record of a run that makes no iteration: its validation is all there is."""
        self.monitor.end_step(0)

    def validated(self, evaluation: Evaluation) -> None:
        """Hand over a validation."""
        if self._stage.ranks.number == 0:
            self.monitor.add_validation([mark == "1" for mark in evaluation.solved])

    def after_rollout(self, step: int, episodes: Sequence[Episode]) -> None:
        """Keep the texts of the canary problems and some others, with what is known about them."""
        if not self.monitor.due(step, self._texts_every):
            return
        canaries: list[Episode] = []
        if self._canaries:
            with self.monitor.fenced("canaries", cost="canaries"):
                canaries = self._play_canaries()  # every rank plays its part
        with self.monitor.fenced("texts", cost="texts"):
            if self._stage.ranks.number > 0:
                return
            rows = [
                (span, f"validation-{episode.problem}", f"canary-{episode.problem}")
                for episode in canaries
                for span in episode.spans
            ]
            rows += [
                (span, f"train-{episode.problem}", f"{episode.problem}:{episode.copy}")
                for episode in episodes
                for span in episode.spans
            ]
            picks = self._sampler.pick(
                step,
                [span.role for span, _, _ in rows],
                tokens=[len(span.output_ids) for span, _, _ in rows],
                prompts=[prompt for _, prompt, _ in rows],
                episodes=[episode for _, _, episode in rows],
            )
            self.monitor.add_samples(
                self._sample(step, *rows[pick.row], flags=pick.flags) for pick in picks
            )

    @property
    def measuring(self) -> bool:
        """Whether gradients of roles are measured in this iteration."""
        return self._gradients is not None and self._gradients.measuring

    @contextmanager
    def around(self, batch: Batch) -> Iterator[None]:
        """Tell the gradient probe whose rows the forward inside sees."""
        if self._gradients is None:
            yield
            return
        index = self._workflow.index
        labels_B3 = np.array([(index(span.role), span.slot, span.problem) for span in batch.spans])
        if batch.position_BT is not None:  # all rows are one sequence: labels are the tokens'
            lengths = [len(span.prompt_ids) + len(span.output_ids) for span in batch.spans]
            labels_B3 = labels_B3.repeat(lengths, axis=0)[None]
        role, slot, problem = np.moveaxis(labels_B3, -1, 0)
        with self._gradients.groups(role, slot, prompt=problem):
            yield

    def in_update(self, forward: Forward) -> None:
        """Hand over one micro-batch, as the trainer has it before the optimizer step."""
        with self.monitor.fenced("micro-batch", cost="capture"):
            self._tokens.add(self._role_batch(forward))

    def end_step(
        self, step: int, rescored: Sequence[Rescored], totals: Mapping[str, float]
    ) -> Decision:
        """Hand over the scores after the update and let the monitor judge the step."""
        if self._stage.ranks.number == 0:  # steps are taken together: they are not added up
            left_out = self._config.train.left_out
            self.monitor.add_updates(
                {part.role: part.steps_between for part in rescored if part.role not in left_out}
            )
        for part in rescored:
            if not part.counted:
                continue
            with self.monitor.fenced("re-scored rows", cost="capture"):
                self._tokens.add(
                    RoleBatch.rescored(
                        self._workflow,
                        role=[part.role] * len(part.batch.spans),
                        mask=part.batch.mask_BC,
                        before=part.before_BC,
                        after=part.after.logp_BC,
                        temperature=self._config.rollout.temperature,
                        steps=part.steps_between,
                    )
                )
        decision = self.monitor.end_step(step, totals)
        self.advised |= {alert.checkpoint.step for alert in decision.alerts if alert.checkpoint}
        return decision

    def close(self) -> str:
        """Finish the run directory; what the monitor says of the run, on the first rank."""
        if self._gradients is not None:
            self._gradients.detach()
        self.monitor.close()
        return self.monitor.closing_line(self._out)

    def _role_batch(self, forward: Forward) -> RoleBatch:
        batch, config = forward.batch, self._config
        spans = batch.spans
        return RoleBatch.from_padded(
            self._workflow,
            role=[span.role for span in spans],
            mask=batch.mask_BC,
            slot=[span.slot for span in spans],
            turn=[span.turn for span in spans],
            prompt=[span.problem for span in spans],
            episode=[span.problem * config.rollout.copies + span.copy for span in spans],
            group=[self._group(span) for span in spans],
            truncated=[span.finish_reason == "length" for span in spans],
            reward=[span.reward for span in spans],
            advantage=batch.advantage_B,
            logp=forward.scores.logp_BC.detach(),
            old_logp=forward.old_BC,
            rollout_logp=forward.rollout_BC,
            entropy=forward.scores.entropy_BC,
            temperature=config.rollout.temperature,
            rollout_temperature=(
                1.0 if config.paper_compat.rollout_logps_at_one else config.rollout.temperature
            ),
            clip=(config.train.clip.low, config.train.clip.high),
            steps_between=forward.steps_before,
            text=[span.text for span in spans],
        )

    def _outputs(self, episodes: Sequence[Episode]) -> SpanTable:
        """The spans of some episodes as rows, without what only training gives them."""
        spans = [span for episode in episodes for span in episode.spans]
        workflow = self._workflow
        return SpanTable(
            workflow.role_names,
            np.array([workflow.index(span.role) for span in spans], dtype=np.int64),
            slot_N=np.array([span.slot for span in spans], dtype=np.int64),
            turn_N=np.array([span.turn for span in spans], dtype=np.int64),
            prompt_N=np.array([span.problem for span in spans], dtype=np.int64),
            episode_N=np.array([span.problem for span in spans], dtype=np.int64),
            tokens_N=np.array([len(span.output_ids) for span in spans], dtype=np.int64),
            truncated_N=np.array([span.finish_reason == "length" for span in spans]),
            reward_N=np.array([span.reward for span in spans]),
            scored_N=np.array([len(span.output_ids) for span in spans], dtype=np.int64),
            nll_N=np.array([-sum(span.logp_rollout) for span in spans]),
            text_N=tuple(span.text for span in spans),
            slots=tuple(role.slots for role in workflow.roles),
        )

    def _group(self, span: Span) -> int:
        """Number of the span's GRPO group."""
        agentwise = span.role in self._config.interventions.agentwise
        by = "role" if agentwise else self._config.train.grouping
        problem, role, slot, turn = group_of(span, by=by)
        number = self._workflow.index(role) + 1 if role else 0
        for part in (slot + 1, turn + 1):
            number = number * _MOST_PLACES + part
        return problem * (len(self._workflow.roles) + 1) * _MOST_PLACES**2 + number

    def _play_canaries(self) -> list[Episode]:
        """The canary problems, with the same random numbers at every step."""
        rollout = self._config.rollout
        return play_episodes(
            self._stage,
            self._canaries,
            copies=1,
            sampling=Sampling(rollout.temperature, rollout.max_new_tokens),
            seed=derive(self._config.seed, "canaries"),
        )

    def _sample(
        self, step: int, span: Span, prompt: str, episode: str, *, flags: tuple[str, ...]
    ) -> Sample:
        return Sample(
            step=step,
            role=span.role,
            text=span.text.strip(),
            slot=span.slot,
            turn=span.turn,
            policy=span.policy,
            prompt=prompt,
            episode=episode,
            prompt_text=str(self._stage.tokenizer.decode(list(span.prompt_ids))).strip(),
            tokens=len(span.output_ids),
            finish=span.finish_reason,
            reward=span.reward,
            advantage=span.advantage,
            flags=flags,
        )


def _options(config: Config) -> dict[str, Any]:
    """Settings of the monitor. It watches from the first step: roles change fastest there."""
    return merge({"stop_on": config.monitor.stop_on}, config.monitor.options)


def _notes(config: Config) -> dict[str, str]:
    notes = {
        "run": config.name,
        "steps": str(config.train.steps),
        "lr": f"{config.train.adam.lr:g}",
        "mini-batch": f"{config.train.minibatch} {config.train.minibatch_counts}",
        "base": f"verbose share of the warm-up {config.pretrain.noise.verbose_share:g}",
        "engine": config.rollout.engine,
    }
    if config.train.left_out:
        notes["left out of the loss"] = ", ".join(config.train.left_out)
    if config.model.path:
        notes["base"] = f"{config.model.path}, {config.model.dtype}"
    if config.initial_adapters and not config.train.steps:
        notes[NOTE_TRANSFER] = ", ".join(sorted(config.initial_adapters))
    # The label is there also without a stress: a reader must not have to guess what its absence
    # means.
    return notes | {"stress": config.stress.label}
