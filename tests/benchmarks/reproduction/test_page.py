import re
import shutil
from pathlib import Path

import pytest

from benchmarks.reproduction.__main__ import main
from benchmarks.reproduction.deciding import answers
from benchmarks.reproduction.measures import Results
from benchmarks.reproduction.outcomes import FOLDER, load, load_bases
from benchmarks.reproduction.page import PAGE, text_of, write_page
from benchmarks.reproduction.plan import load_plan

PLAN = PAGE.parent / "reproduction_plan.md"


@pytest.mark.slow
def test_the_committed_results_give_every_number_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "reproduction.md"
    write_page(page=page, images=tmp_path / "reproduction")
    assert page.read_text("utf-8") == PAGE.read_text("utf-8")
    drawn = set(re.findall(r"\]\(images/reproduction/([\w.]+)\)", page.read_text("utf-8")))
    assert drawn == {file.name for file in (tmp_path / "reproduction").iterdir()}
    assert drawn == {file.name for file in (PAGE.parent / "images" / "reproduction").iterdir()}


def test_runs_of_ones_own_get_a_page_beside_their_results(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    for name in ("floor", "bases"):
        shutil.copy(FOLDER / f"{name}.jsonl", results)
    assert main(["page", "--results", str(results)]) == 0
    page = (tmp_path / "reproduction.md").read_text("utf-8")
    assert "**9 of the " in page
    places = re.findall(r"\]\((?!#|https?:)([^)#]+)", page)
    assert {Path(place).name for place in places} >= {PLAN.name, "tests.svg"}
    assert all((tmp_path / place).is_file() for place in places)


def test_without_results_nothing_is_claimed() -> None:
    plan = load_plan()
    text = text_of(plan, [], [], answers(plan.claims, Results([])), [])
    assert text.count("**Verdict: not run.**") == len(plan.claims)
    assert "**holds**" not in text
    assert "**does not hold**" not in text


def test_results_are_lines_of_the_plan() -> None:
    planned = {(one.experiment, one.arm, one.base, one.seed) for one in load_plan().jobs("full")}
    rows = load(FOLDER)
    assert {(one["experiment"], one["arm"], one["base"], one["seed"]) for one in rows} <= planned
    assert not [one["code"] for one in rows if one["code"].endswith("+")]
    assert load_bases(FOLDER)
