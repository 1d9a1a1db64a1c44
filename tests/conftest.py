"""Fixtures for the whole suite."""

import gc
import os
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from roledrift import extensions
from roledrift.detect import catalogue
from roledrift.measure.catalogue import statistics
from tests import ranks

Install = Callable[..., None]

# Until the tests are collected: a fifth of that would be looking for garbage among modules.
gc.disable()

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")

with suppress(ImportError):  # not in every environment of tests/envs
    from hypothesis import settings

    # No test asserts a wall time, and a deadline would be one: a busy machine misses it.
    settings.register_profile("any machine", deadline=None)
    settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: begun last, one would keep a worker busy while the other has nothing."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is imported stays: looking through it for garbage would be half of a small training."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()
    forks = any(item.get_closest_marker("ranks") for item in session.items)
    if forks and not session.config.option.collectonly:
        ranks.share_imports()


def _register(place: Path, name: str, points: Mapping[str, Mapping[str, str]]) -> None:
    """Write what makes a folder on the path a distribution with entry points."""
    info = place / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    sections = [
        "\n".join([f"[roledrift.{kind}]", *(f"{key} = {value}" for key, value in one.items())])
        for kind, one in points.items()
    ]
    (info / "entry_points.txt").write_text("\n\n".join(sections) + "\n")


def pytest_configure() -> None:
    """Entry points newer than the installation of this checkout are found without a new one."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    missing = {
        group.removeprefix("roledrift."): {
            name: points[name] for name in points.keys() - entry_points(group=group).names
        }
        for group, points in project["entry-points"].items()
        if group.startswith("roledrift.")
    }
    if any(missing.values()):
        place = tempfile.mkdtemp(prefix="roledrift-entry-points-")
        _register(Path(place), "roledrift_checkout", missing)
        sys.path.append(place)
        # Commands that tests start find them, too.
        paths = filter(None, (os.environ.get("PYTHONPATH"), place))
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a developer's own switches nor the test runner's window width reach the tests."""
    ours = ("ROLEDRIFT_CONFIG", "ROLEDRIFT_STRICT", "ROLEDRIFT_DIR", "ROLEDRIFT_DISABLED")
    for name in (*ours, "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a distribution with entry points on the path, as pip would; gone after the test."""

    def put(
        name: str, points: Mapping[str, Mapping[str, str]], *, code: Mapping[str, str] | None = None
    ) -> None:
        place = tmp_path / f"site-{name}"
        _register(place, name, points)
        for module, text in (code or {}).items():
            (place / f"{module}.py").write_text(text)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(place))
        extensions._named.cache_clear()
        look_anew()

    yield put
    look_anew()


def look_anew() -> None:
    """Forget which parts there are."""
    extensions.extensions.cache_clear()
    catalogue._known.cache_clear()
    statistics.cache_clear()
