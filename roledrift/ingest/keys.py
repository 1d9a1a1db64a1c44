"""Names under which trainers log numbers, as statistics of this library.

A logged number has lost how many spans it is the mean of and how it was pooled: it becomes a
statistic with ``n = 1``. verl's averages are unweighted means over micro-batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from roledrift.ingest.values import number
from roledrift.sums import EVERYONE

LEAVES: Mapping[str, tuple[str, ...]] = {
    "chi2_token": ("rollout.chi2",),
    "chi2_seq": ("rollout.chi2_seq",),
    "training_ppl": ("rollout.training_ppl", "ppl"),
    "training_log_ppl": ("rollout.training_log_ppl",),
    "rollout_ppl": ("rollout.behind_ppl",),
    "ppl_ratio": ("rollout.ppl_ratio",),
    "kl": ("rollout.k1",),
    "k3_kl": ("rollout.k3",),
    "log_ppl_diff": ("rollout.log_ppl_diff",),
    "log_ppl_abs_diff": ("rollout.log_ppl_abs_diff",),
    "ppo_kl": ("old.k1",),
    "pg_clipfrac": ("clip_fraction",),
    "grad_norm": ("grad_norm",),
    "pg_loss": ("pg_loss",),
    "entropy": ("entropy",),
    "lr": ("lr",),
}
"""Last part of verl's ``actor/<role>/<leaf>``, ``actor/<leaf>`` and ``rollout_corr/<leaf>``."""

EVERYBODY: Mapping[str, str] = {
    "response_length/mean": "length",
    "response_length/clip_ratio": "truncated",
    "critic/advantages/mean": "advantage",
    # TRL
    "completions/mean_length": "length",
    "completions/clipped_ratio": "truncated",
    "frac_reward_zero_std": "zero_variance",
    "clip_ratio/region_mean": "clip_fraction",
    "clip_ratio": "clip_fraction",
    "entropy": "entropy",
    "kl": "reference.k3",
    "grad_norm": "grad_norm",
    # prime-rl
    "entropy/mean": "entropy",
    "entropy/all/mean": "entropy",
    "mismatch_kl/mean": "rollout.k3",
    "mismatch_kl/all/mean": "rollout.k3",
    "optim/grad_norm": "grad_norm",
    # tinker-cookbook
    "optim/entropy": "entropy",
    "optim/kl_sample_train_v1": "rollout.k1",
}
"""Keys that mix all roles."""

TOTALS: Mapping[str, str] = {
    "critic/rewards/mean": "reward",
    "critic/score/mean": "score",
    "batch/success": "success",
    "batch/any_correct": "any_correct",
    "batch/solve_none": "solve_none",
    "batch/solve_all": "solve_all",
    "batch/solve_partial": "solve_partial",
    "reward": "reward",
    "reward/mean": "reward",
    "reward/all/mean": "reward",
    "env/all/reward/total": "reward",
    "eval_reward": "eval_reward",
}

STEP_KEYS = ("train/global_step", "training/global_step", "global_step", "progress/batch")
"""Keys that hold the optimizer iteration, better than a logger's own count of calls."""

_COUNTS = ("step", "time", "epoch", "training/epoch")
"""Keys that count and measure nothing."""

_ROLE_KEY = re.compile(r"actor/([^/]+)/([^/]+)\Z")
_SHARED_KEY = re.compile(r"(?:rollout_corr|actor)/([^/]+)\Z")
_ROLE_ACCURACY = re.compile(r"batch/([A-Za-z]\w*)_acc\Z")
_VALIDATION = re.compile(
    r"val/[^/]+/pass@1\Z|val-core/.+/(?:acc|reward)/(?:mean|best)@\d+(?:/mean)?\Z"
)
_PREFIXES = ("train/",)

_IMPLIED: Mapping[str, Mapping[str, int]] = {
    "n_strategies": {"orchestrator": 1, "worker": 3, "synthesizer": 1},
    "evaluator_acc": {"generator": 1, "evaluator": 1},
    "voter_acc": {"voterA": 1, "voterB": 1, "voterC": 1, "aggregator": 1},
    "aggregator_acc": {"generator": 3, "aggregator": 1},
    "generator_acc": {"generator": 1},
}


_Place = tuple[str, tuple[str, ...]]
# No role can have these names.
_TOTAL = "/total"
_VALIDATED = "/validation"


@dataclass(slots=True)
class Translator:
    """Logged numbers of a step as statistics; remembers what it saw.

    Attributes:
        roles: Roles that have keys of their own: their policies are isolated.
        passed: Keys that were not translated, in the order of appearance.
        implied: Roles and slots that the workflow's own keys imply.
    """

    roles: dict[str, None] = field(default_factory=dict)
    passed: dict[str, None] = field(default_factory=dict)
    implied: dict[str, int] = field(default_factory=dict)
    shared: bool = False
    _known: dict[str, _Place] = field(default_factory=dict)

    def __call__(
        self, data: Mapping[str, object]
    ) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Statistics per group, and totals. Values that are no numbers are passed over."""
        groups: dict[str, dict[str, float]] = {}
        totals: dict[str, float] = {}
        validations: dict[str, float] = {}
        self._imply(data)
        for key, logged in data.items():
            value = logged if isinstance(logged, float) else number(logged)
            if value is None:
                continue
            # The same hundred keys come in every row.
            group, names = self._known.get(key) or self._place(key)
            if group == _VALIDATED:
                validations[key] = value
            elif group == _TOTAL:
                totals[names[0]] = value
            elif names:
                mine = groups.setdefault(group, {})
                for name in names:
                    mine[name] = value
        if validations:
            totals["val_accuracy"] = validations[min(validations)]
        if "reward" not in totals and "success" in totals:
            totals["reward"] = totals["success"]
        return groups, totals

    def _place(self, logged: str) -> _Place:
        """Where the value of a key belongs; no names for nowhere."""
        key = _bare(logged)
        accuracy = _ROLE_ACCURACY.match(key)
        if accuracy and accuracy[1] in {**self.roles, **self.implied}:
            self.passed.pop(key, None)
            return accuracy[1], ("correct",)
        if _VALIDATION.match(key):
            place: _Place = (_VALIDATED, ())
        elif key in TOTALS:
            place = (_TOTAL, (TOTALS[key],))
        elif key in EVERYBODY:
            place = (EVERYONE, (EVERYBODY[key],))
        else:
            place = self._actor(key)
        if place[0] != _VALIDATED and not place[1] and _measures(logged):
            self.passed.setdefault(key)
        if not accuracy:
            # Whose accuracy it is may only be known later in the row.
            self._known[logged] = place
        return place

    def _actor(self, key: str) -> _Place:
        own = _ROLE_KEY.match(key)
        if own:
            role, leaf = own.groups()
            names = LEAVES.get(leaf, ())
            if names:
                self.roles.setdefault(role)
            return role, names
        mixed = _SHARED_KEY.match(key)
        self.shared = self.shared or key.startswith("rollout_corr/")
        return EVERYONE, LEAVES.get(mixed[1], ()) if mixed else ()

    def _imply(self, data: Mapping[str, object]) -> None:
        if self.implied:
            return
        for key, roles in _IMPLIED.items():
            if f"batch/{key}" in data:
                self.implied = dict(roles)
                return


def useful(data: Mapping[str, object], passed: dict[str, None]) -> dict[str, object]:
    """The numbers of a row that a :class:`Translator` has a use for; a log is mostly others.

    Args:
        data: Logged keys and values.
        passed: The names of the other numbers are added here.
    """
    found: dict[str, object] = {}
    for key, logged in data.items():
        if not _of_use(key):
            if key not in passed and number(logged) is not None and _measures(key):
                passed[key] = None
        elif (value := number(logged)) is not None:
            found[key] = value
    return found


@lru_cache(maxsize=1 << 16)
def _of_use(logged: str) -> bool:
    key = _bare(logged)
    found = _ROLE_KEY.match(key) or _SHARED_KEY.match(key)
    if found:
        return found[found.lastindex or 1] in LEAVES
    return (
        key in TOTALS
        or key in EVERYBODY
        or logged in STEP_KEYS
        or key.removeprefix("batch/") in _IMPLIED
        or _ROLE_ACCURACY.match(key) is not None
        or _VALIDATION.match(key) is not None
    )


def _measures(logged: str) -> bool:
    return not (logged.startswith("_") or logged in STEP_KEYS or logged in _COUNTS)


def step_of(data: Mapping[str, object]) -> int | None:
    """The optimizer iteration that a row of logged numbers names itself; None if it does not."""
    for key in STEP_KEYS:
        value = number(data.get(key))
        if value is not None and value % 1 == 0 and abs(value) < 2**62:
            return int(value)
    return None


def passed_note(passed: Iterable[str]) -> dict[str, str]:
    """A note that names what was not translated; empty if everything was."""
    names = list(passed)
    if not names:
        return {}
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return {"numbers not imported": f"{len(names)} keys: {', '.join(names[:8])}{more}"}


def _bare(key: str) -> str:
    for prefix in _PREFIXES:
        if key.startswith(prefix):
            return key[len(prefix) :]
    return key
