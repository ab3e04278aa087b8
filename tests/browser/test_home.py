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


def test_the_line_of_the_road_begins_where_home_s_road_begins(browser: Browser) -> None:
    page = browser.new_page()
    page.goto((SITE / "index.html").as_uri())
    drawn = page.locator(".whole-road a").evaluate_all(
        "links => links.map(link => new URL(link.href.baseVal, document.baseURI).href)"
    )
    page.goto((SITE / L1).as_uri())
    line = page.locator("nav.road").first
    assert line.get_attribute("aria-label") == "You are here: L1 is stop 2 of 15"
    assert line.locator("li a").evaluate_all("links => links.map(link => link.href)") == [
        link for link in drawn if not link.endswith(L1)
    ]
    line.get_by_role("link", name="1st").click()
    assert page.locator("nav.road .here").inner_text() == "1st"
    page.close()


def test_the_page_that_is_read_first_has_the_key_to_the_marks(browser: Browser) -> None:
    page = browser.new_page()
    page.goto((SITE / "index.html").as_uri())
    begin = page.locator(".hero .md-button--primary").get_attribute("href")
    page.goto((SITE / begin).as_uri())
    assert page.locator(".key li").count() == 3
    page.close()


def test_on_a_phone_commands_wrap_and_nothing_floats_over_the_text(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    settled(page, (SITE / "set_up.html").as_uri())
    commands = page.locator(".language-bash pre > code")
    assert commands.count() > 3
    assert (
        commands.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length") == 0
    )
    # One that wraps goes on further right, and is not cut behind the dashes of an option.
    wraps = page.locator(".language-bash .command", has_text="--door numpy").last
    lines = wraps.evaluate(
        """e => { const range = document.createRange(), lines = {}; range.selectNodeContents(e);
          for (const box of range.getClientRects()) lines[Math.round(box.top)] ??= box.left;
          return Object.values(lines); }"""
    )
    copied, typed = wraps.locator("xpath=..").evaluate("e => [e.innerText, e.textContent]")
    assert copied.strip() == typed.strip()  # what the button copies: no line between two of a command
    assert len(lines) > 1
    assert lines[1] > lines[0] + 10
    options = page.locator(".language-bash .option", has_text="--door")
    assert options.evaluate_all("all => all.map(one => one.getClientRects().length)") == [1] * options.count()
    page.mouse.wheel(0, 3000)
    page.wait_for_timeout(300)
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(300)
    assert not page.locator(".md-top").is_visible()
    page.close()


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
