"""``python -m tests.contracts.test_findings_page`` writes the page of findings anew."""

import re
from pathlib import Path

from roledrift.detect.cards import Card, Finding
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


_ARXIV = re.compile(r"arXiv (\d{4}\.\d{4,5})")
_ISSUE = re.compile(r"\b([\w-]+/[\w-]+)#(\d+)")
_OWN = re.compile(r"docs/([\w/]+\.md)")
_WEB = re.compile(r"\b([a-z]+(?:\.[a-z]+)+/[\w/.-]*\w)")


def _sources(card: Card) -> str:
    lines = [
        f"* `{one.name}`: {'; '.join(map(_linked, one.sources))}.\n"
        for one in card.findings
        if one.sources
    ]
    return "\nThreshold and advice rest on\n\n" + "".join(lines) if lines else ""


def _linked(source: str) -> str:
    linked = _WEB.sub(r"[\1](https://\1)", source)
    linked = _ARXIV.sub(r"[arXiv \1](https://arxiv.org/abs/\1)", linked)
    linked = _ISSUE.sub(r"[\1#\2](https://github.com/\1/issues/\2)", linked)
    return _OWN.sub(r"[\1](\1)", linked)


def _can_be_looked_up(source: str) -> bool:
    own = _OWN.search(source)
    if own is not None:
        return (PAGE.parent / own[1]).is_file()
    return any(kind.search(source) for kind in (_ARXIV, _ISSUE, _WEB))


def test_the_page_is_that_of_the_cards() -> None:
    assert PAGE.read_text() == page()


def test_every_finding_says_where_its_threshold_and_advice_come_from() -> None:
    findings = [one for card in shipped() for one in card.findings]
    assert [one.name for one in findings if not any(map(_can_be_looked_up, one.sources))] == []
    missing = [
        source for source in _all(findings) if _OWN.search(source) and not _can_be_looked_up(source)
    ]
    assert missing == []


def test_one_paper_is_cited_one_way() -> None:
    by_number: dict[str, set[str]] = {}
    for source in _all([one for card in shipped() for one in card.findings]):
        for found in _ARXIV.finditer(source):
            by_number.setdefault(found[1], set()).add(source[: found.end()])
    assert {number: ways for number, ways in by_number.items() if len(ways) > 1} == {}


def _all(findings: list[Finding]) -> set[str]:
    return {source for one in findings for source in one.sources}


if __name__ == "__main__":
    PAGE.write_text(page())
