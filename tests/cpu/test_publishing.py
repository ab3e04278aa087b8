"""What is published: a policy that allows these pages and no more, headers, a folder that replaces only itself."""

import http.client
import json
import os
import shutil
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from course_site.publishing import command, folder, hashed, headers, missing, policy
from course_site.publishing.folder import NotPublished, publish
from course_site.publishing.served import served
from course_site.publishing.tried import broken

ROOT = Path(__file__).parents[2]
PAGE = (
    '<!doctype html><html><head><meta charset="utf-8"><title>x</title>'
    '<link rel="stylesheet" href="{up}assets/css/site.css"></head><body>{body}</body></html>'
)
SCRIPT = "var a = 1 < 2 && 'é';\n"
PYPROJECT = """[project]
license = "MIT"
[tool.course]
reference = "card"
organisation = "O"
repository = "https://code.host.dev/course"
site_url = "https://course.host.dev/peak"
"""


@pytest.fixture
def site(tmp_path):
    made = tmp_path / "site"
    for name, text in {
        "index.html": PAGE.format(up="", body=f"<script>{SCRIPT}</script>"),
        "404.html": PAGE.format(up="/peak/", body=""),
        "card/handbook/run/w1.html": PAGE.format(
            up="../../../", body='<script type="application/json">{}</script>'
        ),
        "lectures/l1.html": PAGE.format(up="../", body='<a href="../index.html">home</a>'),
        "assets/css/site.css": "p { color: red }",
        "assets/javascripts/bundle.a5f9d56c.min.js": "1",
        "assets/vendor/fonts/serif.woff2": "font",
    }.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return made


@pytest.fixture
def root(tmp_path, site):
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "LICENSE").write_text("MIT License")
    for name in ("docs", "handbook", "records"):
        (tmp_path / name).mkdir()
    later = time.time() + 10
    os.utime(site / "index.html", (later, later))
    return tmp_path


# --- the policy -------------------------------------------------------------------------------------------


def test_a_script_in_a_page_is_named_by_its_hash_as_it_stands_there():
    # openssl dgst -sha256 -binary | base64
    import base64
    import hashlib

    expected = f"'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
    found = [policy.hash_of(text) for text in policy.inline_scripts(f"<script>{SCRIPT}</script>")]
    assert found == [expected]


@pytest.mark.parametrize(
    "tag", ['<script src="a.js">', '<script type="application/json">', '<script type="text/plain">']
)
def test_what_no_browser_runs_in_place_has_no_hash(tag):
    assert policy.inline_scripts(f"{tag}x</script>") == []


@pytest.mark.parametrize("body", ['<p onclick="x()">', '<a href=" JavaScript:x()">', '<body onload="x()">'])
def test_what_a_hash_cannot_allow_is_refused_by_name(body):
    with pytest.raises(policy.PolicyError, match=r"^here\.html:1: <"):
        policy.inline_scripts(body, "here.html")


def test_scripts_have_no_way_round_the_hashes():
    said = dict(part.split(" ", 1) for part in policy.policy(["'sha256-x'"]).split("; "))
    assert said["script-src"] == "'self' 'sha256-x'"
    assert (
        said["default-src"] == said["base-uri"] == said["form-action"] == said["frame-ancestors"] == "'none'"
    )
    assert not any(word in " ".join(said.values()) for word in ("*", "http", "unsafe-eval"))
    assert [name for name, value in said.items() if "unsafe-inline" in value] == ["style-src"]


def test_a_page_carries_the_policy_before_anything_else_but_its_encoding():
    text = policy.with_policy(PAGE.format(up="", body=""), ["'sha256-x'"])
    assert text.index("charset") < text.index("Content-Security-Policy") < text.index("<title>")
    assert "frame-ancestors" not in text


# --- headers ----------------------------------------------------------------------------------------------


def test_no_file_has_two_rules_for_its_keeping(site):
    hashed.name_sheets(site)
    rules = headers.rules(site, policy.policy([]))
    assert headers.read_file(headers.as_file(rules)) == rules
    for path in site.rglob("*.*"):
        name = path.relative_to(site).as_posix()
        kept = headers.sent(rules, f"/{name}").get("Cache-Control", headers.EACH_TIME)
        assert kept == headers.kept_for(name)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("index.html", "no-cache"),
        ("assets/css/site.css", "no-cache"),
        ("assets/css/site.0123456789abcdef.css", "public, max-age=31536000, immutable"),
        # The theme's name of a sheet that the build has made lighter.
        ("assets/stylesheets/main.57a0d79d.min.css", "no-cache"),
        ("assets/javascripts/bundle.a5f9d56c.min.js", "public, max-age=31536000, immutable"),
        ("assets/vendor/fonts/serif.woff2", "public, max-age=2592000"),
        ("card/handbook/run/service_worker.js", "no-cache"),
    ],
)
def test_only_what_cannot_change_under_its_name_is_kept_for_ever(name, kept):
    assert headers.kept_for(name) == kept


def test_more_than_a_host_takes_is_refused(site):
    with pytest.raises(headers.HeadersError, match=r"a line of 2\d{3} characters"):
        headers.rules(site, "x" * 2000)


def test_a_sheet_with_other_rules_has_another_name_and_pages_ask_for_it(site):
    first = hashed.name_sheets(site)
    assert list(first) == ["assets/css/site.css"]
    name = first["assets/css/site.css"]
    assert f'href="{name}"' in (site / "index.html").read_text()
    assert f'href="../{name}"' in (site / "lectures/l1.html").read_text()
    assert f'href="/peak/{name}"' in (site / "404.html").read_text()
    assert 'href="../../../assets/css/site.css"' in (site / "card/handbook/run/w1.html").read_text()
    (site / "assets/css/site.css").write_text("p { color: blue }")
    (site / "index.html").write_text(PAGE.format(up="", body=""))
    assert hashed.name_sheets(site)["assets/css/site.css"] != name


def test_nginx_sends_the_same_headers_from_below_the_path():
    said = policy.policy(["'sha256-x'"])
    text = headers.as_nginx(said, "/peak/")
    assert f'add_header Content-Security-Policy "{said}" always;' in text
    assert "location /peak/ {" in text
    assert "error_page 404 /peak/404.html;" in text
    assert "location = /peak { return 301 /peak/; }" in text
    assert "return" not in headers.as_nginx(said, "/")
    assert text.count("{") - text.count("{16}") - text.count("{8}") == 4


# --- the folder -------------------------------------------------------------------------------------------


def names_in(place):
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def test_the_folder_is_the_site_with_what_a_host_needs(site, tmp_path):
    target = tmp_path / "out" / "public"
    publish(site, target, site_url="https://host.dev/peak/")
    added = set(names_in(target)) - set(names_in(site))
    sheet = added - {"_headers", "nginx.conf", "PUBLISHED.md", ".nojekyll", ".percent-of-peak.json"}
    assert [name.split(".")[0] for name in sheet] == ["assets/css/site"]
    assert policy.hash_of(SCRIPT) in (target / "_headers").read_text()
    assert "location /peak/" in (target / "nginx.conf").read_text()
    assert "Content-Security-Policy" not in (target / "index.html").read_text()
    assert sorted(path.name for path in target.parent.iterdir()) == ["public"]


def test_it_is_written_again_over_itself_and_what_is_gone_is_gone(site, tmp_path):
    target = tmp_path / "public"
    publish(site, target)
    (site / "lectures/l1.html").unlink()
    publish(site, target, in_pages=True)
    assert "lectures/l1.html" not in names_in(target)
    assert "http-equiv" in (target / "index.html").read_text()


@pytest.mark.parametrize("strange", [".git", "CNAME", "lectures/own.html"])
def test_a_folder_with_anything_that_is_not_ours_stays(site, tmp_path, strange):
    target = tmp_path / "public"
    publish(site, target)
    (target / strange).write_text("mine")
    before = {name: (target / name).read_bytes() for name in names_in(target)}
    with pytest.raises(NotPublished, match=f"has {strange}, which we did not write"):
        publish(site, target)
    assert {name: (target / name).read_bytes() for name in names_in(target)} == before


def test_a_folder_of_somebody_else_stays(site, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / ".percent-of-peak.json").write_text('["index.html"]')
    with pytest.raises(NotPublished, match="which we did not write"):
        publish(site, tmp_path / "theirs")


@pytest.mark.parametrize("place", ["site", "site/below", ".", "index.html"])
def test_no_folder_in_or_around_the_site_and_no_file(site, tmp_path, place):
    (tmp_path / "index.html").write_text("a file")
    with pytest.raises(NotPublished):
        publish(site, tmp_path / place)
    assert (site / "index.html").is_file()


def test_what_cannot_be_published_leaves_nothing_behind(site, tmp_path):
    target = tmp_path / "public"
    publish(site, target)
    before = names_in(target)
    (site / "index.html").write_text('<html><head></head><p onclick="x()">')
    with pytest.raises(NotPublished, match=r"index\.html:1: <p onclick"):
        publish(site, target)
    assert names_in(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["public", "site"]


def test_the_command_says_what_it_did(root, capsys):
    assert command.main([str(root / "public")], root) == 0
    assert command.main([str(root / "public" / "assets")], root) == 1
    said = capsys.readouterr().err
    assert "which we did not write" in said
    assert said.endswith("; nothing was written\n")


@pytest.mark.parametrize("words", [[], ["--online", "x"], ["--check", "x"], ["--check", "--in-pages"]])
def test_a_mistake_in_the_command_is_code_2(words):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2


# --- what is missing --------------------------------------------------------------------------------------


def test_nothing_is_missing_where_all_is_there(root, capsys):
    assert command.main(["--check"], root) == 0
    assert capsys.readouterr().out == "publish: nothing is missing\n"


@pytest.mark.parametrize("name", ["site_url", "repository", "organisation"])
def test_a_setting_that_nobody_said_is_a_line(root, capsys, name):
    lines = [line for line in PYPROJECT.splitlines() if not line.startswith(name)]
    (root / "pyproject.toml").write_text("\n".join(lines))
    old = time.time() - 10
    os.utime(root / "pyproject.toml", (old, old))
    assert command.main(["--check"], root) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"pyproject.toml: [tool.course] {name} is not said: ")
    assert said[1:] == ["publish: 1 is missing"]


def test_a_setting_with_a_host_that_is_none_is_a_line(root):
    (root / "pyproject.toml").write_text(PYPROJECT.replace("course.host.dev", "localhost:8000"))
    assert any(
        "site_url is 'http" in line and "'localhost' is no host" in line
        for line in missing.missing(root, root / "site")
    )


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda root: (root / "LICENSE").unlink(), "LICENSE: there is none"),
        (lambda root: (root / "LICENSE").write_text(" \n"), "LICENSE: there is none"),
        (lambda root: shutil.rmtree(root / "site"), "site/: there is none: run `nox -s docs`"),
        (
            lambda root: (root / "pyproject.toml").write_text(PYPROJECT.replace('license = "MIT"', "")),
            "pyproject.toml: [project] license is not said",
        ),
    ],
)
def test_each_thing_that_is_missing_is_a_line(root, fault, said):
    fault(root)
    assert [line for line in missing.missing(root, root / "site") if line.startswith(said)]


def test_a_source_that_is_newer_than_the_site_is_named(root):
    path = root / "docs" / "notes.css"
    path.write_text("p {}")
    later = time.time() + 60
    os.utime(path, (later, later))
    (root / "docs" / "__pycache__").mkdir()
    (root / "docs" / "__pycache__" / "a.pyc").write_text("")
    os.utime(root / "docs" / "__pycache__" / "a.pyc", (later, later))
    assert list(missing.missing(root, root / "site")) == ["site/: docs/notes.css is newer: run `nox -s docs`"]


def test_a_page_that_waits_and_one_that_is_stale_are_named(root):
    # A page that measures and has no record: nothing of it was ever run.
    page = "# ---\n# id: w9\n# title: T\n# needs: gpu\n# ---\n\n# %% [markdown]\n# # T\n\n# %%\nx = 1\n"
    for name in ("one", "two"):
        (root / "docs" / f"{name}.py").write_text(page.replace("w9", name))
    (root / "records" / "waiting.toml").write_text(
        '[[page]]\npath = "docs/one.py"\nsince = "2026-11-28"\nreason = "a new kernel"\n'
    )
    said = list(missing.missing(root, root / "site"))
    assert said[0] == "docs/one.py: waits for a card since 2026-11-28: a new kernel"
    assert said[1].startswith("docs/two.py: stale: ")


@pytest.mark.parametrize(
    ("host", "is_none"),
    [
        ("docs.python.org", False),
        ("www.nvidia.com", False),
        ("thisisanexample.com", False),
        ("11.nvidia.com", False),
        ("example.com", True),
        ("api.example.org", True),
        ("course.example", True),
        ("localhost:8000", True),
        ("127.0.0.1:8000", True),
        ("10.0.0.7", True),
        ("[::1]:80", True),
        ("intranet", True),
        ("server.local", True),
    ],
)
def test_a_host_that_no_reader_can_reach_is_told_without_a_network(host, is_none, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("nobody asked for the network"))
    assert bool(missing.fault_of_host(f"https://{host}/a")) == is_none


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("<p>TODO: a picture</p>", "'TODO' stands for something else"),
        ("<p>Lorem <b>ipsum</b>, Lorem ipsum dolor</p>", "'Lorem ipsum' stands for"),
        ("<p>A placeholder here</p>", "'placeholder' stands for"),
        ('<div class="banner waiting"><p>Not yet measured.</p></div>', "shows a banner in place"),
        ('<div class="banner stale"><p>A draft.</p></div>', "shows a banner in place"),
        ('<a href="https://example.org/x">x</a>', "https://example.org/x: 'example.org' is no host"),
        ("<pre>TODO in code</pre><p><code>XXX</code> is code, a todo list is none</p>", ""),
        ('<p>on <a href="https://docs.python.org/3/">the road</a></p>', ""),
    ],
)
def test_what_nobody_should_publish_is_found_on_a_page(site, body, found):
    (site / "lectures/l1.html").write_text(PAGE.format(up="../", body=body))
    said = list(missing.in_pages(site))
    assert [line.removeprefix("lectures/l1.html: ").startswith(found) for line in said] == [True] * bool(
        found
    )


def test_a_fault_of_many_pages_is_one_line(site):
    for name in ("index.html", "lectures/l1.html"):
        (site / name).write_text(PAGE.format(up="", body="<footer>TBD</footer>"))
    assert list(missing.in_pages(site)) == [
        "index.html: 'TBD' stands for something else: 'TBD' (and on 1 more pages)"
    ]


def test_the_network_is_asked_only_on_request(site, root, monkeypatch, capsys):
    links = '<a href="https://there.dev/a">a</a><a href="https://gone.dev/b">b</a>'
    (site / "lectures/l1.html").write_text(PAGE.format(up="../", body=links))

    def resolve(host, port):
        if host == "gone.dev":
            raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(missing.socket, "getaddrinfo", resolve)
    assert dict(missing.unknown_hosts(missing.hosts_of(site), resolve)) == {
        "gone.dev": "Name or service not known"
    }
    assert command.main(["--check"], root) == 0
    capsys.readouterr()


# --- served below a path ----------------------------------------------------------------------------------


def ask(base, path, **headers_):
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=10)
    connection.request("GET", path, headers=headers_)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_a_folder_is_served_below_its_path_with_its_headers(site, tmp_path):
    publish(site, tmp_path / "public")
    with served(tmp_path / "public", "/peak/") as base:
        page = ask(base, "/peak/index.html")
        assert (page.status, page.headers["Cache-Control"]) == (200, "no-cache")
        assert policy.hash_of(SCRIPT) in page.headers["Content-Security-Policy"]
        assert ask(base, "/peak/", **{"If-Modified-Since": page.headers["Last-Modified"]}).status == 304
        name = next(n for n in names_in(tmp_path / "public") if "site." in n and n != "assets/css/site.css")
        assert "immutable" in ask(base, f"/peak/{name}").headers["Cache-Control"]
        for path in (
            "/index.html",
            "/peak/none.html",
            "/peak/_headers",
            "/peak/lectures/",
            "/peak/../pyproject.toml",
        ):
            assert ask(base, path).status == 404, path


def test_a_browser_that_goes_away_is_no_news(site, tmp_path, capsys):
    (site / "large.bin").write_bytes(bytes(1 << 25))
    publish(site, tmp_path / "public")
    with served(tmp_path / "public", "/peak/") as base:
        with socket.create_connection(("127.0.0.1", urlsplit(base).port)) as browser:
            browser.sendall(b"GET /peak/large.bin HTTP/1.1\r\nHost: x\r\n\r\n")
            browser.recv(10)
        assert ask(base, "/peak/index.html").status == 200
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_a_link_that_is_broken_or_leaves_the_path_is_told(site, tmp_path):
    publish(site, tmp_path / "public")
    with served(tmp_path / "public", "/peak/") as base:
        host = base.removesuffix("peak/")
        ids = {f"{base}index.html": ["there"]}
        linked = [
            "index.html", "index.html#there", "index.html#top", "index.html#gone", "none.html", "lectures/l1.html#any",
        ]  # fmt: skip
        found = broken({base + name: "a.html" for name in linked} | {f"{host}b.html": "a.html"}, ids, base)
        assert list(found) == [
            f"a.html: {base}index.html#gone: there is no such id",
            f"a.html: 404 {base}none.html",
            f"a.html: {host}b.html leaves the site's path",
        ]
        assert (
            list(broken({"https://docs.python.org/": "a.html", "mailto:a@b.dev": "a.html"}, ids, base)) == []
        )


def test_the_list_of_files_is_whole(site, tmp_path):
    publish(site, tmp_path / "public")
    listed = json.loads((tmp_path / "public" / folder.LIST).read_text())["files"]
    assert sorted([*listed, folder.LIST]) == names_in(tmp_path / "public")
