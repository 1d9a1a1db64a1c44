"""A short account for the terminal while detectors are being built."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.detection.intervals import Share
from benchmarks.detection.judging import SCALES, Outcome, Scale
from benchmarks.detection.scores import alarms, by_scenario, cliffs, healthy, recall


def brief(outcomes: Sequence[Outcome], title: str) -> str:
    """All figures of one method or variant."""
    lines = [f"== {title}"]
    for scale in SCALES:
        lines.append(f"-- {'failing or input problem' if scale == 'serious' else 'any alert'}")
        for family in ("dynamics", "from the start", "input", "capture"):
            shares = recall(outcomes, family, scale)
            if not shares.injected:
                continue
            by = "  ".join(f"{name} {share}" for name, share in shares.by.items())
            lines.append(f"{family} right role {by}")
            lines.append(
                f"    of all {shares.injected} injected {shares.anyway}; name {shares.named}; "
                f"precision {shares.precision}; delay {shares.delay.text()}"
            )
        fell = cliffs(outcomes, scale)
        lines.append(
            f"cliffs {fell.all}, told ahead {fell.led}, lead {fell.lead.text(100, ' % of the run')}"
        )
        wrong = alarms(outcomes, scale)
        lines.append(
            f"healthy runs with an alert {wrong.healthy}; hard negatives {wrong.hard} "
            f"({wrong.harmful} more ended worse than their twins)"
        )
    return "\n".join(lines)


def line(outcomes: Sequence[Outcome], title: str, scale: Scale) -> str:
    """One line of one method on one scale."""
    parts = []
    for family in ("dynamics", "from the start", "input"):
        by = recall(outcomes, family, scale).by
        shares = " ".join(f"{name} {_percent(share)}" for name, share in by.items())
        parts.append(f"{family} {shares} (n {by['end'].n})")
    fell, wrong = cliffs(outcomes, scale), alarms(outcomes, scale)
    parts.append(f"ahead {fell.led}, lead {fell.lead.text(100, ' %')}")
    parts.append(f"healthy {wrong.healthy}, hard {wrong.hard}")
    return f"{title}: " + "; ".join(parts)


def _percent(share: Share) -> str:
    return "-" if share.value is None else f"{100 * share.value:.0f}"


def by_run(outcomes: Sequence[Outcome]) -> str:
    """One line per run: what was told, how late, what followed."""
    lines = []
    for runs in by_scenario(outcomes).values():
        for outcome in runs:
            what = outcome.truth.family if outcome.counts or not outcome.reported else "no effect"
            delays = "/".join(
                "-" if (delay := outcome.delay(scale)) is None else f"+{delay}"
                for scale in SCALES
                if outcome.reported
            )
            cliff = "" if outcome.cliff is None else f" cliff {outcome.cliff}"
            harm = " harmed" if outcome.effect.harmed else ""
            names = "; ".join(dict.fromkeys(outcome.names))
            lines.append(f"{outcome.name:34s} {what:13s} {delays:8s}{cliff}{harm}  {names}")
    return "\n".join(lines)


def false_alarms(outcomes: Sequence[Outcome]) -> str:
    """What is told of healthy runs, and of hard negatives."""
    quiet = [outcome for outcome in outcomes if outcome.truth.family == "hard negative"]
    return "\n".join(
        f"{outcome.name}: {'; '.join(dict.fromkeys(outcome.names))}"
        for outcome in [*healthy(outcomes), *quiet]
        if outcome.names
    )
