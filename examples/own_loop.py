"""Watch a training loop of your own: two roles, one tiny policy, plain torch. Runs in seconds.

A "policy" over ten symbols learns by REINFORCE to end its outputs late, because the reward pays for
length. `roledrift` sees the outputs of each role grow, and stops the run.
"""

from __future__ import annotations

import argparse

import torch
from torch.distributions import Categorical

from roledrift import VOTING, RoleBatch, TokenCapture, open_monitor

END, SYMBOLS, LONGEST = 0, 10, 64


def roll_out(logits: torch.Tensor, spans: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Symbols of `spans` outputs and the mask up to the first END, both (spans, LONGEST)."""
    ids = Categorical(logits=logits).sample((spans, LONGEST))
    ended = (ids == END).cumsum(1)
    return ids, (ended - (ids == END).long()) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="runs/own-loop")
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()

    torch.manual_seed(0)
    logits = torch.zeros(SYMBOLS, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.05)
    role_B = ["generator"] * 128 + ["aggregator"] * 64
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: min(1.0, done / 20))

    config = {"stop_on": ["length_inflation"], "detectors": {"length_inflation": {"limit": 16.0}}}
    monitor = open_monitor(VOTING, args.out, config=config, host="own loop", seed=0)
    capture = TokenCapture(VOTING)
    monitor.attach(capture)
    for step in range(args.steps):
        ids, mask = roll_out(logits.detach(), len(role_B))
        reward = mask.sum(1) / LONGEST
        advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
        logp = torch.log_softmax(logits, 0)[ids]
        loss = -(logp * mask * advantage[:, None]).sum(1).mean()

        capture.add(
            RoleBatch.from_padded(
                VOTING, role=role_B, mask=mask, logp=logp, reward=reward, advantage=advantage
            )
        )
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        warm_up.step()
        decision = monitor.end_step(step, {"reward": float(reward.mean())})
        if decision.stop:
            print(f"stopped at step {step}: {decision.reason}")
            break
    monitor.close()  # says how the run ended


if __name__ == "__main__":
    main()
