"""Puts a script at the top of the page's HTML, before gradio's own scripts.

`launch(head=…)` is added by gradio's client once its modules run, which is too late for a script that
they must find in place. Knows nothing of what the script does.
"""

from typing import Any


class EarlyScript:
    """ASGI middleware: inserts `code` after <head> of the page at "/"; everything else passes through."""

    def __init__(self, app: Any, code: str):
        self._app = app
        self._tag = f"<head><script>{code}</script>".encode()

    async def __call__(self, scope: dict, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] not in ("", "/"):
            await self._app(scope, receive, send)
            return
        start: dict = {}
        body = b""

        async def collect(message: dict) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            changed = body.replace(b"<head>", self._tag, 1)
            headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
            await send(start | {"headers": [*headers, (b"content-length", str(len(changed)).encode())]})
            await send({"type": "http.response.body", "body": changed})

        await self._app(scope, receive, collect)
