"""A detector is one card in one file: everything else follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from roledrift.detect.cards import Card, Catalogue
from roledrift.detect.catalogue import known_findings, shipped
from roledrift.detect.conclusion import conclude
from roledrift.judgement import LAYERS, SEVERITIES
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect import loud
from tests.detect.runs import judged


def _records(factor: float = 3.0) -> list[StepRecord]:
    noise = np.exp(np.random.default_rng(0).normal(size=(40, 2)) * 0.05)
    noise[20:, 0] *= factor
    return [
        StepRecord(t, groups={r: {"loudness": Stat(8, x)} for r, x in zip(VOTING.role_names, row)})  # noqa: B905
        for t, row in enumerate(noise.tolist())
    ]


def test_a_card_given_to_the_suite_is_found_in_every_output() -> None:
    suite, alerts = judged(_records(), detectors=[loud.CARD])
    assert [(a.finding, a.role, a.state, a.severity) for a in alerts] == [
        ("shouting", "generator", "open", "failing")
    ]
    (alert,) = alerts
    assert alert.title.startswith("The generator has been x")
    assert alert.title.endswith(f"as loud since step {alert.onset}")
    assert alert.advice[-1] == "ask the generator to be quiet"
    assert alert.layer == "text"
    (incident,) = suite.incidents
    assert incident.sentence == f"{alert.title}."
    found = conclude(suite.verdicts, suite.incidents, 40)
    assert (found.outcome, found.incident) == ("failing", incident)


def test_cards_that_ship_are_complete_and_their_names_unique() -> None:
    cards = shipped()
    findings = [one for card in cards for one in card.findings]
    assert len({card.name for card in cards}) == len(cards) >= 7
    assert len({one.name for one in findings}) == len(findings)
    for card in cards:
        assert card.findings
        assert card.reads
        assert card.needs
        assert card.about.endswith(".")
        assert not card.origin
    for one in findings:
        assert one.layer in LAYERS
        assert one.severity in SEVERITIES
        assert one.advice, one.name
        assert one.about.endswith(".")
        assert not one.title.endswith(".")
    assert dict(known_findings()) == dict(Catalogue(cards).detectors)


def test_what_detectors_have_to_set_is_little() -> None:
    keys = [
        name
        for card in shipped()
        if card.settings is not None
        for name in card.settings.__dataclass_fields__
    ]
    assert len(keys) < 20


def test_a_card_needs_nothing_but_its_name_and_its_findings() -> None:
    least = Card("loudness", "Is loud.", loud.CARD.findings, _Silent)  # type: ignore[arg-type]
    suite, alerts = judged(_records(), detectors=[least])
    assert alerts == []
    assert {one.state for one in suite.verdicts} == {"no verdict"}


class _Silent:
    name = "loudness"

    def __init__(self, context: object) -> None:
        del context

    def update(self, record: StepRecord) -> list[Any]:
        return []
