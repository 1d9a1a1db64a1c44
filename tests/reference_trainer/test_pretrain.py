from dataclasses import replace
from pathlib import Path

import torch

from reference_trainer.config import Config, load
from reference_trainer.pretrain import cache_key, load_base, pretrained
from reference_trainer.tasks.code import CodeTask


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
    there = sorted(cache.iterdir())
    again = pretrained(smoke.pretrain, smoke.task, prompts="tiny", cache=cache)
    assert again == base_folder
    assert (base_folder / "model.safetensors").stat().st_mtime_ns == written
    assert sorted(cache.iterdir()) == there
    assert all((one / "model.safetensors").is_file() for one in there), "a draft was left behind"


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
