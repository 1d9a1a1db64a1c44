"""A notice in words: the same text for every place that shows plain text."""

from __future__ import annotations

from roledrift.judgement import Alert
from roledrift.notices import Notice
from roledrift.notify.console import printable
from roledrift.records import RunHeader
from roledrift.sums import EVERYONE

_SUBJECT, _SENTENCE, _LINE, _PAIR = 200, 1200, 400, 300


def title(notice: Notice) -> str:
    """Say in a few words how bad it is, in which role, what, and since when."""
    if notice.incident is None:
        return printable(f"{notice.change}: {notice.text}", _SUBJECT)
    incident = notice.incident
    who = "all roles" if incident.role == EVERYONE else incident.role
    what = "closed" if notice.severity is None else notice.severity
    return printable(f"{what}: {who}, {incident.finding} since step {incident.onset}", _SUBJECT)


def subject(notice: Notice, header: RunHeader) -> str:
    """Name the run and the title on one line."""
    return printable(f"{header.run} {title(notice)}", _SUBJECT)


def body(notice: Notice, header: RunHeader, *, texts: bool = False) -> str:
    """Write the incident's sentence, its evidence, its checkpoint and its plan, a line each."""
    lines = [printable(notice.text, _SENTENCE)]
    if notice.change == "followed":
        return "\n".join((*lines, _who(notice, header)))
    alert, incident = notice.alert, notice.incident
    evidence = alert.text if alert is not None else ""
    checkpoint = alert.checkpoint if alert is not None else None
    advice = alert.advice if alert is not None else ()
    if incident is not None:
        evidence, checkpoint, advice = incident.evidence, incident.checkpoint, incident.advice
    lines.append(evidence)
    if alert is not None:
        lines += [strength(alert), certainty(alert)]
    if notice.stops:
        lines.append("This finding stops the run.")
    if notice.severity is not None:
        if checkpoint is not None:
            lines.append(f"Last clean checkpoint: step {checkpoint.step}, {checkpoint.path}")
        lines += [f"{number}. {line}" for number, line in enumerate(advice, start=1)]
    for pair in alert.pairs if texts and alert is not None else ():
        before, after = (printable(text, _PAIR) for text in (pair.before, pair.after))
        lines += [f"step {pair.before_step}: {before}", f"step {pair.after_step}: {after}"]
    lines.append(_who(notice, header))
    first, *others = (line for line in lines if line)
    return "\n".join((first, *(printable(line, _LINE) for line in others)))


def strength(alert: Alert) -> str:
    """List statistic, value, threshold and baseline, as far as they are known."""
    if alert.value is None:
        return ""
    text = f"{alert.statistic or 'value'} {alert.value:.4g}"
    if alert.threshold is not None:
        text += f", limit {alert.threshold:.4g}"
    return text + (f", baseline {alert.baseline:.4g}" if alert.baseline is not None else "")


def certainty(alert: Alert) -> str:
    """Say how strong the evidence is and what that means; empty if the detector does not."""
    if alert.evidence is None:
        return alert.chance
    return f"evidence {alert.evidence:.4g}" + (f" {alert.chance}" if alert.chance else "")


def _who(notice: Notice, header: RunHeader) -> str:
    which = f", incident {notice.incident.id}" if notice.incident is not None else ""
    run = f"Run {header.run}, step {notice.step}{which}"
    return printable(run + (f" of {header.host}" if header.host else ""), _LINE) + "."
