"""What roles really achieved: every answer is graded again, whatever the rewards said.

Rewards are the broadcast outcome of the episode (and may carry a stress on top), so they say
nothing about a role. Here answers are graded one by one; a selecting role is right if the candidate
it chose is, a judging role if its verdict agrees with the grade of what it judged. Everything goes
by the duty that the workflow gives a role, so a new workflow needs nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

from reference_trainer.episodes import Episode, Span
from reference_trainer.tasks import Problem, Task
from roledrift import Workflow
from roledrift.workflow import Duty

Verdicts = Mapping[str, Mapping[str, int]]
"""By truth (``right``, ``wrong``), then verdict (``correct``, ``incorrect``, ``unreadable``)."""


@dataclass(frozen=True, slots=True)
class RoleGrades:
    """One role, graded again.

    Attributes:
        spans: Number of outputs.
        accuracy: Share that was right; None for a role that plans.
        pass_at_k: For a role with several slots: chance that one of k of them, drawn without
            replacement, is right; k as text, since this goes into JSON. With k = all slots it is
            the oracle over the siblings. Empty for other roles.
        selection: For a selecting role: share of right choices among the episodes in which at least
            one candidate was right and one was not: there only, the choice mattered. None if there
            is no such episode, and for other roles.
        verdicts: For a judging role: how often it said what of right and wrong answers.
        unreadable: Share of outputs that the workflow's parser got nothing from.
        overruled: Spans whose correctness the workflow itself saw otherwise.
    """

    spans: int
    accuracy: float | None
    pass_at_k: Mapping[str, float]
    selection: float | None
    verdicts: Verdicts
    unreadable: float
    overruled: int


@dataclass(frozen=True, slots=True)
class Graded:
    """One span with its grade.

    Attributes:
        span: The span.
        duty: Of its role.
        correct: None if its role has nothing that could be right.
        about: What it chose or judged, if it did.
    """

    span: Span
    duty: Duty
    correct: bool | None
    about: Span | None = None


def regrade(
    episode: Episode, problem: Problem, *, task: Task, workflow: Workflow
) -> tuple[Graded, ...]:
    """Grade every span of ``episode`` by what it says and nothing else."""
    graded: list[Graded] = []
    for span in episode.spans:
        duty = workflow.role(span.role).duty
        answers = [grade for grade in graded if grade.duty in ("solve", "synthesize")]
        if duty in ("solve", "synthesize"):
            graded.append(Graded(span, duty, task.grade(problem, span.text).correct))
        elif duty == "select":
            chosen = _chosen(span, answers)
            correct = chosen is not None and bool(chosen.correct)
            graded.append(Graded(span, duty, correct, None if chosen is None else chosen.span))
        elif duty == "judge" and answers:
            agrees = _verdict(span) == ("correct" if answers[-1].correct else "incorrect")
            graded.append(Graded(span, duty, agrees, answers[-1].span))
        else:
            graded.append(Graded(span, duty, None))
    return tuple(graded)


def measure(episodes: Sequence[tuple[Graded, ...]], roles: Sequence[str]) -> dict[str, RoleGrades]:
    """Grades per role; roles without outputs are left out."""
    grades = {}
    for role in roles:
        own = [[grade for grade in episode if grade.span.role == role] for episode in episodes]
        if any(own):
            grades[role] = _role(own, episodes)
    return grades


def pass_at_k(correct: int, total: int, k: int) -> float:
    """Chance that at least one of ``k`` out of ``total`` answers is right, ``right`` of them being.

    ``1 - C(total - right, k) / C(total, k)`` (Chen et al. 2021).
    """
    return 1.0 - comb(total - correct, k) / comb(total, k)


def _role(own: Sequence[list[Graded]], episodes: Sequence[tuple[Graded, ...]]) -> RoleGrades:
    rows = [grade for episode in own for grade in episode]
    judged = [grade.correct for grade in rows if grade.correct is not None]
    return RoleGrades(
        spans=len(rows),
        accuracy=fmean(judged) if judged else None,
        pass_at_k=_siblings(own),
        selection=_selection(episodes) if rows[0].duty == "select" else None,
        verdicts=_verdicts(rows, episodes) if rows[0].duty == "judge" else {},
        unreadable=fmean(grade.span.parse.how == "failed" for grade in rows),
        overruled=sum(
            grade.correct is not None and grade.span.correct not in (None, grade.correct)
            for grade in rows
        ),
    )


def _siblings(own: Sequence[list[Graded]]) -> dict[str, float]:
    """pass@k over the outputs of one turn of one episode, where there are several."""
    teams: list[list[bool]] = []
    for episode in own:
        by_turn: dict[int, list[bool]] = {}
        for grade in episode:
            by_turn.setdefault(grade.span.turn, []).append(bool(grade.correct))
        teams += [team for team in by_turn.values() if len(team) > 1]
    most = max((len(team) for team in teams), default=0)
    return {
        str(k): fmean(pass_at_k(sum(team), len(team), k) for team in teams if len(team) >= k)
        for k in range(1, most + 1)
    }


def _selection(episodes: Sequence[tuple[Graded, ...]]) -> float | None:
    hits = []
    for episode in episodes:
        for number, grade in enumerate(episode):
            if grade.duty == "select":
                candidates = {bool(before.correct) for before in _answers(episode[:number])}
                if len(candidates) == 2:
                    hits.append(bool(grade.correct))
    return fmean(hits) if hits else None


def _verdicts(rows: Sequence[Graded], episodes: Sequence[tuple[Graded, ...]]) -> Verdicts:
    truth = {
        id(grade.span): bool(grade.correct) for episode in episodes for grade in _answers(episode)
    }
    table = {
        known: dict.fromkeys(("correct", "incorrect", "unreadable"), 0)
        for known in ("right", "wrong")
    }
    for grade in rows:
        if grade.about is not None:
            known = "right" if truth[id(grade.about)] else "wrong"
            table[known][_verdict(grade.span) or "unreadable"] += 1
    return table


def _answers(graded: Sequence[Graded]) -> list[Graded]:
    return [grade for grade in graded if grade.duty in ("solve", "synthesize")]


def _chosen(span: Span, candidates: Sequence[Graded]) -> Graded | None:
    value = span.parse.value
    if value is None or not value.isdecimal() or not 1 <= int(value) <= len(candidates):
        return None
    return candidates[int(value) - 1]


def _verdict(span: Span) -> str | None:
    value = (span.parse.value or "").strip().lower()
    return value if value in ("correct", "incorrect") else None
