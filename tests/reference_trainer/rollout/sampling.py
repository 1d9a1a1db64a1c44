"""What tests ask of an engine: one output per prompt, all of one policy."""

from collections.abc import Sequence

from reference_trainer.rollout.engine import Completion, Engine, Request, Sampling, answers


def sample(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    *,
    policy: str,
    sampling: Sampling,
    seeds: Sequence[int],
) -> list[Completion]:
    rows = zip(prompts, seeds, strict=True)
    return answers(engine, [Request(prompt, policy, sampling, seed) for prompt, seed in rows])
