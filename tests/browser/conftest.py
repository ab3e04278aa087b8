"""A real Chromium and the built site behind a local server.

COURSE_SITE is the folder of the built site (default: site/), CHROMIUM the browser (default: the system's, else the one
Playwright installed).
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import kept_pages
import kept_tests
import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

SITE = Path(os.environ.get("COURSE_SITE", "site")).resolve()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    # A page asks for a dozen files at once. Of those who wait at the door Python lets in five; the others come again
    # after a second, then after two, then after four.
    request_queue_size = 64


def serve(folder: Path) -> tuple[http.server.ThreadingHTTPServer, str]:
    """Serve a folder on a free port of this machine; the caller shuts the server down."""
    server = _Server(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


# With every window Chromium loads two more pages, for what drops down from its address bar: twice the work of one of
# ours, and nobody types an address here. As the last switch of this name is the only one, it says again what Playwright
# turns off: whatever would hold a page's first picture back, or ask other hosts.
TURNED_OFF = (
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
    "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades", "LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding",
    "PreconnectToSearch", "ThirdPartyStoragePartitioning",
)  # fmt: skip


def launch(playwright: Playwright, *more: str) -> Browser:
    """Chromium, headless; with more switches for what it does not do unasked."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    switches = ["--no-sandbox", f"--disable-features={','.join(TURNED_OFF)}"]
    return playwright.chromium.launch(executable_path=executable, args=[*switches, *more])


def settled(page: Page, address: str) -> Page:
    """The page once its fonts and the theme's scripts have done their work."""
    page.goto(address, wait_until="load")
    page.wait_for_function("document.fonts.status == 'loaded'")
    return quiet(page)


# The longest timer by which a script of ours or the theme's puts off its work is 60 ms. It runs in the same thread as
# this one, which is longer and starts anew with every change: on a slow machine both are slow, and the order stays.
QUIET = """() => new Promise(done => {
  const drawn = async () => {
    await Promise.allSettled(document.getAnimations().filter(a => a.effect.getComputedTiming().endTime < Infinity)
      .map(a => a.finished));
    requestAnimationFrame(() => requestAnimationFrame(() => { seen.disconnect(); done(); }));
  };
  let timer = setTimeout(drawn, 120);
  const seen = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(drawn, 120); });
  seen.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})"""


def quiet(page: Page) -> Page:
    """The page once no script has changed it for a while and nothing on it moves any more."""
    page.evaluate(QUIET)
    return page


def editions_of(site: Path) -> list[str]:
    """The folders of the editions beside the reference: each has a ledger of its own."""
    return sorted(path.parent.name for path in site.glob("*/ledger.json"))


def pages_of(site: Path) -> list[str]:
    """Addresses of all pages of the reference edition, relative to the site."""
    beside = tuple(f"{folder}/" for folder in editions_of(site))
    names = (path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return sorted(name for name in names if not name.startswith(beside))


# An edition beside the reference has the same pages, made of the same parts. One of each kind that it may have of its
# own stands for all: home, a page with numbers and one without, its ledger, a run view and a sheet.
OF_AN_EDITION = (
    "index.html", "workshops/w1_flash_attention.html", "lectures/l3_memory.html", "numbers.html",
    "handbook/run/w1.html", "handbook/run/w1_print.html",
)  # fmt: skip


def of_other_editions(site: Path) -> list[str]:
    """The pages of each further edition that stand for all of its own."""
    return [f"{folder}/{name}" for folder in editions_of(site) for name in OF_AN_EDITION]


# The run views are one page with other words, and so are the maps and the printed sheets: of each kind the longest, a
# lecture's and the opening's stand for the rest. What is special to them is tested for every session in files of their
# own. Of the ledger's pages it is the longest lecture's, the opening's, and one where nothing was measured.
ALIKE = ("handbook/run/", "numbers/")
MAP = "_map.html"
STAND_FOR_ALL = ("w6", "l1", "l5", "opening", "teach_w6")


def each_kind(names: list[str]) -> list[str]:
    """Every page, but of the run views and the sheets those that stand for all."""
    return [
        name
        for name in names
        if not (name.startswith(ALIKE) or name.endswith(MAP))
        or Path(name).stem.removesuffix("_print").removesuffix("_map") in STAND_FOR_ALL
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run."""
    parser.addoption(
        "--anew", action="store_true", help="look at every page and run every test, also what is kept"
    )
    parser.addoption(
        "--keep", action="store_true", help="write pages.json and tests.json: keep what passes in this run"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep what has passed."""
    config.addinivalue_line("markers", "by_page: looks at one page, and is kept with it; see kept_pages.py")
    config.addinivalue_line("markers", "always: a process or a clock decides, so it is kept by nothing")
    config.pluginmanager.register(kept_tests.Plugin(config, SITE))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(kept_pages.Plugin(config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per page; no page at all is a failure, not a skip."""
    if "page_name" in metafunc.fixturenames:
        names = each_kind(pages_of(SITE)) + of_other_editions(SITE)
        if not names:
            raise pytest.UsageError(f"no pages under {SITE}: build the site first with `nox -s docs`")
        # The longest first: one that comes last would keep a worker busy while the other has nothing left to do.
        names.sort(key=lambda name: (SITE / name).stat().st_size, reverse=True)
        metafunc.parametrize("page_name", names)


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    server, address = serve(SITE)
    yield address
    server.shutdown()


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """The one of this process: there can be no second."""
    with sync_playwright() as only:
        yield only


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    chromium = launch(playwright)
    yield chromium
    chromium.close()
