"""Rights of a browser on a page: the content security policy, and the other headers that go with every file.

Scripts come from the site itself; the few that stand in a page are named by their hashes, so nobody else's runs. Styles
may stand in a page: charts are drawn with style attributes, and a page's title for paper is a style of its own.
"""

from __future__ import annotations

import hashlib
import html
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from course_site.pages.html_reader import HtmlReader

# What is not named here comes from nowhere: no frames, no plug-ins, no media, no other host.
DIRECTIVES: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",  # and the hashes
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",  # the theme's icons are data: in its style sheet
    "font-src": "'self'",
    "connect-src": "'self'",
    "worker-src": "'self'",  # keeps the run view when the network goes
    "base-uri": "'none'",
    "form-action": "'none'",  # scripts read the forms; none is ever sent
    "frame-ancestors": "'none'",
}
# A policy in a page cannot say who may frame it: browsers ignore that there.
HEADER_ONLY = ("frame-ancestors",)
OTHER_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
NAME = "Content-Security-Policy"
# Types that a browser runs; whatever else stands between <script> tags is data.
_RUNS = ("", "text/javascript", "application/javascript", "module")
_HEAD = re.compile(r"<head\b[^>]*>", re.IGNORECASE)
_CHARSET = re.compile(r"""<meta\s+charset=["']?[\w-]+["']?\s*/?>""", re.IGNORECASE)


class PolicyError(ValueError):
    """A page that no policy of ours can allow: its file, and what stands in it."""


class _Inline(HtmlReader):
    """The scripts that stand in a page, and what would run besides them: handlers and addresses that are scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.refused: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.refused.append(f'{self.line}: <{tag} {name}="{value}">')
        self._inside = (
            tag == "script" and "src" not in values and (values.get("type") or "").strip().lower() in _RUNS
        )
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


def inline_scripts(text: str, name: str = "") -> list[str]:
    """Return the scripts that stand in a page's text, in its order.

    Raises:
        PolicyError: it has a handler in an attribute, or a link that is a script, which hashes do not allow.
    """
    page = _Inline()
    page.feed(text)
    page.close()
    if page.refused:
        raise PolicyError(f"{name}:{page.refused[0]}: put it into a script of docs/assets/js")
    return page.scripts


def hash_of(script: str) -> str:
    """Return the source expression for a script that stands in a page.

    >>> hash_of("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    lines = script.replace("\r\n", "\n").replace("\r", "\n")  # as a browser reads them
    return f"'sha256-{b64encode(hashlib.sha256(lines.encode()).digest()).decode()}'"


def scripts_of(site: Path) -> dict[str, str]:
    """Return the scripts in all pages of a site by their hashes, in the order of the hashes."""
    found: dict[str, str] = {}
    for path in pages_of(site):
        for script in inline_scripts(path.read_text(encoding="utf-8"), path.relative_to(site).as_posix()):
            found[hash_of(script)] = script
    return dict(sorted(found.items()))


def pages_of(site: Path) -> Iterator[Path]:
    """Yield the pages of a site."""
    yield from sorted(site.rglob("*.html"))


def policy(hashes: Iterable[str], leave_out: Iterable[str] = ()) -> str:
    """Return the policy as a header has it.

    >>> policy([]).split("; ")[:2]
    ["default-src 'none'", "script-src 'self'"]
    """
    said = dict(DIRECTIVES)
    said["script-src"] = " ".join([said["script-src"], *hashes])
    return "; ".join(f"{name} {value}" for name, value in said.items() if name not in leave_out)


def with_policy(text: str, hashes: Iterable[str]) -> str:
    """Return a page that carries the policy itself, for a host that sends no headers.

    It stands first in the head, as it holds for what comes after it; only the encoding, which a browser looks for in
    the first kilobyte, stands before it.
    """
    head = _HEAD.search(text)
    if head is None:
        raise PolicyError("a page has no <head>")
    at = head.end()
    charset = _CHARSET.search(text, at, at + 512)
    at = charset.end() if charset else at
    said = html.escape(policy(hashes, leave_out=HEADER_ONLY), quote=False)
    return f'{text[:at]}<meta http-equiv="{NAME}" content="{said}">{text[at:]}'
