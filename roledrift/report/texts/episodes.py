"""Texts that belong together: what the roles of one workflow wrote in one go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from roledrift.records import Sample
from roledrift.report.texts.passages import Excerpt

Text = TypeVar("Text", Sample, Excerpt)

Episode = tuple[int, str, str]
"""Step, prompt and name of an episode."""


def order(one: Sample | Excerpt) -> tuple[int, str, int, int, str]:
    """Sorting key that makes the choice of texts independent of file order."""
    return (one.step, one.prompt, one.slot, one.turn, one.episode)


def episodes(texts: Iterable[Text]) -> dict[Episode, list[Text]]:
    """Texts by their episode, in a stable order; without those that name no prompt and no episode.

    Hosts differ in what they name. Where every role has a prompt of its own (a selecting role sees
    the candidates in it), the episode is what roles share; where episodes are only numbered within
    a prompt, two texts of one slot would meet, and the prompt tells them apart.
    """
    named: dict[tuple[int, str], list[Text]] = defaultdict(list)
    found: dict[Episode, list[Text]] = defaultdict(list)
    for one in texts:
        if one.episode:
            named[one.step, one.episode].append(one)
        elif one.prompt:
            found[one.step, one.prompt, ""].append(one)
    for (step, episode), members in named.items():
        places = {(one.role, one.slot, one.turn) for one in members}
        if len(places) == len(members):
            found[step, min(one.prompt for one in members), episode] = members
            continue
        for one in members:
            found[step, one.prompt, episode].append(one)
    return {name: sorted(found[name], key=order) for name in sorted(found)}
