"""Rows of logged numbers as statistics: of all roles, of single roles, of the whole step.

A logged number has lost how many spans it is the mean of and how it was pooled: it becomes a
statistic with ``n = 1``. verl's averages are unweighted means over micro-batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from roledrift.ingest.values import moment, number
from roledrift.metric_names import CLOCKS, STEP_KEYS, TOTALS, not_understood, resolve
from roledrift.spans import Provenance, describe
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

_ROLE_KEY = re.compile(r"actor/([^/]+)/([^/]+)\Z")
_SHARED_KEY = re.compile(r"(?:rollout_corr|actor)/([^/]+)\Z")
_ROLE_ACCURACY = re.compile(r"batch/([A-Za-z]\w*)_acc\Z")
_VALIDATION = re.compile(
    r"val/[^/]+/pass@1\Z|val-core/.+/(?:acc|reward)/(?:mean|best)@\d+(?:/mean)?\Z"
)
_IMPLIED: Mapping[str, Mapping[str, int]] = {
    "n_strategies": {"orchestrator": 1, "worker": 3, "synthesizer": 1},
    "evaluator_acc": {"generator": 1, "evaluator": 1},
    "voter_acc": {"voterA": 1, "voterB": 1, "voterC": 1, "aggregator": 1},
    "aggregator_acc": {"generator": 3, "aggregator": 1},
    "generator_acc": {"generator": 1},
}


_Place = tuple[str, tuple[str, ...], int]
# No role can have these names.
_TOTAL = "/total"
_VALIDATED = "/validation"
_GROUPS: Mapping[str, str] = {"statistic": EVERYONE, "total": _TOTAL, "validation": _VALIDATED}
_COUNTS = frozenset({"nonfinite_gradients"})
"""Statistics of which several keys of a row add up."""


_WRAPPERS = frozenset({"data", "metrics", "logs"})
"""Keys that a logger wraps the metrics in."""

_ENGINE = "sampling/sampling_logp_difference/"
_TIMES = frozenset({"clock", "runtime"})
"""Totals that say when a step was logged, and nothing about the training."""

_FAILS = frozenset({"grad_norm", "pg_loss"})


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
        validations: dict[str, dict[str, float]] = {}
        ranks: dict[tuple[str, str], int] = {}
        self._imply(data)
        for key, logged in data.items():
            value = logged if isinstance(logged, float) else _value(logged)
            if value is None:
                continue
            # The same hundred keys come in every row.
            group, names, rank = self._known.get(key) or self._place(key)
            if group == _VALIDATED:
                validations.setdefault(names[0], {})[key] = value
                continue
            values = groups.setdefault(group, {}) if names else {}
            for name in names:
                if name in _COUNTS:
                    values[name] = values.get(name, 0.0) + value
                elif rank <= ranks.get((group, name), rank):
                    values[name], ranks[group, name] = value, rank
        totals = groups.pop(_TOTAL, {})
        for name, scores in validations.items():
            totals[name] = scores[min(scores)]
        if "reward" not in totals and "success" in totals:
            totals["reward"] = totals["success"]
        return groups, totals

    def _place(self, logged: str) -> _Place:
        """Where the value of a key belongs; no names for nowhere."""
        key = _bare(logged)
        accuracy = _ROLE_ACCURACY.match(key)
        if accuracy and accuracy[1] in {**self.roles, **self.implied}:
            self.passed.pop(key, None)
            return accuracy[1], ("correct",), 0
        metric = resolve(logged)
        if _VALIDATION.match(key):
            place: _Place = (_VALIDATED, ("val_accuracy",), 0)
        elif _ROLE_KEY.match(key) or key.startswith("rollout_corr/"):
            place = self._actor(key)
        elif metric is not None and metric.kind in _GROUPS:
            place = (_GROUPS[metric.kind], (metric.name,), metric.rank)
        else:
            place = self._actor(key)
        if not place[1] and metric is None:
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
            return role, names, 0
        mixed = _SHARED_KEY.match(key)
        self.shared = self.shared or key.startswith("rollout_corr/")
        return EVERYONE, LEAVES.get(mixed[1], ()) if mixed else (), 0

    def _imply(self, data: Mapping[str, object]) -> None:
        if self.implied:
            return
        for key, roles in _IMPLIED.items():
            if f"batch/{key}" in data:
                self.implied = dict(roles)
                return


def useful(data: Mapping[str, object], passed: dict[str, None]) -> dict[str, object]:
    """The numbers of a row that a :class:`Translator` has a use for; a log is mostly others."""
    numbers: dict[str, object] = {}
    for key, logged in data.items():
        if not _of_use(key):
            if key not in passed and number(logged) is not None and resolve(key) is None:
                passed[key] = None
        elif (value := _when(key, logged)) is not None:
            numbers[key] = value
    return numbers


def _when(key: str, logged: object) -> object:
    return moment(logged) if key in TOTALS["clock"] else _value(logged)


def only_times(data: Mapping[str, object]) -> bool:
    """Whether a row says when it was logged, or how long the run took, and nothing else."""
    return all(
        key in CLOCKS or ((metric := resolve(key)) and metric.name in _TIMES) for key in data
    )


@lru_cache(maxsize=1 << 16)
def _of_use(logged: str) -> bool:
    key = _bare(logged)
    metric = resolve(logged)
    if metric is not None and metric.kind in _GROUPS:
        return True
    match = _ROLE_KEY.match(key) or _SHARED_KEY.match(key)
    if match:
        return match[match.lastindex or 1] in LEAVES
    return (
        logged in STEP_KEYS
        or key.removeprefix("batch/") in _IMPLIED
        or _ROLE_ACCURACY.match(key) is not None
        or _VALIDATION.match(key) is not None
    )


def _value(logged: object) -> float | None:
    """A logged value as a number; of a list of shares by position the largest one's share."""
    if isinstance(logged, list):
        parts = [share for part in logged if (share := number(part)) is not None and share >= 0]
        total = sum(parts)
        return max(parts) / total if len(parts) > 1 and 0 < total < float("inf") else None
    return number(logged)


def compared(keys: Iterable[str]) -> dict[str, str]:
    """The labels of the comparisons that logged keys are of.

    TRL scores responses with the weights that the engine was just given: no optimizer step lies
    between the engine's log-probabilities and the trainer's in ``sampling_logp_difference``.
    """
    if not any(_ENGINE in key for key in keys):
        return {}
    return {"rollout": describe("rollout", [Provenance(None, None, 0)])}


def flat(row: Mapping[str, object]) -> dict[str, object]:
    """Nested dictionaries as keys joined with ``/``; a file logger's ``data`` adds nothing."""
    joined: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            head = "" if key in _WRAPPERS else f"{key}/"
            joined |= {f"{head}{name}": inner for name, inner in flat(value).items()}
        elif isinstance(key, str):
            joined[key] = value
    return joined


def fails(key: str) -> bool:
    """Whether a value under ``key`` that is not finite means a failure and no gap."""
    metric = resolve(key)
    return metric is not None and metric.name in _FAILS


def step_of(data: Mapping[str, object]) -> int | None:
    """The optimizer iteration that a row of logged numbers names itself; None if it does not."""
    for key in STEP_KEYS:
        value = number(data.get(key))
        if value is not None and value % 1 == 0 and abs(value) < 2**62:
            return int(value)
    return None


def passed_note(passed: Iterable[str]) -> dict[str, str]:
    """A note that names what was not translated; empty if everything was."""
    text = not_understood(passed)
    return {"numbers not imported": text} if text else {}


def _bare(key: str) -> str:
    return key.removeprefix("train/")
