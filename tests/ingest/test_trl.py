"""The fixtures were written by TRL 1.16 itself: see make_fixtures.py."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.ingest import sniff
from tests.ingest.logs import FIXTURES, imported, read, series, spans

TRL = FIXTURES / "trl"


def test_what_trl_itself_wrote(tmp_path: Path) -> None:
    form, reason = sniff(TRL)
    assert form.name == "trl"
    assert reason == "4 completions_*.parquet and trainer_state.json with a log history"
    done, run = imported(TRL, tmp_path / "run")
    assert (done.tally.steps, done.tally.spans, dict(done.odd)) == (4, 64, {})
    assert run.header.workflow.role_names == ("generator", "aggregator")
    logged = json.loads((TRL / "checkpoint-4" / "trainer_state.json").read_text())["log_history"]
    for record, row in zip(run.steps(), logged, strict=False):
        # One generation batch per log here, so what is counted from texts is what TRL logged.
        assert record.mean("*", "reward") == pytest.approx(row["rewards/score/mean"])
        assert record.totals["reward"] == pytest.approx(row["reward"])
        assert record.mean("*", "zero_variance") == pytest.approx(row["frac_reward_zero_std"])
        assert record.mean("*", "length") == row["completions/mean_length"]
        assert record.mean("*", "entropy") == row["entropy"]
        assert record.mean("*", "advantage") == pytest.approx(0, abs=1e-6)
        # TRL logs the tokens of all roles together; those of one role nobody counted.
        assert record.stat("generator", "length") == record.stat("generator", "chars")


def test_without_completions_the_numbers_remain(tmp_path: Path) -> None:
    state = TRL / "checkpoint-4" / "trainer_state.json"
    for source in (TRL / "checkpoint-4", state):
        events, job = read(source)
        assert [one.step for one in series(events)] == [1, 2, 3, 4]
        assert job.facts.slots == {"policy": 1}
    shutil.copytree(TRL, tmp_path / "t")
    (tmp_path / "t" / "checkpoint-4" / "trainer_state.json").write_text('{"log_history": [{"loss"')
    events, job = read(tmp_path / "t")
    assert len(spans(events)) == 64
    assert job.ledger.counts == {"broken or half-written JSON": 1}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_completions_never_raise(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray((TRL / "completions" / "completions_00001.parquet").read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("t") / "completions_00001.parquet"
    file.write_bytes(raw[: data.draw(st.integers(8, len(raw)))])
    read(file)


def test_conversations_prompts_and_broken_files(tmp_path: Path) -> None:
    folder = tmp_path / "completions"
    folder.mkdir()
    chat = [{"role": "user", "content": "see Solution 1"}]
    rows = [
        {
            "prompt": chat,
            "completion": [{"role": "assistant", "content": "\\boxed{5}"}],
            "accuracy_reward": 1.0,
            "format": 0.5,
            "advantage": 0.0,
            "answer": "5",
            "step": 9,
        }
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "completions_00009.parquet")
    (folder / "completions_00010.parquet").write_bytes(b"PAR1 nothing")
    events, job = read(tmp_path, roles=r"~Solution=aggregator")
    (row,) = spans(events)
    assert (row.role, row.text, row.reward, row.step) == ("aggregator", "\\boxed{5}", 1.5, 9)
    assert job.ledger.counts == {"unreadable parquet (ArrowInvalid)": 1}
