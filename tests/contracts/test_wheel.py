"""The wheel holds the library and its integrations, and nothing else at top level."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheels_top_level(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(tmp_path), "."]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {
        "roledrift",
        "roledrift_trl",
        "roledrift_vllm",
    }
    assert "roledrift/py.typed" in names
    assert any(name.startswith("roledrift/report/templates/") for name in names)
