"""What the slots of one role have in common: their sign, their words, their mistakes.

Siblings are the outputs of one role to one problem in one episode, one per slot: the three
generators of a voting workflow. Rows are siblings if they agree in role, episode, and, where the
table knows them, problem and turn; two rows of the same slot are not. Only roles with several slots
have siblings. A table must not cut through an episode, or pairs are lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import given
from roledrift.measure.shape import boxes
from roledrift.measure.wording import overlap
from roledrift.spans import Ints, SpanTable
from roledrift.sums import EVERYONE, Key, Mean, Sums
from roledrift.workflow import Workflow

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SiblingProbe:
    """A :class:`roledrift.protocols.Probe` of families of siblings.

    What it measures belongs to a role (and to ``"*"``), never to a slot: a pair has two.
    """

    name: str
    needs: frozenset[str]
    workflow: Workflow
    read: Callable[[SpanTable, list[Pair]], Mean]

    def measure(self, spans: SpanTable) -> Sums:
        """Sums per role with siblings, and over all such roles."""
        sums: Sums = {}
        if not self.needs <= spans.present:
            return sums
        for role, pairs in _families(spans, self.workflow):
            value = self.read(spans, pairs)
            if not value.n:
                continue
            for group in (role, EVERYONE):
                key = Key(group, self.name)
                known = sums.get(key)
                sums[key] = known + value if isinstance(known, Mean) else value
        return sums


def _sibling_probe(
    *needs: str,
) -> Callable[[Callable[[SpanTable, list[Pair]], Mean]], Callable[[Workflow], SiblingProbe]]:
    """Turn a function from spans and pairs to a sum into the maker of the probe of its name."""

    def maker(read: Callable[[SpanTable, list[Pair]], Mean]) -> Callable[[Workflow], SiblingProbe]:
        return lambda workflow: SiblingProbe(read.__name__, frozenset(needs), workflow, read)

    return maker


@_sibling_probe("episode_N", "advantage_N")
def sign_agreement(spans: SpanTable, pairs: list[Pair]) -> Mean:
    """``sign_agreement``: share of pairs of siblings whose advantages have the same sign.

    0.5 for unrelated signs, 1 if an episode pushes all slots the same way, which is what adds their
    gradients up on one policy (the mechanism of gradient amplification in arXiv 2605.24202). Pairs
    in which an advantage is zero or not finite push nothing and are left out.
    """
    advantage_N = given(spans.advantage_N)
    signs = [np.sign(advantage_N[[i, j]]) for i, j in pairs]
    pushing = [(a, b) for a, b in signs if abs(a) == abs(b) == 1]
    return Mean(float(len(pushing)), float(sum(a == b for a, b in pushing)))


@_sibling_probe("episode_N", "text_N")
def sibling_jaccard(spans: SpanTable, pairs: list[Pair]) -> Mean:
    """``sibling_jaccard``: overlap of the word 3-grams of siblings, averaged over families.

    Paper (arXiv 2605.24202, tables 4 and 6): 3-gram set overlap for each pair of the same-role
    outputs of a problem, averaged in the problem, then over problems; the tokenisation is not said.
    Here: of lower-cased words (:func:`roledrift.measure.wording.overlap`), averaged in the
    episode, then over episodes. Pairs of two empty texts are left out.
    """
    return _overlap(spans, pairs)


@_sibling_probe("episode_N", "text_N", "reward_N")
def wrong_jaccard(spans: SpanTable, pairs: list[Pair]) -> Mean:
    """``wrong_jaccard``: :func:`sibling_jaccard` among wrong siblings only, averaged over families.

    Siblings that are right agree because they are right, and ever more so in a run that learns.
    Wrong means a reward of at most 0, as for :func:`wrong_agreement`. Not in the paper.
    """
    reward_N = given(spans.reward_N)
    return _overlap(spans, [(i, j) for i, j in pairs if reward_N[i] <= 0 and reward_N[j] <= 0])


@_sibling_probe("episode_N", "text_N", "reward_N")
def wrong_agreement(spans: SpanTable, pairs: list[Pair]) -> Mean:
    r"""``wrong_agreement``: share of pairs of wrong siblings that give the same wrong answer.

    Paper: slots agree more sharply on the same wrong answer than before training; not tabulated.
    Here: a sibling is wrong if its reward is at most 0, its answer is its last ``\boxed{}`` without
    white space, and pairs count in which both are wrong and both have an answer. Answers are
    compared as text: 1/2 and 0.5 differ. It tells about the slots only if the reward is that of the
    span, not one that the workflow's outcome gives to all.
    """
    text_N, reward_N = given(spans.text_N), given(spans.reward_N)
    answers: dict[int, str] = {}
    for row in {row for pair in pairs for row in pair}:
        contents = boxes(text_N[row] or "") if reward_N[row] <= 0 else []
        if contents:
            answers[row] = "".join(contents[-1].split())
    both = [(answers[i], answers[j]) for i, j in pairs if i in answers and j in answers]
    return Mean(float(len(both)), float(sum(a == b for a, b in both)))


def _families(spans: SpanTable, workflow: Workflow) -> Iterator[tuple[str, list[Pair]]]:
    """Each family's role and its pairs of rows; families of one are left out."""
    known = (spans.episode_N, spans.prompt_N, spans.turn_N)
    columns = [column for column in known if column is not None]
    for role in workflow.roles:
        if role.slots < 2 or role.name not in spans.roles:
            continue
        rows = np.flatnonzero(spans.role_N == spans.roles.index(role.name))
        for family in _alike(np.stack([column[rows] for column in columns], axis=1), rows):
            pairs = [
                (i, j)
                for i, j in combinations(family.tolist(), 2)
                if spans.slot_N is None or spans.slot_N[i] != spans.slot_N[j]
            ]
            if pairs:
                yield role.name, pairs


def _alike(address_NK: Ints, rows: Ints) -> list[Ints]:
    """``rows`` split by equal addresses, in the order of the addresses."""
    if not rows.size:
        return []
    order = np.lexsort(address_NK.T[::-1])
    sorted_NK = address_NK[order]
    borders = np.flatnonzero((sorted_NK[1:] != sorted_NK[:-1]).any(axis=1)) + 1
    return np.split(rows[order], borders)


def _overlap(spans: SpanTable, pairs: list[Pair]) -> Mean:
    text_N = given(spans.text_N)
    texts = [(text_N[i], text_N[j]) for i, j in pairs]
    mean = overlap((a, b) for a, b in texts if a is not None and b is not None)
    return Mean(0.0, 0.0) if math.isnan(mean) else Mean(1.0, mean)


def _several(workflow: Workflow) -> bool:
    return any(role.slots > 1 for role in workflow.roles)


CARDS = (
    ProbeCard("sign_agreement", sign_agreement, applies=_several),
    ProbeCard("sibling_jaccard", sibling_jaccard, applies=_several),
    ProbeCard(
        "wrong_agreement",
        wrong_agreement,
        (
            Statistic(
                "wrong_agreement",
                "Agreement on wrong answers",
                "share of pairs",
                formula="share of pairs of wrong sibling answers that are the same",
                share=True,
                chart=False,
            ),
        ),
        applies=_several,
    ),
    ProbeCard(
        "wrong_jaccard",
        wrong_jaccard,
        (
            Statistic(
                "wrong_jaccard",
                "Overlap of wrong answers",
                "share of word 3-grams",
                formula="mean over episodes of the overlap of word 3-grams of wrong siblings",
                share=True,
                chart=False,
            ),
        ),
        applies=_several,
    ),
)
