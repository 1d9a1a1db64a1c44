"""Simulated tokens of an engine that samples something else than the trainer trains.

The cases are those that martingale's alarms are for. It sees what it computes of the tokens
themselves; the other tools see what TRL logs of them (``sampling/...``), beside a healthy log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.scenarios import Log, learning

Tokens = NDArray[np.float64]
Trainer = Callable[[int, Tokens, np.random.Generator], Tokens]
"""Step, the engine's log-probabilities and a generator to the trainer's log-probabilities."""

_ONSET = 150
_TOKENS = 800
_LAG = 4


def of_martingale(seed: int) -> Iterator[Log]:
    """Each of its cases."""
    for scenario, (trainer, lag, accepted) in _CASES.items():
        rng = np.random.default_rng(4000 + seed)
        rows, engine = learning(seed), []
        for row in rows:
            step = int(row["step"])
            # Few tokens are sure where the ratios are to be wide: no log-probability is above 0.
            typical = 2.5 if scenario == "ess_collapse" else 0.25
            sampled = -rng.exponential(typical, _TOKENS) * (rng.random(_TOKENS) < 0.6)
            scored = np.minimum(trainer(step, sampled, rng), 0.0)
            gap = np.abs(scored - sampled)
            ratio = np.exp(scored - sampled)
            row |= {
                "sampling/sampling_logp_difference/mean": float(gap.mean()),
                "sampling/sampling_logp_difference/max": float(gap.max()),
                "sampling/importance_sampling_ratio/min": float(ratio.min()),
                "sampling/importance_sampling_ratio/mean": float(ratio.mean()),
                "sampling/importance_sampling_ratio/max": float(ratio.max()),
            }
            if scenario == "weights_unchanged" and step > _ONSET:
                row["learning_rate"] = 0.0
            weights = min(step, _ONSET) if scenario == "weights_unchanged" else step
            engine.append(_step(step, lag if step > _ONSET else 0, sampled, scored, str(weights)))
        yield Log("martingale", scenario, seed, tuple(rows), accepted, tuple(engine))


def _step(step: int, lag: int, sampled: Tokens, scored: Tokens, weights: str) -> Mapping[str, Any]:
    """The fields of martingale's ``StepDiagnosis`` that its alarms read."""
    gap, ratio = scored - sampled, np.exp(scored - sampled)
    bucket = {
        "lag": lag,
        "n_tokens": len(sampled),
        "n_confident_disagreements": int(((sampled >= np.log(0.5)) & (gap < -2)).sum()),
        "float_informational": {
            "ratio_p50": float(np.median(ratio)),
            "ess_fraction": float(ratio.sum() ** 2 / (len(ratio) * (ratio**2).sum())),
        },
    }
    return {
        "step": step,
        "by_lag": [bucket],
        "floor": float(np.abs(gap).mean()) if lag == 0 else None,
        "weights": weights,
    }


def _rounding(size: float) -> Trainer:
    return lambda _, sampled, rng: sampled + size * rng.standard_t(4, len(sampled))


def _stale(step: int, sampled: Tokens, rng: np.random.Generator) -> Tokens:
    """From the onset on the engine is not given the new weights any more."""
    behind = 0.004 * max(0, step - _ONSET)
    return _rounding(0.004)(step, sampled, rng) - behind * rng.exponential(1, len(sampled))


def _other_numerics(step: int, sampled: Tokens, rng: np.random.Generator) -> Tokens:
    return _rounding(0.004 if step <= _ONSET else 0.04)(step, sampled, rng)


def _far_behind(step: int, sampled: Tokens, rng: np.random.Generator) -> Tokens:
    """Rollouts several updates old: the ratios are wide."""
    spread = 0.004 if step <= _ONSET else 1.3
    return sampled + spread * rng.standard_normal(len(sampled)) - (spread > 1) * 0.5


_CASES: Mapping[str, tuple[Trainer, int, tuple[str, ...]]] = {
    "healthy": (_rounding(0.004), 0, ()),
    "stale_server": (_stale, 0, ("engine_mismatch",)),
    "floor_jump": (_other_numerics, 0, ("engine_mismatch",)),
    "ess_collapse": (_far_behind, _LAG, ("engine_mismatch",)),
    "weights_unchanged": (_rounding(0.004), 0, ("no_updates", "no_learning", "plateau")),
}
