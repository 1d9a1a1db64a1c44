"""A detector is one card in one file: everything else follows from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roledrift.config import Config, from_mapping
from roledrift.detect import catalogue
from roledrift.detect.cards import Card, Catalogue
from roledrift.detect.catalogue import all_cards, faults_of, known_findings, shipped
from roledrift.detect.conclusion import conclude
from roledrift.detect.settings import checked, settings_of
from roledrift.detect.suite import DetectorSuite, replay
from roledrift.errors import ConfigError
from roledrift.judgement import LAYERS, SEVERITIES
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect import loud
from tests.detect.runs import judged

POINTS = {"detectors": {"loudness": "loud_part:CARD"}}
CODE = Path(loud.__file__).read_text()


def _records(factor: float = 3.0) -> list[StepRecord]:
    noise = np.exp(np.random.default_rng(0).normal(size=(40, 2)) * 0.05)
    noise[20:, 0] *= factor
    return [
        StepRecord(t, groups={r: {"loudness": Stat(8, x)} for r, x in zip(VOTING.role_names, row)})  # noqa: B905
        for t, row in enumerate(noise.tolist())
    ]


@pytest.fixture
def installed(install: Any) -> Any:
    """Installs a distribution with a detector; the catalogue looks anew."""

    def put(code: str = CODE, points: Any = POINTS) -> None:
        install("loud", points, code={"loud_part": code})
        catalogue._found.cache_clear()

    yield put
    catalogue._found.cache_clear()


def test_a_card_given_to_the_suite_is_found_in_every_output() -> None:
    suite, alerts = judged(_records(), detectors=[loud.CARD])
    assert [(a.finding, a.role, a.state, a.severity) for a in alerts] == [
        ("shouting", "generator", "open", "failing")
    ]
    (alert,) = alerts
    assert alert.title.startswith("The generator has been x")
    assert alert.title.endswith(f"as loud since step {alert.onset}")
    assert alert.advice[-1] == "ask generator to be quiet"
    assert alert.layer == "text"
    (incident,) = suite.incidents
    assert incident.sentence == f"{alert.title}."
    found = conclude(suite.verdicts, suite.incidents, 40)
    assert (found.outcome, found.incident) == ("failing", incident)


def test_an_installed_one_is_like_those_that_ship(installed: Any) -> None:
    installed()
    assert known_findings()["shouting"] == "loudness"
    card = next(one for one in all_cards().cards if one.name == "loudness")
    assert card.origin.startswith("loud")
    config = checked(
        from_mapping({"stop_on": ["shouting"], "detectors": {"loudness": {"roles": ["generator"]}}})
    )
    again = replay(_records(), VOTING, config)
    assert again.faults == {}
    assert [(a.finding, a.stops) for a in again.alerts if a.detector == "loudness"] == [
        ("shouting", True)
    ]
    assert {one.role for one in again.verdicts if one.detector == "loudness"} == {"generator"}
    assert ("loudness", "generator") in again.series
    with pytest.raises(ConfigError, match="did you mean 'least'"):
        checked(from_mapping({"detectors": {"loudness": {"lest": 1.0}}}))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("CARD = Card(", "CARD = dict(", "not a roledrift.detect.cards.Card"),
        ('    name="loudness",\n    about', '    name="quiet",\n    about', "use one name"),
        ('"shouting",\n            "{who}', '"role_drift",\n            "{who}', "already"),
        ("import annotations\n", "import annotations\nimport nothing_such\n", "nothing_such"),
    ],
)
def test_one_that_cannot_be_used_is_named(installed: Any, old: str, new: str, says: str) -> None:
    assert old in CODE
    installed(CODE.replace(old, new, 1))
    assert says in faults_of()["loudness"]
    suite = DetectorSuite(VOTING)
    assert says in suite.faults["loudness"]
    (verdict,) = [one for one in suite.verdicts if one.detector == "loudness"]
    assert (verdict.state, verdict.role) == ("no verdict", "*")
    assert says in verdict.reason


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("self.least = ", "self.lock = (i for i in ()); self.least = ", "pickle"),
        ("self.least = ", "raise KeyError('x'); self.least = ", "KeyError"),
        ("def update", "def judge_all", "has no update()"),
    ],
)
def test_one_that_cannot_be_made_silences_nobody(
    installed: Any, old: str, new: str, says: str
) -> None:
    installed(CODE.replace(old, new, 1))
    suite = DetectorSuite(VOTING)
    for record in _records():
        suite.update(record)
    assert says in suite.faults["loudness"]
    assert {one.detector for one in suite.verdicts} >= {card.name for card in shipped()}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'self.name,\n            role,\n            "drift"',
            '"x",\n            role,\n            "drift"',
            "no Verdict of detector",
        ),
        ("[self.judge(role)", "[str(role)", "no Verdict of detector"),
        ('"shouting" if loud', '"whispering" if loud', "the card's findings are ['shouting']"),
        ("return waiting(self.name, role,", "return waiting(self.name, 'nobody',", "no role of"),
        ("        return [self.judge", "        return 3 # ", "not iterable"),
    ],
)
def test_what_it_says_is_checked(installed: Any, old: str, new: str, says: str) -> None:
    assert old in CODE
    installed(CODE.replace(old, new, 1))
    found = replay(_records(), VOTING)
    assert says in found.faults["loudness"]
    assert "whispering" not in {one.finding for one in found.alerts}


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


def _told(body: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        checked(from_mapping(body))
    return str(caught.value)


def test_all_problems_of_sections_are_reported_together() -> None:
    told = _told(
        {
            "stop_on": ["failling", "length_inflation"],
            "findings": ["role_drfit"],
            "detectors": {
                "lenght_inflation": {},
                "accuracy_cliff": {"shar": 0.1},
                "training_data": {"duplicates": "many"},
                "length_inflation": {"roles": "generator"},
            },
        }
    )
    for part in (
        "did you mean 'failing'", "did you mean 'role_drift'", "did you mean 'length_inflation'",
        "did you mean 'share'", "training_data.duplicates: needs a finite number >= 0",
        "length_inflation.roles: needs a list of names",
    ):  # fmt: skip
        assert part in told
    assert told.count(";") >= 5


@pytest.mark.parametrize("value", [-0.1, float("inf"), True, None, "x"])
def test_values_that_are_no_number(value: object) -> None:
    assert "needs a finite number >= 0, got" in _told(
        {"detectors": {"accuracy_cliff": {"share": value}}}
    )


def test_settings_are_converted_and_unknown_keys_of_old_runs_passed_over() -> None:
    (card,) = [one for one in shipped() if one.name == "length_inflation"]
    body = {"length_inflation": {"limit": 30, "roles": ["generator"], "gone": 1}}
    settings = settings_of(card, Config(detectors=body))
    assert (settings.limit, settings.roles) == (30.0, ("generator",))
    wrong = Config(detectors={"length_inflation": {"limit": "long"}})
    assert settings_of(card, wrong) == card.settings()  # type: ignore[misc]


def test_a_card_without_settings_gets_its_section_as_it_is() -> None:
    card = replace(loud.CARD, settings=None)
    config = Config(detectors={"loudness": {"anything": 3}})
    assert settings_of(card, config) == {"anything": 3}
    assert checked(config, cards=[card]) is config


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
