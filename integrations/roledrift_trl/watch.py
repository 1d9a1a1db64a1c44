"""What is known during one training: the wraps fill it, the callback's events empty it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.tokens import TokenCapture
from roledrift.config import from_mapping
from roledrift.measure.sampling import TextSampler
from roledrift.monitor.monitor import Monitor
from roledrift_trl import batch, rescoring


@dataclass(frozen=True, slots=True)
class Followed:
    """What is done around a method of the trainer.

    Attributes:
        after: Given its arguments and its result, in training.
        before: Given its arguments, in training.
        evaluated: Given its arguments and its result, in an evaluation.
    """

    after: Callable[[Any, Any], None]
    before: Callable[[Any], None] | None = None
    evaluated: Callable[[Any, Any], None] | None = None


class Watch:
    """One training of a trainer that generates: GRPO, RLOO and what derives from them."""

    def __init__(
        self,
        monitor: Monitor,
        trainer: Any,
        columns: tuple[str | None, str | None],
        canaries: Sequence[str],
        *,
        score: Callable[..., Any],
    ) -> None:
        self.live = True
        self.trainer = trainer
        self.monitor = monitor
        self._columns = columns
        self._config = from_mapping(monitor.header.config)
        # When texts are kept is the monitor's to say, which may have to thin them.
        self._sampler = TextSampler(replace(self._config.sampling, every=1), canaries)
        self._capture = TokenCapture(monitor.workflow)
        self._score = score
        self._scored: batch.Scored | None = None
        self._made: batch.Generation | None = None
        self._forward: Sequence[Any] | None = None
        self._quiet: list[torch.Tensor] = []
        self._parts: list[batch.Rows] = []
        self._again: list[batch.Rows] = []
        self._gradients: RoleGradientProbe | None = None
        self._moved: set[int] = set()
        self._resting = False
        self._fractions: bool | None = None
        monitor.attach(self._capture)

    def measure_gradients(self, probe: RoleGradientProbe) -> None:
        """Split the gradients by role from now on."""
        self._gradients = probe
        self.monitor.attach(probe)

    def leave(self) -> None:
        """Take the gradient probe out of the model; what still calls the wraps changes nothing."""
        self.live = False
        if self._gradients is not None:
            self._gradients.detach()

    def labelled(self, call: Sequence[Any]) -> None:
        """Tell the gradient probe whose rows the forward of the loss is about to see."""
        if self._gradients is None or self._made is None or batch.ROW not in call[1]:
            return
        if self._made.masks is not None:
            # Attention mixes the roles of one sequence: its gradient is not a sum over tokens.
            self._gradients.detach()
            self.monitor.label(gradients="not measured: one sequence holds several roles")
            return
        rows = call[1][batch.ROW].tolist()
        slots = self._made.slots
        self._gradients.set_groups(
            [self._made.roles[row] for row in rows],
            None if slots is None else [slots[row] for row in rows],
            prompt=[self._made.prompts[row] for row in rows],
        )

    def follows(self) -> dict[str, Followed]:
        """Methods of the trainer that are followed."""
        return {
            "_generate_and_score_completions": Followed(self.generated),
            "_calculate_rewards": Followed(self.rewarded, evaluated=self.evaluated),
            "_compute_loss": Followed(self.trained, before=self.labelled),
            "_get_per_token_logps_and_entropies": Followed(self.forwarded),
        }

    @property
    def training(self) -> bool:
        """False during evaluation, which is no part of the training statistics."""
        return self.live and bool(self.trainer.model.training)

    def rewarded(self, call: Sequence[Any], result: Any) -> None:
        """Note what the reward functions saw and said."""
        # Rows that are generated now are trained on until the next generation.
        self._resting = self.monitor.skips(int(self.trainer.state.global_step))
        if not self._resting:
            self._scored = batch.scored(call, result, self.trainer)

    def evaluated(self, _call: Sequence[Any], rewards_BF: torch.Tensor) -> None:
        """Note whether the rewards of an evaluation can be accuracies: each between 0 and 1."""
        fits_BF = ((rewards_BF >= 0) & (rewards_BF <= 1)) | rewards_BF.isnan()
        self._fractions = self._fractions is not False and bool(fits_BF.all())

    def take_fractions(self) -> bool:
        """Whether there were rewards since the last call, and all could be accuracies."""
        fractions, self._fractions = self._fractions, None
        return bool(fractions)

    def generated(self, call: Sequence[Any], out: dict[str, Any]) -> None:
        """Note the roles of new rows, send row numbers along, measure the outputs."""
        rows, workflow = call[0], self.monitor.workflow
        source, self._scored = self._scored, None
        step = int(self.trainer.state.global_step)
        quiet, self._quiet = self._quiet, []
        if source is not None and rows and "prompt" not in rows[0]:  # an environment's own
            rows = [
                {**row, "prompt": prompt} for row, prompt in zip(rows, source.prompts, strict=True)
            ]
        made = batch.generation(
            workflow,
            rows,
            columns=self._columns,
            after=self._made,
            step=step,
            lengths=[] if source is None else [len(ids) for ids in source.ids],
        )
        self._made = made
        out[batch.ROW] = torch.arange(len(rows))
        if "old_logps" in out:  # RLOO has scored the rows, and the reference model after the policy
            out |= dict(zip((batch.OLD, batch.REFERENCE), quiet, strict=False))
        if self._resting:
            return
        if source is None:
            self.monitor.count_fault("generation without a call of the reward functions")
            return
        outputs = batch.rollout(workflow, made, out, source=source, trainer=self.trainer)
        self._capture.add(outputs)
        self.monitor.add_totals({"reward": self.trainer._metrics["train"]["reward"][-1]})
        sampling = self._config.sampling
        if self._config.tier != "economy" and self.monitor.due(step, sampling.every):
            with self.monitor.fenced("texts", cost="texts"):
                self.monitor.add_samples(
                    batch.samples(
                        workflow,
                        made,
                        out,
                        source=source,
                        trainer=self.trainer,
                        sampler=self._sampler,
                    )
                )

    def forwarded(self, _call: Sequence[Any], result: Sequence[Any]) -> None:
        """Note the log-probabilities of the loss (with gradients), and those of new rows."""
        if self._resting:
            return
        if torch.is_grad_enabled():
            self._forward = result[:2]
        else:
            self._quiet.append(result[0])

    def trained(self, call: Sequence[Any], _result: Any) -> None:
        """Measure one micro-batch from the log-probabilities that its loss was computed with."""
        inputs, forward, self._forward = call[1], self._forward, None
        if self._gradients is not None:
            self._gradients.set_groups(None)
        if self._resting:
            return
        if forward is None or self._made is None or batch.ROW not in inputs:
            self.monitor.count_fault("micro-batch without log-probs or roles")
            return
        rows = batch.trained(self._made, inputs, forward[0])
        self._moved.update(rows.roles)
        if "pixel_values" not in inputs:  # images are not laid out by rows: no re-scoring
            self._parts.append(rows)
        self._capture.add(
            batch.update(self.monitor.workflow, rows, inputs, forward=forward, trainer=self.trainer)
        )

    def before_step(self) -> None:
        """Choose the rows to score again, while the old weights are still there."""
        if self._resting:
            return
        # Counted from 0, as the gradient probe counts: what is measured rarely meets in one step.
        step = int(self.trainer.state.global_step)
        names = self.monitor.workflow.role_names
        self.monitor.add_updates({names[role]: 1 for role in self._moved if role >= 0})
        self._moved = set()
        parts, self._parts, self._again = self._parts, [], []
        settings = self._config.rescore
        if not (parts and settings.rows_per_role and self.monitor.due(step, settings.every)):
            return
        with self.monitor.fenced("rows to score again", cost="rescore"):
            rows = rescoring.choose(parts, per_role=settings.rows_per_role, roles=len(names))
            noisy = getattr(self.trainer.args, "neftune_noise_alpha", None) is not None
            if noisy or rescoring.is_noisy(self.trainer.model):
                rows = rescoring.score_all(rows, self._score, trainer=self.trainer)
            self._again = rows

    def after_step(self, step: int) -> bool:
        """Score the chosen rows again; False if this step has no record."""
        rows, self._again = self._again, []
        if self._resting:
            self.monitor.skip_step()
            return False
        with self.monitor.fenced("score again", cost="rescore"):
            again = rescoring.score_all(rows, self._score, trainer=self.trainer)
            reference: Sequence[batch.Rows | None] = [None] * len(again)
            wanted = rescoring.wants_reference(self._config, step - 1)
            if again and wanted and rescoring.has_reference(self.trainer):
                with rescoring.adapter_off(self.trainer.model):
                    reference = rescoring.score_all(rows, self._score, trainer=self.trainer)
                self.monitor.label(**{"reference model": "the model with its adapter off"})
            heat = float(self.trainer.temperature)
            for sides in zip(rows, again, reference, strict=True):
                self._capture.add(
                    rescoring.compared(self.monitor.workflow, *sides, temperature=heat)
                )
        return True
