"""The theme's style sheets keep every rule that can match, and lose the others."""

import pytest

from course_site.site import styles
from course_site.site.render import value_facts


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        (".here{color:red}", ".here{color:red}"),
        (".gone{color:red}", ""),
        (".here,.gone .here,.here .late--on{color:red}", ".here,.here .late--on{color:red}"),
        (".here:not(.gone){a:b}", ".here:not(.gone){a:b}"),
        (".here :is(.gone,p){a:b}", ".here :is(.gone,p){a:b}"),
        ("[data-md-color-scheme=slate][data-md-color-primary=red]{a:b}", ""),
        (
            '[data-md-color-primary="red"],[data-md-color-primary=ink]{a:b}',
            "[data-md-color-primary=ink]{a:b}",
        ),
        ("[data-md-color-scheme=slate]{a:b}", "[data-md-color-scheme=slate]{a:b}"),
        ("[dir=rtl] .here{a:b}", ""),
        ("[dir=ltr] .here{a:b}", "[dir=ltr] .here{a:b}"),
        ("@media print{.gone{a:b}.here{a:b}}", "@media print{.here{a:b}}"),
        ("@media print{.gone{a:b}}", ""),
        ("@keyframes gone{0%{a:b}to{a:c}}", "@keyframes gone{0%{a:b}to{a:c}}"),
        ('@charset "UTF-8";html{a:b}', '@charset "UTF-8";html{a:b}'),
        (":root{--x:url(\"data:a,<svg a='}'/>\")}.gone{a:b}", ":root{}"),
        (
            ":root{--x:url(\"data:a,<svg a='}'/>\");--y:url('b');--z:1}.here{a:var(--x)}.gone{a:var(--y)}",
            ":root{--x:url(\"data:a,<svg a='}'/>\");--z:1}.here{a:var(--x)}",
        ),
        (".here{a:'\\'}'}.gone{a:b}/* .here{ */", ".here{a:'\\'}'}/* .here{ */"),
        ("p{margin:.5em 0}", "p{margin:.5em 0}"),
    ],
)
def test_what_can_match_stays(tmp_path, rule, left):
    (tmp_path / "assets/stylesheets").mkdir(parents=True)
    (tmp_path / "assets/stylesheets/main.css").write_text(rule)
    (tmp_path / "assets/site.js").write_text('add("late--on")')
    (tmp_path / "index.html").write_text(
        '<body data-md-color-primary="ink"><input data-md-color-scheme="slate"><p class="here there">x</p>'
    )
    styles.lighten(tmp_path)
    assert (tmp_path / "assets/stylesheets/main.css").read_text() == left


def test_ours_lose_comments_and_white_space_and_nothing_a_reader_sees(tmp_path):
    (tmp_path / "assets/css").mkdir(parents=True)
    (tmp_path / "assets/js/parts").mkdir(parents=True)
    (tmp_path / "assets/css/site.css").write_text(
        "/* why */\n.gone { color: red; }\n.b::after { content: 'a  b'; }\n"
    )
    (tmp_path / "assets/js/parts/a.js").write_text(
        "/* why */\nvar words = { a: 'two  blanks, // no comment' };   // one\n\n\nvar b = 1 / 2;\n"
    )
    styles.lighten(tmp_path)
    sheet = (tmp_path / "assets/css/site.css").read_text()
    script = (tmp_path / "assets/js/parts/a.js").read_text()
    assert sheet == ".gone{color:red}.b::after{content:'a  b'}"
    assert script.replace("\n", "") == "var words={a:'two  blanks, // no comment'};var b=1/2;"


def test_sheets_that_every_page_asks_for_are_one_in_their_order_and_others_stay(tmp_path):
    (tmp_path / "assets/css").mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    for name in ("one", "two", "own"):
        (tmp_path / f"assets/css/{name}.css").write_text(f"p {{ color: {name} }}\n")
    link = '<link rel="stylesheet" href="{}assets/css/{}.css">'
    for page, to in (("index.html", ""), ("404.html", "/sub/"), ("deep/page.html", "../")):
        row = "\n    ".join(link.format(to, name) for name in ("one", "two"))
        (tmp_path / page).write_text(f"<head>{row}<style></style>{link.format(to, 'own')}</head>")
    styles.lighten(tmp_path, ["assets/css/one.css", "assets/css/two.css"])

    for page, to in (("index.html", ""), ("404.html", "/sub/"), ("deep/page.html", "../")):
        left = link.format(to, "one") + "<style></style>" + link.format(to, "own")
        assert (tmp_path / page).read_text() == f"<head>{left}</head>"
    assert (tmp_path / "assets/css/one.css").read_text() == "p{color:one}p{color:two}"
    assert sorted(file.name for file in (tmp_path / "assets/css").iterdir()) == ["one.css", "own.css"]


def test_what_stands_behind_the_values_leaves_the_page():
    page = f'<p>x</p><script type="application/json" id="{value_facts.ID}">{{"a":1}}</script><p>y</p>'
    light, told = value_facts.apart(page, "l5.values.js")
    assert light == f'<p>x</p><span id="{value_facts.ID}" data-file="l5.values.js" hidden></span><p>y</p>'
    assert told == 'PercentOfPeak.behind({"a":1});\n'
    assert value_facts.apart("<p>x</p>", "l5.values.js") == ("<p>x</p>", "")
