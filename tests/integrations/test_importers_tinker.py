import json
import shutil
from pathlib import Path

import pytest

from tests.ingest.logs import FIXTURES, imported, read, spans

TINKER = FIXTURES / "tinker"


def test_players_are_roles_if_the_user_says_so(tmp_path: Path) -> None:
    """What tinker-cookbook itself wrote: four games of two players, two turns each, per step."""
    done, run = imported(TINKER, tmp_path / "run", roles="0=solver,1=verifier")
    assert (done.format, done.tally.steps, done.tally.spans, done.odd) == ("tinker", 3, 48, {})
    logged = [json.loads(line) for line in (TINKER / "metrics.jsonl").read_text().splitlines()]
    for record, row in zip(run.steps(), logged, strict=True):
        # First turns have 4 tokens, last turns 6 and 7.
        assert (record.mean("solver", "length"), record.mean("verifier", "length")) == (5, 5.5)
        assert record.mean("*", "length") == row["env/all/ac_tokens_per_turn"]
        cut = [
            "stop/max_tokens" in one["steps"][-1]["metrics"]
            for one in rollouts(record.step)
            if one["traj_idx"] == 0
        ]
        assert record.mean("solver", "truncated") == sum(cut) / 8  # first turns are never cut
        assert record.mean("verifier", "truncated") == 0
        assert record.mean("*", "entropy") == pytest.approx(row["optim/entropy"])
        assert record.totals["reward"] == row["env/all/reward/total"]
        assert record.mean("solver", "reward") == 1.5
    assert "progress/batch" not in run.header.notes["numbers not imported"]


def rollouts(step: int) -> list[dict[str, list[dict[str, dict[str, float]]]]]:
    file = TINKER / f"iteration_{step:06d}" / "train_rollout_summaries.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_summaries_that_are_no_summaries(tmp_path: Path) -> None:
    shutil.copytree(TINKER, tmp_path / "t")
    file = tmp_path / "t" / "iteration_000001" / "train_rollout_summaries.jsonl"
    with file.open("a") as more:
        more.write('{"traj_idx": 0}\n{"traj_idx": 1, "steps": [{"metrics": 3, "ac_len": 2}]}\n')
    events, job = read(tmp_path / "t")
    assert len(spans(events)) == 49
    assert job.ledger.counts == {"summary without steps or trajectory index": 1}


def test_without_a_map_all_are_one_role() -> None:
    events, job = read(TINKER)
    assert {row.role for row in spans(events)} == {"policy"}
    assert "--roles" in job.facts.notes["roles"]
