from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch

from reference_trainer.config import Config
from reference_trainer.episodes import Parse, Span
from reference_trainer.policies import AdapterBank
from reference_trainer.rescoring import rescore, token_means
from reference_trainer.scoring import Batch, collate, score
from reference_trainer.updating import Forward, look_at, update_policy

Make = Callable[..., AdapterBank]


def span(i: int, role: str, policy: str) -> Span:
    ids = tuple(1 + (i * 7 + k) % 20 for k in range(3 + i % 4))
    prompt = (5, 6, 7) if role == "generator" else (8, 9, 10, 11, 12)
    parse = Parse("failed", None)
    return Span(
        *(i // 4, i % 4, role, i % 3, 0, policy, prompt, ids, (-4.0,) * len(ids), "stop", ""),
        *(parse, None, 0.0, (-1.0) ** i),
    )


class Watch:
    def __init__(self) -> None:
        self.seen: list[Forward] = []
        self.around_rows = 0
        self.measuring = False

    @contextmanager
    def around(self, batch: Batch) -> Iterator[None]:
        self.around_rows += len(batch.spans)
        yield

    def in_update(self, forward: Forward) -> None:
        self.seen.append(forward)


@pytest.fixture
def config(smoke: Config) -> Config:
    """8 episodes per step, mini-batches of 8, old log-probs computed by the trainer."""
    return replace(smoke, train=replace(smoke.train, minibatch=8, old_logps="trainer"))


@pytest.mark.parametrize(("counts", "updates"), [("spans", 3), ("episodes", 1)])
def test_mini_batches(make_bank: Make, config: Config, counts: str, updates: int) -> None:
    config = replace(config, train=replace(config.train, minibatch_counts=counts))
    spans = [span(i, "generator", "generator") for i in range(24)]
    watch = Watch()
    report = update_policy(make_bank("generator"), spans, config=config, step=1, watch=watch)
    assert report.updates == updates
    assert watch.around_rows == 24
    rows = [one for forward in watch.seen for one in forward.batch.spans]
    assert set(rows) == set(spans)
    assert [forward.steps_before for forward in watch.seen] == list(range(updates))
    # The first mini-batch is on-policy, later ones are not: an optimizer step lies between.
    moved = [
        float((one.scores.logp_BC.detach() - one.old_BC)[one.batch.mask_BC].abs().max())
        for one in watch.seen
    ]
    assert moved[0] == 0.0
    assert all(one > 0 for one in moved[1:])


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_optimizer_steps_of_a_role_can_be_fixed(
    make_bank: Make, config: Config, steps: int
) -> None:
    config = replace(config, train=replace(config.train, updates={"generator": steps}))
    spans = [span(i, "generator", "generator") for i in range(24)]
    watch = Watch()
    report = update_policy(make_bank("generator"), spans, config=config, step=1, watch=watch)
    assert report.updates == steps
    assert watch.around_rows == 24


def test_sgd_keeps_the_size_of_the_gradient_and_adamw_does_not(
    make_bank: Make, config: Config
) -> None:
    """Three identical slots whose losses are summed move three times as far under SGD alone."""
    moved = {}
    for rule in ("sgd", "adamw"):
        for weight in ("one", "sum"):
            bank = make_bank("generator", rule=rule)
            interventions = replace(config.interventions, slot_weights={"generator": weight})
            train = replace(config.train, updates={"generator": 1})
            one = replace(config, train=train, interventions=interventions)
            start = [p.detach().clone() for p in bank.parameters_of("generator")]
            bank.set_lr(10, total=100)
            spans = [span(i, "generator", "generator") for i in range(24)]
            same = [replace(other, problem=i // 3, copy=0) for i, other in enumerate(spans)]
            update_policy(bank, same, config=one, step=1, watch=None)
            pairs = zip(bank.parameters_of("generator"), start, strict=True)
            squares = [float((p.detach() - q).square().sum()) for p, q in pairs]
            moved[rule, weight] = sum(squares) ** 0.5
    assert moved["sgd", "sum"] == pytest.approx(3 * moved["sgd", "one"], rel=1e-4)
    assert moved["adamw", "sum"] == pytest.approx(moved["adamw", "one"], rel=0.01)


def test_micro_batches_change_memory_and_padding_but_not_the_update(
    make_bank: Make, config: Config
) -> None:
    spans = [span(i, "generator", "generator") for i in range(24)]
    norms, widths, weights = [], [], []
    for size in (3, 64):
        bank, watch = make_bank("generator"), Watch()
        train = replace(config.train, minibatch=12, microbatch=size)
        report = update_policy(
            bank, spans, config=replace(config, train=train), step=1, watch=watch
        )
        assert report.updates == 2
        norms.append(report.grad_norm)
        widths.append([one.batch.tokens_BT.shape for one in watch.seen])
        weights.append(torch.cat([one.flatten() for one in bank.parameters_of("generator")]))
    assert [rows for rows, _ in widths[0]] == [3] * 8
    # Rows of similar length are together: the shortest are not padded to the longest.
    assert widths[0][0][1] < widths[0][3][1] == widths[1][0][1]
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("changes", [{"packed": True}, {"packed": True, "microbatch_tokens": 40}])
def test_packed_rows_give_the_same_losses_scores_and_gradients(
    make_bank: Make, config: Config, changes: dict[str, Any]
) -> None:
    spans = [span(i, "generator", "generator") for i in range(24)]
    seen = []
    for own in ({}, changes):
        bank, watch = make_bank("generator"), Watch()
        train = replace(config.train, minibatch=24, **own)
        report = update_policy(
            bank, spans, config=replace(config, train=train), step=1, watch=watch
        )
        scores = {
            one: (logp[mask].detach(), entropy[mask])
            for forward in watch.seen
            for one, logp, entropy, mask in zip(
                forward.batch.spans,
                forward.scores.logp_BC,
                forward.scores.entropy_BC,
                forward.batch.mask_BC,
                strict=True,
            )
        }
        weights = torch.cat([one.flatten() for one in bank.parameters_of("generator")])
        seen.append((report, scores, weights, watch.seen))
    (plain, its, weights, _), (packed, mine, moved, forwards) = seen
    shapes = [tuple(one.batch.tokens_BT.shape) for one in forwards]
    total = sum(len(one.prompt_ids) + len(one.output_ids) for one in spans)
    assert all(rows == 1 for rows, _ in shapes)
    assert sum(length for _, length in shapes) == total  # no padding
    assert max(length for _, length in shapes) <= changes.get("microbatch_tokens", total)
    assert packed.loss == pytest.approx(plain.loss, rel=1e-4, abs=1e-7)
    assert packed.grad_norm == pytest.approx(plain.grad_norm, rel=1e-4)
    assert its.keys() == mine.keys()
    for one, (logps, entropies) in its.items():
        torch.testing.assert_close(mine[one][0], logps, rtol=0, atol=1e-5)
        torch.testing.assert_close(mine[one][1], entropies, rtol=0, atol=1e-5)
    # AdamW makes a whole step of a gradient that is nearly 0: its sign is rounding.
    assert ((moved - weights).abs() > 1e-5).double().mean() < 1e-3


def test_logits_in_chunks_are_those_at_once(
    make_bank: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = make_bank("generator")
    batch = collate([span(i, "generator", "generator") for i in range(6)], pad_id=0)
    found = []
    for most in (1 << 26, 7 * bank.causal_lm.config.vocab_size):
        monkeypatch.setattr("reference_trainer.scoring.MOST_LOGITS", most)
        scores = score(bank.causal_lm, batch, temperature=0.7)
        scores.logp_BC.square().sum().backward()
        gradient = torch.cat([one.grad.flatten() for one in bank.parameters_of("generator")])
        found.append((scores.logp_BC.detach(), scores.entropy_BC, gradient))
        bank.optimizers["generator"].zero_grad(set_to_none=True)
    for at_once, in_chunks in zip(*found, strict=True):
        torch.testing.assert_close(in_chunks, at_once, rtol=1e-5, atol=1e-6)


def test_rows_without_advantage_are_watched_and_cost_no_backward_pass(
    make_bank: Make, config: Config
) -> None:
    spans = [span(i, "generator", "generator") for i in range(24)]
    spans = [replace(one, advantage=0.0) if one.problem % 2 else one for one in spans]
    train = replace(config.train, minibatch=24)
    weights = []
    gradients = Watch()
    gradients.measuring = True
    for rows, watch in ((spans, Watch()), (spans, None), (spans, gradients)):
        bank = make_bank("generator")
        report = update_policy(bank, rows, config=replace(config, train=train), step=1, watch=watch)
        weights.append(torch.cat([one.flatten() for one in bank.parameters_of("generator")]))
        assert report.updates == 1
        assert report.grad_norm > 0
        if watch is not None:
            assert {one for forward in watch.seen for one in forward.batch.spans} == set(spans)
            for forward in watch.seen:
                idle = {one.advantage == 0.0 for one in forward.batch.spans}
                assert len(idle) == 1
                # A record of gradients says of every role what its own was, also that it was 0.
                needed = watch.measuring or not idle.pop()
                assert forward.scores.logp_BC.requires_grad == needed
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


def test_a_policy_of_rows_without_advantage_goes_on_by_its_momentum(
    make_bank: Make, config: Config
) -> None:
    """As it did when their gradients were computed, and were 0."""
    bank = make_bank("generator")
    spans = [span(i, "generator", "generator") for i in range(8)]
    idle = [replace(one, advantage=0.0) for one in spans]
    update_policy(bank, spans, config=config, step=1, watch=None)
    before = torch.cat([one.detach().flatten() for one in bank.parameters_of("generator")])
    report = update_policy(bank, idle, config=config, step=2, watch=None)
    after = torch.cat([one.detach().flatten() for one in bank.parameters_of("generator")])
    assert (report.loss, report.grad_norm) == (0.0, 0.0)
    assert not torch.equal(before, after)


def test_a_shared_policy_gets_micro_batches_of_one_role(make_bank: Make, config: Config) -> None:
    spans = [span(i, ("generator", "aggregator")[i % 2], "shared") for i in range(16)]
    watch = Watch()
    update_policy(make_bank("shared"), spans, config=config, step=1, watch=watch)
    for forward in watch.seen:
        assert {one.role for one in forward.batch.spans} == {forward.role}
    assert {forward.role for forward in watch.seen} == {"generator", "aggregator"}


def test_updates_are_reproducible_and_do_not_depend_on_being_watched(
    make_bank: Make, config: Config
) -> None:
    spans = [span(i, "generator", "generator") for i in range(24)]
    banks = []
    for watch in (None, Watch()):
        banks.append(make_bank("generator", "other"))
        update_policy(banks[-1], spans, config=config, step=1, watch=watch)
    for a, b in zip(*(bank.parameters_of("generator") for bank in banks), strict=True):
        assert torch.equal(a, b)


def test_rescoring_measures_the_step(make_bank: Make, config: Config) -> None:
    bank = make_bank("generator")
    plain = collate([span(i, "generator", "generator") for i in range(24)], pad_id=0)
    with torch.no_grad():
        logps = score(bank.causal_lm, plain, temperature=1.0).logp_BC
    spans = [
        replace(one, logp_rollout=tuple(logps[i, : len(one.output_ids)].tolist()))
        for i, one in enumerate(plain.spans)
    ]
    config = replace(config, monitor=replace(config.monitor, rescore_rows=6))
    (still,) = rescore(bank, spans, config=config, updates=0)
    assert len(still.batch.spans) == 6
    assert still.sums()["k3"] < 1e-9 * still.sums()["tokens"]
    assert abs(still.sums()["chi2"]) < 1e-5 * still.sums()["tokens"]
    update_policy(bank, spans, config=config, step=1, watch=None)
    (moved,) = rescore(bank, spans, config=config, updates=3)
    assert moved.sums()["k3"] > 1e-7 * moved.sums()["tokens"]
    d = (moved.after.logp_BC - moved.before_BC)[moved.batch.mask_BC].double()
    assert moved.sums()["chi2"] == pytest.approx(float(((2 * d).exp() - 1).sum()))
    # In smaller forwards, as an update has them, the same rows give the same numbers.
    small = replace(config, train=replace(config.train, microbatch=4))
    parts = rescore(bank, spans, config=small, updates=3)
    assert [len(one.batch.spans) for one in parts] == [3, 3]
    assert token_means(parts) == pytest.approx(token_means([moved]), rel=1e-4)


def test_entropy_and_log_probs_at_a_temperature(make_bank: Make) -> None:
    bank = make_bank("generator")
    one = span(3, "aggregator", "generator")
    batch = collate([one, span(0, "generator", "generator")], pad_id=0)
    with torch.no_grad():
        scores = score(bank.causal_lm, batch, temperature=0.5)
        logits = bank.causal_lm(input_ids=torch.tensor([[*one.prompt_ids, *one.output_ids]])).logits
    start = len(one.prompt_ids) - 1
    for k, token in enumerate(one.output_ids):
        logp = (logits[0, start + k] / 0.5).log_softmax(-1)
        assert float(scores.logp_BC[0, k]) == pytest.approx(float(logp[token]), abs=1e-5)
        entropy = float(-(logp.exp() * logp).sum())
        assert float(scores.entropy_BC[0, k]) == pytest.approx(entropy, abs=1e-4)
    assert bool((scores.logp_BC[1, 3:] == 0).all())


def test_rows_that_stay_out_of_the_loss_are_scored_and_change_nothing(
    make_bank: Make, config: Config
) -> None:
    bank = make_bank("shared")
    before = [one.detach().clone() for one in bank.parameters_of("shared")]
    spans = [span(i, "aggregator", "shared") for i in range(8)]
    watch = Watch()
    look_at(bank, spans, config=config, watch=watch)
    rows = [one for forward in watch.seen for one in forward.batch.spans]
    assert set(rows) == set(spans)
    assert all(forward.terms is None for forward in watch.seen)
    assert not any(forward.scores.logp_BC.requires_grad for forward in watch.seen)
    assert watch.around_rows == 0, "no gradient, nothing to attribute"
    after = bank.parameters_of("shared")
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_report_names_the_rate_that_was_used(make_bank: Make, config: Config) -> None:
    bank = make_bank("generator", lr=0.01, lr_factors={"generator": 0.5})
    bank.set_lr(2, total=8, factors={"generator": 3.0})  # half-way through a warm-up of 4
    spans = [span(i, "generator", "generator") for i in range(8)]
    report = update_policy(bank, spans, config=config, step=2, watch=None)
    assert report.lr == pytest.approx(0.01 * 0.5 * 0.5 * 3.0)
