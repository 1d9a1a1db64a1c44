"""The wheel holds the library and its integrations, and nothing else at top level."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import roledrift

ROOT = Path(__file__).parents[2]


def test_the_version_is_one() -> None:
    """The package says it; what cannot read it there is compared with it."""
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == roledrift.__version__
    versions = re.findall(r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == roledrift.__version__


def test_nobody_is_sent_to_an_index_that_does_not_have_it() -> None:
    """Until the first upload: roledrift is installed from a clone."""
    advice = re.compile(r"pip install (-\S+ )*['\"]?roledrift\b(?![-_])")
    folders = ("roledrift", "integrations", "reference_trainer", "examples", "docs", "benchmarks")
    texts = [*ROOT.glob("*.md"), *(one for name in folders for one in (ROOT / name).rglob("*"))]
    texts = [path for path in texts if path.suffix in {".md", ".py", ".ipynb", ".toml", ".html"}]
    assert [str(path) for path in texts if advice.search(path.read_text())] == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder), "."]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheels_top_level(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {
        "roledrift",
        "roledrift_importers",
        "roledrift_paper",
        "roledrift_trl",
        "roledrift_rllm",
        "roledrift_verl",
        "roledrift_vllm",
    }
    assert "roledrift/py.typed" in names
    assert any(name.startswith("roledrift/report/templates/") for name in names)


@pytest.mark.slow
def test_the_installed_wheel_shows_its_demo_and_makes_reports(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True)
    packages = Path(answer.stdout.strip())
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", packages, wheel], check=True, capture_output=True)
    # The libraries of this environment behind it, but not what is installed for editing: that is
    # the source tree, and what the wheel lacks would be found there.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*arguments: str) -> str:
        command = [str(python), "-P", "-m", "roledrift", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    where = "import roledrift; print(roledrift.__file__)"
    found = subprocess.run(
        [python, "-P", "-c", where], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert found.stdout.startswith(str(packages))
    assert "\nsuspicious: The aggregator" in run("demo", "-o", "demo")
    assert "\nclean: " in run("demo", "healthy", "-o", "healthy")
    for name in "abcd":
        shutil.copytree(tmp_path / "demo" / "run", tmp_path / "runs" / name)
    files = run("report", "runs", "-o", "out", "--format", "html,md,json,csv,status").split()
    assert all((tmp_path / file).stat().st_size for file in files)
    page = (tmp_path / "out" / "runs" / "run1-a.html").read_text()
    assert "prefers-color-scheme" in page
    assert "addEventListener" in page
