import json
from dataclasses import replace
from pathlib import Path

import pytest
from roledrift.detect.panel import Replay
from typer.testing import CliRunner

from roledrift.cli.check import check_run, findings_of
from roledrift.cli.main import app
from roledrift.judgement import Alert, Verdict, alert_id
from roledrift.store.reader import open_run
from tests.cli.runs import crash_run, write_run

ALERT = Alert(
    id=alert_id("d", "r", 4),
    detector="d",
    finding="f",
    role="r",
    policy="p",
    level="WARN",
    state="open",
    step=6,
    onset=4,
    title="t",
    text="x",
)


def check(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["check", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_a_clean_run(tmp_path: Path) -> None:
    code, out, err = check(write_run(tmp_path / "run"))
    assert code == 0
    assert "run: clean: 30 steps" in out
    assert err == ""


def test_findings_name_the_role_and_since_when(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", inflate_from=15))
    assert code == 1
    assert "findings: aggregator length_inflation since step 15" in out
    assert "\x1b" not in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_a_closed_error_still_counts(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", inflate_from=12, until=18))
    assert code == 1
    assert "since step 12, closed by now" in out


def test_too_few_steps_are_inconclusive(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", 3))
    assert code == 3
    assert "too few steps: 3, the baseline needs 9" in out


def test_absent_statistics_are_inconclusive(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", name="chars"))
    assert code == 3
    assert "inconclusive: no detector reached a verdict, needs" in out


def test_no_run_is_inconclusive(tmp_path: Path) -> None:
    code, out, _ = check(tmp_path)
    assert code == 3
    assert "no run found here" in out


def test_an_empty_run_is_inconclusive(tmp_path: Path) -> None:
    assert check(write_run(tmp_path / "run", 0))[0] == 3


@pytest.mark.parametrize("content", ['{"v":1', '{"v":2,"kind":"run"}'])
def test_an_unreadable_run_is_2_in_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    code, out, err = check(tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("roledrift: ")
    assert err.count("\n") == 1
    assert "run.json" in err


def test_a_missing_path_is_2(tmp_path: Path) -> None:
    code, _, err = check(tmp_path / "nothing")
    assert code == 2
    assert "no such directory" in err


def test_of_several_runs_the_worst_code_wins(tmp_path: Path) -> None:
    clean = write_run(tmp_path / "clean")
    short = write_run(tmp_path / "short", 3)
    drift = write_run(tmp_path / "drift", inflate_from=15)
    assert check(clean, short)[0] == 3
    assert check(clean, short, drift)[0] == 1
    assert check(tmp_path)[0] == 1
    assert check(clean, drift, tmp_path / "nothing")[0] == 2
    _, out, _ = check(tmp_path)
    assert [line.split(": ")[1] for line in out.splitlines() if str(tmp_path) in line] == [
        "clean",
        "findings",
        "inconclusive",
    ]


def test_json_holds_the_same_and_nothing_else(tmp_path: Path) -> None:
    write_run(tmp_path / "drift", inflate_from=15)
    code, out, err = check(tmp_path, "--json")
    document = json.loads(out)
    (run,) = document["runs"]
    assert (code, document["code"], run["code"], err) == (1, 1, 1, "")
    assert document["counts"] == {"clean": 0, "findings": 1, "unreadable": 0, "inconclusive": 0}
    assert (run["outcome"], run["steps"], run["error"]) == ("findings", 30, None)
    (finding,) = run["findings"]
    assert (finding["role"], finding["detector"], finding["since"], finding["state"]) == (
        "aggregator",
        "length_inflation",
        15,
        "open",
    )
    assert finding["id"] == alert_id("length_inflation", "aggregator", 15)
    assert run["alerts"][0]["id"] == finding["id"]
    assert "error" not in document


def test_json_errors_come_in_an_envelope(tmp_path: Path) -> None:
    code, out, err = check(tmp_path / "nothing", "--json")
    document = json.loads(out)
    assert (code, err) == (2, "")
    assert document["error"]["kind"] == "not_found"
    assert set(document["error"]) == {"kind", "message", "hint"}
    (tmp_path / "run.json").write_text('{"v":9,"kind":"run"}')
    assert json.loads(check(tmp_path, "--json")[1])["error"]["kind"] == "schema_too_new"


def test_problems_of_the_store_go_to_standard_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "steps.x.jsonl").write_text("garbage\n")
    code, _, err = check(run)
    assert code == 0
    assert "steps.x.jsonl:1: not a JSON line" in err


def test_a_configuration_file_decides(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    lax = tmp_path / "roledrift.toml"
    lax.write_text("[detectors.length_inflation]\nwatch_ratio = 40.0\ndrift_ratio = 50.0\n")
    assert check(run, "--config", lax)[0] == 0
    lax.write_text("[detectors.length_inflation]\ndrift_ration = 50.0\n")
    code, _, err = check(run, "--config", lax)
    assert code == 2
    assert "did you mean 'drift_ratio'" in err
    code, out, _ = check(run, "--config", tmp_path / "nothing.toml", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "invalid_config")


def test_without_one_the_run_is_judged_by_what_it_was_watched_with(tmp_path: Path) -> None:
    off = {"detectors": {"length_inflation": {"enabled": False}}}
    assert check(write_run(tmp_path / "off", inflate_from=15, config=off))[0] == 3
    odd = write_run(tmp_path / "odd", inflate_from=15, config={"from_the_future": 1})
    code, _, err = check(odd)
    assert code == 1
    assert "judged by the default configuration" in err


def test_only_some_detectors(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    assert check(run, "--detector", "accuracy_cliff")[0] == 3
    code, out, _ = check(run, "--detector", "accuracy_cliff", "--detector", "length_inflation")
    assert code == 1
    assert "hygiene" not in out
    document = json.loads(check(run, "--detector", "length_inflation", "--json")[1])
    assert {one["detector"] for one in document["runs"][0]["verdicts"]} == {"length_inflation"}
    code, out, err = check(run, "--detector", "lenght_inflation")
    assert (code, out) == (2, "")
    assert "Did you mean 'length_inflation'?" in err
    # Silence is nobody's verdict: who asks for one detector is not told of it.
    crashed = crash_run(tmp_path / "crashed", last=1e9)
    assert check(crashed, "--detector", "length_inflation")[0] == 0


def test_only_some_steps(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    code, out, _ = check(run, "--step-range", ":14")
    assert code == 0
    assert "clean: 15 steps" in out
    assert check(run, "--step-range", "16:")[0] == 0, "the baseline is what came first"
    assert check(run, "--step-range", "3:29")[0] == 1
    assert check(run, "--step-range", "3:6")[0] == 3
    assert check(run, "--step-range", "100:200")[0] == 3
    for wrong in ("3-9", ":", "a:b", "9:3", "1:2:3", "1.5:3"):
        code, out, err = check(run, "--step-range", wrong)
        assert (code, out) == (2, "")
        assert wrong in err
    crashed = crash_run(tmp_path / "crashed", last=1e9)
    assert check(crashed, "--step-range", ":18")[0] == 0
    assert check(crashed, "--step-range", ":19")[0] == 1


def test_exit_zero_is_for_jobs_that_only_report(tmp_path: Path) -> None:
    assert check(write_run(tmp_path / "run", inflate_from=15), "--exit-zero")[0] == 0
    assert check(write_run(tmp_path / "short", 3), "--exit-zero")[0] == 0
    assert check(tmp_path / "nothing", "--exit-zero")[0] == 2


def test_of_several_runs_only_what_is_wrong_is_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "a", inflate_from=15)
    write_run(tmp_path / "b")
    _, out, err = check(tmp_path)
    assert [line.split()[0] for line in out.splitlines() if line.startswith(" ")] == ["drift"]
    assert "2 runs: clean 1, findings 1, unreadable 0, inconclusive 0" in err
    _, out, _ = check(tmp_path, "--all")
    assert "no verdict" in out


def test_the_worst_comes_first(tmp_path: Path) -> None:
    _, out, _ = check(write_run(tmp_path / "a", inflate_from=15))
    states = [line[2:12].split("  ")[0] for line in out.splitlines()[1:]]
    assert states == sorted(states, key=["drift", "watch", "ok", "no verdict"].index)
    assert states[0] == "drift"


def test_many_problems_are_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "steps.x.jsonl").write_text("garbage\n" * 9)
    _, _, err = check(run)
    assert err.count("not a JSON line") == 5
    assert "and 4 more like these" in err


def test_the_level_that_counts() -> None:
    warned = Replay((), (ALERT,), {}, {})
    assert findings_of(warned, "ERROR") == ()
    (finding,) = findings_of(warned, "WARN")
    assert (finding.since, finding.state) == (4, "open")
    escalated = replace(ALERT, level="ERROR", state="escalated", step=8)
    over = replace(ALERT, level="INFO", state="closed", step=20)
    (finding,) = findings_of(Replay((), (ALERT, escalated, over), {}, {}), "ERROR")
    assert (finding.level, finding.state) == ("ERROR", "closed")


def test_drift_at_the_last_step_counts_without_an_alert() -> None:
    drift, watch = (Verdict("d", "r", state, onset=9) for state in ("drift", "watch"))
    (finding,) = findings_of(Replay((drift,), (), {}, {}), "ERROR")
    assert (finding.level, finding.since, finding.finding) == ("ERROR", 9, "d")
    assert findings_of(Replay((watch,), (), {}, {}), "ERROR") == ()
    assert findings_of(Replay((watch,), (), {}, {}), "WARN") == ()
    (lesser,) = findings_of(Replay((replace(drift, finding="other"),), (), {}, {}), "WARN")
    assert lesser.level == "WARN"
    # The open alert speaks for its verdict: a lesser finding stays a warning.
    assert findings_of(Replay((drift,), (ALERT,), {}, {}), "ERROR") == ()


def test_fail_on_takes_two_words(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    assert check(run, "--fail-on", "warn")[0] == 1
    assert check(run, "--fail-on", "fatal")[0] == 2


def test_a_crashed_run_is_a_finding_of_level_warn(tmp_path: Path) -> None:
    path = crash_run(tmp_path / "crashed", last=1e9)
    code, out, _ = check(path)
    assert code == 1
    assert "findings: silent since step 19 (crashed?)" in out
    assert check(path, "--fail-on", "error")[0] == 0
    run = open_run(path)
    assert check_run(run, now=1e9 + 5).findings == ()
    (finding,) = check_run(run, now=1e9 + 500).findings
    assert (finding.detector, finding.finding, finding.since) == ("heartbeat", "silent", 19)


def test_a_report_among_several_paths_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one")
    folder = tmp_path / "runs" / "report"
    assert CliRunner().invoke(app, ["report", str(run), "-o", str(folder)]).exit_code == 0
    code, out, err = check(run, folder)
    assert (code, err) == (0, f"roledrift: {folder}: a report, left out\n")
    assert "inconclusive" not in out
    assert check(folder)[0] == 3
