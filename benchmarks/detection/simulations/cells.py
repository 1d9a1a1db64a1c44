"""The paper's cells at its own scale: 512 episodes, hundreds of steps, 2,000 tokens, k3 from 1e-5.

Each function is one row of a table. What is healthy and what is not is known by construction, from
the courses that the latent quantities take; the sizes are those of arXiv 2605.24202 where it gives
them, else of the field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.detection.simulations.noise import Array, Noise
from benchmarks.detection.simulations.plans import STAMP, RolePlan, RunPlan, course, growth
from benchmarks.detection.simulations.trials import Trial
from roledrift import SINGLE, VOTING, Workflow

STEPS = 300
NOISE = Noise(0.3, length=0.04, movement=0.8, entropy=0.08)
"""Scatter of large batches: less than that of the small recorded ones."""

YARDSTICKS = ("alone", "step-0 evaluation", "earlier runs", "reference run", "all of them")
"""What a run that is sick from the start can be measured by."""

ISOLATED = VOTING.routed("isolated")


def voting(
    accuracy: Array,
    *,
    k3: float = 1e-4,
    generator: RolePlan | None = None,
    aggregator: RolePlan | None = None,
    workflow: Workflow = ISOLATED,
    validated: int = 200,
    lr: Array | None = None,
) -> RunPlan:
    """Three generators of 2,000 tokens, an aggregator that stamps 12."""
    return RunPlan(
        workflow,
        {
            "generator": generator or RolePlan(2000.0, k3, updates=3),
            "aggregator": aggregator or RolePlan(12.0, k3, STAMP),
        },
        len(accuracy), accuracy, 512, 64, NOISE,
        course(len(accuracy), {1: 1e-6}) if lr is None else lr,
        engine=1e-4, validation=10, validated=validated, base=True,
    )  # fmt: skip


def rising(start: float = 0.3, end: float = 0.5) -> Array:
    """Accuracy of a healthy run."""
    return course(STEPS, {1: start, STEPS // 2: start + 0.8 * (end - start), STEPS: end})


def collapses(times: int) -> Iterator[Trial]:
    """Voting-IP: the generators' movement grows, the accuracy halves 20 to 40 steps later."""
    for base in (1e-5, 1e-4, 1e-3, 5e-3):
        for factor in (5, 10, 30, 100):
            for seed in range(times):
                onset, later = 150 + 7 * (seed % 8), 20 + 5 * (seed % 5)
                fall = onset + later
                accuracy = rising()
                accuracy *= course(STEPS, {fall: 1.0, fall + 15: 0.5})
                moved = growth(STEPS, {onset - 1: 1.0, onset + 4: float(factor)})
                generator = RolePlan(2000.0, base, updates=3, moved=moved)
                plan = voting(accuracy, k3=base, generator=generator)
                cell = f"Voting-IP, generator k3 {base:.0e} x{factor}, accuracy halves later"
                yield Trial(cell, plan, seed, onset, ("generator", "*"), fall)


def captures(times: int) -> Iterator[Trial]:
    """Voting-SP: the aggregator's stamp of 12 tokens becomes prose within 150 steps."""
    for factor in (2, 5, 40):
        for seed in range(times):
            onset = 80 + 5 * (seed % 5)
            longer = growth(STEPS, {onset: 1.0, onset + 150: float(factor)})
            prose = course(STEPS, {onset: 0.0, onset + 150: min(1.0, 0.5 + factor / 80)})
            accuracy = rising() * course(STEPS, {onset + 100: 1.0, STEPS: 0.85})
            aggregator = RolePlan(12.0, 1e-4, STAMP, longer=longer, prose=prose)
            plan = voting(accuracy, aggregator=aggregator, workflow=VOTING)
            cell = f"Voting-SP, aggregator's stamp becomes prose, length x{factor} over 150 steps"
            yield Trial(cell, plan, seed, onset, ("aggregator",))


def fine(times: int) -> Iterator[Trial]:
    """What healthy runs do at this scale."""
    for seed in range(times):
        for base in (1e-5, 1e-4, 1e-3, 5e-3):
            yield Trial(f"healthy Voting-IP, k3 {base:.0e}", voting(rising(), k3=base), seed)
        generator = RolePlan(800.0, 1e-4, updates=3, longer=growth(STEPS, {1: 1.0, STEPS: 3.0}))
        yield Trial(
            "healthy Voting-IP, generator 800 to 2,400 tokens, accuracy rises",
            voting(rising(end=0.6), generator=generator), seed,
        )  # fmt: skip
        for warmup in (15, 30):
            lr = 1e-6 * course(STEPS, {1: 1 / warmup, warmup: 1.0})
            yield Trial(
                f"healthy, learning rate warms up for {warmup} steps",
                voting(rising(), k3=6e-3, lr=lr), seed,
            )  # fmt: skip
            hidden = replace(voting(rising(), k3=6e-3, lr=lr), lr=None)
            moved = (lr / lr.max()) ** 2
            roles = {name: replace(value, moved=moved) for name, value in hidden.roles.items()}
            yield Trial(
                f"the same, {warmup} steps, learning rate not recorded",
                replace(hidden, roles=roles), seed,
            )  # fmt: skip
        for engine in (2e-3, 1e-2):
            plan = replace(voting(rising()), engine=engine)
            yield Trial(f"healthy, engine off by a constant k3 of {engine:.0e}", plan, seed)
        harder = rising() * course(STEPS, {149: 1.0, 150: 0.7})
        plan = replace(voting(harder), ability=rising())
        yield Trial("healthy, harder problems from step 150, validation rises", plan, seed)
        cut = course(STEPS, {1: 0.22, 100: 0.04})
        generator = RolePlan(2000.0, 1e-4, updates=3, truncated=cut)
        yield Trial(
            "healthy, truncated answers 22 % to 4 %", voting(rising(), generator=generator), seed
        )


def single_agents(times: int) -> Iterator[Trial]:
    """One role that thinks longer and gets better: the most ordinary healthy run."""
    for factor in (2, 3):
        for steps in (100, STEPS):
            for seed in range(times):
                longer = growth(steps, {steps // 10: 1.0, steps * 8 // 10: float(factor)})
                roles = {"generator": RolePlan(800.0, 1e-4, longer=longer)}
                plan = RunPlan(
                    SINGLE, roles, steps, course(steps, {1: 0.35, steps * 8 // 10: 0.7}), 512, 64,
                    NOISE, course(steps, {1: 1e-6}), 1e-4, 10, 200, base=True,
                )  # fmt: skip
                yield Trial(
                    f"single agent, length x{factor} in {steps} steps, .35 to .70", plan, seed
                )


def falls(times: int) -> Iterator[Trial]:
    """Accuracy falls to a tenth within 20 steps, in training and in validation."""
    for problems in (30, 64, 100, 200, 500, 1000):
        for start in (0.2, 0.45):
            for seed in range(times):
                fall = 150 + 3 * (seed % 10)
                accuracy = rising(start=start * 0.8, end=start)
                accuracy *= course(STEPS, {fall: 1.0, fall + 20: 0.1})
                plan = voting(accuracy, validated=problems)
                cell = f"accuracy {start:g} falls to a tenth, {problems} validation problems"
                yield Trial(cell, plan, seed, fall, ("*", "generator", "aggregator"), fall)


def sick_from_the_start(times: int) -> Iterator[Trial]:
    """Wrong from the first step on; with the yardsticks that such a run may have."""
    well = voting(rising())
    everyone = ("generator", "aggregator", "*")
    harmed = rising() * course(STEPS, {20: 1.0, 60: 0.6})
    moved = np.full(STEPS, 30.0)
    hot = {name: replace(value, moved=moved) for name, value in well.roles.items()}
    longer = replace(well.roles["aggregator"], longer=np.full(STEPS, 3.0))
    paid = replace(well.roles["aggregator"], paid=np.full(STEPS, 0.2))
    sick = {
        "length x3": (replace(well, roles={**well.roles, "aggregator": longer}), ("aggregator",)),
        "movement x30": (
            replace(well, roles=hot, accuracy=harmed, lr=course(STEPS, {1: 5.5e-6})), everyone,
        ),
        "paid for length": (
            replace(well, roles={**well.roles, "aggregator": paid}), ("aggregator",),
        ),
        "noisy reward": (replace(well, coins=0.8, accuracy=0.8 * rising()), everyone),
    }  # fmt: skip
    for what, (plan, roles) in sick.items():
        for yardstick in YARDSTICKS:
            for seed in range(times):
                yield Trial(
                    f"from step 0: {what} ({yardstick})",
                    replace(plan, base=yardstick in ("step-0 evaluation", "all of them")),
                    seed, 1, roles,
                    reference=well if yardstick in ("reference run", "all of them") else None,
                    earlier=well if yardstick in ("earlier runs", "all of them") else None,
                )  # fmt: skip


def trials(scale: float) -> Iterator[Trial]:
    """All cells, ``scale`` times ten runs each."""
    times = max(round(10 * scale), 1)
    for cell in (collapses, captures, fine, single_agents, falls, sick_from_the_start):
        yield from cell(times)
