from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from roledrift.report.build import build_report
from roledrift.report.html import alt_text, render_html
from roledrift.report.model import Line, Mark, Panel, Report


class Page(HTMLParser):
    """Elements, attributes and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.raw.append((self.tags[-1][0] + self.tags[-1][1].get("type", ""), data))


def key_of(href: str) -> str:
    return href.rsplit("-text-", 1)[-1]


def sha(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_hostile_text_stays_text(hostile_report: Report) -> None:
    html = render_html(hostile_report)
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"img", "iframe", "object", "embed", "base", "form"}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; red evil" in html
    assert not set(html) & set("\x1b\u202e\u202c\x9b\x00")


def test_data_islands_hold_no_angle_bracket_and_come_back(hostile_report: Report) -> None:
    page = Page(render_html(hostile_report))
    islands = [text for kind, text in page.raw if kind == "scriptapplication/json"]
    assert len(islands) == 1
    assert "<" not in islands[0]
    texts = json.loads(islands[0])
    assert texts["rows"][0][-1].startswith("</script><img src=x onerror=alert(1)> red evil")


def test_the_policy_allows_exactly_what_is_inline(failing_report: Report) -> None:
    page = Page(render_html(failing_report))
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    raw = dict(page.raw)
    assert f"style-src 'sha256-{sha(raw['style'])}'" in policy
    assert f"script-src 'sha256-{sha(raw['script'])}'" in policy
    assert policy.startswith("default-src 'none'")
    assert not [attrs for _, attrs in page.tags if "style" in attrs]


def test_the_page_needs_nothing_from_elsewhere(failing_report: Report) -> None:
    html = render_html(failing_report)
    page = Page(html)
    for _, attrs in page.tags:
        for name in ("src", "href", "xlink:href"):
            assert attrs.get(name, "#").startswith(("#", "data:")), attrs
    assert not re.search(r"https?://(?!www\.w3\.org)", html)


def test_every_link_leads_somewhere_and_ids_are_unique(failing_report: Report) -> None:
    page = Page(render_html(failing_report))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    embedded_json = next(text for kind, text in page.raw if kind == "scriptapplication/json")
    keys = {row[0] for row in json.loads(embedded_json)["rows"]}
    assert len(ids) == len(set(ids))
    for tag, attrs in page.tags:
        if tag in ("a", "use") and attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in ids or key_of(attrs["href"]) in keys, attrs


def test_the_same_runs_give_the_same_bytes(failing_path: Path) -> None:
    assert render_html(build_report(failing_path)) == render_html(build_report(failing_path))


def test_no_verdict_is_grey(failing_report: Report) -> None:
    html = render_html(failing_report)
    assert '<span class="chip no-verdict">no verdict</span>' in html
    assert '<span class="chip ok">no verdict' not in html
    assert len(html) < 3_000_000


def test_tables_have_heads_for_columns_and_rows(failing_report: Report) -> None:
    page = Page(render_html(failing_report))
    heads = [attrs.get("scope") for tag, attrs in page.tags if tag == "th"]
    assert set(heads) == {"col", "row"}
    rows = sum(tag == "tr" for tag, _ in page.tags)
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert heads.count("row") == rows - tables


def test_a_figure_says_its_values_to_those_who_cannot_see_it(failing_report: Report) -> None:
    page = Page(render_html(failing_report))
    said = [attrs["aria-label"] for _, attrs in page.tags if attrs.get("role") == "img"]
    length = next(one for one in said if one.startswith("Response length"))
    assert re.search(r"generator [0-9.]+ at step 0, [0-9.]+ at step 39", length)
    line = Line("a", (0, 1, 2), (math.nan, 1.0, math.inf))
    assert alt_text(Panel("p", (line,), marks=(Mark(1, "onset 1"),))) == (
        "a 1 at step 1, 1 at step 1; onset 1"
    )


def test_notices_stand_below_the_headline(failing_report: Report) -> None:
    run = replace(failing_report.runs[0], notices=("It was not closed <here>.",))
    html = render_html(replace(failing_report, runs=(run,)))
    assert html.index("<h1>") < html.index("It was not closed &lt;here&gt;.") < html.index("<svg")


def test_everything_below_the_first_screen_is_closed(failing_report: Report) -> None:
    page = Page(render_html(failing_report))
    sections = [attrs for tag, attrs in page.tags if tag == "details" and "id" in attrs]
    assert [one["id"].split("-", 1)[1].split("-")[-1] for one in sections if "section" in
            one["class"]] == [one.key for one in failing_report.runs[0].sections[1:]]  # fmt: skip
    assert not [one for one in sections if "open" in one]


def test_the_headline_is_the_sentence_of_the_incident_in_full(failing_report: Report) -> None:
    run = failing_report.runs[0]
    parts = replace(run, headline="A <b>. B.", lead="A <b>.")
    html = render_html(replace(failing_report, runs=(parts,)))
    assert '<h1>A &lt;b&gt;.<span class="rest"> B.</span></h1>' in html
    # What was redacted on one side only is shown as one sentence.
    odd = replace(run, headline="A. B.", lead="C.")
    assert "<h1>A. B.</h1>" in render_html(replace(failing_report, runs=(odd,)))
