"""A server on this machine that answers what wandb's public API client asks of a run.

It knows one run, ``ent/proj/r1``, for one API key. The questions are those of wandb 0.31's client
(GraphQL at ``/graphql``); histories come in pages, the older way, with no Parquet export.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "a" * 40
_AUTH = "Basic YXBpOmFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="


@contextmanager
def serving(rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> Iterator[str]:
    """The server's address while it serves a run with these rows."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/graphql":  # the client's own telemetry
                self._reply(404, {})
            elif self.headers.get("Authorization") != _AUTH:
                self._reply(401, {"errors": [{"message": "invalid API key"}]})
            else:
                asked = json.loads(raw)
                self._reply(200, {"data": _answer(asked, rows, config)})

        def _reply(self, code: int, body: Mapping[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(
    asked: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
) -> Mapping[str, Any]:
    variables = asked.get("variables") or {}
    if "viewer" in asked["query"]:
        teams = {"edges": [{"node": {"name": "ent"}}]}
        return {"viewer": {"id": "u", "entity": "ent", "username": "u", "email": "u@example.org",
                           "flags": "{}", "teams": teams}}  # fmt: skip
    if variables.get("project") != "proj":
        return {"project": None}
    if "r1" not in (variables.get("name"), variables.get("run"), variables.get("runName")):
        return {"project": {"run": None}}
    first, end = variables.get("minStep", 0), variables.get("maxStep", len(rows))
    run = {
        **{"id": "storage", "name": "r1", "displayName": "brave-fox", "state": "finished"},
        **{"tags": [], "readOnly": True, "projectId": "1", "historyLineCount": len(rows)},
        **{"createdAt": "2026-01-01T00:00:00", "heartbeatAt": "2026-01-01T00:00:00"},
        **{"user": {"name": "u", "username": "u"}, "systemMetrics": "{}", "summaryMetrics": "{}"},
        "config": json.dumps({key: {"value": value} for key, value in config.items()}),
        "historyKeys": {"lastStep": len(rows) - 1, "keys": {}},
        "parquetHistory": {"parquetUrls": [], "liveData": []},
        "history": [json.dumps({"_step": at, **rows[at]}) for at in range(first, end)],
    }
    return {"project": {"projectId": "1", "run": run}}
