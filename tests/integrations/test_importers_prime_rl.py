import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.ingest import sniff
from tests.ingest.logs import FIXTURES, imported, read, spans, write_lines

PROMPT = [1, 2, 3]


def test_what_prime_rl_itself_wrote(tmp_path: Path) -> None:
    """Three episodes per step: two turns of a solver (once forked), a judge, a frozen user."""
    done, run = imported(FIXTURES / "prime-rl", tmp_path / "run")
    assert (done.tally.steps, done.tally.spans) == (3, 3 * (3 * 3 + 1))
    # Every branch of every trace has found its export, the fork and its trunk too.
    assert done.odd == {"trace of an agent that is not trained": 9}
    assert run.header.workflow.role_names == ("solver", "judge")
    for record in run.steps():
        # The trainer's log-probabilities were recorded as 0.1 per step below the engine's.
        for role, n in (("solver", 7), ("judge", 3)):
            stat = record.stat(role, "length")
            assert stat is not None
            assert stat.n == n
            chi2 = record.mean(role, "rollout.chi2")
            assert chi2 == pytest.approx(math.exp(-0.2 * record.step) - 1, rel=1e-5)
            assert record.mean(role, "entropy") == pytest.approx(0.5)
            assert record.stat(role, "truncated") is not None
        assert (record.totals["reward"], record.mean("*", "grad_norm")) == (0.5, 0.1)


def test_an_export_that_the_trainer_cut_is_joined_as_far_as_it_goes(tmp_path: Path) -> None:
    root = run_folder(tmp_path)
    cut = {k: v[:4] if isinstance(v, list) else v for k, v in export([10, 11], -1.0, -1.5).items()}
    write_lines(root / "token_exports" / "step_4" / "rank_0.jsonl", [cut])
    events, job = read(root)
    row = next(one for one in spans(events) if one.scored is not None)
    assert (row.role, row.scored, row.tokens) == ("solver", 1, 1)
    assert job.ledger.counts["token export cut at the trainer's length"] == 1


def trace(name: str, answer: list[int], **agent: object) -> dict[str, Any]:
    """A trace after the documented layout: a prompt node and a sampled one."""
    return {
        "agent": {"name": name, "trainable": True, **agent},
        "nodes": [
            {"message": {"role": "user", "content": "q"}, "sampled": False, "token_ids": PROMPT},
            {
                "message": {"role": "assistant", "content": f"{name} says"},
                "sampled": True,
                "token_ids": answer,
                "mask": [1] * len(answer),
                "advantages": [0.5] * len(answer),
            },
        ],
        "calls": [{"finish_reason": "length"}],
        "rewards": {"exact": {"score": 1.0, "weight": 2.0}},
    }


def export(answer: list[int], trainer: float, engine: float) -> dict[str, Any]:
    n = len(answer)
    mask = [0] * len(PROMPT) + [1] * n
    return {
        "schema_version": 1,
        "token_ids": PROMPT + answer,
        "loss_mask": mask,
        "trainer_logprobs": [0.0] * len(PROMPT) + [trainer] * n,
        "inference_logprobs": [0.0] * len(PROMPT) + [engine] * n,
        "entropy": [9.0] * len(PROMPT) + [0.25] * n,
        "advantages": [0.0] * len(PROMPT) + [0.75] * n,
    }


def run_folder(root: Path, exports: bool = True) -> Path:
    for step in (4, 5):
        episodes = [
            {"id": f"e{n}", "group": {"id": "g"}, "traces": [
                trace("solver", [10 + n, 11]), trace("judge", [20 + n]),
                trace("user", [30], trainable=False),
            ]}
            for n in range(2)
        ]  # fmt: skip
        folder = root / "rollouts" / f"step_{step}"
        write_lines(folder / "train" / "effective" / "traces.jsonl", episodes)
        write_lines(folder / "eval" / "all" / "traces.jsonl", [{"traces": [trace("solver", [1])]}])
        if exports:
            rows = [export([10 + n, 11], -1.0, -1.5) for n in range(2)]
            rows += [export([20], -2.0, -2.0), export([99], -1.0, -1.0)]
            write_lines(root / "token_exports" / f"step_{step}" / "rank_0.jsonl", rows)
    write_lines(
        root / "metrics.jsonl",
        [{"step": 4, "time": 1, "entropy/mean": 0.3}, {"step": 4, "time": 2, "reward/mean": 0.7}],
    )
    return root


def test_log_probabilities_find_their_role(tmp_path: Path) -> None:
    done, run = imported(run_folder(tmp_path / "s"), tmp_path / "run")
    assert done.format == "prime-rl"
    first = run.steps()[0]
    assert first.mean("solver", "rollout.chi2") == pytest.approx(math.exp(1) - 1)
    assert first.mean("solver", "rollout.k3") == pytest.approx(math.exp(0.5) - 1.5)
    assert first.mean("solver", "ppl") == pytest.approx(math.e)
    assert first.mean("solver", "entropy") == 0.25
    assert first.mean("solver", "advantage") == 0.75
    assert first.mean("judge", "rollout.chi2") == 0
    # One of the judge's two traces has no export: its length is known, its log-probs are missing.
    stat = first.stat("judge", "rollout.chi2")
    lengths = first.stat("judge", "length")
    assert stat is not None
    assert lengths is not None
    assert (stat.n, lengths.n) == (1, 2)
    assert first.mean("*", "truncated") == 1
    assert first.totals == {"reward": 0.7, "eval_reward": 2.0}
    assert first.faults == {"token export without a trace": 1, "trace without a token export": 1}
    assert done.odd["trace of an agent that is not trained"] == 4
    assert run.header.workflow.role_names == ("solver", "judge")


def test_without_exports_it_says_what_is_missing(tmp_path: Path) -> None:
    events, job = read(run_folder(tmp_path, exports=False))
    rows = spans(events)
    assert {row.pairs for row in rows} == {()}
    assert {row.reward for row in rows} == {2.0}
    assert {row.advantage for row in rows} == {0.5}
    assert "enable_token_export" in job.facts.notes["log-probabilities"]


def test_exports_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    root = run_folder(tmp_path)
    odd = export([10, 11], -1.0, -1.5)
    odd["inference_logprobs"] = [0.0]
    odd["trainer_logprobs"][-1] = None
    write_lines(root / "token_exports" / "step_4" / "rank_0.jsonl", [odd])
    events, job = read(root)
    row = next(one for one in spans(events) if one.scored is not None)
    assert (row.scored, row.nonfinite, row.pairs) == (1, 1, ())
    assert job.ledger.counts["token export without inference_logprobs"] == 1


ODD = (
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=3)
)


@settings(max_examples=60, deadline=None)
@given(
    key=st.sampled_from(["agent", "nodes", "calls", "rewards"]),
    inner=st.sampled_from(["message", "sampled", "token_ids", "mask", "advantages"]),
    column=st.sampled_from(["token_ids", "loss_mask", "trainer_logprobs", "entropy"]),
    odd=ODD,
    which=st.booleans(),
)
def test_damaged_traces_never_raise(
    tmp_path_factory: pytest.TempPathFactory,
    key: str,
    inner: str,
    column: str,
    odd: object,
    which: bool,
) -> None:
    root = tmp_path_factory.mktemp("p")
    one = trace("solver", [10, 11])
    if which:
        one[key] = odd
    else:
        one["nodes"][1][inner] = odd
    write_lines(
        root / "rollouts" / "step_0" / "train" / "all" / "traces.jsonl",
        [json.loads(json.dumps({"id": odd, "group": odd, "traces": [one, odd]}))],
    )
    body = export([10, 11], -1.0, -1.5) | {column: odd}
    write_lines(root / "token_exports" / "step_0" / "rank_0.jsonl", [body])
    assert sniff(root)[0].name == "prime-rl"
    read(root)
