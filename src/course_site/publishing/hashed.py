"""Style sheets by names that say what is in them, so that a browser may keep them for ever.

The theme's own names do have a hash, of what the theme shipped; the build takes from its sheets what no page needs, so
the same name holds something else after the next build. Scripts keep their names: some look for the site's root in
their own address. The pages of the run view keep theirs too, as their service worker knows files by name.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from pathlib import Path

from course_site.publishing.policy import pages_of

_SHEET = re.compile(r'(<link rel="stylesheet" href=")([^"?#:]+\.css)(">)')
_LEFT = "handbook/run/"


def name_sheets(site: Path) -> dict[str, str]:
    """Copy each style sheet that a page asks for to a name with its hash, and have the pages ask for that.

    Returns:
        The new name of each, both as paths in the site. The old file stays for whoever knows its name.
    """
    new: dict[str, str] = {}
    for page in pages_of(site):
        name = page.relative_to(site).as_posix()
        if f"/{_LEFT}" in f"/{name}":
            continue
        here = posixpath.dirname(name)

        def renamed(link: re.Match[str], here: str = here) -> str:
            target = _target(site, here, link[2])
            if target is None:
                return link[0]
            if target not in new:
                new[target] = _copied(site, target)
            address = posixpath.join(posixpath.dirname(link[2]), posixpath.basename(new[target]))
            return link[1] + address + link[3]

        text = page.read_text(encoding="utf-8")
        if (said := _SHEET.sub(renamed, text)) != text:
            page.write_text(said, encoding="utf-8", newline="")
    return new


def _target(site: Path, here: str, address: str) -> str | None:
    """Return the sheet that an address leads to; from the root of a host it may be any folder's, as in 404.html."""
    if not address.startswith("/"):
        found = posixpath.normpath(posixpath.join(here, address))
        return found if (site / found).is_file() else None
    parts = address.strip("/").split("/")
    below = ("/".join(parts[i:]) for i in range(len(parts)))
    return next((name for name in below if (site / name).is_file()), None)


def _copied(site: Path, name: str) -> str:
    """Copy a sheet to a name with its hash, in the same folder, as it names others from there."""
    data = (site / name).read_bytes()
    stem = name.removesuffix(".css").removesuffix(".min")
    found = f"{stem}.{hashlib.sha256(data).hexdigest()[:16]}.css"
    (site / found).write_bytes(data)
    return found
