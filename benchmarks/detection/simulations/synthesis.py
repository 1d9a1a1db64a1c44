"""Step records of a simulated run: what a monitor would have written, quickly.

The levels and the noise are those of the recorded runs. Statistics of one role hang together as
they do there: lengths, movement and text shapes have noise of their own; everything that measures
the same movement (k3, chi², |log ppl diff|, its spread, the peak) shares most of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from benchmarks.detection.simulations.noise import Array, Noise, counted
from benchmarks.detection.simulations.plans import WORKED, RolePlan, RunPlan
from roledrift import StepRecord
from roledrift.records import Stat

BUCKETS = 64
_SHAPES = ("boxed", "terse", "bare_stamp", "code_fence", "verdict_tag", "hedging")
_FIELDS = {field.name for field in fields(StepRecord)}
_MOST_WORDS = 20_000


class Column:
    """One statistic over all steps: its mean, its count, and its spread over rows if it has one."""

    __slots__ = ("mean", "n", "shares", "spread")

    def __init__(
        self,
        mean: Array,
        n: float | Array,
        spread: Array | None = None,
        shares: Array | None = None,
    ) -> None:
        self.mean = mean
        self.n = np.broadcast_to(n, mean.shape)
        self.spread = spread
        self.shares = shares

    def stats(self) -> list[Stat | None]:
        """One per step; None where nothing was counted."""
        means, counts = self.mean.tolist(), self.n.tolist()
        if self.shares is not None:
            rows = self.shares.tolist()
            return [
                Stat(n, m, shares=tuple(row)) for n, m, row in zip(counts, means, rows, strict=True)
            ]
        if self.spread is None:
            return [Stat(n, m) if n else None for n, m in zip(counts, means, strict=True)]
        return [
            Stat(n, m, s, m - 2 * s, m + 3 * s, m - 1.5 * s, m, m + 1.6 * s, m - 2 * s, m + 2.5 * s)
            for n, m, s in zip(counts, means, self.spread.tolist(), strict=True)
        ]


Columns = dict[str, Column]


def simulate(plan: RunPlan, seed: int) -> list[StepRecord]:
    """The records of one run."""
    rng = np.random.default_rng(seed)
    solved = counted(rng, plan.accuracy, plan.episodes)
    coins = plan.coins * counted(rng, np.full(plan.steps, 0.5), plan.episodes)
    reward = (1 - plan.coins) * solved + coins
    silent = _without_gradient(rng, plan)
    groups = {
        name: _role(rng, plan, name, role, reward, silent) for name, role in plan.roles.items()
    }
    total = sum(plan.episodes * plan.workflow.role(name).slots for name in groups)
    paid = np.asarray(
        sum(
            columns["reward_bias"].mean * columns["reward"].n / total for columns in groups.values()
        )
    )
    for columns in groups.values():
        bias = columns["reward_bias"]
        columns["reward_bias"] = Column(bias.mean - paid, bias.n)
    groups["*"] = _everyone(groups)
    totals = {"reward": reward + paid, "accuracy": solved}
    if plan.lr is not None:
        totals["lr"] = plan.lr
    for policy in dict.fromkeys(plan.workflow.policies):
        totals[f"grad_norm/{policy}"] = plan.noise.around(rng, np.full(plan.steps, 0.15), 0.3)
    return _records(plan, groups, totals, _validations(rng, plan))


def _records(
    plan: RunPlan,
    groups: Mapping[str, Columns],
    totals: Mapping[str, Array],
    validations: Mapping[int, str],
) -> list[StepRecord]:
    finished = {
        group: [(name, column.stats()) for name, column in columns.items()]
        for group, columns in groups.items()
    }
    records = []
    for i in range(plan.steps):
        numbers = {name: float(values[i]) for name, values in totals.items()}
        marks = validations.get(i + 1, "")
        if marks:
            numbers |= {"val_accuracy": marks.count("1") / len(marks), "val_n": float(len(marks))}
        extra = {"solved": marks} if marks and "solved" in _FIELDS else {}
        if i == 0 and plan.base and "base" in _FIELDS:
            extra["base"] = _base(plan)
        records.append(
            StepRecord(
                i + 1,
                groups={
                    group: {name: stats[i] for name, stats in columns if stats[i] is not None}
                    for group, columns in finished.items()
                },
                totals=numbers,
                **extra,
            )
        )
    return records


def _role(
    rng: np.random.Generator,
    plan: RunPlan,
    name: str,
    role: RolePlan,
    reward: Array,
    silent: Array,
) -> Columns:
    noise, steps = plan.noise, plan.steps
    shape = plan.workflow.role(name)
    rows = plan.episodes * shape.slots
    length = noise.around(rng, role.length * _ones(role.longer, steps), noise.length)
    paid = _ones(role.paid, steps, 0.0)
    columns = {
        "length": Column(length, rows, 0.15 * length),
        "chars": Column(3.1 * length, rows, 0.5 * length),
        "reward": Column(reward + paid, rows, np.sqrt(np.maximum(reward * (1 - reward), 1e-4))),
        "reward_bias": Column(paid, rows),
        "zero_variance": Column(silent, plan.problems),
        "reward_spread": Column(
            np.minimum(noise.around(rng, 0.45 * (1 - silent), 0.08), 0.5), plan.problems
        ),
        "duplicates": Column(np.zeros(steps), rows),
        "nonfinite": Column(np.zeros(steps), rows, np.zeros(steps)),
        "truncated": Column(counted(rng, _ones(role.truncated, steps, 0.0), rows), rows),
        "updates": Column(np.full(steps, float(role.updates)), 1, np.zeros(steps)),
        "entropy": Column(noise.around(rng, np.full(steps, 0.155), noise.entropy), rows * length),
        "ppl": Column(noise.around(rng, np.full(steps, 1.19), 0.06), rows, np.full(steps, 0.2)),
        "length_credit": _length_credit(rng, plan, paid, silent),
    }
    columns |= _movement(rng, plan, role, length)
    columns |= _texts(rng, plan, role, rows, length)
    if shape.slots > 1:
        columns |= _siblings(rng, plan, reward)
    if shape.duty == "judge":
        columns["verdict_correct"] = Column(counted(rng, np.full(steps, 0.88), rows), rows)
    return columns


def _movement(rng: np.random.Generator, plan: RunPlan, role: RolePlan, length: Array) -> Columns:
    """What the update did, and how far the engine is off, in all their statistics."""
    noise, steps = plan.noise, plan.steps
    k3 = role.k3 * _ones(role.moved, steps)
    if plan.lr is not None:
        k3 = k3 * (plan.lr / plan.lr.max()) ** 2
    shared = noise.movement * noise.draw(rng, steps)
    reported = k3 * np.exp(shared)
    tokens = 24 * length
    columns = _compared(rng, noise, "update", reported, k3 * np.exp(shared / 2), tokens, 24, length)
    columns["update.chi2"] = Column(reported * (1 + 1.5 * noise.draw(rng, steps)), tokens)
    behind = (role.updates - 1) / role.updates * 0.3
    stale = noise.around(rng, np.maximum(behind * reported, 1e-14), 0.5)
    columns |= _compared(rng, noise, "old", stale, stale, tokens, 24, length)
    engine = noise.around(rng, np.full(steps, plan.engine), 0.2) + stale
    columns |= _compared(rng, noise, "rollout", engine, engine, tokens, 24, length)
    columns["rollout.chi2"] = Column(engine * (2 + 0.5 * noise.draw(rng, steps)), tokens)
    columns["clip_fraction"] = Column(np.minimum(10 * stale, 0.2), tokens)
    return columns


def _compared(
    rng: np.random.Generator,
    noise: Noise,
    kind: str,
    k3: Array,
    calmer: Array,
    tokens: Array,
    rows: int,
    length: Array,
) -> Columns:
    """The statistics of one comparison; those of whole answers scatter half as much as k3."""
    step = np.sqrt(2 * calmer)
    off = noise.around(rng, 0.8 * step / np.sqrt(np.minimum(length, 50.0)), 0.25)
    spread = noise.around(rng, 1.25 * off, 0.3)
    return {
        f"{kind}.k3": Column(k3, tokens),
        f"{kind}.k1": Column(0.1 * np.sqrt(2 * k3) * noise.draw(rng, len(k3)), tokens),
        f"{kind}.log_ppl_abs_diff": Column(off, rows, spread),
        f"{kind}.log_ppl_diff": Column(0.15 * off * noise.draw(rng, len(k3)), rows, spread),
        f"{kind}.peak": Column(noise.around(rng, 2 * step, 0.25), rows, step),
    }


def _texts(
    rng: np.random.Generator, plan: RunPlan, role: RolePlan, rows: int, length: Array
) -> Columns:
    """Shapes, words and openings; ``prose`` moves them to those of a role that works."""
    steps, noise = plan.steps, plan.noise
    prose = _ones(role.prose, steps, 0.0)
    columns = {}
    for shape in _SHAPES:
        start, end = role.shapes.get(shape, 0.0), WORKED.get(shape, 0.0)
        share = start + prose * (end - start)
        scatter = 0.3 * np.sqrt(share * (1 - share) / max(rows, 1)) * noise.draw(rng, steps)
        columns[shape] = Column(counted(rng, share + scatter, rows), rows)
    # How a role writes is the role's, not the run's: the same in every simulated run.
    own = np.random.default_rng(int(1e4 * sum(role.shapes.values()))).dirichlet(
        np.full(BUCKETS, 0.3)
    )
    works = np.random.default_rng(int(1e4 * sum(WORKED.values()))).dirichlet(np.full(BUCKETS, 0.3))
    mixed = own + prose[:, None] * (works - own)
    wander = np.stack([noise.draw(rng, steps) for _ in range(BUCKETS)], axis=1)
    wanted = mixed * np.exp(0.05 * wander)
    wanted = wanted / wanted.sum(axis=1, keepdims=True)
    words = np.minimum(rows * length * 0.8, _MOST_WORDS).astype(int)
    shares = np.stack(
        [rng.multinomial(n, p) / max(n, 1) for n, p in zip(words, wanted, strict=True)]
    )
    columns["words"] = Column(0.8 * length, rows, shares=np.round(shares, 4))
    openers = np.maximum(np.round(noise.around(rng, np.full(steps, 7.0), 0.2)), 1.0)
    columns["openers"] = Column(openers, rows)
    return columns


def _siblings(rng: np.random.Generator, plan: RunPlan, reward: Array) -> Columns:
    """Likeness of the answers of one episode's slots."""
    noise, steps = plan.noise, plan.steps
    pairs = np.maximum(np.round(plan.episodes * (1 - reward)), 1.0)
    agreed = rng.binomial(pairs.astype(int), 0.25) / pairs
    likeness = np.minimum(noise.around(rng, np.full(steps, 0.73), 0.12), 1.0)
    wrong = np.minimum(noise.around(rng, np.full(steps, 0.42), 0.3), 1.0)
    return {
        "sibling_jaccard": Column(likeness, plan.episodes),
        "wrong_jaccard": Column(wrong, pairs),
        "wrong_agreement": Column(agreed, pairs),
        "sign_agreement": Column(np.ones(steps), plan.episodes),
    }


def _length_credit(rng: np.random.Generator, plan: RunPlan, paid: Array, silent: Array) -> Column:
    """Correlation of length and advantage: of a few groups, so noisy."""
    groups = np.maximum(np.round(plan.problems * (1 - silent)), 1.0)
    scatter = plan.noise.draw(rng, plan.steps) * 0.35 / np.sqrt(groups)
    return Column(np.clip(-0.05 + 2.5 * paid + scatter, -1, 1), groups, np.full(plan.steps, 0.35))


def _without_gradient(rng: np.random.Generator, plan: RunPlan) -> Array:
    """Share of groups whose rewards are all equal: many where nearly all or none are solved."""
    even = 1 - 4 * plan.accuracy * (1 - plan.accuracy)
    return counted(rng, (1 - plan.coins) * (0.15 + 0.75 * even), plan.problems)


def _everyone(groups: Mapping[str, Columns]) -> Columns:
    """Means over all roles, by their counts."""
    names = set.intersection(*(set(columns) for columns in groups.values()))
    pooled: Columns = {}
    for name in sorted(names - {"words", "openers", "reward_bias"}):
        columns = [columns[name] for columns in groups.values()]
        n = sum(column.n for column in columns)
        mean = sum(column.mean * column.n for column in columns) / n
        pooled[name] = Column(np.asarray(mean), np.asarray(n))
    return pooled


def _validations(rng: np.random.Generator, plan: RunPlan) -> dict[int, str]:
    """Which problems were solved, the same ones every time; some are harder than others."""
    if not plan.validation:
        return {}
    ability = plan.accuracy if plan.ability is None else plan.ability
    hardness = 1.5 * rng.standard_normal(plan.validated)
    marks = {}
    for step in range(plan.validation, plan.steps + 1, plan.validation):
        level = _level(float(np.clip(ability[step - 1], 1e-3, 1 - 1e-3)))
        solved = rng.random(plan.validated) < 1 / (1 + np.exp(hardness - level))
        marks[step] = "".join("1" if result else "0" for result in solved)
    return marks


def _level(accuracy: float) -> float:
    """The ability at which a fair draw of problems is solved with this accuracy."""
    low, high = -12.0, 12.0
    typical = 1.5 * np.linspace(-2.4, 2.4, 41)
    weights = np.exp(-(np.linspace(-2.4, 2.4, 41) ** 2) / 2)
    for _ in range(30):
        middle = (low + high) / 2
        reached = float(np.sum(weights / (1 + np.exp(typical - middle))) / weights.sum())
        low, high = (middle, high) if reached < accuracy else (low, middle)
    return (low + high) / 2


def _base(plan: RunPlan) -> dict[str, dict[str, Stat]]:
    """The policy before training: lengths and text shapes of a validation at step 0."""
    rows = float(plan.validated)
    return {
        name: {
            "length": Stat(rows, role.length, 0.15 * role.length),
            **{shape: Stat(rows, role.shapes.get(shape, 0.0)) for shape in _SHAPES},
        }
        for name, role in plan.roles.items()
    }


def _ones(course: Array | None, steps: int, value: float = 1.0) -> Array:
    return np.full(steps, value) if course is None else course
