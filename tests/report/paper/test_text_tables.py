from __future__ import annotations

from dataclasses import replace

from roledrift_paper.text_tables import TABLES, blocks
from roledrift_paper.texts import wording

from roledrift.records import Sample
from roledrift.report.cells import Cell
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Note, Table
from roledrift.report.sweep.summary import Summary
from tests.report.paper.summaries import remeasured, summary_of


def test_table_4_reads_both_places_of_a_voting_run(failing: JudgedRun) -> None:
    one = summary_of(failing)
    texts = tuple(
        wording(step, role, [Sample(step, role, r"\boxed{1}", prompt="p", tokens=tokens)])
        for step in (5, 9)
        for role, tokens in (("generator", 500), ("aggregator", 4))
    )
    table, *others = blocks([remeasured(one, wording=texts)])
    assert isinstance(table, Table)
    assert len(table.rows) == 2
    shown = dict(zip(table.columns, (cell.text for cell in table.rows[0]), strict=True))
    assert shown["step"] == "5"
    assert shown["generator: mean length"] == "500"
    assert shown["generator: 3-gram overlap"] == "–"
    assert shown["aggregator: terse"] == "1.00"
    assert all(isinstance(block, Note) for block in others)
    assert len(TABLES) == 3


def pooled(*runs: Summary) -> list[dict[str, Cell]]:
    table, *_ = blocks(runs)
    assert isinstance(table, Table)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def seed_of(one: Summary, seed: int, *, best: int, tokens: dict[int, int]) -> Summary:
    texts = tuple(
        wording(step, "generator", [Sample(step, "generator", "x", prompt="p", tokens=length)])
        for step, length in tokens.items()
    )
    validation = {0: 0.1, best: 0.9, max(tokens): 0.5}
    run = replace(one, key=f"s{seed}", seed=seed, notes={}, validation=validation)
    return remeasured(run, wording=texts)


def test_seeds_are_pooled_checkpoint_by_checkpoint(failing: JudgedRun) -> None:
    one = summary_of(failing)
    runs = [
        seed_of(one, 0, best=10, tokens={5: 100, 10: 10, 20: 1}),
        seed_of(one, 1, best=8, tokens={5: 200, 8: 20, 20: 2}),
        seed_of(one, 2, best=10, tokens={5: 300, 10: 30, 20: 3}),
    ]
    early, best, last = pooled(*runs)
    assert [row["checkpoint"].text for row in (early, best, last)] == ["early", "best", "last"]
    assert [row["step"].text for row in (early, best, last)] == ["5", "8\N{EN DASH}10", "20"]
    assert [row["generator: mean length"].value for row in (early, best, last)] == [200, 20, 2]
    assert early["generator: mean length"].note.startswith("n=3 seeds, 95 %: ")
    assert early["problems"].value == 3


def test_checkpoints_at_the_same_step_are_one_row(failing: JudgedRun) -> None:
    one = summary_of(failing)
    rows = pooled(seed_of(one, 0, best=20, tokens={10: 100, 20: 10}))
    assert [row["checkpoint"].text for row in rows] == ["early", "best, last"]


def test_a_run_disturbed_on_purpose_is_pooled_with_no_other(failing: JudgedRun) -> None:
    one = summary_of(failing)
    plain = [seed_of(one, seed, best=10, tokens={10: 100}) for seed in (0, 1)]
    hot = replace(seed_of(one, 2, best=10, tokens={10: 900}), notes={"stress": "hot"})
    rows = pooled(*plain, hot)
    assert [row["generator: mean length"].value for row in rows] == [100, 900]
