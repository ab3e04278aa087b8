"""The command behind ``nox -s publish``: say what is missing, write the folder for a static host, try it in Chromium.

With ``--moved`` it writes down what the records of this tree have that the last commit has not, for who opens a change.

Exit codes: 0 done, and nothing is missing; 1 something is missing, was not written, or is refused; 2 a mistake in the
command.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from course_site.site.about import FILE, AboutError, about

# Where a folder is tried that nobody gave an address: below a path, where an address from the root would lead nowhere.
SOMEWHERE = "/peak/"


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run the command with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    try:
        if options.check:
            return _check(root, online=options.online)
        if options.moved:
            return _moved(root, options.moved)
        if options.try_it:
            return _try(root, options.folder)
        return _publish(root, options.folder, in_pages=options.in_pages)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"publish: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s publish --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("folder", nargs="?", type=Path, metavar="FOLDER", help="write site/ into it, with headers for hosts")
    add("--check", action="store_true", help="say what is missing, a line each; write nothing")
    add("--online", action="store_true", help="with --check: ask the network for each host of a link")
    add("--in-pages", action="store_true", help="write the content policy into each page too")
    add("--try", action="store_true", dest="try_it", help="open every page of FOLDER in Chromium")
    add(
        "--moved",
        type=Path,
        metavar="FILE",
        help="write what was measured since the last commit, and what moved",
    )
    options = parser.parse_args(arguments)
    if options.check + bool(options.folder) + bool(options.moved) != 1:
        parser.error("one of these: a FOLDER, --check, --moved FILE")
    if options.online and not options.check:
        parser.error("--online is for --check")
    if options.try_it and not options.folder:
        parser.error("--try: name a FOLDER")
    if options.in_pages and (options.try_it or not options.folder):
        parser.error("--in-pages is for writing a FOLDER")
    return options


def _check(root: Path, *, online: bool) -> int:
    from course_site.publishing.missing import missing

    site = root / "site"
    lines = 0
    for line in [*missing(root, site), *(_unknown(site) if online else ())]:
        print(line, flush=True)
        lines += 1
    print(f"publish: {lines or 'nothing'} {'is' if lines < 2 else 'are'} missing", flush=True)
    return 1 if lines else 0


def _unknown(site: Path) -> Iterator[str]:
    from course_site.publishing.missing import hosts_of, unknown_hosts

    hosts = hosts_of(site)
    for host, why in unknown_hosts(hosts):
        yield f"{hosts[host]}: {host} is not there: {why}"


def _moved(root: Path, file: Path) -> int:
    from course_site.publishing.moved import moved_since
    from course_site.records.record import RecordError

    try:
        said = moved_since(root)
    except RecordError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    file.write_text(said, encoding="utf-8")
    print(said, end="", flush=True)
    return 0


def _publish(root: Path, folder: Path, *, in_pages: bool) -> int:
    from course_site.publishing.folder import ABOUT, NotPublished, publish

    try:
        publish(root / "site", folder, site_url=_site_url(root), in_pages=in_pages)
    except NotPublished as error:
        print(f"publish: {error}; nothing was written", file=sys.stderr)
        return 1
    print(f"publish: {folder} is written; {folder / ABOUT} says what a host does with it", flush=True)
    print("publish: `nox -s publish -- --check` says what is missing", flush=True)
    return 0


def _site_url(root: Path) -> str:
    try:
        return about(tomllib.loads((root / FILE).read_text(encoding="utf-8"))).site_url
    except AboutError:
        return ""


def _try(root: Path, folder: Path) -> int:
    from playwright.sync_api import sync_playwright

    from course_site.printing.command import CannotStart, find_chromium
    from course_site.publishing.folder import path_of
    from course_site.publishing.headers import FILE as HEADERS
    from course_site.publishing.served import served
    from course_site.publishing.tried import all_pages, tried

    if not (folder / HEADERS).is_file():
        print(f"publish: {folder} has no {HEADERS}: `nox -s publish -- {folder}` writes it", file=sys.stderr)
        return 1
    try:
        chromium = find_chromium()
    except CannotStart as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    began = time.monotonic()
    url = _site_url(root)
    at = path_of(url) if url else SOMEWHERE
    wrong = 0
    with served(folder, at) as base, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for line in tried(browser, folder, base):
            print(line, flush=True)
            wrong += 1
        browser.close()
    pages = len(all_pages(folder))
    seconds = time.monotonic() - began
    print(f"publish: {pages} pages below {at}, {wrong} faults, {seconds:.0f} s", flush=True)
    return 1 if wrong else 0
