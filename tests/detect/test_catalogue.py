"""Detectors of other distributions are found, checked and kept apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roledrift.config import from_mapping
from roledrift.detect import catalogue
from roledrift.detect.catalogue import all_cards, faults_of, known_findings, shipped
from roledrift.detect.settings import checked
from roledrift.detect.suite import DetectorSuite, replay
from roledrift.errors import ConfigError
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect import loud

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
        catalogue._known.cache_clear()

    yield put
    catalogue._known.cache_clear()


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
        ("return waiting(self.name, role,", "return waiting(self.name, 'nobody',", "not a role of"),
        ("        return [self.judge", "        return 3 # ", "not iterable"),
    ],
)
def test_what_it_says_is_checked(installed: Any, old: str, new: str, says: str) -> None:
    assert old in CODE
    installed(CODE.replace(old, new, 1))
    found = replay(_records(), VOTING)
    assert says in found.faults["loudness"]
    assert "whispering" not in {one.finding for one in found.alerts}
