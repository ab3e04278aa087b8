"""The folder that is published: site/, with the files that tell a host what to send, and with sheets it may keep.

It is written under another name beside its place and takes that place when it is complete. What lies there already is
replaced only if we wrote all of it: a list of its files lies in it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from course_site.publishing import hashed, headers, policy
from course_site.site.build import swap

LIST = ".percent-of-peak.json"
ABOUT, NGINX, NO_JEKYLL = "PUBLISHED.md", "nginx.conf", ".nojekyll"
NO_ADDRESS = "/"


class NotPublished(RuntimeError):
    """Reason why nothing was written, in one line."""


def path_of(site_url: str) -> str:
    """Return where on its host a site stands.

    >>> path_of("https://host/peak/"), path_of("")
    ('/peak/', '/')
    """
    return f"/{urlsplit(site_url).path.strip('/')}/".replace("//", "/") if site_url else NO_ADDRESS


def publish(site: Path, folder: Path, *, site_url: str = "", in_pages: bool = False) -> None:
    """Write the folder.

    Args:
        site_url: where it will stand; "" where nobody said.
        in_pages: write the policy into each page too, for a host that sends no headers.
    Raises:
        NotPublished: there is no site, the folder is not ours, or a page cannot have a policy.
    """
    site, folder = site.resolve(), folder.resolve()
    if not (site / "index.html").is_file():
        raise NotPublished(f"there is no {site.name}/index.html: run `nox -s docs` first")
    if folder.is_relative_to(site) or site.is_relative_to(folder):
        raise NotPublished(f"{folder} and {site} lie in each other: name a folder beside it")
    _refuse_what_is_not_ours(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        new = scratch / "new"
        shutil.copytree(site, new)
        try:
            _add(new, site_url, in_pages)
        except (policy.PolicyError, headers.HeadersError) as error:
            raise NotPublished(str(error)) from None
        names = sorted(path.relative_to(new).as_posix() for path in _files(new))
        (new / LIST).write_text(json.dumps({"files": names}, indent=0), encoding="utf-8")
        if folder.exists():
            _refuse_what_is_not_ours(folder)  # somebody may have been there meanwhile
        swap(new, folder, scratch / "old")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _add(new: Path, site_url: str, in_pages: bool) -> None:
    hashed.name_sheets(new)
    hashes = policy.scripts_of(new)
    if in_pages:
        for path in policy.pages_of(new):
            path.write_text(
                policy.with_policy(path.read_text(encoding="utf-8"), hashes), encoding="utf-8", newline=""
            )
    said = policy.policy(hashes)
    (new / headers.FILE).write_text(headers.as_file(headers.rules(new, said)), encoding="utf-8")
    (new / NGINX).write_text(headers.as_nginx(said, path_of(site_url)), encoding="utf-8")
    (new / NO_JEKYLL).touch()
    (new / ABOUT).write_text(_about(site_url, in_pages), encoding="utf-8")


def _refuse_what_is_not_ours(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise NotPublished(f"{folder} is a file")
    found = {path.relative_to(folder).as_posix() for path in _files(folder)}
    try:
        ours = {LIST, *json.loads((folder / LIST).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        ours = set()
    strange = sorted(found - ours)
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        raise NotPublished(
            f"{folder} has {strange[0]}{more}, which we did not write: name a new or an empty folder"
        )


def _files(folder: Path) -> Iterator[Path]:
    """Yield all that is no folder, links too; of a folder that is a link, the link."""
    for base, folders, names in os.walk(folder):
        here = Path(base)
        yield from (here / name for name in names)
        yield from (here / name for name in folders if (here / name).is_symlink())


def _about(site_url: str, in_pages: bool) -> str:
    at = path_of(site_url)
    where = f"It is made for {site_url}." if site_url else "Nobody said where it will stand (`site_url`)."
    carried = (
        "Here each page carries the policy, all but `frame-ancestors`: no page can forbid to be framed."
        if in_pages
        else "`nox -s publish -- FOLDER --in-pages` writes the policy into each page; only `frame-ancestors` is then "
        "missing."
    )
    return f"""\
# This folder is the whole site

Put all of it on a static host, hidden files too. {where}

- **Netlify, Cloudflare Pages**, and hosts that read the same form: `{headers.FILE}` says what is sent with each file.
  Publish this folder as it is, without a build. Its paths begin at this folder.
- **nginx**: `{NGINX}` goes to `/etc/nginx/conf.d/`; it serves the site at `{at}`.
- **GitHub Pages** sends no headers of ours: no content policy, and it says itself how long a file is kept, also what
  could be kept for ever and what should be asked for each time. {carried}
- **Any other host**: send the headers of the first rule of `{headers.FILE}` with every file.

What the headers say: scripts, styles, pictures and fonts come from this site alone. A script that stands in a page runs
only if its hash is listed, so the headers belong to these very pages, and are published with them. Styles may stand in
a page, since charts are drawn with style attributes. Files with a hash in their names are kept for a year, fonts for a
month, all else is asked for each time and sent if it changed.

Written by `nox -s publish`, which replaces this folder only while it holds nothing that `{LIST}` does not list.
"""
