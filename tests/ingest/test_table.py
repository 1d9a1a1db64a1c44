import csv
import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.errors import ConfigError, StoreError
from roledrift.ingest.table import load_mapping
from tests.ingest.logs import imported, read, spans, write_lines

MAPPING: dict[str, Any] = {
    "columns": {
        "step": "iteration",
        "role": "meta.agent",
        "tokens": "n",
        "reward": "r",
        "text": "out",
        "truncated": "finish",
        "answer": "gold",
    },
    "values": {"truncated": ["length", "max_tokens"]},
    "totals": {"val_accuracy": "val"},
}
ROWS: list[dict[str, Any]] = [
    {
        "iteration": s,
        "meta": {"agent": a},
        "n": 10,
        "r": 1.0,
        "out": "\\boxed{5}",
        "finish": f,
        "gold": 5,
    }
    for s in range(3)
    for a, f in (("solver0", "stop"), ("solver1", "length"), ("judge", "stop"))
]


def test_json_lines_with_dotted_columns(tmp_path: Path) -> None:
    rows = [*ROWS, {"iteration": 2, "val": 0.25}, {"meta": {"agent": "x"}}, {"iteration": 1}]
    source = write_lines(tmp_path / "a.jsonl", rows)
    done, run = imported(source, tmp_path / "run", "table", mapping=MAPPING)
    record = run.steps()[2]
    assert record.mean("solver", "truncated") == 0.5
    assert record.mean("solver/1", "length") == 10
    assert record.mean("solver", "correct") == 1
    assert record.totals == {"val_accuracy": 0.25}
    assert done.odd == {"row without a role": 1, "row without a step": 1}


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    flat = [{**row, "agent": row["meta"]["agent"]} for row in ROWS]
    for row in flat:
        del row["meta"]
        row.setdefault("val", None)
    mapping = MAPPING | {"columns": MAPPING["columns"] | {"role": "agent"}}
    for suffix in ("csv", "parquet"):
        (tmp_path / suffix).mkdir()
    with (tmp_path / "csv" / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)
    pq.write_table(pa.Table.from_pylist(flat), tmp_path / "parquet" / "a.parquet")
    found = [
        imported(tmp_path / one, tmp_path / f"run-{one}", "table", mapping=mapping)[1].steps()
        for one in ("csv", "parquet")
    ]
    assert [one.groups for one in found[0]] == [one.groups for one in found[1]]


def test_lists_per_token_become_comparisons(tmp_path: Path) -> None:
    row = {
        "s": 0,
        "lp": [-1.0, -1.0, -5.0],
        "old": [-1.5, -1.5, -1.0],
        "h": [0.5, 0.5, 9.0],
        "m": [1, 1, 0],
    }
    bad = {"s": 0, "lp": [-1.0], "old": [-1.0, -2.0]}
    source = write_lines(tmp_path / "a.jsonl", [row, bad])
    mapping = {
        "columns": {
            "step": "s",
            "logp": "lp",
            "old_logp": "old",
            "token_entropy": "h",
            "mask": "m",
        },
        "constants": {"role": "generator"},
        "settings": {"temperature": 0.7, "steps_between": 1},
    }
    done, run = imported(source, tmp_path / "run", "table", mapping=mapping)
    record = run.steps()[0]
    assert record.mean("generator", "old.chi2") == pytest.approx(math.exp(1) - 1)
    assert record.mean("generator", "entropy") == 0.5
    assert record.mean("generator", "ppl") == pytest.approx(math.e)
    assert record.mean("generator", "length") == 2
    assert done.odd == {"per-token lists of different lengths": 1}


def test_other_temperatures_are_refused(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "a.jsonl", [{"s": 0, "a": [-1.0], "b": [-1.1]}])
    mapping = {
        "columns": {"step": "s", "logp": "a", "rollout_logp": "b"},
        "constants": {"role": "g"},
        "settings": {"temperature": 0.7, "rollout_temperature": 1.0},
    }
    _, run = imported(source, tmp_path / "run", "table", mapping=mapping)
    assert run.steps()[0].mean("g", "rollout.refused") == 1
    assert run.steps()[0].stat("g", "rollout.chi2") is None


def test_all_problems_of_a_mapping_are_named_at_once(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text('format = "xml"\n[columns]\nrole = 3\nrewards = "r"\n[setting]\n')
    with pytest.raises(ConfigError) as raised:
        load_mapping(file)
    said = str(raised.value)
    for part in (
        "'xml'",
        "columns.role",
        "did you mean 'reward'?",
        "'settings'?",
        "columns.step: is needed",
    ):
        assert part in said
    file.write_text("[columns")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_mapping(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_mapping(tmp_path / "no.toml")


def test_a_table_needs_a_mapping_and_a_known_suffix(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--mapping"):
        read(tmp_path, "table")
    with pytest.raises(StoreError, match="no file here"):
        read(tmp_path, "table", mapping=MAPPING)
    (tmp_path / "a.xyz").write_text("x")
    with pytest.raises(StoreError, match="no known table"):
        read(tmp_path / "a.xyz", "table", mapping=MAPPING)


def test_odd_csv_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('s,n\n0,5\n1,x\n2,3,4,5\n3,\x00\n4,"open')
    mapping = {"columns": {"step": "s", "tokens": "n"}, "constants": {"role": "g"}}
    events, one = read(file, "table", mapping=mapping)
    assert [(row.step, row.tokens) for row in spans(events)][:3] == [(0, 5), (1, None), (2, 3)]
    assert one.ledger.counts["CSV row with too many fields"] == 1
    assert one.ledger.counts["tokens is not a number"] >= 1


CELL = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.lists(st.floats(), max_size=3)
)


KEY = st.sampled_from(["stepr", "ole", "tok", "lp", "old", "text"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(KEY, CELL), max_size=6))
def test_no_row_raises(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    file = tmp_path_factory.mktemp("t") / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {
        "step": "stepr",
        "role": "ole",
        "tokens": "tok",
        "logp": "lp",
        "old_logp": "old",
        "text": "text",
    }
    if not all(any(key in row for row in rows) for key in ("stepr", "ole")) and rows:
        with pytest.raises(ConfigError, match="is not a column"):
            read(file, "table", mapping={"columns": columns})
        return
    events, one = read(file, "table", mapping={"columns": columns})
    rejected = [n for what, n in one.ledger.counts.items() if what.startswith("row without")]
    assert len(spans(events)) + sum(rejected) == len(rows)
    with suppress(StoreError):  # nothing usable in it
        imported(file, file.parent / "run", "table", mapping={"columns": columns})


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    """Refused where there is a header; in JSON lines only if nothing can be done without it."""
    table = tmp_path / "a.csv"
    table.write_text("iteration;agent;score;text\n1;g;0.5;x\n")
    wrong = {"columns": {"step": "iteration", "role": "agent", "reward": "scor", "text": "txt"}}
    with pytest.raises(ConfigError) as caught:
        read(table, "table", mapping=wrong)
    assert str(caught.value) == (
        f"{table}: the mapping's columns.reward = 'scor' is not a column, did you mean 'score'?; "
        "the mapping's columns.text = 'txt' is not a column, did you mean 'text'? (there are "
        "iteration, agent, score, text)"
    )
    rows = write_lines(tmp_path / "a.jsonl", [{"meta": {"iter": 1}, "agent": "g"}])
    nested = {"columns": {"step": "meta.itr", "role": "agent"}}
    with pytest.raises(
        ConfigError, match=r"'meta\.itr' is not a column, did you mean 'meta\.iter'"
    ):
        read(rows, "table", mapping=nested)
    nested["columns"] |= {"step": "meta.iter", "reward": "scor"}
    events, one = read(rows, "table", mapping=nested)
    assert len(spans(events)) == 1
    assert list(one.ledger.counts) == ["mapped column that no row has: columns.reward = 'scor'"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("comma", [",", ";", "\t"])
def test_tables_as_spreadsheets_write_them(tmp_path: Path, encoding: str, comma: str) -> None:
    file = tmp_path / "a.csv"
    rows = [["s", "who", "said"], ["3", "g", '"two\nlines"'], ["4", "g", "é"], ["5", "g", '"cut']]
    file.write_text("\r\n".join(comma.join(row) for row in rows), encoding=encoding)
    mapping = {"columns": {"step": "s", "role": "who", "text": "said"}}
    events, one = read(file, "table", mapping=mapping)
    assert [(row.step, row.text) for row in spans(events)] == [(3, "two\nlines"), (4, "é")]
    assert one.ledger.counts["broken CSV row"] == 1
