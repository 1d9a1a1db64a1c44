"""The page in a real browser: what a person does in the morning, and what a hostile text tries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from roledrift.records import RunHeader, Sample
from roledrift.report.build import build_report
from roledrift.report.folder import write_folder
from roledrift.report.write import write_report
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING
from tests.report.conftest import Seen, record

EVIL = (
    "</script><script>window.hacked = 1</script>",
    "<img src=http://example.com/x onerror='window.hacked=1'>",
    "\x1b[2J\x1b]0;owned\x07 plain",
    "long " + "A" * 1_000_000,
    "\u202eright to left\u202c \u2066marks\u2069 \u200bzero",
    "]]><!-- --!> <svg onload=window.hacked=1>",
)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("browser")
    writer = RunWriter(base / "run", RunHeader("run</title><script>", VOTING), writer="w")
    for step in range(40):
        writer.write_step(record(step, VOTING, inflates=True, gradients=True))
        if step % 4 == 0:
            writer.write_samples(step, texts(step))
    writer.close()
    write_report(build_report(base / "run"), base / "report")
    return base / "report" / "index.html"


def texts(step: int) -> list[Sample]:
    found = []
    for at in range(3):
        name = f"p{at}"
        for slot in range(3):
            text = f"needle{step} we add {slot} and {at}" if at < 2 else EVIL[(step + slot) % 6]
            found.append(
                Sample(step, "generator", text, slot, prompt=name, episode=f"e{step}",
                       prompt_text="2 + 2?", tokens=7, finish="stop", reward=float(at))
            )  # fmt: skip
        stamp = r"\boxed{2}" if step < 20 else f"wait, we add {at} and think again and again"
        found.append(Sample(step, "aggregator", stamp, prompt=name, episode=f"e{step}", tokens=4))
    return found


LETTERS = """() => [...document.querySelectorAll(".plot svg text")]
  .filter((one) => one.getBoundingClientRect().width > 0)
  .map((one) => {
    const svg = one.ownerSVGElement;
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return parseFloat(one.getAttribute("font-size")) * scale;
  })"""
"""Heights of letters in figures, in pixels."""


@pytest.fixture
def opened(browser: Browser, page_file: Path) -> Iterator[tuple[Page, Seen]]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    seen = Seen(page)
    page.goto(page_file.as_uri())
    yield page, seen
    assert seen.trouble == []
    assert {url.split("#")[0].split(":")[0] for url in seen.asked} <= {"file", "data"}
    assert len([url for url in seen.asked if url.startswith("file")]) == 1
    page.close()


def test_search_filter_and_walk(opened: tuple[Page, Seen]) -> None:
    page, _ = opened
    where = page.locator(".browser .where")
    page.locator(".texts > summary").click()
    assert where.inner_text() == "1 of 120"
    page.locator(".browser").scroll_into_view_if_needed()
    page.fill("input[name=search]", "needle8 ")
    assert where.inner_text() == "1 of 6"
    assert page.locator(".reading mark").first.inner_text() == "needle8 "
    page.select_option("select[name=slot]", "2")
    assert where.inner_text() == "1 of 2"
    page.locator("input[name=search]").press("Escape")
    page.keyboard.press("j")
    assert where.inner_text() == "2 of 2"
    page.fill("input[name=search]", "")
    page.select_option("select[name=slot]", "any")
    page.select_option("select[name=flag]", "terse")
    page.select_option("select[name=role]", "aggregator")
    assert where.inner_text().endswith("of 15")
    page.fill("input[name=from]", "8")
    page.fill("input[name=to]", "12")
    assert where.inner_text().endswith("of 6")
    page.check("input[name=episode]")
    assert page.locator(".reading h5").all_inner_texts() == ["generator", "aggregator"]
    assert page.locator(".reading .excerpt").count() == 4


def test_pairings_by_key_and_a_link_to_each(opened: tuple[Page, Seen]) -> None:
    page, _ = opened
    page.locator(".texts > summary").click()
    page.evaluate("document.querySelector('.viewer').scrollIntoView()")
    for key in "1234":
        page.keyboard.press(key)
        assert page.locator(".pairing:visible").get_attribute("data-pairing") == key
        assert page.locator(".diff:visible").count() >= 1
    page.keyboard.press("1")
    shown = page.locator(".viewer .diff:visible")
    first = shown.get_attribute("id")
    assert shown.locator("ins").count() > 0
    page.keyboard.press("j")
    assert shown.get_attribute("id") != first
    page.keyboard.press("y")
    assert page.url.endswith(f"#{shown.get_attribute('id')}")
    second = shown.get_attribute("id")
    page.keyboard.press("2")
    page.evaluate("location.hash = ''")
    page.evaluate(f"location.hash = '#{second}'")
    page.wait_for_function(f"!document.getElementById('{second}').hidden")


def test_an_alert_leads_to_its_evidence_and_the_text(opened: tuple[Page, Seen]) -> None:
    page, _ = opened
    page.locator(".alerts > summary").click()
    page.locator(".alerts tbody a").first.click()
    card = page.locator(".card").first
    assert card.evaluate("one => one.open")
    assert card.locator("svg").first.is_visible()
    first = page.locator(".summary .pairs")
    wanted = first.locator(".sides pre").nth(1).inner_text()
    first.locator(".sides a", has_text="all texts").nth(1).click()
    page.wait_for_function("document.querySelector('.reading pre') !== null")
    assert page.locator(".reading .current pre").first.is_visible(), "its section was opened"
    assert page.locator(".reading .current pre").first.inner_text() == wanted


def test_a_link_to_a_text_opens_it(browser: Browser, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    link = page.locator("a", has_text="all texts").first.get_attribute("href") or ""
    page.goto("about:blank")
    page.goto(page_file.as_uri() + link)
    assert "step" in page.locator(".reading .head").first.inner_text()
    page.close()


def test_hostile_texts_stay_texts(opened: tuple[Page, Seen]) -> None:
    page, _ = opened
    page.locator(".texts > summary").click()
    page.fill("input[name=search]", "onerror")
    assert "<img src=http" in page.locator(".reading pre").first.inner_text()
    page.fill("input[name=search]", "AAAA")
    assert page.locator(".reading .cut").first.inner_text().startswith("cut: the first 3,200")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, object").count() == 0
    assert "run</title><script>" in page.title()
    assert not set(page.content()) & set("\x1b\u202e\u2066")


@pytest.mark.parametrize("width", [390, 820, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, page_file: Path, width: int, scheme: str
) -> None:
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for svg in page.locator(".plot:visible svg").all():
        box = svg.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
    letters = page.evaluate(LETTERS)
    assert min(letters) >= 7
    page.close()


def test_the_figure_of_the_cause_is_shown_once_and_fits(browser: Browser, page_file: Path) -> None:
    for width in (390, 1440):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(page_file.as_uri())
        shown = page.locator(".summary .plot:visible")
        assert shown.count() == 2
        for plot in shown.all():
            assert ("narrow" in (plot.get_attribute("class") or "")) == (width == 390)
        page.close()


def screens(page: Page) -> float:
    height: float = page.evaluate("document.documentElement.scrollHeight / window.innerHeight")
    return height


def test_the_page_is_short_and_its_first_screen_is_enough(
    browser: Browser, page_file: Path
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(page_file.as_uri())
    assert screens(page) <= 3
    for part in ("h1", ".advice", ".summary figure", ".summary .pairs pre >> nth=0"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, part
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 6
    for summary in page.locator("details > summary:visible").all():
        summary.click()
    assert screens(page) > 3, "the rest is there for those who open it"
    page.set_viewport_size({"width": 1920, "height": 1080})
    used = page.locator(".summary").bounding_box()
    assert used is not None
    assert used["width"] > 0.9 * 1920
    page.close()
    phone = browser.new_page(viewport={"width": 390, "height": 844})
    phone.goto(page_file.as_uri())
    assert screens(phone) <= 8
    phone.close()


def test_the_first_tab_leads_to_the_verdict(opened: tuple[Page, Seen]) -> None:
    page, _ = opened
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    assert page.evaluate("document.activeElement.getBoundingClientRect().width") > 50
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash === '#main'")


def test_paper_holds_no_controls(opened: tuple[Page, Seen]) -> None:
    page, _ = opened
    page.locator(".texts > summary").click()
    page.emulate_media(media="print")
    assert page.locator(".controls >> visible=true").count() == 0
    assert page.locator(".summary svg >> visible=true").count() == 2


def test_the_index_can_be_sorted_and_leads_to_the_runs(
    browser: Browser, write_run: object, tmp_path: Path
) -> None:
    for name, steps in (("b", 12), ("a", 30), ("c", 9), ("d", 20)):
        write_run(tmp_path / "runs" / name, steps=steps)  # type: ignore[operator]
    write_folder(tmp_path / "runs", tmp_path / "report")
    page = browser.new_page()
    seen = Seen(page)
    page.goto((tmp_path / "report" / "index.html").as_uri())
    names = page.locator("table.sortable").first.locator("tbody tr th")
    page.get_by_role("button", name="steps").first.click()
    assert names.all_inner_texts() == ["c", "b", "d", "a"]
    page.get_by_role("button", name="steps").first.click()
    assert names.all_inner_texts() == ["a", "d", "b", "c"]
    names.first.locator("a").click()
    assert page.locator(".top strong").inner_text() == "a"
    assert seen.trouble == []
    page.close()
