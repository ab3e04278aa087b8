"""An edit of a served site: what builds one page again, and what builds everything."""

import os
from pathlib import Path

import pytest

from course_site.pages.page import find_pages
from course_site.site.incremental import edited_pages, look, same_for_others
from course_site.site.render.reading_time import Minutes
from course_site.site.render.rendered import Rendered

PAGE = """\
# ---
# id: one
# title: One
# description: The one page.
# ---

# %% [markdown]
# # One
#
# Some words, and what is said[^source] elsewhere.
#
# /// define | rate = copy.gb / copy.us
# what: how fast
# ///
#
# /// claim | copy.us < 2
# It is soon done.
# ///
#
# /// callout | teaching
# A word in a callout.
# ///
#
# ```text
# # no heading
# ```

# %%
print("code")
"""
OTHER = "---\nid: other\ntitle: Other\n---\n# Other\n"


@pytest.fixture
def site(tmp_path):
    """Two pages and a file beside them, and what is known of them before an edit."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/one.py").write_text(PAGE)
    (tmp_path / "docs/other.md").write_text(OTHER)
    (tmp_path / "docs/words.toml").write_text("")
    return tmp_path, look(tmp_path), find_pages(tmp_path)


def after(site):
    root, before, pages = site
    found = edited_pages(root, before, look(root), pages)
    return None if found is None else [page.path.as_posix() for page in found]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Some words", "Other words, and more of them"),
        ("It is soon done", "It is done soon"),
        ("A word in", "More words in"),
        ("# # no heading", "# # no heading either"),
    ],
    ids=["paragraph", "claim", "callout", "fenced"],
)
def test_prose_builds_its_page_again(site, old, new):
    (site[0] / "docs/one.py").write_text(PAGE.replace(old, new))
    assert after(site) == ["docs/one.py"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# # One", "# # Uno"),
        ("# Some words", "# ## Some words"),
        ("title: One", "title: Uno"),
        ("description: The one", "description: The first"),
        ("# id: one", "# id: uno"),
        ("[^source]", "[^another]"),
        ("copy.gb / copy.us", "copy.gb / copy.ms"),
        ("what: how fast", "what: how slow"),
        ("copy.us < 2", "copy.us < 3"),
        ("callout | teaching", "callout | trip"),
        ("# ///\n#\n# ```text", "#\n# ```text"),
        ('print("code")', 'print("other")'),
        ("# %%\n", "# %% [markdown]\n"),
        ("# ---\n# id", "# id"),
    ],
)
def test_anything_else_of_a_page_builds_everything(site, old, new):
    text = PAGE.replace(old, new, 1)
    assert text != PAGE
    (site[0] / "docs/one.py").write_text(text)
    assert after(site) is None


def test_another_file_builds_everything_even_beside_an_edit_of_prose(site):
    root = site[0]
    (root / "docs/one.py").write_text(PAGE.replace("Some", "A few"))
    for edit in (
        lambda: (root / "docs/words.toml").write_text("a = 1"),
        lambda: (root / "docs/new.md").write_text(OTHER.replace("other", "new")),
        lambda: (root / "docs/other.md").unlink(),
    ):
        before = {path: path.read_bytes() for path in (root / "docs").iterdir()}
        edit()
        assert after(site) is None
        for path in (root / "docs").iterdir():
            path.unlink()
        for path, content in before.items():
            path.write_bytes(content)
            os.utime(path, ns=(site[1][f"docs/{path.name}"][0],) * 2)
        (root / "docs/one.py").touch()


def test_what_nobody_can_see_builds_everything(site):
    assert after(site) is None


def test_what_is_hidden_or_built_is_not_looked_at(site):
    root, before, _ = site
    for name in (".cache/a", "docs/.a.swp", "docs/__pycache__/a.pyc", "site/index.html"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("")
    assert look(root) == before
    (root / "elsewhere").mkdir()
    (root / "elsewhere/a").write_text("")
    (root / "docs/linked").symlink_to(root / "elsewhere")
    assert {Path(name).name for name in look(root).keys() - before.keys()} == {"a"}


@pytest.mark.parametrize(
    "change",
    [
        {"shown": {"a": "2"}},
        {"cited": ["b"]},
        {"minutes": (Minutes(5.0), Minutes())},
        {"minutes": (Minutes(1.0), Minutes(1.0))},
    ],
)
def test_other_values_sources_and_minutes_are_shown_elsewhere_too(change):
    page = {"shown": {"a": "1"}, "cited": ["a"], "minutes": (Minutes(1.0), Minutes())}
    before = Rendered(markdown="one", **page)
    assert same_for_others(before, Rendered(markdown="two", **page))
    assert not same_for_others(before, Rendered(markdown="two", **{**page, **change}))
