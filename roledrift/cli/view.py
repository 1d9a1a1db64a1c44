"""``roledrift view``: the live page in a browser, or a static copy of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.errors import RoleDriftError
from roledrift.view.export import export
from roledrift.view.folder import Folder
from roledrift.view.judging import BackgroundJudge, ImmediateJudge


def view(
    paths: Sequence[str], *, host: str, port: int, out: Path | None, look: bool, as_json: bool
) -> int:
    """Serve the page until it is interrupted, or write a static copy.

    Returns:
        The exit code: 0, 2 if it could not be done.
    """
    try:
        with opened(paths) as places:
            shown, folders = [name for name, _ in places], [place for _, place in places]
            if any(name != place for name, place in places):
                console.say("another tool's log is read once: start the view again to read on")
            if out is not None:
                written = export(Folder(folders, ImmediateJudge(), shown), out)
                _say(str(written[0]), look, as_json)
                return console.CLEAN
            from roledrift.view.server import serve

            judge = BackgroundJudge()
            try:
                serve(
                    Folder(folders, judge, shown), host, port, lambda url: _say(url, look, as_json)
                )
            finally:
                judge.close()
    except (RoleDriftError, ImportError) as error:
        return console.fail(console.failure_of(error), as_json=as_json)
    return console.CLEAN


def _say(address: str, look: bool, as_json: bool) -> None:
    if as_json:
        console.write_json({"schema": "roledrift.view/1", "address": address})
    else:
        served = "://" in address
        sys.stdout.write(f"{address}\n" if served else f"open {shlex.quote(address)}\n")
        if served:
            console.say("following the runs at this address; Ctrl-C stops the view")
    sys.stdout.flush()
    if look:
        import webbrowser

        webbrowser.open(address if "://" in address else Path(address).resolve().as_uri())
