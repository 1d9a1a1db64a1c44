"""Blocks that hold texts: single ones, two side by side, and all of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from roledrift.report.cells import UNKNOWN, Cell

Piece = tuple[Literal["=", "-", "+"], str]
"""Words on both sides, on the left only, or on the right only."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One text of a role.

    Attributes:
        key: Eight hex digits, the same for the same span in every report on the run.
        when: Why it is shown: ``first``, ``before onset``, ...
        cut: What was left out of ``text``; empty if nothing was.
        run: Link to its run (``#run1-name``) where the browser holds it; empty if it does not.
        near: Role whose first texts it resembles most; empty if that is not known.
        away: How much more it resembles ``near`` than its own role's first texts, in nats per word;
            None if not known, 0 or less if it is nearest to its own role.
    """

    step: int
    role: str
    text: str
    key: str = ""
    when: str = ""
    slot: int = 0
    turn: int = 0
    prompt: str = ""
    prompt_text: str = ""
    episode: str = ""
    tokens: int = 0
    finish: str = ""
    reward: Cell = UNKNOWN
    advantage: Cell = UNKNOWN
    flags: tuple[str, ...] = ()
    cut: str = ""
    run: str = ""
    near: str = ""
    away: float | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """Two texts, compared word by word.

    Attributes:
        key: Anchor, unique in the report.
        left: One text; its words are in ``pieces``, ``text`` is empty.
        right: Likewise, the other.
        pieces: Both texts in order; the left one is all pieces but ``+``, the right one all but
            ``-``.
        facts: Name, value on the left, value on the right.
        remark: One sentence on how far the two are comparable.
    """

    key: str
    left: Excerpt
    right: Excerpt
    pieces: tuple[Piece, ...]
    facts: tuple[tuple[str, str, str], ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Text pairs that show a finding."""

    kind: ClassVar[str] = "pairs"
    title: str
    pairs: tuple[Diff, ...]


@dataclass(frozen=True, slots=True)
class Pairing:
    """One way to put texts side by side.

    Attributes:
        number: 1 to 5, also the key that selects it.
        title: What stands left and right.
        absent: Why there is no pair; empty if there are some.
    """

    number: int
    title: str
    diffs: tuple[Diff, ...] = ()
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Diffs:
    """The diff viewer with its prepared pairs."""

    kind: ClassVar[str] = "diffs"
    key: str
    pairings: tuple[Pairing, ...]


@dataclass(frozen=True, slots=True)
class TextBrowser:
    """All texts of a run that fit the size budget, for searching.

    Attributes:
        roles: Names of the roles in registry order.
        packed: Whether a page holds the texts compressed, because they do not fit otherwise.
    """

    kind: ClassVar[str] = "browser"
    key: str
    note: str
    items: tuple[Excerpt, ...]
    roles: tuple[str, ...] = ()
    packed: bool = False
