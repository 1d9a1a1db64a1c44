"""The trainer's own files in a run directory: its description, its trace and its end."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reference_trainer.config import Config
from reference_trainer.errors import SettingsError
from reference_trainer.grid import load_source
from reference_trainer.run_folder import RunFolder
from reference_trainer.tasks.sandbox_settings import SandboxSettings


def test_half_a_line_of_a_trace_is_forgotten(smoke: Config, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(smoke)
    for step in range(4):
        folder.write({"step": step})
    with (tmp_path / "trainer" / "trace.jsonl").open("a") as file:
        file.write('{"step": 4, "rew')
    folder.go_on(smoke, after=2)
    assert folder.trace() == [{"step": 0}, {"step": 1}, {"step": 2}]
    assert folder.config() == smoke


def test_a_broken_description_is_a_clear_error(smoke: Config, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(smoke)
    (tmp_path / "trainer" / "config.json").write_text('{"config": {"se')
    with pytest.raises(SettingsError, match=r"config\.json cannot be read"):
        folder.config()


def test_a_damaged_trace_and_end_are_named(smoke: Config, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(smoke)
    folder.write({"step": 0})
    for text in ("{", '{"reward": 1}', "[]"):
        (tmp_path / "trainer" / "trace.jsonl").write_text(f'{{"step": 0}}\n{text}\n')
        with pytest.raises(SettingsError, match=r"trace\.jsonl, line 2, is damaged.*step"):
            folder.trace()
    for text in ("{", "[]", '{"steps": "many", "stopped": ""}'):
        (tmp_path / "trainer" / "finished.json").write_text(text)
        with pytest.raises(SettingsError, match=r"finished\.json cannot be read.*Delete it"):
            folder.finished()


def test_other_settings_are_named_but_not_all_of_them(smoke: Config, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin(smoke)
    described = json.loads((tmp_path / "trainer" / "config.json").read_text())
    del described["config"]["sandbox"]  # as an earlier version wrote it
    (tmp_path / "trainer" / "config.json").write_text(json.dumps(described))
    folder.refuse_another(smoke)
    elsewhere = SandboxSettings(floor="rlimits", workers=3)  # how it is graded, not what
    folder.refuse_another(replace(smoke, sandbox=elsewhere))
    with pytest.raises(SettingsError, match="seed was 0, is 1") as refusal:
        folder.refuse_another(replace(smoke, seed=1))
    assert "more" not in str(refusal.value)
    with pytest.raises(SettingsError, match="more, see") as refusal:
        folder.refuse_another(load_source("paper/voting-ip-code-4B", {}))
    assert len(str(refusal.value)) < 1000
