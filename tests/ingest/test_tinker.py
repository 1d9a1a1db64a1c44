from pathlib import Path

from tests.ingest.logs import imported, read, spans, write_lines


def summaries(root: Path) -> Path:
    """After the documented layout of tinker-cookbook's rollout summaries (schema 1)."""
    for step in range(2):
        write_lines(
            root / f"iteration_{step:06d}" / "train_rollout_summaries.jsonl",
            [
                {
                    "schema_version": 1,
                    "split": "train",
                    "iteration": step,
                    "group_idx": group,
                    "traj_idx": player,
                    "total_reward": float(player),
                    "steps": [
                        {
                            "step_idx": 0,
                            "ob_len": 9,
                            "ac_len": 5 + player,
                            "reward": 0.0,
                            "stop_reason": "length",
                        }
                    ],
                }
                for group in range(3)
                for player in range(2)
            ]
            + [{"traj_idx": 0}],
        )
    write_lines(
        root / "metrics.jsonl", [{"step": 0, "optim/entropy": 0.5, "env/all/reward/total": 0.4}]
    )
    return root


def test_players_are_roles_if_the_user_says_so(tmp_path: Path) -> None:
    done, run = imported(summaries(tmp_path / "s"), tmp_path / "run", roles="0=solver,1=verifier")
    first = run.steps()[0]
    assert done.format == "tinker"
    assert (first.mean("solver", "length"), first.mean("verifier", "length")) == (5, 6)
    assert first.mean("solver", "truncated") == 1
    assert (first.mean("*", "entropy"), first.totals["reward"]) == (0.5, 0.4)
    assert first.faults == {"summary without steps or trajectory index": 1}


def test_without_a_map_all_are_one_role(tmp_path: Path) -> None:
    events, job = read(summaries(tmp_path))
    assert {row.role for row in spans(events)} == {"policy"}
    assert "--roles" in job.facts.notes["roles"]
