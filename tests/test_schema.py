import json
import math
from pathlib import Path

import jsonschema
import pytest

from roledrift import codec
from roledrift.judgement import Alert, Verdict
from roledrift.records import GramRecord, RunHeader, Sample, Stat, StepRecord
from roledrift.schema import json_schema
from roledrift.workflow import VOTING
from tests.notify.alerts import INCIDENT

COMMITTED = Path(__file__).parents[1] / "docs" / "schemas"

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


@pytest.mark.parametrize("kind", sorted(ONE_OF_EACH))
def test_committed_schemas_are_those_of_the_code(kind: str) -> None:
    assert json.loads((COMMITTED / f"{kind}.json").read_text()) == json_schema(kind)


@pytest.mark.parametrize("kind", sorted(ONE_OF_EACH))
def test_real_lines_obey_the_schema(kind: str) -> None:
    body = json.loads(codec.to_json(ONE_OF_EACH[kind]))
    jsonschema.validate(body, json_schema(kind))
    body.pop("v")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, json_schema(kind))
