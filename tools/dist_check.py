"""Build the wheel and the source distribution, and use both as somebody would who has no clone.

For each Python: an empty environment, the wheel with its extra `view` from the package index, and
the commands that need neither torch nor a browser. Then the part of the suite that needs neither,
out of the source distribution, on the installed wheel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = "view"
TEST_NEEDS = ("pytest", "hypothesis", "jsonschema", "httpx", "pyyaml", "tqdm", "fsspec")
CORE = ("detect", "measure", "store", "notify", "analysis")
"""Folders of `tests` that need neither torch nor a browser, but for two files:"""
NOT = ("tests/detect/test_remedies.py", "tests/notify/test_logbooks.py")  # trl, wandb


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of this clone, built in `folder`."""
    command = [sys.executable, "-m", "build", "--no-isolation", "-o", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def environment(interpreter: str, folder: Path, wheel: Path) -> Path:
    """An environment that holds the wheel and what its users install beside it."""
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}[{EXTRAS}]"], check=True)
    return python


def use(python: Path, folder: Path) -> None:
    """Demo, report, check, view and import, away from the clone."""
    folder.mkdir()

    def run(*arguments: str, code: int = 0) -> str:
        command = [str(python), "-P", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    where = run("-c", "import roledrift; print(roledrift.__file__)").strip()
    if not where.startswith(str(python.parents[1])):
        raise SystemExit(f"roledrift was imported from {where} and not from the wheel")
    roledrift = ("-m", "roledrift")
    run(*roledrift, "demo", "hot-learning-rate", "-o", "hot")
    run(*roledrift, "demo", "healthy", "-o", "healthy")
    if not run(*roledrift, "check", "hot/run", code=1).strip():
        raise SystemExit("check said nothing about a failing run")
    run(*roledrift, "check", "healthy/run")
    run(*roledrift, "ls", ".")
    run(*roledrift, "report", ".", "-o", "page", "--format", "html,md,json,csv,status")
    run(*roledrift, "view", ".", "--export", "live")
    for name in ("page/index.html", "page/report.json", "live/index.html"):
        if not (folder / name).stat().st_size:
            raise SystemExit(f"{name} is empty")


def test(python: Path, source: Path, folder: Path) -> None:
    """The core of the suite, as it lies in the source distribution, on the installed wheel."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    # The wheel is what is tested: without these, the tree would be imported instead.
    for package in ("roledrift", "integrations"):
        (tree / package).rename(tree / f"{package}-of-the-tree")
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *TEST_NEEDS], check=True)
    chosen = [*(f"tests/{name}" for name in CORE), *(f"--ignore={name}" for name in NOT)]
    command = [str(python), "-m", "pytest", "-q", "-m", "not slow", *chosen]
    subprocess.run(command, cwd=tree, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", action="append", help="an interpreter; may be given several times"
    )
    parser.add_argument("--no-tests", action="store_true", help="only install and run commands")
    asked = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)  # a clone's packages would be used in place of the wheel's
    interpreters = asked.python or [sys.executable]
    for interpreter in interpreters:  # before the minutes that each of them takes
        if shutil.which(interpreter) is None:
            raise SystemExit(f"{interpreter} is not on the path")
        probe = subprocess.run([interpreter, "-c", ""], capture_output=True, text=True, check=False)
        if probe.returncode:
            raise SystemExit(f"{interpreter} cannot be run: {probe.stderr.strip()}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, source = build(folder / "dist")
        for number, interpreter in enumerate(interpreters):
            place = folder / str(number)
            python = environment(interpreter, place / "venv", wheel)
            use(python, place / "use")
            if not asked.no_tests:
                test(python, source, place / "source")
            print(f"{interpreter}: {wheel.name} and {source.name} work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
