"""Pages of detectors say what their cards say."""

from pathlib import Path

import pytest

from roledrift.detect.cards import Card
from roledrift.detect.catalogue import shipped

FOLDER = Path(__file__).parents[2] / "docs" / "detectors"
HEADINGS = ("How it judges", "What it needs", "What can be set", "What it cannot tell")
REBUILT = (
    "accuracy_cliff", "length_inflation", "policy_movement", "reward_hacking", "rollout_engine",
    "settings_changed", "training_data",
)  # fmt: skip
CARDS = [card for card in shipped() if card.name in REBUILT]


@pytest.mark.parametrize("card", shipped(), ids=lambda card: card.name)
def test_every_detector_has_a_page(card: Card) -> None:
    assert (FOLDER / f"{card.name}.md").is_file()


def test_every_page_is_that_of_a_detector() -> None:
    known = {card.name for card in shipped()}
    assert {page.stem for page in FOLDER.glob("*.md")} <= known


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_the_page_has_the_findings_of_the_card(card: Card) -> None:
    page = (FOLDER / f"{card.name}.md").read_text()
    assert page.startswith(f"# {card.name}\n")
    rows = [f"| `{one.name}` | {one.severity} | {one.about} |" for one in card.findings]
    table = "\n".join(["| finding | usual severity | meaning |", "|---|---|---|", *rows])
    assert table in page, f"the table should be\n{table}"
    assert all(f"\n## {heading}\n" in page for heading in HEADINGS)
    assert len(page.splitlines()) <= 65


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_the_page_has_every_setting(card: Card) -> None:
    page = (FOLDER / f"{card.name}.md").read_text()
    names = [] if card.settings is None else list(card.settings.__dataclass_fields__)
    assert (f"[detectors.{card.name}]" in page) == bool(names)
    assert all(f"\n{name} = " in page for name in names)
