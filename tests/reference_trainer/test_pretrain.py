import threading
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from reference_trainer import pretrain
from reference_trainer.config import Config, load
from reference_trainer.exercises import Noise
from reference_trainer.pretrain import _schedule, cache_key, load_base, pretrained
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.warm_up import PretrainSettings, Until
from tests.ranks import process


def test_the_key_is_everything_the_weights_depend_on(smoke: Config) -> None:
    settings, task = smoke.pretrain, smoke.task
    keys = {
        cache_key(one, its, prompts="tiny")
        for one, its in (
            (settings, task),
            (replace(settings, steps=41), task),
            (replace(settings, noise=replace(settings.noise, verbose_share=0.4)), task),
            (settings, replace(task, max_ops=4)),
            (settings, CodeTask()),
            (replace(settings, skills=("generator",)), task),
        )
    }
    assert len(keys) == 6
    assert cache_key(settings, task, prompts="tiny") == cache_key(settings, task, prompts="tiny")


def test_the_cached_model_is_used_and_nothing_else_is_left(
    cache: Path, base_folder: Path, smoke: Config
) -> None:
    written = (base_folder / "model.safetensors").stat().st_mtime_ns
    # Other tests of the same process keep their base models here too.
    there = sorted(one for one in cache.iterdir() if one.name != ".locks")
    again = pretrained(smoke.pretrain, smoke.task, prompts="tiny", cache=cache)
    assert again == base_folder
    assert (base_folder / "model.safetensors").stat().st_mtime_ns == written
    assert sorted(one for one in cache.iterdir() if one.name != ".locks") == there
    assert all((one / "model.safetensors").is_file() for one in there), "a draft was left behind"


def warm_up_when_told(teller: Connection, settings: PretrainSettings, cache: Path) -> None:
    real = pretrain.warm_up

    def told(*arguments: Any, **more: Any) -> Any:
        teller.send("begun")
        teller.recv()
        return real(*arguments, **more)

    pretrain.warm_up = told
    pretrained(settings, load("tiny-smoke").task, prompts="tiny", cache=cache)


@pytest.mark.ranks
def test_a_process_waits_for_another_that_warms_up_the_same_model(
    tmp_path: Path, smoke: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = replace(smoke.pretrain, steps=2)
    here, there = Pipe()
    other = process(warm_up_when_told, there, settings, tmp_path)
    other.start()
    there.close()
    assert here.recv() == "begun"
    # It holds the lock now, and goes on a little later than this process wants the model.
    timer = threading.Timer(0.5, lambda: here.send("go on"))
    timer.start()
    folder = pretrained(settings, smoke.task, prompts="tiny", cache=tmp_path)
    other.join(60)
    assert other.exitcode == 0
    assert "waiting" in capsys.readouterr().err
    assert (folder / "model.safetensors").is_file()
    assert sorted(one.name for one in tmp_path.iterdir()) == [".locks", folder.name]


def test_the_warm_up_is_reproducible_and_teaches_something(
    tmp_path: Path, base_folder: Path, smoke: Config
) -> None:
    state = torch.random.get_rng_state()
    again = pretrained(smoke.pretrain, smoke.task, prompts="tiny", cache=tmp_path)
    assert torch.equal(state, torch.random.get_rng_state())
    one, tokenizer = load_base(base_folder)
    other, _ = load_base(again)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    ids = tokenizer(" <gen> Q: 9 - 4 * 3 A:", return_tensors="pt")["input_ids"]
    likely = int(one(input_ids=ids).logits[0, -1].argmax())
    assert tokenizer.decode([likely]) in (" left", " right")


def test_a_key_depends_on_its_own_skills_alone() -> None:
    """Models that were warmed up before there were other roles and tasks are still found."""
    config = load("voting-ip-healthy")
    assert cache_key(config.pretrain, config.task, prompts="tiny") == "tiny-M-74a6faab6a30"


def test_doses_at_their_defaults_leave_the_key_of_older_models_alone() -> None:
    config = load("voting-ip-healthy")
    old, task = config.pretrain, config.task
    assert isinstance(task, MathTask)
    doses = ({"terse_share": 0.5}, {"candidates": (1, 3)}, {"prose_answers": True})
    keys = {
        cache_key(replace(old, noise=replace(old.noise, **one)), task, prompts="tiny")
        for one in doses
    }
    assert len(keys | {"tiny-M-74a6faab6a30"}) == 4


def test_with_until_the_number_of_steps_does_not_count(smoke: Config) -> None:
    settings, task = replace(smoke.pretrain, until=Until()), smoke.task
    key = cache_key(settings, task, prompts="tiny")
    assert key == cache_key(replace(settings, steps=41), task, prompts="tiny")
    assert key != cache_key(replace(settings, until=Until(worked=0.8)), task, prompts="tiny")
    assert key != cache_key(smoke.pretrain, task, prompts="tiny")


def test_the_first_phase_ends_when_the_model_is_able() -> None:
    noise = Noise(slip=0.1, terse_share=0.5)
    until = Until(worked=0.7, every=10, decay_steps=5, most_steps=100)
    settings = PretrainSettings(lr=1.0, noise=noise, until=until)
    answers = iter([0.1, 0.69, 0.7])
    steps = list(_schedule(settings, lambda: next(answers)))
    assert len(steps) == 30 + 5
    first, second = steps[:30], steps[30:]
    assert all(one.slip == 0 and one.terse_share == 0 for _, one in first)
    assert all(one == noise for _, one in second)
    assert [lr for lr, _ in first[20:]] == [1.0] * 10
    rates = [lr for lr, _ in second]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.02


def test_a_model_that_never_gets_there_stops_all_the_same() -> None:
    until = Until(every=10, decay_steps=5, most_steps=30)
    assert len(list(_schedule(PretrainSettings(until=until), lambda: 0.0))) == 35


def test_a_warm_up_until_able_is_reproducible(tmp_path: Path, smoke: Config) -> None:
    until = Until(worked=1.0, every=10, answers=8, decay_steps=5, most_steps=20)
    settings = replace(smoke.pretrain, until=until)
    state = torch.random.get_rng_state()
    one, other = (
        load_base(pretrained(settings, smoke.task, prompts="tiny", cache=tmp_path / name))[0]
        for name in ("a", "b")
    )
    assert torch.equal(state, torch.random.get_rng_state())
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
