"""What the paper's code did with some inputs, see ``recorders/paper_code.py``."""

import json
from pathlib import Path
from typing import Any

FACTS: dict[str, Any] = json.loads(Path(__file__).with_name("paper_code.json").read_text("utf-8"))
