from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import pytest

from roledrift import codec
from roledrift.cli.console import write_json
from roledrift.cli.main import app, main
from roledrift.codec import RECORD_KINDS
from roledrift.judgement import Alert, Verdict
from roledrift.records import GramRecord, RunHeader, Sample, Stat, StepRecord
from roledrift.report.build import build_report
from roledrift.report.write import render_json
from roledrift.workflow import VOTING
from tests.cli.runs import write_run
from tests.notify.alerts import INCIDENT
from tools.schemas import DOCUMENTS, FOLDER, every, record_schema, report_schema, verb_schema


def test_every_verb_has_one() -> None:
    assert set(DOCUMENTS) == {str(one.name) for one in app.registered_commands}


def test_committed_schemas_are_those_of_the_code() -> None:
    """`python -m tools.schemas` writes them anew."""
    committed = {str(one.relative_to(FOLDER)) for one in FOLDER.rglob("*.json")}
    made = dict(every())
    assert committed == set(made)
    for file, schema in made.items():
        assert json.loads((FOLDER / file).read_text()) == schema, file
        jsonschema.Draft202012Validator.check_schema(schema)


ONE_OF_EACH = {
    "run": RunHeader("r", VOTING, seed=3, config={"tier": "full"}, notes={"stress": "none"}),
    "step": StepRecord(
        step=3,
        groups={"generator": {"length": Stat(4, 2.5, sd=math.nan, high=math.inf, p50=2.0)}},
        totals={"reward": -math.inf},
        gradients=(GramRecord("shared", ("generator",), ((math.nan,),)),),
        missing=("reward_N",),
        faults={"x": 1},
        labels={"a": "b"},
        cost_ms={"probes": 0.5},
    ),
    "alert": Alert(
        "i", "d", "f", "r", "p", "ERROR", "open", 3, 2, "t", "x", value=math.nan, advice=("a",)
    ),
    "incident": INCIDENT,
    "sample": Sample(1, "generator", "text \x1b[31m\u202e", flags=("canary",)),
    "verdict": Verdict("d", "r", "no verdict", needs=("reward_N",)),
}


@pytest.mark.parametrize("kind", sorted(RECORD_KINDS))
def test_real_lines_obey_theirs(kind: str) -> None:
    body = json.loads(codec.to_json(ONE_OF_EACH[kind]))
    jsonschema.validate(body, record_schema(kind))
    body.pop("v")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, record_schema(kind))


def test_real_reports_obey_theirs(runs: Path) -> None:
    body = json.loads(render_json(build_report(runs)))
    jsonschema.validate(body, report_schema())
    body["runs"][0]["state"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, report_schema())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "a", 40)
    write_run(folder / "b", 60, inflate_from=35)
    write_run(folder / "empty", 0)
    (folder / "log.csv").write_text("step,role,text,reward\n1,solver,hello,1.0\n")
    (folder / "map.toml").write_text(
        '[columns]\nstep = "step"\nrole = "role"\ntext = "text"\nreward = "reward"\n'
    )
    return folder


DONE = {
    "check": (["{0}/b"], ["{0}"], ["{0}/empty"], ["{0}/b", "{0}/gone"]),
    "compare": (["{0}/a", "{0}/b"],),
    "demo": (["-o", "{1}/demo"], ["--list"]),
    "doctor": ([], ["{0}/b"]),
    "import": (["{0}/log.csv", "--mapping", "{0}/map.toml", "--dry-run"],),
    "ls": (["{0}"],),
    "report": (["{0}/a", "-o", "{1}/report"],),
    "view": (["{0}", "--export", "{1}/site"],),
    "watch": (["{0}/b", "--once"],),
}
NOT_DONE = {
    "demo": ["-o", "/proc/none"],
    "doctor": ["{0}/gone"],
    "compare": ["{0}/a", "{0}/gone"],
    "ls": ["{0}/gone"],
}


@pytest.mark.parametrize("verb", sorted(DOCUMENTS))
def test_what_a_verb_prints_obeys_it(
    verb: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = verb_schema(verb)
    for arguments in DONE[verb]:
        main([verb, *(one.format(runs, tmp_path) for one in arguments), "--json"])
        body = json.loads(capsys.readouterr().out)
        assert body["schema"] == schema["anyOf"][0]["properties"]["schema"]["const"]
        jsonschema.validate(body, schema)
    for given in (NOT_DONE.get(verb, ["{0}/gone"]), ["--no-such-option"]):
        main([verb, *(one.format(runs, tmp_path) for one in given), "--json"])
        body = json.loads(capsys.readouterr().out)
        assert set(body["error"]) == {"kind", "message", "hint"}
        jsonschema.validate(body, schema)
        body["error"]["kind"] = "strange"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, schema)


def test_numbers_that_json_lacks_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": [math.nan, {"b": -math.inf}], "c": (1.5, None)})
    assert json.loads(capsys.readouterr().out) == {
        "a": ["NaN", {"b": "-Infinity"}],
        "c": [1.5, None],
    }
