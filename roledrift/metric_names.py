"""Map the names under which trainers log metrics to the statistics of this library.

A key is looked up in three ways, the most trusted first: as it stands, by its last part
(``policy/entropy`` is an entropy), and by its words (``response_length_mean`` is
``response_length/mean``). Metrics of an evaluation are never taken for those of training.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

Kind = Literal["statistic", "total", "validation", "evaluation", "counter"]

COMPONENT = "reward."
"""Begins the statistic that holds the mean of one of several reward functions."""

COMPONENT_STD = "reward_std."
"""Begins the statistic that holds its standard deviation within the batch."""

STATISTICS: Mapping[str, tuple[str, ...]] = {
    "length": (
        "completions/mean_length",
        "response_length/mean",
        "response_length",
        "completion_length",
        "completion_len_mean",
        "mean_length",
        "val/sequence_lengths",
        "generation_lengths/mean",
        "seq_len/all/mean",
        "decode_len/all/mean",
    ),
    "terminated_length": ("completions/mean_terminated_length", "mean_terminated_length"),
    "length_max": ("completions/max_length", "response_length/max", "completion_len_max"),
    "truncated": (
        "completions/clipped_ratio",
        "response_length/clip_ratio",
        "truncation_rate",
        "truncated_rate",
        "max_len_hit_frac",
        "is_truncated/mean",
        "is_truncated/all/mean",
    ),
    "zero_variance": (
        "frac_reward_zero_std",
        "zero_variance_group_frac",
        "zero_var_group_frac",
        "zero_std_frac",
        "grpo/zero_std_frac",
        "frac_zero_variance_groups",
    ),
    "advantage": ("critic/advantages/mean", "advantage/mean", "adv_mean", "val/advantages_mean"),
    "advantage_std": ("critic/advantages/std", "advantage/std", "adv_std"),
    "reward_std": ("reward_std", "critic/score/std", "rewards/std", "reward/std"),
    "entropy": (
        "entropy",
        "actor/entropy",
        "actor/entropy_loss",
        "policy/entropy_avg",
        "policy_entropy",
        "entropy_mean",
        "entropy/mean",
        "entropy/all/mean",
        "optim/entropy",
    ),
    "reference.k3": (
        "kl",
        "actor/kl_loss",
        "objective/kl",
        "objective/kl_avg",
        "objective/kl3_avg",
        "kl_mean",
        "kl_ref",
        "critic/kl",
        "kl_to_ref",
        "kl_loss",
    ),
    "reference.top_share": ("kl_positional",),
    "clip_fraction": (
        "clip_ratio/region_mean",
        "clip_ratio",
        "clip_ratios/region_mean",
        "actor/pg_clipfrac",
        "policy/clipfrac_avg",
        "clipfrac",
        "clip_fraction",
        "ppo_clip_ratio",
    ),
    "clip_low": ("clip_ratio/low_mean", "clip_ratios/low_mean"),
    "clip_high": ("clip_ratio/high_mean", "clip_ratios/high_mean"),
    "grad_norm": (
        "grad_norm",
        "actor/grad_norm",
        "policy/grad_norm",
        "optim/grad_norm",
        "actor_grad_norm",
        "gradient_norm",
    ),
    "nonfinite_gradients": ("nan_count", "inf_count"),
    "pg_loss": ("actor/pg_loss", "policy_loss", "loss", "loss/policy_avg", "actor_loss"),
    "old.k1": ("actor/ppo_kl", "ppo_kl", "policy/approxkl_avg", "approx_kl", "approxkl"),
    "repetition": ("repetition_rate", "repetition", "repetition/mean", "ngram_repetition"),
    "step_time": (
        "step_time",
        "step_time_s",
        "perf/time_per_step",
        "time_per_step",
        "timing_s/step",
        "time/step",
        "time/total",
    ),
    "throughput": (
        "perf/throughput",
        "throughput",
        "tokens_per_second",
        "perf/tokens_per_sec",
        "throughput/tokens",
        "learner_tokens_per_second_step",
    ),
    "explained_variance": (
        "critic/vf_explained_var",
        "value_explained_variance",
        "explained_variance",
        "value/explained_var",
    ),
    "value_loss": ("critic/vf_loss", "value_loss", "vf_loss", "loss/value_avg", "critic_loss"),
    "rollout.k3": ("mismatch_kl/mean", "mismatch_kl/all/mean"),
    "rollout.k1": ("optim/kl_sample_train_v1",),
    "rollout.peak": ("sampling/sampling_logp_difference/max",),
    "rollout.log_ppl_abs_diff": ("sampling/sampling_logp_difference/mean",),
    "model_tokens": ("num_tokens", "perf/total_num_tokens"),
}
"""Statistic of this library to the keys under which trainers log it.

Sources: TRL ``GRPOTrainer``/``RLOOTrainer``/``PPOTrainer``, verl ``metric_utils.py`` and workers,
OpenRLHF, open-instruct ``grpo_fast``, prime-rl, tinker-cookbook, Unsloth (TRL's).
"""

TOTALS: Mapping[str, tuple[str, ...]] = {
    "reward": (
        "reward",
        "critic/rewards/mean",
        "reward/mean",
        "reward/all/mean",
        "rewards/mean",
        "reward_mean",
        "mean_reward",
        "env/all/reward/total",
        "objective/rlhf_reward",
        "objective/scores",
        "scores",
        "episode_reward_mean",
        "return",
    ),
    "score": ("critic/score/mean",),
    "accuracy": (
        "accuracy",
        "objective/verifiable_correct_rate",
        "correct_rate",
        "solve_rate",
        "pass_rate",
        "pass@1",
    ),
    "success": ("batch/success",),
    "any_correct": ("batch/any_correct",),
    "solve_none": ("batch/solve_none",),
    "solve_all": ("batch/solve_all",),
    "solve_partial": ("batch/solve_partial",),
    "lr": ("learning_rate", "lr", "actor/lr", "actor_lr", "optim/lr"),
    "runtime": ("train_runtime", "_runtime"),
    "clock": ("_timestamp", "timestamp", "wall_time"),
}
"""Total of a step to the keys under which trainers log it."""

CLOCKS = frozenset({"_runtime", *TOTALS["clock"]})
"""Keys that say when a row was logged. A logger adds them to every row."""

STEP_KEYS = (
    "train/global_step",
    "training/global_step",
    "trainer/global_step",
    "global_step",
    "progress/batch",
    "training_step",
    "iteration",
)
"""Keys that hold the optimizer iteration, better than a logger's own count of calls."""

COUNTERS = frozenset({"step", "time", "epoch", "training/epoch", "train/epoch", "episode", "rank"})
"""Keys that count and measure nothing."""

_EVALUATION = re.compile(
    r"(?:eval|val|test|validation|val-core|val-aux|heldout|held_out)(?:[/_.]|-(?=[a-z]))(.+)\Z"
)
_SPLIT = re.compile(r"(?:train|training|trainer)/(.+)\Z")
_SCORES = re.compile(r"acc|pass|solve|correct|score|reward|success")
_EXTREME = re.compile(r"(?<![a-z])(?:min|max|std)(?![a-z])")
_SPREADS = re.compile(r"(?:.*/)?(?:std|min|max|worst|var|n|maj)\b")
_GENERIC = frozenset(
    {"mean", "std", "max", "min", "avg", "sum", "count", "n", "value", "step", "loss", "return"}
)
"""Last parts and single words that say nothing by themselves."""

_PARTS = re.compile(
    r"(?:rewards?|critic/score|reward_components?)[/.](?P<name>[^/]+?)(?:/(?P<what>mean|std))?\Z"
)
_NO_PART = frozenset(
    {
        *("mean", "std", "max", "min", "total", "sum", "overall", "all"),
        *("chosen", "rejected", "margins", "accuracies"),  # of preference training
    }
)


@dataclass(frozen=True, slots=True)
class Metric:
    """The meaning of a logged key.

    Attributes:
        kind: A statistic of all roles, a total of the step, a score of a validation, some other
            metric of an evaluation, or a counter.
        name: Name of the statistic or total.
        rank: Of several keys of one name in a row, that of the lowest rank counts.
    """

    kind: Kind
    name: str = ""
    rank: int = 0


_COUNTER = Metric("counter")
_OTHER_EVALUATION = Metric("evaluation")
_SCORE = Metric("validation", "val_accuracy")
_EVAL_REWARD = Metric("validation", "eval_reward")


def _words(key: str) -> frozenset[str]:
    return frozenset(word for word in re.split(r"[^a-z0-9@]+", key.lower()) if word)


def _tables() -> tuple[dict[str, Metric], dict[str, Metric], dict[frozenset[str], Metric]]:
    exact: dict[str, Metric] = {}
    tails: dict[str, Metric] = {}
    words: dict[frozenset[str], Metric] = {}
    for kind, table in (("statistic", STATISTICS), ("total", TOTALS)):
        for name, keys in table.items():
            for rank, key in enumerate(keys):
                metric = Metric(kind, name, rank)  # type: ignore[arg-type]
                exact.setdefault(key, metric)
                tail = key.rsplit("/", 1)[-1]
                if tail not in _GENERIC:
                    tails.setdefault(tail, metric)
                if not _words(key) <= _GENERIC:
                    words.setdefault(_words(key), metric)
    return exact, tails, words


_EXACT, _TAILS, _WORDS = _tables()


@lru_cache(maxsize=1 << 16)
def resolve(key: str) -> Metric | None:
    """Return the meaning of a logged key; None if it is not understood."""
    if key in _EXACT:
        return _EXACT[key]
    name = key.strip().lower()
    if name.startswith("_") or name in STEP_KEYS or name in COUNTERS:
        return _COUNTER
    split = _SPLIT.match(name)
    name = split[1] if split else name
    if name in _EXACT:
        return _EXACT[name]
    evaluation = _EVALUATION.match(name)
    if evaluation:
        return _evaluated(evaluation[1])
    return _component(name) or _plain(name) or (_COUNTER if _extreme(name) else None)


def _extreme(key: str) -> bool:
    """Whether a key holds the extremes or the spread of something whose mean is understood."""
    stem = _EXTREME.sub("mean", key)
    return stem != key and (stem in _EXACT or _plain(stem) is not None)


def _evaluated(rest: str) -> Metric:
    """A metric of an evaluation: a score, or a copy of something that training logs too."""
    part = _component(rest)
    if part is not None:
        scores = part.name.startswith(COMPONENT) and pays_for_outcome(part.name)
        return _EVAL_REWARD if scores else _OTHER_EVALUATION
    inner = _plain(rest)
    if inner is not None and inner.kind == "statistic":
        return _OTHER_EVALUATION
    if _SPREADS.match(rest.rsplit("/", 1)[-1]) or not _SCORES.search(rest):
        return _OTHER_EVALUATION
    return _EVAL_REWARD if "reward" in rest and "acc" not in rest else _SCORE


def _plain(key: str) -> Metric | None:
    metric = _EXACT.get(key)
    if metric is None:
        metric = _TAILS.get(key.rsplit("/", 1)[-1])
    return _WORDS.get(_words(key)) if metric is None else metric


def _component(key: str) -> Metric | None:
    match = _PARTS.match(key)
    if match is None or match["name"] in _NO_PART:
        return None
    head = COMPONENT_STD if match["what"] == "std" else COMPONENT
    return Metric("statistic", head + match["name"])


_OUTCOME = re.compile(
    r"acc|correct|answer|verif|outcome|solve|success|pass|exact|math|code|unit_?test|exec|match"
)
_FORM = re.compile(
    r"format|tag|xml|think|style|length|repet|language|penalt|json|schema|strict|soft"
)


def pays_for_outcome(component: str) -> bool:
    """True if the name of a reward function says that it pays for the result."""
    name = component.lower()
    return bool(_OUTCOME.search(name)) and not pays_for_form(component)


def pays_for_form(component: str) -> bool:
    """True if the name of a reward function says that it pays for how a response looks."""
    return bool(_FORM.search(component.lower()))


@lru_cache(maxsize=4096)
def nearest(key: str) -> str:
    """Return the known key most similar to ``key``; empty if none is."""
    near = get_close_matches(key.lower(), _EXACT, n=1, cutoff=0.75)
    if near:
        return near[0]
    tail = get_close_matches(key.lower().rsplit("/", 1)[-1], _TAILS, n=1, cutoff=0.8)
    return tail[0] if tail else ""


def not_understood(keys: Iterable[str], limit: int = 8) -> str:
    """Name unknown keys in one line, each with the nearest known key."""
    names = list(keys)
    if not names:
        return ""
    # Those that look like a known key are likelier to be missed than a trainer's timings.
    names.sort(key=lambda key: nearest(key) == "")
    shown = [f"{key} (nearest known: {nearest(key)})" if nearest(key) else key for key in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{len(names)} keys: {', '.join(shown[:limit])}{more}"
