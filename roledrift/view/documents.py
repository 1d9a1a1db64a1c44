"""The JSON documents that the page asks for, from the server or in a static copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from roledrift.codec import plain
from roledrift.detect.catalogue import all_cards
from roledrift.judgement import Alert, Incident, TextPair
from roledrift.measure.catalogue import statistics
from roledrift.records import Sample
from roledrift.report.sanitise import clean, cut
from roledrift.report.sections.names import statistic_name

SCHEMA = "roledrift.page/1"
LONGEST = 6000
"""Characters of a text that a page shows."""

_STEP_UNITS = {"lr": "learning rate"}


def dumps(document: Mapping[str, Any]) -> bytes:
    """Encode a document as JSON; non-finite numbers become ``null``."""
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_DATACLASS)


def harmless(value: Any) -> Any:
    """Remove control and direction characters from every text in ``value``."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): harmless(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(item) for item in value]
    return value


def statistic(name: str) -> dict[str, Any]:
    """Describe a statistic: its title, its unit, and whether its axis is logarithmic."""
    title, known = statistic_name(name), statistics().get(name)
    return {
        "name": clean(name),
        "title": clean(title[:1].upper() + title[1:]),
        "unit": _STEP_UNITS.get(name, "") if known is None else known.unit.replace(", mean", ""),
        "log": known is not None and known.log,
    }


def incident(found_incident: Incident, alerts: Sequence[Alert]) -> dict[str, Any]:
    """Describe an incident, with the statistics that show its cause, the most telling first."""
    cause = [alert for alert in alerts if alert.id in found_incident.alerts[:1]]
    reads = [name for card in all_cards().cards for alert in cause if card.name == alert.detector
             for name in card.reads]  # fmt: skip
    names = dict.fromkeys(filter(None, (*(alert.statistic for alert in cause), *reads)))
    body = {**plain(found_incident), "outcome": found_incident.outcome, "statistics": [*names]}
    return {key: harmless(value) for key, value in body.items()}


def pair(texts: TextPair) -> dict[str, Any]:
    """Describe a text from before an onset and one from after it."""
    return {
        "prompt": clean(texts.prompt),
        "before_step": texts.before_step,
        "after_step": texts.after_step,
        "before": cut(texts.before, LONGEST)[0],
        "after": cut(texts.after, LONGEST)[0],
    }


def text(sample: Sample) -> dict[str, Any]:
    """Describe a kept text."""
    shown, remark = cut(sample.text, LONGEST)
    return {
        "step": sample.step,
        "slot": sample.slot,
        "turn": sample.turn,
        "prompt": clean(sample.prompt),
        "tokens": sample.tokens,
        "finish": sample.finish,
        "reward": sample.reward,
        "flags": harmless(sample.flags),
        "text": shown,
        "remark": remark,
    }


def problems(sentences: Iterable[str]) -> list[str]:
    """Clean sentences about what could not be read, and drop repetitions."""
    return [clean(sentence) for sentence in dict.fromkeys(sentences)]
