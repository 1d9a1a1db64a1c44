import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roledrift.cli.main import app, main
from roledrift.store.reader import open_run
from tests.cli.runs import write_run
from tests.ingest import trees
from tests.ingest.logs import FIXTURES, unpacked, write_lines
from tests.ingest.test_importing import inflating


def call(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_import_then_check(tmp_path: Path) -> None:
    dump = inflating(tmp_path / "dump")
    code, out, err = call("import", dump, "-o", tmp_path / "run")
    assert code == 0
    assert out.splitlines() == [
        "paper: 20 steps (0 to 190), 320 spans of generator x3, aggregator; isolated policies",
        str(tmp_path / "run"),
    ]
    assert "episode files with trajectories" in err
    code, out, _ = call("check", tmp_path / "run")
    assert (code, "failing: The aggregator" in out) == (1, True)


def test_check_and_report_take_foreign_logs_as_they_are(tmp_path: Path) -> None:
    dump = inflating(tmp_path / "dump")
    code, out, err = call("check", dump)
    assert (code, out.startswith(f"{dump}: failing: ")) == (1, True)
    assert "imported as paper" in err
    code, out, _ = call("check", dump, "--json")
    assert json.loads(out)["runs"][0]["path"] == str(dump)
    code, out, _ = call("report", dump, "-o", tmp_path / "out", "--format", "md")
    assert code == 0
    page = Path(out.strip()).read_text()
    assert "length" in page
    assert f"roledrift report {dump}" in page.replace("\\", "")
    assert "/roledrift-" not in page.replace("\\", "")


def test_json_and_dry_run(tmp_path: Path) -> None:
    code, out, err = call("import", FIXTURES / "trl", "--dry-run", "--json")
    body = json.loads(out)
    assert (code, err) == (0, "")
    (run,) = body["runs"]
    assert (body["schema"], run["format"], run["out"]) == ("roledrift.import/2", "trl", None)
    assert body["failed"] == {}


def test_a_table_and_its_map(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [{"s": n, "who": "0", "n": 3} for n in range(3)])
    mapping = tmp_path / "m.toml"
    mapping.write_text('[columns]\nstep = "s"\nrole = "who"\ntokens = "n"\n')
    code, out, _ = call(
        "import", source, "--mapping", mapping, "--roles", "0=solver", "--routing", "isolated",
        "-o", tmp_path / "run",
    )  # fmt: skip
    assert (code, "3 spans of solver" in out) == (0, True)


def test_every_verb_takes_one_of_several_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = unpacked("trackio/grpo.db.gz", tmp_path)
    code, out, _ = call("check", database, "--json")
    assert (code, [Path(one["path"]).name for one in json.loads(out)["runs"]]) == (
        3,
        ["brave-fox", "calm-owl"],
    )
    one = f"{database}#calm-owl"
    code, out, _ = call("check", one)
    assert (code, out.startswith(f"{one}: no verdict")) == (3, True)
    code, out, _ = call("import", one, "-o", tmp_path / "run")
    assert (code, open_run(tmp_path / "run").header.run) == (0, "calm-owl")
    code, out, err = call("view", one, "--export", tmp_path / "page")
    assert (code, (tmp_path / "page" / "index.html").is_file(), "read once" in err) == (
        0,
        True,
        True,
    )
    code, out, _ = call("report", one, "-o", tmp_path / "report", "--format", "json")
    assert (code, (tmp_path / "report" / "report.json").is_file()) == (0, True)
    assert call("doctor", one)[0] == 0
    assert main(["check", f"{database}#nobody"]) == 2
    assert "it holds brave-fox, calm-owl" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--as", "wanb"], "did you mean 'wandb'?"),
        (["--routing", "mixed"], "say shared or isolated"),
        (["--roles", "x"], "no name=role"),
        (["--mapping", "no.toml"], "cannot be read"),
        ([], "is empty"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    code, out, err = call("import", tmp_path, "-o", tmp_path / "run", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    code, out, _ = call("import", tmp_path / "nothing", "--json", "--dry-run")
    assert (code, json.loads(out)["error"]["kind"]) == (2, "not_found")


def test_a_run_is_not_imported(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", 3)
    for source in (tmp_path / "runs" / "a", tmp_path / "runs"):
        code, out, err = call("import", source)
        assert (code, out) == (2, "")
        assert f"holds a run already; `roledrift check {source}` judges it" in err


def test_it_goes_where_runs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEDRIFT_DIR", str(tmp_path / "mine"))
    assert call("import", FIXTURES / "trl")[0] == 0
    assert (tmp_path / "mine" / "trl" / "run.json").exists()


def test_a_file_is_not_called_missing(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("nothing known")
    for verb in ("check", "doctor", "ls", "watch"):
        code, out, err = call(verb, log)
        assert (code, out if verb == "check" else "") == (2, "")
        assert f"{log}: a file, not a run directory" in err
        assert f"roledrift import {log}" in err


def test_a_log_that_cannot_be_imported_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(FIXTURES / "trl", broken)
    for file in broken.rglob("*.parquet"):
        file.write_bytes(b"PAR1 and nothing more")
    for file in broken.rglob("trainer_state.json"):
        file.write_text("{")
    code, out, err = call("check", broken, write_run(tmp_path / "run"))
    assert code == 3
    assert err.startswith(f"roledrift: {broken}: read as 'trl', but it holds no step")
    assert "run: clean" in out


def test_a_dump_without_token_counts_is_judged_on_characters(tmp_path: Path) -> None:
    """The aggregator of verl's own dump format solves again from step 18 on."""
    prose = "we add both sides, then check every candidate again, and so it is number one. " * 4
    for step in range(30):
        rows = []
        for problem in range(16):
            texts = [f"the sum of {problem} and {step} is \\boxed{{5}}"] * 3
            texts.append(prose[: 231 + 7 * problem] if step >= 18 else "\\boxed{1}")
            rows += [
                {"input": f"p{problem}", "output": text, "gts": "5", "score": float(problem % 2),
                 "step": step, "uid": f"p{problem}_0_{index}"}
                for index, text in enumerate(texts)
            ]  # fmt: skip
        write_lines(tmp_path / "dump" / f"{step}.jsonl", rows)
    roles = "0=generator:0,1=generator:1,2=generator:2,3=aggregator"
    code, _, err = call("import", tmp_path / "dump", "--roles", roles, "-o", tmp_path / "run")
    assert code == 0
    assert "lengths: in characters" in err
    assert "rules: 0=generator:0: 480 spans" in err
    code, out, _ = call("check", tmp_path / "run", "--json")
    (run,) = json.loads(out)["runs"]
    found = {(one["finding"], one["role"], one["onset"]) for one in run["alerts"]}
    assert ("length_inflation", "aggregator", 18) in found
    verdicts = {(one["detector"], one["role"]): one for one in run["verdicts"]}
    assert "(9.0 -> " in verdicts["length_inflation", "aggregator"]["reason"]
    assert "characters)" in verdicts["length_inflation", "aggregator"]["reason"]
    assert verdicts["sp_role_capture", "aggregator"]["state"] != "no verdict"
    assert (code, run["outcome"]) != (0, "clean")


def test_a_tree_is_a_run_per_experiment(tmp_path: Path) -> None:
    trees.dump(tmp_path / "tree", trees.IP, dict.fromkeys(range(0, 90, 10), 4), trees.voting)
    trees.dump(tmp_path / "tree", trees.SP, {10: 5, 20: 6}, trees.voting)
    broken = tmp_path / "tree" / trees.DUMPS / trees.ORCH / "dapo_math" / "step_1"
    broken.mkdir(parents=True)
    (broken / "eval_0.json").write_text('{"trajectories": [')
    code, out, err = call("import", tmp_path / "tree", "-o", tmp_path / "runs")
    assert code == 2
    assert f"({trees.ORCH}): not imported: " in err
    assert f"{tmp_path / 'tree'} (2 of 2 runs): next time: " in err
    assert sorted(one.name for one in (tmp_path / "runs").iterdir()) == [trees.IP, trees.SP]
    assert len(out.splitlines()) == 4
    code, out, _ = call("check", tmp_path / "tree", "--json")
    paths = {one["path"] for one in json.loads(out)["runs"]}
    assert paths == {str(tmp_path / "tree" / name) for name in (trees.IP, trees.SP)}
    assert call("report", tmp_path / "tree", "-o", tmp_path / "out")[0] == 0
    code, out, _ = call("doctor", tmp_path / "tree")
    assert f"{trees.IP}: length_inflation" in out
    code, out, _ = call("import", tmp_path / "tree", "--dry-run", "--json")
    body = json.loads(out)
    assert (len(body["runs"]), len(body["failed"])) == (2, 1)
