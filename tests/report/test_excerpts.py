from __future__ import annotations

from roledrift.records import Sample
from roledrift.report.excerpts import excerpt, key, over_time
from roledrift.report.view import View


def test_texts_over_time_are_first_around_the_onset_and_last(failing: View) -> None:
    whens = [one.when for one in over_time(failing, "aggregator")]
    assert list(dict.fromkeys(whens)) == ["first", "before onset", "after onset", "last"]
    calm = [one.when for one in over_time(failing, "generator")]
    assert list(dict.fromkeys(calm)) == ["first", "middle", "last"]


def test_a_megabyte_line_is_cut_with_a_note() -> None:
    one = excerpt(Sample(0, "generator", "A" * 1_000_000, prompt_text="B" * 5_000))
    assert len(one.text) == 2_000
    assert one.cut == "cut: the first 2,000 of 1,000,000 characters"
    assert one.prompt_text.endswith("[cut: the first 1,200 of 5,000 characters]")
    assert one.reward.text == "–"


def test_a_key_depends_on_the_span_alone() -> None:
    one = Sample(3, "generator", "text", slot=1, prompt="p")
    assert key(one) == key(Sample(3, "generator", "other", slot=1, prompt="p", reward=1.0))
    assert key(one) != key(Sample(3, "generator", "text", slot=2, prompt="p"))
    assert key(Sample(3, "generator", "a")) != key(Sample(3, "generator", "b"))
