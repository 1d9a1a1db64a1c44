"""Pages of five kinds of run and of a folder: 1280 x 800 light and dark, a phone, 1920 wide.

They are written to ``runs/pages``, for a person to look at after every change of the page, and
those that the documentation shows to ``docs/images``. Needs Playwright and Pillow.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from typer.testing import CliRunner

from roledrift.cli.main import app
from roledrift.report.demos import demo_named, unpack_demo
from roledrift.store.reader import open_run
from roledrift.store.writer import RunWriter

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "runs" / "pages"
IMAGES = ROOT / "docs" / "images"
SHOWN = {"failing": "report.png", "healthy": "healthy.png"}
"""Runs whose page the documentation shows, with the picture's name."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
DEMOS = {
    "failing": "hot-learning-rate",
    "suspicious": "verbose-reward",
    "healthy": "healthy",
}
SHOTS = {
    # width, height, dark, the whole page
    "desk": (1280, 800, False, False),
    "dark": (1280, 800, True, False),
    "wide": (1920, 1080, False, False),
    "phone": (390, 844, False, True),
}
COLOURS = 64


def crashed(path: Path, recorded: Path) -> Path:
    """A run that was killed while it wrote: no end, and half a line."""
    run = open_run(recorded)
    writer = RunWriter(path, replace(run.header, run=path.name), writer="w")
    for record in run.steps()[:12]:
        writer.write_step(record)
    with (path / "steps.w.jsonl").open("ab") as stream:
        stream.write(b'{"v":1,"kind":"step","step":')
    return path


def imported(path: Path) -> Path:
    """Rollouts as another trainer dumped them."""
    path.mkdir()
    for step in range(1, 16):
        lines = [
            json.dumps({
                "input": f"Problem {at}", "output": f"we add {at} and {step}, so it is {at + step}",
                "gts": str(at + step), "score": float((at + step) % 3 > 0), "step": step,
            })
            for at in range(8)
        ]  # fmt: skip
        (path / f"{step}.jsonl").write_text("\n".join(lines) + "\n")
    return path


def kinds(folder: Path) -> dict[str, Path]:
    """Name to run or log, or to the folder of the runs."""
    runs = folder / "runs"
    paths = {name: runs / name for name in DEMOS}
    for name, path in paths.items():
        unpack_demo(demo_named(DEMOS[name]), path)
    paths["crashed"] = crashed(runs / "crashed", paths["suspicious"])
    paths["imported"] = imported(folder / "imported")
    return {**paths, "folder": runs}


def shoot(browser: Browser, page: Path, name: str) -> None:
    """Save what ``page`` looks like, in few colours: a picture is to stay below 100 KB."""
    for shot, (width, height, dark, full_page) in SHOTS.items():
        tab = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        tab.goto(page.as_uri())
        body = tab.screenshot(full_page=full_page)
        tab.close()
        few(body, PAGES / f"{name}-{shot}.png")


def few(body: bytes, picture: Path, *, shrink: int = 1) -> None:
    """A picture in few colours; rare ones, such as the states and the roles, are kept."""
    with Image.open(io.BytesIO(body)) as seen:
        small = seen.convert("RGB").resize((seen.width // shrink, seen.height // shrink))
        method = Image.Quantize.MAXCOVERAGE
        fewer = small.quantize(COLOURS, method=method, dither=Image.Dither.NONE)
        fewer.save(picture, optimize=True)


def main() -> None:
    """Write all pictures anew."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, path in kinds(Path(scratch)).items():
            out = Path(scratch) / f"report-{name}"
            asked = ["report", str(path), "-o", str(out), "--format", "html,status"]
            done = CliRunner().invoke(app, asked)
            if done.exit_code:
                raise SystemExit(done.output)
            shoot(browser, out / "index.html", name)
            if name in SHOWN:
                shutil.copy(PAGES / f"{name}-desk.png", IMAGES / SHOWN[name])
            if name == "failing":
                few((out / "status.png").read_bytes(), IMAGES / "status.png", shrink=2)
            print(name)
        browser.close()


if __name__ == "__main__":
    main()
