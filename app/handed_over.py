"""The loopback route through which a second ``modelglass FILE`` opens its file in this process."""

from __future__ import annotations

import hmac
import json
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import workspace
from app.actors import LOCAL_OWNER
from app.instance import BODY, HEADER, LOOPBACK, OPEN
from app.services import opening
from core.errors import ModelError


async def open_file(request: Request) -> Response:
    """Open the file that another process of this person names; for loopback with the secret only."""
    held = workspace.current().instance
    local = request.client is not None and request.client.host in (LOOPBACK, "::1")
    given = request.headers.get(HEADER, "")
    if held is None or not local or not hmac.compare_digest(given.encode(), held.secret.encode()):
        return JSONResponse({"error": "refused"}, 403)
    path = await _named(request)
    if path is None:
        return JSONResponse({"error": "expected a JSON object with a path"}, 400)
    try:
        artifact = await run_in_threadpool(opening.open_path, LOCAL_OWNER, path)
    except ModelError as error:
        return JSONResponse({"error": str(error)}, 422)
    return JSONResponse({"artifact": artifact})


routes: Final = [Route(OPEN, open_file, methods=["POST"])]
"""What ``app.main`` adds to the server."""


async def _named(request: Request) -> str | None:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BODY:
            return None
    try:
        data: Any = json.loads(body)
    except ValueError:
        return None
    path = data.get("path") if isinstance(data, dict) else None
    return path if isinstance(path, str) and path else None
