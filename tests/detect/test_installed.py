"""Detectors of other distributions, in the panel."""

from typing import Any

import pytest

from roledrift.config import Config, from_mapping
from roledrift.detect import DETECTORS
from roledrift.detect.installed import installed_detectors
from roledrift.detect.panel import Panel, replay
from roledrift.errors import ConfigError
from roledrift.workflow import VOTING

LOUD = """
from roledrift.records import Verdict
class Loud:
    name = "loud"
    def __init__(self, workflow, config):
        self.settings = dict(config.extensions.get("loud", {}))
        self.steps = 0
    def update(self, record):
        self.steps += 1
        state = "drift" if self.steps >= self.settings.get("after", 2) else "ok"
        return [Verdict("loud", "generator", state, finding="loud")]
"""
POINTS = {"detectors": {"loud": "loud_part:Loud"}}


def test_it_judges_with_its_own_settings_and_can_stop_the_run(install: Any, run: Any) -> None:
    install("loud", POINTS, code={"loud_part": LOUD})
    config = from_mapping({"stop_on": ["loud"], "extensions": {"loud": {"after": 3}}})
    records = run({"generator": {"length": [5.0] * 6}, "aggregator": {"length": [5.0] * 6}})
    found = replay(records, VOTING, config)
    (alert,) = found.alerts
    assert (alert.detector, alert.role, alert.stops) == ("loud", "generator", True)
    assert alert.step == records[2].step
    assert found.faults == {}


def test_a_section_switches_it_off(install: Any) -> None:
    install("loud", POINTS, code={"loud_part": LOUD})
    off = from_mapping({"extensions": {"loud": {"enabled": False}}})
    assert {one.detector for one in Panel(VOTING, off).verdicts} == set(DETECTORS)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("class Loud", "raise OSError('gone')\nclass Loud", "gone"),
        ('name = "loud"', 'name = "quiet"', "calls itself 'quiet'"),
        ("def update", "def judge", "no method update"),
        ("self.steps = 0", "self.steps = (i for i in range(3))", "cannot pickle"),
        ("self.steps = 0", "raise KeyError('x')", "KeyError"),
    ],
)
def test_one_that_cannot_be_made_gives_no_verdict_and_silences_nobody(
    install: Any, run: Any, old: str, new: str, says: str
) -> None:
    install("loud", POINTS, code={"loud_part": LOUD.replace(old, new)})
    records = run({"generator": {"length": [5.0] * 12}, "aggregator": {"length": [5.0] * 12}})
    panel = Panel(VOTING)
    for record in records:
        panel.update(record)
    assert says in panel.faults["loud"]
    verdicts = {one.detector: one for one in panel.verdicts}
    assert verdicts["loud"].state == "no verdict"
    assert says in verdicts["loud"].reason
    assert verdicts["length_inflation"].state == "ok"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('Verdict("loud", "generator"', 'Verdict("hygiene", "generator"', "no Verdict of"),
        ('Verdict("loud", "generator"', 'Verdict("loud", "nobody"', "no role of the workflow"),
        ("return [Verdict", "return [str", "TypeError"),
        ("return [Verdict", "return 3 #", "not iterable"),
    ],
)
def test_what_it_says_is_checked(install: Any, run: Any, old: str, new: str, says: str) -> None:
    install("loud", POINTS, code={"loud_part": LOUD.replace(old, new)})
    records = run({"generator": {"length": [5.0] * 4}, "aggregator": {"length": [5.0] * 4}})
    panel = Panel(VOTING)
    assert [panel.update(record) for record in records] == [[]] * 4
    assert says in panel.faults["loud"]


def test_a_shipped_detector_keeps_its_name(install: Any) -> None:
    install("loud", {"detectors": {"hygiene": "loud_part:Loud"}}, code={"loud_part": LOUD})
    assert installed_detectors(VOTING, Config(), shipped=DETECTORS) == ([], {})
    with pytest.raises(ConfigError, match=r"its section is detectors\.hygiene"):
        from_mapping({"extensions": {"hygiene": {}}})
