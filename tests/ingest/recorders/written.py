"""Which version of which framework wrote a fixture; kept beside the fixtures.

A recorder lets a framework's own writer write a small log and is run by hand, in an environment
that has the framework: the committed files are what it wrote then, and no test needs the framework.
"""

import json
import shutil
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"
BOOK = FIXTURES / "written_by.json"


def fresh(name: str) -> Path:
    """An empty folder for a fixture."""
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def written(name: str, version: str, how: str) -> None:
    """Note who wrote a fixture.

    Args:
        name: Folder of the fixture.
        version: Framework and version, as the documentation names them.
        how: What of the framework ran.
    """
    book = json.loads(BOOK.read_text()) if BOOK.is_file() else {}
    book[name] = {"version": version, "how": how}
    BOOK.write_text(json.dumps(dict(sorted(book.items())), indent=2) + "\n")
