"""What a run has cost so far, as an estimate: rollouts that moved nothing, GPU hours, money.

Nothing here is measured for this purpose. It follows from what a record or a trainer's log happens
to hold, so every number comes with what it rests on, and what is not known is None, never 0.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median

from roledrift.config import CostsConfig
from roledrift.records import RunHeader, StepRecord
from roledrift.sums import EVERYONE

NOTE_DEVICES = "devices"
"""Note of a run that begins with how many GPUs it was trained on."""

EQUAL, STILL, UNTRAINED = "groups of equal reward", "gradients of zero", "roles not trained"
"""Why rollouts moved nothing."""

_PAUSE = 3600.0
_PAUSES = 20.0
"""Seconds, and usual distances, beyond which the time between two records is a pause."""

_WHOLE = 0.05
_NO_TIMES = "neither timestamps nor step times nor a run time were recorded"
_NO_DEVICES = "neither recorded nor given (--devices)"


@dataclass(frozen=True, slots=True)
class Costs:
    """What a run has cost so far: an estimate.

    Attributes:
        steps: Optimizer iterations that it is about.
        idle: Share of the rollouts that moved nothing; None if the records do not say.
        idle_by: The same by reason, ``groups of equal reward`` for example; the shares add up.
        truncated: Share of the responses cut off by the length limit. They are not part of
            ``idle``: only some trainers mask them.
        hours: Wall time.
        devices: GPUs that were busy with it.
        gpu_hours: ``hours`` times ``devices``; ``idle_gpu_hours``: the share ``idle`` of them.
        gpu_hour_cost: What a GPU hour costs, in any currency.
        money: ``gpu_hours`` times ``gpu_hour_cost``.
        basis: What ``idle``, ``hours``, ``devices`` and ``gpu_hour_cost`` rest on, or why they are
            unknown; in words.
    """

    steps: int
    idle: float | None = None
    idle_by: Mapping[str, float] = field(default_factory=dict)
    truncated: float | None = None
    hours: float | None = None
    devices: int | None = None
    gpu_hours: float | None = None
    idle_gpu_hours: float | None = None
    gpu_hour_cost: float | None = None
    money: float | None = None
    basis: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        return f"Cost so far, estimated: {_idle_words(self)}; {_time_words(self)}."


def costs(
    records: Sequence[StepRecord], header: RunHeader, config: CostsConfig | None = None
) -> Costs:
    """Estimate what a run has cost so far.

    Args:
        records: One per step, in the order of steps.
        header: Of the run; its note ``devices`` counts if ``config`` does not say how many.
        config: Number of devices and the cost of a GPU hour; 0 is unknown.
    """
    config = config or CostsConfig()
    roles = header.workflow.role_names
    strides = _strides(records)
    idle, by, of = _idle(records, strides, roles)
    seconds, timed = _seconds(records, strides, roles)
    devices, counted = _devices(records, header, config, roles)
    hours = None if seconds is None else seconds / 3600
    gpu_hours = None if hours is None or devices is None else hours * devices
    price = config.gpu_hour or None
    return Costs(
        steps=round(sum(strides)),
        idle=idle,
        idle_by=by,
        truncated=_mean_share(records, strides, roles, "truncated"),
        hours=hours,
        devices=devices,
        gpu_hours=gpu_hours,
        idle_gpu_hours=None if gpu_hours is None or idle is None else gpu_hours * idle,
        gpu_hour_cost=price,
        money=None if gpu_hours is None or price is None else gpu_hours * price,
        basis={
            "idle": of,
            "hours": timed,
            "devices": counted,
            "gpu_hour_cost": "as given" if price else "not given (--gpu-hour-cost)",
        },
    )


def with_given(config: CostsConfig, given: CostsConfig | None) -> CostsConfig:
    """Override configured costs with those given on the command line."""
    if given is None:
        return config
    return CostsConfig(given.devices or config.devices, given.gpu_hour or config.gpu_hour)


def _strides(records: Sequence[StepRecord]) -> list[float]:
    """Optimizer iterations that each record stands for: those since the record before it."""
    between = [float(b.step - a.step) for a, b in pairwise(records)]
    if not records:
        return []
    usual = median(between) if between else 1.0
    first = min(usual, float(records[0].step)) if records[0].step > 0 else 1.0
    return [first, *between]


def _idle(
    records: Sequence[StepRecord], strides: Sequence[float], roles: Sequence[str]
) -> tuple[float | None, dict[str, float], str]:
    """Share of the rollouts that moved nothing, the same by reason, and what that rests on."""
    total = 0.0
    by: defaultdict[str, float] = defaultdict(float)
    known, of = 0, set[str]()
    for record, stride in zip(records, strides, strict=True):
        part = _idle_in(record, stride, roles)
        if part is None:
            continue
        known += 1
        rows, shares, units = part
        of |= units
        total += stride * rows
        for reason, share in shares.items():
            by[reason] += stride * rows * share
    if not total:
        return None, {}, "neither groups of equal reward nor optimizer steps were recorded"
    shares = {reason: amount / total for reason, amount in by.items() if amount > 0}
    basis = "a group of equal rewards has no advantage; a KL or entropy term may still move it"
    if known < len(records):
        basis += f"; {known} of {len(records)} records say it"
    if of and of != set(roles):
        basis += f"; known of {', '.join(role for role in roles if role in of)} only"
    return min(sum(shares.values()), 1.0), shares, basis


def _idle_in(
    record: StepRecord, stride: float, roles: Sequence[str]
) -> tuple[float, dict[str, float], set[str]] | None:
    """Rollouts of one record, by reason the share that moved nothing, and of which roles.

    None if unknown; no roles where it is known of all of them together.
    """
    # A norm that is logged every ten steps is that of one of them.
    norm = record.totals.get("grad_norm", _of_all(record, roles, "grad_norm"))
    if norm == 0.0 and stride <= 1:
        return _rows(record, EVERYONE), {STILL: 1.0}, set()
    units = {role: _of_unit(record, role) for role in roles}
    parts = {role: amount for role, amount in units.items() if amount is not None}
    if not parts:
        share = _of_all(record, roles, "zero_variance")
        share = _solved_or_not(record) if share is None else share
        return None if share is None else (_rows(record, EVERYONE), {EQUAL: share}, set())
    total = math.fsum(rows for rows, _, _ in parts.values())
    amounts: defaultdict[str, float] = defaultdict(float)
    for rows, reason, share in parts.values():
        amounts[reason] += rows * share / total
    return total, dict(amounts), set(parts)


def _of_unit(record: StepRecord, role: str) -> tuple[float, str, float] | None:
    """Rollouts of a role, why some of them moved nothing, and their share; None if unknown."""
    rows, updates = _rows(record, role), record.stat(role, "updates")
    if updates is not None and updates.high == 0 and record.stat(role, "advantage") is not None:
        return rows, UNTRAINED, 1.0
    share = _share(record.mean(role, "zero_variance"))
    return None if share is None else (rows, EQUAL, share)


def _rows(record: StepRecord, group: str) -> float:
    """How many rollouts a statistic of the group is the mean of; 1 where a log has lost that."""
    for name in ("advantage", "reward", "length"):
        counted = record.counted(group, name)
        if counted is not None and counted[0] > 0:
            return counted[0]
    return 1.0


def _solved_or_not(record: StepRecord) -> float | None:
    """Share of problems of which all responses were right, or none, as rLLM counts them."""
    names = ("solve_none", "solve_all", "solve_partial")
    none, every, some = (record.totals.get(name, math.nan) for name in names)
    groups = none + every + some
    return _share((none + every) / groups) if groups > 0 else None


def _of_all(record: StepRecord, roles: Sequence[str], name: str) -> float | None:
    """A statistic of all roles together; in a run of one role that role's."""
    value = record.mean(EVERYONE, name)
    value = record.mean(roles[0], name) if value is None and len(roles) == 1 else value
    return value if value is not None and math.isfinite(value) else None


def _share(value: float | None) -> float | None:
    return value if value is not None and 0.0 <= value <= 1.0 else None


def _mean_share(
    records: Sequence[StepRecord], strides: Sequence[float], roles: Sequence[str], name: str
) -> float | None:
    shares = [
        (stride, share)
        for record, stride in zip(records, strides, strict=True)
        if (share := _share(_of_all(record, roles, name))) is not None
    ]
    covered = math.fsum(stride for stride, _ in shares)
    return math.fsum(stride * share for stride, share in shares) / covered if covered else None


def _seconds(
    records: Sequence[StepRecord], strides: Sequence[float], roles: Sequence[str]
) -> tuple[float | None, str]:
    """Wall time of all steps, and where it comes from."""
    timed = _from_timestamps(records) or _from_step_times(records, strides, roles)
    if timed is not None:
        seconds, covered, basis = timed
        return seconds * math.fsum(strides) / covered, basis
    for record in reversed(records):
        seconds = record.totals.get("runtime", 0.0)
        if seconds > 0 and math.isfinite(seconds):
            return seconds, "the run time that the trainer logged, evaluations included"
    return None, _NO_TIMES


def _from_timestamps(records: Sequence[StepRecord]) -> tuple[float, float, str] | None:
    """Seconds between records of one process, the steps in them, and what was done about pauses."""
    gaps = []
    for before, after in pairwise(records):
        if before.writer == after.writer and before.time and after.time:
            apart = _apart(before.time, after.time)
            if apart is not None:
                gaps.append((apart, after.step - before.step))
    usual = median([apart for apart, _ in gaps]) if gaps else 0.0
    kept = [gap for gap in gaps if gap[0] <= max(_PAUSE, _PAUSES * usual)]
    seconds, steps = math.fsum(apart for apart, _ in kept), sum(steps for _, steps in kept)
    if seconds <= 0 or steps <= 0:
        return None
    basis = "the time between records, evaluations and saving included"
    left_out = len(gaps) - len(kept)
    if left_out:
        basis += f"; {left_out} pause{'s' if left_out > 1 else ''} of over an hour left out"
    if len({record.writer for record in records}) > 1:
        basis += "; steps that were repeated after a restart count once"
    return seconds, steps, basis


def _apart(before: str, after: str) -> float | None:
    try:
        apart = (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (TypeError, ValueError):
        return None
    return apart if apart >= 0 else None


def _from_step_times(
    records: Sequence[StepRecord], strides: Sequence[float], roles: Sequence[str]
) -> tuple[float, float, str] | None:
    timed = [
        (stride, seconds)
        for record, stride in zip(records, strides, strict=True)
        if (seconds := _of_all(record, roles, "step_time")) is not None and seconds > 0
    ]
    steps = math.fsum(stride for stride, _ in timed)
    if not steps:
        return None
    basis = "the step times that the trainer logged; some trainers leave evaluations out of them"
    return math.fsum(stride * seconds for stride, seconds in timed), steps, basis


def _devices(
    records: Sequence[StepRecord], header: RunHeader, config: CostsConfig, roles: Sequence[str]
) -> tuple[int | None, str]:
    """How many GPUs, and who says so."""
    if config.devices:
        return config.devices, "as given, all of them for the whole time"
    noted = re.match(r"\s*([1-9]\d{0,5})\b", header.notes.get(NOTE_DEVICES, ""))
    if noted:
        return int(noted[1]), f"as the run says: {header.notes[NOTE_DEVICES]}"
    if not header.host.startswith("verl"):
        return None, _NO_DEVICES
    ratios = []
    for record in records:
        names = ("model_tokens", "step_time", "throughput")
        tokens, seconds, rate = (_of_all(record, roles, name) or 0.0 for name in names)
        if tokens > 0 and seconds > 0 and rate > 0:
            ratios.append(tokens / (seconds * rate))
    ratio = median(ratios) if ratios else 0.0
    if round(ratio) >= 1 and abs(ratio - round(ratio)) <= _WHOLE * ratio:
        return round(ratio), "from verl's perf/throughput, which is tokens per second and GPU"
    return None, _NO_DEVICES


def _idle_words(estimate: Costs) -> str:
    if estimate.idle is None:
        return "the share of rollouts that moved nothing is unknown"
    several = len(estimate.idle_by) > 1
    parts = ", ".join(
        f"{why}: {_percent(share)}" if several else why for why, share in estimate.idle_by.items()
    )
    return f"{_percent(estimate.idle)} of the rollouts moved nothing" + (
        f" ({parts})" if parts else ""
    )


def _time_words(estimate: Costs) -> str:
    if estimate.hours is None:
        return f"GPU hours are unknown, because {estimate.basis.get('hours', _NO_TIMES)}"
    if estimate.gpu_hours is None or estimate.devices is None:
        return (
            f"{_amount(estimate.hours)} h of wall time on an unknown number of GPUs (--devices N)"
        )
    gpus = "1 GPU" if estimate.devices == 1 else f"{estimate.devices} GPUs"
    text = f"{_amount(estimate.gpu_hours)} GPU hours ({gpus} for {_amount(estimate.hours)} h)"
    if estimate.idle_gpu_hours:
        text += f", {_amount(estimate.idle_gpu_hours)} of them for rollouts that moved nothing"
    if estimate.money is not None and estimate.gpu_hour_cost is not None:
        text += f"; {_amount(estimate.money)} at {estimate.gpu_hour_cost:g} per GPU hour"
    return text


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
