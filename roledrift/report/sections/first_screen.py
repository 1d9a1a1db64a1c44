"""The first screen: the chart of the cause, accuracy below, texts before and after, one action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roledrift.records import Sample
from roledrift.report.curves import limits, line, overlay_panel
from roledrift.report.judged_run import REWARD, JudgedRun, ReportedFinding
from roledrift.report.model import (
    Advice,
    Block,
    Diff,
    Figure,
    Mark,
    Note,
    Pairs,
    Panel,
    Section,
)
from roledrift.report.numbers import number
from roledrift.report.sections.evidence import evidence_of
from roledrift.report.sections.names import plain_words, role_name
from roledrift.report.texts.excerpts import of_role
from roledrift.report.texts.text_pairs import compare, pairs_around_onset, pairs_of_alert
from roledrift.sums import EVERYONE

_ACCURACY = "accuracy"

PLACE = 10


def build(run: JudgedRun) -> Section:
    """Build the first section of a run, which is always open."""
    finding = run.findings[0] if run.conclusion.incident is not None and run.findings else None
    blocks: list[Block] = []
    if (action := _action(run)) is not None:
        blocks.append(action)
    blocks += _figure(run, finding)
    blocks += _texts(run, finding)
    return Section("summary", "Summary", tuple(blocks), opened=True)


def lead(run: JudgedRun) -> str:
    """Shorten the headline to the cause, without its consequences and the damage."""
    incident, headline = run.conclusion.incident, run.conclusion.sentence
    if incident is None:
        return headline
    damage = incident.damage[:1].upper() + incident.damage[1:]
    followed = [consequence.text for consequence in incident.consequences] + (
        [damage] if damage else []
    )
    ends = [at for sentence in followed if (at := headline.find(f" {sentence}.")) > 0]
    return headline[: min(ends)] if ends else headline


def notices(run: JudgedRun) -> tuple[str, ...]:
    """List caveats to the verdict: how the run ended, what was done to it, what was not judged."""
    sentences = []
    if run.state == "open" and run.records:
        last = run.records[-1]
        when = f", written {last.time}" if last.time else ""
        sentences.append(
            f"This run was not closed: it crashed, was killed, or is still running. Its last "
            f"record is step {last.step}{when}."
        )
    stress = run.header.notes.get("stress", "none")
    if stress != "none":
        sentences.append(f"This run was disturbed on purpose: {stress}.")
    if any(record.labels.get("source") == "foreign" for record in run.records):
        whose = f" of {run.header.host}" if run.header.host else ""
        sentences.append(
            f"Imported from a log{whose}: what it does not hold cannot be judged. The verdicts say "
            "what is needed; watch the next run live to get it."
        )
    return tuple(sentences)


def _action(run: JudgedRun) -> Advice | None:
    """The plan of the open incident, or what would lead to a verdict."""
    incident = run.conclusion.incident
    if incident is not None:
        wanted = incident.state == "open" and incident.advice
        return Advice("Do this", incident.advice) if wanted else None
    if run.conclusion.outcome == "no verdict" and run.conclusion.needs:
        needs = plain_words(f"record {', '.join(run.conclusion.needs)}")
        return Advice("To get a verdict", (needs,))
    return None


def _figure(run: JudgedRun, finding: ReportedFinding | None) -> list[Block]:
    """The cause above, accuracy below, on one axis of steps."""
    if not run.records:
        return [Note("No steps are recorded yet.")]
    marks = _marks(run, finding)
    panels = []
    if finding is not None:
        shown = evidence_of(run, finding.alert)
        if shown.curves:
            cause = overlay_panel(run, shown.title, shown.curves, log=shown.log, share=shown.share,
                             marked=marks)  # fmt: skip
            panels.append(cause)
    accuracy = _accuracy(run, marks)
    # A cause that is the accuracy itself is not drawn twice.
    if accuracy is not None and not (panels and finding is not None and _is_accuracy(finding)):
        panels.append(accuracy)
    if len(panels) < 2:
        panels += _others(run, marks, 2 - len(panels), [panel.title for panel in panels])
    if not panels:
        return [Note("Neither a statistic of a role nor an accuracy or reward was recorded.")]
    room = max(len(line.label) for panel in panels for line in panel.lines)
    together = tuple(replace(panel, margin=room) for panel in panels)
    caption = "Shaded: the start that the run is compared with." if run.baseline else ""
    return [Figure(f"{run.key}-cause", "", caption, together, stacked=True)]


def _is_accuracy(finding: ReportedFinding) -> bool:
    return finding.alert.role == EVERYONE and _ACCURACY in finding.alert.statistic


def _marks(run: JudgedRun, finding: ReportedFinding | None) -> tuple[Mark, ...]:
    if finding is None:
        return ()
    onset = finding.alert.onset
    marks = [Mark(onset, f"onset {onset}")]
    incident = run.conclusion.incident
    reported = finding.raised if incident is None else incident.reported
    if reported != onset:
        marks.append(Mark(reported, f"alert {reported}"))
    kept = None if incident is None else incident.checkpoint
    if kept is not None:
        marks.append(Mark(kept.step, f"checkpoint {kept.step}", mild=True))
    return tuple(sorted(marks, key=lambda mark: mark.step))


def _accuracy(run: JudgedRun, marks: tuple[Mark, ...]) -> Panel | None:
    """Validation accuracy, with that in training behind it; the reward where there is neither."""
    training, lines = run.total(_ACCURACY), []
    if run.validation:
        lines.append(line("validation", run.validation))
    if training:
        lines.append(line("training", training, style="other" if lines else "main"))
    title, note = "Accuracy", _best(run.validation)
    if not lines:
        if not run.reward:
            return None
        title, lines, note = "Reward", [line(REWARD, run.reward)], _best(run.reward)
    panel = Panel(title, tuple(lines), run.span, baseline=run.baseline, marks=marks, note=note)
    return replace(panel, limits=limits([panel], log=False, share=title == "Accuracy"))


def _best(curve: Mapping[int, float]) -> str:
    """Where it was best and where it ended; nothing for a single point."""
    if len(curve) < 2:
        return ""
    best = max(sorted(curve), key=lambda step: curve[step])
    last = max(curve)
    if best == last:
        return f"Best at the end: {number(curve[last])} at step {last}."
    return f"Best {number(curve[best])} at step {best}; {number(curve[last])} at step {last}."


def _others(run: JudgedRun, marks: tuple[Mark, ...], most: int, titles: list[str]) -> list[Panel]:
    """What a run without a cause shows: the reward and the lengths of its roles."""
    panels = []
    for name, title in (
        ("length", f"Response length, {run.length_unit}, mean"),
        (REWARD, "Reward"),
    ):
        curves = {role: curve for role in run.roles if (curve := run.curve(role, name))}
        if curves and title not in titles:
            panels.append(overlay_panel(run, title, curves, marked=marks))
    return panels[:most]


def _texts(run: JudgedRun, finding: ReportedFinding | None) -> list[Block]:
    if finding is None:
        pair = _ends(run)
        return [Pairs("The first and the last text kept", (pair,))] if pair else []
    # All roles together write nothing: then the first role that is accused shows it, or any.
    accused = [finding for finding in run.findings if finding.alert.role != EVERYONE]
    aware = [finding, *accused] if finding.alert.role != EVERYONE else accused
    anchor = f"{run.key}-before"
    for candidate in aware:
        at = replace(candidate, alert=replace(candidate.alert, onset=finding.alert.onset))
        pairs = pairs_around_onset(run, at, anchor, 1) or pairs_of_alert(run, at, anchor)[:1]
        if pairs:
            role = role_name(candidate.alert.role)
            return [Pairs(f"{role[:1].upper()}{role[1:]}, before and after", pairs)]
    return []


def _ends(run: JudgedRun) -> Diff | None:
    """The first and the last text of the role that answers last, on one prompt if it can be."""
    for role in reversed(run.roles):
        texts = of_role(run, role)
        if len({sample.step for sample in texts}) > 1:
            last = texts[-1]
            first = next((sample for sample in texts if _comparable(sample, last)), texts[0])
            own = (f"#{run.key}", f"#{run.key}")
            return compare(f"{run.key}-ends", (first, last), own, when=("first", "last"))
    return None


def _comparable(sample: Sample, last: Sample) -> bool:
    same = (sample.prompt, sample.slot) == (last.prompt, last.slot)
    return bool(sample.prompt) and same and sample.step < last.step
