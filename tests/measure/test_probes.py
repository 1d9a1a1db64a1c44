"""What every probe owes: sums that add, group by group, and silence about what it was not given."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.config import Config
from roledrift.measure.catalogue import probes_for, shipped
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.monitor import Monitor
from roledrift.records import RunHeader, summarise
from roledrift.spans import Comparison, SpanTable
from roledrift.sums import RATIO_BINS, Histogram, Key, add
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, SINGLE, VOTING

PROBES = {card.name: card.make for card in shipped()}

TEXTS = (
    *(None, "", r"\boxed{2}", "wait, no", "```python\na\nb\nc\n```", r"so \boxed{ Correct }"),
    *("so it is the same", "it is the same or not", r"then it is the same \boxed{2}"),
)
OF_OTHERS = {"copied"}
"""Probes that compare a role with others: alone, it measures nothing."""
OF_ROLES = {"words"}
"""Probes that measure roles only: neither slots nor everyone."""


def pair(draw, kind, n, temperature_b):
    tokens = draw.integers(0, 4, n)
    real = draw.exponential(1.0, (5, n)) * (tokens > 0)
    low = np.where(tokens > 0, -real[4] / 2, math.inf)
    high = np.where(tokens > 0, real[4], -math.inf)
    bins = draw.multinomial(tokens, np.full(RATIO_BINS, 1 / RATIO_BINS))
    source = (0.7, temperature_b, 1)
    return Comparison(
        kind, tokens, -real[0], -real[1], real[2], real[3], real[4], *source, low, high, bins
    )


def table(seed, n, workflow=VOTING):
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, 300, n)
    group = np.sort(draw.integers(0, 5, n))
    return SpanTable(
        roles=workflow.role_names,
        role_N=draw.integers(-1, len(workflow.roles), n),
        slot_N=draw.integers(0, 3, n),
        turn_N=draw.integers(0, 2, n),
        prompt_N=group,
        episode_N=draw.integers(0, 2, n),
        group_N=group,
        tokens_N=tokens,
        truncated_N=draw.random(n) < 0.3,
        reward_N=draw.integers(0, 2, n).astype(np.float64),
        advantage_N=draw.normal(size=n),
        scored_N=tokens,
        nll_N=draw.exponential(1.0, n) * tokens,
        entropy_N=draw.exponential(1.0, n) * tokens,
        clipped_N=tokens // 3,
        nonfinite_N=draw.integers(0, 2, n),
        comparisons=(pair(draw, "old", n, 0.7), pair(draw, "rollout", n, 1.0)),
        text_N=tuple(TEXTS[i] for i in draw.integers(0, len(TEXTS), n)),
    )


def same(found, expected):
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert type(found[key]) is type(value)
        for name in value.__dataclass_fields__:
            one, other = getattr(found[key], name), getattr(value, name)
            if isinstance(other, Histogram | frozenset) or other is None:
                assert one == other
            else:
                assert one == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True), (key, name)


@pytest.mark.parametrize("name", PROBES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 40), cut=st.integers(0, 40))
def test_measuring_parts_and_adding_equals_measuring_the_whole(name, seed, n, cut):
    whole = table(seed, n)
    # A part may hold any spans, but no advantage group or episode is cut in two.
    border = int(np.searchsorted(whole.group_N, whole.group_N[min(cut, n - 1)]))
    parts = [whole.select(np.arange(0, border)), whole.select(np.arange(border, n))]
    probe = PROBES[name](VOTING)
    same(add(probe.measure(part) for part in parts), probe.measure(whole))


@pytest.mark.parametrize("name", PROBES)
def test_order_of_rows_does_not_matter(name):
    whole = table(3, 40)
    shuffled = whole.select(np.random.default_rng(0).permutation(40))
    probe = PROBES[name](VOTING)
    same(probe.measure(shuffled), probe.measure(whole))


@pytest.mark.parametrize("name", [name for name in PROBES if name not in OF_OTHERS])
def test_a_group_measures_as_if_it_were_alone(name):
    whole = table(4, 40, ORCH_WORKERS)
    probe = PROBES[name](ORCH_WORKERS)
    sums = probe.measure(whole)
    for index, role in enumerate(ORCH_WORKERS.role_names):
        alone = probe.measure(whole.select(whole.role_N == index))
        mine = {key: value for key, value in sums.items() if key.group.split("/")[0] == role}
        same({key: value for key, value in alone.items() if key.group != "*"}, mine)
        if name not in OF_ROLES:
            same(
                {Key(role, key.name): value for key, value in alone.items() if key.group == "*"},
                {key: value for key, value in mine.items() if "/" not in key.group},
            )


def test_slots_are_named_by_the_workflow_and_not_by_the_rows():
    part = SpanTable(
        ("generator", "aggregator"),
        np.array([0, 1]),
        slot_N=np.array([1, 0]),
        tokens_N=np.array([5, 2]),
    )
    sums = PROBES["lengths"](VOTING).measure(part)
    assert {key.group for key in sums} == {"generator", "generator/1", "aggregator", "*"}


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_abstains_without_the_columns_it_needs(name):
    bare = SpanTable(("generator", "aggregator"), np.array([0, 1]))
    probe = PROBES[name](VOTING)
    assert probe.measure(bare) == {}
    assert probe.needs <= table(0, 3).present
    assert probe.measure(bare.select(np.zeros(0, np.int64))) == {}
    assert probe.measure(table(0, 3).select(np.zeros(0, np.int64))) == {}


def test_what_no_span_has_leaves_no_entry():
    spans = replace(table(1, 8), scored_N=np.zeros(8, np.int64), text_N=(None,) * 8)
    texts = ("chars", "shape", "openers", "words", "copied", "sibling_jaccard", "wrong_agreement")
    for name in ("perplexity", "entropy", "clipping", *texts):
        assert PROBES[name](VOTING).measure(spans) == {}


def test_every_statistic_of_a_full_table():
    sums = add(probe.measure(table(1, 200)) for probe in probes_for("full", VOTING))
    names = set(summarise(sums)["*"])
    moved = "chi2 k1 k3 chi2_seq ppl_ratio training_ppl behind_ppl training_log_ppl log_ppl_diff"
    assert names == {
        *("length", "truncated", "chars", "reward", "advantage", "credit", "zero_variance"),
        *("nonfinite", "openers", "copied", "sign_agreement", "sibling_jaccard"),
        *("ppl", "entropy", "clip_fraction", "rollout.refused"),
        *("terse", "boxed", "bare_stamp", "code_fence", "verdict_tag", "hedging"),
        *(f"old.{name}" for name in (*moved.split(), "log_ppl_abs_diff", "peak", "ratio")),
        *("wrong_agreement", "wrong_jaccard", "reward_spread", "length_credit", "duplicates"),
    }
    assert set(summarise(sums)["generator"]) == names - {"copied"} | {"words"}


def test_tiers_differ_in_whether_text_is_read():
    def read(tier):
        return {probe.name for probe in probes_for(tier, VOTING)}

    assert read("full") == read("business") == set(PROBES) - {"verdicts"}
    texts = {"chars", "shape", "openers", "words", "copied"}
    texts |= {"sibling_jaccard", "wrong_agreement", "wrong_jaccard"}
    assert read("full") - read("economy") == texts


def test_a_workflow_is_not_asked_what_it_cannot_say():
    def read(workflow):
        return {probe.name for probe in probes_for("full", workflow)}

    siblings = {"sign_agreement", "sibling_jaccard", "wrong_agreement", "wrong_jaccard"}
    assert set(PROBES) - read(SINGLE) == {*siblings, "copied", "verdicts"}
    assert set(PROBES) - read(EVAL_OPT) == siblings
    assert set(PROBES) - read(ORCH_WORKERS) == {"verdicts"}


def test_names_of_probes_are_their_keys():
    assert {name: make(VOTING).name for name, make in PROBES.items()} == {n: n for n in PROBES}


def test_a_monitor_measures_with_them():
    written = []

    class Sink:
        def write_step(self, record):
            written.append(record)

        def close(self):
            pass

    parts = MonitorComponents(probes=probes_for(Config().tier, VOTING), sinks=(Sink(),))
    monitor = Monitor(RunHeader("r", VOTING), parts, strict=True)
    monitor.observe(table(7, 30))
    monitor.end_step(0)
    (record,) = written
    assert record.faults == {}
    assert record.missing == ()
    assert record.stat("generator/2", "length").p50 > 0
    assert math.isfinite(record.mean("*", "old.k3"))
