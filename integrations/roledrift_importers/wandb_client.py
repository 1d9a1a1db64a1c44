"""A run of a Weights & Biases server, ``wandb://<entity>/<project>/<run>``, through wandb's client.

The client logs in as it always does (``wandb login``, ``WANDB_API_KEY``, ``WANDB_BASE_URL``). What
it gives is read as the run's folder would be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from roledrift.errors import StoreError
from roledrift.ingest.form import Job
from roledrift.ingest.keys import flat
from roledrift.ingest.values import integer
from roledrift_importers.wandb_log import About, Entry, LoggedRow

SCHEME = "wandb://"


def entries(job: Job) -> Iterator[Entry]:
    """What the run is, and its history, as a log of it would say it.

    Raises:
        StoreError: If the client is not installed, or the server does not give the run.
    """
    for entry in _asked(job):
        if isinstance(entry, About):
            yield entry
        else:
            data = flat(entry)
            yield LoggedRow(integer(data.get("_step")), data)


def _parts(job: Job) -> tuple[str, str]:
    """Project with its entity, and run, of an address; also of one with ``runs/`` as in a URL."""
    parts = [part for part in job.address.removeprefix(SCHEME).split("?")[0].split("/") if part]
    if len(parts) == 4 and parts[2] == "runs":
        del parts[2]
    if len(parts) not in (2, 3):
        raise StoreError(
            f"{job.shown}: a run's address is {SCHEME}ENTITY/PROJECT/RUN, with the run's id as in "
            "its page's address"
        )
    return "/".join(parts[:-1]), parts[-1]


def _asked(job: Job) -> Iterator[About | dict[str, Any]]:
    """What the run is, then the rows of its history."""
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
        yield About(facts, dict(run.config))
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
