"""The headers of a published site, as the two kinds of host want them: a file `_headers`, and a piece of nginx.

A file whose name holds the hash of its content is never asked for again, a font once a month; all else is asked for
each time, and sent only if it changed. In `_headers` every rule that fits adds its headers, and one that two rules give
has both values, so that no file may have two rules for its keeping: what is asked for each time has none there, as
Netlify and Cloudflare Pages say so of everything by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from course_site.publishing.policy import NAME, OTHER_HEADERS

FILE = "_headers"
# Cloudflare Pages takes no more rules, and no longer line.
MOST_RULES, LONGEST_LINE = 100, 2000
CACHE = "Cache-Control"
EACH_TIME = "no-cache"
FOR_EVER = "public, max-age=31536000, immutable"
A_MONTH = "public, max-age=2592000"
# Sheets as `hashed` names them; and the theme's script, which the build leaves as it came.
_HASHED = re.compile(r"\.[0-9a-f]{16}\.css$|/assets/javascripts/[\w.-]+\.[0-9a-f]{8}\.min\.js$")
_FONTS = "assets/vendor/fonts/"


class Rule(NamedTuple):
    """A rule: the path it is for, in which a last `*` stands for anything, and its headers."""

    path: str
    headers: Mapping[str, str]


class HeadersError(ValueError):
    """Rules that a host does not take."""


def kept_for(name: str) -> str:
    """Return how long a file is kept without asking for it, by its path in the site.

    >>> kept_for("assets/javascripts/bundle.a5f9d56c.min.js"), kept_for("index.html")
    ('public, max-age=31536000, immutable', 'no-cache')
    """
    if _HASHED.search(f"/{name}"):
        return FOR_EVER
    return A_MONTH if name.startswith(_FONTS) else EACH_TIME


def rules(site: Path, policy: str) -> list[Rule]:
    """Return the rules of a site, the one for all files first.

    Raises:
        HeadersError: there are more than a host takes, or a line is too long for it.
    """
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    found = [Rule("/*", {NAME: policy, **OTHER_HEADERS})]
    found += [Rule(f"/{name}", {CACHE: FOR_EVER}) for name in names if kept_for(name) == FOR_EVER]
    if any(kept_for(name) == A_MONTH for name in names):
        found.append(Rule(f"/{_FONTS}*", {CACHE: A_MONTH}))
    longest = max(len(line) for line in as_file(found).splitlines())
    if len(found) > MOST_RULES or longest > LONGEST_LINE:
        raise HeadersError(
            f"{FILE} would have {len(found)} rules and a line of {longest} characters; Cloudflare Pages takes "
            f"{MOST_RULES} and {LONGEST_LINE}: take scripts out of the pages, or files with a hash"
        )
    return found


def as_file(found: Sequence[Rule]) -> str:
    """Return `_headers`."""
    lines = ["# Files that are not named below are asked for each time; the host says so by itself."]
    for rule in found:
        lines += [rule.path, *(f"  {name}: {value}" for name, value in rule.headers.items())]
    return "\n".join(lines) + "\n"


def read_file(text: str) -> list[Rule]:
    """Read `_headers`."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line[0].isspace():
            found.append((line.strip(), {}))
            continue
        name, _, value = line.strip().partition(":")
        found[-1][1][name] = value.strip()
    return [Rule(*one) for one in found]


def sent(found: Sequence[Rule], path: str) -> dict[str, str]:
    """Return what is sent with a file: the headers of all rules that fit, a name's values joined.

    >>> sent([Rule("/*", {"A": "1"}), Rule("/b/*", {"A": "2"})], "/b/c")
    {'A': '1, 2'}
    """
    said: dict[str, list[str]] = {}
    for rule in found:
        if path == rule.path or (rule.path.endswith("*") and path.startswith(rule.path[:-1])):
            for name, value in rule.headers.items():
                said.setdefault(name, []).append(value)
    return {name: ", ".join(values) for name, values in said.items()}


def as_nginx(policy: str, at: str, folder: str = "/srv/percent-of-peak/") -> str:
    """Return a file for /etc/nginx/conf.d/.

    Args:
        at: the path where the site stands, with a slash at both ends.
        folder: where its files lie.
    """
    said = {NAME: policy, **OTHER_HEADERS}
    bare = f"    location = {at[:-1]} {{ return 301 {at}; }}\n" if at != "/" else ""
    headers = "\n".join(f'        add_header {name} "{value}" always;' for name, value in said.items())
    return f"""\
# For /etc/nginx/conf.d/. Set server_name and the folder; for https, add the certificate. Each header is said in the
# location itself: nginx forgets those of the server wherever a location says one of its own.
map $uri $percent_of_peak_kept {{
    default "{EACH_TIME}";
    "~{_HASHED.pattern}" "{FOR_EVER}";
    "~^{re.escape(at)}{_FONTS}" "{A_MONTH}";
}}

server {{
    listen 80;
    server_name _;
{bare}    location {at} {{
        alias {folder};
        index index.html;
        error_page 404 {at}404.html;
        gzip on;
        gzip_types text/css text/javascript application/javascript application/json image/svg+xml;
{headers}
        add_header {CACHE} $percent_of_peak_kept always;
    }}
}}
"""
