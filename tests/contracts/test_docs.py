"""What the pages promise a reader: links that lead somewhere, and every option of the code."""

import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.main import get_command

from roledrift.cli.main import app
from roledrift.config import Config, from_mapping
from roledrift.detect.catalogue import shipped
from roledrift.detect.settings import checked
from roledrift.ingest import formats

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
PAGES += [ROOT / "reference_trainer" / "README.md", ROOT / "examples/verl_recipe/README.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
VERBS = "ls|check|report|watch|view|compare|doctor|import|demo"
COMMAND = re.compile(rf"roledrift ({VERBS})\b([^\n`]*)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def prose(markdown: str) -> str:
    return re.sub(r"^```.*?^```", "", markdown, flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", prose(page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def _links(page: Path) -> list[tuple[Path, str]]:
    found = [
        one.partition("#") for one in LINK.findall(prose(page.read_text())) if "://" not in one
    ]
    return [((page.parent / path).resolve() if path else page, mark) for path, _, mark in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, mark in _links(page):
        assert target.exists(), f"{target} is not there"
        assert not mark or mark in anchors(target), f"{target} has no heading for #{mark}"


def test_every_page_can_be_reached_from_the_first_one() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        if page.suffix == ".md":
            ahead += [target for target, _ in _links(page) if target.is_file()]
    examples = [*(ROOT / "examples").glob("*.py"), *(ROOT / "examples").glob("*.yaml")]
    assert {one for one in (*PAGES, *examples) if one not in reached} == set()


def test_the_configuration_page_has_every_key_with_its_default() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    told = tomllib.loads("".join(re.findall(r"^```toml\n(.*?)^```", page, re.S | re.M)))
    checked(from_mapping(told))
    sections = {card.name: asdict(card.settings()) for card in shipped() if card.settings}
    plain = {name: {k: [*v] if isinstance(v, tuple) else v for k, v in one.items()}
             for name, one in sections.items()}  # fmt: skip
    assert told.pop("detectors") == plain
    assert sum(map(len, sections.values())) < 30
    assert from_mapping(told) == Config()
    known = asdict(Config())
    known.pop("detectors")
    assert _keys(told) == _keys(known)


def _keys(section: dict[str, object], path: str = "") -> set[str]:
    found = set()
    for name, value in section.items():
        found |= _keys(value, f"{path}{name}.") if isinstance(value, dict) else {path + name}
    return found


def test_options_in_the_pages_are_those_of_the_command() -> None:
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    options = {
        verb: {word for one in command.params for word in one.opts if word.startswith("-")}
        for verb, command in verbs.items()
    }
    files = [*PAGES, *(ROOT / "examples").rglob("*.py")]
    for verb, rest in (one for file in files for one in COMMAND.findall(file.read_text())):
        assert set(OPTION.findall(rest)) <= options[verb], f"roledrift {verb}{rest}"
    pages = ("command_line.md", "report.md", "view.md", "integrations/importing.md")
    told = "".join((ROOT / "docs" / page).read_text() for page in pages)
    for verb, known in options.items():
        unsaid = {word for word in known if word.startswith("--") and word not in told}
        assert unsaid - {"--out"} == set(), verb  # which is -o there


def test_every_format_has_a_line_in_the_table() -> None:
    page = (ROOT / "docs" / "integrations" / "importing.md").read_text()
    assert {name for name in formats() if f"| `{name}` |" not in page} == set()


def test_what_make_installs_from_is_in_the_source_distribution() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())
    include = listed["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    asked = set(re.findall(r"(?<![\w/)])[\w-]+\.txt", (ROOT / "Makefile").read_text()))
    assert "constraints.txt" in asked
    assert {f"/{name}" for name in asked} <= set(include)
