"""The supervised warm-up that gives the tiny models their imperfect skills; cached on disk."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from reference_trainer.config import Config, PretrainSettings
from reference_trainer.demonstrations import DEMONSTRATORS, FORMS, Piece
from reference_trainer.exercises import TinyTask, exercises_for
from reference_trainer.model import ModelSettings, load_model
from reference_trainer.progress import Progress
from reference_trainer.seeds import derive
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.tiny_model import WORDS, build_model, build_tokenizer
from reference_trainer.workflows.prompts import load_prompts

_RECIPE = 1
"""Raise it when the code of the warm-up changes: models of older recipes are not used."""

_WARMUP_STEPS = 20


def cache_key(settings: PretrainSettings, task: TinyTask, *, prompts: str) -> str:
    """Name of the cached model: everything its weights depend on."""
    texts = load_prompts(prompts)
    forms: dict[str, dict[str, str]] = {}
    for skill in settings.skills:
        for role, form in FORMS[skill]:
            forms.setdefault(role, {})[form] = texts.forms[role][form]
    warm_up, its = asdict(settings), asdict(task)
    # Skills count by name, without order; the arithmetic task was there before tasks had names.
    del warm_up["skills"]
    if its["name"] == "math":
        del its["name"]
    parts = [_RECIPE, WORDS, warm_up, its, forms, sorted(settings.skills)]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"tiny-{settings.size}-{digest[:12]}"


def pretrained(settings: PretrainSettings, task: TinyTask, *, prompts: str, cache: Path) -> Path:
    """Folder with the warmed-up model and its tokenizer, trained now if it is not in ``cache`` yet.

    Two processes that need the same model at once both train it; the first to finish wins.
    """
    folder = cache / cache_key(settings, task, prompts=prompts)
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    model, tokenizer = warm_up(settings, task, prompts=prompts)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=cache))
    try:
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        draft.chmod(0o755)
        os.replace(draft, folder)
    except OSError:
        # A folder that is already there cannot be replaced: the other process's model is the same.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def base_key(config: Config) -> str | None:
    """Name of the run's warmed-up model in the cache; None if it brings a model of its own."""
    if config.model.path:
        return None
    task = config.task
    assert isinstance(task, MathTask | CodeTask)  # the configuration was checked
    return cache_key(config.pretrain, task, prompts=config.prompts)


def base_folder(config: Config, cache: Path) -> Path:
    """Folder with the run's base model and tokenizer, warmed up now if that is still to be done."""
    if config.model.path:
        return Path(config.model.path)
    task = config.task
    assert isinstance(task, MathTask | CodeTask)
    return pretrained(config.pretrain, task, prompts=config.prompts, cache=cache)


def load_base(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Model and tokenizer of a folder that :func:`pretrained` returned, on the CPU."""
    return load_model(folder, ModelSettings(device="cpu"))


def warm_up(
    settings: PretrainSettings, task: TinyTask, *, prompts: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Train a fresh model on demonstrations of every skill in turn."""
    tokenizer = build_tokenizer()
    vocabulary = tokenizer.get_vocab()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(settings.seed, "weights"))
        model = build_model(settings.size)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.lr, betas=(0.9, 0.98), weight_decay=0.01, foreach=True
    )
    rng = random.Random(derive(settings.seed, "demonstrations"))
    texts = load_prompts(prompts)
    exercises = exercises_for(task)
    skills = [skill for skill in DEMONSTRATORS if skill in settings.skills]
    clean = replace(settings.noise, slip=0.0, filler=0.0)
    model.train()
    with Progress(f"warm-up of tiny-{settings.size}", total=settings.steps) as progress:
        for step in range(settings.steps):
            skill = skills[step % len(skills)]
            rows = settings.rows if skill == "generator" else settings.rows // 2
            noise = clean if step < settings.clean_share * settings.steps else settings.noise
            demonstrations = [
                DEMONSTRATORS[skill](exercises, texts, noise=noise, rng=rng) for _ in range(rows)
            ]
            for group in optimizer.param_groups:
                group["lr"] = _learning_rate(settings, step)
            loss = _loss(model, *_encode(demonstrations, vocabulary, end_id=tokenizer.eos_token_id))
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            progress.advance(step + 1, f"loss {float(loss.detach()):.3f}")
    return model.train(False), tokenizer


def _learning_rate(settings: PretrainSettings, step: int) -> float:
    rise = min(1.0, (step + 1) / _WARMUP_STEPS)
    return settings.lr * max(0.02, rise * 0.5 * (1 + math.cos(math.pi * step / settings.steps)))


def _encode(
    demonstrations: Sequence[Sequence[Piece]], vocabulary: dict[str, int], *, end_id: int
) -> tuple[Tensor, Tensor]:
    """Token ids, and where the loss runs; both padded on the right."""
    rows = []
    for pieces in demonstrations:
        ids: list[int] = []
        trained: list[bool] = []
        for text, train in pieces:
            # One word, one token: splitting here is ten times faster than the tokenizer.
            words = [vocabulary[f" {word}"] for word in text.split(" ")[1:]]
            ids += words
            trained += [train] * len(words)
        rows.append(([*ids, end_id], [*trained, True]))
    width = max(len(ids) for ids, _ in rows)
    tokens = torch.tensor([ids + [end_id] * (width - len(ids)) for ids, _ in rows])
    mask = torch.tensor([trained + [False] * (width - len(trained)) for _, trained in rows])
    return tokens, mask


def _loss(model: PreTrainedModel, tokens: Tensor, mask: Tensor) -> Tensor:
    hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    chosen = mask[:, 1:]
    return F.cross_entropy(model.lm_head(hidden[:, :-1][chosen]), tokens[:, 1:][chosen])
