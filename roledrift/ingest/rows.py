"""What every reader of a foreign format yields: spans, series, and the end of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roledrift.spans import Kind

_CLAMP = 20.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Sums over one span of a comparison; the fields are those of ``spans.Comparison``."""

    kind: Kind
    tokens: int
    a: float
    b: float
    chi2: float
    k3: float
    peak: float
    temperature_a: float | None = None
    temperature_b: float | None = None
    steps_between: int | None = None


@dataclass(slots=True)
class SpanRow:
    """One output of one role as far as the source knows it; None is unknown and stays missing.

    Attributes:
        step: Optimizer iteration that the source gives.
        role: Role name, already mapped.
        slot: Copy of the role within its episode.
        prompt: Name of the problem; ``episode`` and ``group`` (advantage group) likewise.
        entropy: Sum over the ``scored`` tokens; so is ``nll``.
        shares: Yes-or-no facts that become statistics of their own, for example ``correct``.
    """

    step: int
    role: str
    slot: int | None = None
    turn: int | None = None
    prompt: str | None = None
    episode: str | None = None
    group: str | None = None
    tokens: int | None = None
    truncated: bool | None = None
    reward: float | None = None
    advantage: float | None = None
    scored: int | None = None
    nll: float | None = None
    entropy: float | None = None
    nonfinite: int | None = None
    text: str | None = None
    prompt_text: str = ""
    pairs: tuple[Pair, ...] = ()
    shares: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers that the source measured itself, of one step.

    Attributes:
        groups: ``{role or "*": {statistic: value}}``.
        totals: Numbers of the whole step.
        labels: Facts about how they came about.
    """

    step: int
    groups: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepDone:
    """Nothing more will come for this step: it is measured and let go of."""

    step: int


Event = SpanRow | Series | StepDone
Events = Iterator[Event]


def floats(values: object) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """A list of numbers as an array; None if it is no list of numbers. None inside becomes NaN."""
    if not isinstance(values, list | tuple | np.ndarray):
        return None
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.ndim == 1 else None


def pair(
    kind: Kind,
    a_T: Sequence[float] | np.ndarray[Any, Any],
    b_T: Sequence[float] | np.ndarray[Any, Any],
    *,
    temperatures: tuple[float | None, float | None] = (None, None),
    steps_between: int | None = None,
) -> Pair:
    """Sums over the tokens of one span; ``a`` is the policy in question, ``b`` what it is held to.

    Tokens of which either log-probability is not finite are left out, as they are live.
    """
    a, b = np.asarray(a_T, dtype=np.float64), np.asarray(b_T, dtype=np.float64)
    good = np.isfinite(a) & np.isfinite(b)
    a, b = a[good], b[good]
    d = a - b
    rho = np.exp(np.clip(d, -_CLAMP, _CLAMP))
    with np.errstate(over="ignore"):
        k3 = float((np.exp(d) - d - 1).sum())
    return Pair(
        kind=kind,
        tokens=int(good.sum()),
        a=float(a.sum()),
        b=float(b.sum()),
        chi2=float((rho * rho - 1).sum()),
        k3=k3,
        peak=float(np.abs(d).max()) if d.size else 0.0,
        temperature_a=temperatures[0],
        temperature_b=temperatures[1],
        steps_between=steps_between,
    )
