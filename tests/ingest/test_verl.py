import json
from pathlib import Path

import pytest

from roledrift.ingest import sniff
from roledrift.store.reader import open_run
from tests.ingest.logs import FIXTURES, imported, read, spans, write_lines


def test_what_verl_itself_wrote(tmp_path: Path) -> None:
    """Dumps of verl's own fit(), with its file logger and its console beside them."""
    roles = "0=generator:0,1=generator:1,2=generator:2,3=aggregator"
    done, run = imported(FIXTURES / "verl", tmp_path / "run", roles=roles)
    assert (done.format, done.tally.spans, done.odd) == ("verl", 4 * 32, {})
    assert (done.workflow.name, done.workflow.routing) == ("voting", "shared")
    lines = (FIXTURES / "verl" / "p-e.jsonl").read_text().splitlines()
    logged = {row["step"]: row["data"] for row in map(json.loads, lines)}
    for record in run.steps():
        row = logged[record.step]
        if "actor/grad_norm" not in row:
            continue
        assert record.mean("*", "reward") == pytest.approx(row["critic/score/mean"])
        assert record.totals["reward"] == row["critic/rewards/mean"]
        assert record.mean("*", "rollout.chi2") == row["rollout_corr/chi2_token"]
        assert record.mean("*", "length") == row["response_length/mean"]
        # Every right answer of these ends in the box that is graded, an aggregator's in a choice.
        assert record.mean("generator", "correct") == record.mean("*", "reward")
        # The index in uid is the output's, the number before it the rollout's.
        assert record.mean("*", "zero_variance") == 0
    assert run.steps()[2].totals["val_accuracy"] == logged[2]["val-core/math/acc/mean@1"]
    assert "length_inflation" not in run.header.notes["not in it"]


def test_verls_console_says_what_its_file_logger_says() -> None:
    by_file, _ = read(FIXTURES / "verl" / "p-e.jsonl")
    by_console, _ = read(FIXTURES / "verl" / "run.log")
    assert by_file == by_console


def test_the_older_trainers_dump(tmp_path: Path) -> None:
    done, run = imported(FIXTURES / "verl-legacy", tmp_path / "run")
    assert (done.tally.steps, done.tally.spans, done.odd) == (2, 12, {})
    assert done.workflow.role_names == ("generator", "aggregator")
    assert run.steps()[0].mean("generator", "correct") == 0.5


def dump(root: Path, steps: int = 2, **more: object) -> Path:
    """Rows after the documented layout of verl's rollout dump; ``uid`` since verl 0.9."""
    for step in range(steps):
        write_lines(
            root / f"{step}.jsonl",
            [
                {
                    "input": "user: see Solution 1" if index == 2 else f"user: problem {problem}",
                    "output": f"\\boxed{{{1 if index == 2 else 5}}}",
                    "gts": "5",
                    "score": 1.0,
                    "step": step,
                    "uid": f"p{problem}_{rollout}_{index}",
                    **more,
                }
                for problem in range(2)
                for rollout in range(2)
                for index in range(3)
            ],
        )
    return root


def test_outputs_are_named_by_index_or_prompt(tmp_path: Path) -> None:
    source = dump(tmp_path / "s")
    assert "rollout dumps" in sniff(source)[1]
    roles = "0=generator:0,1=generator:1,2=aggregator"
    by_index, _ = read(source, roles=roles)
    by_prompt, _ = read(source, roles=r"~Solution \d=aggregator,0=generator:0,1=generator:1")
    assert [row.role for row in spans(by_index)] == [row.role for row in spans(by_prompt)]
    done, run = imported(source, tmp_path / "run", roles=roles)
    assert done.workflow.name == "voting"
    record = run.steps()[0]
    assert record.mean("generator/1", "correct") == 1
    assert record.stat("aggregator", "correct") is None
    assert record.mean("*", "zero_variance") == 1
    assert record.stat("*", "length") == record.stat("*", "chars")
    assert "in characters" in run.header.notes["lengths"]


def test_without_a_map_slots_are_indices_and_it_says_so(tmp_path: Path) -> None:
    events, job = read(dump(tmp_path))
    assert {(row.role, row.slot) for row in spans(events)} == {("output", n) for n in range(3)}
    assert "--roles" in job.facts.notes["roles"]
    assert len({row.episode for row in spans(events)}) == 4


def test_a_role_in_the_dump_is_used(tmp_path: Path) -> None:
    events, job = read(dump(tmp_path, agent_id="planner0"))
    assert {(row.role, row.slot) for row in spans(events)} == {("planner", 0)}
    assert "roles" not in job.facts.notes


def test_numbers_of_the_file_logger_and_the_console_join_the_dumps(tmp_path: Path) -> None:
    source = dump(tmp_path / "s")
    (source / "0.jsonl").open("a").write('{"input": "cut off\n{"output": 1}\n')
    write_lines(source / "exp.jsonl", [{"step": 0, "data": {"actor/grad_norm": 2.0}}, {"step": 1}])
    (source / "run.log").write_text("step:1 - actor/grad_norm:3.5\nstep:7 - actor/grad_norm:1\n")
    done, run = imported(source, tmp_path / "run")
    grads = {record.step: record.mean("*", "grad_norm") for record in run.steps()}
    assert grads == {0: 2.0, 1: 3.5, 7: 1.0}
    assert run.steps()[0].labels["source"] == "foreign series"
    assert done.odd == {
        "broken or half-written JSON": 1,
        "row that is no {step, data}": 1,
        "row without input and output": 1,
    }


@pytest.mark.parametrize("name", ["x.log", "x.jsonl"])
def test_a_single_file_of_numbers(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name == "x.log":
        file.write_text("(T pid=1) step:0 - actor/a/chi2_token:0.1 - actor/b/chi2_token:0.2\n")
    else:
        data = {"actor/a/chi2_token": 0.1, "actor/b/chi2_token": 0.2}
        write_lines(file, [{"step": 0, "data": data}])
    done, _ = imported(file, tmp_path / "run")
    (record,) = open_run(tmp_path / "run").steps()
    assert (record.mean("a", "rollout.chi2"), record.mean("b", "rollout.chi2")) == (0.1, 0.2)
    assert done.workflow.routing == "isolated"
    assert "numbers of all roles" not in str(done.notes)


def test_answers_that_are_in_no_box_are_not_called_wrong(tmp_path: Path) -> None:
    for file in (FIXTURES / "verl-legacy").iterdir():
        text = file.read_text().replace("\\\\boxed{5}", "#### 5").replace("\\\\boxed", "####")
        (tmp_path / file.name).write_text(text)
    done, run = imported(tmp_path, tmp_path / "run")
    assert run.steps()[0].mean("generator", "correct") == 0.5  # of the reward function's acc
    assert "in no boxes" in done.notes["correct"]
    for file in tmp_path.glob("*.jsonl"):
        file.write_text(file.read_text().replace('"acc"', '"x"'))
    _, run = imported(tmp_path, tmp_path / "run2")
    assert run.steps()[0].stat("generator", "correct") is None
