from typing import Any

import pytest

from reference_trainer.episodes import Parse
from reference_trainer.workflows.parse import parse_selection, parse_verdict
from reference_trainer.workflows.released_parse import (
    released_selection,
    released_strategies,
    released_verdict,
)
from tests.reference_trainer.recorded import FACTS


@pytest.mark.parametrize("fact", FACTS["selections"], ids=lambda fact: repr(fact["text"]))
def test_selections_are_those_of_the_papers_code(fact: dict[str, Any]) -> None:
    assert released_selection(fact["text"], candidates=3).value == str(fact["chosen"])


@pytest.mark.parametrize("fact", FACTS["verdicts"], ids=lambda fact: repr(fact["text"]))
def test_verdicts_are_those_of_the_papers_code(fact: dict[str, Any]) -> None:
    assert (released_verdict(fact["text"]).value or "unknown") == fact["verdict"]


@pytest.mark.parametrize("fact", FACTS["plans"], ids=lambda fact: repr(fact["text"]))
def test_plans_are_those_of_the_papers_code(fact: dict[str, Any]) -> None:
    parse, strategies = released_strategies(fact["text"], most=3)
    assert list(strategies) == fact["strategies"]
    assert parse.value == str(len(strategies))


def test_how_a_text_was_read() -> None:
    assert released_selection("\\boxed{2}", candidates=3) == Parse("tag", "2")
    assert released_selection("the 2nd, or 3", candidates=3) == Parse("fallback", "3")
    assert released_selection("none", candidates=3) == Parse("fallback", "1")
    assert released_strategies("STRATEGY 1: a", most=3)[0] == Parse("tag", "1")
    assert released_strategies("1. a", most=3)[0] == Parse("fallback", "1")


def test_our_own_rules_differ() -> None:
    """If they did not, the switch would be for nothing."""
    candidates = [parse_selection(fact["text"], candidates=3).value for fact in FACTS["selections"]]
    chosen = [str(fact["chosen"]) for fact in FACTS["selections"]]
    assert (
        sum((ours or "1") != theirs for ours, theirs in zip(candidates, chosen, strict=True)) == 1
    )
    verdicts = [parse_verdict(fact["text"]) for fact in FACTS["verdicts"]]
    ours = [parse.value if parse.how == "tag" else "unknown" for parse in verdicts]
    assert sum(a != fact["verdict"] for a, fact in zip(ours, FACTS["verdicts"], strict=True)) == 2
