"""``python -m tests.cli.test_schemas`` writes the schemas anew."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import pytest

from roledrift.cli.console import write_json
from roledrift.cli.main import app, main
from roledrift.cli.schemas import DOCUMENTS, document_schema
from tests.cli.runs import write_run

COMMITTED = Path(__file__).parents[2] / "docs" / "schemas" / "command_line"


def test_every_verb_has_one() -> None:
    assert set(DOCUMENTS) == {str(one.name) for one in app.registered_commands}


@pytest.mark.parametrize("verb", sorted(DOCUMENTS))
def test_committed_schemas_are_those_of_the_code(verb: str) -> None:
    assert json.loads((COMMITTED / f"{verb}.json").read_text()) == document_schema(verb)
    jsonschema.Draft202012Validator.check_schema(document_schema(verb))


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
    schema = document_schema(verb)
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


if __name__ == "__main__":
    COMMITTED.mkdir(exist_ok=True)
    for name in DOCUMENTS:
        text = json.dumps(document_schema(name), indent=1) + "\n"
        (COMMITTED / f"{name}.json").write_text(text)
