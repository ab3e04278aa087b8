"""The search: what a newcomer types, and the page that must be among the first three it brings.

All questions are asked on one page through the site's own index and engine; some of them are typed besides, into the
real box, from a server and from a folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import axe
import pytest
from conftest import SITE, quiet, settled
from playwright.sync_api import Browser, Page, expect

from course_site.site.search import PART_BYTES

# What is typed, and an address that must be among the first three; with #, the very section.
QUESTIONS = {
    "illegal memory access": "when_it_goes_wrong.html#from-symptom-to-cause",
    "out of memory": "set_up.html#when-it-says",
    "oom": "set_up.html#when-it-says",
    "segfault": "when_it_goes_wrong.html#from-symptom-to-cause",
    "install": "set_up.html",
    "no gpu": "set_up.html#setup-four-no-card",
    "rent a gpu": "set_up.html#setup-two-a-rented-card",
    "windows": "set_up.html",
    "driver too old": "set_up.html#when-it-says",
    "ncu permission": "set_up.html#when-it-says",
    "coalescing": "glossary.html#term-coalesced",
    "cuBLAS": "glossary.html#term-cublas",
    "bank conflict": "lectures/l5_the_top_of_the_ladder.html",
    "bank conflicts": "glossary.html#term-bank-conflict",
    "ocupancy": "glossary.html#term-occupancy",
    "coalesed": "glossary.html#term-coalesced",
    "sofmax": "glossary.html#term-softmax",
    "what is a warp": "glossary.html#term-warp",
    "warp divergence": "lectures/l2_the_cuda_model.html#a-warp-at-a-fork",
    "shared memory": "glossary.html#term-shared-memory",
    "vram": "glossary.html#term-hbm",
    "tile size": "lectures/l5_the_top_of_the_ladder.html",
    "roofline": "lectures/l1_what_a_gpu_is.html#the-first-roofline",
    "mma": "lectures/l6_tensor_cores.html#mmasync-no-waiting",
    "wmma": "lectures/l6_tensor_cores.html#wmma-tensor-cores-for-everybody",
    "what is a tensor core": "lectures/l6_tensor_cores.html",
    "tensor core fp8": "lectures/l6_tensor_cores.html",
    "online softmax": "workshops/w1_flash_attention.html",
    "flash attention": "workshops/w1_flash_attention.html#flashattention-from-scratch",
    "flashattention": "workshops/w1_flash_attention.html",
    "nan": "when_it_goes_wrong.html#not-a-number",
    "race condition": "when_it_goes_wrong.html#two-cooks-at-one-bowl",
    "print from kernel": "when_it_goes_wrong.html#printf",
    "kernel hangs": "when_it_goes_wrong.html#it-never-ends",
    "profiler": "glossary.html#term-nsight-compute",
    "memory bandwidth": "lectures/l1_what_a_gpu_is.html#the-bandwidth-by-hand",
    "how is this measured": "how_we_measure.html",
    "percent of peak": "index.html",
    "launch overhead": "lectures/l2_the_cuda_model.html#what-a-launch-costs",
    "__syncthreads": "when_it_goes_wrong.html#a-barrier-that-not-everyone-reaches",
    "tl.dot": "triton_for_numpy_people.html",
    "kv cache": "one_token.html#the-kv-cache-and-heads-that-share",
    "transpose": "lectures/l3_memory.html",
}
# Typed by hand: a plain word, a slip, an error message, a word that only docs/search.toml knows.
TYPED = ("bank conflicts", "ocupancy", "illegal memory access", "vram")


def ask(page: Page, questions: list[str]) -> dict[str, list[dict[str, object]]]:
    return page.evaluate(
        "questions => Object.fromEntries(questions.map(q => [q, PercentOfPeak.search(q)]))", questions
    )


def came(asked: list[str]) -> list[str]:
    """The parts of the index that were asked for, in this order."""
    return ["search/" + url.rpartition("/")[2] for url in asked if "/search/part" in url]


@pytest.fixture(scope="module", params=["server", "folder"])
def visit(request: pytest.FixtureRequest, browser: Browser, base: str) -> Iterator[Page]:
    folder = request.param == "folder"
    context = browser.new_context(offline=folder, viewport={"width": 390, "height": 844})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    settled(page, (SITE / "index.html").as_uri() if folder else base + "index.html")
    assert not [url for url in asked if "minisearch" in url or "/search/" in url], "nobody searches yet"
    page.keyboard.press("/")
    page.wait_for_function("!!PercentOfPeak.searchReady")
    parts, core = page.evaluate("[PercentOfPeak.searchIndex.parts, PercentOfPeak.searchIndex.core]")
    assert 0 < core < len(parts)
    page.wait_for_function("n => PercentOfPeak.searchParts == n", arg=core)
    page.wait_for_timeout(200)
    assert came(asked) == parts[:core], "the students' pages, and nothing else before a question"
    page.locator("dialog.search input").fill("bank conflict")
    page.wait_for_function("n => PercentOfPeak.searchParts == n", arg=len(parts))
    page.evaluate("() => PercentOfPeak.searchReady")
    assert came(asked) == parts
    yield page
    context.close()


def test_what_a_newcomer_types_brings_the_page_among_the_first_three(visit: Page) -> None:
    assert len(QUESTIONS) >= 40
    found = ask(visit, list(QUESTIONS))
    wrong = []
    for question, wanted in QUESTIONS.items():
        first = [str(one["url"]) for one in found[question][:3]]
        if not any(url == wanted or ("#" not in wanted and url.split("#")[0] == wanted) for url in first):
            wrong.append(f"{question!r}: {wanted} is not among {first}")
        ranks = [one["rank"] for one in found[question][:3]]
        if ranks != sorted(ranks) or ranks[0]:
            wrong.append(f"{question!r}: {first}: first what students read, then mentors, then the evidence")
    assert wrong == []


def test_the_box_shows_what_was_found_and_the_keyboard_goes_through_it(visit: Page) -> None:
    box = visit.locator("dialog.search")
    field, links, said = box.locator("input"), box.locator("li a"), box.locator("[role=status]")
    for question in TYPED:
        field.fill("")
        field.press_sequentially(question)
        wanted = QUESTIONS[question]
        expect(box.locator(f'li:nth-child(-n+3) a[href$="{wanted}"]')).to_be_visible()
        expect(said).to_have_text(f"{links.count()} places")
        assert box.locator("li mark").count(), f"{question!r}: no excerpt marks what was found"
    field.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    visit.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    visit.keyboard.press("ArrowUp")
    visit.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    field.press("ArrowDown")
    visit.keyboard.type("x")  # goes on with the question, and no key of the theme's turns the page
    expect(field).to_have_value("vramx")
    field.fill("nothing says zzqqzz")
    expect(said).not_to_contain_text("Nothing")  # the other words are said somewhere
    field.fill("zzqqzzqq")
    expect(said).to_contain_text("Nothing here says")
    assert links.count() == 0


def test_the_box_is_open_to_all_and_fits_a_phone(visit: Page) -> None:
    box = visit.locator("dialog.search")
    box.locator("input").fill("bank conflict")
    expect(box.locator("li a").first).to_be_visible()
    faults = axe.faults(visit)
    visit.emulate_media(color_scheme="dark")
    quiet(visit)
    faults += axe.faults(visit, axe.OF_COLOUR)
    visit.emulate_media(color_scheme="light")
    assert faults == []
    assert box.evaluate("b => b.scrollWidth <= innerWidth && b.getBoundingClientRect().width == innerWidth")


def test_enter_opens_the_first_place_and_escape_gives_the_page_back(visit: Page) -> None:
    box = visit.locator("dialog.search")
    visit.keyboard.press("Escape")
    expect(box).to_be_hidden()
    visit.locator(".search-open").click()
    box.locator("input").fill("occupancy")
    expect(box.locator("li a").first).to_be_visible()
    visit.keyboard.press("Enter")
    visit.wait_for_url("**/glossary.html#term-occupancy")
    expect(visit.locator("#term-occupancy")).to_be_in_viewport()
    expect(visit.locator("dialog.search")).to_have_count(0)


def test_no_part_of_the_index_is_larger_than_the_limit() -> None:
    """A page added makes no part larger: it makes another part."""
    index = (SITE / "search/index.js").read_text(encoding="utf-8")
    parts = json.loads(index.removeprefix("PercentOfPeak.searchIndex=").rstrip(";\n"))["parts"]
    sizes = {name: (SITE / name).stat().st_size for name in ["search/index.js", *parts]}
    assert {name: size for name, size in sizes.items() if size > PART_BYTES} == {}
    assert sum(sizes.values()) > 1_000_000
