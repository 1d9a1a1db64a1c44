"""Plain words for the library's short names."""

from __future__ import annotations

import re

from roledrift.measure.catalogue import statistics
from roledrift.sums import EVERYONE

_WORDS = {
    "shift": "shift toward another role",
    "val_accuracy": "validation accuracy",
    "accuracy": "accuracy in training",
    "correct": "share of correct answers",
    "updates": "optimizer steps",
    "factor": "learning rate",
    "grad_norm": "gradient norm",
    "lr": "learning rate",
    "policy_movement": "movement of the policy per step",
    "reward_bias": "reward above that of all roles",
    "rollout_gap": "gap between engine and trainer",
    "rollout.peak": "largest gap between engine and trainer",
    "rollout.log_ppl_abs_diff": "change of log-perplexity from engine to trainer",
    "update.peak": "largest movement of a token per update",
    "update.log_ppl_diff": "change of log-perplexity per update",
    "update.log_ppl_abs_diff": "size of the change of log-perplexity per update",
    "reference.top_share": "share of the distance to the reference at one place",
    "nonfinite": "tokens with a non-finite log-probability",
    "nonfinite_gradients": "non-finite gradients",
    "advantage_std": "spread of the advantages",
    "reward_std": "spread of the rewards",
    "length_credit": "correlation of advantage and length",
    "eval_reward": "reward of the evaluation",
    "pg_loss": "policy loss",
    "clip_low": "tokens clipped below",
    "clip_high": "tokens clipped above",
    "explained_variance": "variance of the returns that the critic explains",
    "value_loss": "loss of the critic",
    "step_time": "time per step",
}
"""What no probe measures: totals of a step, and what detectors make of statistics."""


def statistic_name(name: str) -> str:
    """Name a statistic in words, as in the middle of a sentence."""
    known = statistics().get(name)
    return _WORDS.get(name, name.replace("_", " ")) if known is None else known.in_words


def plain_words(text: str) -> str:
    """Replace names of statistics in a detector's ``text`` by words, and ``->`` by an arrow."""
    text = text.replace(" -> ", " → ")
    for name in (*_WORDS, *statistics()):
        if "_" in name or "." in name:
            pattern = rf"(?<![\w.]){re.escape(name)}(?![\w.])"
            words = statistic_name(name)
            text = re.sub(rf"\A{pattern}", words[0].upper() + words[1:], text, flags=re.IGNORECASE)
            text = re.sub(pattern, words, text)
    return text


def role_name(role: str) -> str:
    """Name a role; ``*`` is "all roles"."""
    return "all roles" if role == EVERYONE else role
