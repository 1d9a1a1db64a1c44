from __future__ import annotations

from dataclasses import replace

from roledrift.records import Sample
from roledrift.report.excerpts import excerpt, over_time, pairs
from roledrift.report.view import View


def test_pairs_are_of_one_prompt_where_there_is_one(failing: View) -> None:
    finding = failing.findings[0]
    found = pairs(failing, finding)
    assert [pair.same_prompt for pair in found[:2]] == [True, True]
    for pair in found[:2]:
        assert pair.before.prompt == pair.after.prompt
    for pair in found:
        assert pair.before.role == pair.after.role == "aggregator"
        assert pair.before.step < finding.alert.onset <= pair.after.step


def test_pairs_of_different_prompts_say_so(failing: View) -> None:
    lonely = tuple(replace(one, prompt=f"p{one.step}") for one in failing.samples)
    found = pairs(replace(failing, samples=lonely), failing.findings[0])
    assert len(found) == 3
    assert not any(pair.same_prompt for pair in found)


def test_no_texts_no_pairs(failing: View) -> None:
    assert pairs(replace(failing, samples=()), failing.findings[0]) == ()


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
