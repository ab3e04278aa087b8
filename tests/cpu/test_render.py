"""From a page and its record to Markdown: what stands there, and what stops the build."""

import html
import json
import re
from dataclasses import replace

import nbformat
import pytest
from test_record import PROVENANCE, output, quantity
from test_values import measurement as in_bf16
from tiny_repository import make_repository, write

from course_site.pages.blocks import KINDS
from course_site.pages.glossary import Term
from course_site.pages.page import read_page
from course_site.records import changes, run_history
from course_site.records.digest import file_digest
from course_site.records.record import Record, build_record, record_path, seal
from course_site.site.course import load_course
from course_site.site.ledger import entries
from course_site.site.ledger_pages import ledger_of
from course_site.site.notebook import published_notebook
from course_site.site.render.files import source_region
from course_site.site.render.page import BLOCKS, render_course
from course_site.site.render.rendered import no_break_spaces, slim


def measurement(median_us, **more):
    """In fp8: 1000 TFLOP/s is more than the card can do in bf16, and a page that says so is not built."""
    return {**in_bf16(median_us, **more), "math": "fp8"}


PAGE = """
# ---
# id: w1
# title: Flash
# needs: gpu
# description: A page
# ---

# %% [markdown]
# # Flash
#
# The tuned kernel reaches {{ flash.tflops:.0f }} TFLOP/s, {{ flash.of_peak:.0%}} of peak.
#
# /// claim | flash.tflops > 1.4 * sdpa.tflops
# It beats SDPA by {{ ratio.full:.2f }}.
# /// otherwise
# It does not beat it.
# ///
#
# /// define | ratio.full = flash.tflops / sdpa.tflops
# unit: ×
# what: flash over SDPA
# ///

# %%
from tiny import kernel  # what it is
kernel.FACTOR

# %% [markdown]
# The last paragraph, with code `{{ left.alone }}` and math $x_{{i}}$.
"""

NAMES = {"flash": measurement(1000.0), "sdpa": measurement(1500.0), "m": quantity(3.0)}


def repository(tmp_path, monkeypatch, page=PAGE, names=NAMES, provenance=PROVENANCE):
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")
    write(root, "docs/w1.py", page.lstrip())
    record_it(root, names, provenance)
    return root


def record_it(
    root, names=NAMES, provenance=PROVENANCE, name="docs/w1.py", reads="src/tiny/kernel.py", keep=True
):
    page = read_page(root / name, root)
    manifest = {reads: file_digest(root, reads)}
    results = [[output(**names)] if i == 0 else [] for i, _ in enumerate(page.code)]
    record = build_record(page, results, [1.0] * len(page.code), manifest, provenance)
    record.save(record_path(root, "nvidia-h200", page))
    if keep:
        keep_run(root, record)


def keep_run(root, record, moved=0):
    """Make a record's run the only one of its page in the history of its card."""
    slug = record.edition["slug"]
    others = [run for run in run_history.load(root, slug) if run["page"] != record.meta["id"]]
    write(root, f"records/{slug}/{run_history.NAME}", json.dumps(seal({"kind": "runs", "runs": others})))
    run_history.append(root, slug, record, moved)


def render(root, page_id="w1", **options):
    course = load_course(root, **options)
    return course, render_course(course).get(page_id)


def problems(root, **options):
    course, _ = render(root, **options)
    return [str(problem) for problem in course.problems]


def test_prose_gets_its_numbers(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path, monkeypatch))
    assert course.problems == []
    assert ">1000</a> TFLOP/s" in page.markdown
    assert 'href="numbers/w1.html#w1.flash"' in page.markdown
    assert "It beats SDPA by" in page.markdown
    assert ">1.50</a>" in page.markdown
    assert "It does not beat it" not in page.markdown


def test_a_claim_carries_its_mark_its_condition_and_that_in_words(tmp_path, monkeypatch):
    _, page = render(repository(tmp_path, monkeypatch))
    text = page.inlined()
    claim = text[text.index('<div class="claim"') :].split("</div>")[0]
    assert 'data-condition="flash.tflops &gt; 1.4 * sdpa.tflops"' in claim
    mark = re.search(r'<a class="tested" title="([^"]*)" data-search-exclude>tested</a>', claim)
    assert html.unescape(mark[1]).split("\n") == [
        "The speed of “flash” is more than 1.4 times the speed of “sdpa”.",
        "True in 100.0% of the resamples, which imitate further runs.",
    ]
    assert "tested" not in "".join(
        cell[1] for cell in page.cells if cell[0] == "markdown" and "slot" not in cell[1]
    )


def test_what_stands_behind_the_values_of_a_page_stands_there_once(tmp_path, monkeypatch):
    values = "{{ flash.tflops:.1f }}, {{ flash.us / sdpa.us:.2f }}, {{ told:.0f}} ms and {{ said }}"
    more = f"# Again {values}.\n#\n# /// claim"
    told = {"kind": "quantity", "value": 7, "unit": "ms", "how": "given", "of": "", "sm_mhz": None}
    names = {**NAMES, "said": {"kind": "text", "value": "</script>"}, "told": told}
    root = repository(tmp_path, monkeypatch, PAGE.replace("# /// claim", more, 1), names)
    _, page = render(root)
    block = re.search(
        r'<script type="application/json" id="behind-the-values">(.*?)</script>', page.inlined()
    )
    behind = json.loads(block[1])
    names = behind["names"]
    assert [names[place]["name"] for value in behind["values"] for place in value["of"]][:2] == [
        "flash.tflops",
        "flash.of_peak",
    ]
    assert len(names) == len({name["name"] for name in names})
    flash = names[0]
    assert flash["value"].endswith(" TFLOP/s")
    assert (flash["n"], flash["row"], flash["what"]) == (200, "w1.flash", "p/k01")
    assert behind["runs"][flash["run"]] == ["NVIDIA H200", "21 Nov 2026"]
    given = next(name for name in names if name["name"] == "told")
    assert given["how"] == "given"
    assert "run" not in given
    assert re.search(r'title="told · given, by a source or by the page">7</a> ms', page.inlined())
    quotient = next(value for value in behind["values"] if value.get("is") == "flash.us / sdpa.us")
    assert quotient["value"] == "0.6667"
    assert [names[place]["name"] for place in quotient["of"]] == ["flash.us", "sdpa.us"]
    ratio = next(name for name in names if name["name"] == "ratio.full")
    assert (ratio["is"], ratio["what"]) == ("flash.tflops / sdpa.tflops", "flash over SDPA")
    assert [names[place]["name"] for place in ratio["of"]] == ["flash.tflops", "sdpa.tflops"]
    asked = re.findall(r'class="value"[^>]* data-of="(\d+)" title="([^" ]*)', page.markdown)
    assert len(asked) == 7
    for place, begins in asked:
        value = behind["values"][int(place)]
        assert value.get("is", names[value["of"][0]]["name"]).startswith(begins)


def test_code_and_math_are_left_alone(tmp_path, monkeypatch):
    _, page = render(repository(tmp_path, monkeypatch))
    assert "`{{ left.alone }}` and math <math><msub><mi>x</mi><mi>i</mi></msub></math>" in page.inlined()


def test_the_stamp_stands_under_the_title(tmp_path, monkeypatch):
    _, page = render(repository(tmp_path, monkeypatch))
    head = page.inlined().split("The tuned kernel")[0]
    assert head.startswith("# Flash\n")
    assert "Measured on NVIDIA H200 · 21 Nov 2026 · CUDA 13.0 · PyTorch 2.11 · Triton 3.6 · ran 1 s" in head
    assert "not in this history" not in head, "without git nobody can tell"
    monkeypatch.setattr("course_site.site.ledger.is_lost", lambda root, commit: True)
    assert (
        "not in this history; every file that ran is in it"
        in render(repository(tmp_path / "b", monkeypatch))[1].inlined()
    )


def test_the_minutes_stand_under_the_stamp_and_not_on_a_page_of_lists(tmp_path, monkeypatch):
    more = f"## More {{.beyond}}\n#\n# {'word ' * 300}The last paragraph"
    page = PAGE.replace("The last paragraph", more)
    course, rendered = render(repository(tmp_path, monkeypatch, page))
    assert course.problems == []
    head, _, rest = rendered.inlined().partition("The tuned kernel")
    assert head.rstrip().endswith(
        'Core: 1 minute. With all that is folded: 2.\n{: .minutes data-minutes="1" }'
    )
    assert "## More {.beyond}" in rest
    assert "<summary>Beyond the core, 2 minutes</summary>" in rest
    listed = repository(
        tmp_path / "b", monkeypatch, page.replace("last paragraph", "last\n#\n# /// moved\n# ///\n#\n")
    )
    assert "{: .minutes" not in render(listed)[1].markdown


ASKED = """/// predict | How fast?
# Guess.
#
# - [flash.tflops < 900] Less than 900 TFLOP/s
# - [flash.tflops >= 900] {{ m:.0f }} times **as much**
# - [ ] The same
# /// reveal
# {{ flash.tflops:.0f }} TFLOP/s.
# ///"""


def asking(asked=ASKED):
    """A page that asks, and says nothing else."""
    head, _, rest = PAGE.partition("# The tuned kernel")
    return head + f"# {asked}" + "\n\n# %%" + rest.partition("# %%")[2]


def choices_of(page):
    html = page.inlined()
    return [("data-right" in line, line) for line in html.splitlines() if line.startswith("- <label>")]


def test_which_choice_is_right_is_for_the_record_to_say(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path / "a", monkeypatch, asking()))
    assert course.problems == []
    assert [right for right, _ in choices_of(page)] == [False, True, False]
    assert choices_of(page)[1][1].endswith("times **as much**</span></label>")
    assert "flash.tflops" not in "".join(line for _, line in choices_of(page))
    slower = {**NAMES, "flash": measurement(1200.0)}
    course, page = render(repository(tmp_path / "b", monkeypatch, asking(), slower))
    assert [right for right, _ in choices_of(page)] == [True, False, False]


def test_exactly_one_choice_is_right_where_there_are_numbers(tmp_path, monkeypatch):
    none = asking(ASKED.replace(">= 900", "> 9000"))
    [fault] = problems(repository(tmp_path / "a", monkeypatch, none))
    assert "/// predict | How fast?: none of its choices is right by the record: exactly one must be" in fault
    both = asking(ASKED.replace("< 900", "> 10"))
    [fault] = problems(repository(tmp_path / "b", monkeypatch, both))
    assert "is right by the record: exactly one must be" in fault
    root = repository(tmp_path / "c", monkeypatch, none)
    course, page = render(root, rebuilt=True)  # a card that nobody foresaw is nobody's fault
    assert course.problems == []
    assert [right for right, _ in choices_of(page)] == [False, False, False]


def test_without_numbers_no_choice_is_right_yet(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch, asking())
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    _, page = render(root, draft=True)
    assert [right for right, _ in choices_of(page)] == [False, False, False]
    assert " data-waits " in page.markdown


def test_in_the_notebook_choices_are_a_list(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path, monkeypatch, asking()))
    first = json.loads(published_notebook(course, course.page("w1"), page))["cells"][0]["source"]
    assert (
        "**How fast?**\n\nGuess.\n\n- Less than 900 TFLOP/s\n- 3 times **as much**\n- The same\n\n<details"
        in first
    )
    assert not re.search("<(?:div|label|input|fieldset|legend|span)", first)


def test_what_answers_a_prediction_stands_covered(tmp_path, monkeypatch):
    below = f"{ASKED}\n#\n# {' '.join(['word'] * 80)}\n#\n# So it is {{{{ flash.tflops:.0f }}}} TFLOP/s."
    course, page = render(repository(tmp_path, monkeypatch, asking(below)))
    assert course.problems == []
    name = page.markdown.partition('class="predict" markdown="1" id="')[2].partition('"')[0]
    before, _, held = page.inlined().partition(f'<div class="covered" markdown="1" data-answers="{name}">')
    assert held.lstrip().startswith("So it is")
    assert before.rstrip().endswith('<div class="cover"></div>')
    first = json.loads(published_notebook(course, course.page("w1"), page))["cells"][0]["source"]
    assert "So it is 1000 TFLOP/s." in first
    assert "cover" not in first


def test_the_published_notebook_has_no_folds_and_its_pictures_in_their_place(tmp_path, monkeypatch):
    asked = (
        "/// predict | How fast?\n# Guess.\n# /// reveal\n# {{ flash.tflops:.0f }}\n#\n"
        "# /// chart | bars\n# title: Both\n# alt: two bars\n# x_label: TFLOP/s\n"
        "# bars: [{name: flash.tflops, label: ours}]\n# ///\n# ///"
    )
    page = PAGE.replace("The last paragraph", f"## More {{.beyond}}\n#\n# {asked}\n#\n# The last paragraph")
    page = page.replace(", {{ flash.of_peak:.0%}} of peak", "")
    course, rendered = render(repository(tmp_path, monkeypatch, page))
    notebook = json.loads(published_notebook(course, course.page("w1"), rendered))
    last = notebook["cells"][-1]["source"]
    assert last.startswith("## More\n")
    assert "Beyond the core" not in last
    question, _, reveal = last.partition("<details")
    assert "How fast?" in question
    assert "data:image" not in question
    assert "![two bars](data:image/svg+xml" in reveal.partition("</details>")[0]


def test_the_published_notebook_has_fresh_prose_and_no_leftovers(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch, PAGE.replace("last paragraph", "reworded paragraph"))
    course, page = render(root)
    notebook = nbformat.reads(published_notebook(course, course.page("w1"), page), as_version=4)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "reaches 1000 TFLOP/s" in text
    assert "The reworded paragraph" in text
    assert "token" not in text
    assert "{{ flash" not in text
    assert "<div" not in text


@pytest.mark.parametrize("site", ["", "https://example.org/course/"])
def test_the_published_notebook_leads_to_its_sources_and_to_the_site(tmp_path, monkeypatch, site):
    said = (
        "Others saw [^a] what `[^a]` is, [above](#flash), [there](sub/x.py#y), [`z`](../handbook/z.md) [^a]."
    )
    root = repository(tmp_path, monkeypatch, PAGE.replace("The last paragraph", f"{said}\n#\n# The last"))
    source = 'title = "A *paper*"\nauthors = ["A. B."]\nyear = 2024\nurl = "https://a.org/(x)"\nread = 2026-11-20\n'
    write(root, "docs/bibliography.toml", f'[a]\n{source}note = "abstract"\n')
    course, page = render(root)
    course.about = replace(course.about, site_url=site)
    *_, last, sources = json.loads(published_notebook(course, course.page("w1"), page))["cells"]
    one = "[\\[1\\]](<https://a.org/(x)>)"
    above, there, up = (f"{site}{name}.html" for name in ("w1", "sub/x", "handbook/z"))
    assert last["source"].startswith(
        f"Others saw {one} what `[^a]` is, [above]({above}#flash), [there]({there}#y), [`z`]({up}) {one}."
    )
    assert sources["source"].startswith(
        "## Sources\n\n1. A. B., [*A \\*paper\\**](https://a.org/(x)), 2024. Read 20 N"
    )


def test_a_turned_table_has_a_column_for_every_row(tmp_path, monkeypatch):
    table = """# /// table
# columns: [kernel, "% of peak", registers]
# rows:
#   - [naive, "{{ flash.of_peak:.0%}}", "40"]
#   - [tuned, "{{ flash.of_peak:.0%}}", "128"]
# turned: true
# ///
"""
    page = PAGE.replace("# /// claim", table + "#\n# /// claim", 1)
    course, rendered = render(repository(tmp_path, monkeypatch, page))
    assert course.problems == []
    lines = [line for line in rendered.markdown.splitlines() if line.startswith("|")]
    assert [line.count("|") for line in lines] == [4, 4, 4, 4]
    assert lines[0] == "| kernel | naive | tuned |"
    assert lines[1] == "| --- | ---: | ---: |"
    assert lines[3] == "| registers | 40 | 128 |"


WRITTEN = "def f():\n    # **no** <b>tag</b> {{ flash.us }} [a](b.md)\n\n    return ```3```\n"


def test_a_recorded_text_stands_as_it_is(tmp_path, monkeypatch):
    page = PAGE.replace("# /// claim", "# /// text | said.it\n# ///\n#\n# /// claim", 1)
    said = {"said": {"it": {"kind": "text", "value": WRITTEN}}}
    course, rendered = render(repository(tmp_path, monkeypatch, page, {**NAMES, **said}))
    assert course.problems == []
    assert f"```` {{ .text .output .no-copy }}\n{WRITTEN}````" in rendered.markdown
    assert (
        WRITTEN in json.loads(published_notebook(course, course.page("w1"), rendered))["cells"][0]["source"]
    )


def test_a_recorded_text_may_be_folded(tmp_path, monkeypatch):
    page = PAGE.replace(
        "# /// claim", '# /// text | said.it\n# fold: "What it <said>"\n# ///\n#\n# /// claim', 1
    )
    said = {"said": {"it": {"kind": "text", "value": WRITTEN}}}
    course, rendered = render(repository(tmp_path, monkeypatch, page, {**NAMES, **said}))
    assert course.problems == []
    head = '<details class="fold" markdown="1">\n<summary>What it &lt;said&gt;</summary>'
    assert f"{head}\n\n```` {{ .text .output .no-copy }}\n{WRITTEN}````\n\n</details>" in rendered.markdown


def test_what_is_no_text_or_may_not_be_published_is_refused(tmp_path, monkeypatch):
    page = PAGE.replace("# /// claim", "# /// text | NAME\n# ///\n#\n# /// claim", 1)
    said = {"path": {"kind": "text", "value": "read /home/me/file"}}
    for name, why in (
        ("m", "is not text"),
        ("path", "/home/me/file"),
        ("nothing", "unknown value 'nothing'"),
    ):
        folder = tmp_path / name
        course, _ = render(repository(folder, monkeypatch, page.replace("NAME", name), {**NAMES, **said}))
        assert [why in str(problem) for problem in course.problems] == [True], course.problems


def test_no_line_ends_inside_a_size(tmp_path, monkeypatch):
    page = PAGE.replace("The last paragraph", "A tile of 128 × 64, written `128 × 64`, M × N, 8 × 8 × 4")
    _, rendered = render(repository(tmp_path, monkeypatch, page))
    assert "A tile of 128\xa0×\xa064, written `128 × 64`, M × N, 8\xa0×\xa08\xa0×\xa04" in rendered.markdown


def test_the_ledger_table_offers_each_command_to_copy_and_unfolds_large_numbers(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path, monkeypatch))
    rows = entries(course, {"w1": page.shown})
    flash = next(row for row in rows if row["name"] == "w1.flash")
    flash["value"] = 123456.0
    flash["clocks"] = {"sm_mhz": 1000, "power_w": 2.0, "throttle": ["power limit"]}
    ledger = ledger_of(course, rows)
    table = ledger.chapters["numbers/w1.md"].inlined()
    assert f'data-clipboard-text="{flash["command"]}"' in table
    assert "123,456 µs" in table
    assert "1000 MHz, 2 W, power limit" in table
    assert '<tr id="of-w1"><th scope="row"><a href="numbers/w1.html">Flash</a>' in ledger.index


def test_the_ledger_has_everything_about_a_timing(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path, monkeypatch))
    rows = {row["name"]: row for row in entries(course, {"w1": page.shown})}
    flash = rows["w1.flash"]
    for key in (
        "n",
        "median",
        "spread",
        "unit",
        "gpu",
        "driver",
        "clocks",
        "date",
        "commit",
        "page",
        "command",
    ):
        assert flash[key] not in (None, ""), key
    assert (
        flash["command"]
        == "PYTHONPATH=src python -m course_kernels.measure p/k01 --workload dtype=bfloat16,N=4"
    )
    assert rows["w1.ratio.full"]["value"] == pytest.approx(1.5)
    assert rows["w1.ratio.full"]["unit"] == "×"
    assert rows["w1: flash.tflops"]["text"] == "1000"
    assert 'id="w1.flash"' in ledger_of(course, list(rows.values())).chapters["numbers/w1.md"].inlined()
    assert json.dumps(list(rows.values()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The tuned kernel reaches", "Our kernel gets to"),
        ("# what it is", "# what it really is"),
        ("Flash\n#\n# The", "FlashAttention\n#\n# The"),
        ("title: Flash", "title: Flash again"),
        ("The last paragraph", "A new paragraph.\n#\n# The last paragraph"),
        ("flash over SDPA", "ours over theirs"),
    ],
)
def test_no_gpu_is_needed_for_words(tmp_path, monkeypatch, old, new):
    root = repository(tmp_path, monkeypatch)
    write(root, "docs/w1.py", PAGE.replace(old, new).lstrip())
    write(root, "src/tiny/kernel.py", '"""A docstring."""\n\nFACTOR = 3  # three\n')
    assert PAGE.replace(old, new) != PAGE
    assert problems(root) == []


FLASH = "{{ flash.tflops:.0f }} TFLOP/s"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kernel.FACTOR", "kernel.FACTOR + 1", "is stale: docs/w1.py: code cell 1 changed"),
        ("{{ flash.tflops:.0f }}", "{{ flush.tflops:.0f }}", "unknown value 'flush.tflops'"),
        ("{{ flash.tflops:.0f }}", "{{ open(flash) }}", "only min, max, median and abs can be called"),
        ("> 1.4 *", "> 1.6 *", "claim `flash.tflops > 1.6 * sdpa.tflops` is false"),
        ("flash.tflops > 1.4 * sdpa.tflops", "flash.tflops > 0", "is vacuous"),
        ("/// claim |", "/// clam |", "unknown block `/// clam`"),
        ("# ///\n\n# %%\n", "#\n\n# %%\n", "is never closed"),
        (FLASH, "412 TFLOP/s", "typed number '412 TFLOP/s'"),
        (FLASH, "412&nbsp;TFLOP/s", "typed number"),
        (FLASH, "$412$ TFLOPS", "typed number"),
        (FLASH, "speeds twice as fast as SDPA", "typed number"),
        ("what: flash over SDPA", "what: 1.4x faster than SDPA", "typed number"),
        ("# title: Flash", "# titel: Flash", "unknown key in the head: titel"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, monkeypatch, old, new, said):
    root = repository(tmp_path, monkeypatch)
    assert PAGE.replace(old, new) != PAGE
    write(root, "docs/w1.py", PAGE.replace(old, new).lstrip())
    found = problems(root)
    assert any(line.startswith("docs/w1.py: ") and said in line for line in found), found


def test_all_problems_are_listed_at_once(tmp_path, monkeypatch):
    page = PAGE.replace("{{ flash.tflops:.0f }}", "{{ flush.us }} and {{ flesh.us }}").replace(
        "> 1.4 *", "> 1.6 *"
    )
    root = repository(tmp_path, monkeypatch)
    write(root, "docs/w1.py", page.lstrip())
    assert len(problems(root)) == 3


def test_a_changed_import_is_stale_and_a_draft_shows_no_number(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    assert "docs/w1.py: is stale: src/tiny/kernel.py changed since the record was made" in problems(root)[0]
    course, page = render(root, draft=True)
    assert course.problems == []
    assert "1000" not in page.inlined()
    assert "A draft" in page.markdown


def test_a_waiting_page_stands_without_numbers_and_must_be_listed_rightly(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    entry = '[[page]]\npath = "docs/w1.py"\nsince = "2026-11-21"\nreason = "no card was free"\n'
    write(root, "records/waiting.toml", entry)
    assert problems(root) == ["records/waiting.toml: docs/w1.py does not wait any more: take it off the list"]
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    course, page = render(root)
    assert course.problems == []
    assert "has been waiting for a GPU since 2026-11-21: no card was free" in page.markdown
    assert "1000" not in page.inlined()


def test_a_day_that_is_none_is_told_once_however_much_waits(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    entry = '[[page]]\npath = "docs/w1.py"\nsince = "%s"\nreason = "no card was free"\n'
    write(root, "records/waiting.toml", entry % "1999-01-01")
    (found,) = problems(root)
    assert found.startswith("records/waiting.toml: docs/w1.py: since 1999-01-01: the course began on ")
    write(
        root, "records/waiting.toml", entry % "2026-11-21" + "[[page]]\n"
    )  # no list at all: nothing else is read
    assert problems(root) == ["records/waiting.toml: every [[page]] needs path, since and reason ('path')"]


@pytest.mark.parametrize(
    ("book", "said"),
    [
        ("\n[dao2022]\ntitle = 3\n", "docs/bibliography.toml:2: 'dao2022': 'title' must be a str, not 3"),
        ("[dao2022]\ntitle\n", "docs/bibliography.toml: not TOML, or a key occurs twice: "),
    ],
)
def test_a_bibliography_that_is_none_is_one_line(tmp_path, monkeypatch, book, said):
    root = repository(tmp_path, monkeypatch)
    write(root, "docs/bibliography.toml", book)
    (found,) = problems(root)
    assert found.startswith(said)
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "[warp]\nterm = 3\n")
    (found,) = problems(root)
    assert found.startswith("docs/glossary.toml: 'warp'")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("w1.flash.us + 0", "it adds a typed number to µs"),
        ("odd + 0", "'odd' is defined by itself"),
        ("later.odd", "'odd' is defined by itself"),
        ("w1.flash + 0", "'flash' is a measurement; ask for one of: "),
        ("w1.nothing + 0", "unknown value 'nothing'"),
    ],
)
def test_a_definition_that_cannot_be_is_told_with_its_line(tmp_path, monkeypatch, expression, said):
    root = repository(tmp_path, monkeypatch)
    odd = f"/// define | odd = {expression}"
    text = QUOTES.replace(
        "# /// define | of_theirs", f"# {odd}\n# unit: µs\n# ///\n#\n# /// define | of_theirs"
    )
    text = text.replace("TFLOP/s.", "TFLOP/s. It takes {{ odd:.0f }} µs, 50 % of {{ odd:.0f }}.")
    asked = "/// predict | How long?\n- [x] {{ odd:.0f }} µs\n- [ ] No time\n/// reveal\n{{ odd:.0f }} µs.\n///\n\n"
    asked = re.sub("^", "# ", asked, flags=re.MULTILINE).removesuffix("# ")
    write(root, "docs/later.py", text.lstrip().replace(f"# {odd}", f"{asked}# {odd}"))
    record_it(root, name="docs/later.py", reads="src/tiny/lazy.py")
    found = problems(root)
    (line,) = (one for one in found if odd in one)
    assert line.startswith(f"docs/later.py: {odd}: {said}")
    assert line.endswith("(line 20)")


QUOTES = """
# ---
# id: later
# title: Later
# needs: gpu
# description: A page
# ---

# %% [markdown]
# # Later
#
# It reaches {{ of_theirs:.2f }} of the first, {{ w1.ratio.full:.2f }} of SDPA and {{ flash.tflops:.0f }} TFLOP/s.
#
# /// define | of_theirs = flash.tflops / theirs
# unit: 1
# what: this page over the first
# ///
#
# /// define | theirs = w1.flash.tflops * w1.ratio.full
# unit: TFLOP/s
# what: the first page's
# ///
#
# /// claim | of_theirs > 0.5
# It comes near: {{ of_theirs:.2f }}.
# ///
#
# /// chart | bars
# title: Both
# alt: two bars
# x_label: TFLOP/s
# bars: [{name: theirs, label: theirs}, {name: flash.tflops, label: ours}]
# ///

# %%
from tiny import lazy
lazy.add(1, 2)
"""


@pytest.mark.parametrize("draft", [False, True])
def test_what_rests_on_a_page_that_waits_is_no_fault_of_its_own(tmp_path, monkeypatch, draft):
    """Also through names of its own: what is missing then is a name that stands nowhere on this page."""
    root = repository(tmp_path, monkeypatch)
    write(root, "docs/later.py", QUOTES.lstrip())
    record_it(root, name="docs/later.py", reads="src/tiny/lazy.py")
    course, page = render(root, "later")
    assert course.problems == []
    assert "0.67" in page.inlined()

    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    if not draft:
        write(
            root,
            "records/waiting.toml",
            '[[page]]\npath = "docs/w1.py"\nsince = "2026-11-21"\nreason = "none"\n',
        )
    course, page = render(root, "later", draft=draft)
    assert course.problems == []
    assert ">1000</a> TFLOP/s" in page.inlined()
    assert "comes near" not in page.inlined()
    assert "0.67" not in page.inlined()
    assert page.markdown.count("—") == 2

    # A name of its own that nobody has is still one.
    write(root, "docs/later.py", QUOTES.lstrip().replace("{{ flash.tflops", "{{ flesh.tflops"))
    assert any("unknown value 'flesh.tflops'" in problem for problem in problems(root, draft=draft))


def test_a_record_of_a_made_up_card_is_never_published(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch, provenance={**PROVENANCE, "fake": True})
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    assert problems(root) == []
    monkeypatch.delenv("COURSE_FAKE_GPUS")
    assert "docs/w1.py: its record is of a GPU that COURSE_FAKE_GPUS made up" in problems(root)[0]


def test_two_editions_are_refused(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    write(root, "docs/other.py", PAGE.replace("id: w1", "id: other").lstrip())
    record_it(root, provenance={**PROVENANCE, "torch": "2.12.0"}, name="docs/other.py")
    (found,) = problems(root)
    assert "another edition" in found
    assert "torch 2.12" in found


def test_a_page_quotes_another_and_waits_with_it(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    quoted = "It reaches {{ w1.flash.tflops:.0f }}, {{ w1.ratio.full:.2f }} ×."
    write(root, "docs/index.md", f"---\nid: home\ntitle: Home\n---\n# Home\n\n{quoted}\n")
    course, page = render(root, "home")
    assert course.problems == []
    assert ">1000</a>, " in page.markdown
    assert 'href="numbers/w1.html#w1.ratio.full"' in page.markdown
    assert 'href="numbers/w1.html#w1.flash"' in page.markdown


def test_a_false_claim_on_another_card_takes_its_other_words(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    other = {**PROVENANCE, "gpu": "NVIDIA H100 80GB HBM3"}
    page = read_page(root / "docs/w1.py", root)
    names = {**NAMES, "flash": measurement(1490.0)}
    manifest = {"src/tiny/kernel.py": file_digest(root, "src/tiny/kernel.py")}
    record = build_record(page, [[output(**names)]], [1.0], manifest, other)
    record.save(record_path(root, "nvidia-h100-80gb-hbm3", page))
    keep_run(root, record)
    course, rendered = render(root, slug="nvidia-h100-80gb-hbm3")
    assert course.problems == []
    assert "It does not beat it" in rendered.markdown


GUEST = """
# /// when | guests.raced == 1
# The guest reaches {{ guest.tflops:.0f }} TFLOP/s.
#
# /// claim | guest.tflops > 1.4 * sdpa.tflops
# It beats SDPA, too.
# ///
# /// otherwise
# The guest was not there.
# ///
#
"""
WITH_GUEST = PAGE.replace("# The tuned kernel", f"{GUEST.strip()}\n# The tuned kernel", 1)
THERE = {**NAMES, "guests": {"raced": quantity(1.0)}, "guest": measurement(900.0)}
NOT_THERE = {**NAMES, "guests": {"raced": quantity(0.0)}}


def test_what_the_measuring_machine_had_chooses_the_text(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path, monkeypatch, WITH_GUEST, THERE))
    assert course.problems == []
    assert "The guest reaches" in page.markdown
    assert "It beats SDPA, too" in page.markdown
    assert "not there" not in page.markdown

    course, page = render(repository(tmp_path / "2", monkeypatch, WITH_GUEST, NOT_THERE))
    assert (
        course.problems == []
    )  # a fact is no claim: it stops no edition, and what rests on the guest is not asked
    assert "The guest was not there" in page.markdown
    assert "It beats SDPA, too" not in page.markdown


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("flash.tflops > 1.4 * sdpa.tflops", "rests on samples: only a `/// claim` may compare those"),
        ("flash.spread < 1", "rests on samples: only a `/// claim` may compare those"),
        ("guests.raced / 0 == 1", "cannot be computed: "),
        ("guests.raced + 1", "has no comparison in it"),
        ("guests.races == 1", "unknown value 'guests.races'"),
    ],
)
def test_only_a_recorded_fact_chooses_a_text(tmp_path, monkeypatch, condition, said):
    page = WITH_GUEST.replace("guests.raced == 1", condition)
    assert any(said in p for p in problems(repository(tmp_path, monkeypatch, page, NOT_THERE)))


def test_a_claim_in_a_text_that_a_fact_chose_still_gates(tmp_path, monkeypatch):
    names = {**THERE, "guest": measurement(1500.0)}
    found = problems(repository(tmp_path, monkeypatch, WITH_GUEST, names))
    assert any("claim `guest.tflops > 1.4 * sdpa.tflops` is false" in p for p in found)


CLOSE = {**NAMES, "flash": measurement(1500.0 / 1.41)}


def test_a_claim_inside_the_spread_stops_the_reference_edition(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch, names=CLOSE)
    assert any("claim `flash.tflops > 1.4 * sdpa.tflops` is too close to call" in p for p in problems(root))


def test_a_rebuild_says_in_the_sentence_that_it_could_not_be_decided(tmp_path, monkeypatch):
    course, page = render(repository(tmp_path, monkeypatch, names=CLOSE), rebuilt=True)
    assert course.problems == []
    assert "It does not beat it" in page.markdown
    assert [problem.path for problem in course.undecided] == ["docs/w1.py"]

    silent = PAGE.replace("# /// otherwise\n# It does not beat it.\n", "")
    course, page = render(repository(tmp_path / "2", monkeypatch, silent, CLOSE), rebuilt=True)
    assert course.problems == []
    assert "*Too close to call on this run:* It beats SDPA" in page.markdown


def test_a_true_sentence_whose_bound_is_far_away_stops_only_where_it_was_written(tmp_path, monkeypatch):
    """Beside a slower CPU, or on another card, the numbers move away from a bound that said much."""
    apart = {**NAMES, "sdpa": measurement(4000.0)}
    root = repository(tmp_path, monkeypatch, names=apart)
    (problem,) = problems(root)
    assert "claim `flash.tflops > 1.4 * sdpa.tflops` is vacuous" in problem
    course, page = render(root, rebuilt=True)
    assert course.problems == course.undecided == []
    assert "It beats" in page.markdown

    other = {**PROVENANCE, "gpu": "NVIDIA H100 80GB HBM3"}
    record = build_record(
        read_page(root / "docs/w1.py", root),
        [[output(**apart)]],
        [1.0],
        {"src/tiny/kernel.py": file_digest(root, "src/tiny/kernel.py")},
        other,
    )
    record.save(record_path(root, "nvidia-h100-80gb-hbm3", read_page(root / "docs/w1.py", root)))
    keep_run(root, record)
    course, page = render(root, slug="nvidia-h100-80gb-hbm3")
    assert course.problems == []
    assert "It beats" in page.markdown


def test_a_rebuild_stops_at_a_claim_that_is_clearly_false(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch, names={**NAMES, "flash": measurement(1500.0)})
    assert any("is false: true in 0.0%" in problem for problem in problems(root, rebuilt=True))


def test_a_typed_number_printed_by_a_cell_is_refused(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    page = read_page(root / "docs/w1.py", root)
    printed = {"output_type": "stream", "name": "stdout", "text": "reached 412 TFLOP/s\n"}
    manifest = {"src/tiny/kernel.py": file_digest(root, "src/tiny/kernel.py")}
    record = build_record(page, [[output(**NAMES), printed]], [1.0], manifest, PROVENANCE)
    record.save(record_path(root, "nvidia-h200", page))
    assert any("a cell prints the number '412 TFLOP/s'" in line for line in problems(root))


def test_a_term_is_explained_once_and_never_in_a_heading():
    term = '<abbr title="fast and small">L2</abbr>'
    page = f"<h2>The {term}</h2><p>{term} and {term}</p>"
    assert slim(page) == f"<h2>The L2</h2><p>{term} and L2</p>"


def test_a_term_in_a_link_leads_where_the_link_does():
    term = '<abbr title="fast and small">L2</abbr>'
    assert slim(f'<p><a href="x">the {term}</a>, {term}</p>') == f'<p><a href="x">the L2</a>, {term}</p>'


def test_no_line_begins_with_a_unit_or_with_the_mark_of_a_source():
    value, mark = '<a class="value" href="x">67</a>', '<sup id="fnref:x"><a class="footnote-ref">1</a></sup>'
    assert (
        no_break_spaces(f"{value}\nTFLOP/s of {value} sums {mark}.")
        == f"{value}\u00a0TFLOP/s of {value} sums{mark}."
    )
    unit = '<abbr title="a second">GB/s</abbr>'
    assert no_break_spaces(f"{value} {unit}, {value} waves") == f"{value}\u00a0{unit}, {value} waves"
    assert (
        no_break_spaces("<p>93.7\n% of <code>8 % 3</code></p>") == "<p>93.7\u00a0% of <code>8 % 3</code></p>"
    )
    moves = f'<figure class="chart explorable">{value} GB/s</figure>'
    assert no_break_spaces(moves) == moves
    for typed in ("48 KiB", "3.0 MB", "30 000", "2 621 440", "14336 × 4096", "2 · M · N · K", "M = 64"):
        assert no_break_spaces(f"<p>of {typed}, as {typed}</p>") == "<p>of {0}, as {0}</p>".format(
            typed.replace(" ", "\u00a0")
        )
    drawn = "<pre>48 KiB</pre><code>M = 64</code><svg><text>30 000</text></svg>"
    breaks = "<p>2 × 32 × 8 × 128 × 2, in 2023 128 of k04 536, L2 · L3</p>"
    assert no_break_spaces(drawn + breaks) == drawn + breaks
    assert no_break_spaces("<code>src/course_kernels/stall_demos/k01_one_reason.cu</code>") == (
        "<code>src/<wbr>course_<wbr>kernels/<wbr>stall_<wbr>demos/<wbr>k01_<wbr>one_<wbr>reason.cu</code>"
    )
    assert no_break_spaces("<p>as GPT-2, AB-123-X and <code>GPT-2</code></p>") == (
        '<p>as <span class="tied">GPT-2</span>, AB-123-X and <code>GPT-2</code></p>'
    )
    assert no_break_spaces("<code>Device().properties.multiprocessor_count</code>") == (
        "<code>Device().<wbr>properties.<wbr>multiprocessor_<wbr>count</code>"
    )
    assert (
        no_break_spaces("<td>as <code>WARP.ARRIVE</code></td>") == "<td>as <code>WARP.<wbr>ARRIVE</code></td>"
    )
    assert no_break_spaces("<p>as <code>WARP.ARRIVE</code></p>") == "<p>as <code>WARP.ARRIVE</code></p>"
    assert (
        no_break_spaces("<math><mi>x</mi></math>, so")
        == '<span class="tied"><math><mi>x</mi></math>,</span> so'
    )


def test_a_term_says_where_the_glossary_has_it_and_what_the_kitchen_calls_it():
    terms = {"fast & small": Term("l2", "L2", "fast & small", kitchen="the hall")}
    page = '<p><abbr title="fast &amp; small">L2</abbr> of <abbr title="other">X</abbr></p>'
    said = '<abbr data-term="l2" data-kitchen="the hall" title="fast &amp; small">L2</abbr>'
    assert slim(page, terms) == f'<p>{said} of <abbr title="other">X</abbr></p>'


def test_the_corner_of_a_table_is_no_head():
    head = '<tr><th style="text-align: right;"></th><th>µs</th></tr>'
    assert slim(head) == '<tr><td style="text-align: right;"></td><th>µs</th></tr>'


def test_a_command_is_marked_as_one_line_and_its_options_as_words():
    head = '<div class="language-bash highlight"><pre><span></span><code>'
    body = 'nox -s grade -- a-b --door numpy\n<span class="s2">"one</span>\n<span class="s2">--two\nthree"</span>\n'
    assert slim(f"{head}{body}</code></pre></div>") == (
        f'{head}<span class="command">nox <span class="option">-s</span> grade -- a-b '
        '<span class="option">--door</span> numpy</span>\n<span class="command"><span class="s2">"one</span></span>\n'
        '<span class="s2">--two\nthree"</span>\n</code></pre></div>'
    )
    assert slim(body) == body


def test_code_keeps_colours_only():
    assert slim('<span class="kn">import</span><span class="w"> </span><span class="n">x</span>') == (
        '<span class="kn">import</span> x'
    )


def test_a_pragma_does_not_hold_back_the_margin(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text("  // region loop\n#pragma unroll\n    for (;;)\n      x++;\n  // endregion\n")
    assert source_region(file, "loop") == ("#pragma unroll\nfor (;;)\n  x++;", 2)


def test_every_found_number_of_the_ledger_has_its_spread(tmp_path, monkeypatch):
    counted = {
        "kind": "counted",
        "kernel": "p/k01",
        "read_bytes": 10**9,
        "write_bytes": 1,
        "workload": {"dtype": "fp8", "dims": {}},
        "kernels": [{"name": "k"}],
    }
    took = {"kind": "quantity", "value": 3.0, "unit": "s", "how": "timed"}
    names = {**NAMES, "traffic": counted, "took": took}
    course, rendered = render(repository(tmp_path, monkeypatch, names=names))
    rows = {row["name"]: row for row in entries(course, {"w1": rendered.shown})}
    for name in ("flash", "traffic", "took"):
        assert 0.01 < rows[f"w1.{name}"]["spread"] < 0.1, name
    assert "spread" not in rows["w1.m"]  # worked out, not found


def test_a_broken_list_of_what_moved_is_one_line(tmp_path, monkeypatch):
    page = WITH_GUEST.replace("# The tuned kernel", "# /// moved\n# ///\n#\n# The tuned kernel", 1)
    root = repository(tmp_path, monkeypatch, page, THERE)
    assert problems(root) == []
    write(root, "records/nvidia-h200/changes.json", '{"moved": [{"name": "w1.flash"}]}')
    (said,) = problems(root)
    assert said == (
        "records/nvidia-h200/changes.json: was changed by hand (its checksum does not match); restore it with git"
    )
    write(root, "records/nvidia-h200/changes.json", json.dumps(seal({"moved": [{"name": "w1.flash"}]})))
    (said,) = problems(root)
    assert said == "records/nvidia-h200/changes.json: is not a list of what moved; restore it with git"


def test_a_record_says_what_was_kept_of_it_when_it_was_made(tmp_path, monkeypatch):
    """Who bends a record and seals it anew has not yet bent what stands beside it."""
    root = repository(tmp_path, monkeypatch)
    place = "records/nvidia-h200/docs/w1.ipynb"
    again = "restore it with git, or measure it again"
    record = Record.load(root / place)
    keep_run(root, record, moved=1)
    median, date = record.names["flash"]["quantiles_us"]["0.5"], record.meta["provenance"]["date"]
    changes.append(root, "nvidia-h200", [changes.Moved("w1.flash", 900.0, median, "µs", date)])
    assert problems(root) == []

    record_it(root, {**NAMES, "flash": measurement(950.0)}, keep=False)
    assert problems(root) == [
        f"{place}: flash is 950.1 in it, and 1000 in runs.json beside it; {again}",
        f"{place}: w1.flash is 950.1 in it, and moved to 1000 in changes.json beside it; {again}",
    ]
    record_it(root, {**NAMES, "more": measurement(950.0)}, keep=False)
    assert problems(root) == [f"{place}: more is 950.1 in it, and unknown in runs.json beside it; {again}"]
    record_it(root, provenance={**PROVENANCE, "date": "2026-11-20T11:00:00+00:00"}, keep=False)
    unknown = "runs.json beside it knows no run of 2026-11-20T11:00:00+00:00"
    assert problems(root) == [f"{place}: {unknown}; {again}"]
    (root / "records/nvidia-h200/runs.json").unlink()
    assert problems(root) == [f"{place}: {unknown}; {again}"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"uuid": "GPU-of-another-card"}, "it names the card GPU-of-anoth, and runs.json beside it None"),
        ({"commit": "def"}, "it names the commit def, and runs.json beside it abc"),
        ({"driver": "999.9"}, "its seal is not the one that runs.json beside it keeps of this run"),
    ],
)
def test_nothing_of_a_record_changes_alone(tmp_path, monkeypatch, changed, said):
    root = repository(tmp_path, monkeypatch)
    record_it(root, provenance={**PROVENANCE, **changed}, keep=False)
    assert [line.partition(": ")[2].partition(";")[0] for line in problems(root)] == [said]


def test_a_record_whose_run_keeps_no_seal_is_sealed_elsewhere(tmp_path, monkeypatch):
    """A counter, a trace, an error stand in no list of runs: the seal alone tells that they were changed."""
    root = repository(tmp_path, monkeypatch)
    runs = [
        {key: value for key, value in run.items() if key != "seal"}
        for run in run_history.load(root, "nvidia-h200")
    ]
    write(root, "records/nvidia-h200/runs.json", json.dumps(seal({"kind": "runs", "runs": runs})))
    assert any("keeps no seal of this run, and records/seals.txt does not" in line for line in problems(root))
    record = Record.load(root / "records/nvidia-h200/docs/w1.ipynb")
    write(root, "records/seals.txt", f"# Seals.\n{record.meta['checksum']} docs/w1.ipynb\n")
    assert problems(root) == []


def test_a_list_of_what_moved_that_is_taken_away_or_thinned_is_missed(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch)
    old = Record.load(root / "records/nvidia-h200/docs/w1.ipynb")
    record_it(
        root, {**NAMES, "flash": measurement(400.0)}, {**PROVENANCE, "date": "2026-11-21T12:00:00+00:00"}
    )
    new = Record.load(root / "records/nvidia-h200/docs/w1.ipynb")
    write(root, "records/nvidia-h200/runs.json", json.dumps(seal({"kind": "runs", "runs": []})))
    found = changes.moved(old, new, run_history.between([]))
    run_history.append(root, "nvidia-h200", old)
    run_history.append(root, "nvidia-h200", new, len(found))
    assert any("1 of its values moved, and the list of what moved has 0" in line for line in problems(root))
    changes.append(root, "nvidia-h200", found)
    assert not any("moved" in line for line in problems(root))
    runs = [
        {key: value for key, value in run.items() if key != "moved"}
        for run in run_history.load(root, "nvidia-h200")
    ]
    assert run_history.doubt_of_moves(new, runs, []) != ""  # as in a history from before the number was kept
    assert run_history.doubt_of_moves(new, runs, changes.load(root, "nvidia-h200")) == ""


def test_every_kind_of_block_becomes_something():
    assert set(BLOCKS) == {*KINDS, "cover"}  # which the build alone makes
