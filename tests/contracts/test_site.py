"""The documentation site: every page has its place, and what the pages show is there."""

import ast
import json
import re
from importlib.util import find_spec
from pathlib import Path
from posixpath import dirname, normpath
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import roledrift
from roledrift.report.demos import DEMOS
from tests.contracts.test_docs import anchors, prose
from tools import site_hooks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Written by mkdocs for the site alone.
MADE = set(site_hooks.PAGES.values())


class Loader(yaml.SafeLoader):
    """Reads tools/mkdocs.yml, whose tags name functions."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def pages(entry: Any) -> set[str]:
    if isinstance(entry, str):
        return {entry}
    below = entry.values() if isinstance(entry, dict) else entry
    return set().union(*(pages(one) for one in below))


def test_every_page_is_in_the_navigation() -> None:
    config = yaml.load((ROOT / "tools" / "mkdocs.yml").read_text(), Loader)
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    there |= {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.ipynb")}
    assert there | MADE == pages(config["nav"])


def test_the_gallery_shows_recorded_runs_by_their_names() -> None:
    text = (DOCS / "gallery.md").read_text()
    shown = re.findall(r"<!-- gallery: ([a-z-]+) -->", text)
    assert len(shown) >= 5
    assert set(shown) <= {demo.name for demo in DEMOS}
    assert re.findall(r"^`roledrift demo ([a-z-]+)`$", text, re.M) == shown


def test_the_reference_has_every_public_name() -> None:
    named = set(re.findall(r"^::: roledrift\.(\w+)$", (DOCS / "api.md").read_text(), re.M))
    presets = {"EVAL_OPT", "ORCH_WORKERS", "SINGLE", "VOTING", "__version__"}
    assert named == set(roledrift.__all__) - presets


@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_are_kept_without_output(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert cells[0]["cell_type"] == "markdown"
    for cell in cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse("".join(cell["source"]))


def test_the_notebook_of_a_folder_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_spec("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads((DOCS / "notebooks" / "analysis.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["incident"].severity == "failing"


LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")


def site() -> dict[str, Path]:
    """Path on the site -> file, of everything but the gallery, which is made in every build."""
    held = {path.relative_to(DOCS).as_posix(): path for path in DOCS.rglob("*") if path.is_file()}
    return held | {site_hooks.site_path(name): path for name, path in site_hooks.outside().items()}


@pytest.mark.parametrize("name", sorted(name for name in site() if name.endswith(".md")))
def test_pages_of_the_site_link_only_to_what_it_holds(name: str) -> None:
    """What `make site` is strict about, without a build."""
    held = site()
    page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
    rewritten = site_hooks.on_page_markdown(held[name].read_text(), page)
    for target, mark in LINK.findall(prose(rewritten)):
        if ":" in target:
            continue
        path = normpath(f"{dirname(name) or '.'}/{target}") if target else name
        if re.fullmatch(r"gallery/(.+\.png|.+/index\.html)", path):
            continue  # written by the hook that writes the link
        assert path in held, f"the site does not hold {path}: see FILES in tools/site_hooks.py"
        assert not mark or mark in anchors(held[path]), f"{path} has no heading for #{mark}"
