from __future__ import annotations

import math

from roledrift.records import Sample
from roledrift.report.texts.role_classifier import tokens, train

ROLES = ("generator", "aggregator")
FIRST = [
    Sample(step, role, text)
    for step in range(3)
    for role, text in (("generator", "we add both sides and solve"), ("aggregator", r"\boxed{1}"))
]


def test_a_text_reads_like_the_role_whose_words_it_uses() -> None:
    classifier = train(FIRST, ROLES, 7)
    assert classifier is not None
    near, away = classifier.nearest("we solve both sides", "aggregator")
    assert near == "generator"
    assert away > 0
    assert classifier.nearest(r"\boxed{2}", "aggregator") == ("aggregator", 0.0)


def test_the_score_by_hand() -> None:
    first = [Sample(0, role, word) for role, word in (("a", "x"), ("b", "y")) for _ in range(3)]
    classifier = train(first, ("a", "b"), 0)
    assert classifier is not None
    near, away = classifier.nearest("y y", "a")
    # 3 words, two known words and one share for unknown ones: (3 + .5) / 4.5 against .5 / 4.5
    assert near == "b"
    assert math.isclose(away, math.log(3.5 / 0.5))


def test_too_few_texts_or_roles_give_no_profile() -> None:
    assert train([], ROLES, 7) is None
    assert train(FIRST[:2], ROLES, 7) is None
    assert train([one for one in FIRST if one.role == "generator"], ROLES, 7) is None
    classifier = train(FIRST, ROLES, 7)
    assert classifier is not None
    assert classifier.nearest("", "generator")[0] == ""
    assert classifier.nearest("we", "stranger")[0] == ""


def test_numbers_are_all_alike() -> None:
    assert tokens("7 and 12") == ["0", "and", "0"]
