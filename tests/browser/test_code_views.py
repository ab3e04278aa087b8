"""Kernels side by side in a real Chromium: any two rungs on a page, and a kernel's source, PTX and SASS in step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from course_kernels.line_info import MachineLine, Place
from course_profile.code_page import page as code_page
from course_profile.machine_code import Kernel
from course_site.pages.blocks import parse
from course_site.site.render.rungs import rungs

ROOT = Path(__file__).parents[2]
BLOCK = """\
/// rungs | docs/workshops/w3_rungs.toml
alt: side by side
left: Left
right: Right
unsaid: The tool does it.
rest: The rest
///
"""


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all rungs and no site around it."""
    found: list[str] = []
    writer = SimpleNamespace(
        course=SimpleNamespace(root=ROOT),
        plain=str,
        shared=lambda name: (ROOT / "docs" / name).as_uri(),
        slot=lambda raw, words: found.append(raw) or "",
    )
    (block,) = parse(BLOCK)
    rungs(writer, block)
    file = tmp_path_factory.mktemp("rungs") / "page.html"
    file.write_text(
        '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Rungs</title>'
        "<style>pre > code { display: block; overflow: auto }</style>"  # as the theme has it
        f'<main class="md-typeset"><h1>Rungs</h1>{found[0]}</main></html>',
        encoding="utf-8",
    )
    return file


def seen(page: Page) -> list[str]:
    """The rungs that are seen of the first idea, from left to right or from above."""
    return page.evaluate(
        """() => [...document.querySelector('.idea').querySelectorAll('.side')].filter(s => s.checkVisibility())
          .sort((a, b) => (a.getBoundingClientRect().left - b.getBoundingClientRect().left) ||
                          (a.getBoundingClientRect().top - b.getBoundingClientRect().top)).map(s => s.dataset.rung)"""
    )


def test_any_two_rungs_stand_side_by_side(browser: Browser, ladder: Path) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(ladder.as_uri())
    left, right = page.get_by_label("Left"), page.get_by_label("Right")

    assert seen(page) == ["triton", "cuda"]
    right.select_option("gluon")
    assert seen(page) == ["triton", "gluon"]
    left.select_option("gluon")  # they change places: no rung stands beside itself
    assert seen(page) == ["gluon", "triton"]
    assert (left.input_value(), right.input_value()) == ("gluon", "triton")
    right.select_option("helion")
    assert seen(page) == ["gluon", "helion"]
    assert page.get_by_text("The tool does it.").filter(visible=True).count() == 2
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert seen(page) == ["gluon", "helion"]
    lefts = (
        page.locator(".idea")
        .first.locator(".side:not([hidden])")
        .evaluate_all("sides => sides.map(side => side.getBoundingClientRect().left)")
    )
    assert len(set(lefts)) == 1  # one below the other
    page.emulate_media(media="print")
    assert not page.locator(".pick").is_visible()
    context.close()


def test_without_a_script_the_first_two_are_seen(browser: Browser, ladder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(ladder.as_uri())

    names = page.locator(".idea").first.locator(".side")
    assert [name.get_attribute("data-rung") for name in names.all() if name.is_visible()] == [
        "triton",
        "cuda",
    ]
    assert not page.locator(".pick").is_visible()
    context.close()


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Page]:
    """The page of two kernels, opened from a folder; it may ask for nothing else."""
    folder = tmp_path_factory.mktemp("code")
    file, header = folder / "scale.cu", folder / "part.cuh"
    file.write_text("".join(f"line {n};\n" for n in range(1, 61)))
    header.write_text("float scaled(float x);\n")

    def machine(name: str, *places: tuple[Path, int]) -> MachineLine:
        return MachineLine(f"{name} R1, R2", name, tuple(Place(str(path), line) for path, line in places))

    sass = [machine("MOV") for _ in range(100)]
    sass += [
        machine("LDG.E", (file, 3)),
        machine("FFMA", (header, 1), (file, 50)),
        machine("STG.E", (file, 50)),
    ]
    ptx = (machine("ld.global", (file, 3)), machine("fma.rn.f32", (header, 1), (file, 50)))
    kernels = [Kernel(name, "sm_90a", 20, 0, True, 0, tuple(sass), ptx) for name in ("scale", "fill")]
    at = folder / "scale_code.html"
    at.write_bytes(code_page(file, kernels, ["no GPU"], folder))
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.goto(at.as_uri())
    yield page
    assert asked == [at.as_uri()]
    context.close()


def marked(page: Page) -> dict[str, list[str]]:
    """The words of the marked lines, by pane, of the kernel that is seen."""
    return page.evaluate(
        """() => Object.fromEntries([...document.querySelector('article:not([hidden])').querySelectorAll('.pane')].map(
          p => [p.classList[1], [...p.querySelectorAll('.on, .at')].map(r => r.querySelector('code').textContent)]))"""
    )


def test_a_line_of_source_marks_what_was_made_of_it_and_back(code: Page) -> None:
    source = code.locator("article").first.locator(".source")

    code.mouse.move(5, 5)
    source.locator('[data-p="0:3"]').hover()
    assert marked(code) == {"source": ["line 3;"], "ptx": ["ld.global R1, R2"], "sass": ["LDG.E R1, R2"]}
    # A call marks what was inlined there, too; a click keeps it, and brings its first instruction into sight.
    source.locator('[data-p="0:50"]').click()
    assert marked(code)["sass"] == ["FFMA R1, R2", "STG.E R1, R2"]
    assert code.locator("article").first.locator(".says").text_content() == (
        "scale.cu line 50: 2 of SASS, 1 of PTX (FFMA 1, STG 1)."
    )
    box = code.locator("article").first.locator(".sass").bounding_box()
    at = code.locator("article").first.locator(".sass .on").first.bounding_box()
    assert box["y"] <= at["y"] <= box["y"] + box["height"]
    # Back: an instruction that was inlined marks its own line and the call's.
    source.locator('[data-p="0:50"]').click()
    code.locator("article").first.locator('.sass [data-n="FFMA"]').click()
    assert marked(code)["source"] == ["line 50;", "float scaled(float x);"]
    assert "part.cuh line 1, inlined at scale.cu line 50" in code.locator(".says").first.text_content()
    code.keyboard.press("Escape")
    assert marked(code) == {"source": [], "ptx": [], "sass": []}


def test_keys_walk_from_line_to_line(code: Page) -> None:
    code.locator("article").first.locator(".source").focus()
    code.keyboard.press("ArrowDown")
    assert marked(code)["sass"] == ["LDG.E R1, R2"]
    code.keyboard.press("ArrowDown")
    assert marked(code)["source"] == ["line 50;"]
    code.keyboard.press("Enter")
    code.locator("article").first.locator('.source [data-p="0:3"]').hover()
    assert marked(code)["source"] == ["line 50;"]  # kept
    code.keyboard.press("Escape")


def test_another_kernel_a_phone_and_a_reader_of_screens(code: Page) -> None:
    code.get_by_label("Kernel").select_option("fill")
    assert [a.is_visible() for a in code.locator("article").all()] == [False, True]
    code.set_viewport_size({"width": 390, "height": 844})
    assert code.evaluate("document.documentElement.scrollWidth") == 390
    shown = code.locator("article").last
    assert (shown.locator(".sass").is_visible(), shown.locator(".ptx").is_visible()) == (True, False)
    shown.get_by_label("PTX", exact=True).check()
    assert (shown.locator(".sass").is_visible(), shown.locator(".ptx").is_visible()) == (False, True)
    found = Axe().run(code)
    assert [one["id"] for one in found.response["violations"]] == []
