from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.store.reader import open_run
from roledrift.view.follow import FollowedRun
from roledrift.view.judging import Judgement
from tests.view.conftest import EVIL, ONSET, Writing

NOTHING = Judgement("", "")


def values(document: dict[str, object], role: str, statistic: str) -> list[float | None]:
    series: list[dict[str, object]] = document["series"]  # type: ignore[assignment]
    (one,) = (one for one in series if (one["role"], one["statistic"]) == (role, statistic))
    return one["values"]  # type: ignore[return-value]


def test_a_document_has_every_curve_aligned_with_the_steps(runs: Path) -> None:
    document = FollowedRun(runs / "a-healthy").document(NOTHING)
    steps = open_run(runs / "a-healthy").steps()
    assert document["steps"] == [one.step for one in steps]
    expected = [one.mean("generator", "length") for one in steps]
    assert values(document, "generator", "length") == expected
    assert values(document, "*", "accuracy") == [one.totals["accuracy"] for one in steps]
    assert {one["name"] for one in document["statistics"]} == {
        "length", "reward", "update.k3", "accuracy",
    }  # fmt: skip


def test_only_what_is_new_is_sent_and_what_is_asked_for(tmp_path: Path) -> None:
    writing = Writing(tmp_path / "r").go_on(10)
    run = FollowedRun(writing.path)
    known = run.document(NOTHING, ["length"])["known"]
    writing.go_on(2)
    document = run.document(NOTHING, ["length"], known)
    assert (document["from"], document["steps"]) == (10, [10, 11])
    assert {one["statistic"] for one in document["series"]} == {"length"}
    assert len(values(document, "generator", "length")) == 2
    assert run.document(NOTHING, [], document["known"])["steps"] == []
    assert run.document(NOTHING, [], "nonsense")["from"] == 0
    assert FollowedRun(writing.path).document(NOTHING, [], document["known"])["from"] == 0


def test_a_run_that_went_back_is_sent_anew(tmp_path: Path) -> None:
    writing = Writing(tmp_path / "r").go_on(6)
    run = FollowedRun(writing.path)
    known = run.document(NOTHING)["known"]
    writing.next = 3
    writing.grows = False
    writing.go_on(2)
    document = run.document(NOTHING, None, known)
    assert (document["from"], document["steps"]) == (0, [0, 1, 2, 3, 4, 5])


def test_texts_around_an_incident_and_near_a_step(runs: Path) -> None:
    run = FollowedRun(runs / "b-grows")
    incident = open_run(runs / "b-grows").incidents()[0]
    (pair, *_) = run.pairs(incident)["pairs"]
    assert pair["before_step"] < incident.onset <= pair["after_step"]
    assert ("<img" in pair["before"], "\x1b" in pair["before"]) == (True, False)
    near = run.texts("aggregator", ONSET + 2)
    assert (near["step"], {one["step"] for one in near["texts"]}) == (ONSET, {ONSET})
    assert "No text of nobody" in run.texts("nobody", 3)["note"]


def test_a_run_without_texts_says_so(tmp_path: Path) -> None:
    run = FollowedRun(Writing(tmp_path / "r", text="none").go_on(3).path)
    assert run.texts("generator", 1)["note"] == "This run keeps no texts."


def test_a_run_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    writing = Writing(tmp_path / "r").go_on(3)
    run = FollowedRun(writing.path)
    run.refresh()
    writing.path.rename(tmp_path / "gone")
    with pytest.raises(StoreError, match="no longer there"):
        run.document(NOTHING)
    (tmp_path / "gone").rename(writing.path)
    assert len(run.document(NOTHING)["steps"]) == 3


def test_a_hostile_name_is_harmless(runs: Path) -> None:
    name = FollowedRun(runs / "b-grows").document(NOTHING)["name"]
    assert EVIL.startswith("<img")
    assert "<img" in name
    assert not set(name) & set("\x1b\u202e")
