import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roledrift.codec import Record, from_json, from_plain, plain, to_json
from roledrift.errors import SchemaError
from roledrift.judgement import SEVERITIES, Alert, Consequence, Incident, TextPair, Verdict
from roledrift.records import Checkpoint, GramRecord, RunHeader, Sample, Stat, StepRecord
from roledrift.workflow import VOTING, Role, Workflow

number = st.floats(allow_nan=True, allow_infinity=True)
text = st.text(st.characters(exclude_categories=()), max_size=12)
words = st.dictionaries(text, text, max_size=3)
numbers = st.dictionaries(text, number, max_size=3)
stats = st.builds(
    Stat,
    n=number,
    mean=number,
    **{q: st.none() | number for q in ("sd", "low", "high", "p50")},
    shares=st.none() | st.lists(number, max_size=3).map(tuple),
)


@st.composite
def grams(draw: st.DrawFn) -> GramRecord:
    labels = tuple(draw(st.lists(text, min_size=1, max_size=3)))
    rows = tuple(tuple(draw(number) for _ in labels) for _ in labels)
    halves = {draw(text): rows} if draw(st.booleans()) else {}
    return GramRecord(draw(text), labels, rows, draw(text), draw(number), halves)


checkpoints = st.builds(Checkpoint, step=st.integers(), path=text)
steps = st.builds(
    StepRecord,
    step=st.integers(),
    writer=text,
    seq=st.integers(),
    time=text,
    groups=st.dictionaries(text, st.dictionaries(text, stats, max_size=3), max_size=3),
    totals=numbers,
    gradients=st.lists(grams(), max_size=2).map(tuple),
    missing=st.lists(text, max_size=2).map(tuple),
    faults=st.dictionaries(text, st.integers(0), max_size=2),
    labels=words,
    cost_ms=numbers,
    checkpoints=st.lists(checkpoints, max_size=2).map(tuple),
    solved=st.text("01", max_size=4),
    base=st.dictionaries(text, st.dictionaries(text, stats, max_size=2), max_size=2),
)
alerts = st.builds(
    Alert,
    value=st.none() | number,
    threshold=st.none() | number,
    evidence=st.none() | number,
    advice=st.tuples(text),
    pairs=st.lists(st.builds(TextPair, before=text, prompt=text), max_size=2).map(tuple),
    checkpoint=st.none() | checkpoints,
)
severities = st.sampled_from(SEVERITIES)
incidents = st.builds(
    Incident,
    severity=severities,
    sentence=text,
    consequences=st.lists(st.builds(Consequence, severity=severities), max_size=2).map(tuple),
    advice=st.tuples(text),
    checkpoint=st.none() | checkpoints,
)
verdicts = st.builds(Verdict, value=st.none() | number, onset=st.none() | st.integers())
samples = st.builds(Sample, reward=number, advantage=number, text=text, flags=st.tuples(text, text))


def same(a: Any, b: Any) -> bool:
    """Equality in which NaN equals NaN."""
    return repr(a) == repr(b)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(steps | alerts | incidents | verdicts | samples)
def test_every_record_survives_the_round_trip(record: Record) -> None:
    line = to_json(record)
    assert "\n" not in line
    assert same(from_json(line), record)
    assert same(from_plain(plain(record)), record)


@given(steps)
def test_lines_are_strict_json(record: StepRecord) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads(to_json(record), parse_constant=refuse)


@pytest.mark.parametrize(
    ("odd", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_non_finite_numbers_travel_as_words(odd: float, word: str) -> None:
    """Golden: other programs read these files."""
    line = to_json(StepRecord(1, groups={"g": {"s": Stat(1.0, odd)}}))
    assert json.loads(line)["groups"]["g"]["s"] == {"n": 1.0, "mean": word}
    back = from_json(line)
    assert isinstance(back, StepRecord)
    assert repr(back.mean("g", "s")) == repr(odd)


def test_the_header_keeps_the_workflow() -> None:
    mixed = Workflow("w", (Role("a", 3, "plan"), Role("b", terse=True), Role("c")), ("x", "x", "y"))
    header = RunHeader("r", mixed, seed=7, config={"tier": "full", "deep": {"stop_on": ["a"]}})
    assert from_json(to_json(header)) == header
    assert from_json(to_json(RunHeader("r", VOTING))) == RunHeader("r", VOTING)


def test_absent_optional_values_are_left_out() -> None:
    assert "onset" not in plain(Verdict("d", "r", "ok"))
    assert plain(Verdict("d", "r", "ok"))["v"] == 1


def novel(value: Any) -> Any:
    """``value`` with a key in every object that no version has."""
    if isinstance(value, dict):
        return {key: novel(item) for key, item in value.items()} | {"novelty": {"deep": [1]}}
    return [novel(item) for item in value] if isinstance(value, list) else value


def test_unknown_keys_are_passed_over() -> None:
    gram = GramRecord("p", ("a",), ((1.0,),))
    record = StepRecord(1, gradients=(gram,))
    for one in (record, RunHeader("r", VOTING), Sample(1, "r", "t"), Verdict("d", "r", "ok")):
        body = json.loads(to_json(one))
        assert same(from_plain({**body, "novelty": 1}), one)
    header = novel(json.loads(to_json(RunHeader("r", VOTING))))
    back = from_plain(header)
    assert isinstance(back, RunHeader)
    assert back.workflow == VOTING


def test_a_newer_schema_is_refused_with_the_way_out() -> None:
    with pytest.raises(SchemaError, match=r"schema 2.*install a newer roledrift"):
        from_json('{"v":2,"kind":"step","step":1}')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "not a JSON line"),
        ("{", "not a JSON line"),
        ("[]", "a record is a JSON object"),
        ("{}", "under 'v'"),
        ('{"v":1}', "unknown kind"),
        ('{"v":1,"kind":"steps"}', "known are"),
        ('{"v":1,"kind":"step"}', "malformed step record"),
        ('{"v":1,"kind":"step","step":"x"}', "malformed step record: step is not a whole number"),
        ('{"v":1,"kind":"step"}', "malformed step record: has no 'step'"),
        ('{"v":1,"kind":"step","step":1,"missing":"abc"}', "missing is not a JSON array"),
        (
            '{"v":1,"kind":"step","step":1,"groups":{"a":{"b":{"n":1,"mean":"x"}}}}',
            "malformed step record: groups.mean is not a number but 'x'",
        ),
        (
            '{"v":1,"kind":"run","run":"r","workflow":{"name":"w","roles":[{"name":"a","slots":[]}'
            '],"policies":["p"]}}',
            r"malformed run record: workflow.roles.slots is not a whole number but \[\]",
        ),
        (
            '{"v":1,"kind":"run","run":"r","workflow":{"name":"w","roles":[{"name":"a","duty":"x"}'
            '],"policies":["p"]}}',
            "workflow.roles.duty 'x' is none of",
        ),
        ('{"v":1,"kind":"step","step":1,"totals":{"a":"many"}}', "malformed step record"),
        ('{"v":1,"kind":"step","step":1,"groups":[1]}', "malformed step record"),
        ('{"v":1,"kind":"run","run":"r"}', "malformed run record"),
        (
            '{"v":1,"kind":"run","run":"r","workflow":{"name":"w","roles":[],"policies":[]}}',
            "malformed run",
        ),
    ],
)
def test_what_is_no_record_is_a_schema_error(line: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_json(line)


@given(steps, st.data())
def test_half_a_line_is_a_schema_error(record: StepRecord, data: st.DataObject) -> None:
    line = to_json(record)
    cut = data.draw(st.integers(0, len(line) - 1))
    with pytest.raises(SchemaError):
        from_json(line[:cut])


def test_alerts_of_older_versions_stay_readable() -> None:
    old = (
        '{"v":1,"kind":"alert","id":"a3f2","detector":"d","finding":"f","role":"r","policy":"p",'
        '"level":"WARN","state":"open","step":3,"onset":2,"title":"t","text":"x","advice":["a"]}'
    )
    alert = from_json(old)
    assert isinstance(alert, Alert)
    assert (alert.pairs, alert.checkpoint, alert.evidence, alert.chance) == ((), None, None, "")


def test_every_field_of_every_record_is_written() -> None:
    full = Alert(
        "i",
        "d",
        "f",
        "r",
        "p",
        "WARN",
        "open",
        3,
        2,
        "t",
        "x",
        "s",
        1.0,
        2.0,
        3.0,
        ("a",),
        True,
        "t",
        12.3,
        "against 8 needed",
        (TextPair(1, 3, "before", "after", "p1"),),
        Checkpoint(1, "runs/c-1"),
        "suspicious",
        "text",
        "the learning rate was raised x5",
    )
    assert from_json(to_json(full)) == full
    assert {one.name for one in fields(full)} <= plain(full).keys()


@pytest.mark.parametrize("name", ["config", "versions", "notes", "yardsticks"])
@pytest.mark.parametrize("odd", [True, [], "x", 7])
def test_a_header_with_an_odd_part_is_malformed(name: str, odd: object) -> None:
    """Damaged input that ended in a traceback of the report."""
    workflow = {"name": "w", "roles": [{"name": "a"}], "policies": ["p"]}
    with pytest.raises(SchemaError, match=f"malformed run record: {name} is not a JSON object"):
        from_plain({"v": 1, "kind": "run", "run": "r", "workflow": workflow, name: odd})
