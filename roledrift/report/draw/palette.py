"""The one palette of the library: a role keeps its colour in every chart.

Colours of roles are those of Okabe and Ito, which people with colour-vision deficiencies can tell
apart; yellow and black are left out because they vanish on a white or a black page. Colour is never
the only sign: lines also differ in their dashes and carry labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class Ink(NamedTuple):
    """A colour on a light and on a dark page."""

    light: str
    dark: str


TONES: tuple[Ink, ...] = (
    Ink("#0072b2", "#4aa8e0"),
    Ink("#d55e00", "#f08a45"),
    Ink("#009e73", "#2fc79b"),
    Ink("#cc79a7", "#e29bc3"),
    Ink("#e69f00", "#f0b73a"),
    Ink("#56b4e9", "#8ccdf3"),
)
"""Blue, vermilion, bluish green, reddish purple, orange, sky blue."""

WORDS: tuple[Ink, ...] = (
    TONES[0],
    Ink("#b54f00", "#f08a45"),
    Ink("#007a59", "#2fc79b"),
    Ink("#a34c7c", "#e29bc3"),
    Ink("#8a6000", "#f0b73a"),
    Ink("#1b6f9f", "#8ccdf3"),
)
"""The same for words, dark enough to be read on a light page: at least 4.5 to 1."""

Dash = Literal["-"] | tuple[int, tuple[float, ...]]

DASHES: tuple[Dash, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.4, 1.4)),
    (0, (6, 1.6, 1.4, 1.6)),
    (0, (3, 1.2)),
    (0, (8, 2, 1, 1, 1, 2)),
)
"""Aligned with ``TONES``."""

INKS: Mapping[str, Ink] = {
    "ink": Ink("#1c1e21", "#e6e8ea"),
    "soft": Ink("#5f666e", "#a2a9b1"),
    "rule": Ink("#e1e4e8", "#30363c"),
    "band": Ink("#eef1f4", "#20262c"),
    "page": Ink("#fefefe", "#14181c"),
    "shade": Ink("#c3c9d0", "#454d55"),
    "failing": Ink("#b3261e", "#ff8a80"),
    "input-problem": Ink("#7b2a90", "#dfa6f0"),
    "suspicious": Ink("#8a5a00", "#f0b429"),
    "watch": Ink("#35618c", "#93bfe6"),
    "good": Ink("#1d7a46", "#5fcf92"),
    "cold": Ink("#2166ac", "#5ea0dc"),
    "warm": Ink("#b2361f", "#f2846b"),
}
"""Neutral and state colours. Every light value is unique: in a drawing it names its ink."""


def tone(role: str, roles: Sequence[str]) -> int:
    """Index of a role's colour: its place in the registry, so that it never changes."""
    return roles.index(role) % len(TONES) if role in roles else -1


def ink_of(status: str) -> Ink:
    """Colour of a state: green if all is well, grey if it has no colour of its own."""
    if status in ("ok", "clean"):
        return INKS["good"]
    return INKS.get(status.replace(" ", "-"), INKS["soft"])


def variables(dark: bool) -> str:
    """The inks as CSS custom properties."""
    named = [(name, ink) for name, ink in INKS.items()]
    named += [(f"tone-{index}", ink) for index, ink in enumerate(TONES)]
    named += [(f"word-{index}", ink) for index, ink in enumerate(WORDS)]
    return "".join(f"--{name}:{ink.dark if dark else ink.light};" for name, ink in named)


def by_light() -> dict[str, str]:
    """Map each light colour to the CSS expression that stands for it."""
    table = {ink.light: f"var(--{name})" for name, ink in INKS.items()}
    table.update({ink.light: f"var(--word-{index})" for index, ink in enumerate(WORDS)})
    table.update({ink.light: f"var(--tone-{index})" for index, ink in enumerate(TONES)})
    return table
