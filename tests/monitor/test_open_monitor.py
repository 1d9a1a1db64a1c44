from pathlib import Path

import numpy as np
import pytest

from roledrift import SpanTable, open_monitor, open_run, replay
from roledrift.config import from_mapping
from roledrift.detect.suite import DetectorSuite
from roledrift.errors import ConfigError, StoreError
from roledrift.sums import Key, Mean, Sums
from roledrift.workflow import VOTING
from tests.detect.loud import CARD as LOUD


def spans(aggregator: int) -> SpanTable:
    return SpanTable(
        VOTING.role_names,
        role_N=np.array([0, 0, 0, 1]),
        tokens_N=np.array([20, 21, 19, aggregator]),
        slot_N=np.array([0, 1, 2, 0]),
        slots=(3, 1),
    )


def test_further_detectors_and_probes_are_handed_in(tmp_path: Path) -> None:
    class Letters:
        name, needs = "letters", frozenset({"tokens_N"})

        def measure(self, spans: SpanTable) -> Sums:
            return {Key("generator", "loudness"): Mean(2.0, 3.0)}

    monitor = open_monitor(VOTING, tmp_path / "run", detectors=[LOUD], probes=[Letters()])
    for step in range(9):
        monitor.observe(spans(5))
        monitor.end_step(step)
    monitor.close()
    run = open_run(tmp_path / "run")
    assert run.steps()[0].mean("generator", "loudness") == 1.5
    suite = DetectorSuite(VOTING, detectors=[LOUD])
    for record in run.steps():
        suite.update(record)
    assert {one.role for one in suite.verdicts if one.state == "ok"} == {"generator"}


def test_a_run_is_written_judged_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor = open_monitor(
        "voting",
        tmp_path / "run",
        routing="isolated",
        config={"stop_on": ["length_inflation"]},
        task="math",
        seed=3,
        notes={"stress": "none"},
    )
    decision = None
    for step in range(40):
        monitor.observe(spans(5 if step < 15 else 15 + step % 2))
        decision = monitor.end_step(step, {"reward": 0.5})
        if decision.stop:
            break
    monitor.close()
    assert decision is not None
    assert decision.stop
    assert "aggregator" in decision.reason
    assert "length_inflation" in capsys.readouterr().err
    run = open_run(tmp_path / "run")
    assert run.state == "finished"
    assert run.header.task == "math"
    assert run.header.workflow.routing == "isolated"
    assert run.header.versions["roledrift"]
    assert run.steps()[0].mean("generator/1", "length") == 21.0
    assert run.alerts == (*decision.alerts,)


def test_a_directory_is_not_written_over_unless_that_is_wanted(tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = open_monitor("voting", out)
    first.end_step(3)
    first.close()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="resume"):
        open_monitor("voting", out)
    with pytest.raises(StoreError, match=r"resume=True .* overwrite=True"):
        open_monitor("voting", out, resume=True, overwrite=True)
    assert [record.step for record in open_run(out).steps()] == [3]
    second = open_monitor("eval_opt", out, overwrite=True)
    second.end_step(0)
    second.close()
    run = open_run(out)
    assert (run.header.workflow.name, [record.step for record in run.steps()]) == ("eval_opt", [0])
    assert (out / "notes.txt").read_text() == "mine"


def test_a_run_without_a_directory_gets_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monitors = [open_monitor("voting"), open_monitor({"solver": 2}), open_monitor()]
    for monitor in monitors:
        monitor.close()
    names = [monitor.out.name.split("-")[0] for monitor in monitors]
    assert names == ["voting", "custom", "policy"]
    assert {run.path for run in map(open_run, (one.out for one in monitors))} == {
        *(Path("runs") / one.out.name for one in monitors)
    }
    again = open_monitor("voting", monitors[0].out, resume=True)
    again.close()


def test_the_first_and_the_last_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    monitor = open_monitor({"solver": 3, "judge": 1}, out, host="own loop")
    monitor.end_step(0)
    monitor.close()
    monitor.close()
    opening, closing = capsys.readouterr().err.splitlines()
    assert opening.endswith(f"watches own loop: solver x3, judge; run directory {out}")
    assert closing == monitor.closing_line(out)
    open_monitor("voting", tmp_path / "a", announce=False).close()
    open_monitor("voting", tmp_path / "b", config={"notify": {"console": False}}).close()
    open_monitor("voting", tmp_path / "c", notifiers=()).close()
    assert capsys.readouterr().err == ""


def test_a_resumed_run_keeps_its_baseline(tmp_path: Path) -> None:
    first = open_monitor("voting", tmp_path / "run")
    for step in range(12):
        first.observe(spans(5))
        first.end_step(step)
    first.close()
    second = open_monitor("voting", tmp_path / "run", resume=True)
    alerts = []
    for step in range(10, 24):
        second.observe(spans(16))
        alerts += second.end_step(step).alerts
    second.close()
    assert [alert.detector for alert in alerts] == ["length_inflation"]
    assert alerts[0].baseline == pytest.approx(5.0)


def test_mistakes_are_told_at_set_up(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="votin"):
        open_monitor("votin", tmp_path / "a")
    with pytest.raises(ConfigError, match="tear"):
        open_monitor("voting", tmp_path / "b", config={"tear": "full"})
    with pytest.raises(ConfigError, match="sede"):
        open_monitor("voting", tmp_path / "c", sede=3)
    assert not list(tmp_path.iterdir())


def test_the_environment_names_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.toml"
    path.write_text("[baseline]\nwindow = 3\n")
    monkeypatch.setenv("ROLEDRIFT_CONFIG", str(path))
    monitor = open_monitor("voting", tmp_path / "run")
    assert monitor.header.config["baseline"]["window"] == 3


def test_the_report_says_what_was_compared(tmp_path: Path) -> None:
    from roledrift import build_report
    from roledrift.report.html import render_html
    from roledrift.spans import Comparison

    monitor = open_monitor("voting", tmp_path / "run")
    one, zero = np.ones(4, np.int64), np.zeros(4)
    pair = Comparison("update", one, *(zero,) * 5, 1.0, 1.0, 1)
    for step in range(2):
        monitor.observe(SpanTable(VOTING.role_names, np.array([0, 0, 0, 1]), comparisons=(pair,)))
        monitor.end_step(step)
    monitor.close()
    text = "after vs before the optimizer step, T=1.0, 1 step between"
    assert open_run(tmp_path / "run").steps()[0].labels == {"update": text}
    assert text in render_html(build_report(tmp_path / "run"))


def test_the_address_of_a_webhook_is_written_nowhere(tmp_path: Path) -> None:
    secret = "https://hooks.slack.com/services/T0/B0/token"
    open_monitor("voting", tmp_path / "run", config={"notify": {"webhook": secret}}).close()
    files = [path.read_text() for path in (tmp_path / "run").iterdir()]
    assert files
    assert not any("token" in text for text in files)
    with pytest.raises(ConfigError, match=r"notify\.webhook"):
        open_monitor("voting", tmp_path / "two", config={"notify": {"webhook": "slack.com"}})


def test_an_alert_names_the_last_clean_checkpoint_in_the_hosts_words(tmp_path: Path) -> None:
    out, config = tmp_path / "run", {"notify": {"console": False, "heartbeat_minutes": 60}}
    monitor = open_monitor("voting", out, config=config, host="trl.GRPOTrainer")
    for step in range(12):
        monitor.observe(spans(5))
        monitor.end_step(step, {"reward": 0.5})
        if step in (4, 8):
            monitor.note_checkpoint(step, f"s3://bucket/checkpoint-{step}")
    monitor.close()
    monitor = open_monitor("voting", out, config=config, host="trl.GRPOTrainer", resume=True)
    for step in range(12, 30):
        monitor.observe(spans(5 if step < 15 else 15 + step % 2))
        monitor.end_step(step, {"reward": 0.5})
        monitor.note_checkpoint(step, f"s3://bucket/checkpoint-{step}")
    monitor.close()
    (alert,) = open_run(out).alerts
    assert alert.checkpoint is not None
    assert alert.checkpoint.step == alert.onset - 1
    assert alert.advice[0].endswith(
        f"trainer.train(resume_from_checkpoint='{alert.checkpoint.path}')"
    )
    assert "cap the responses of the aggregator: max_completion_length=<tokens>" in alert.advice
    (again,) = replay(open_run(out).steps(), VOTING, host="trl.GRPOTrainer").alerts
    assert (again.checkpoint, again.advice) == (alert.checkpoint, alert.advice)


def test_a_misspelt_detector_is_an_error_at_set_up(tmp_path: Path) -> None:
    config = {"detectors": {"shoutng": {}}}
    for given in (config, from_mapping(config)):
        with pytest.raises(ConfigError, match=r"detectors\.shoutng: no such detector"):
            open_monitor("voting", tmp_path / "a", config=given)
    assert not list(tmp_path.iterdir())


def test_the_environment_switches_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROLEDRIFT_DISABLED", "1")
    monitor = open_monitor("voting", tmp_path / "run", config={"stop_on": ["length_inflation"]})
    for step in range(30):
        monitor.observe(spans(5 if step < 15 else 50))
        assert not monitor.end_step(step, {"reward": 0.5}).stop
    monitor.close()
    assert not list(tmp_path.iterdir())
    assert "ROLEDRIFT_DISABLED is set: nothing is watched or written" in caplog.text
    assert monitor.header.config["gradients"]["every"] == 0
    monkeypatch.setenv("ROLEDRIFT_DISABLED", "0")
    open_monitor("voting", tmp_path / "run").close()
    assert (tmp_path / "run" / "run.json").exists()
