"""An alert in words: one text for every place that shows plain text."""

from __future__ import annotations

from roledrift.notify.console import printable
from roledrift.records import Alert, RunHeader

_LINE = 400
_PAIR = 300


def subject(alert: Alert, header: RunHeader) -> str:
    """One line: level, run and finding."""
    return printable(f"{alert.level} {header.run}: {alert.title}", 200)


def body(alert: Alert, header: RunHeader, *, texts: bool = False) -> str:
    """Who, since when, how strong, how sure, what was clean, what to do; a line each.

    Args:
        alert: The transition.
        header: Of its run.
        texts: Also the pairs of model texts that the alert carries, shortened.
    """
    lines = [alert.text, _who(alert, header)]
    strong, sure = strength(alert), certainty(alert)
    lines += [line for line in (strong, sure) if line]
    if alert.stops:
        lines.append("This finding stops the run.")
    if alert.checkpoint is not None:
        lines.append(
            f"Last clean checkpoint: step {alert.checkpoint.step}, {alert.checkpoint.path}"
        )
    lines += [f"{number}. {line}" for number, line in enumerate(alert.advice, start=1)]
    for pair in alert.pairs if texts else ():
        before, after = (printable(text, _PAIR) for text in (pair.before, pair.after))
        lines += [f"step {pair.before_step}: {before}", f"step {pair.after_step}: {after}"]
    return "\n".join(printable(line, _LINE) for line in lines if line)


def strength(alert: Alert) -> str:
    """Statistic, value, threshold and baseline, as far as they are there."""
    if alert.value is None:
        return ""
    text = f"{alert.statistic or 'value'} {alert.value:.4g}"
    if alert.threshold is not None:
        text += f", drift from {alert.threshold:.4g}"
    return text + (f", baseline {alert.baseline:.4g}" if alert.baseline is not None else "")


def certainty(alert: Alert) -> str:
    """The evidence and what it is worth; empty if the detector states none."""
    if alert.evidence is None:
        return alert.chance
    return f"evidence {alert.evidence:.4g}" + (f" {alert.chance}" if alert.chance else "")


def _who(alert: Alert, header: RunHeader) -> str:
    whom = f"{alert.role} (policy {alert.policy})" if alert.policy else alert.role
    since = f"{whom}: {alert.finding} since step {alert.onset}, {alert.state} at step {alert.step}"
    return f"{since} [{alert.id}]" + (f" of {header.host}" if header.host else "")
