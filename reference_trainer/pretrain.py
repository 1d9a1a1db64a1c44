"""The supervised warm-up that gives the tiny models their imperfect skills; cached on disk."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from reference_trainer.config import Config
from reference_trainer.demonstrations import DEMONSTRATORS, FORMS, Piece
from reference_trainer.exercises import Noise, TinyTask, exercises_for
from reference_trainer.model import ModelSettings, load_model
from reference_trainer.progress import Progress
from reference_trainer.readiness import readiness
from reference_trainer.seeds import derive
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.tiny_model import WORDS, build_model, build_tokenizer
from reference_trainer.warm_up import PretrainSettings, Until
from reference_trainer.workflows.prompts import load_prompts

_RECIPE = 1
"""Raise it when the code of the warm-up changes: models of older recipes are not used."""

_WARMUP_STEPS = 20

_LATER = (
    *("terse_share", "candidates_terse_share", "prose_answers", "candidates"),
    "any_of_majority",
)
"""Doses that came after the first models were cached: at their defaults they change nothing."""


def cache_key(settings: PretrainSettings, task: TinyTask, *, prompts: str) -> str:
    """Name of the cached model: everything its weights depend on."""
    texts = load_prompts(prompts)
    forms: dict[str, dict[str, str]] = {}
    for skill in settings.skills:
        for role, form in FORMS[skill]:
            forms.setdefault(role, {})[form] = texts.forms[role][form]
    warm_up, made_up = asdict(settings), asdict(task)
    # Skills count by name, without order; the arithmetic task was there before tasks had names.
    del warm_up["skills"]
    for name in _LATER:
        if warm_up["noise"][name] == getattr(Noise(), name):
            del warm_up["noise"][name]
    if settings.until is None:
        del warm_up["until"]
    else:
        del warm_up["steps"]
    if made_up["name"] == "math":
        del made_up["name"]
    parts = [_RECIPE, WORDS, warm_up, made_up, forms, sorted(settings.skills)]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    return f"tiny-{settings.size}-{digest[:12]}"


def pretrained(settings: PretrainSettings, task: TinyTask, *, prompts: str, cache: Path) -> Path:
    """Folder with the warmed-up model and its tokenizer, trained now if it is not in ``cache`` yet.

    Of several processes that need the same model at once, one trains it and the others wait, on
    other machines too if ``cache`` is in a network folder with locks. Without them each trains it,
    and the first to finish wins: a folder in ``cache`` is always whole.
    """
    folder = cache / cache_key(settings, task, prompts=prompts)
    if folder.is_dir():
        return folder
    with _alone(cache, folder.name):
        if not folder.is_dir():
            _store(folder, *warm_up(settings, task, prompts=prompts))
    return folder


@contextmanager
def _alone(cache: Path, name: str) -> Iterator[None]:
    """Entered by one process at a time; a process that ends lets the next one in."""
    locks = cache / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(locks / name)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        print(f"another process warms up {name} in {cache}: waiting for it", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _store(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write a model so that ``folder`` is there when it is whole, and not before."""
    cache = folder.parent
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

    def able() -> float:
        until = settings.until or Until()
        measured = readiness(
            model, tokenizer, exercises, texts, answers=until.answers, seed=settings.seed
        )
        return measured.worked

    model.train()
    with Progress(f"warm-up of tiny-{settings.size}", total=_most_steps(settings)) as progress:
        for step, (lr, noise) in enumerate(_schedule(settings, able)):
            skill = skills[step % len(skills)]
            rows = settings.rows if skill == "generator" else settings.rows // 2
            demonstrations = [
                DEMONSTRATORS[skill](exercises, texts, noise=noise, rng=rng) for _ in range(rows)
            ]
            for group in optimizer.param_groups:
                group["lr"] = lr
            loss = _loss(model, *_encode(demonstrations, vocabulary, end_id=tokenizer.eos_token_id))
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            progress.advance(step + 1, f"loss {float(loss.detach()):.3f}")
    return model.train(False), tokenizer


def _most_steps(settings: PretrainSettings) -> int:
    until = settings.until
    return settings.steps if until is None else until.most_steps + until.decay_steps


def _schedule(
    settings: PretrainSettings, able: Callable[[], float]
) -> Iterator[tuple[float, Noise]]:
    """Learning rate and doses of every step; ``able`` is asked how well the model does by now."""
    clean = replace(settings.noise, slip=0.0, filler=0.0)
    until = settings.until
    if until is None:
        for step in range(settings.steps):
            early = step < settings.clean_share * settings.steps
            yield _learning_rate(settings, step), clean if early else settings.noise
        return
    # What shows no work teaches no arithmetic: with it some models learn none in 1,000 steps.
    first = (clean if settings.clean_share > 0 else settings.noise).of_prose
    for step in range(until.most_steps):
        if step > 0 and step % until.every == 0 and able() >= until.worked:
            break
        rise = min(1.0, (step + 1) / _WARMUP_STEPS)
        yield settings.lr * rise, first
    for step in range(until.decay_steps):
        fall = 0.5 * (1 + math.cos(math.pi * (step + 1) / until.decay_steps))
        late = clean if settings.clean_share >= 1 else settings.noise
        yield settings.lr * max(0.02, fall), late


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
