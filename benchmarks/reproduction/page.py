"""``docs/reproduction.md`` from the results: ``python -m benchmarks.reproduction page``."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.reproduction.deciding import LEAST_PAIRS, Answer, Found, answers, reason, run_test
from benchmarks.reproduction.earlier import earlier_rows, earlier_tests
from benchmarks.reproduction.figures import draw_all
from benchmarks.reproduction.measures import Results
from benchmarks.reproduction.outcomes import FOLDER, Row, load, load_bases
from benchmarks.reproduction.plan import Claim, Job, Plan, load_plan
from benchmarks.reproduction.running import LEAST_WORKED
from benchmarks.reproduction.truth import (
    Told,
    least_form_kept,
    told_of_captures,
    told_of_falls,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"
IMAGES = ROOT / "docs" / "images" / "reproduction"
_WORDS = Path(__file__).with_name("words.toml")

_FIGURES = {
    "terse.svg": (
        "Share of the aggregator's outputs that begin with the answer. "
        "Thin lines are runs, thick ones means."
    ),
    "accuracy.svg": (
        "Training accuracy by number of trained slots and of optimizer steps per iteration."
    ),
    "optimizer.svg": "How far the first update moves the generator. Every point is a run.",
    "tests.svg": (
        "All tests with data, numbered as in the tables below. Dotted lines: the smallest "
        "difference of interest. Filled marks decide the claim; a triangle lies beyond the edge. "
        "Green: holds, red: does not hold, grey: cannot tell."
    ),
}  # fmt: skip


def write_page(*, results: Path = FOLDER, page: Path = PAGE, images: Path = IMAGES) -> None:
    """Write the page and its figures."""
    plan = load_plan()
    rows = load(results)
    decided = answers(plan.claims, Results(rows))
    figures = draw_all(images, Results(rows), decided)
    text = text_of(plan, rows, load_bases(results), decided, figures)
    page.write_text(text, "utf-8")


def text_of(
    plan: Plan,
    rows: Sequence[Row],
    bases: Sequence[Row],
    decided: Sequence[tuple[Claim, Answer, Sequence[Found]]],
    figures: Sequence[str],
) -> str:
    """The page as Markdown."""
    words = tomllib.loads(_WORDS.read_text("utf-8"))
    earlier = _earlier()
    parts = [
        words["head"].strip(),
        _in_short(decided),
        _made(plan, rows, bases),
        "## Verdicts\n\n" + _summary(decided),
        words["reading"].strip(),
    ]
    if "tests.svg" in figures:
        parts.append(_figure("tests.svg"))
    parts.append("## Claim by claim")
    for claim, answer, tests in decided:
        parts += _claim(claim, answer, tests, words["claims"][claim.name].strip())
        if claim.name in earlier:
            parts += [words["earlier"].strip(), _tests(earlier[claim.name])]
        for name, place in (
            ("terse.svg", "capture"),
            ("accuracy.svg", "steps"),
            ("optimizer.svg", "amplification"),
        ):
            if claim.name == place and name in figures:
                parts.append(_figure(name))
    parts += ["## What roledrift told", _reported(rows), words["told"].strip()]
    parts += ["## Base models", _bases(bases), "## What was not run", _missing(plan, rows)]
    parts.append(words["tail"].strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def number(value: float | None) -> str:
    """Three significant digits, with a sign; a dash for nothing."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:+.3g}".replace("+0", "0") if value == 0 else f"{value:+.3g}"


def interval(result: Found) -> str:
    """``[low, high]``; a dash without one."""
    if not np.isfinite([result.low, result.high]).all():
        return "-"
    return f"[{number(result.low)}, {number(result.high)}]"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _in_short(decided: Sequence[tuple[Claim, Answer, Sequence[Found]]]) -> str:
    """How many claims got which verdict, and which ones."""
    names: dict[str, list[str]] = {}
    for claim, answer, tests in decided:
        names.setdefault(_verdict(answer, tests), []).append(f"[{claim.name}](#{claim.name})")
    lines = [f"* {verdict}: {', '.join(claims)}" for verdict, claims in sorted(names.items())]
    return "The claims by verdict:\n\n" + "\n".join(lines)


def _impossible(plan: Plan, bases: Sequence[Row]) -> list[Job]:
    """Planned runs that are left out because their base model cannot do the task."""
    unable = {
        (base["recipe"], base["task"], base["base"])
        for base in bases
        if base["worked"] < LEAST_WORKED
    }

    def start(job: Job) -> tuple[str, str, int]:
        task = plan.settings(job).get("task", {}).get("name", "math")
        return plan.experiment(job.experiment).recipe, task, job.base

    return [job for job in plan.jobs("full") if start(job) in unable]


def _made(plan: Plan, rows: Sequence[Row], bases: Sequence[Row]) -> str:
    cpu = sum(row["cpu"] for row in rows) / 60
    versions = Counter(row["code"] for row in rows)
    codes = ", ".join(f"`{code}` ({count})" for code, count in versions.most_common())
    jobs = plan.jobs("full")
    planned = {(job.experiment, job.arm, job.base, job.seed): plan.hash(job) for job in jobs}
    current = sum(
        planned.get((row["experiment"], row["arm"], row["base"], row["seed"])) == row["config"]
        for row in rows
    )
    changed = (
        ""
        if current == len(rows)
        else f" {len(rows) - current} runs have settings of an earlier plan."
    )
    impossible = _impossible(plan, bases)
    unable = (
        f" {len(impossible)} start from base models that cannot do the task." if impossible else ""
    )
    return (
        f"**{len(rows)} of the {len(planned)} planned runs were made**, in {cpu:.0f} CPU minutes "
        f"without the warm-ups.{unable} "
        f"Code version (number of runs): {codes or 'none'}.{changed}"
    )


def _earlier() -> dict[str, list[Found]]:
    """Claim to what earlier runs say about it."""
    tests = earlier_tests()
    results = Results(earlier_rows(tests))
    return {name: [run_test(test, results) for test in some] for name, some in tests.items()}


def _summary(decided: Sequence[tuple[Claim, Answer, Sequence[Found]]]) -> str:
    rows = []
    for claim, answer, tests in decided:
        deciding = [result for result in tests if result.test.decides]
        result = next(
            (result for result in deciding if result.n and result.answer == answer), deciding[0]
        )
        rows.append(
            [
                f"[{claim.sentence}](#{claim.name})",
                f"**{_verdict(answer, tests)}**",
                result.test.name,
                result.detail or "-",
                _estimate(result),
            ]
        )
    head = [
        "claim",
        "verdict",
        "a test that settles it",
        "sides",
        "difference [95 %], pairs or runs",
    ]
    return _table(head, rows)


def _estimate(result: Found) -> str:
    if not result.n:
        return "not run"
    if result.estimate is None:
        return f"-, n = {result.n}"
    if result.test.kind.startswith("interaction"):
        return f"{result.estimate:.0%} of the variance, n = {result.n}"
    return f"{number(result.estimate)} {interval(result)}, n = {result.n}"


def _verdict(answer: Answer, tests: Sequence[Found]) -> str:
    """The answer; where there is none, whether that is for lack of runs."""
    most = max((result.n for result in tests if result.test.decides), default=0)
    if answer != "cannot tell" or most >= LEAST_PAIRS:
        return "cannot tell at this scale" if answer == "cannot tell" else answer
    return "cannot tell: too few runs" if most else "not run"


def _claim(claim: Claim, answer: Answer, tests: Sequence[Found], words: str) -> list[str]:
    verdict = f"{claim.sentence} **Verdict: {_verdict(answer, tests)}.**"
    return [f"### {claim.name}", verdict, words, _tests(tests)]


def _tests(tests: Sequence[Found]) -> str:
    rows = [
        [
            f"{place}. " + (f"**{result.test.name}**" if result.test.decides else result.test.name),
            result.detail or "-",
            _estimate(result),
            f"{result.test.delta:g}" if result.test.delta else "-",
            (f"{result.answer}: {why}" if (why := reason(result)) else result.answer)
            if result.n
            else "-",
        ]
        for place, result in enumerate(tests, start=1)
    ]
    head = ["test (bold: decides)", "sides", "difference [95 %], pairs or runs", "delta", "answer"]
    return _table(head, rows)


def _figure(name: str) -> str:
    return f"![{_FIGURES[name]}](images/{IMAGES.name}/{name})\n\n*{_FIGURES[name]}*"


def _reported(rows: Sequence[Row]) -> str:
    outcomes = Counter(row["told"]["outcome"] for row in rows)
    listed = ", ".join(f"{count} {name}" for name, count in outcomes.most_common())
    captures = _told_table(
        told_of_captures(rows), "`sp_role_capture` of the aggregator", delay=True
    )
    falls = _told_table(told_of_falls(rows), "outcome failing or suspicious", delay=False)
    findings = Counter(
        (incident["finding"], incident["severity"])
        for row in rows
        for incident in row["told"]["incidents"]
    )
    kinds = _table(
        ["cause of an incident", "severity", "incidents"],
        ([f"`{name}`", severity, str(count)] for (name, severity), count in findings.most_common()),
    )
    parts = [f"Outcomes of all {len(rows)} runs: {listed or 'none'}.", captures, _near(rows)]
    return "\n\n".join(part for part in (*parts, falls, kinds) if part)


def _near(rows: Sequence[Row]) -> str:
    """How near to a capture the runs came in which one was named and the form was kept."""
    named, others = (least_form_kept(rows, named=whether) for whether in (True, False))
    if not named or not others:
        return ""
    return (
        "The label is a threshold: a form is lost at half of its share. In the "
        f"{len(named)} runs with a shared policy that kept it and in which the capture was named, "
        f"the form sank to {median(named):.0%} of its share at the start (median of the\nlowest "
        f"means of three iterations); in the {len(others)} others to {median(others):.0%}."
    )


def _told_table(groups: Sequence[Told], named: str, *, delay: bool) -> str:
    head = ["what happened", "runs", named, "failing or input problem", "anything told"]
    rows = [
        [group.what, str(group.runs), str(group.named), str(group.failing), str(group.any)]
        for group in groups
    ]
    if delay:
        head.append("median iterations from onset to alert")
        for row, group in zip(rows, groups, strict=True):
            row.append("-" if group.delay is None else f"{group.delay:g}")
    return _table(head, rows)


def _bases(bases: Sequence[Row]) -> str:
    rows = [
        [
            base["recipe"] + ("" if base["task"] == "math" else f", {base['task']}"),
            str(base["base"]),
            f"{base['share']:.0%}",
            f"{base['worked']:.0%}",
            f"{base['others']:.0%}",
            "yes" if base["worked"] >= LEAST_WORKED else "no: left out",
        ]
        for base in bases
    ]
    head = [
        "recipe",
        "base",
        "answers that show work",
        "of those right",
        "of the others right",
        "used",
    ]
    return _table(head, rows)


def _missing(plan: Plan, rows: Sequence[Row]) -> str:
    made = Counter(row["experiment"] for row in rows)
    lines = []
    for experiment in plan.experiments:
        planned = len(plan.jobs("full", only=[experiment.name]))
        if made[experiment.name] < planned:
            lines.append(
                [f"`{experiment.name}`", experiment.about, f"{made[experiment.name]} of {planned}"]
            )
    if not lines:
        return "Every planned run was made."
    return _table(["experiment", "about", "runs made"], lines)
