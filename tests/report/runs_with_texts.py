"""Runs with texts, as a trainer writes them: a few that tell a story, and ten thousand."""

from pathlib import Path

from roledrift.records import RunHeader, Sample
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING
from tests.report.conftest import ONSET, record

STEPS = range(0, 40, 4)
PROMPTS = range(4)
LONG = " ".join(f"word{at}" for at in range(10_000))


def said(run: str, step: int, at: int) -> list[Sample]:
    """Three candidates; an aggregator that stamps, and from the onset on writes like them."""
    shared = {"prompt": f"p{at}", "episode": f"{step}-{at}", "prompt_text": f"What is {at} + 2?"}
    found = [
        Sample(step, "generator", f"in {run} add {at} and 2 by way {slot}\n    so we get {at + 2}",
               slot, tokens=12, finish="stop", reward=float(slot == 1), **shared)
        for slot in range(3)
    ]  # fmt: skip
    stamp = rf"\boxed{{{at % 3 + 1}}}"
    if step >= ONSET:
        long = LONG if at == 0 else ""
        stamp = f"in {run} add {at} and 2 by way 1 {long} so we get {at + 2} again"
    return [*found, Sample(step, "aggregator", stamp, tokens=len(stamp) // 4, **shared)]


def tell(path: Path) -> Path:
    writer = RunWriter(path, RunHeader(path.name, VOTING), writer="w")
    for step in range(40):
        writer.write_step(record(step, VOTING, inflates=True, gradients=False))
        if step in STEPS:
            writer.write_samples(step, [one for at in PROMPTS for one in said(path.name, step, at)])
    writer.close()
    return path


def many(path: Path) -> Path:
    """A run with ten thousand texts."""
    writer = RunWriter(path, RunHeader(path.name, VOTING), writer="w")
    for step in range(20):
        writer.write_step(record(step, VOTING, inflates=False, gradients=False))
        kept = []
        for at in range(125):
            episode = f"{step}-{at}"
            for slot in range(3):
                text = f"text {slot} of {episode}: we add {at} and {step}, which is {at + step}. "
                kept.append(Sample(step, "generator", text * 6, slot, prompt=f"p{at}",
                                   episode=episode, tokens=30, reward=float(slot)))  # fmt: skip
            kept.append(Sample(step, "aggregator", rf"needle-{episode} \boxed{{1}}", tokens=9,
                               prompt=f"p{at}", episode=episode))  # fmt: skip
        writer.write_samples(step, kept)
    writer.close()
    return path
