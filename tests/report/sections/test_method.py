from __future__ import annotations

from dataclasses import replace

from roledrift.config import BaselineConfig, Config
from roledrift.detect.catalogue import shipped
from roledrift.judgement import Verdict
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Prose, Table
from roledrift.report.sections import method


def test_method_names_command_detectors_and_changed_settings(failing: JudgedRun) -> None:
    run = replace(failing, config=Config(baseline=BaselineConfig(window=5)))
    blocks = method.build(run, "roledrift report runs/a").blocks
    assert blocks[0] == Prose("roledrift report runs/a", title="Make this page again")
    tables = {block.title: block for block in blocks if isinstance(block, Table)}
    assert len(tables["Detectors"].rows) == len({one.detector for one in run.verdicts})
    settings = {row[0].text: (row[1].text, row[2].text) for row in tables["Configuration"].rows}
    assert settings["baseline.window"] == ("5", "set; default 8")
    assert settings["baseline.reference"] == ("", "default")


def test_detectors_are_described_by_their_cards(failing: JudgedRun) -> None:
    table = next(
        one for one in method.build(failing, "").blocks if getattr(one, "title", "") == "Detectors"
    )
    assert isinstance(table, Table)
    rows = {row[0].text: [cell.text for cell in row[1:4]] for row in table.rows}
    (card,) = [one for one in shipped() if one.name == "length_inflation"]
    assert rows[card.name] == [card.about, "length_inflation", "response length"]


def test_settings_of_detectors_are_listed(failing: JudgedRun) -> None:
    config = Config(detectors={"length_inflation": {"limit": 300}})
    blocks = method.build(replace(failing, config=config), "").blocks
    rows = {row[0].text: row[1:] for one in blocks if isinstance(one, Table) for row in one.rows}
    limit, where = rows["detectors.length_inflation.limit"]
    assert (limit.text, where.text) == ("300.0", "set; default 0.0")


def test_a_detector_that_is_not_installed_is_named(failing: JudgedRun) -> None:
    judged = replace(failing.replay, verdicts=(Verdict("shouting", "generator", "ok"),))
    run = replace(failing, replay=judged)
    blocks = method.build(run, "").blocks
    table = next(one for one in blocks if getattr(one, "title", "") == "Detectors")
    assert isinstance(table, Table)
    assert table.rows[0][1].text == "It is not installed where this page was made."
