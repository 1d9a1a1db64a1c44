"""What is cited more than once is written once."""

from __future__ import annotations

from roledrift.detect import sources
from roledrift.detect.catalogue import shipped


def test_every_constant_is_cited() -> None:
    cited = " ".join(source for card in shipped() for source in card.sources)
    constants = {name: text for name, text in vars(sources).items() if name.isupper()}
    assert [name for name, text in constants.items() if text not in cited] == []
