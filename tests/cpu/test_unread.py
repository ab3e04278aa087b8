"""What changed since somebody read it is not published: each kind of text, by its place, and nothing that did not."""

import io
import subprocess
import sys

import pytest
from tiny_repository import commit_all, make_repository, write

from course_site.lint.unread import faults
from course_site.site import read

PAGE = """\
# ---
# id: one
# title: One
# description: The one page.
# ---

# %% [markdown]
# # One
#
# Ours takes {{ ours.us:.0f }} µs, and the library's takes {{ theirs.us:.0f }} µs.
# That is not a race.
#
# - The first thing.
# - The second thing.
#   It has two lines.
#
# | level | where |
# |---|---|
# | L1 | in the SM |
# | L2 | beside them |
#
# /// predict | Who waits?
# - [x] The card
# - [ ] The host
# /// reveal
# The card.
# ///

# %%
first = 1

# %%
second = 2

# %% [markdown]
# ## Later
#
# /// chart | bars
# title: Two kernels
# caption: Shorter is better.
# ///
#
# One paragraph.
#
# Another paragraph.
"""
SHEET = """\
# a comment

[[step]]
minutes = 4
say = "Nothing is behind us."
check = { ask = "Which half?", answer = "The first." }

[[step]]
minutes = 6
say = \"\"\"
Two lines of text,
and a bracket [ too.
\"\"\"
"""
GLOSSARY = """\
[warp]
term = "warp"
short = "32 threads that step together."

[block]
term = "block"
short = "A team of threads."
"""
KERNEL = '''\
"""Add two vectors.

Idea  each thread adds one pair
"""

BLOCK = 256  # two warps are too few


def add(x, y):
    """Return x + y."""
    return x + y
'''
CUDA = "// One row a warp.\n\n__global__ void add() {\n    // the last row is short\n}\n"
SPEAKING = '''"""Home."""

HEAD = "measured"  # a comment


def line(n):
    """Return a line."""
    return f"median of {n} runs" if n else "none"
'''
FIGURE = '<svg>\n  <text x="1">reads</text>\n  <text x="9">writes</text>\n</svg>\n'
SOURCES = {
    "docs/one.py": PAGE,
    "docs/glossary.toml": GLOSSARY,
    "docs/assets/css/site.css": 'p::before { content: "so"; }\n',
    "docs/assets/figures/two.svg": FIGURE,
    "handbook/sessions/l1.toml": SHEET,
    "labs/add/lab.toml": 'title = "Add"\n',
    "labs/add/numpy/starter.py": "# the first index of the block is yours\n",
    "overrides/main.html": "<p>Hello</p>\n",
    "README.md": "# Here\n\nTwo commands.\n\n```bash\nnox -s docs\n  more\n```\n",
    "src/course_kernels/add/k01.py": KERNEL,
    "src/course_kernels/add/k01.cu": CUDA,
    "mkdocs.yml": "site_name: Here\n",
    "LICENSE": "Copyright us\n",
    "src/course_site/site/home.py": SPEAKING,
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small course, all of which somebody has read."""
    root = make_repository(tmp_path, monkeypatch, gpus=())
    for path, text in SOURCES.items():
        write(root, path, text)
    assert read.main(["--all-read", "."], root) == 0
    assert list(faults(root)) == []
    return root


def edited(root, path, old, new):
    text = (root / path).read_text(encoding="utf-8")
    assert old in text
    write(root, path, text.replace(old, new, 1))
    return [place for place, _ in faults(root)]


@pytest.mark.parametrize(
    ("path", "old", "new", "place"),
    [
        ("docs/one.py", "theirs.us:.0f", "ours.us:.0f", "docs/one.py:10"),
        ("docs/one.py", "is not a race", "is a race", "docs/one.py:10"),
        ("docs/one.py", "description: The one", "description: The best", "docs/one.py:1"),
        ("docs/one.py", "# # One", "# # Won", "docs/one.py:8"),
        ("docs/one.py", "has two lines", "has one line", "docs/one.py:14"),
        ("docs/one.py", "| L2 | beside them |", "| L2 | in the SM |", "docs/one.py:20"),
        ("docs/one.py", "[x] The card\n# - [ ]", "[ ] The card\n# - [x]", "docs/one.py:22"),
        ("docs/one.py", "Shorter is", "Longer is", "docs/one.py:38"),
        ("docs/one.py", "second = 2", "second = 3", "docs/one.py:32"),
        ("docs/one.py", "second = 2", "if first:\n    second = 2", "docs/one.py:32"),
        ("docs/glossary.toml", "32 threads", "64 threads", "docs/glossary.toml:1"),
        ("docs/assets/css/site.css", '"so"', '"not so"', "docs/assets/css/site.css:1"),
        ("docs/assets/figures/two.svg", 'x="9">writes', 'x="1">writes', "docs/assets/figures/two.svg:1"),
        ("handbook/sessions/l1.toml", "behind us", "ahead of us", "handbook/sessions/l1.toml:5"),
        ("handbook/sessions/l1.toml", "The first.", "The second.", "handbook/sessions/l1.toml:6"),
        ("handbook/sessions/l1.toml", "minutes = 6", "minutes = 7", "handbook/sessions/l1.toml:9"),
        ("handbook/sessions/l1.toml", "[ too", "[ three", "handbook/sessions/l1.toml:10"),
        ("labs/add/lab.toml", "Add", "Subtract", "labs/add/lab.toml:1"),
        ("labs/add/numpy/starter.py", "first", "last", "labs/add/numpy/starter.py:1"),
        ("overrides/main.html", "Hello", "Goodbye", "overrides/main.html:1"),
        ("README.md", "Two commands", "Three commands", "README.md:3"),
        ("README.md", "\n  more", "\nmore", "README.md:5"),
        ("src/course_kernels/add/k01.py", "adds one pair", "adds two", "src/course_kernels/add/k01.py:1"),
        ("src/course_kernels/add/k01.py", "are too few", "are enough", "src/course_kernels/add/k01.py:6"),
        ("src/course_kernels/add/k01.py", "Return x + y", "Return x - y", "src/course_kernels/add/k01.py:6"),
        ("src/course_kernels/add/k01.cu", "One row", "Two rows", "src/course_kernels/add/k01.cu:1"),
        ("src/course_kernels/add/k01.cu", "is short", "is long", "src/course_kernels/add/k01.cu:4"),
        ("mkdocs.yml", "Here", "There", "mkdocs.yml:1"),
        ("LICENSE", "us", "them", "LICENSE:1"),
        ("pyproject.toml", "Test", "Somebody else", "pyproject.toml:2"),
        ("src/course_site/site/home.py", "measured", "guessed", "src/course_site/site/home.py:3"),
        ("src/course_site/site/home.py", "median", "mean", "src/course_site/site/home.py:8"),
        ("docs/one.py", "# One paragraph.\n#\n", "", "docs/one.py"),
        ("docs/one.py", "# | L1 | in the SM |\n", "", "docs/one.py"),
        ("handbook/sessions/l1.toml", "minutes = 6\n", "", "handbook/sessions/l1.toml"),
    ],
)
def test_a_change_is_unread_at_its_place(root, path, old, new, place):
    before = (root / path).read_text(encoding="utf-8")
    assert edited(root, path, old, new) == [place]
    write(root, path, before)
    assert list(faults(root)) == []  # taken back, it was read


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("docs/one.py", "# - The first thing.\n", "# - The second thing.\n#   It has two lines.\n"),
        ("docs/one.py", "# %%\nfirst = 1\n\n", "# %%\nsecond = 2\n\n"),
        ("docs/one.py", "# | L1 | in the SM |\n", "# | L2 | beside them |\n"),
        ("docs/one.py", "# One paragraph.\n", "# Another paragraph.\n"),
        ("handbook/sessions/l1.toml", "[[step]]\nminutes = 4\n", "[[step]]\nminutes = 6\n"),
        ("docs/glossary.toml", GLOSSARY.split("\n\n")[0] + "\n", GLOSSARY.split("\n\n")[1]),
    ],
)
def test_two_that_change_places_are_unread(root, path, one, other):
    text = (root / path).read_text(encoding="utf-8")
    before, between, after = text.partition(one)[0], *text.partition(one)[2].split(other, 1)
    write(root, path, f"{before}{other}{between}{one}{after}")
    assert {why.rpartition("' ")[2] for _, why in faults(root)} == {"moved since it was read: nox -s read"}


def test_a_passage_that_is_copied_is_unread_there_and_in_another_file(root):
    write(root, "README.md", SOURCES["README.md"] + "\nTwo commands.\n\nOne paragraph.\n")
    assert [place for place, _ in faults(root)] == ["README.md:10", "README.md:12"]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("docs/one.py", "us:.0f }} µs.\n# That is not", "us:.0f }} µs. That\n# is not"),
        ("docs/one.py", "# - The second thing.\n#   It has", "# - The second\n#   thing. It has"),
        ("src/course_site/site/home.py", "a comment", "nothing to read"),
        ("src/course_site/site/home.py", "Return a line", "Return words"),
        ("docs/one.py", "\n# %% [markdown]\n# ## Later", "\n\n\n# %% [markdown]\n#\n# ## Later"),
        ("handbook/sessions/l1.toml", "# a comment\n", "# something else\n\n# a comment\n"),
        ("handbook/sessions/l1.toml", "Two lines of text,\nand", "Two lines\nof text, and"),
        ("src/course_kernels/add/k01.py", "return x + y", "return y + x"),
        ("docs/assets/figures/two.svg", "\n  <text", "\n <text"),
    ],
)
def test_other_lines_of_the_same_words_were_read(root, path, old, new):
    assert edited(root, path, old, new) == []


def test_what_is_new_is_one_line_a_file(root):
    write(root, "docs/two.md", "---\nid: two\ntitle: Two\n---\n# Two\n\nText.\n")
    assert list(faults(root)) == [("docs/two.md", "nobody has read it yet, 3 passages: nox -s read")]


def test_neither_settings_of_tools_nor_libraries_nor_what_a_grader_refuses_are_read(root):
    for path in (
        "docs/ruff.toml",
        "docs/assets/vendor/a.js",
        "docs/.notes.md",
        "handbook/handouts/_worked_out/l1.py",
        "labs/add/truth.py",
        "labs/add/wrong.toml",
        "labs/add/wrong/a.py",
    ):
        write(root, path, "a = 1\n")
    assert list(faults(root)) == []


@pytest.mark.parametrize(
    ("spoil", "place", "said"),
    [
        (
            lambda data: data[: len(data) // 2],
            "records/read/docs.txt",
            "is cut, its last line is not `end`; take it",
        ),
        (lambda data: b"", "records/read/docs.txt", "is cut"),
        (
            lambda data: b"\xff\xfe" + data,
            "records/read/docs.txt",
            "is not text; take it from the last commit: git",
        ),
        (
            lambda data: b"<<<<<<< ours\n" + data,
            "records/read/docs.txt:1",
            "'<<<<<<< ours' is not a path and what",
        ),
        (
            lambda data: data.replace(b"end", b"README.md ffff\nend"),
            "records/read/docs.txt:",
            "is not a path and",
        ),
    ],
)
def test_a_ledger_that_is_none_is_one_line(root, spoil, place, said, capsys):
    file = root / "records/read/docs.txt"
    file.write_bytes(spoil(file.read_bytes()))
    ((found, why),) = faults(root)
    assert found.startswith(place)
    assert said in why
    assert read.main(["--all-read", "."], root) == 2  # nothing is noted over it
    assert capsys.readouterr().err.startswith(f"read: {found}: ")


def test_a_ledger_that_is_missing_is_one_line(root):
    (root / "records/read/docs.txt").unlink()
    assert [place for place, _ in faults(root)] == ["records/read/docs.txt"]
    for file in (root / "records/read").iterdir():
        file.unlink()
    ((place, why),) = faults(root)
    assert (place, why.partition(",")[0]) == ("records/read", "is missing")


def test_both_sides_of_a_merge_keep_what_they_read(root):
    """Two edits side by side, each read on its own branch."""
    (root / ".gitattributes").write_text("records/read/*.txt merge=union\n")
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@t.example")
    commit_all(root)
    for branch, old, new in (("a", "first thing", "first of all"), ("b", "L2 | beside", "L2 | near")):
        subprocess.run(
            [*git, "checkout", "-q", "-b", branch, "HEAD" if branch == "a" else "a~1"], cwd=root, check=True
        )
        edited(root, "docs/one.py", old, new)
        assert read.main(["--all-read", "docs/one.py"], root) == 0
        subprocess.run([*git, "commit", "-qam", branch], cwd=root, check=True)
    subprocess.run([*git, "merge", "-q", "-m", "both", "a"], cwd=root, check=True)
    assert list(faults(root)) == []
    assert edited(root, "docs/one.py", "L2 | near", "L2 | far from") == ["docs/one.py:20"]


# --- the command ----------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def answering(monkeypatch):
    """Somebody sits there and types this."""

    def answers(text):
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys, "stdout", Terminal())
        return sys.stdout

    return answers


def test_the_command_shows_what_it_was_and_what_it_prints(root, capsys):
    commit_all(root)
    edited(root, "docs/one.py", "theirs.us:.0f", "2 * 4")
    edited(root, "docs/one.py", "Shorter is", "Longer is")
    assert read.main(["docs"], root) == 0
    said = capsys.readouterr().out
    assert "1 of 2: docs/one.py:10: changed since it was read\n" in said
    assert "takes {{ [-theirs.us:.0f-]{+2 * 4+} }} µs." in said
    assert "and the library's takes 8 ‹2 * 4› µs." in said
    assert "caption: [-Shorter-]{+Longer+} is better." in said
    assert said.endswith("read: 2 passages left to read\n")
    assert [place for place, _ in faults(root)] == ["docs/one.py:10", "docs/one.py:38"]  # it marked nothing


def test_yes_marks_no_leaves_and_q_ends(root, answering):
    for old, new in (("# # One", "# # Won"), ("is not a race", "is a race"), ("second = 2", "second = 3")):
        edited(root, "docs/one.py", old, new)
    said = answering("what\ny\nn\nq\n")
    assert read.main([], root) == 0
    assert said.getvalue().count("so, as printed?") == 4  # it asks again where it does not understand
    assert [place for place, _ in faults(root)] == ["docs/one.py:10", "docs/one.py:32"]
    assert edited(root, "docs/one.py", "is a race", "is not a race") == ["docs/one.py:32"]
    answering("y\n")
    assert read.main([], root) == 0
    assert list(faults(root)) == []


def test_only_the_files_that_are_named_are_marked(root):
    edited(root, "docs/one.py", "# # One", "# # Won")
    edited(root, "README.md", "Two", "Three")
    assert read.main(["--all-read", "README.md"], root) == 0
    assert [place for place, _ in faults(root)] == ["docs/one.py:8"]


@pytest.mark.parametrize("arguments", [["nowhere.md"], ["--all-read", "src/tiny"]])
def test_a_file_with_nothing_to_read_is_one_line(root, arguments, capsys):
    assert read.main(arguments, root) == 2
    assert (
        capsys.readouterr().err == f"read: {arguments[-1]}: there is nothing to read in it, or no such file\n"
    )


def test_all_read_names_its_files(root, capsys):
    with pytest.raises(SystemExit):
        read.main(["--all-read"], root)
    assert "--all-read: name the files that were read" in capsys.readouterr().err


def test_what_is_gone_is_told_shown_and_leaves_the_ledger_once_that_was_read(root, capsys, answering):
    commit_all(root)
    (root / "README.md").unlink()
    edited(root, "docs/one.py", "# One paragraph.\n#\n", "")
    assert edited(root, "docs/one.py", "# # One", "# # Won") == ["README.md", "docs/one.py:8", "docs/one.py"]
    assert [why.partition(":")[0] for place, why in faults(root) if ":" not in place] == [
        "3 passages are gone that were read",
        "a passage is gone that was read",
    ]
    assert read.main(["docs"], root) == 0
    assert "docs/one.py: a passage is gone that was read\n    One paragraph.\n" in capsys.readouterr().out

    before = (root / "records/read/docs.txt").read_text().count("docs/one.py")
    answering("y\nn\n")  # the heading is read, what is gone is not
    assert read.main(["docs"], root) == 0
    assert [place for place, _ in faults(root)] == ["README.md", "docs/one.py"]
    answering("y\n")
    assert read.main(["docs"], root) == 0
    assert [place for place, _ in faults(root)] == ["README.md"]
    assert (root / "records/read/docs.txt").read_text().count("docs/one.py") == before - 1
    assert read.main(["--all-read", "README.md"], root) == 0
    assert list(faults(root)) == []
    assert "README.md" not in (root / "records/read/top.txt").read_text()
