"""What a statistic says about itself."""

from dataclasses import replace

from roledrift.measure.cards import Statistic

LENGTH = Statistic("length", "Response length", "tokens, mean", formula="tokens per span")


def test_its_title_stands_in_a_sentence_or_over_a_chart() -> None:
    assert LENGTH.in_words == "response length"
    assert replace(LENGTH, words="how long they are").in_words == "how long they are"
    assert LENGTH.heading() == "Response length, tokens, mean"
    assert LENGTH.heading("characters") == "Response length, characters, mean"
    assert replace(LENGTH, name="other").heading("characters") == "Response length, tokens, mean"
