"""What one build leaves for the next: used where nothing changed, never where something did."""

import pickle

import pytest

from course_site.lint.lint import find_typed_numbers
from course_site.pages import build_cache
from course_site.pages.build_cache import Kept, digest
from course_site.site.render import writer


def left(root, *clean):
    """What a build leaves that found these texts clean."""
    build = Kept("build")
    build.pages["html", "a.md"] = digest("made from"), {"content": "<p>a</p>"}
    for text in clean:
        build.clean(digest(text))
    build.write(root)
    return root / build.file


def after(root):
    build = Kept("build")
    build.read(root)
    return build


def test_the_next_build_finds_what_this_one_left(tmp_path):
    left(tmp_path, "one")
    build = after(tmp_path)
    assert build.pages == {("html", "a.md"): (digest("made from"), {"content": "<p>a</p>"})}
    assert build.is_clean(digest("one"))
    assert not build.is_clean(digest("two"))


def test_what_a_build_did_not_use_is_not_left_to_the_one_after_it(tmp_path):
    left(tmp_path, "one", "two")
    build = after(tmp_path)
    build.is_clean(digest("two"))
    build.write(tmp_path)
    third = after(tmp_path)
    assert (third.is_clean(digest("one")), third.is_clean(digest("two"))) == (False, True)


@pytest.mark.parametrize(
    "content", [b"", b"no pickle", pickle.dumps(("of another version", {"a": 1}, {b"x"}))]
)
def test_what_cannot_be_read_or_was_made_by_another_version_is_not_there(tmp_path, content):
    left(tmp_path).write_bytes(content)
    build = after(tmp_path)
    assert (build.pages, build.is_clean(b"x")) == ({}, False)


def test_another_lint_looks_again_at_everything(tmp_path, monkeypatch):
    left(tmp_path, "one")
    monkeypatch.setattr(build_cache, "made_by", lambda: b"another")
    assert not after(tmp_path).is_clean(digest("one"))


def test_a_folder_that_cannot_be_written_stops_no_build(tmp_path):
    (tmp_path / ".cache").write_text("a file")
    left(tmp_path)
    assert (tmp_path / ".cache").read_text() == "a file"


def test_a_text_with_a_typed_number_is_never_kept_as_clean(monkeypatch):
    here = Kept("build")
    monkeypatch.setattr(writer, "KEPT", here)
    asked = []
    monkeypatch.setattr(
        writer.lint,
        "find_typed_numbers",
        lambda text, **k: asked.append(text) or find_typed_numbers(text, **k),
    )
    for text in ("It moves 3.9 TB/s.", "A tile of 128 numbers."):
        for _ in range(2):
            found = writer._typed_numbers(text, frozenset({"key"}))
            assert bool(found) == ("TB/s" in text)
    assert asked == ["It moves 3.9 TB/s."] * 2 + ["A tile of 128 numbers."]
    # What is allowed, and who may be cited, are part of what a text was judged by.
    writer._typed_numbers("A tile of 128 numbers.", frozenset({"other"}))
    writer._typed_numbers("A tile of 128 numbers.", frozenset({"key"}), in_claim=True)
    assert len(asked) == 5
