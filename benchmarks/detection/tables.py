"""The results as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.detection.figures import Against, Captures, Figures, best, captures, detected
from benchmarks.detection.judging import SCALES, Outcome, Scale
from benchmarks.detection.labels import Family
from benchmarks.detection.scores import alarms, by_scenario, cliffs, recall

FAMILIES: Mapping[Family, str] = {
    "dynamics": "training dynamics, from step 13 on",
    "from the start": "training dynamics, from step 1 on",
    "input": "input faults",
}
WORDS: Mapping[Scale, str] = {
    "serious": "failing or input problem",
    "any": "suspicious too",
}


def summary(figures: Figures) -> list[str]:
    """What a reader wants first."""
    ours = figures.ours
    lines = []
    for scale, words in WORDS.items():
        dynamics = recall(ours, "dynamics", scale)
        wrong, fell = alarms(ours, scale), cliffs(ours, scale)
        by = ", ".join(f"{name[1:]} steps {_percent(x.value)}" for name, x in dynamics.by.items())
        by = by.replace("nd steps", "the end of the run")
        lines += [
            f"* **Alerts that count: {words}.** Of {dynamics.by['end'].n} failures of the training "
            f"dynamics, {dynamics.by['end']} are reported with the right role (after the onset, "
            f"within {by}). Input faults: {recall(ours, 'input', scale).by['end']}. Where an "
            f"accuracy cliff follows that can be led, an alert about the right role precedes it in "
            f"{fell.led}, by {fell.lead.text(100, ' % of the run')} in the median. Healthy runs "
            f"with such an alert: {wrong.healthy}.",
        ]
    return lines


def families(outcomes: Sequence[Outcome]) -> list[str]:
    """Recall by kind of failure, scale and time."""
    lines = [
        "| failures | alerts that count | +3 | +5 | +8 | +12 | end of run | of all with the fault "
        "| right name | of what is told: right | delay, steps |",
        "| --- | --- |" + " ---: |" * 9,
    ]
    for family, words in FAMILIES.items():
        for scale in SCALES:
            of = recall(outcomes, family, scale)
            if not of.injected:
                continue
            cells = [*map(str, of.by.values()), str(of.anyway), str(of.named), str(of.precision)]
            lines.append(
                f"| {words} | {WORDS[scale]} | " + " | ".join(cells) + f" | {of.delay.text()} |"
            )
    return lines


def wrong(outcomes: Sequence[Outcome]) -> list[str]:
    """What is told where nothing is wrong."""
    lines = [
        "| alerts that count | healthy runs with one | hard negatives with one |",
        "| --- |" * 3,
    ]
    lines[1] = "| --- | ---: | ---: |"
    for scale, words in WORDS.items():
        of = alarms(outcomes, scale)
        lines.append(f"| {words} | {of.healthy} | {of.hard} ({of.harmful} more left out) |")
    return lines


def rivals(figures: Figures) -> list[str]:
    """Ours beside the rivals, on either scale."""
    lines = [
        "| alerts that count | method | dynamics +3 | +8 | end | input faults | before the cliff | "
        "median lead | healthy runs | hard negatives | only ours / only theirs, p |",
        "| --- | --- |" + " ---: |" * 9,
    ]
    for scale in SCALES:
        lines.append(_method("**roledrift**", figures.ours, scale, None))
        lead = best(figures.rivals[scale], scale).name
        for rival in figures.rivals[scale]:
            name = f"*{rival.name}*" if rival.name == lead else rival.name
            lines.append(_method(name, rival.outcomes, scale, rival))
    return lines


def _method(name: str, outcomes: Sequence[Outcome], scale: Scale, rival: Against | None) -> str:
    wrong, fell = alarms(outcomes, scale), cliffs(outcomes, scale)
    cells = [
        WORDS[scale],
        name,
        *(str(detected(outcomes, scale, steps)) for steps in (3, 8, None)),
        str(recall(outcomes, "input", scale).by["end"]),
        str(fell.led),
        fell.lead.text(100, " %"),
        str(wrong.healthy),
        str(wrong.hard),
        "" if rival is None else f"{rival.gained} / {rival.lost}, {rival.p:.2g}",
    ]
    return "| " + " | ".join(cells) + " |"


def natural(figures: Figures) -> list[str]:
    """Captures that arise by themselves."""
    lines = [
        "| scenario | lasting: named | lasting: told | passing: told and closed | none: named | "
        "isolated twins: named |",
        "| --- |" + " ---: |" * 5,
    ]
    for arm, of in captures(figures).items():
        cells = [str(getattr(of, name)) for name in Captures.__dataclass_fields__]
        lines.append(f"| `{arm}` | " + " | ".join(cells) + " |")
    return lines


def lengthened(figures: Figures) -> list[str]:
    """Recorded healthy runs, lengthened by drawing blocks of them again."""
    lines = [
        "| steps | failing or input problem | any alert | told |",
        "| ---: | ---: | ---: | --- |",
    ]
    for row in figures.bootstrap:
        lines.append(f"| {row['steps']} | {row['serious']} | {row['any']} | {row['told']} |")
    return lines


def simulated(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Every simulated cell."""
    lines = [
        "| cell | | failing or input problem | any alert | before the fall, any | before the fall, "
        "failing | accuracy within 3 validations | delay | told |",
        "| --- | --- |" + " ---: |" * 6 + " --- |",
    ]
    for row in rows:
        cells = [
            row["cell"],
            "failing" if row["failing"] else "healthy",
            *(_stored(row[name]) for name in ("serious", "any", "ahead", "ahead_serious", "soon")),
            "" if row["delay"]["median"] is None else f"{row['delay']['median']:.0f}",
            row["told"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def scenarios(outcomes: Iterable[Outcome]) -> list[str]:
    """Run by run, by scenario."""
    lines = [
        "| scenario | | runs | right role: failing / any | delays (any) | cliffs | told |",
        "| --- | --- | ---: | ---: | --- | ---: | --- |",
    ]
    for name, runs in by_scenario(outcomes).items():
        first = runs[0]
        some = [outcome for outcome in runs if outcome.counts] if first.reported else runs
        idle = len(runs) - len(some)
        shares = " / ".join(
            str(sum(run.by(scale, None) for run in some)) for scale in SCALES if first.reported
        )
        delays = [
            str(delay) for run in some if run.reported and (delay := run.delay("any")) is not None
        ]
        counts: Counter[str] = Counter()
        for outcome in runs:
            counts.update(set(outcome.names))
        named = "; ".join(f"{times}x {what}" for what, times in counts.most_common(8))
        cells = [
            f"`{name}`: {first.scenario.about}",
            first.truth.family,
            f"{len(some)} (+{idle} without effect)" if idle else str(len(some)),
            shares,
            ", ".join(delays),
            str(sum(outcome.cliff is not None for outcome in runs)),
            named,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _stored(share: Mapping[str, float] | None) -> str:
    if not share or not share["n"]:
        return ""
    return f"{share['hits']}/{share['n']} [{100 * share['low']:.0f}, {100 * share['high']:.0f}]"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
