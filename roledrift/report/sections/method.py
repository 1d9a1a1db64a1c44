"""Method: what the numbers mean, how they were judged, and how to make the page again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from roledrift.config import Config
from roledrift.report.model import Block, Cell, Prose, Section, Table
from roledrift.report.numbers import number
from roledrift.report.sections.names import detector_name, role_name, statistic_name
from roledrift.report.view import View

_FORMULAS = (
    ("d", "log-probability of a token under the policy in question minus the one compared with"),
    ("chi²", "mean over tokens of exp(d)² - 1; d is clipped to ±20 first"),
    (
        "k3",
        "mean over tokens of exp(d) - d - 1, an estimate of the KL divergence that is never "
        "negative",
    ),
    ("update", "d is taken between after and before the optimizer step, on re-scored answers"),
    ("rollout", "d is taken between the trainer and the rollout engine"),
    ("perplexity", "mean over answers of exp(mean negative log-probability per token)"),
    (
        "entropy, clipped",
        "sums over all tokens of a role divided by their number; never a mean of means",
    ),
    ("groups without signal", "share of advantage groups in which all rewards are equal"),
    (
        "gradient share",
        "squared norm of a role's gradient over the sum of squared norms within one policy",
    ),
    (
        "coherence kappa",
        "norm of the sum of slot gradients over the root of the sum of their "
        "squared norms: 1 for orthogonal, √N for identical gradients",
    ),
    ("before, baseline", "means over the records of the baseline window"),
    ("onset", "first step of the excursion that led to an alert; the alert itself comes later"),
)

DESCRIPTIONS: Mapping[str, str] = {
    "length_inflation": "Compares the length of a role's answers with the run's own baseline. An "
    "alert needs a large ratio that persists and a cumulated deviation that noise does not reach.",
    "sp_role_capture": "Asks how far a role has gone from its own baseline toward the way another "
    "role under the same policy writes.",
    "gradient_amplification": "Asks whether the role with several slots moves much faster than at "
    "the start while the other roles stay steady, and whether its slots' gradients agree on the "
    "same problems more than on different ones.",
    "policy_drift": "Asks of every role whether its policy moves much faster than at the start, "
    "and whether all of them do.",
    "accuracy_cliff": "Compares accuracy with its own best so far. A fall must be large against "
    "the best and against the noise, and still be there at the next value.",
    "entropy_collapse": "Asks whether a role's entropy is next to nothing while nothing was gained "
    "by it; an entropy that doubles is told as an explosion.",
    "diversity_collapse": "Asks whether the slots of a role have come to agree where they are "
    "wrong: the same wrong answers, the same words, fewer openings.",
    "lazy_role": "Asks whether a judge always gives one verdict, a selecting role one answer, or a "
    "synthesizing role nothing but its input.",
    "hygiene": "Checks every record for input that cannot be judged: rows twice, log-probabilities "
    "of two kinds, an adapter that is not served or not updated, answers cut off. Verdicts that "
    "rest on it are withheld.",
    "echo_trap": "Counts three signs: alike rewards within groups, fallen entropy, a spike of the "
    "gradient norm. All three, without gain, make the name.",
}


def build(view: View, command: str) -> Section:
    """The method section."""
    blocks: list[Block] = [
        Prose(command, title="Make this page again"),
        _detectors(view),
        Table(
            ("word", "meaning"),
            tuple((Cell(word), Cell(meaning)) for word, meaning in _FORMULAS),
            title="Words and formulas",
            collapsed=True,
        ),
        _settings(view),
        _versions(view),
    ]
    return Section("method", "Method", tuple(blocks))


def _detectors(view: View) -> Table:
    thresholds: dict[str, list[str]] = {}
    for one in view.verdicts:
        if one.threshold is not None:
            thresholds.setdefault(one.detector, []).append(
                f"{role_name(one.role)}: {statistic_name(one.statistic)} {number(one.threshold)}"
            )
    names = tuple(dict.fromkeys(one.detector for one in view.verdicts))
    rows = tuple(
        (
            Cell(detector_name(name)),
            Cell(DESCRIPTIONS.get(name, "brought by another distribution")),
            Cell("; ".join(thresholds.get(name, ())) or "–"),
        )
        for name in names
    )
    return Table(("detector", "what it does", "drift begins at"), rows, title="Detectors")


def _settings(view: View) -> Table:
    defaults = dict(_flat(Config()))
    rows = tuple(
        (
            Cell(key),
            Cell(_shown(value)),
            Cell(
                "default" if defaults.get(key) == value else f"set; default {_shown(defaults[key])}"
            ),
        )
        for key, value in _flat(view.config)
    )
    return Table(("setting", "value", "where from"), rows, title="Configuration", collapsed=True)


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for one in fields(value):
        inner = getattr(value, one.name)
        name = f"{path}.{one.name}" if path else one.name
        if is_dataclass(inner):
            yield from _flat(inner, name)
        else:
            yield name, inner


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {one}" for name, one in value.items()) or "none"
    return str(value)


def _versions(view: View) -> Table:
    header = view.header
    rows = [(Cell(name), Cell(version)) for name, version in sorted(header.versions.items())]
    known = (("host", header.host), ("created", header.created), ("run", header.run))
    rows += [(Cell(name), Cell(value)) for name, value in known if value]
    return Table(("what", "version"), tuple(rows), title="Versions", collapsed=True)
