"""Section "Gradients": how hard each role pulls at the parameters, and in which direction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from roledrift import gram
from roledrift.records import GramRecord, StepRecord
from roledrift.report.curves import line, marks, overlay_panel, role_line
from roledrift.report.draw.palette import TONES
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Block, Figure, Line, Note, Panel, Prose, Section
from roledrift.report.numbers import percent

Curve = dict[int, float]
_METHODS = {
    "exact": "exactly",
    "folded": "folded (random projections of the gradients)",
    "boundary": "as differences at the boundaries between roles",
}

PLACE = 60


def build(run: JudgedRun) -> Section:
    """Build the section."""
    if not any(record.gradients for record in run.records):
        refused = refusals(run.records)
        note = Note(
            f"Role gradients were measured and refused: {refused}."
            if refused
            else "Role gradients were not measured. Attach a gradient probe "
            "(roledrift.capture.gradients, tier business) or hand over Gram matrices with "
            "monitor.add_gradients. Without them it is unknown whether one role outweighs "
            "the others."
        )
        return Section("gradients", "Gradients", (note,), "refused" if refused else "not measured")
    norms: dict[str, Curve] = {}
    shares: dict[str, Curve] = {}
    cosines: dict[str, Curve] = {}
    kappas: dict[str, Curve] = {}
    for record in run.records:
        for measured in record.gradients:
            _read(measured, record.step, norms, shares, cosines)
            for role, slots in gram.slots_of(measured).items():
                kappa = gram.coherence(measured, slots)
                if len(slots) > 1 and math.isfinite(kappa):
                    kappas.setdefault(role, {})[record.step] = kappa
    panels = [_norms(run, norms)]
    if shares:
        panels += _mass(run, shares)
    if cosines:
        panels.append(_cosines(run, cosines))
    if kappas:
        panels.append(_coherence(run, kappas))
    blocks: list[Block] = [
        Prose(_method(run)),
        Figure(f"{run.key}-gradient-curves", "", "", tuple(panels)),
    ]
    if not shares:
        blocks.append(Note("No two roles share a policy, so there is no share to compare."))
    summary = f"measured in {len(next(iter(norms.values())))} records"
    return Section("gradients", "Gradients", tuple(blocks), summary)


def _read(
    record: GramRecord,
    step: int,
    norms: dict[str, Curve],
    shares: dict[str, Curve],
    cosines: dict[str, Curve],
) -> None:
    roles = gram.by_role(record)
    mass, cosine = gram.mass_shares(roles), gram.cosines(roles)
    for index, (role, norm) in enumerate(zip(roles.labels, gram.norms(roles), strict=True)):
        norms.setdefault(role, {})[step] = float(norm)
        if len(roles.labels) > 1 and np.isfinite(mass[index]):
            shares.setdefault(role, {})[step] = float(mass[index])
    for (i, a), (j, b) in combinations(enumerate(roles.labels), 2):
        if np.isfinite(cosine[i, j]):
            cosines.setdefault(f"{a} · {b}", {})[step] = float(cosine[i, j])


def _method(run: JudgedRun) -> str:
    used: dict[str, float] = {}
    for record in run.records:
        for measured in record.gradients:
            error = max(used.get(measured.method, 0.0), measured.relative_error)
            used[measured.method] = error
    words = [
        f"{_METHODS.get(method, method)}"
        + (f", relative standard error of a norm {percent(error)}" if error else "")
        for method, error in sorted(used.items())
    ]
    steps = sum(bool(record.gradients) for record in run.records)
    refused = refusals(run.records)
    return (
        f"How they were measured: {'; '.join(words)}. Before clipping, in {steps} of "
        f"{len(run.records)} records. {closure(run.records)}"
        + (f" Refused: {refused}." if refused else "")
    )


def closure(records: Sequence[StepRecord]) -> str:
    """Say how much of the gradient the roles' parts cover; empty without gradients."""
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
    """Say why gradient records were refused and how often; empty if none was."""
    times: Counter[str] = Counter()
    for record in records:
        for fault, count in record.faults.items():
            if fault.startswith("role gradients of ") and " refused: " in fault:
                times[fault.removeprefix("role gradients of ")] += count
    return "; ".join(f"{what} ({count} times)" for what, count in times.most_common())


def _ordered(run: JudgedRun, curves: dict[str, Curve]) -> dict[str, Curve]:
    known = {role: curves[role] for role in run.roles if role in curves}
    return {**known, **{role: curve for role, curve in curves.items() if role not in known}}


def _norms(run: JudgedRun, curves: dict[str, Curve]) -> Panel:
    shown = overlay_panel(run, "Gradient norm, before clipping", _ordered(run, curves), log=True)
    healthy = "Healthy: level, and no role far above the others for long."
    return replace(shown, note=" ".join(filter(None, (healthy, shown.note))))


def _token_share(run: JudgedRun, roles: Sequence[str]) -> dict[str, Curve]:
    shares: dict[str, Curve] = {}
    for record in run.records:
        stats = {role: record.stat(role, "length") for role in roles}
        tokens = {role: stat.n * stat.mean for role, stat in stats.items() if stat and stat.n}
        total = sum(tokens.values())
        if total > 0 and math.isfinite(total):
            for role, own in tokens.items():
                shares.setdefault(role, {})[record.step] = own / total
    return shares


def _mass(run: JudgedRun, shares: dict[str, Curve]) -> list[Panel]:
    """The share of the gradient beside the share of tokens, role by role: they are compared."""
    tokens = _token_share(run, tuple(shares))
    panels = []
    for role, curve in _ordered(run, shares).items():
        lines = [role_line(run, role, curve, label="gradient")]
        if role in tokens:
            lines.append(line("tokens", tokens[role], style="other"))
        panels.append(
            Panel(
                f"Share of gradient mass, {role}",
                tuple(lines),
                run.span,
                limits=(0.0, 1.02),
                baseline=run.baseline,
                marks=marks(run),
                note="Healthy: close to its share of tokens; far above it, it steers the policy.",
            )
        )
    return panels


def _cosines(run: JudgedRun, cosines: dict[str, Curve]) -> Panel:
    lines = (
        line(pair, curve, tone=at % len(TONES)) for at, (pair, curve) in enumerate(cosines.items())
    )
    return Panel(
        "Cosine between roles' gradients",
        tuple(lines),
        run.span,
        limits=(-1.0, 1.0),
        baseline=run.baseline,
        marks=marks(run),
        note="Below 0 the roles pull against each other. Healthy: not below 0 for long.",
    )


def _coherence(run: JudgedRun, kappas: dict[str, Curve]) -> Panel:
    slots = max((run.header.workflow.role(role).slots for role in kappas if role in run.roles),
                default=2)  # fmt: skip
    ceiling = math.sqrt(max(slots, 2))
    limit = Line(f"ceiling √{slots}", run.span, (ceiling, ceiling), style="limit")
    shown = overlay_panel(run, "Coherence of slots (kappa)", _ordered(run, kappas), limit=(limit,))
    healthy = "1: the slots' gradients are orthogonal; √N: identical. Healthy: no steady climb."
    return replace(shown, limits=(0.0, 1.08 * ceiling), note=healthy)
