import re

import pytest

from roledrift.view.assets import PAGE, STATIC, asset


def test_the_page_loads_what_comes_with_it_and_nothing_else() -> None:
    loaded = re.findall(r'(?:src|href)="(?!#|data:)([^"]*)"', asset(PAGE))
    assert {f"static/{name}" for name in STATIC} == set(loaded)


@pytest.mark.parametrize("name", STATIC)
def test_no_file_names_another_machine(name: str) -> None:
    assert not re.search(r"(?:url\(|import |fetch\(|src=)\s*[\"']?(?:https?:)?//", asset(name))


def test_the_colours_are_those_of_the_report_on_light_and_dark() -> None:
    css = asset("inks.css")
    assert css.count("--tone-0:") == 2
    assert "prefers-color-scheme: dark" in css
