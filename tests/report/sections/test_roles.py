from __future__ import annotations

from dataclasses import replace

from roledrift.records import Stat
from roledrift.report.model import Figure, Note
from roledrift.report.sections import roles
from roledrift.report.view import View


def test_present_statistics_are_drawn_and_absent_ones_named_with_their_switch(
    failing: View,
) -> None:
    section = roles.build(failing)
    figures = [block for block in section.blocks if isinstance(block, Figure)]
    assert [one.title.split(",")[0] for one in figures] == [
        "Response length", "Reward", "Movement per update (k3)",
    ]  # fmt: skip
    for figure in figures:
        assert figure.caption.startswith("Healthy: ")
        assert [panel.title for panel in figure.panels] == ["generator", "aggregator"]
        assert figure.table is not None
    note = section.blocks[-1]
    assert isinstance(note, Note)
    assert "Entropy: entropy_BT in RoleBatch" in note.items


def test_roles_of_very_different_size_get_their_own_scale(failing: View) -> None:
    figure = roles.build(failing).blocks[0]
    assert isinstance(figure, Figure)
    generator, aggregator = figure.panels
    assert generator.limits != aggregator.limits
    assert "own scale" in figure.caption
    assert aggregator.marks
    assert not generator.marks


def test_an_empty_run_says_so(empty: View) -> None:
    assert [block.kind for block in roles.build(empty).blocks] == ["note"]


def test_what_never_changes_is_said_and_not_drawn(failing: View) -> None:
    records = tuple(
        replace(one, groups={
            role: {**stats, "code_fence": Stat(24, 0.0), "boxed": Stat(24, 0.01 * one.step)}
            for role, stats in one.groups.items()
        })
        for one in failing.records
    )  # fmt: skip
    blocks = roles.build(replace(failing, records=records)).blocks
    titles = [block.title for block in blocks if isinstance(block, Figure)]
    assert "Boxed answers, share of answers" in titles
    assert "Code blocks, share of answers" not in titles
    note = next(block for block in blocks if isinstance(block, Note))
    assert note.items == ("Code blocks, share of answers: generator 0, aggregator 0",)
