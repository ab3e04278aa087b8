"""What the site says of itself: who makes it, where to get it, and what machines and other sites read of its pages."""

import gzip
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from tiny_repository import commit_all, make_repository, write

from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.site import stage
from course_site.site.about import About, AboutError, about
from course_site.site.archive import NAME, archive, source_files

REPOSITORY = Path(__file__).resolve().parents[2]
SESSION = """
title = "{title}"
kind = "lecture"
about = "What {title} is about."
student_page = "docs/{name}.md"
map_page = "handbook/{name}_map.md"
chapter = "handbook/{name}_chapter.md"
"""
ROAD = "/// road\nalt: A road.\nhalves: [First., Then.]\n///\n"
SETTINGS = """
[project]
license = "MIT"

[tool.course]
reference = "nvidia-h200"
"""


TIMED = """\
# ---
# id: timed
# title: The timed
# description: What is timed.
# section: Beside the road
# order: 9
# ---

# %% [markdown]
# # The timed

# %%
print(1)
"""


def page(root, name, text="", **head):
    lines = "".join(f"{key}: {value}\n" for key, value in head.items())
    stem = name.replace("/", "_").removesuffix(".md")
    write(root, name, f"---\nid: {stem}\ntitle: The {stem}\n{lines}---\n# The {stem}\n\n{text}\n")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A course of six pages, its own mkdocs.yml around them."""
    root = make_repository(tmp_path, monkeypatch, gpus=())
    monkeypatch.setenv("COURSE_DRAFT", "1")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    for name in ("docs/bibliography.toml", "docs/glossary.toml"):
        write(root, name, "")
    for name in (ROAD_FILE, "LICENSE", ".gitignore"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name)
    # What a mentor has in the room needs whole maps; here nobody is in one.
    monkeypatch.setattr(stage, "run_files", lambda maps, root, switch: {})
    monkeypatch.setattr(stage, "sheet_files", lambda maps, root, switch: {})
    for name, title in (("l1", "The card"), ("l2", "The model"), ("l8", "Attention"), ("w1", "Flash")):
        write(root, f"handbook/sessions/{name}.toml", SESSION.format(name=name, title=title))
    page(
        root,
        "docs/index.md",
        f"## One road\n\n{ROAD}\n/// take_along\n///\n",
        description="Where all begins.",
    )
    page(root, "docs/start.md", section="Make the multiply fast", order=1, description="The first kernel.")
    page(root, "docs/l1.md", "One two three.", description='A "card".')
    page(root, "docs/l2.md", description="The model.")
    page(root, "docs/l8.md", description="Attention.")
    page(root, "docs/wrong.md", section="Beside the road", order=4, description="What goes wrong.")
    page(root, "handbook/a/arc.md", order=1, description="The arc.")
    page(root, "handbook/b/more.md", order=1, description="More.")
    mkdocs = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    mkdocs["hooks"] = [str(REPOSITORY / "src/course_site/site/hook.py")]
    mkdocs["theme"]["custom_dir"] = str(REPOSITORY / "overrides")
    mkdocs["nav"] = [
        "index.md",
        {"Learn": ["Make the multiply fast", "Make the model fast", "Beside the road"]},
        {"Teach": [{"A": "handbook/a"}, {"B": "handbook/b"}]},
    ]
    for key in ("watch", "extra_css", "extra_javascript", "validation"):
        mkdocs.pop(key)
    write(root, "mkdocs.yml", yaml.safe_dump(mkdocs))
    return root


def built(root, settings=""):
    write(root, "pyproject.toml", SETTINGS + settings)
    config = load_config(str(root / "mkdocs.yml"))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return root / "site"


def links(text, label):
    return re.findall(rf'<a href="([^"]*)"[^>]*aria-label="{label}: ', text)


def feet(site, name):
    """Where the foot of a page leads: back, on."""
    text = (site / name).read_text(encoding="utf-8")
    return links(text, "Previous"), links(text, "Next")


def metas(site, name):
    text = (site / name).read_text(encoding="utf-8")
    return dict(re.findall(r'<meta (?:name|property)="([^"]*)" content="([^"]*)">', text))


def test_a_site_that_nobody_said_anything_of(root):
    site = built(root)

    # Its own source stands in for a repository, and no address is made up.
    home = (site / "index.html").read_text(encoding="utf-8")
    assert f'<a href="{NAME}" download>' in home
    assert (site / NAME).is_file()
    assert (site / "LICENSE.txt").read_text() == (REPOSITORY / "LICENSE").read_text()
    assert "Made by" not in home
    for name in ("canonical", "og:url", "og:image"):
        assert name not in home, name
    assert not list(site.glob("sitemap*"))
    assert "<title>Percent of Peak</title>" in home
    # Who shares or searches for a page reads its description.
    said = metas(site, "l1.html")
    assert (said["og:title"], said["og:description"]) == ("L1 · The card", "A &#34;card&#34;.")
    assert said["twitter:card"] == "summary"
    # The road: what stands is a link with its minutes, what is to come is none.
    assert re.findall(r'<li class="stop[^"]*".*?(?:<a href="[^"]*">|<b>)(.*?)</', home) == [
        *("The docs_start", "The card", "The model"),
        *("Attention", "Flash"),
    ]
    assert (
        '<a href="l1.html">The card</a> <span class="takes">1 minute</span><p>A &quot;card&quot;.</p>' in home
    )
    assert '<li class="stop to-come"><b>Flash</b> <span class="takes">to come</span><p>What Flash' in home
    # No foot leads out of a half, or from students to mentors.
    assert {name: feet(site, f"{name}.html") for name in ("index", "start", "l1", "l2", "l8", "wrong")} == {
        "index": ([], ["start.html"]),
        "start": (["index.html"], ["l1.html"]),
        "l1": (["start.html"], ["l2.html"]),
        "l2": (["l1.html"], ["index.html#one-road"]),
        "l8": ([], ["index.html#one-road"]),
        "wrong": ([], []),
    }
    assert feet(site, "handbook/a/arc.html") == ([], ["../b/more.html"])
    assert feet(site, "handbook/b/more.html") == (["../a/arc.html"], [])


def test_a_site_with_an_address_below_a_path_and_a_repository(root):
    settings = 'organisation = "A & B"\nrepository = "https://code.example/a"\nsite_url = "https://a.example/course"\n'
    write(root, "docs/timed.py", TIMED)
    site = built(root, settings)

    home = (site / "index.html").read_text(encoding="utf-8")
    assert '<a href="https://code.example/a">The source</a>' in home
    assert "Made by A &amp; B." in home
    assert not (site / NAME).exists()
    said = metas(site, "l1.html")
    assert said["og:url"] == "https://a.example/course/l1.html"
    assert said["og:image"] == "https://a.example/course/assets/card.png"
    assert '<link rel="canonical" href="https://a.example/course/l1.html">' in (site / "l1.html").read_text()
    listed = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    assert "https://a.example/course/handbook/a/arc.html" in listed
    # A notebook lies beside its page, wherever that is.
    assert re.findall(r'href="([^"]*\.ipynb)"', (site / "timed.html").read_text()) == ["timed.ipynb"]
    # The page for a missing address, which is shown at any depth.
    missing = (site / "404.html").read_text(encoding="utf-8")
    named = re.findall(r'(?:href|src)="([^"#:]+)"', missing)
    assert named
    assert {name for name in named if not name.startswith("/course/")} == set()
    assert "new Image()" not in missing


def test_a_page_without_a_description_stops_the_build(root, caplog):
    page(root, "docs/l2.md", description='" "')
    with pytest.raises(Abort):
        built(root)
    assert "  docs/l2.md: has no description: write one sentence into its head" in caplog.text


WRONG = {
    'site_url = "a.example"': "[tool.course] site_url is 'a.example': write an address, https://…, or leave it out",
    'repository = "/srv/a"': "[tool.course] repository is '/srv/a': write an address, https://…, or leave it out",
    "organisation = 3": "[tool.course] organisation is 3: write it in quotes",
    'organization = "A"': (
        "[tool.course] has 'organization', known are organisation, reference, repository, site_url"
    ),
}


@pytest.mark.parametrize("line", WRONG)
def test_a_setting_that_cannot_be_used_is_one_line(line):
    with pytest.raises(AboutError) as refused:
        about(tomllib.loads(SETTINGS + line))
    assert str(refused.value) == WRONG[line]


def test_what_is_left_out_is_empty():
    assert about(tomllib.loads(SETTINGS)) == About(licence="MIT")
    assert about({"tool": {"course": {"reference": "x", "site_url": "http://a.example//"}}}) == About(
        site_url="http://a.example/"
    )


# --- the archive ---------------------------------------------------------------------------------


def test_the_archive_of_the_course_holds_what_its_first_command_needs(tmp_path):
    with tarfile.open(archive(REPOSITORY)) as packed:
        names = set(packed.getnames())
        packed.extract("percent-of-peak/README.md", tmp_path, filter="data")
    readme = (tmp_path / "percent-of-peak/README.md").read_text(encoding="utf-8")
    tree = re.findall(r"^\| `([\w./-]+)` \|", readme, re.MULTILINE)
    wanted = [name for name in tree if "/" in name or "." in name]
    missing = [
        name
        for name in (*wanted, "noxfile.py", "records/nvidia-h200/docs/start_here.ipynb")
        if not any(f"{found}/".startswith(f"percent-of-peak/{name.rstrip('/')}/") for found in names)
    ]
    assert wanted
    assert missing == []
    left_out = [name for name in names if "/.git/" in name or "/site/" in f"/{name}/".split("src/")[0]]
    assert left_out == []


def test_the_same_source_gives_the_same_bytes_with_git_and_without(root):
    write(root, "pyproject.toml", SETTINGS)
    write(root, "run", "#!/bin/sh\n").chmod(0o755)
    write(root, ".cache/left", "of a build")
    write(root, "site/index.html", "built")
    without = archive(root).read_bytes()
    assert without[4:8] == bytes(4)  # of no date
    commit_all(root)
    write(root, "notes.txt", "of nobody's concern")  # git does not track it
    shutil.rmtree(root / ".cache")
    (root / "run").touch()
    assert archive(root).read_bytes() == without
    assert gzip.decompress(without).count(b"of a build") == 0
    assert "notes.txt" not in source_files(root)

    write(root, "docs/l2.md", "changed")
    assert archive(root).read_bytes() != without
    assert len(list((root / ".cache/source").iterdir())) == 1
    with tarfile.open(archive(root)) as packed:
        modes = {entry.name: entry.mode for entry in packed}
    assert modes["percent-of-peak/run"] == 0o755
    assert modes["percent-of-peak/docs/l2.md"] == 0o644


def test_a_repository_of_somebody_else_around_the_course_is_not_asked(root):
    subprocess.run(["git", "init", "-q"], cwd=root.parent, check=True)
    assert "docs/index.md" in source_files(root)
