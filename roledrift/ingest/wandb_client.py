"""A run of a Weights & Biases server, ``wandb://<entity>/<project>/<run>``, through wandb's client.

The client logs in as it always does (``wandb login``, ``WANDB_API_KEY``, ``WANDB_BASE_URL``). What
it gives is read as the run's folder would be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from roledrift.errors import StoreError
from roledrift.ingest.form import Format, Job
from roledrift.ingest.keys import flat, step_of, useful
from roledrift.ingest.rows import Events
from roledrift.ingest.values import whole
from roledrift.ingest.wandb_dir import FORMAT as FOLDER
from roledrift.ingest.wandb_dir import about, series_of
from roledrift.ingest.wandb_log import About

SCHEME = "wandb://"


def _read(job: Job) -> Events:
    rows: dict[int, dict[str, object]] = {}
    passed: dict[str, None] = {}
    for row in _asked(job):
        data = flat(row)
        step = step_of(data)
        step = whole(data.get("_step")) if step is None else step
        if step is None:
            job.ledger.skip("history row without a step", job.shown)
            continue
        rows.setdefault(step, {}).update(useful(data, passed))
    yield from series_of(rows, job, passed)


def _parts(job: Job) -> tuple[str, str]:
    """Project with its entity, and run, of an address; also of one with ``runs/`` as in a URL."""
    parts = [one for one in job.address.removeprefix(SCHEME).split("?")[0].split("/") if one]
    if len(parts) == 4 and parts[2] == "runs":
        del parts[2]
    if len(parts) not in (2, 3):
        raise StoreError(
            f"{job.shown}: a run's address is {SCHEME}ENTITY/PROJECT/RUN, with the run's id as in "
            "its page's address"
        )
    return "/".join(parts[:-1]), parts[-1]


def _asked(job: Job) -> Iterator[dict[str, Any]]:
    """Rows of the run's history; the run's facts are filled in."""
    try:
        import wandb
        from wandb.errors import AuthenticationError, Error, UsageError
    except ImportError as error:
        raise StoreError(
            f"{job.shown}: read with the wandb client, which is not installed: pip install wandb. "
            "A run's offline folder is read without it"
        ) from error
    project, run_id = _parts(job)
    server = os.environ.get("WANDB_BASE_URL") or "wandb's server"
    try:
        run = wandb.Api().run(f"{project}/{run_id}")
        facts = {"id": run.id, "name": run.name or run.id, "project": project}
        about(About(facts, dict(run.config)), job)
        yield from run.scan_history()
    except UsageError as error:
        raise StoreError(
            f"{job.shown}: not logged in to {server} ({_words(error)}); run `wandb login`, or set "
            "WANDB_API_KEY"
        ) from None
    except AuthenticationError as error:
        raise StoreError(
            f"{job.shown}: {server} cannot be reached or refuses the API key ({_words(error)}); "
            "give the run's local folder (wandb/run-...) where there is no network"
        ) from None
    except (Error, ValueError, OSError) as error:
        if "Could not find" in str(error):
            raise StoreError(
                f"{job.shown}: {server} knows no run {run_id!r} in {project!r}, or this account "
                "may not see it"
            ) from None
        raise StoreError(f"{job.shown}: {server} does not give it ({_words(error)})") from None


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())[:300].rstrip(".")


FORMAT = Format(
    "wandb", "a run of a wandb server", lambda _: None, _read, FOLDER.supplies, scheme=SCHEME
)
