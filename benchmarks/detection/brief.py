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
            found = recall(outcomes, family, scale)
            if not found.injected:
                continue
            by = "  ".join(f"{name} {share}" for name, share in found.by.items())
            lines.append(f"{family} right role {by}")
            lines.append(
                f"    of all {found.injected} injected {found.anyway}; name {found.named}; "
                f"precision {found.precision}; delay {found.delay.text()}"
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
        for one in runs:
            what = one.truth.family if one.counts or not one.told else "no effect"
            delays = "/".join(
                "-" if (delay := one.delay(scale)) is None else f"+{delay}"
                for scale in SCALES
                if one.told
            )
            cliff = "" if one.cliff is None else f" cliff {one.cliff}"
            harm = " harmed" if one.effect.harmed else ""
            told = "; ".join(dict.fromkeys(one.names))
            lines.append(f"{one.name:34s} {what:13s} {delays:8s}{cliff}{harm}  {told}")
    return "\n".join(lines)


def false_alarms(outcomes: Sequence[Outcome]) -> str:
    """What is told of healthy runs, and of hard negatives."""
    quiet = [one for one in outcomes if one.truth.family == "hard negative"]
    return "\n".join(
        f"{one.name}: {'; '.join(dict.fromkeys(one.names))}"
        for one in [*healthy(outcomes), *quiet]
        if one.names
    )
