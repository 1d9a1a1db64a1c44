"""The table of what was wanted: every row measured, for the detectors of now and of before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.detection.figures import (
    Figures,
    both,
    captures,
    detected,
    on_both,
    pooled,
    simulated,
)
from benchmarks.detection.intervals import Share
from benchmarks.detection.judging import HORIZONS, Outcome, Scale
from benchmarks.detection.scores import alarms, cliffs
from benchmarks.detection.simulations.cells import YARDSTICKS
from benchmarks.detection.simulations.healthy import CONDITIONS


@dataclass(frozen=True)
class Goal:
    """One row.

    Attributes:
        what: What is measured.
        before: What the review measured at commit 1031b4e, with other rules and recordings.
        wanted: The goal.
        now: How it is measured.
    """

    what: str
    before: str
    wanted: str
    now: Callable[[Figures], str]


def _role(figures: Figures) -> str:
    return both(on_both(lambda scale: detected(figures.ours, scale)))


def _scaled(figures: Figures) -> str:
    parts = []
    for name in ("movement x 0.1", "movement x 0.01"):
        words = []
        for scale in ("serious", "any"):
            was, now = detected(figures.ours, scale), detected(figures.variants[name], scale)
            led, leads = (
                cliffs(outcome, scale).led for outcome in (figures.ours, figures.variants[name])
            )
            points = 100 * ((now.value or 0) - (was.value or 0))
            words.append(f"{points:+.0f} points, cliffs led {led.hits} -> {leads.hits}")
        parts.append(f"{name.removeprefix('movement ')}: {words[0]} (suspicious too: {words[1]})")
    return "; ".join(parts)


def _led(figures: Figures) -> str:
    return both(on_both(lambda scale: cliffs(figures.ours, scale).led))


def _lead(figures: Figures) -> str:
    serious, any_ = (cliffs(figures.ours, scale).lead for scale in ("serious", "any"))
    return f"{serious.text(100, ' %')}; with suspicious: {any_.text(100, ' %')}"


def _horizons(outcomes: Sequence[Outcome]) -> str:
    def reached(scale: Scale) -> str:
        shares = [detected(outcomes, scale, steps).value for steps in HORIZONS]
        return " / ".join("-" if share is None else f"{100 * share:.0f}" for share in shares) + " %"

    n = detected(outcomes, "any").n
    return f"{reached('serious')}; with suspicious: {reached('any')} (n {n})"


def _cells(*words: str, field: str = "serious") -> Callable[[Figures], str]:
    def text(figures: Figures) -> str:
        return str(pooled(simulated(figures, *words), field))

    return text


def _falls(figures: Figures) -> str:
    rows = simulated(figures, "falls to a tenth")
    least = min(
        (pooled([row], "soon") for row in rows), key=lambda outcome: outcome.value or 0, default=""
    )
    return f"{pooled(rows, 'soon')}; in the worst of {len(rows)} cells {least}"


def _mismatch(figures: Figures) -> str:
    recorded = [
        alarms(figures.variants[f"engine off by {size}"], "any").healthy
        for size in ("2e-3", "1e-2")
    ]
    was = alarms(figures.ours, "any").healthy
    cells = simulated(figures, "engine off by a constant")
    return (
        f"recorded healthy runs with any alert: {was.hits} without, {recorded[0].hits} and "
        f"{recorded[1].hits} of {was.n} with it; simulated {pooled(cells, 'any')}, "
        f"verdicts withheld in {pooled(cells, 'withheld')}"
    )


def _warmups(figures: Figures) -> str:
    recorded = [outcome for outcome in figures.ours if "warmup" in outcome.scenario.name]
    cells = simulated(figures, "warms up for", "learning rate not recorded")
    shares = on_both(lambda scale: Share.of(run.raised[scale] for run in recorded))
    return (
        f"simulated {pooled(cells, 'serious')}; with suspicious: {pooled(cells, 'any')}; "
        f"recorded {both(shares)}"
    )


def _from_start(figures: Figures) -> str:
    recorded = {"alone": figures.ours, **figures.measured_by}
    words = [f"{name} {_sick(outcomes)}" for name, outcomes in recorded.items()]
    cells = [
        f"{yardstick} {pooled(simulated(figures, f'({yardstick})'), 'cause')}"
        for yardstick in YARDSTICKS
    ]
    return f"recorded: {', '.join(words)}; simulated: {', '.join(cells)}"


def _sick(outcomes: Sequence[Outcome]) -> Share:
    return Share.of(
        outcome.reported["any"].ahead is not None
        for outcome in outcomes
        if outcome.truth.family == "from the start" and outcome.counts
    )


def _captures(figures: Figures) -> str:
    parts = [
        f"`{arm}`: lasting ones named {of.lasting}, passing ones told and closed {of.passing}, "
        f"isolated twins {of.twins}"
        for arm, of in captures(figures).items()
    ]
    return "; ".join(parts) or "not recorded"


def _healthy(figures: Figures) -> str:
    recorded = on_both(lambda scale: alarms(figures.ours, scale).healthy)
    longer = ", ".join(
        f"lengthened to {row['steps']} steps {row['serious']}" for row in figures.bootstrap
    )
    return f"{both(recorded)}; {longer}"


def _noise(figures: Figures) -> str:
    names = {condition.name for condition in CONDITIONS}
    rows = [row for row in figures.simulated if row["cell"] in names]
    return f"{pooled(rows, 'serious')}; with suspicious: {pooled(rows, 'any')}"


GOALS = (
    Goal("Right role, failures of the training dynamics", "8/13 (17/25)", ">= 95 %", _role),
    Goal(
        "The same records with every k3, chi², k1 multiplied",
        "x 0.01: right role .79 -> .42, cliffs led 9 -> 0 of 10", "at most 2 points", _scaled,
    ),
    Goal(
        "Cliffs with an alert about the right role before the fall, alerts about accuracy left out",
        "0/10 failing or input problem", ">= 80 %", _led,
    ),
    Goal("Median lead, share of the run", "5.9 %", ">= 10 % over at least 20 cliffs", _lead),
    Goal(
        "Told by onset +3 / +5 / +8 / +12", "0 / 0 / 16 / 36 %", "50 / 80 / 90 / 95 %",
        lambda figures: _horizons(figures.ours),
    ),
    Goal(
        "The same, symptoms alone", "the same", "35 / 60 / 80 / 90 %",
        lambda figures: _horizons(figures.variants["symptoms alone"]),
    ),
    Goal(
        "Single agent, length x2 or x3 with rising accuracy: failing (simulated)", "85 to 100 %",
        "none", _cells("single agent"),
    ),
    Goal(
        "Accuracy falls to a tenth, 30 to 1,000 validation problems: failing within three "
        "validations (simulated)", "1 of 10", ">= 90 %", _falls,
    ),
    Goal(
        "Healthy, engine off by a constant k3 of 2e-3 or 1e-2",
        "5/5 `adapter_not_served`, verdicts withheld", "no alert, nothing withheld", _mismatch,
    ),
    Goal(
        "Healthy, learning-rate warm-up of 15 or 30 steps: failing", "2 to 3 of 10", "none",
        _warmups,
    ),
    Goal(
        "Sick from step 0: right role, any alert but those about accuracy", "silent", ">= 90 %",
        _from_start,
    ),
    Goal(
        "Natural captures", "0 of 2 lasting ones named", ">= 90 % of the lasting ones, 0 twins",
        _captures,
    ),
    Goal(
        "Healthy runs that make `check` exit 1", "3/24 (any alert)",
        "<= 1 in 20, upper bound <= 1 in 10", _healthy,
    ),
    Goal("Healthy simulated runs under noise", "0 to 25 %", "the promised rate", _noise),
)  # fmt: skip


def table(figures: Figures) -> list[str]:
    """A row per goal."""
    rows = [
        f"| {goal.what} | {goal.before} (older rules) | {goal.now(figures)} | {goal.wanted} |"
        for goal in GOALS
    ]
    return ["| | at 1031b4e | now | wanted |", "| --- | --- | --- | --- |", *rows]
