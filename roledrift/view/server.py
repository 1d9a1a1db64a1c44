"""The server behind the page: it reads runs, answers this machine, and writes nothing."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any

from roledrift.errors import RoleDriftError, StoreError
from roledrift.view import documents
from roledrift.view.assets import PAGE, STATIC, asset
from roledrift.view.folder import Folder

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise ImportError(
        f"roledrift view needs starlette and uvicorn ({error}): pip install starlette uvicorn"
    ) from error

COOKIE = "roledrift_view"
_KINDS = {"js": "text/javascript", "css": "text/css"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_MOST_STATISTICS = 40
_Next = Callable[[Request], Awaitable[Response]]


def application(folder: Folder, token: str = "", names: tuple[str, ...] = ()) -> Starlette:
    """Make the web application.

    Args:
        folder: The runs.
        token: What a browser has to know; empty lets every browser in that asks for one of
            ``names``.
        names: Host names that are answered; empty for all. It keeps the page of a stranger from
            reading runs by pointing its own name at this machine.
    """

    async def guard(request: Request, call_next: _Next) -> Response:
        denied = _denied(request, token, names)
        if denied is not None:
            response = denied
        elif token and "token" in request.query_params:
            response = RedirectResponse(request.url.path, status_code=303)
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        else:
            response = await call_next(request)
        response.headers.update(_HEADERS)
        return response

    def listing(_request: Request) -> Response:
        return _answer(folder.listing)

    def run(request: Request) -> Response:
        query, key = request.query_params, request.path_params["key"]
        wanted = query.getlist("s")[:_MOST_STATISTICS]
        slots, known = query.get("slots") == "1", query.get("known", "")
        return _answer(lambda: folder.document(key, wanted, known, slots=slots))

    def pairs(request: Request) -> Response:
        key, incident = request.path_params["key"], request.query_params.get("incident", "")
        return _answer(lambda: folder.pairs(key, incident))

    def texts(request: Request) -> Response:
        query, key = request.query_params, request.path_params["key"]
        step = query.get("step", "0")
        at = int(step) if step.lstrip("-").isdecimal() and len(step) < 18 else 0
        return _answer(lambda: folder.run(key).texts(query.get("role", ""), at))

    routes = [
        Route("/", _page),
        Route("/static/{name}", _static),
        Route("/api/runs", listing),
        Route("/api/runs/{key}", run),
        Route("/api/runs/{key}/pairs", pairs),
        Route("/api/runs/{key}/texts", texts),
    ]
    return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)])


def _page(_request: Request) -> Response:
    return Response(asset(PAGE), media_type="text/html")


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        return Response("no such file", status_code=404)
    return Response(asset(name), media_type=_KINDS[name.rpartition(".")[2]])


def _denied(request: Request, token: str, names: tuple[str, ...]) -> Response | None:
    host = (request.url.hostname or "").strip("[]").lower()
    if names and host not in names:
        return Response(f"This server answers as {' or '.join(names)} only.\n", status_code=421)
    if token:
        given = request.query_params.get("token") or request.cookies.get(COOKIE) or ""
        if not secrets.compare_digest(given.encode(), token.encode()):
            sentence = "Open the address that `roledrift view` printed: it ends with a token.\n"
            return Response(sentence, status_code=403)
    return None


def _answer(ask: Callable[[], dict[str, Any]]) -> Response:
    """A document, or the sentence why there is none."""
    try:
        return Response(documents.dumps(ask()), media_type="application/json")
    except (RoleDriftError, OSError) as error:
        body = documents.harmless({"error": str(error)})
        return Response(documents.dumps(body), status_code=404, media_type="application/json")


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Raises:
        StoreError: If the address cannot be had.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        raise StoreError(
            f"cannot listen at {host}:{port} ({error.strerror or error}); "
            "give another --port, or --port 0 for any free one"
        ) from error
    return bound


def is_local(host: str) -> bool:
    """True if an address can be reached from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def serve(folder: Folder, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted.

    Args:
        folder: The runs.
        host: Address to listen at. One that others can reach needs a token, which is made here.
        port: 0 for any free one.
        say: Gets the address to open once the server listens.

    Raises:
        StoreError: If the address cannot be had.
    """
    with listen(host, port) as bound:
        token = "" if is_local(host) else secrets.token_urlsafe(16)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound.getsockname()[1]}/"
        names = () if token else (host, "localhost", "127.0.0.1", "::1")
        config = uvicorn.Config(
            application(folder, token, names), log_level="warning", access_log=False, lifespan="off"
        )
        say(f"{address}?token={token}" if token else address)
        uvicorn.Server(config).run(sockets=[bound])
