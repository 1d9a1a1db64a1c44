import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roledrift.cli.check import check_run, exit_code
from roledrift.cli.findings import COUNTS
from roledrift.cli.main import app
from roledrift.detect.conclusion import OUTCOMES
from roledrift.judgement import alert_id
from roledrift.store.reader import open_run
from tests.cli.runs import crash_run, write_run


def check(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["check", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_a_clean_run(tmp_path: Path) -> None:
    code, out, err = check(write_run(tmp_path / "run"))
    assert code == 0
    assert "run: clean: Nothing found in 30 steps" in out
    assert err == ""


def test_findings_name_the_role_and_since_when(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", inflate_from=15))
    assert code == 1
    assert "failing: The aggregator has written 4.0 times as much" in out
    assert "since step 15" in out
    assert "\x1b" not in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_what_has_passed_is_suspicious_at_most(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=12, until=18)
    code, out, _ = check(run)
    assert (code, "suspicious: " in out, "It has passed." in out) == (0, True, True)
    assert check(run, "--fail-on", "suspicious")[0] == 1


def test_a_loss_remains_when_its_cause_has_passed(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", inflate_from=12, until=18, lost=0.3))
    assert (code, "failing: " in out) == (1, True)
    assert "Training accuracy has fallen from 0.61 (step" in out
    assert "It has passed." in out


def test_too_few_steps_are_no_verdict(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", 3))
    assert code == 3
    assert "no verdict: No verdict: 0 of" in out


def test_absent_statistics_are_no_verdict(tmp_path: Path) -> None:
    code, out, _ = check(write_run(tmp_path / "run", name="chars"))
    assert code == 3
    assert "verdicts were reached. Not measured: " in out


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
        "failing",
        "no verdict",
        "clean",
    ]


def test_json_holds_the_same_and_nothing_else(tmp_path: Path) -> None:
    write_run(tmp_path / "drift", inflate_from=15)
    code, out, err = check(tmp_path, "--json")
    document = json.loads(out)
    (run,) = document["runs"]
    assert (code, document["code"], run["code"], err) == (1, 1, 1, "")
    counts = dict.fromkeys((*OUTCOMES, "unreadable"), 0)
    assert document["counts"] == counts | {"failing": 1}
    assert (run["outcome"], run["steps"], run["error"]) == ("failing", 30, None)
    (incident,) = run["incidents"]
    assert run["sentence"] == incident["sentence"]
    (finding,) = run["findings"]
    assert (finding["role"], finding["detector"], finding["since"], finding["state"]) == (
        "aggregator",
        "length_inflation",
        15,
        "open",
    )
    assert finding["id"] == alert_id("length_inflation", "aggregator", 15)
    assert run["alerts"][0]["id"] == finding["id"]
    assert (finding["severity"], finding["incident"]) == ("failing", incident["id"])
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
    lax.write_text('[detectors.length_inflation]\nroles = ["generator"]\n')
    assert check(run, "--config", lax, "--finding", "length_inflation")[0] == 0
    lax.write_text("[detectors.length_inflation]\nlimits = 50.0\n")
    code, _, err = check(run, "--config", lax)
    assert code == 2
    assert "did you mean 'limit'" in err
    code, out, _ = check(run, "--config", tmp_path / "nothing.toml", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "invalid_config")


def test_without_one_the_run_is_judged_by_what_it_was_watched_with(tmp_path: Path) -> None:
    off = {"false_alerts_per_run": 0.05, "findings": ["entropy_collapse"]}
    assert check(write_run(tmp_path / "off", inflate_from=15, config=off))[0] == 3
    odd = write_run(tmp_path / "odd", inflate_from=15, config={"from_the_future": 1})
    code, _, err = check(odd)
    assert code == 1
    assert "judged by the default configuration" in err


def test_only_some_findings(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    assert check(run, "--finding", "entropy_collapse")[0] == 3, "what is not judged is not clean"
    assert check(run, "--finding", "accuracy_cliff")[0] == 0
    code, _, _ = check(run, "--finding", "accuracy_cliff", "--finding", "length_inflation")
    assert code == 1
    document = json.loads(check(run, "--finding", "length_inflation", "--json")[1])
    assert {one["detector"] for one in document["runs"][0]["verdicts"]} == {"length_inflation"}
    code, out, err = check(run, "--finding", "lenght_inflation")
    assert (code, out) == (2, "")
    assert "did you mean 'length_inflation'?" in err
    # Silence is no detector's finding: who asks for one finding is not told of it.
    crashed = crash_run(tmp_path / "crashed", last=1e9)
    assert "silent" not in check(crashed, "--finding", "length_inflation", "--json")[1]


def test_of_several_runs_only_what_is_wrong_is_shown(tmp_path: Path) -> None:
    write_run(tmp_path / "a", inflate_from=15)
    write_run(tmp_path / "b")
    _, out, err = check(tmp_path)
    assert [line.split()[0] for line in out.splitlines() if line.startswith(" ")] == ["failing"]
    assert "2 runs: 1 failing, 0 input problem, 0 suspicious, 0 no verdict, 1 clean" in err
    _, out, _ = check(tmp_path, "--all")
    words = [line.split()[0] for line in out.splitlines() if line.startswith(" ")]
    assert words[-2:] == ["ok", "Cost"]


def test_the_worst_comes_first(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", inflate_from=15, config={"tier": "business"})
    _, out, _ = check(run)
    states = [line[2:].split("  ")[0] for line in out.splitlines()[1:] if line[2:3].strip()]
    assert states[0] == "failing"
    assert len(states) > 1
    assert "failing" not in states[1:]


def test_many_problems_are_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "steps.x.jsonl").write_text("garbage\n" * 9)
    _, _, err = check(run)
    assert err.count("not a JSON line") == 5
    assert "and 4 more like these" in err


def test_the_exit_code_follows_the_severity() -> None:
    codes = {word: [exit_code(one, word) for one in OUTCOMES] for word in COUNTS}
    assert codes == {
        "failing": [1, 0, 0, 3, 0],
        "input": [1, 1, 0, 3, 0],
        "suspicious": [1, 1, 1, 3, 0],
        "never": [0, 0, 0, 3, 0],
    }
    assert exit_code("input problem") == 1
    assert exit_code("suspicious") == 0


def test_a_word_that_is_no_severity_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    assert check(run, "--fail-on", "never")[0] == 0
    code, _, err = check(run, "--fail-on", "fatal")
    assert (code, "is not one of failing, input, suspicious, never" in err) == (2, True)


def test_a_crashed_run_is_suspicious(tmp_path: Path) -> None:
    path = crash_run(tmp_path / "crashed", last=1e9)
    code, out, _ = check(path)
    assert code == 0
    assert "suspicious: Nothing has been recorded for" in out
    assert check(path, "--fail-on", "suspicious")[0] == 1
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
    assert "no verdict" not in out
    assert check(folder)[0] == 3


def test_verdicts_that_do_not_apply_are_counted_and_shown_on_request(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", config={"false_alerts_per_run": 0.05})
    aside = [
        one
        for one in json.loads(check(run, "--json")[1])["runs"][0]["verdicts"]
        if one["state"] == "no verdict" and one["reason"].startswith("does not apply")
    ]
    short, long = check(run)[1], check(run, "-v")[1]
    assert aside
    assert "does not apply:" not in short
    assert f"{len(aside)} more verdicts do not apply" in short
    assert long.count("does not apply:") == len(aside)
    assert check(run, "--all")[1] == long
    assert "does not apply:" not in check(run, "--format", "markdown")[1]


def test_costs_are_shown_and_unknown_where_nobody_says_them(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert "Cost so far, estimated" in check(run)[1]
    costs = json.loads(check(run, "--json")[1])["runs"][0]["costs"]
    assert (costs["devices"], costs["money"]) == (None, None)
    given = ("--devices", "8", "--gpu-hour-cost", "2.5", "--json")
    costs = json.loads(check(run, *given)[1])["runs"][0]["costs"]
    assert (costs["devices"], costs["gpu_hour_cost"]) == (8, 2.5)
    assert check(run, "--gpu-hour-cost", "-1")[0] == 2


def test_a_finding_says_what_it_rests_on(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    findings = json.loads(check(run, "--json")[1])["runs"][0]["findings"]
    assert findings
    assert all(one["sources"] for one in findings)
    assert findings[0]["sources"][0] in check(run, "-v")[1].replace("\n", " ")
    assert findings[0]["sources"][0] not in check(run)[1]
