"""Capturing leaves no trace in the trainer: no wait, no tensor kept, no random number drawn."""

from __future__ import annotations

import ast
import gc
import random
import weakref
from pathlib import Path

import numpy as np
import torch

import roledrift.capture
from roledrift.capture.batch import RoleBatch
from roledrift.capture.tokens import TokenCapture
from roledrift.workflow import VOTING

A = torch.tensor([[-0.1, -0.5, -2.0, float("nan")], [-0.3, -0.05, float("inf"), 7.0]])
B = torch.tensor([[-0.2, -0.4, -1.5, 0.0], [-0.3, -0.1, float("nan"), -9e9]])
MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])


def padded(**columns):
    return RoleBatch.from_padded(
        VOTING, **{"role": ["generator", "generator"], "mask": MASK, **columns}
    )


def test_add_reads_no_value():
    # A meta tensor has no values: any synchronisation with a device would fail on it.
    meta = {"device": "meta"}
    logp = torch.empty(4, 8, **meta)
    columns = {
        name: torch.empty(4, dtype=torch.int64, **meta)
        for name in ("slot", "turn", "prompt", "episode", "group")
    }
    batch = RoleBatch.from_padded(
        VOTING,
        role=torch.empty(4, dtype=torch.int64, **meta),
        mask=torch.empty(4, 8, **meta),
        **columns,
        truncated=torch.empty(4, dtype=torch.bool, **meta),
        reward=torch.empty(4, **meta),
        advantage=torch.empty(4, 8, **meta),
        logp=logp,
        old_logp=logp,
        rollout_logp=logp,
        reference_logp=logp,
        entropy=logp,
        clip=(0.2, 0.2),
    )
    TokenCapture(VOTING).add(batch)


def test_drain_copies_to_the_host_once(monkeypatch):
    copies = []
    copy = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda x: copies.append(1) or copy(x))
    capture = TokenCapture(VOTING)
    for batch in (padded(logp=A), padded(), padded(logp=A, old_logp=B, outputs=False)):
        capture.add(batch)
    assert len(capture.drain()) == 3
    assert len(copies) == 1


SYNCS = {"item", "cpu", "tolist", "numpy", "nonzero", "synchronize", "masked_select", "unique"}


def test_one_function_waits_for_the_device():
    found = set()
    for name in ("batch.py", "tokens.py", "ranks.py"):
        source = (Path(roledrift.capture.__path__[0]) / name).read_text()
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef):
                found |= {(name, function.name, call) for call in calls(function) if call in SYNCS}
    assert found == {("tokens.py", "to_host", "cpu"), ("tokens.py", "to_host", "numpy")}


def calls(function):
    return {
        node.func.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


def test_no_tensor_of_the_trainer_is_kept():
    capture = TokenCapture(VOTING)
    tensors = {name: torch.rand(2, 4) for name in ("logp", "old_logp", "rollout_logp", "entropy")}
    mask, advantage = torch.ones(2, 4), torch.rand(2, 4)
    watched = [weakref.ref(x) for x in (*tensors.values(), mask, advantage)]
    capture.add(padded(**tensors, mask=mask, advantage=advantage, clip=(0.2, 0.2)))
    del tensors, mask, advantage
    gc.collect()
    assert [ref() for ref in watched] == [None] * 6
    assert len(capture.drain()) == 1


def test_no_autograd_graph_is_kept_and_gradients_are_the_same():
    def gradient(watch):
        weight = torch.full((2, 4), -0.5, requires_grad=True)
        logp = (weight * 3).sin()
        if watch:
            capture, saved = TokenCapture(VOTING), []
            with torch.autograd.graph.saved_tensors_hooks(saved.append, list):
                capture.add(padded(logp=logp, old_logp=logp.detach(), entropy=logp.detach().abs()))
            assert saved == []
            assert not any(held.packed_BK.requires_grad for held in capture._held)
        logp.sum().backward()
        return weight.grad

    assert torch.equal(gradient(watch=True), gradient(watch=False))


def test_inputs_and_random_states_are_untouched():
    a, b, mask = A.clone(), B.clone(), MASK.clone()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    capture = TokenCapture(VOTING)
    capture.add(padded(logp=a, old_logp=b, mask=mask))
    capture.drain()
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    np.testing.assert_array_equal(states[2], np.random.get_state()[1])
    for kept, now in ((A, a), (B, b), (MASK, mask)):
        assert torch.equal(kept.nan_to_num(99), now.nan_to_num(99))


def test_what_is_kept_does_not_grow_with_the_tokens():
    def kept(tokens):
        capture = TokenCapture(VOTING)
        for _ in range(3):
            logp = torch.rand(2, tokens)
            capture.add(padded(mask=torch.ones(2, tokens), logp=logp, old_logp=logp, entropy=logp))
        return [held.packed_BK.untyped_storage().nbytes() for held in capture._held], capture

    short, _ = kept(4)
    long, capture = kept(4000)
    assert short == long
    assert long[0] < 2 * 400
    assert len(capture._edges) == 1
