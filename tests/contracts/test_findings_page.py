"""``python -m tests.contracts.test_findings_page`` writes the page of findings anew."""

from pathlib import Path

from roledrift.detect.cards import Card
from roledrift.detect.catalogue import shipped

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
DETECTORS = PAGE.parent / "detectors"
HEAD = """# Findings

Look up here what a finding means. The name of a finding is what alerts show, and what `stop_on`,
`findings` and `roledrift check --finding` take. Detectors are listed with causes first. This page
is made from the detectors' cards (`python -m tests.contracts.test_findings_page`).
"""
TAIL = """
How bad each severity is, and what happens then: [alerts.md](alerts.md#severity).
Settings of detectors: [configuration.md](configuration.md#detectors).
A detector of your own: [custom.md](integrations/custom.md#parts-of-your-own).
How often findings are right: [detection_benchmark.md](detection_benchmark.md).
"""


def page() -> str:
    return HEAD + "".join(_section(card) for card in shipped()) + TAIL


def _section(card: Card) -> str:
    rows = "".join(
        f"| `{one.name}` | {one.severity} | {one.layer} | {one.about} |\n" for one in card.findings
    )
    reads = ", ".join(f"`{name}`" for name in card.reads)
    own = f" [More](detectors/{card.name}.md)." if (DETECTORS / f"{card.name}.md").exists() else ""
    return (
        f"\n## {card.name}\n\n{card.about}{own}\n\n"
        f"Needs {', '.join(card.needs)}. Reads {reads}.\n\n"
        f"| finding | usual severity | kind | meaning |\n|---|---|---|---|\n{rows}{_sources(card)}"
    )


def _sources(card: Card) -> str:
    found = dict.fromkeys(source for one in card.findings for source in one.sources)
    return f"\nSources: {'; '.join(found)}.\n" if found else ""


def test_the_page_is_that_of_the_cards() -> None:
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
