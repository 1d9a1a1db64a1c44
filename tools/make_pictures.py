"""The pictures in `docs/images`: pages of the runs of `roledrift demo`, in a real browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PICTURES = (
    # name, recorded run, width, height
    ("report", "hot-learning-rate", 1280, 800),
    ("healthy", "healthy", 1280, 800),
)


def shoot(browser: str, page: Path, picture: Path, *, size: tuple[int, int]) -> None:
    """Save what `page` looks like in a window of `size` pixels."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            *(browser, *FLAGS, f"--user-data-dir={profile}"),
            *(f"--window-size={size[0]},{size[1]}", f"--screenshot={picture}", page.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def main() -> int:
    browser = next((browser for name in BROWSERS if (browser := shutil.which(name))), None)
    if browser is None:
        print(f"no browser found (looked for {', '.join(BROWSERS)})", file=sys.stderr)
        return 2
    IMAGES.mkdir(exist_ok=True)
    for name, run, width, height in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            demo = [sys.executable, "-m", "roledrift", "demo", run, "-o", folder]
            subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
            page = Path(folder) / "report" / "index.html"
            shoot(browser, page, IMAGES / f"{name}.png", size=(width, height))
        print(IMAGES / f"{name}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
