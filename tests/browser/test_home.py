"""Home: the road says where its reader is, and keeps it on the device; a missing page finds its site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import SITE, quiet, settled
from playwright.sync_api import Browser, Route, expect

L1 = "lectures/l1_what_a_gpu_is.html"


def test_the_first_screen_is_of_the_record() -> None:
    """Its card, its size, its two numbers, and two bars as long as these are."""
    home = (SITE / "index.html").read_text(encoding="utf-8")
    race = home[home.index('<div class="race">') : home.index('id="one-road"')]
    rows = {row["name"]: row for row in json.loads((SITE / "ledger.json").read_text())["values"]}
    naive, library = (rows[f"opening.{name}"] for name in ("naive", "library"))
    job = re.sub("<[^>]+>", "", race[: race.index("</p>")]).replace("&nbsp;", " ").replace("\xa0", " ")
    sides = [part.partition("=")[2] for part in naive["workload"].split(",")]
    assert f"{sides[1]} × {sides[2]} numbers, fp32, on one {naive['gpu']}" in job
    shown = [re.sub("<[^>]+>", "", text).replace("\xa0", " ") for text in re.findall("<b>(.*?)</b>", race)]
    assert shown == [f"{naive['value'] / 1000:.0f} ms", f"{library['value'] / 1000:.2f} ms"]
    widths = [float(width) for width in re.findall(r'<rect width="([\d.]+)"', race)]
    assert widths[1] / widths[0] == pytest.approx(library["value"] / naive["value"], abs=1e-3)


def test_the_road_says_where_you_are_and_takes_it_along(browser: Browser, base: str, tmp_path: Path) -> None:
    """From a folder, as an empty browser shows it; then with a page read, a lab done, a prediction made."""
    context = browser.new_context(accept_downloads=True)
    page = settled(context.new_page(), (SITE / "index.html").as_uri())
    expect(page.locator(".stops .known")).to_have_count(0)
    stop = page.locator(f".stops [data-page='{L1}']")
    labs, asked = stop.get_attribute("data-labs").split(), int(stop.get_attribute("data-predictions"))
    assert labs
    assert asked
    page.evaluate(
        """([page, lab]) => {
          const progress = PercentOfPeak.progress;
          progress.open('start_here.html', 'Start'); progress.finish('start_here.html');
          progress.open(page, 'L1');
          progress.predict(page + '#a', {page: page, answer: 'b', right: true});
          progress.tick(lab, true);
        }""",
        [L1, labs[0]],
    )
    known = f"begun · 1 of {asked} predictions · {'lab done' if len(labs) == 1 else f'1 of {len(labs)} labs done'}"
    drawn = page.locator(".whole-road a.read")

    def is_shown() -> None:
        expect(stop.locator(".known")).to_have_text(known)
        expect(page.locator(".stops [data-page='start_here.html'] .known")).to_have_text("read")
        expect(drawn).to_have_count(1)
        expect(page.locator(".hero .md-button--primary")).to_have_attribute("href", L1)

    is_shown()
    page.reload()
    is_shown()

    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as a file").click()
    saved = tmp_path / "progress.json"
    saving.value.save_as(saved)
    assert json.loads(saved.read_text(encoding="utf-8"))["labs"].keys() == {labs[0]}
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Forget all of it").click()
    expect(page.locator(".stops .known")).to_have_count(0)
    expect(drawn).to_have_count(0)
    expect(page.locator(".hero .md-button--primary")).to_have_attribute("href", "start_here.html")
    page.locator(".where input[type=file]").set_input_files(saved)
    is_shown()
    saved.write_text("{}")
    page.locator(".where input[type=file]").set_input_files(saved)
    expect(page.locator(".where .said")).to_have_text("This file is not one that this course has saved.")
    is_shown()
    context.close()


def test_a_missing_page_below_a_path_that_nobody_told_is_styled_and_leads_home(browser: Browser) -> None:
    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path
        file = SITE / path.removeprefix("/some/where/")
        if path.startswith("/some/where/") and file.is_file():
            route.fulfill(path=file)
        elif path.endswith(".html"):
            route.fulfill(path=SITE / "404.html", status=404)
        else:
            route.fulfill(status=404, body="")

    page = browser.new_page()
    page.route("http://course.test/**", answer)
    page.goto("http://course.test/some/where/lectures/gone.html")
    home = page.locator("h1 + p + p a").first
    expect(home).to_have_attribute("href", "/some/where/index.html")
    quiet(page)
    assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--accent').trim()") != ""
    home.click()
    expect(page.locator(".hero h1")).to_be_visible()
    page.close()
