"""What a probe says about itself: one frozen card, beside the code that measures.

The chart of a statistic, its words in every sentence, its formula in the report's method section
and what `roledrift doctor` advises where it is missing all come from cards. A probe of another
distribution exports the same card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roledrift.protocols import Probe
from roledrift.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic of a probe; what a record holds of it is its mean.

    Attributes:
        name: Name in the records.
        title: What it is, as the heading of a chart.
        unit: Unit, or what a share is a share of.
        formula: What the mean is over and of, in words or symbols.
        healthy: What a healthy curve looks like.
        supply: What makes a host record it, for the note where it is absent.
        words: Title in the middle of a sentence, if not the title with a small first letter.
        log: Whether its scale is logarithmic.
        share: Whether its values lie in [0, 1].
        chart: Whether it has a chart of its own; else it is in the table of everything else.
        order: Place among the charts.
    """

    name: str
    title: str
    unit: str
    formula: str
    healthy: str = ""
    supply: str = ""
    words: str = ""
    log: bool = False
    share: bool = False
    chart: bool = True
    order: int = 50

    @property
    def in_words(self) -> str:
        """The title in the middle of a sentence."""
        return self.words or self.title[0].lower() + self.title[1:]

    def heading(self, lengths: str = "tokens") -> str:
        """Title and unit; of lengths in a run that counts them in something else than tokens."""
        unit = self.unit.replace("tokens", lengths) if self.name == "length" else self.unit
        return f"{self.title}, {unit}"


def _everywhere(_: Workflow) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ProbeCard:
    """A probe.

    Attributes:
        name: Unique among probes; the probe that is made has the same name.
        make: Makes the probe for the roles of one run. Columns without which it measures nothing
            are its ``needs``.
        statistics: What it measures, as people are told.
        applies: Whether it says anything about a workflow; if not, it is left out.
    """

    name: str
    make: Callable[[Workflow], Probe]
    statistics: tuple[Statistic, ...] = ()
    applies: Callable[[Workflow], bool] = _everywhere
