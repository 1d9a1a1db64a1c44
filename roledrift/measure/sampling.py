"""Which texts are kept."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roledrift.config import SamplingConfig


@dataclass(frozen=True, slots=True)
class Pick:
    """A row whose text is kept."""

    row: int
    flags: tuple[str, ...]


class TextSampler:
    """Picks the rows of a step whose text is kept.

    Canaries are the first distinct prompts seen; whenever one comes back, the first episode with it
    is kept whole, so the same problem can be read over the run. Besides them, each role keeps
    ``per_role`` random spans and its extremes: the longest, those of highest and lowest advantage
    (if they differ), and one of the truncated. Every pick says why it was made, because extremes
    are no picture of the rest. The random part is a function of the seed, the step and the rows;
    the global random state is neither read nor moved.

    Args:
        config: How many, and how often; 0 switches a part off.
        canaries: Prompts already followed, for a resumed run.
    """

    def __init__(self, config: SamplingConfig, canaries: Sequence[str] = ()) -> None:
        self._config = config
        self._canaries = list(dict.fromkeys(canaries))[: config.canaries]

    @property
    def canaries(self) -> tuple[str, ...]:
        """Prompts that are followed."""
        return tuple(self._canaries)

    def pick(
        self,
        step: int,
        roles: Sequence[str],
        *,
        tokens: Sequence[int],
        prompts: Sequence[str] | None = None,
        episodes: Sequence[str] | None = None,
        advantages: Sequence[float] | None = None,
        truncated: Sequence[bool] | None = None,
    ) -> list[Pick]:
        """Rows to keep, in row order.

        Args:
            step: Step of the rows.
            roles: Role of each row.
            tokens: Length of each row.
            prompts: Stable name of each row's problem; empty for unknown. None follows no canary.
            episodes: Name of each row's episode. None keeps one row per role of each canary.
            advantages: Advantage of each row; what is not finite is no extreme.
            truncated: True for rows that the length limit cut.

        Raises:
            ValueError: If the columns differ in length.
        """
        optional = (prompts, episodes, advantages, truncated)
        columns = [tokens, *(column for column in optional if column is not None)]
        if any(len(column) != len(roles) for column in columns):
            raise ValueError(
                f"{len(roles)} roles, but columns of {[len(column) for column in columns]} rows: "
                "hand over one value per span"
            )
        if prompts is not None:
            self._meet(prompts)
        if self._config.every == 0 or step % self._config.every:
            return []
        flags: dict[int, list[str]] = {}
        for row in self._followed(roles, prompts, episodes):
            flags.setdefault(row, []).append("canary")
        if self._config.per_role:
            advantages = advantages or [math.nan] * len(roles)
            truncated = truncated or [False] * len(roles)
            for role in sorted(set(roles)):
                rows = [row for row, owner in enumerate(roles) if owner == role]
                # One generator per role: its picks do not depend on which others are present.
                draw = random.Random(f"{self._config.seed}:{step}:{role}")
                for row in self._drawn(draw, [row for row in rows if row not in flags]):
                    flags.setdefault(row, []).append("random")
                for row, flag in _extremes(rows, tokens, advantages):
                    flags.setdefault(row, []).append(flag)
                cut = [row for row in rows if truncated[row]]
                if cut:
                    flags.setdefault(draw.choice(cut), []).append("truncated")
        return [Pick(row, tuple(flags[row])) for row in sorted(flags)]

    def _meet(self, prompts: Sequence[str]) -> None:
        for prompt in prompts:
            if len(self._canaries) >= self._config.canaries:
                return
            if prompt and prompt not in self._canaries:
                self._canaries.append(prompt)

    def _followed(
        self, roles: Sequence[str], prompts: Sequence[str] | None, episodes: Sequence[str] | None
    ) -> list[int]:
        kept: list[int] = []
        for canary in self._canaries:
            rows = [row for row, prompt in enumerate(prompts or ()) if prompt == canary]
            if episodes is not None:
                kept += [row for row in rows if episodes[row] == episodes[rows[0]]]
            else:
                first: dict[str, int] = {}
                for row in rows:
                    first.setdefault(roles[row], row)
                kept += first.values()
        return kept

    def _drawn(self, draw: random.Random, rows: Sequence[int]) -> list[int]:
        return draw.sample(rows, min(self._config.per_role, len(rows)))


def _extremes(
    rows: Sequence[int], tokens: Sequence[int], advantages: Sequence[float]
) -> Iterator[tuple[int, str]]:
    """Rows at the ends; of equal ones the first."""
    yield max(rows, key=lambda row: (tokens[row], -row)), "longest"
    usable = [row for row in rows if math.isfinite(advantages[row])]
    if not usable:
        return
    highest = max(usable, key=lambda row: (advantages[row], -row))
    lowest = min(usable, key=lambda row: (advantages[row], row))
    if advantages[lowest] < advantages[highest]:
        yield highest, "highest advantage"
        yield lowest, "lowest advantage"
