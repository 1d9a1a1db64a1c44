"""Browsing texts as a person does: keys, pairs, links that last, many texts, hostile ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from roledrift.records import RunHeader, Sample
from roledrift.report.build import build_report
from roledrift.report.write import write_report
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING
from tests.report.conftest import ONSET, Seen, record
from tests.report.runs_with_texts import many, tell


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("voting")
    for name in "ab":
        tell(base / name)
    write_report(build_report(base / "a"), base / "one")
    write_report(build_report([base / "a", base / "b"]), base / "two")
    return base


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(5_000)
    yield page
    context.close()


@pytest.fixture
def page(tab: Page, runs: Path) -> Iterator[Page]:
    """The report on one run, at its pairs; no complaint and no request may follow."""
    seen = Seen(tab)
    tab.goto("about:blank")
    tab.goto((runs / "one" / "index.html").as_uri())
    tab.locator(".texts > summary").click()
    tab.evaluate("document.querySelector('.viewer').scrollIntoView()")
    yield tab
    assert seen.trouble == []
    assert {url.split(":")[0] for url in seen.asked} <= {"file", "about", "data"}
    tab.remove_listener("console", seen.console)
    tab.remove_listener("pageerror", seen.failed)
    tab.remove_listener("request", seen.request)


def where(page: Page) -> Locator:
    return page.locator(".browser .where")


def at_browser(page: Page) -> None:
    page.evaluate("document.querySelector('.browser').scrollIntoView()")
    page.evaluate("document.activeElement.blur()")


def test_keys_walk_through_the_texts(page: Page) -> None:
    at_browser(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(where(page)).to_have_text("3 of 160")
    page.keyboard.press("k")
    expect(where(page)).to_have_text("2 of 160")
    head = page.locator(".reading .current .head")
    page.keyboard.press("]")
    expect(where(page)).to_have_text("17 of 160")
    expect(head).to_contain_text("step 4")
    page.keyboard.press("[")
    expect(head).to_contain_text("step 0")
    page.keyboard.press("e")
    expect(page.locator(".reading h5")).to_have_text(["generator", "aggregator"])
    expect(page.locator(".reading .excerpt")).to_have_count(4)
    page.keyboard.press("e")
    expect(page.locator(".reading .excerpt")).to_have_count(1)
    page.keyboard.press("d")
    assert page.locator(".viewer").evaluate("one => one.getBoundingClientRect().top") < 50
    page.keyboard.press("d")
    assert page.locator(".browser").evaluate("one => one.getBoundingClientRect().top") < 50
    page.locator(".rows").focus()
    for key, place in (("End", 160), ("ArrowUp", 159), ("Home", 1), ("ArrowDown", 2)):
        page.keyboard.press(key)
        expect(where(page)).to_have_text(f"{place} of 160")
    expect(page.locator(".rows [aria-selected=true]")).to_contain_text("generator/1")


def test_a_question_mark_shows_the_keys(page: Page) -> None:
    page.keyboard.press("?")
    dialog = page.locator("dialog.keys")
    assert {"j k", "[ ]", "/", "e", "d", "1 … 5", "y"} <= {
        " ".join(one.split()) for one in dialog.locator("dt").all_inner_texts()
    }
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert not page.is_checked("input[name=episode]")
    page.locator(".keys-button").first.click()
    dialog.get_by_role("button", name="close").click()
    expect(dialog).to_be_hidden()


def test_keys_are_letters_while_typing(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("way 1jked[]y?5")
    field = page.locator("input[name=search]")
    expect(field).to_have_value("way 1jked[]y?5")
    expect(where(page)).to_have_text("nothing found")
    expect(page.locator("dialog.keys")).to_be_hidden()
    field.fill("way 1")
    page.keyboard.press("Escape")
    expect(field).to_have_value("way 1")
    page.keyboard.press("j")
    expect(where(page)).to_have_text("2 of 60")
    page.check("input[name=episode]")
    page.keyboard.press("j")
    expect(where(page)).to_have_text("3 of 60")
    page.get_by_role("button", name="show all").click()
    expect(where(page)).to_contain_text("of 160")


def test_focus_can_be_seen_wherever_it_is(page: Page) -> None:
    page.locator(".viewer .keys-button").focus()
    seen: set[str] = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(({tagName, name, className}) => [`${tagName} ${name || className}`,"
            " getComputedStyle(document.activeElement).outlineStyle])(document.activeElement)"
        )
        assert outline != "none", name
        seen.add(name)
        if "reading" in name:
            break
    wanted = {"SELECT role", "INPUT search", "INPUT episode", "OL rows", "DIV reading"}
    assert wanted <= seen


def test_five_pairings_of_two_runs(tab: Page, runs: Path) -> None:
    tab.goto((runs / "two" / "runs" / "run1-a.html").as_uri())

    def shown(key: str) -> tuple[list[str], list[str], str]:
        tab.keyboard.press(key)
        one = tab.locator(f".viewer .pairing[data-pairing='{key}'] .diff:visible")
        heads = one.locator(".head").all_inner_texts()
        return (
            heads,
            one.locator(".sides pre").all_inner_texts(),
            one.locator(".caption").inner_text(),
        )

    heads, texts, remark = shown("1")
    steps = [int(re.findall(r"step (\d+)", head)[0]) for head in heads]
    assert steps[0] < ONSET <= steps[1]
    assert all("aggregator/0" in head and "prompt p0" in head for head in heads)
    assert remark.startswith("Same prompt.")
    assert "word0 " in texts[1]
    assert texts[1].endswith("word9999 so we get 2 again")

    heads, texts, _ = shown("2")
    assert ["generator/0" in heads[0], "generator/1" in heads[1]] == [True, True]
    assert [text.split("\n")[0] for text in texts] == [
        "in a add 0 and 2 by way 0", "in a add 0 and 2 by way 1"
    ]  # fmt: skip

    tab.keyboard.press("3")
    tab.keyboard.press("j")
    heads, texts, remark = shown("3")
    assert "aggregator" in heads[0]
    assert "generator/0" in heads[1]
    assert texts[0] == r"\boxed{1}"
    assert remark.startswith("Its stamp names candidate 1")

    heads, texts, remark = shown("4")
    assert heads[0].startswith("aggregator now")
    assert heads[1].startswith("generator at the start")
    assert "by way 1" in texts[0]
    assert "by way 1" in texts[1]
    assert remark.startswith("Reads like generator by")

    tab.goto((runs / "two" / "index.html").as_uri())
    heads, texts, _ = shown("5")
    places = [re.findall(r"(\w+/\d) step (\d+).* prompt (p\d)", head)[0] for head in heads]
    assert places[0] == places[1]
    assert [head.split()[0] for head in heads] == ["a", "b"]
    assert "in a add" in texts[0]
    assert "in b add" in texts[1]
    tab.locator(".viewer .sides a:visible").nth(1).click()
    expect(tab).to_have_url(re.compile(r"runs/run2-b\.html#run2-b-text-"))
    expect(tab.locator(".reading .current pre").first).to_contain_text("in b add")


def test_a_link_brings_back_the_text_and_the_filters(page: Page, runs: Path) -> None:
    at_browser(page)
    page.select_option("select[name=role]", "aggregator")
    page.fill("input[name=from]", "20")
    page.fill("input[name=search]", "add 2")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(where(page)).to_have_text("2 of 5")
    page.keyboard.press("y")
    expect(page.locator(".told")).to_have_text("Link copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    text = page.locator(".reading pre").first.inner_text()

    write_report(build_report(runs / "a"), runs / "one")
    page.goto("about:blank")
    page.goto(link)
    expect(where(page)).to_have_text("2 of 5")
    assert page.input_value("select[name=role]") == "aggregator"
    assert page.input_value("input[name=search]") == "add 2"
    assert page.locator(".reading pre").first.inner_text() == text
    assert page.locator(".browser").evaluate("one => one.getBoundingClientRect().top") < 50


def test_the_address_follows_and_a_reload_stays(page: Page) -> None:
    page.keyboard.press("2")
    page.keyboard.press("j")
    shown = page.locator(".viewer .diff:visible").get_attribute("id")
    page.wait_for_function("id => location.hash === `#${id}`", arg=shown)
    page.reload()
    assert page.locator(".viewer .diff:visible").get_attribute("id") == shown


def test_links_that_lead_nowhere_say_so(page: Page) -> None:
    told = page.locator(".told")
    for name, answer in (
        ("run1-a-text-00000000", "does not hold text 00000000"),
        ("run1-a-diff-1-00000000-11111111", "nothing called “run1-a-diff-1-00000000-11111111”"),
        ("%E0%A4%A", "nothing called “%E0%A4%A”"),
        ("<img src=x onerror=alert(1)>", "nothing called “<img src=x onerror=alert(1)>”"),
        ("run1-a-browser?role=nobody&search=way%201", "no role nobody"),
    ):
        page.evaluate("name => { location.hash = name; }", name)
        expect(told).to_contain_text(answer)
    assert page.input_value("input[name=search]") == "way 1"
    page.keyboard.press("Escape")
    expect(told).to_be_empty()
    page.evaluate("location.hash = '#run1-a-method'")
    expect(told).to_be_empty()


def test_from_the_first_screen_to_the_text_and_back(page: Page) -> None:
    page.evaluate("location.hash = '#run1-a-summary'")
    first = page.locator(".summary .pairs")
    link = first.locator(".sides a").nth(1)
    before = page.evaluate("window.scrollY")
    wanted = first.locator(".sides pre").nth(1).inner_text()
    link.click()
    expect(page.locator(".reading pre").first).to_have_text(wanted, use_inner_text=True)
    page.keyboard.press("j")
    page.wait_for_function("old => location.hash !== old", arg=link.get_attribute("href"))
    page.go_back()
    page.wait_for_function("old => Math.abs(window.scrollY - old) < 50", arg=before)
    # The same link again: the address may not change, the text must.
    link.click()
    expect(page.locator(".reading pre").first).to_have_text(wanted, use_inner_text=True)


def test_ten_thousand_texts_are_all_in_one_page(tab: Page, tmp_path: Path) -> None:
    write_report(build_report(many(tmp_path / "big")), tmp_path, ["html"])
    html = (tmp_path / "index.html").read_text()
    assert len(html.encode()) < 3_000_000
    assert '-data">"H4sI' in html
    seen = Seen(tab)
    tab.goto((tmp_path / "index.html").as_uri())
    tab.locator(".texts > summary").click()
    expect(where(tab)).to_have_text("1 of 10,000")
    assert "All 10,000 texts." in tab.locator(".browser .caption").first.inner_text()
    tab.locator(".rows").focus()
    tab.keyboard.press("End")
    expect(where(tab)).to_have_text("10,000 of 10,000")
    expect(tab.locator(".rows .row.on")).to_be_visible()
    assert tab.locator(".rows .row").count() < 60
    tab.fill("input[name=search]", "NEEDLE-13-77 ")
    expect(where(tab)).to_have_text("1 of 1")
    tab.check("input[name=episode]")
    expect(tab.locator(".reading .excerpt")).to_have_count(4)
    tab.fill("input[name=search]", "")
    tab.fill("input[name=least]", "2")
    expect(where(tab)).to_contain_text("of 2,500")
    tab.select_option("select[name=sort]", "tokens")
    assert seen.trouble == []
    assert not [url for url in seen.asked if not url.startswith(("file:", "data:", "blob:"))]


def test_a_browser_that_cannot_unpack_says_so(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    seen = Seen(page)
    page.add_init_script("delete window.DecompressionStream")
    embedded_json = '<script type="application/json" id="b-data">"H4sI"</script>'
    shell = '<div class="browser" id="b" data-source="b-data" data-run="r" hidden>'
    parts = '<span class="where">reading</span><div class="reading"></div></div>'
    script = Path("roledrift/report/templates/texts.js")
    page.set_content(f"{shell}{parts}{embedded_json}<script>{script.read_text()}</script>")
    expect(page.locator(".reading")).to_contain_text("This browser cannot unpack the texts")
    assert seen.trouble == []
    page.close()


def test_without_scripts_texts_and_pairs_can_be_read(browser: Browser, runs: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto((runs / "one" / "index.html").as_uri())
    page.locator(".texts > summary").click()
    shown = page.locator(".viewer .diff")
    assert shown.count() > 20
    expect(shown.last).to_be_visible()
    expect(page.locator(".browser")).to_be_hidden()
    expect(page.locator(".keys-button").first).to_be_hidden()
    page.close()


HOSTILE = {
    "script": ("</script><script>window.hacked = 1</script>",) * 2,
    "handler": ("<img src=x onerror='window.hacked=1'> <svg/onload=window.hacked=1>",) * 2,
    "escape": ("\x1b[2J\x1b]0;owned\x07 clear", "clear"),
    "line": ("long " + "A" * 1_000_000, "long AAA"),
    "direction": ("\u202eright to left\u202c \u2066marks\u2069", "right to left marks"),
    "combining": ("Z" + "\u0301\u0316\u0334" * 200 + " marks", "Z\u0301\u0316"),
    "nul": ("nul\x00 inside", "nul inside"),
    "surrogate": ("lone \ud800 half", "lone "),
    "separator": ("line\u2028and\u2029paragraph", "lineandparagraph"),
    "textarea": ("</textarea></title></style></pre><b>bold</b>",) * 2,
}
"""What was written, and how what is shown begins."""


def test_hostile_words_stay_words_wherever_they_stand(tab: Page, tmp_path: Path) -> None:
    tag = "<img src=x onerror=window.hacked=1>"
    header = RunHeader(tag, VOTING, task=tag, notes={f"{tag}key": f"{tag}value"})
    writer = RunWriter(tmp_path / "run", header, writer="w")
    for step in range(30):
        writer.write_step(record(step, VOTING, inflates=True, gradients=False))
        if step % 3:
            continue
        writer.write_samples(step, [
            Sample(step, role, f"{name}: {text}", prompt=f"{tag}{name}", prompt_text=text,
                   episode=f"{tag}{step}{name}", flags=(f"{tag}flag",), tokens=9)
            for name, (text, _) in HOSTILE.items() for role in VOTING.role_names
        ])  # fmt: skip
    writer.close()
    write_report(build_report(tmp_path / "run"), tmp_path, ["html"])
    raw = (tmp_path / "index.html").read_bytes().decode("utf-8")
    assert not set(raw) & set("\x00\x1b\u202e\u2066\u2028\ud800")
    seen = Seen(tab)
    tab.goto((tmp_path / "index.html").as_uri())
    tab.locator(".texts > summary").click()
    for name, (_, begin) in HOSTILE.items():
        tab.fill("input[name=search]", f"{name}: ")
        expect(where(tab)).to_have_text("1 of 20")
        shown = tab.locator(".reading .current pre").first.inner_text()
        assert " ".join(shown.split()).startswith(f"{name}: {begin}")
    tab.check("input[name=episode]")
    tab.select_option("select[name=flag]", f"{tag}flag")
    expect(tab.locator(".reading .flag").first).to_have_text(f"{tag}flag")
    for key in "1234dyj":
        tab.keyboard.press(key)
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img, iframe, object, textarea, svg[onload], b b").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
    assert seen.trouble == []
    assert not [url for url in seen.asked if not url.startswith(("file:", "data:"))]
