"""Verdicts of a detector are checked before they are believed."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import pytest

from roledrift.detect.checking import CheckedDetector
from roledrift.errors import ConfigError
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.workflow import VOTING
from tests.detect.loud import CARD

OK = Verdict(CARD.name, "generator", "ok")


class Says:
    name = CARD.name

    def __init__(self, *verdicts: Any) -> None:
        self.verdicts = verdicts

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        return self.verdicts


def test_verdicts_on_roles_and_on_all_roles_pass() -> None:
    verdicts = (OK, replace(OK, role="*"), replace(OK, state="drift", finding="shouting"))
    assert CheckedDetector(CARD, Says(*verdicts), VOTING).update(StepRecord(1)) == verdicts


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (replace(OK, detector="other"), "no Verdict of detector"),
        ("ok", "no Verdict of detector"),
        (replace(OK, role="nobody"), "not a role of the workflow"),
        (replace(OK, state="drift", finding="whispering"), "the card's findings are"),
    ],
)
def test_what_is_no_verdict_of_the_detector_is_refused(verdict: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        CheckedDetector(CARD, Says(verdict), VOTING).update(StepRecord(1))


def test_a_detector_must_judge_and_be_copyable() -> None:
    with pytest.raises(ConfigError, match="has no update"):
        CheckedDetector(CARD, object(), VOTING)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pickle"):
        CheckedDetector(replace(CARD, origin="dist 1.0"), Says(Lock()), VOTING)
