"""Words of a text: how it opens, what kinds it uses, and how much of it other texts hold.

Words are what white space separates, lower-cased, with their punctuation: it needs no tokenizer and
is the same for every model. The paper (arXiv 2605.24202) does not say how it splits texts.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, OfRows, PerSpan, SpanProbe, given, span_probe
from roledrift.spans import Floats, Ints, SpanTable
from roledrift.sums import Distinct, Key, Profile, Sums
from roledrift.workflow import Workflow

_SOURCES = frozenset({"solve"})
_READERS = frozenset({"select", "judge", "synthesize"})
BUCKETS = 64
"""Buckets that words are hashed into."""

_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def words(text: str) -> list[str]:
    """Lower-cased words."""
    return text.lower().split()


def trigrams(text: str) -> frozenset[tuple[str, ...]]:
    """The different runs of three words; of a shorter text, all its words as one run."""
    return frozenset(_runs(words(text)))


def _runs(sequence: list[str]) -> Iterable[tuple[str, ...]]:
    if len(sequence) < 3:
        return (tuple(sequence),) if sequence else ()
    return zip(sequence, sequence[1:], sequence[2:], strict=False)


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    """Share of the common in all that either has; 0 if both are empty."""
    common = len(a & b)
    either = len(a) + len(b) - common
    return common / either if either else 0.0


def overlap(pairs: Iterable[tuple[str, str]]) -> float:
    """Mean Jaccard index of the word 3-grams of pairs of texts; NaN if none of them has words."""
    pairs = tuple(pairs)
    grams = {text: trigrams(text) for pair in pairs for text in pair}
    shares = [jaccard(grams[a], grams[b]) for a, b in pairs if grams[a] or grams[b]]
    return sum(shares) / len(shares) if shares else math.nan


def opener(text: str) -> str:
    """The first three words; of a shorter text, all of them."""
    return " ".join(text.split(None, 3)[:3]).lower()


@span_probe("text_N")
def openers(spans: SpanTable) -> Columns:
    """``openers``: number of different 3-word openers, over ``n`` texts.

    Paper (table 6): number of unique 3-word openers over the 100 episodes. Here: over the texts of
    the step, whose number is ``n``; empty texts have no opener. A role that has collapsed opens all
    its answers alike. The number grows with ``n``: compare steps with equal ``n``.
    """
    kinds = [
        _number(opener(text)) if text and not text.isspace() else None
        for text in given(spans.text_N)
    ]

    def different(rows: Ints) -> Distinct:
        known = [kind for row in rows.tolist() if (kind := kinds[row]) is not None]
        return Distinct(len(known), frozenset(known))

    return {"openers": OfRows(different)}


def copied(workflow: Workflow) -> SpanProbe:
    """``copied``: share of an output's word 3-grams that its candidates hold, mean over spans.

    Not in the paper, which tells of aggregators and evaluators that solve the problem again or
    repeat a candidate. Here: for roles that select, judge or synthesize, the candidates are the
    outputs of the solving roles in the same episode, of no later turn where turns are known. Spans
    without words, or without candidates with text, are left out.
    """

    def read(spans: SpanTable) -> Columns:
        return _copied(spans, workflow)

    return SpanProbe("copied", frozenset({"episode_N", "text_N"}), workflow, read)


def copies(workflow: Workflow) -> bool:
    """Whether the workflow has roles that read what others have solved."""
    duties = {role.duty for role in workflow.roles}
    return bool(duties & _READERS and duties & _SOURCES)


def _copied(spans: SpanTable, workflow: Workflow) -> Columns:
    text_N = given(spans.text_N)
    values_N: Floats = np.zeros(len(spans))
    valid_N = np.zeros(len(spans), dtype=np.bool_)
    for readers, sources in _episodes(spans, workflow):
        held = {row: words(text_N[row] or "") for row in sources if readers}
        for row in readers:
            before = [
                other_words
                for other, other_words in held.items()
                if spans.turn_N is None or spans.turn_N[other] <= spans.turn_N[row]
            ]
            if before:
                grams = trigrams(text_N[row] or "")
                # Of the candidates only what is common is kept: they may be thousands of words.
                common = frozenset().union(
                    *(grams.intersection(_runs(other_words)) for other_words in before)
                )
                values_N[row] = len(common) / len(grams)
                valid_N[row] = True
    return {"copied": PerSpan(values_N, valid_N)}


def _episodes(spans: SpanTable, workflow: Workflow) -> Iterable[tuple[list[int], list[int]]]:
    """Rows with words of the roles that read and of those that solve, episode by episode."""
    if spans.episode_N is None:
        return ()
    duties = {role.name: role.duty for role in workflow.roles}
    part = [
        0 if duties.get(name) in _READERS else 1 if duties.get(name) in _SOURCES else None
        for name in spans.roles
    ]
    prompts = [0] * len(spans) if spans.prompt_N is None else spans.prompt_N.tolist()
    episodes: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for row, role in enumerate(spans.role_N.tolist()):
        text = None if spans.text_N is None else spans.text_N[row]
        which = part[role] if 0 <= role < len(part) else None
        if which is not None and text is not None and text.strip():
            key = (prompts[row], int(spans.episode_N[row]))
            episodes.setdefault(key, ([], []))[which].append(row)
    return episodes.values()


@dataclass(frozen=True, slots=True)
class Words:
    """Probe ``words``: how many words a role's texts have, and of which kinds they are.

    The kinds are what tells one role's way of writing from another's: each text's words are hashed
    into :data:`BUCKETS` buckets, and the shares of the buckets are averaged over texts. Every text
    weighs the same, so the shares do not follow lengths, and if a share q of a role's texts were
    written like another role's, its profile would have gone the share q of the way. A word is here
    a run of letters in lower case, a run of digits whatever its digits (a problem's numbers say
    nothing about the writer), or one sign. Texts without any are left out.
    """

    workflow: Workflow
    name: str = "words"
    needs: frozenset[str] = frozenset({"text_N"})

    def measure(self, spans: SpanTable) -> Sums:
        """Profile of each role; slots of a role write alike, and all roles together say nothing."""
        sums: Sums = {}
        for role, rows in spans.by_role():
            texts = [spans.text_N[row] for row in rows.tolist()] if spans.text_N else []
            profile = _profile(texts)
            if profile.n:
                sums[Key(role, "words")] = profile
        return sums


def _profile(texts: Iterable[str | None]) -> Profile:
    shares_K = np.zeros(BUCKETS)
    n, total = 0, 0
    for text in texts:
        kinds = b"".join(map(_RUNS.__getitem__, text.lower().split())) if text else b""
        if kinds:
            n, total = n + 1, total + len(kinds)
            counts_K = np.bincount(np.frombuffer(kinds, dtype=np.uint8), minlength=BUCKETS)
            shares_K += counts_K / len(kinds)
    return Profile(n, float(total), tuple(shares_K.tolist()))


class _BucketCache(dict[str, bytes]):
    """Buckets of the words in a run without white space, a byte each; no word goes beyond one.

    Texts repeat their runs: looking them up is several times as fast as searching whole texts.
    """

    def __missing__(self, run: str) -> bytes:
        kinds = bytes(map(bucket, _PIECE.findall(run)))
        if len(self) >= _MOST_RUNS:
            self.clear()
        if len(run) <= _LONGEST_RUN:
            self[run] = kinds
        return kinds


_MOST_RUNS, _LONGEST_RUN = 1 << 16, 64
_RUNS = _BucketCache()


@lru_cache(maxsize=1 << 16)
def bucket(piece: str) -> int:
    """Bucket of a word; the same in every process."""
    return _number("0" if piece.isdigit() else piece) % BUCKETS


def _number(text: str) -> int:
    # Python's own hash() differs from process to process.
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


CARDS = (
    ProbeCard(
        "openers",
        openers,
        (
            Statistic(
                "openers",
                "Different openings",
                "number",
                formula="number of different 3-word openers among the texts of a step",
                chart=False,
            ),
        ),
    ),
    ProbeCard(
        "words",
        Words,
        (
            Statistic(
                "words",
                "Words",
                "words, mean",
                formula="words of a text, and which share of them is of which kind",
                words="distance of its words from the baseline",
                chart=False,
            ),
        ),
    ),
    ProbeCard(
        "copied",
        copied,
        (
            Statistic(
                "copied",
                "Copied from the input",
                "share of word 3-grams",
                formula="share of an output's word 3-grams that its candidates hold",
                words="share copied from the input",
                share=True,
                chart=False,
            ),
        ),
        applies=copies,
    ),
)
