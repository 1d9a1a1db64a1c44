"""Importing does nothing heavy. The time itself is measured in benchmarks/, not here."""

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "pandas",
    "matplotlib",
    "transformers",
    "numpy",
    "pyarrow",
    "scipy",
    "jinja2",
    "rich",
    "typer",
)


def loaded_after(code: str) -> set[str]:
    script = (
        f"{code}\nimport sys\nprint(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_import_roledrift_loads_nothing_heavy() -> None:
    assert loaded_after("import roledrift; dir(roledrift); roledrift.__version__") == set()


@pytest.mark.parametrize(
    "code",
    [
        "from roledrift import Monitor, open_monitor, Workflow, SpanTable, replay",
        "import roledrift.detect, roledrift.measure, roledrift.store.reader",
        "import roledrift.report.build",
        "import roledrift.cli.main",
        "import roledrift.ingest.importing, roledrift.cli.foreign",
    ],
)
def test_the_analysis_path_never_loads_torch(code: str) -> None:
    assert not loaded_after(code) & {"torch", "transformers"}


def test_an_unknown_name_says_so() -> None:
    import roledrift

    with pytest.raises(AttributeError, match="no attribute 'RoleDriftCalback'"):
        roledrift.RoleDriftCalback  # noqa: B018
