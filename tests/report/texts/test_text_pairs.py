from __future__ import annotations

from dataclasses import replace

from roledrift.records import Sample
from roledrift.report.judged_run import JudgedRun
from roledrift.report.texts.diffing import side
from roledrift.report.texts.role_classifier import train
from roledrift.report.texts.text_pairs import (
    LIMIT,
    pairing_of_runs,
    pairings_of_run,
    pairs_around_onset,
)
from roledrift.workflow import ORCH_WORKERS

LINKS = ("a.html#a", "b.html#b")
CANDIDATES = ("add both numbers and get four", "subtract them all and get zero", "guess five")


def voting(step: int, prompt: str, taken: int = 1) -> list[Sample]:
    slots = [
        Sample(step, "generator", text, slot=slot, prompt=prompt, episode="e")
        for slot, text in enumerate(CANDIDATES)
    ]
    stamp = rf"\boxed{{{taken}}}"
    return [*slots, Sample(step, "aggregator", stamp, prompt=prompt, episode="e", tokens=4)]


def test_pairs_are_of_one_prompt_where_there_is_one(failing: JudgedRun) -> None:
    finding = failing.findings[0]
    found = pairs_around_onset(failing, finding, "a")
    assert [pair.remark for pair in found[:2]] == ["Same prompt."] * 2
    for pair in found[:2]:
        assert pair.left.prompt == pair.right.prompt
    for pair in found:
        assert pair.left.role == pair.right.role == "aggregator"
        assert pair.left.step < finding.alert.onset <= pair.right.step


def test_pairs_of_different_prompts_say_so(failing: JudgedRun) -> None:
    lonely = tuple(replace(one, prompt=f"p{one.step}") for one in failing.samples)
    found = pairs_around_onset(replace(failing, samples=lonely), failing.findings[0], "a")
    assert len(found) == 3
    assert all(pair.remark.startswith("Different prompts") for pair in found)


def test_no_texts_no_pairs(failing: JudgedRun) -> None:
    assert pairs_around_onset(replace(failing, samples=()), failing.findings[0], "a") == ()


def test_siblings_and_the_candidate_that_the_stamp_names(healthy: JudgedRun) -> None:
    samples = tuple(one for step in range(3) for one in voting(step, f"p{step}", taken=2))
    pairings = pairings_of_run(replace(healthy, samples=samples), None)
    siblings, chosen = pairings[1], pairings[2]
    assert [(one.left.slot, one.right.slot) for one in siblings.diffs] == [(0, 1)] * 3
    assert [one.left.role for one in chosen.diffs] == ["aggregator"] * 3
    assert [one.right.slot for one in chosen.diffs] == [1, 1, 1]
    assert chosen.diffs[0].remark.startswith("Its stamp names candidate 2")


def test_without_a_stamp_the_most_copied_candidate_counts(healthy: JudgedRun) -> None:
    samples = [*voting(0, "p")[:3], Sample(0, "aggregator", CANDIDATES[2], prompt="p", episode="e")]
    chosen = pairings_of_run(replace(healthy, samples=tuple(samples)), None)[2]
    assert chosen.diffs[0].right.slot == 2
    assert "100 %" in chosen.diffs[0].remark


def test_a_long_text_may_end_in_its_stamp(healthy: JudgedRun) -> None:
    said = r"Candidate 1 boxed \boxed{4}, which is right. " * 20 + r"So \boxed{ 3 }"
    samples = [*voting(0, "p")[:3], Sample(0, "aggregator", said, prompt="p", episode="e")]
    (one,) = pairings_of_run(replace(healthy, samples=tuple(samples)), None)[2].diffs
    assert one.right.slot == 2
    assert one.remark.startswith("Its stamp names candidate 3")


def test_a_synthesizer_boxes_an_answer_and_not_a_candidate(healthy: JudgedRun) -> None:
    texts = (r"so \boxed{7}", r"add both numbers \boxed{2}", r"it is \boxed{2}")
    workers = [
        Sample(0, "worker", text, slot=slot, episode="e", prompt=f"sub{slot}")
        for slot, text in enumerate(texts)
    ]
    last = Sample(0, "synthesizer", r"so it is \boxed{2}", turn=2, episode="e", prompt="p")
    header = replace(healthy.header, workflow=ORCH_WORKERS)
    run = replace(healthy, header=header, samples=(*workers, last))
    (one,) = pairings_of_run(run, None)[2].diffs
    assert (one.left.role, one.right.role, one.right.slot) == ("synthesizer", "worker", 2)
    assert one.remark.startswith("Of the candidates with the same answer")


def test_a_revised_candidate_counts_as_it_was_last(healthy: JudgedRun) -> None:
    samples = [
        Sample(0, "generator", "first try", turn=0, prompt="p", episode="e"),
        Sample(0, "generator", "second try", turn=1, prompt="p", episode="e"),
        Sample(0, "aggregator", r"\boxed{1}", turn=1, prompt="p", episode="e", tokens=4),
    ]
    (one,) = pairings_of_run(replace(healthy, samples=tuple(samples)), None)[2].diffs
    assert side(one.pieces, "+") == "second try"


def test_siblings_in_episodes_of_their_own_meet_on_their_prompt(healthy: JudgedRun) -> None:
    samples = tuple(
        Sample(0, "generator", f"slot {slot}", slot=slot, prompt="p", episode=f"0-{slot}")
        for slot in range(3)
    )
    (one,) = pairings_of_run(replace(healthy, samples=samples), None)[1].diffs
    assert (one.left.slot, one.right.slot) == (0, 1)


def test_ten_thousand_words_are_compared_from_both_ends(failing: JudgedRun) -> None:
    body = " ".join(f"word{at}" for at in range(10_000))
    long = tuple(replace(one, text=f"{one.step} {body} end{one.step}") for one in failing.samples)
    (pair, *_) = pairs_around_onset(replace(failing, samples=long), failing.findings[0], "a")
    for one, sign in ((pair.left, "-"), (pair.right, "+")):
        text = side(pair.pieces, sign)
        assert text.startswith(f"{one.step} word0")
        assert text.endswith(f" end{one.step}")
        assert len(text) < 4_100
        assert one.cut.startswith("cut: the first 3,200 and the last 800 of")


def test_an_imposter_stands_beside_the_nearest_first_text(healthy: JudgedRun) -> None:
    first = [one for step in range(3) for one in voting(step, f"p{step}")]
    late = Sample(30, "aggregator", "add both numbers and get nine", prompt="q")
    run = replace(healthy, samples=(*first, late))
    imposters = pairings_of_run(run, train(run.samples, run.roles, 7))[3]
    (one,) = imposters.diffs
    assert one.right.role == "generator"
    assert side(one.pieces, "+") == CANDIDATES[0]
    assert one.left.step == 30


def test_every_pairing_without_pairs_says_why(healthy: JudgedRun) -> None:
    for pairing in pairings_of_run(healthy, None):
        assert not pairing.diffs
        assert pairing.absent


def test_two_runs_meet_on_prompt_role_slot_and_step(failing: JudgedRun) -> None:
    other = replace(failing, key="run2")
    pairing = pairing_of_runs(failing, other, LINKS)
    assert 0 < len(pairing.diffs) <= LIMIT
    for one in pairing.diffs:
        assert (one.left.step, one.left.role) == (one.right.step, one.right.role)
        assert (one.left.run, one.right.run) == LINKS
    assert pairing_of_runs(failing, replace(other, samples=()), LINKS).absent
