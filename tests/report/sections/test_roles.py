from __future__ import annotations

from dataclasses import replace

from roledrift.records import Stat
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Figure, Note, Panel
from roledrift.report.sections import roles


def panels_of(run: JudgedRun) -> tuple[Panel, ...]:
    figure = roles.build(run).blocks[0]
    assert isinstance(figure, Figure)
    return figure.panels


def test_present_statistics_are_drawn_and_absent_ones_named_with_their_switch(
    failing: JudgedRun,
) -> None:
    section = roles.build(failing)
    panels = panels_of(failing)
    assert [one.title.split(",")[0] for one in panels] == [
        "Response length", "Reward", "Movement per update (k3)",
    ]  # fmt: skip
    assert section.summary == "3 quantities of 2 roles"
    for panel in panels:
        assert panel.note.startswith("Healthy: ")
        shown = [line.label for line in panel.lines if line.style == "main"]
        assert shown == ["generator", "aggregator"]
        assert len(panel.marks) == 1
    note = section.blocks[-1]
    assert isinstance(note, Note)
    assert "Entropy: entropy_BT in RoleBatch" in note.items


def test_an_empty_run_says_so(empty: JudgedRun) -> None:
    assert [block.kind for block in roles.build(empty).blocks] == ["note"]


def test_what_never_changes_is_said_and_not_drawn(failing: JudgedRun) -> None:
    records = tuple(
        replace(one, groups={
            role: {**stats, "code_fence": Stat(24, 0.0), "boxed": Stat(24, 0.01 * one.step)}
            for role, stats in one.groups.items()
        })
        for one in failing.records
    )  # fmt: skip
    run = replace(failing, records=records)
    blocks = roles.build(run).blocks
    titles = [panel.title for panel in panels_of(run)]
    assert "Boxed answers, share of answers" in titles
    assert "Code blocks, share of answers" not in titles
    note = next(block for block in blocks if isinstance(block, Note))
    assert note.items == ("Code blocks, share of answers: generator 0, aggregator 0",)
