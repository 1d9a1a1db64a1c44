"""Some rows of a role, scored again after the update: how far it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_trainer.config import Config
from reference_trainer.episodes import Span
from reference_trainer.minibatches import micro_batches, share
from reference_trainer.policies import AdapterBank
from reference_trainer.ranks import ALONE, Ranks
from reference_trainer.scoring import Batch, Scores, score


@dataclass(frozen=True, slots=True)
class Rescored:
    """Rows of one role, scored again in one forward after the iteration's last optimizer step.

    Attributes:
        role: The role.
        batch: The rows of this rank, see :func:`share`.
        counted: Whether they count.
        before_BC: Log-probabilities at the start of the iteration.
        after: Under the updated weights.
        steps_between: Optimizer steps between the two.
    """

    role: str
    batch: Batch
    counted: bool
    before_BC: Tensor
    after: Scores
    steps_between: int

    def sums(self) -> dict[str, float]:
        """Sums over tokens, and the number of ``tokens``.

        ``k3`` is ``exp(d) - d - 1`` with ``d`` = after - before, a KL that is >= 0; ``chi2`` is
        ``rho² - 1`` with ``rho`` = exp(clip(d, -20, 20)); ``entropy`` is that after the update.
        """
        mask_BC = self.batch.mask_BC
        d = (self.after.logp_BC - self.before_BC)[mask_BC].double()
        return {
            "k3": float((d.exp() - d - 1).sum()),
            "chi2": float(((2 * d.clamp(-20, 20)).exp() - 1).sum()),
            "entropy": float(self.after.entropy_BC[mask_BC].double().sum()),
            "tokens": int(mask_BC.sum()),
        }


@torch.no_grad()
def rescore(
    bank: AdapterBank,
    spans: Sequence[Span],
    *,
    config: Config,
    updates: int,
    ranks: Ranks = ALONE,
) -> list[Rescored]:
    """Score an even choice of one role's spans again after the update, in as many forwards.

    No forward has more rows or tokens than one of the update.
    """
    wanted = min(len(spans), config.monitor.rescore_rows)
    chosen = [spans[i * len(spans) // wanted] for i in range(wanted)]
    parts = micro_batches(
        chosen,
        rows=config.train.microbatch * ranks.count,
        tokens=config.train.microbatch_tokens * ranks.count,
    )
    result = []
    # As the rollout computed what this is compared with.
    with bank.mode(training=False), bank.fused(chosen[0].policy):
        for part in parts:
            batch, counted = share(part, pad_id=bank.pad_id, ranks=ranks, device=bank.device)
            after = score(bank.causal_lm, batch, temperature=config.rollout.temperature)
            result.append(
                Rescored(chosen[0].role, batch, counted, batch.rollout_BC, after, updates)
            )
    return result


def token_means(rescored: Sequence[Rescored], ranks: Ranks = ALONE) -> dict[str, float]:
    """Means over all tokens of one role's forwards, on all ranks: see :meth:`Rescored.sums`."""
    sums = [part.sums() for part in rescored]
    own = [sum(values) for values in zip(*(part.values() for part in sums), strict=True)]
    totals = dict(zip(sums[0], ranks.sum(own), strict=True))
    tokens = totals.pop("tokens")
    return {name: total / tokens for name, total in totals.items()}
