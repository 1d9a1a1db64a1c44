"""Token tensors become span rows: right, once per step, and without a trace in the trainer."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.capture.batch import RoleBatch
from roledrift.capture.tokens import TokenCapture
from roledrift.errors import CaptureError
from roledrift.measure.catalogue import probes_for
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.monitor import Monitor
from roledrift.protocols import SpanSource
from roledrift.records import RunHeader, summarise
from roledrift.spans import SpanTable
from roledrift.sums import RATIO_BINS, RATIO_EDGES, add
from roledrift.workflow import EVAL_OPT, VOTING

NAN, INF = math.nan, math.inf
A = torch.tensor([[-0.1, -0.5, -2.0, NAN], [-0.3, -0.05, INF, 7.0]])
B = torch.tensor([[-0.2, -0.4, -1.5, INF], [-0.3, -0.1, NAN, -9e9]])
MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
GOLDEN = {
    "chi2": -0.0973632,
    "k1": 0.09,
    "k3": 0.0235620,
    "training_ppl": 1.7851070,
    "behind_ppl": 1.6175778,
    "ppl_ratio": 1.0783352,
    "chi2_seq": -0.2634748,
    "training_log_ppl": 0.5208333,
    "log_ppl_diff": 0.0708333,
    "log_ppl_abs_diff": 0.0958333,
}
ROLE = ["generator", "generator"]


def drained(*batches):
    capture = TokenCapture(VOTING)
    for batch in batches:
        capture.add(batch)
    return capture.drain()


def one(*batches) -> SpanTable:
    (table,) = drained(*batches)
    return table


def padded(**columns):
    return RoleBatch.from_padded(VOTING, **{"role": ROLE, "mask": MASK, **columns})


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("rollout", "rollout_logp"),
        ("old", "old_logp"),
        ("update", None),
        ("reference", "reference_logp"),
    ],
)
def test_golden_vectors_through_the_whole_chain(kind, column):
    if column is None:
        batch = RoleBatch.rescored(VOTING, role=ROLE, mask=MASK, before=B, after=A)
    else:
        batch = padded(logp=A, **{column: B})
    table = one(batch)
    sums = add(p.measure(table) for p in probes_for("full", VOTING) if p.needs <= table.present)
    for group in ("generator", "*"):
        stats = summarise(sums)[group]
        for name, value in GOLDEN.items():
            assert stats[f"{kind}.{name}"].mean == pytest.approx(value, abs=1e-6), name
        assert stats[f"{kind}.peak"].high == pytest.approx(0.5, abs=1e-6)
        assert stats[f"{kind}.chi2"].n == 5
        ratio = stats[f"{kind}.ratio"]
        rho = np.exp([0.1, -0.1, -0.5, 0.0, 0.05])
        found = (ratio.n, ratio.mean, ratio.sd, ratio.low, ratio.high)
        assert found == pytest.approx((5, rho.mean(), rho.std(), rho.min(), rho.max()), abs=1e-6)
        assert (ratio.p01, ratio.p50) == pytest.approx((rho.min(), 1.0), rel=0.12)
        assert ratio.p99 == pytest.approx(rho.max(), rel=0.03)
        if kind != "update":
            assert stats["ppl"].mean == pytest.approx(GOLDEN["training_ppl"], abs=1e-6)


def test_golden_vectors_do_not_depend_on_micro_batches():
    parts = [
        RoleBatch.from_padded(
            VOTING,
            role=["generator"],
            mask=MASK[i : i + 1],
            logp=A[i : i + 1],
            old_logp=B[i : i + 1],
        )
        for i in range(2)
    ]
    whole, pieces = one(padded(logp=A, old_logp=B)), one(*parts)
    for name in ("tokens_N", "a_N", "b_N", "chi2_N", "k3_N", "peak_N", "high_N", "bins_N"):
        np.testing.assert_array_equal(
            getattr(whole.comparison("old"), name), getattr(pieces.comparison("old"), name)
        )


def test_every_column_arrives_exactly():
    big = 2**53 + 1  # no float64 holds it
    table = one(
        padded(
            slot=[2, 0],
            turn=[1, 3],
            prompt=torch.tensor([big, -big]),
            episode=[5, 6],
            group=torch.tensor([7, 8], dtype=torch.int32),
            truncated=torch.tensor([True, False]),
            reward=[0.1, NAN],
            advantage=torch.tensor([1.5, -0.25]),
            entropy=A.abs(),
            text=["x", None],
        )
    )
    assert table.prompt_N.tolist() == [big, -big]
    assert table.slot_N.tolist() == [2, 0]
    assert table.turn_N.tolist() == [1, 3]
    assert table.episode_N.tolist() == [5, 6]
    assert table.group_N.tolist() == [7, 8]
    assert table.tokens_N.tolist() == [3, 2]
    assert table.truncated_N.tolist() == [True, False]
    assert table.truncated_N.dtype == np.bool_
    np.testing.assert_array_equal(table.reward_N, [0.1, NAN])
    assert table.advantage_N.tolist() == [1.5, -0.25]
    np.testing.assert_allclose(table.entropy_N, [2.6, 0.35], rtol=1e-6)
    assert table.text_N == ("x", None)


def test_an_advantage_per_token_is_averaged_over_trainable_tokens():
    advantage_BT = torch.tensor([[1.0, 2.0, 3.0, NAN], [4.0, 6.0, INF, INF]])
    assert one(padded(advantage=advantage_BT)).advantage_N.tolist() == [2.0, 5.0]


def test_a_scoring_pass_counts_no_outputs():
    table = one(
        padded(
            logp=A, advantage=[1.0, 1.0], reward=[1.0, 0.0], truncated=[True, True], outputs=False
        )
    )
    assert table.present == {"role_N", "scored_N", "nll_N", "nonfinite_N"}


def test_rescored_rows_hold_the_comparison_only():
    table = one(RoleBatch.rescored(VOTING, role=ROLE, mask=MASK, before=B, after=A, steps=3))
    assert table.present == {"role_N", "nonfinite_N", "update"}
    assert table.comparison("update").steps_between == 3


def test_rescored_rows_may_be_compared_with_a_reference_too():
    table = one(
        RoleBatch.rescored(
            VOTING,
            role=ROLE,
            mask=MASK,
            before=A,
            after=A,
            reference_logp=B,
            slot=[2, 0],
            temperature=0.7,
        )
    )
    assert table.present == {"role_N", "slot_N", "nonfinite_N", "update", "reference"}
    assert table.comparison("update").k3_N.tolist() == [0.0, 0.0]
    assert table.comparison("reference").k3_N.sum() / 5 == pytest.approx(GOLDEN["k3"], abs=1e-6)
    assert table.comparison("reference").source == (0.7, 0.7, None)


def test_clipping_is_active_where_the_clipped_loss_is_strictly_larger():
    # Each ratio is on another side of 1 - 0.28, 1 - 0.2, 1 + 0.2 and 1 + 0.28.
    ratio = torch.tensor([[1.5, 1.25, 0.75, 0.9]] * 3)
    advantage = torch.tensor([1.0, -1.0, 0.0])
    batch = RoleBatch.from_padded(
        VOTING,
        role=["generator"] * 3,
        mask=torch.ones(3, 4),
        logp=ratio.log() - 2,
        old_logp=torch.full((3, 4), -2.0),
        advantage=advantage,
        clip=(0.2, 0.28),
    )
    loss = -advantage[:, None] * ratio
    clipped = -advantage[:, None] * ratio.clamp(0.8, 1.28)
    expected = (clipped > loss).sum(1)
    assert expected.tolist() == [1, 1, 0]
    assert one(batch).clipped_N.tolist() == expected.tolist()
    per_token = replace(batch, advantage_B=advantage[:, None].expand(3, 4))
    assert one(per_token).clipped_N.tolist() == expected.tolist()


def test_what_is_not_finite_is_left_out_and_counted():
    a, b = torch.full((2, 4), -1.0), torch.full((2, 4), -1.5)
    a[0, 0], b[0, 1], b[1, 0] = NAN, -INF, INF
    capture = TokenCapture(VOTING)
    capture.add(padded(logp=a, rollout_logp=b, old_logp=a))
    (table,) = capture.drain()
    assert table.tokens_N.tolist() == [3, 2]
    assert table.scored_N.tolist() == [2, 2]
    assert table.nll_N.tolist() == [2.0, 2.0]
    assert table.nonfinite_N.tolist() == [2, 1]
    assert table.comparison("rollout").tokens_N.tolist() == [1, 1]
    assert table.comparison("rollout").a_N.tolist() == [-1.0, -1.0]
    assert table.comparison("old").tokens_N.tolist() == [2, 2]
    assert capture.faults() == {"non-finite log-prob": 3}
    assert capture.faults() == {}


def test_rows_of_unknown_role_are_dropped_and_counted():
    capture = TokenCapture(VOTING)
    capture.add(
        RoleBatch.from_padded(
            VOTING,
            role=torch.tensor([0, 5, -1, 1]),
            mask=torch.ones(4, 2),
            logp=torch.tensor([[-1.0, -1.0], [NAN, NAN], [-1.0, -1.0], [-1.0, -1.0]]),
            text=["a", "b", "c", "d"],
        )
    )
    (table,) = capture.drain()
    assert table.role_N.tolist() == [0, 1]
    assert table.text_N == ("a", "d")
    assert capture.faults() == {"unknown role": 2}


def test_batches_with_equal_columns_share_a_table():
    scored = padded(logp=A, old_logp=B, outputs=False)
    tables = drained(
        padded(),
        scored,
        padded(),
        scored,
        replace(scored, steps_between=2),
        replace(scored, temperature=0.7),
    )
    assert [len(table) for table in tables] == [4, 4, 2, 2]
    facts = [(t.comparisons[0].steps_between, t.comparisons[0].temperature_a) for t in tables[1:]]
    assert facts == [(None, None), (2, None), (None, 0.7)]


def test_each_side_of_a_comparison_has_its_temperature():
    table = one(
        padded(
            logp=A,
            rollout_logp=B,
            old_logp=B,
            reference_logp=B,
            temperature=0.7,
            rollout_temperature=1.0,
        )
    )
    assert not table.comparison("rollout").comparable
    assert table.comparison("old").comparable
    assert table.comparison("reference").comparable


def test_nothing_added_gives_nothing():
    assert drained() == []
    assert (
        drained(
            RoleBatch.from_padded(VOTING, role=[], mask=torch.ones(0, 4), logp=torch.ones(0, 4))
        )
        == []
    )


def test_spans_without_trainable_tokens_are_zero_rows():
    table = one(padded(mask=torch.zeros(2, 4), logp=A, old_logp=B))
    assert table.tokens_N.tolist() == [0, 0]
    assert table.nll_N.tolist() == [0.0, 0.0]
    assert table.nonfinite_N.tolist() == [0, 0]
    pair = table.comparison("old")
    assert pair.peak_N.tolist() == [0.0, 0.0]
    assert (pair.low_N.tolist(), pair.high_N.tolist()) == ([INF, INF], [-INF, -INF])
    assert pair.bins_N.sum() == 0


def test_log_ratios_are_clamped_in_chi2_and_not_in_k3():
    logp = torch.tensor([[0.0], [-30.0]])
    batch = RoleBatch.from_padded(
        VOTING, role=ROLE, mask=torch.ones(2, 1), logp=logp, old_logp=logp.flip(0)
    )
    pair = one(batch).comparison("old")
    assert pair.chi2_N == pytest.approx([math.exp(40) - 1, math.exp(-40) - 1], rel=1e-12)
    assert pair.k3_N == pytest.approx([math.exp(30) - 31, math.exp(-30) + 29], rel=1e-12)


def test_tiny_log_ratios_keep_their_digits():
    a = torch.full((1, 1), -1.0, dtype=torch.float64)
    batch = RoleBatch.from_padded(
        VOTING, role=["generator"], mask=torch.ones(1, 1), logp=a + 1e-9, old_logp=a
    )
    pair = one(batch).comparison("old")
    assert pair.chi2_N[0] == pytest.approx(2e-9, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("mask_dtype", [torch.bool, torch.int64, torch.float32])
def test_any_float_type_and_any_mask_type(dtype, mask_dtype):
    logp = torch.tensor([[-0.5, -0.25, -2.0, NAN]] * 2, dtype=dtype)
    table = one(padded(mask=MASK.to(mask_dtype), logp=logp, old_logp=logp))
    assert table.nll_N.tolist() == [2.75, 0.75]
    assert table.comparison("old").chi2_N.tolist() == [0.0, 0.0]


EDGES = [*(-edge for edge in reversed(RATIO_EDGES)), *RATIO_EDGES]


def slow_reference(a, b, mask):
    """The formulas of the table's documentation, token by token."""
    rows = []
    for a_T, b_T, mask_T in zip(a.tolist(), b.tolist(), mask.tolist(), strict=True):
        sums = {"tokens_N": 0, "a_N": 0.0, "b_N": 0.0, "chi2_N": 0.0, "k3_N": 0.0, "peak_N": 0.0}
        sums |= {"low_N": INF, "high_N": -INF, "bins_N": [0] * RATIO_BINS}
        for x, y, m in zip(a_T, b_T, mask_T, strict=True):
            if not m or not math.isfinite(x) or not math.isfinite(y):
                continue
            d = x - y
            sums["tokens_N"] += 1
            sums["a_N"] += x
            sums["b_N"] += y
            sums["chi2_N"] += math.exp(max(-20, min(20, d))) ** 2 - 1
            sums["k3_N"] += math.exp(d) - d - 1
            sums["peak_N"] = max(sums["peak_N"], abs(d))
            sums["low_N"], sums["high_N"] = min(sums["low_N"], d), max(sums["high_N"], d)
            sums["bins_N"][bisect_left(EDGES, d)] += 1
        rows.append(sums)
    return {name: [row[name] for row in rows] for name in rows[0]}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**31))
def test_sums_equal_a_token_by_token_reference(rows, width, seed):
    draw = np.random.default_rng(seed)
    a = torch.from_numpy(-draw.exponential(2.0, (rows, width)))
    # From far apart to nearly equal: every bin is reached.
    b = a + torch.from_numpy(draw.normal(size=(rows, width)) * 10.0 ** draw.integers(-6, 2))
    a[torch.from_numpy(draw.random((rows, width)) < 0.1)] = NAN
    b[torch.from_numpy(draw.random((rows, width)) < 0.1)] = -INF
    mask = torch.from_numpy(draw.random((rows, width)) < 0.7)
    batch = RoleBatch.from_padded(VOTING, role=["generator"] * rows, mask=mask, logp=a, old_logp=b)
    pair = one(batch).comparison("old")
    for name, expected in slow_reference(a, b, mask).items():
        np.testing.assert_allclose(getattr(pair, name), expected, rtol=1e-9, atol=1e-12)


def test_a_batch_of_another_workflow_is_refused():
    batch = RoleBatch.from_padded(EVAL_OPT, role=["generator"], mask=torch.ones(1, 1))
    with pytest.raises(CaptureError, match="make both from one workflow"):
        TokenCapture(VOTING).add(batch)


def test_it_is_a_span_source():
    assert isinstance(TokenCapture(VOTING), SpanSource)


def test_a_monitor_drains_it_once_per_step():
    written = []

    class Sink:
        def write_step(self, record):
            written.append(record)

    parts = MonitorComponents(probes=probes_for("economy", VOTING), sinks=(Sink(),))
    monitor = Monitor(RunHeader("r", VOTING), parts, strict=True)
    capture = TokenCapture(VOTING)
    monitor.attach(capture)
    broken = B.clone()
    broken[1, 1] = NAN
    for step, old in enumerate((B, broken)):
        capture.add(padded(logp=A, old_logp=old, slot=[0, 2]))
        monitor.end_step(step)
    assert [record.faults for record in written] == [{}, {"non-finite log-prob": 1}]
    assert written[0].mean("generator", "old.chi2") == pytest.approx(GOLDEN["chi2"], abs=1e-6)
    assert written[1].stat("*", "old.chi2").n == 4
    assert written[1].mean("generator/2", "length") == 2
