"""The page in a real browser: what a person does with it, and what hostile names and texts try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from roledrift.view.export import export
from roledrift.view.folder import Folder
from roledrift.view.judging import ImmediateJudge
from tests.report.conftest import Seen
from tests.view.conftest import Writing, served

HOVER = """(share) => {
  const over = document.querySelectorAll('.chart .u-over')[0];
  const box = over.getBoundingClientRect();
  const at = { clientX: box.left + box.width * share, clientY: box.top + box.height / 2 };
  over.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, ...at }));
}"""


def step_at(page: Page, share: float) -> int:
    page.evaluate(HOVER, share)
    return int(page.locator(".tip:visible b").first.inner_text().split()[1])


@pytest.fixture(scope="module")
def url(runs: Path) -> Iterator[str]:
    with served(Folder([str(runs)], ImmediateJudge())) as address:
        yield address


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    seen = Seen(page)
    page.goto(url)
    page.wait_for_selector(".chart canvas")
    yield page
    assert seen.trouble == []
    assert all(one.startswith(url) for one in seen.asked), "no request leaves the machine"
    assert page.evaluate("window.hacked") is None
    page.close()


def test_the_worst_run_is_open_with_incident_curves_and_texts(page: Page) -> None:
    names = page.locator("#runs .name").all_inner_texts()
    assert names == ["b-grows", "a-healthy"]
    sentence = page.locator("#runs .sentence").first.text_content()
    assert page.locator("#headline h1").inner_text() == sentence
    assert page.locator(".chart figcaption b").first.inner_text() == "Response length"
    assert page.locator(".chart").count() == 4
    expect(page.locator("#texts .pair").first).to_be_visible()
    assert "<img src=x" in page.locator("#texts pre").first.inner_text()
    assert page.locator("img, iframe").count() == 0
    assert not set(page.content()) & set("\x1b\u202e")


def test_hover_zoom_smoothing_log_roles_and_charts(page: Page) -> None:
    page.evaluate(HOVER, 0.7)
    tip = page.locator(".tip:visible").first
    assert tip.inner_text().startswith("step ")
    assert {"generator", "aggregator"} <= set(tip.locator("span > span").all_inner_texts())
    box = page.locator(".chart .u-over").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.mouse.up()
    assert step_at(page, 0.01) in range(10, 14)
    assert step_at(page, 0.99) in range(22, 26)
    page.get_by_role("button", name="Reset zoom").click()
    assert step_at(page, 0.01) == 0
    page.locator("#smoothing").fill("0.9")
    assert page.locator("#smoothed").inner_text() == "0.90"
    log = page.locator(".chart button", has_text="log").first
    log.click()
    assert log.get_attribute("aria-pressed") == "true"
    chip = page.locator("#legend button", has_text="generator")
    chip.click()
    assert page.locator("#legend button", has_text="generator").get_attribute("aria-pressed") == (
        "false"
    )
    page.evaluate(HOVER, 0.7)
    assert "generator" not in page.locator(".tip:visible").first.inner_text()
    page.get_by_role("button", name="Remove the chart Reward").click()
    assert page.locator(".chart").count() == 3
    page.select_option("#more", "reward")
    assert page.locator(".chart").count() == 4


def test_runs_are_overlaid_and_changed(page: Page) -> None:
    page.get_by_label("Overlay a-healthy").check()
    page.wait_for_selector("#legend .run")
    assert page.locator("#legend .run").all_inner_texts() == ["b-grows", "a-healthy"]
    page.evaluate(HOVER, 0.7)
    assert "a-healthy, generator" in page.locator(".tip:visible").first.inner_text()
    page.locator("#runs button", has_text="a-healthy").click()
    expect(page.locator("#headline b").first).to_have_text("a-healthy")
    assert page.locator("#incidents").is_hidden()
    page.locator("#filter").fill("grows")
    assert page.locator("#runs .name").all_inner_texts() == ["b-grows"]


def test_a_click_on_a_curve_shows_the_texts_of_that_step(page: Page) -> None:
    expect(page.locator("#texts .pair").first).to_be_visible()
    page.locator(".chart .u-over").first.click()
    expect(page.locator("#texts h3")).to_contain_text("step 20")
    page.get_by_role("button", name="Back to the incident").click()
    expect(page.locator("#texts h3")).to_contain_text("before and after")


def test_steps_arrive_and_runs_come_and_go(browser: Browser, tmp_path: Path) -> None:
    writing = Writing(tmp_path / "x").go_on(15)
    page = browser.new_page()
    with served(Folder([str(tmp_path)])) as url:
        seen = Seen(page)
        page.goto(url)
        page.wait_for_selector(".chart canvas")
        facts = page.locator("#headline .facts")
        assert "step 14" in facts.inner_text()
        writing.go_on(3)
        Writing(tmp_path / "broken").sink.path.joinpath("run.json").write_text('{"v": 99}')
        expect(facts).to_contain_text("step 17")
        expect(page.locator("#runs .name")).to_have_count(2)
        page.locator("#runs button", has_text="broken").click()
        expect(page.locator("#headline h1")).to_contain_text("install a newer roledrift")
        page.locator("#runs button", has_text="step 17").click()
        (tmp_path / "x").rename(tmp_path.parent / f"{tmp_path.name}-gone")
        expect(page.locator("#headline")).to_contain_text("no longer there")
        unexpected = [one for one in seen.trouble if "404" not in one]
        assert unexpected == []
    expect(page.locator("#pulse")).to_contain_text("The server does not answer")
    page.close()


@pytest.mark.parametrize("width", [390, 820, 1600])
def test_nothing_is_wider_than_the_window(browser: Browser, url: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark")
    page.goto(url)
    page.wait_for_selector(".chart canvas")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_copy_opens_from_the_disk(browser: Browser, runs: Path, tmp_path: Path) -> None:
    (index, *_) = export(Folder([str(runs)], ImmediateJudge()), tmp_path / "site")
    page = browser.new_page()
    seen = Seen(page)
    page.goto(index.as_uri())
    page.wait_for_selector(".chart canvas")
    expect(page.locator("#texts .pair").first).to_be_visible()
    page.get_by_label("Overlay a-healthy").check()
    page.wait_for_selector("#legend .run")
    assert seen.trouble == []
    assert {one.partition(":")[0] for one in seen.asked} <= {"file", "data"}
    assert page.evaluate("window.hacked") is None
    page.close()
