from __future__ import annotations

from dataclasses import replace

from roledrift.records import Sample
from roledrift.report.texts.excerpts import excerpt, key


def test_a_megabyte_line_is_cut_with_a_note() -> None:
    one = excerpt(Sample(0, "generator", "A" * 1_000_000, prompt_text="B" * 5_000), 2_000)
    assert one.text.count("A") == 2_000
    assert one.cut == "cut: the first 1,600 and the last 400 of 1,000,000 characters"
    assert one.prompt_text.endswith("[cut: the first 960 and the last 240 of 5,000 characters]")
    assert one.reward.text == "–"


def test_a_key_depends_on_the_span_alone() -> None:
    one = Sample(3, "generator", "text", slot=1, episode="e")
    assert key(one) == key(replace(one, text="other", reward=1.0))
    assert key(one) != key(replace(one, slot=2))


def test_the_text_tells_apart_what_has_no_episode() -> None:
    # Eight rollouts of one prompt: a link must lead to the one it was made for.
    for prompt in ("", "p"):
        a, b = (Sample(3, "generator", text, prompt=prompt) for text in "ab")
        assert key(a) != key(b)
