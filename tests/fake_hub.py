"""A model hub of our own on a local port, for tests: it speaks the few routes a download needs.

A repository is a folder. "gated/…" refuses its files, any name it does not know is not found. Counts
what it was asked for, so a test can say that no weights were sent.
"""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """Serves `repos` (name → folder) at `url` until `close`; `asked` lists the paths requested."""

    def __init__(self, repos: dict[str, Path]):
        self.repos = repos
        self.asked: list[str] = []
        hub = self

        class Handler(_Handler):
            owner = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: FakeHub

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def log_message(self, *args):
        pass

    def _answer(self):
        path = self.path.split("?")[0]
        self.owner.asked.append(f"{self.command} {path}")
        if path == "/":
            return self._send(200, b"")
        repo, rest = self._split(path)
        if repo not in self.owner.repos:
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        if path.startswith("/api/models/"):
            return self._send(200, self._listing(repo, rest).encode())
        file = self.owner.repos[repo] / rest.split("/", 2)[-1]
        if repo.startswith("gated/"):
            return self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
        if not file.is_file():
            return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        body = file.read_bytes()
        headers = {"ETag": f'"{hashlib.sha1(body).hexdigest()}"', "X-Repo-Commit": COMMIT}
        return self._send(200, body, headers)

    def _split(self, path: str) -> tuple[str, str]:
        parts = path.removeprefix("/api/models/").lstrip("/").split("/")
        return "/".join(parts[:2]), "/".join(parts[2:])

    def _listing(self, repo: str, rest: str) -> str:
        files = sorted(path for path in self.owner.repos[repo].rglob("*") if path.is_file())
        root = self.owner.repos[repo]
        if rest.startswith("tree/"):
            entries = [
                {"type": "file", "path": str(path.relative_to(root)), "size": path.stat().st_size, "oid": "0" * 40}
                for path in files
            ]
            return json.dumps(entries)
        siblings = [{"rfilename": str(path.relative_to(root)), "size": path.stat().st_size} for path in files]
        return json.dumps({"id": repo, "sha": COMMIT, "siblings": siblings, "gated": False, "private": False})

    def _send(self, status: int, body: bytes, headers: dict | None = None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
