import json
from pathlib import Path

import pytest

from benchmarks.reproduction.__main__ import main
from benchmarks.reproduction.outcomes import append, load, load_bases, solved
from benchmarks.reproduction.plan import Plan, load_plan
from benchmarks.reproduction.running import run_plan
from tests.benchmarks.reproduction.rows import row

TINY = """
bases = [[7, 700]]
quick_bases = 1
claims = {}

[recipes.coins]
pretrain = { size = "S", steps = 40, rows = 16 }
rollout = { problems = 2, copies = 4, max_new_tokens = 16 }
train = { steps = 3, minibatch = 8, adam = { lr = 1e-2, warmup_steps = 1 } }
validation = { every = 3, problems = 8 }
checkpoint = { every = 0 }
stress = { kind = "reward_noise", share = 1.0 }

[common]

[experiments.routing]
about = "Coins for rewards move a model that solves nothing."
recipe = "coins"
quick = 1
rounds = 1
set = { workflow = "voting", monitor = { gradients_every = 1 } }
[experiments.routing.arms]
shared = { routing = "shared", train = { updates = { generator = 2, aggregator = 2 } } }
[experiments.routing.arms.isolated]
routing = "isolated"
train = { left_out = ["aggregator"], trained_slots = { generator = 2 } }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Plan:
    file = tmp_path / "plan.toml"
    file.write_text(TINY)
    return load_plan(file)


@pytest.mark.slow
def test_two_runs_that_move_are_made_once(
    tiny: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.reproduction.running.LEAST_WORKED", 0.0)
    jobs, places = tiny.jobs("quick"), {"work": tmp_path / "w", "cache": tmp_path / "c"}
    results = tmp_path / "results"
    run_plan(tiny, jobs[:1], **places, results=results)
    run_plan(tiny, jobs, **places, results=results)
    shared, isolated = load(results)
    assert capsys.readouterr().out.count("CPU s") == 2
    for made in (shared, isolated):
        assert len(made["accuracy"]) == 3
        assert len(solved(made["validation"]["3"])) == 8
        assert min(made["roles"]["generator"]["k3"]) > 0
        assert min(made["policies"][next(iter(made["policies"]))]["grad_norm"]) > 0
    # Both roles of the shared policy move; the isolated aggregator is not trained.
    assert shared["policies"]["shared"]["updates"] == 2
    assert max(shared["roles"]["aggregator"]["k3"]) > 1e-6
    assert max(isolated["roles"]["aggregator"]["k3"]) < 1e-9
    assert isolated["policies"].keys() == {"generator"}
    # Only two of the three slots have gradients, and a coherence of their own.
    assert {role for _, role, *_ in isolated["gradients"]} == {"generator"}
    assert len((results / "routing.jsonl").read_text().splitlines()) == 2
    assert not list((tmp_path / "w").iterdir())


def test_a_base_that_two_shards_measured_counts_once(tmp_path: Path) -> None:
    lines = [{"key": key, "recipe": "coins", "worked": 0.5} for key in ("a", "b", "a")]
    (tmp_path / "bases.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert [one["key"] for one in load_bases(tmp_path)] == ["a", "b"]


def test_the_list_says_what_runs_like_these_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cpu, seed in ((10.0, 300), (30.0, 301), (20.0, 302)):
        append(row("leakage/sp", seed=seed, cpu=cpu), tmp_path)
    only = ["--only", "leakage/sp", "no-prose", "--rounds", "4", "--depth", "full"]
    assert main(["list", *only, "--results", str(tmp_path), "--bases", "3"]) == 0
    *runs, sums = capsys.readouterr().out.splitlines()
    of = {name.strip(): cost.split() for cost, name in (line.split("CPU s") for line in runs)}
    assert len(of) == 7
    assert of["leakage/sp b3 s301"] == ["made", "30"]
    assert of["leakage/sp b3 s303"] == ["to", "do", "20"]
    assert of["no-prose/sp b3 s300"] == ["to", "do", "?"]
    assert sums.startswith("3 made in 1 CPU minutes, 4 to do")


@pytest.mark.slow
def test_a_base_that_cannot_do_the_task_makes_no_runs(tiny: Plan, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run_plan(tiny, tiny.jobs("quick"), work=tmp_path / "w", cache=tmp_path / "c", results=results)
    assert load(results) == []
    (base,) = load_bases(results)
    assert base["worked"] < 0.6
    assert json.loads((results / "bases.jsonl").read_text())["base"] == 7
