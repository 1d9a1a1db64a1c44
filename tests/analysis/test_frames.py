import math

import numpy as np
import pandas as pd
import pytest

from roledrift.analysis.frames import COLUMNS, TEXT_COLUMNS, frame_of, place, texts_of
from roledrift.records import GramRecord, Sample, Stat, StepRecord, StoredStats

ROLES = ("generator", "aggregator", "gen/0")
KEY = ["step", "scope", "role", "slot", "statistic"]


def record(step: int = 1) -> StepRecord:
    groups = {
        "*": {"length": Stat(8, 30.0)},
        "generator": StoredStats({"length": {"n": 6, "mean": 40.0, "sd": 2, "p50": 39}}),
        "generator/1": {"length": Stat(2, math.inf)},
        "gen/0": StoredStats({"k3": {"n": 4, "mean": "NaN"}}),
    }
    gram = GramRecord("shared", ("generator/0", "generator/1"), ((4.0, 1.0), (1.0, 3.0)))
    return StepRecord(step, groups=groups, totals={"length": 3.0}, gradients=(gram,))


@pytest.fixture
def frame() -> pd.DataFrame:
    return frame_of([record(1), record(2)], ROLES)


def test_columns_types_and_a_unique_key(frame: pd.DataFrame) -> None:
    assert tuple(frame.columns) == COLUMNS
    assert (frame.dtypes["step"], frame.dtypes["slot"]) == (np.int64, pd.Int64Dtype())
    assert set(map(str, frame.dtypes[5:])) == {"float64"}
    assert not frame.duplicated(KEY).any()


def test_every_number_is_where_it_was_measured(frame: pd.DataFrame) -> None:
    def row(scope: str, statistic: str, role: str) -> pd.Series:
        mask = (frame.scope == scope) & (frame.statistic == statistic) & (frame.role == role)
        return frame[mask & (frame.step == 2)].iloc[0]

    generator = row("role", "length", "generator")
    assert tuple(generator[["mean", "n", "sd", "p50"]]) == (40.0, 6.0, 2.0, 39.0)
    assert math.isnan(generator.p95)
    assert row("all roles", "length", "*")["mean"] == 30.0
    assert row("step", "length", "*")["mean"] == 3.0
    slot = row("slot", "length", "generator")
    assert (slot["mean"], slot.slot) == (math.inf, 1)
    assert math.isnan(row("role", "k3", "gen/0")["mean"])


def test_a_role_pivots_to_a_column(frame: pd.DataFrame) -> None:
    lengths = frame.query("scope == 'role' and statistic == 'length'")
    wide = lengths.pivot(index="step", columns="role", values="mean")
    assert wide["generator"].tolist() == [40.0, 40.0]


def test_gradient_norms_of_slots_and_of_their_role(frame: pd.DataFrame) -> None:
    norms = frame.query("statistic == 'gradient_norm' and step == 1")
    assert set(norms.role) == {"generator"}
    slots = norms[norms.scope == "slot"]
    assert dict(zip(slots.slot, slots["mean"], strict=True)) == {0: 2.0, 1: math.sqrt(3.0)}
    assert norms[norms.scope == "role"]["mean"].tolist() == [3.0]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("*", ("all roles", "*", None)),
        ("generator/2", ("slot", "generator", 2)),
        ("gen/0", ("role", "gen/0", None)),
        ("gen/0/1", ("slot", "gen/0", 1)),
        ("<b>/x", ("role", "<b>/x", None)),
        ("/", ("role", "/", None)),
    ],
)
def test_hostile_names_keep_their_place(group: str, expected: tuple[str, str, int | None]) -> None:
    assert place(group, ROLES) == expected


def test_no_records_and_no_texts_are_empty_frames_with_columns() -> None:
    assert (tuple(frame_of([], ROLES).columns), len(frame_of([], ROLES))) == (COLUMNS, 0)
    assert (tuple(texts_of([]).columns), len(texts_of([]))) == (TEXT_COLUMNS, 0)
    assert frame_of([], ROLES).dtypes.equals(frame_of([record()], ROLES).dtypes)


def test_texts_have_a_row_each() -> None:
    texts = texts_of([Sample(3, "generator", "a\x00\n<b>", slot=1, flags=("canary", "longest"))])
    (row,) = texts.itertuples(index=False)
    assert (row.step, row.role, row.slot, row.text) == (3, "generator", 1, "a\x00\n<b>")
    assert (row.flags, math.isnan(row.reward)) == (("canary", "longest"), True)
