"""A served site turns only what changed into HTML again, and what it keeps is what MkDocs would have made."""

import logging

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.structure.pages import Page

from course_site.pages.build_cache import Kept
from course_site.site import page_cache

HOOK = """
from mkdocs.plugins import event_priority
from course_site.site import page_cache

@event_priority(-100)
def on_page_markdown(markdown, page, config, files):
    page_cache.render_once(page, config, files)
"""
CONFIG = """
site_name: Tiny
use_directory_urls: false
hooks: [hook.py]
theme: {name: material, font: false}
plugins: []
markdown_extensions: [toc]
validation: {links: {not_found: warn, anchors: warn}}
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Builds a site of two pages, and hands out its files and the pages that were rendered."""
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    monkeypatch.setattr(page_cache, "KEPT", Kept("build"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "hook.py").write_text(HOOK)
    (tmp_path / "mkdocs.yml").write_text(CONFIG)
    write(tmp_path, "index", "# One\n\n[to two](two.md#part)\n")
    write(tmp_path, "two", "# Two\n\n## Part\n\nWords.\n")

    def run():
        rendered, render = [], Page.render
        with monkeypatch.context() as patch:
            patch.setattr(
                Page, "render", lambda self, *given: (rendered.append(self.url), render(self, *given))[1]
            )
            config = load_config(str(tmp_path / "mkdocs.yml"))
            config.plugins.on_startup(command="build", dirty=False)
            build(config)
        names = ("index.html", "two.html")
        return {name: (tmp_path / "site" / name).read_text() for name in names}, rendered

    run.root = tmp_path
    return run


def write(root, name, text):
    (root / "docs" / f"{name}.md").write_text(text)


def test_only_the_edited_page_is_rendered_and_all_is_as_if_made_anew(site, monkeypatch):
    _, first = site()
    write(site.root, "two", "# Two\n\n## Part\n\nOther words.\n")
    second, again_rendered = site()
    page_cache.KEPT.pages.clear()
    anew, _ = site()

    assert (first, again_rendered) == (["index.html", "two.html"], ["two.html"])
    assert {name: text for name, text in second.items() if name != "sitemap.xml"} == anew
    assert "Other words" in second["two.html"]


def test_an_anchor_that_goes_is_told_though_the_page_that_links_is_kept(site, caplog):
    site()
    write(site.root, "two", "# Two\n\n## Another part\n")
    caplog.clear()
    _, rendered = site()

    assert rendered == ["two.html"]
    assert any("does not contain an anchor '#part'" in message for message in caplog.messages)


def test_a_warning_is_given_at_every_build(site, caplog):
    write(site.root, "index", "# One\n\n[gone](gone.md)\n")
    for _ in range(2):
        caplog.clear()
        site()

        assert [r.levelno for r in caplog.records if "gone.md" in r.getMessage()] == [logging.WARNING]


def test_a_new_page_lets_every_link_be_looked_up_again(site):
    site()
    write(site.root, "three", "# Three\n")
    _, rendered = site()

    assert set(rendered) == {
        "index.html", "two.html", "three.html",
    }  # fmt: skip
