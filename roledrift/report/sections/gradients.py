"""Gradients: how hard each role pulls at the parameters, and in which direction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from roledrift.records import GramRecord, StepRecord
from roledrift.report.curves import limits, marks, odd_values, panel, role_line, table
from roledrift.report.model import Block, Figure, Heat, Line, Note, Prose, Section
from roledrift.report.numbers import percent
from roledrift.report.view import View, spread, thinned
from roledrift.sums import Gram

Curve = dict[int, float]
_HEAT_STEPS = 120
_METHODS = {
    "exact": "exactly",
    "folded": "folded (random projections of the gradients)",
    "boundary": "as differences at the boundaries between roles",
}


def build(view: View) -> Section:
    """The gradients section."""
    if not any(record.gradients for record in view.records):
        refused = refusals(view.records)
        note = Note(
            f"Role gradients were measured and refused: {refused}."
            if refused
            else "Role gradients were not measured. Attach a gradient probe "
            "(roledrift.capture.gradients, tier business) or hand over Gram matrices with "
            "monitor.add_gradients; without them nobody can tell whether one role outweighs "
            "the others."
        )
        return Section("gradients", "Gradients", (note,))
    norms: dict[str, Curve] = {}
    shares: dict[str, Curve] = {}
    cosines: dict[str, Curve] = {}
    kappas: dict[str, Curve] = {}
    for record in view.records:
        for gram in record.gradients:
            _read(gram, record.step, norms, shares, cosines)
            for role, kappa in coherence(gram).items():
                kappas.setdefault(role, {})[record.step] = kappa
    blocks: list[Block] = [Prose(_method(view)), _norms(view, norms)]
    if shares:
        blocks.append(_mass(view, shares))
    else:
        blocks.append(
            Note("No two roles share a policy, so there is no share of gradient mass to compare.")
        )
    if cosines:
        blocks.append(_cosines(view, cosines))
    blocks.append(_coherence(view, kappas))
    return Section("gradients", "Gradients", tuple(blocks))


def by_role(gram: GramRecord) -> Gram:
    """The Gram matrix between roles: blocks of slots are summed, which is exact."""
    products = np.asarray(gram.products, dtype=np.float64)
    owners = [label.split("/")[0] for label in gram.labels]
    roles = tuple(dict.fromkeys(owners))
    member = np.array([[owner == role for owner in owners] for role in roles], dtype=np.float64)
    return Gram(roles, member @ products @ member.T)


def coherence(gram: GramRecord) -> dict[str, float]:
    """Per role with several slots: ``||sum g_i|| / sqrt(sum ||g_i||²)``.

    It is 1 for orthogonal slots and ``sqrt(N)`` for identical ones.
    """
    products = np.asarray(gram.products, dtype=np.float64)
    owners = [label.split("/")[0] for label in gram.labels]
    found = {}
    for role in dict.fromkeys(owners):
        rows = [index for index, owner in enumerate(owners) if owner == role]
        block = products[np.ix_(rows, rows)]
        mass = float(np.trace(block))
        if len(rows) > 1 and mass > 0:
            found[role] = math.sqrt(max(float(block.sum()), 0.0) / mass)
    return found


def _read(
    gram: GramRecord,
    step: int,
    norms: dict[str, Curve],
    shares: dict[str, Curve],
    cosines: dict[str, Curve],
) -> None:
    whole = by_role(gram)
    squares = np.diag(whole.products)
    mass = float(squares.sum())
    for role, square in zip(whole.labels, squares.tolist(), strict=True):
        norms.setdefault(role, {})[step] = math.sqrt(max(square, 0.0))
        if len(whole.labels) > 1 and mass > 0:
            shares.setdefault(role, {})[step] = square / mass
    for (i, a), (j, b) in combinations(enumerate(whole.labels), 2):
        size = math.sqrt(max(squares[i] * squares[j], 0.0))
        if size > 0:
            value = float(whole.products[i, j]) / size
            cosines.setdefault(f"{a} · {b}", {})[step] = min(max(value, -1.0), 1.0)


def _method(view: View) -> str:
    used: dict[str, float] = {}
    for record in view.records:
        for gram in record.gradients:
            used[gram.method] = max(used.get(gram.method, 0.0), gram.relative_error)
    words = [
        f"{_METHODS.get(method, method)}"
        + (f", relative standard error of a norm {percent(error)}" if error else "")
        for method, error in sorted(used.items())
    ]
    steps = sum(bool(record.gradients) for record in view.records)
    refused = refusals(view.records)
    return (
        f"How they were measured: {'; '.join(words)}. Before clipping, in {steps} of "
        f"{len(view.records)} records. {closure(view.records)}"
        + (f" Refused: {refused}." if refused else "")
    )


def closure(records: Sequence[StepRecord]) -> str:
    """How much of the gradient the roles' parts are, in sentences; empty without gradients."""
    grams = [gram for record in records for gram in record.gradients]
    if not grams:
        return ""
    covered = [gram.covered for gram in grams if gram.covered is not None]
    gaps = [gram.closure for gram in grams if gram.closure is not None]
    if not covered or not gaps:
        return "Whether they add up to the whole gradient was not checked."
    low, high = percent(min(covered)), percent(max(covered))
    words = (
        f"They cover {low if low == high else f'{low} to {high}'} of the gradient's norm and add "
        f"up to it within {percent(max(gaps))}."
    )
    if len(gaps) < len(grams):
        words += f" In {len(grams) - len(gaps)} of {len(grams)} records this was not checked."
    layers = sorted({layer for gram in grams for layer in gram.bypassed})
    if layers:
        more = f" and {len(layers) - 3} more" if len(layers) > 3 else ""
        words += " Not covered, because something uses the weight past its layer: "
        words += f"{', '.join(layers[:3])}{more}."
    return words


def refusals(records: Sequence[StepRecord]) -> str:
    """Why records of gradients were refused, and how often; empty if none was."""
    times: Counter[str] = Counter()
    for record in records:
        for fault, count in record.faults.items():
            if fault.startswith("role gradients of ") and " refused: " in fault:
                times[fault.removeprefix("role gradients of ")] += count
    return "; ".join(f"{what} ({count} times)" for what, count in times.most_common())


def _ordered(view: View, curves: dict[str, Curve]) -> dict[str, Curve]:
    known = {role: curves[role] for role in view.roles if role in curves}
    return {**known, **{role: curve for role, curve in curves.items() if role not in known}}


def _norms(view: View, curves: dict[str, Curve]) -> Figure:
    curves = _ordered(view, curves)
    panels = [
        panel(view, role, [role_line(view, role, curve)], log=True, marks=marks(view, role))
        for role, curve in curves.items()
    ]
    shared = limits(panels, log=True, share=False)
    odd = odd_values(list(curves.values()), log=True)
    return Figure(
        f"{view.key}-gradient-norm",
        "Gradient norm, before clipping, log scale",
        "Healthy: level, and no role far above the others for long."
        + (f" Not drawn: {odd}." if odd else ""),
        tuple(replace(one, limits=shared) for one in panels),
        table(curves, [mark.step for mark in marks(view)]),
    )


def _token_share(view: View, roles: Sequence[str]) -> dict[str, Curve]:
    found: dict[str, Curve] = {}
    for record in view.records:
        stats = {role: record.stat(role, "length") for role in roles}
        tokens = {role: stat.n * stat.mean for role, stat in stats.items() if stat and stat.n}
        total = sum(tokens.values())
        if total > 0 and math.isfinite(total):
            for role, own in tokens.items():
                found.setdefault(role, {})[record.step] = own / total
    return found


def _mass(view: View, shares: dict[str, Curve]) -> Figure:
    shares = _ordered(view, shares)
    tokens = _token_share(view, tuple(shares))
    panels = []
    for role, curve in shares.items():
        lines = [role_line(view, role, curve, label="gradient")]
        if role in tokens:
            kept = thinned(tokens[role])
            lines.append(Line("tokens", tuple(kept), tuple(kept.values()), style="other"))
        panels.append(panel(view, role, lines, limits=(0.0, 1.02), marks=marks(view, role)))
    columns = {f"{role}, gradient": curve for role, curve in shares.items()}
    columns |= {f"{role}, tokens": tokens[role] for role in shares if role in tokens}
    return Figure(
        f"{view.key}-gradient-mass",
        "Share of gradient mass beside share of tokens",
        "Healthy: the two lines run close together. A role whose gradient share is far above its "
        "share of tokens steers the shared policy. Shares are within one policy.",
        tuple(panels),
        table(columns, [mark.step for mark in marks(view)]),
    )


def _cosines(view: View, cosines: dict[str, Curve]) -> Heat:
    steps = sorted({step for curve in cosines.values() for step in curve})
    shown = spread(steps, _HEAT_STEPS, [mark.step for mark in marks(view)])
    thin = "" if len(shown) == len(steps) else f" Shown: {len(shown)} of {len(steps)} steps."
    return Heat(
        f"{view.key}-gradient-cosine",
        "Cosine between roles' gradients",
        "Blue: the roles pull against each other (-1); red: in the same direction (+1). Healthy: "
        f"pale, no lasting blue.{thin}",
        tuple(cosines),
        shown,
        tuple(tuple(curve.get(step, math.nan) for step in shown) for curve in cosines.values()),
        view.span,
        table(cosines, [mark.step for mark in marks(view)]),
    )


def _coherence(view: View, kappas: dict[str, Curve]) -> Block:
    if not kappas:
        return Note(
            "Coherence of slots needs gradients per slot of a role with several slots; this run "
            "has gradients per role only, or no such role."
        )
    panels = []
    for role, curve in _ordered(view, kappas).items():
        slots = view.header.workflow.role(role).slots if role in view.roles else 1
        ceiling = math.sqrt(max(slots, 2))
        ends = view.span
        lines = [
            role_line(view, role, curve),
            Line(f"ceiling √{slots}", ends, (ceiling, ceiling), style="limit"),
        ]
        panels.append(
            panel(view, role, lines, limits=(0.0, 1.08 * ceiling), marks=marks(view, role))
        )
    return Figure(
        f"{view.key}-coherence",
        "Coherence of slots (kappa)",
        "1: the slots' gradients are orthogonal; the ceiling √N: they are identical and add up "
        "to an N times larger step. Healthy: near 1, no steady climb.",
        tuple(panels),
        table(kappas, [mark.step for mark in marks(view)]),
    )
