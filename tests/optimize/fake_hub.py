"""A stand-in for the Hugging Face hub over HTTP, for its real client: one repository, a commit for each push."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]


class Hub:
    """What the stand-in holds.

    Attributes:
        commits: files of each commit, by its digest, oldest first.
        refuse: a status that every request gets, and the hub's own code of the error.
    """

    def __init__(self) -> None:
        self.commits: dict[str, Files] = {}
        self.refuse: tuple[int, str] | None = None
        self.address = ""

    def commit(self, files: Files) -> str:
        """Add files to those of the last commit; return the new one."""
        whole = (list(self.commits.values())[-1] if self.commits else {}) | files
        name = hashlib.sha1(repr(sorted(whole.items())).encode()).hexdigest()
        self.commits[name] = whole
        return name

    def at(self, revision: str) -> str | None:
        """Return the commit that a revision means."""
        return list(self.commits)[-1] if revision == "main" else revision if revision in self.commits else None


@contextmanager
def running() -> Iterator[Hub]:
    """Serve a hub on this machine."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.body()
            if hub.refuse:
                return self.reply(hub.refuse[0], {"error": "no"}, code=hub.refuse[1])
            if self.path.endswith("/repos/create"):
                name = json.loads(body)["name"]
                return self.reply(200, {"url": f"{hub.address}/me/{name}", "id": f"me/{name}"})
            if "/preupload/" in self.path:
                asked = json.loads(body)["files"]
                kept = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in asked]
                return self.reply(200, {"files": kept})
            if self.path.endswith("/validate-yaml"):
                return self.reply(200, {"errors": [], "warnings": []})
            lines = [json.loads(line) for line in body.splitlines()]
            sent = [line["value"] for line in lines if line["key"] == "file"]
            made = hub.commit({file["path"]: base64.b64decode(file["content"]) for file in sent})
            return self.reply(
                200, {"commitUrl": f"{hub.address}/me/chain/commit/{made}", "commitOid": made, "success": True}
            )

        def body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            return b"".join(chunks)

        def do_GET(self) -> None:
            self.give()

        def do_HEAD(self) -> None:
            self.give()

        def give(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if hub.refuse:
                return self.reply(hub.refuse[0], {"error": "no"}, code=hub.refuse[1])
            if found := re.fullmatch(r"/api/models/me/chain(?:/revision/([^/]+))?", path):
                commit = hub.at(found[1] or "main")
                if commit is None:
                    return self.reply(404, {"error": "no"}, code="RevisionNotFound")
                files = hub.commits[commit]
                siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
                return self.reply(200, {"id": "me/chain", "sha": commit, "siblings": siblings})
            if found := re.fullmatch(r"/api/models/me/chain/tree/([^/]+)/?", path):
                files = hub.commits[hub.at(found[1]) or ""]
                tree = [{"type": "file", "path": n, "size": len(c), "oid": _oid(c)} for n, c in files.items()]
                return self.reply(200, tree)
            if found := re.fullmatch(r"/me/chain/resolve/([^/]+)/(.+)", path):
                commit = hub.at(found[1]) or ""
                content = hub.commits[commit][found[2]]
                return self.reply(200, content, ETag=f'"{_oid(content)}"', **{"X-Repo-Commit": commit})
            return self.reply(404, {"error": path}, code="RepoNotFound")

        def reply(self, status: int, content: object, code: str = "", **headers: str) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in (headers | {"X-Error-Code": code, "Content-Length": str(len(body))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hub
        server.shutdown()


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
