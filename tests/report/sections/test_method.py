from __future__ import annotations

from dataclasses import replace

from roledrift.config import BaselineConfig, Config
from roledrift.detect import DETECTORS
from roledrift.report.model import Prose, Table
from roledrift.report.sections import method
from roledrift.report.view import View


def test_method_names_command_detectors_and_changed_settings(failing: View) -> None:
    view = replace(failing, config=Config(baseline=BaselineConfig(window=5)))
    blocks = method.build(view, "roledrift report runs/a").blocks
    assert blocks[0] == Prose("roledrift report runs/a", title="Make this page again")
    tables = {block.title: block for block in blocks if isinstance(block, Table)}
    assert len(tables["Detectors"].rows) == len({one.detector for one in view.verdicts})
    settings = {row[0].text: (row[1].text, row[2].text) for row in tables["Configuration"].rows}
    assert settings["baseline.window"] == ("5", "set; default 8")
    assert settings["baseline.skip"] == ("0", "default")


def test_every_detector_is_described() -> None:
    assert set(DETECTORS) <= set(method.DESCRIPTIONS)
