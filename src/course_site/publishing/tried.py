"""Every page of a published folder in Chromium, with the headers that go with it: what is broken, what is refused.

A page is opened, unfolded, and its sliders, choices and search are moved, as scripts that nobody starts are refused
nowhere. Links are those that the browser makes of what stands in the page: each is asked for once.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urlsplit

from course_site.publishing.policy import pages_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Before any script of the page; the policy does not hold for it.
LISTEN = """window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation", e =>
  window.refusedByPolicy.push(`${e.effectiveDirective} ${e.blockedURI} ${e.sample}`.trim()));"""
# All that moves a page without leaving it.
USE = """async () => {
  const all = selector => [...document.querySelectorAll(selector)];
  all("details").forEach(each => { each.open = true; });
  for (const each of all("main input[type=range], main input[type=number], main select")) {
    if (each.options) each.selectedIndex = each.options.length - 1; else each.value = each.max || each.value;
    each.dispatchEvent(new Event("input", {bubbles: true}));
    each.dispatchEvent(new Event("change", {bubbles: true}));
  }
  all("main input[type=radio], main input[type=checkbox]").forEach(each => each.click());
  all(".predict .take, main .explorable button").forEach(each => each.click());
  const search = document.querySelector(".search-open");
  if (search) {
    search.click();
    const box = document.querySelector("dialog[open] input, [role=dialog] input");
    if (box) { box.value = "tile"; box.dispatchEvent(new Event("input", {bubbles: true})); }
  }
  await new Promise(done => setTimeout(done, 60));
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
LINKS = """() => [
  [...document.querySelectorAll("a[href], link[href], area[href], [src], use[href], image[href]")]
    .map(each => each.src || (each.href && each.href.baseVal !== undefined
      ? new URL(each.href.baseVal, document.baseURI).href : each.href)).filter(Boolean),
  [...document.querySelectorAll("[id], a[name]")].flatMap(each => [each.id, each.name]).filter(Boolean)]"""
# Without site_url it cannot know where the site begins: it asks at the host's root first, and then at each folder.
MISSING_PAGE = "404.html"


def tried(browser: Browser, folder: Path, base: str, names: Iterable[str] | None = None) -> Iterator[str]:
    """Open pages of a published folder, and yield what is wrong, a line each.

    Args:
        base: the address of the folder, with a slash at its end; see `served`.
        names: the pages, as paths in the folder; all of them if None.
    """
    linked: dict[str, str] = {}
    ids: dict[str, set[str]] = {}
    for _, group in itertools.groupby(
        all_pages(folder) if names is None else names, key=lambda name: _edition_of(folder, name)
    ):
        # What a reader has done is kept for all editions, and one may lack a question that another one has asked.
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        context.add_init_script(LISTEN)
        page = context.new_page()
        heard: list[str] = []
        _listen(page, heard)
        for name in group:
            heard.clear()
            page.goto(base + name, wait_until="load")
            page.evaluate(USE)
            links, ids[base + name] = page.evaluate(LINKS)
            for address in links:
                linked.setdefault(address, name)
            for fault in dict.fromkeys([*heard, *page.evaluate("() => window.refusedByPolicy")]):
                if not (name == MISSING_PAGE and fault.startswith("404 ") and base not in fault):
                    yield f"{name}: {fault}"
        context.close()
    yield from broken(linked, ids, base)


def _edition_of(folder: Path, name: str) -> str:
    """Return the folder of the edition that a page is of; "" at the root."""
    first = name.split("/")[0]
    return first if (folder / first / "ledger.json").is_file() else ""


def all_pages(folder: Path) -> Sequence[str]:
    """Return the pages of a folder, by their paths in it."""
    return [path.relative_to(folder).as_posix() for path in pages_of(folder)]


def _listen(page: Page, heard: list[str]) -> None:
    """Note whatever fails on a page: refusals, missing files, errors of scripts."""

    def said(message: Any) -> None:
        if "Content Security Policy" in message.text:
            heard.append(f"refused: {message.text}")

    def answered(response: Any) -> None:
        if response.status >= 400:
            heard.append(f"{response.status} {response.url}")

    page.on("console", said)
    page.on("pageerror", lambda error: heard.append(f"a script fails: {error}"))
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.on("response", answered)


def broken(linked: Mapping[str, str], ids: Mapping[str, Collection[str]], base: str) -> Iterator[str]:
    """Ask for each address of this host, and yield those that are not there or not below the site's path.

    Args:
        linked: addresses, each with the first page that has it.
        ids: of the pages that were opened, by their addresses.
    """
    host = urlsplit(base).netloc
    asked: dict[str, int] = {}
    with contextlib.closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        for whole, name in linked.items():
            address, fragment = urldefrag(whole)
            if urlsplit(address).netloc != host:
                continue
            if not address.startswith(base):
                yield f"{name}: {address} leaves the site's path"
                continue
            if address not in asked:
                connection.request("HEAD", urlsplit(address).path)
                with connection.getresponse() as answer:
                    asked[address] = answer.status
            if asked[address] >= 400:
                yield f"{name}: {asked[address]} {address}"
            named = unquote(fragment).split(":~:")[0]
            if named and named != "top" and address in ids and named not in ids[address]:
                yield f"{name}: {whole}: there is no such id"
