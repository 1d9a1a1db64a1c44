"""Pages of six kinds of run and of a folder of them, at three widths, light and dark.

They are written to ``docs/images/pages``, with the picture for a chat of the failing run.

They are looked at by a person after every change of the page. Needs Chromium and Pillow.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from make_pictures import BROWSERS, FLAGS
from PIL import Image

from roledrift.store.reader import StoredRun, open_run
from roledrift.store.writer import RunWriter

PAGES = Path(__file__).parents[1] / "docs" / "images" / "pages"
SIZES = {"phone": (500, 1400), "tablet": (820, 1400), "desk": (1360, 1400)}
COLOURS = 64


def write(path: Path, run: StoredRun, *, until: int | None = None, **what: bool) -> Path:
    """A copy of a recorded run without some of what it holds."""
    header = replace(run.header, run=path.name)
    writer = RunWriter(path, header, writer="w")
    keeps = {"texts": True, "gradients": True, "drifts": True, "closed": True, **what}
    records = run.steps()
    for at, record in enumerate(records):
        if until is not None and record.step > until:
            break
        groups = record.groups
        if not keeps["drifts"]:
            # A run that goes on as it began: its first steps once more, a little noisier.
            early = records[at % 9]
            groups = {
                name: {
                    key: replace(stat, **{
                        part: value * (1 + 0.02 * math.sin(at + len(key)))
                        for part in ("mean", "p05", "p50", "p95")
                        if (value := getattr(stat, part)) is not None
                    })
                    for key, stat in stats.items()
                }
                for name, stats in early.groups.items()
            }  # fmt: skip
        gradients = record.gradients if keeps["gradients"] else ()
        writer.write_step(replace(record, groups=groups, gradients=gradients))
        if keeps["texts"]:
            its = [one for one in run.samples() if one.step == record.step]
            if its:
                writer.write_samples(record.step, its)
    if keeps["closed"]:
        writer.close()
    else:
        # Killed while it wrote: no end, and half a line.
        with (path / "steps.w.jsonl").open("ab") as stream:
            stream.write(b'{"v":1,"kind":"step","step":')
    return path


def foreign(path: Path) -> Path:
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
    """Name to run or log."""
    folder.mkdir()
    run = open_run(Path(str(files("roledrift.report") / "demo_run")))
    return {
        "healthy": write(folder / "healthy", run, drifts=False),
        "failing": write(folder / "failing", run),
        "no_gradients": write(folder / "no_gradients", run, gradients=False),
        "no_texts": write(folder / "no_texts", run, texts=False),
        "foreign": foreign(folder / "foreign"),
        "crashed": write(folder / "crashed", run, until=12, closed=False),
    }


def shoot(browser: str, page: Path, picture: Path, *, size: tuple[int, int], dark: bool) -> None:
    """Save what ``page`` looks like, in few colours: a picture is to stay below 200 KB."""
    with tempfile.TemporaryDirectory() as profile:
        flags = [*FLAGS, "--disable-quic", f"--user-data-dir={profile}"]
        flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
        flags += [f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run([browser, *flags], check=True, capture_output=True, timeout=180)
    with Image.open(picture) as seen:
        few(seen).save(picture, optimize=True)


def few(seen: Image.Image) -> Image.Image:
    """The picture in few colours; rare ones, such as the states and the roles, are kept."""
    method = Image.Quantize.MAXCOVERAGE
    return seen.convert("RGB").quantize(COLOURS, method=method, dither=Image.Dither.NONE)


def status(picture: Path) -> None:
    """Keep the picture for a chat, half as wide."""
    with Image.open(picture) as seen:
        small = seen.convert("RGB").resize((seen.width // 2, seen.height // 2))
        few(small).save(PAGES / "status.png", optimize=True)


def main() -> int:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print(f"no browser found (looked for {', '.join(BROWSERS)})", file=sys.stderr)
        return 2
    PAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        runs = kinds(Path(scratch) / "runs")
        several = [path for name, path in runs.items() if name != "foreign"]
        for name, paths in {
            **{name: [path] for name, path in runs.items()},
            "folder": several,
        }.items():
            out = Path(scratch) / f"report-{name}"
            report = [sys.executable, "-m", "roledrift", "report", *map(str, paths), "-o", str(out)]
            report += ["--format", "html,status"]
            subprocess.run(report, check=True, stdout=subprocess.DEVNULL)
            for width, size in SIZES.items():
                for dark in (False, True):
                    picture = PAGES / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    shoot(browser, out / "index.html", picture, size=size, dark=dark)
            if name == "failing":
                status(out / "status.png")
            print(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
