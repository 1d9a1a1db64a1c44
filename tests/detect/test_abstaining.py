"""Verdicts that are none, and roles that are no longer measured."""

from roledrift.detect.abstaining import LONG, Presence, no_verdict, waiting


def test_what_is_missing_is_named() -> None:
    found = waiting("d", "a", "lengths", "texts")
    assert (found.state, found.needs) == ("no verdict", ("lengths", "texts"))
    assert found.reason == "needs lengths and texts"
    assert no_verdict("d", "a", "why") == no_verdict("d", "a", "why")


def test_a_role_that_vanishes_loses_its_verdict_after_a_while_and_gets_it_back() -> None:
    presence = Presence("d", "entropy")
    never = presence.observe("a", 1, False)
    assert never is not None
    assert never.needs == ("entropy",)
    assert presence.observe("a", 2, True) is None
    gaps = [presence.observe("a", 3 + i, False) for i in range(LONG)]
    assert gaps[:-1] == [None] * (LONG - 1)
    assert gaps[-1] is not None
    assert gaps[-1].state == "no verdict"
    assert "step 2" in gaps[-1].reason
    assert presence.observe("a", 30, True) is None
    assert presence.observe("a", 31, False) is None
