"""Plans as people read them: one run in full, or the runs of a grid as a table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from reference_trainer.planning.gpu import GIB, Gpu, Lengths
from reference_trainer.planning.memory import MOMENTS
from reference_trainer.planning.plan import EXPERIMENT, Plan, Settings, changed, plan
from reference_trainer.planning.shapes import sizes


def described(made: Plan, lengths: Lengths, source: str) -> list[str]:
    """Lines about one run."""
    config, gpu, size = made.config, made.gpu, sizes(made.config)
    policies = len(set(config.routed().policies))
    devices = f"{gpu.count} GPUs" if gpu.count > 1 else "1 GPU"
    return [
        f"{config.name}: {config.workflow} on {devices} of {gpu.memory / GIB:g} GB, "
        f"{gpu.usable / GIB:.1f} GB of it usable",
        f"  {config.scale}: {size.base / 1e9:.2f} B parameters in {config.model.dtype}, "
        f"{policies} adapter(s) of {size.adapter / 1e6:.1f} M in float32",
        *_memory_table(made),
        *_work(made, lengths),
        *_verdict(made, source),
    ]


def _memory_table(made: Plan) -> Iterator[str]:
    parts = made.memory.parts
    names = list(dict.fromkeys(name for moment in MOMENTS for name in parts[moment]))
    unit, name = (GIB, "GB") if made.memory.peak >= GIB else (1 << 20, "MB")
    yield f"  {f'{name} per GPU':28}" + "".join(f"{moment:>10}" for moment in MOMENTS)
    for name in names:
        values = [parts[moment].get(name) for moment in MOMENTS]
        yield f"  {name:28}" + "".join(
            f"{'-' if value is None else f'{value / unit:.2f}':>10}" for value in values
        )
    totals = (made.memory.total(moment) / unit for moment in MOMENTS)
    yield f"  {'total':28}" + "".join(f"{total:10.2f}" for total in totals)
    if made.memory.rows is not None:
        yield (
            f"  the engine's share of {made.config.rollout.vllm.gpu_memory:g} holds the keys and "
            f"values of {made.memory.rows:.1f} sequences of full length"
        )


def _work(made: Plan, lengths: Lengths) -> Iterator[str]:
    work, gpu, config = made.duration, made.gpu, made.config
    for role, tokens in work.roles.items():
        yield (
            f"  {role}: {tokens.rows} outputs per iteration, {tokens.prompt:.0f} prompt and "
            f"{tokens.output:.0f} output tokens on average"
        )
    seconds = ", ".join(f"{name} {value:.0f} s" for name, value in work.seconds.items())
    days = gpu_days(made) / gpu.count
    yield (
        f"  per iteration: {work.sampled / 1e6:.2f} M tokens sampled, {work.trained / 1e6:.2f} M "
        f"trained on, {work.operations / 1e15:.2f} PFLOP; {_time(work.total)} ({seconds})"
    )
    yield f"  {config.train.steps} iterations: {days:.1f} days, {days * gpu.count:.1f} GPU days"
    pace = f"{work.tokens_per_second:.0f} output tokens per second and GPU"
    if gpu.tokens_per_second is None:
        pace += f" (weights and cache read at {gpu.reading:.0%} of {gpu.bandwidth:g} TB/s)"
    yield (
        f"  assumed: outputs of {lengths.output:.0%} of rollout.max_new_tokens and questions of "
        f"{lengths.question} tokens on average, every round played, every row trained on; "
        f"{gpu.utilisation:.0%} of {gpu.tflops:g} TFLOP/s while training; {pace}; grading costs "
        "no time. Measured on an H100 with one model of 0.6 B only"
    )


def _time(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def _verdict(made: Plan, source: str) -> Iterator[str]:
    if made.fits:
        yield f"  fits: {made.memory.peak / GIB:.1f} of {made.gpu.usable / GIB:.1f} GB"
        yield f"  {command(made, source)}"
        return
    yield f"  does not fit: {shortage(made)}"
    if not made.advice:
        yield (
            "  no setting of memory or length makes it fit: take a larger GPU, a smaller model, or "
            "a lower lora.rank"
        )
        return
    again = plan(changed(made.config, made.advice), made.gpu)
    words = " ".join(flags(made.advice))
    yield (
        f"  fits with {words}: {again.memory.peak / GIB:.1f} of {made.gpu.usable / GIB:.1f} GB, "
        f"{_time(again.duration.total)} per iteration"
    )
    if EXPERIMENT & set(made.advice):
        yield "  (shorter rows change the experiment; a larger GPU does not)"


def shortage(made: Plan) -> str:
    """Why a run does not fit, in words."""
    needed, usable = made.memory.peak / GIB, made.gpu.usable / GIB
    if made.memory.peak > made.gpu.usable:
        return f"{made.memory.tightest} needs {needed:.1f} GB, and {usable:.1f} GB are usable"
    share = made.config.rollout.vllm.gpu_memory
    return f"the engine's share of {share:g} has no room for one sequence of full length"


def flags(settings: Settings) -> list[str]:
    """The options of the command line that make these settings."""
    return [
        f"--set {name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in settings.items()
    ]


def command(made: Plan, source: str) -> str:
    """What trains the run of a plan."""
    launcher = "python"
    if made.gpu.count > 1:
        launcher = f"torchrun --nproc_per_node {made.gpu.count}"
    out = shlex.quote(f"runs/{made.config.name}")
    return f"{launcher} -m reference_trainer train {shlex.quote(source)} --out {out} --resume"


def gpu_days(made: Plan) -> float:
    """Days of all devices together."""
    return made.duration.total * made.config.train.steps * made.gpu.count / 86_400


def table(rows: Sequence[tuple[str, str, Plan | None]], gpu: Gpu) -> list[str]:
    """A line per run of a grid: how far it is, what it needs, and whether it fits.

    Args:
        rows: Name of a run, how far it is or why it cannot be run, and its plan if it has one.
        gpu: What they are planned for.
    """
    lines = [
        f"{'run':36} {'state':9}" + "".join(f"{moment:>9}" for moment in MOMENTS) + "  "
        f"{'iteration':>10} {'GPU days':>9}  on {gpu.count} x {gpu.memory / GIB:g} GB"
    ]
    for name, state, made in rows:
        if made is None:
            lines.append(f"{name:36} {state}")
            continue
        totals = "".join(f"{made.memory.total(moment) / GIB:9.1f}" for moment in MOMENTS)
        days = gpu_days(made)
        verdict = "fits" if made.fits else "does not fit"
        if made.advice:
            verdict += f"; {' '.join(flags(made.advice))}"
        lines.append(
            f"{name:36} {state:9}{totals}  {_time(made.duration.total):>10} {days:9.1f}  {verdict}"
        )
    return lines
