from pathlib import Path

from roledrift.ingest.console_log import looks_like, steps
from roledrift.ingest.ledger import Ledger

LOG = """noise step:3 is no line of numbers
(TaskRunner pid=12) step:0 - actor/entropy:0.25 - val/x/pass@1:0.5
\x1b[36m(Task pid=1)\x1b[0m step:1 - actor/entropy:np.float64(0.125) - perf/x:1e-05 - bad:value
step:2 - actor/entropy:nan - half:"""


def test_lines_of_numbers(tmp_path: Path) -> None:
    file = tmp_path / "output.log"
    file.write_text(LOG)
    ledger = Ledger()
    found = dict(steps(file, ledger))
    assert found[0] == {"actor/entropy": "0.25", "val/x/pass@1": "0.5"}
    assert found[1] == {"actor/entropy": "np.float64(0.125)", "perf/x": "1e-05"}
    assert list(found[2]) == ["actor/entropy"]
    assert ledger.counts == {"console number that cannot be read": 2}
    assert looks_like(file)


def test_numbers_that_come_late_are_found(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("x\n" * 200_000 + "step:1 - a:1\n")
    assert looks_like(file)
    file.write_text("step: 1\n")
    assert not looks_like(file)
    assert not looks_like(tmp_path / "no")
