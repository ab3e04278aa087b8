"""A small server for a published folder: below a path, with the headers that its own `_headers` says."""

from __future__ import annotations

import contextlib
import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from course_site.publishing.headers import CACHE, EACH_TIME, FILE, Rule, read_file, sent


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the folder below `at`; nothing beside it, and 404.html for what is not there."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would hold each small file back

    def __init__(self, *arguments: object, at: str, rules: list[Rule], directory: str) -> None:
        self.at, self.rules = at, rules
        super().__init__(*arguments, directory=directory)  # type: ignore[arg-type]

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def translate_path(self, path: str) -> str:
        found = unquote(urlsplit(path).path)
        inside = found.removeprefix(self.at) if found.startswith(self.at) else FILE
        # A host reads this file and shows it to nobody.
        return super().translate_path("/" + ("no such file" if inside == FILE else inside))

    def end_headers(self) -> None:
        path = "/" + unquote(urlsplit(self.path).path).removeprefix(self.at)
        said = {CACHE: EACH_TIME, **sent(self.rules, path)}  # as hosts say by themselves
        for name, value in said.items():
            self.send_header(name, value)
        super().end_headers()

    def list_directory(self, path: str | Path) -> None:  # type: ignore[override]
        self.send_error(404)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # a page asks for a dozen files at once
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a browser that goes on to the next page
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextlib.contextmanager
def served(folder: Path, at: str) -> Iterator[str]:
    """Serve a published folder on a free port of this machine; the address ends in `at`."""
    rules = read_file((folder / FILE).read_text(encoding="utf-8"))
    handler = functools.partial(_Handler, at=at, rules=rules, directory=str(folder))
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{at}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
