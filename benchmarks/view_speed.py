"""How fast `roledrift view` is on 100 runs of 1,000 steps, in Chromium.

    python -m benchmarks.view_speed

The runs repeat the steps of the demo run (about 190 statistics a step, 16 MB a run). Times are of
the wall; the CPU time of server and page beside them tells a busy machine from a slow program.
Limits: 2 s to the first curves, 200 ms for an update.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from roledrift.codec import to_json
from roledrift.detect.suite import DetectorSuite
from roledrift.store.reader import open_run
from roledrift.store.writer import RunWriter
from roledrift.view.folder import Folder
from roledrift.view.server import application, listen

DEMO = Path(__file__).parents[1] / "roledrift" / "report" / "demo_run"
RUNS, STEPS, UPDATES = 100, 1000, 5


def make_runs(folder: Path) -> Path:
    """Many finished runs that share their files of steps, and one that goes on; its path."""
    demo = open_run(DEMO)
    records, suite = demo.steps(), DetectorSuite(demo.header.workflow, rewinds=False)
    growing = folder / "run-000"
    sink = RunWriter(growing, demo.header, writer="w", judged=True)
    for step in range(STEPS):
        number = step if step < len(records) else 12 + step % 6
        record = replace(records[number], step=step)
        sink.write_step(record)
        for alert in suite.update(record):
            sink.write_alert(alert)
        for incident in suite.changed:
            sink.write_incident(incident)
    shutil.copytree(growing, folder / "run-001")
    for number in range(2, RUNS):
        path = folder / f"run-{number:03d}"
        path.mkdir()
        for file in (folder / "run-001").iterdir():
            os.link(file, path / file.name) if file.is_file() else None
    return growing


def append(path: Path, step: int) -> None:
    """One more step, as a trainer would write it."""
    (file,) = path.glob("steps.*.jsonl")
    record = replace(open_run(DEMO).steps()[14], step=step)
    with file.open("a") as stream:
        stream.write(to_json(record) + "\n")


def timed(label: str, what: Callable[[], object]) -> float:
    wall, cpu = time.perf_counter(), time.process_time()
    what()
    took = 1000 * (time.perf_counter() - wall)
    print(f"{label:48}{took:9.0f} ms   {time.process_time() - cpu:6.2f} s CPU of the server")
    return took


def update(page: Page, path: Path, step: int) -> tuple[float, float, float]:
    """Milliseconds of the look that draws a new step: wall, CPU of the page, CPU of the server."""
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        metrics = client.send("Performance.getMetrics")["metrics"]
        return next(
            float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration"
        )

    append(path, step)
    before, served = busy(), time.process_time()
    condition = f"document.querySelector('#headline .facts').textContent.includes('step {step},')"
    page.wait_for_function(condition)
    page.wait_for_function("document.documentElement.dataset.tookMs")
    page.wait_for_timeout(50)
    took = float(page.evaluate("document.documentElement.dataset.tookMs"))
    return took, 1000 * (busy() - before), 1000 * (time.process_time() - served)


def main() -> None:
    """Print the times."""
    with tempfile.TemporaryDirectory() as place, listen("127.0.0.1", 0) as bound:
        growing = make_runs(Path(place))
        folder = Folder([place])
        server = uvicorn.Server(
            uvicorn.Config(application(folder), log_level="error", lifespan="off")
        )
        thread = threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        with sync_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("google-chrome")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(
                viewport={"width": 1440, "height": 900},
                bypass_csp=True,  # waiting for a condition evaluates a string in the page
            )
            page.goto("about:blank")
            timed("list of 100 runs", lambda: (
                page.goto(url), page.wait_for_selector("#runs li:nth-child(100)")))  # fmt: skip
            first = timed("then the curves of the worst", lambda: page.wait_for_selector(
                ".chart canvas"))  # fmt: skip
            page.locator("#runs button", has_text="run-000").first.click()
            page.wait_for_function("document.querySelectorAll('.chart canvas').length > 3")
            page.wait_for_timeout(2500)
            idle = float(page.evaluate("document.documentElement.dataset.tookMs"))
            print(f"{'look at 100 runs without news':48}{idle:9.0f} ms")
            timed("the same, server alone", folder.listing)
            took = [update(page, growing, STEPS + at) for at in range(UPDATES)]
            for name in ("run-001", "run-002", "run-003"):
                page.get_by_label(f"Overlay {name}").check()
            page.wait_for_function("document.querySelectorAll('#legend .run').length === 4")
            page.wait_for_timeout(2500)
            several = [update(page, growing, STEPS + UPDATES + at) for at in range(UPDATES)]
            browser.close()
        server.should_exit = True
        thread.join(10)
    for label, rounds in (("one run", took), ("four runs overlaid", several)):
        wall, busy, served = (sorted(times) for times in zip(*rounds, strict=True))
        at = len(rounds) // 2
        print(f"update, {label}: median {wall[at]:.0f} ms, worst {wall[-1]:.0f} ms; CPU of the "
              f"page {busy[at]:.0f} ms, of the server {served[at]:.0f} ms")  # fmt: skip
    print(json.dumps({"first_ms": round(first), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
