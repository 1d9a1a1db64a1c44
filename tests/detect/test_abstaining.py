from __future__ import annotations

from roledrift.config import Config
from roledrift.detect.abstaining import no_verdict, waiting
from roledrift.detect.alerts import AlertBook
from roledrift.workflow import VOTING


def test_it_says_why_and_what_is_missing() -> None:
    assert waiting("d", "generator", "a", "b").reason == "needs a and b"
    assert waiting("d", "generator", "a", "b").needs == ("a", "b")
    assert no_verdict("d", "generator", "does not apply").needs == ()


def test_it_opens_nothing() -> None:
    assert AlertBook(VOTING, Config()).see(1, no_verdict("d", "generator", "why")) is None
