import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from roledrift import RoleDriftError, open_run, open_runs
from roledrift.analysis.frames import COLUMNS, TEXT_COLUMNS
from roledrift.cli.check import check_run
from roledrift.errors import SchemaError, StoreError
from roledrift.store import reader
from tests.cli.runs import write_run

DEMO = Path(str(files("roledrift.report"))) / "demo_run"
HOSTILE = '<img src=x onerror="a()">\x1b[2J\u202e"\n;`'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("runs")
    shutil.copytree(DEMO, base / "demo")
    write_run(base / "deep" / "grows", steps=40, inflate_from=20)
    return base


def test_a_run_answers_what_a_person_asks(folder: Path) -> None:
    run = open_run(folder / "demo")
    assert run.verdict.sentence == run.incidents[0].sentence
    assert (run.verdict.outcome, run.verdict.incident) == ("suspicious", run.incidents[0])
    assert run.alerts[0].role == "aggregator"
    assert {one.role for one in run.verdicts} >= {"generator", "aggregator"}
    frame = run.frame()
    assert tuple(frame.columns) == COLUMNS
    assert set(frame.step) == {one.step for one in run.steps()}
    assert tuple(run.texts().columns) == TEXT_COLUMNS
    assert len(run.texts()) == len(run.samples()) > 0


@pytest.mark.parametrize("name", ["demo", "deep/grows"])
def test_the_verdict_is_that_of_check(folder: Path, name: str) -> None:
    checked = check_run(reader.open_run(folder / name))
    verdict = open_run(folder / name).verdict
    assert (verdict.outcome, verdict.sentence) == (checked.outcome, checked.sentence)


def test_the_name_in_a_terminal_is_short_and_reads_no_step(folder: Path) -> None:
    run = open_run(folder / "demo")
    assert len(repr(run)) < 200
    assert repr(run).startswith("<Run '")
    assert "segments" not in vars(run._stored), "no file of steps was read"


def test_a_folder_is_one_frame(folder: Path) -> None:
    runs = open_runs(folder)
    assert runs.names == ("deep/grows", "demo")
    assert [run.header.run for run in runs] == [runs[0].header.run, runs["demo"].header.run]
    with pytest.warns(UserWarning, match="holds no texts"):
        texts = runs.texts()
    frame = runs.frame()
    assert tuple(frame.columns) == ("run", *COLUMNS)
    assert tuple(texts.columns) == ("run", *TEXT_COLUMNS)
    assert (set(frame.run), set(texts.run)) == ({"deep/grows", "demo"}, {"demo"})
    assert len(frame) == sum(len(run.frame()) for run in runs)
    assert frame.dtypes[1:].equals(runs["demo"].frame().dtypes)
    with pytest.raises(KeyError, match="there are deep/grows, demo"):
        runs["other"]


def test_a_run_without_texts_or_steps_warns_in_a_sentence(tmp_path: Path) -> None:
    run = open_run(write_run(tmp_path / "none", steps=0))
    with pytest.warns(UserWarning, match="holds no texts; hand some"):
        assert tuple(run.texts().columns) == TEXT_COLUMNS
    with pytest.warns(UserWarning, match="holds no step yet"):
        assert tuple(run.frame().columns) == COLUMNS
    assert run.verdict.outcome == "no verdict"
    assert "none yet" in run._repr_html_()


def test_damage_is_named_and_the_rest_is_read(folder: Path, tmp_path: Path) -> None:
    for name in ("whole", "half", "newer", "garbage"):
        shutil.copytree(folder / "demo", tmp_path / name)
    steps = next((tmp_path / "half").glob("steps.*.jsonl"))
    steps.write_bytes(steps.read_bytes()[:-40])
    newer = next((tmp_path / "newer").glob("steps.*.jsonl"))
    newer.write_text(newer.read_text() + json.dumps({"v": 9, "kind": "step", "step": 99}) + "\n")
    (tmp_path / "garbage" / "run.json").write_text("{")
    with pytest.warns(UserWarning, match="left out: .*garbage/run.json"):
        runs = open_runs(tmp_path)
    with pytest.warns(UserWarning, match="left out|half-written") as said:
        frame = runs.frame()
    assert set(frame.run) == {"whole", "half"}
    sentences = [str(one.message) for one in said]
    assert any("half-written last line" in one for one in sentences)
    assert any(one.startswith("newer: left out") and "install a newer" in one for one in sentences)
    with pytest.raises(SchemaError, match="install a newer roledrift"):
        runs["newer"].frame()
    assert "unreadable" in runs["newer"]._repr_html_()
    assert "garbage" in runs._repr_html_()


@pytest.mark.parametrize("broken", ["nothing", "empty", "only broken"])
def test_nothing_to_open_is_a_sentence(tmp_path: Path, broken: str) -> None:
    place = tmp_path / broken
    if broken != "nothing":
        place.mkdir()
    if broken == "only broken":
        (place / "run.json").write_text("[]")
    for function in (open_run, open_runs):
        with pytest.raises(StoreError) as raised:
            function(place)
        assert isinstance(raised.value, RoleDriftError)
        assert "\n" not in str(raised.value)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    path = write_run(tmp_path / "x", steps=4)
    header = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(header | {"run": HOSTILE}))
    steps = next(path.glob("steps.*.jsonl"))
    steps.write_text(steps.read_text().replace('"aggregator"', json.dumps(HOSTILE)))
    run = open_run(path)
    assert HOSTILE in set(run.frame().role)
    assert "\n" not in repr(run)
    shown = run._repr_html_() + open_runs(tmp_path)._repr_html_()
    assert "<img" not in shown
    assert not set(shown) & set("\x1b\u202e")


def test_pandas_is_loaded_with_the_first_frame_alone() -> None:
    script = (
        "import sys, roledrift\n"
        f"run = roledrift.open_run({str(DEMO)!r})\n"
        "run.steps(); repr(run)\n"
        "heavy = {'pandas', 'torch', 'matplotlib', 'transformers'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "run.frame()\n"
        "assert 'pandas' in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
