"""What the documentation site has beside the pages in `docs/`; mkdocs calls the functions by name.

Pages link to files of the repository (examples, the changelog), which the site holds as well. The
gallery shows recorded runs: their reports and a live page are written anew in every build.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from roledrift.cli.main import app

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "reference_trainer/README.md": "presets.md",
    "examples/verl_recipe/README.md": "verl_recipe.md",
}
"""Pages outside of `docs/`, and where the site has them."""

FILES = (
    "examples/**/*.py",
    "examples/**/*.yaml",
    "examples/**/*.sbatch",
    "benchmarks/detection/*.md",
    "benchmarks/reproduction/plan.toml",
)
"""Files outside of `docs/` that pages link to; they are copied as they are."""

LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"^```.*?^```$", re.S | re.M)
ROLE_OF_SPHINX = re.compile(r":(?:class|func|meth|data|mod|attr|exc):(?=<code>)")
SHOWN = re.compile(r"<!-- gallery: ([a-z-]+) -->")


def on_files(files: Files, config: Any) -> Files:
    """Add the files of the repository and the gallery."""
    from mkdocs.structure.files import File  # the links are tested where there is no mkdocs

    added = {site_path(name): path for name, path in outside().items()} | _gallery()
    for name, path in added.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


@cache
def outside() -> dict[str, Path]:
    """Path in the repository -> file, of everything outside of `docs/` that the site holds."""
    paths = [ROOT / name for name in PAGES]
    paths += [path for pattern in FILES for path in sorted(ROOT.glob(pattern))]
    return {path.relative_to(ROOT).as_posix(): path for path in paths}


def site_path(name: str) -> str:
    """Where the site has a file of the repository."""
    inside = PurePosixPath(name)
    if inside.parts[0] == "docs":
        return inside.relative_to("docs").as_posix()
    # Under another ending a page of Markdown is copied as it is.
    return PAGES.get(name) or (f"{name}.txt" if inside.suffix == ".md" else name)


def _in_repository(site: str) -> str:
    """Where the repository has a page of the site."""
    return {target: name for name, target in PAGES.items()}.get(site, f"docs/{site}")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to files of the repository at the site's copies, and show the gallery."""
    src = page.file.src_uri
    pieces = []
    for text, is_code in _split(markdown):
        pieces.append(text if is_code else LINK.sub(lambda match: _link(match, src), text))
    return SHOWN.sub(_shown, "".join(pieces))


def on_page_content(html: str, **_: Any) -> str:
    """Write marks of docstrings that Markdown does not know the way it would."""
    plain = ROLE_OF_SPHINX.sub("", html).replace("<code>~roledrift.", "<code>roledrift.")
    return plain.replace("::</p>", ":</p>")


def _split(markdown: str) -> Iterator[tuple[str, bool]]:
    """The text around blocks of code, and the blocks."""
    at = 0
    for match in CODE.finditer(markdown):
        yield markdown[at : match.start()], False
        yield match[0], True
        at = match.end()
    yield markdown[at:], False


def _link(match: re.Match[str], src: str) -> str:
    target, mark = match[1], match[2] or ""
    if "://" in target or target.startswith("mailto:"):
        return match[0]
    here = posixpath.dirname(_in_repository(src))
    path = posixpath.normpath(posixpath.join(here, target))
    path = {"README.md": "docs/README.md", "CONTRIBUTING.md": "docs/README.md"}.get(path, path)
    if path not in outside() and not path.startswith("docs/"):
        return match[0]
    return posixpath.relpath(site_path(path), posixpath.dirname(src) or ".") + mark


def _shown(match: re.Match[str]) -> str:
    name = match[1]
    return (
        f"[![The status image of {name}](gallery/{name}.png)](gallery/{name}/index.html)\n\n"
        f"[Open the report](gallery/{name}/index.html){{ .md-button }} "
        f"[Open the live page](gallery/live/index.html){{ .md-button }}"
    )


@cache
def _gallery() -> dict[str, Path]:
    """Path on the site -> file: a report and a picture per recorded run, a live page of all."""
    folder = Path(tempfile.mkdtemp(prefix="roledrift-site-"))
    pages: dict[str, Path] = {}
    for name in SHOWN.findall((ROOT / "docs" / "gallery.md").read_text()):
        out = folder / "runs" / name
        _roledrift("demo", name, "-o", out)
        _roledrift("report", out / "run", "--format", "status", "-o", folder / name)
        pages[f"gallery/{name}.png"] = folder / name / "status.png"
        pages[f"gallery/{name}/index.html"] = out / "report" / "index.html"
    _roledrift("view", folder / "runs", "--export", folder / "live")
    return pages | _below(folder / "live", "gallery/live", "*")


def _below(folder: Path, site: str, pattern: str) -> dict[str, Path]:
    paths = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    return {f"{site}/{path.relative_to(folder).as_posix()}": path for path in paths}


def _roledrift(*arguments: object) -> None:
    """Run a command in this process: starting one anew takes longer than most of them."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exit_code:
        raise RuntimeError(f"roledrift {arguments}: {done.output}") from done.exception
