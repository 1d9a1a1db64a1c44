"""Group texts by episode: what the roles of one workflow wrote together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from roledrift.records import Sample
from roledrift.report.texts.text_blocks import Excerpt

Text = TypeVar("Text", Sample, Excerpt)

Episode = tuple[int, str, str]
"""Step, prompt and name of an episode."""


def order(text: Sample | Excerpt) -> tuple[int, str, int, int, str]:
    """Sort key that makes the choice of texts independent of the order of files."""
    return (text.step, text.prompt, text.slot, text.turn, text.episode)


def episodes(texts: Iterable[Text]) -> dict[Episode, list[Text]]:
    """Group texts by episode, in a stable order; texts without prompt and episode are left out.

    Hosts differ in what they name. Where every role has a prompt of its own (a selecting role sees
    the candidates in it), the episode is what roles share; where episodes are only numbered within
    a prompt, two texts of one slot would meet, and the prompt tells them apart.
    """
    named: dict[tuple[int, str], list[Text]] = defaultdict(list)
    grouped: dict[Episode, list[Text]] = defaultdict(list)
    for text in texts:
        if text.episode:
            named[text.step, text.episode].append(text)
        elif text.prompt:
            grouped[text.step, text.prompt, ""].append(text)
    for (step, episode), members in named.items():
        places = {(text.role, text.slot, text.turn) for text in members}
        if len(places) == len(members):
            grouped[step, min(text.prompt for text in members), episode] = members
            continue
        for text in members:
            grouped[step, text.prompt, episode].append(text)
    return {name: sorted(grouped[name], key=order) for name in sorted(grouped)}
