"""``python -m reference_trainer train | evaluate | pretrain | demo | plan | grid``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reference_trainer.children import termination_interrupts
from reference_trainer.errors import SettingsError
from reference_trainer.planning.gpu import Gpu, Lengths, memory_of
from reference_trainer.ranks import processes
from roledrift import RoleDriftError

_CACHE = Path("runs/.cache")
_INTERRUPTED = 130
"""What a shell reports of a command that an interrupt ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 2 for a wrong setting, 130 after an interrupt."""
    options = _parser().parse_args(arguments)
    commands = {
        "train": _train,
        "evaluate": _evaluate,
        "pretrain": _pretrain,
        "demo": _demo,
        "plan": _plan,
        "grid": _grid,
    }
    try:
        _refuse_ranks(options.command)
        with termination_interrupts():
            return commands[options.command](options)
    except RoleDriftError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        how = str(interrupt) or "what was written so far stays"
        print(f"{options.command}: interrupted; {how}", file=sys.stderr)
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m reference_trainer", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train one run")
    _add_source(train)
    train.add_argument("--out", type=Path, required=True, help="run directory")
    train.add_argument("--no-monitor", action="store_true", help="train without roledrift")
    train.add_argument("--resume", action="store_true", help="go on from the latest checkpoint")
    evaluate = commands.add_parser("evaluate", help="validate the adapters of a finished run")
    evaluate.add_argument("run", type=Path, help="run directory of `train`")
    evaluate.add_argument("--problems", type=int, help="number of validation problems")
    evaluate.add_argument("--all", action="store_true", help="grade every checkpoint, role by role")
    evaluate.add_argument(
        "--milestones", action="store_true", help="the same for early, best and last checkpoint"
    )
    evaluate.add_argument("--rollouts", type=int, default=1, help="of every problem, when graded")
    _add_overrides(evaluate)
    pretrain = commands.add_parser("pretrain", help="warm up the base model of a run")
    _add_source(pretrain)
    demo = commands.add_parser("demo", help="a healthy, a hot and a verbose run, and their report")
    demo.add_argument("--out", type=Path, default=Path("runs/demo"), help="folder for the runs")
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    demo.add_argument("--overwrite", action="store_true", help="replace an earlier demo in --out")
    plan = commands.add_parser("plan", help="memory and time of a run, and whether it fits a GPU")
    _add_source(plan)
    _add_gpu(plan)
    grid = commands.add_parser("grid", help="every workflow, routing, task and scale")
    _add_grid(grid)
    for command in (train, evaluate, pretrain, demo, grid):
        command.add_argument("--cache", type=Path, default=_CACHE, help="warmed-up models")
    for command in (train, evaluate, pretrain):
        command.add_argument("--threads", type=int, default=1, help="CPU threads of torch")
    return parser


def _add_grid(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", default="tiny", help="tiny; paper or paper-code, which need a GPU"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/grid"), help="folder for the runs")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="cell names")
    parser.add_argument("--seeds", default="0", help="comma-separated; a run per cell and seed")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="this part of N, from 1")
    parser.add_argument("--jobs", type=int, help="runs at the same time; as many as fit the GPUs")
    parser.add_argument("--dry-run", action="store_true", help="list the cells, run nothing")
    _add_gpu(parser)
    _add_overrides(parser)


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    usual, lengths = Gpu(memory=0), Lengths()
    parser.add_argument(
        "--gpu", metavar="SIZE", help="memory of a GPU, such as 80GB; default: that of this machine"
    )
    parser.add_argument("--gpus", type=int, default=1, help="GPUs of one run")
    assumed = parser.add_argument_group("assumptions of the estimated time")
    for name, default, text in (
        ("--tflops", usual.tflops, "most TFLOP/s of the GPU"),
        ("--mfu", usual.utilisation, "share of them that training reaches"),
        ("--bandwidth", usual.bandwidth, "memory bandwidth in TB/s"),
        ("--reading", usual.reading, "share of it that sampling reaches"),
        ("--tokens-per-second", None, "output tokens per second and GPU, instead of the last two"),
        ("--output-share", lengths.output, "mean output, as a share of rollout.max_new_tokens"),
    ):
        assumed.add_argument(name, type=float, default=default, help=f"{text} ({default})")
    assumed.add_argument(
        "--question-tokens",
        type=int,
        default=lengths.question,
        help=f"mean prompt without what it quotes ({lengths.question})",
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", help="preset name, <grid>/<cell>, or TOML or JSON file")
    _add_overrides(parser)


def _add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a setting, e.g. train.adam.lr=1e-3 (value in JSON, or else a word)",
    )


def _overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """``["train.steps=3"]`` as ``{"train": {"steps": 3}}``."""
    from reference_trainer.reading import merge

    result: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise SettingsError(f"--set {pair!r} must look like train.steps=20")
        try:
            value: Any = json.loads(text)
        except json.JSONDecodeError:
            value = text
        for part in reversed(key.split(".")):
            value = {part: value}
        result = merge(result, value)
    return result


def _refuse_ranks(command: str) -> None:
    if command != "train" and processes() > 1:
        raise SettingsError(
            f"only `train` runs in several processes: start `{command}` without a launcher "
            "(WORLD_SIZE is set)"
        )


def _set_up_torch(threads: int) -> None:
    import torch
    from transformers.utils import logging

    torch.set_num_threads(threads)
    # transformers draws a progress bar for a model of 150 k parameters.
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def _train(options: argparse.Namespace) -> int:
    from reference_trainer.commands import train_run
    from reference_trainer.grid import load_source

    overrides = _overrides(options.set)
    if options.no_monitor:
        overrides.setdefault("monitor", {})["enabled"] = False
    config = load_source(options.source, overrides)
    _set_up_torch(options.threads)
    train_run(config, out=options.out, cache=options.cache, resume=options.resume)
    return 0


def _evaluate(options: argparse.Namespace) -> int:
    from reference_trainer.commands import evaluate_all, evaluate_run

    overrides = _overrides(options.set)
    _set_up_torch(options.threads)
    if options.all or options.milestones:
        evaluate_all(
            options.run,
            cache=options.cache,
            problems=options.problems,
            rollouts=options.rollouts,
            milestones=options.milestones,
            overrides=overrides,
        )
        return 0
    evaluate_run(options.run, cache=options.cache, problems=options.problems, overrides=overrides)
    return 0


def _pretrain(options: argparse.Namespace) -> int:
    from reference_trainer.grid import load_source
    from reference_trainer.pretrain import base_folder

    config = load_source(options.source, _overrides(options.set))
    _set_up_torch(options.threads)
    print(base_folder(config, options.cache))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from reference_trainer.demo import run_demo

    return run_demo(
        options.out,
        cache=options.cache,
        seed=options.seed,
        jobs=options.jobs,
        overwrite=options.overwrite,
    )


def _plan(options: argparse.Namespace) -> int:
    from reference_trainer.grid import load_source
    from reference_trainer.planning.plan import plan
    from reference_trainer.planning.show import described

    gpu, lengths = _gpu(options), _lengths(options)
    if gpu is None:
        raise SettingsError("this machine has no GPU: say which is meant, such as --gpu 80GB")
    config = load_source(options.source, _overrides(options.set))
    made = plan(config, gpu, lengths)
    print("\n".join(described(made, lengths, options.source)))
    return 0 if made.fits else 1


def _gpu(options: argparse.Namespace) -> Gpu | None:
    """The device that is planned for; None if none is named and this machine has none."""
    from reference_trainer.grid_plans import device_memory

    memory = device_memory() if options.gpu is None else memory_of(options.gpu)
    if memory is None:
        return None
    return Gpu(
        memory,
        count=options.gpus,
        tflops=options.tflops,
        utilisation=options.mfu,
        bandwidth=options.bandwidth,
        reading=options.reading,
        tokens_per_second=options.tokens_per_second,
    )


def _lengths(options: argparse.Namespace) -> Lengths:
    return Lengths(options.question_tokens, options.output_share)


def _grid(options: argparse.Namespace) -> int:
    from reference_trainer.grid import Choice, list_jobs, run_grid
    from reference_trainer.grid_plans import launch, list_grid, planned, refuse, visible_devices

    choice = Choice(
        only=tuple(options.only),
        seeds=_numbers(options.seeds, ",", "--seeds 0,1,2"),
        shard=_pair(options.shard),
        overrides=_overrides(options.set),
    )
    jobs, gpu = list_jobs(options.preset, choice), _gpu(options)
    plans = [None] * len(jobs) if gpu is None else planned(jobs, gpu, _lengths(options))
    if options.dry_run:
        list_grid(jobs, plans, out=options.out, gpu=gpu)
        return 0
    started = launch(jobs=options.jobs, ranks=options.gpus, visible=visible_devices())
    jobs = refuse(jobs, plans)
    return run_grid(jobs, out=options.out, cache=options.cache, launch=started)


def _pair(text: str) -> tuple[int, int]:
    numbers = _numbers(text, "/", "--shard 1/4")
    if len(numbers) != 2:
        raise SettingsError(f"{text!r} must look like --shard 1/4")
    return numbers[0], numbers[1]


def _numbers(text: str, separator: str, example: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(separator))
    except ValueError:
        raise SettingsError(f"{text!r} must look like {example}") from None


if __name__ == "__main__":
    sys.exit(main())
