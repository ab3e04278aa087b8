"""What compilers made of W3's rungs: of the very lines that the page shows, each instruction beside its line."""

import functools
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_site.pages.blocks import DirectiveError, parse
from course_site.pages.lens import digest, idea_of, read
from course_site.pages.rungs import read as read_rungs
from course_site.site.render.rungs import rungs

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/workshops/w3_lens.json"
PAGE = ROOT / "docs/workshops/w3_abstraction_ladder.py"


@functools.cache
def ladder():
    return read_rungs(ROOT, ROOT / "docs/workshops/w3_rungs.toml")


@functools.cache
def made():
    return read(FILE, ladder())  # refuses a kernel that has changed


def rung(name):
    (found,) = (rung for rung in ladder().rungs if rung.name == name)
    return found


def names(name, idea, kind="sass"):
    """The instructions of a rung's loops that come from an idea's lines."""
    return [
        one.text
        for loop in made()[name].loops
        for one in getattr(loop, kind)
        if idea_of(one, rung(name)) == idea
    ]


def test_every_rung_has_a_loop_that_multiplies_and_tiles_come_by_tma():
    assert list(made()) == [rung.name for rung in ladder().rungs]
    for name, found in made().items():
        first, *others = found.loops
        assert any(one.text.startswith("HGMMA.64x256x16") or "HGMMA" in one.text for one in first.sass), name
        assert any("wgmma.mma_async" in one.text for one in first.ptx), name
        assert any("UTMALDG" in one.text for loop in found.loops for one in loop.sass), name
        assert any("cp.async.bulk.tensor" in one.text for loop in found.loops for one in loop.ptx), name
        # Another loop fetches where a warp has nothing else to do; Helion and Triton give no roles.
        assert len(others) == (name not in ("helion", "triton")), name
        assert 100 < found.registers <= 255
        assert 190 * 1024 < found.shared_bytes <= 227 * 1024
        assert len(first.sass) < found.all


def test_who_says_lines_is_known():
    """TileLang writes CUDA C++ first, and CUTLASS's code is in its headers."""
    assert [name for name, found in made().items() if not found.lined] == ["tilelang", "cutlass"]
    for name, found in made().items():
        lines = [one.at for loop in found.loops for one in loop.sass]
        assert all(lines) if name in ("helion", "triton", "gluon", "cuda") else not all(lines)
    assert not any(one.at for loop in made()["cutile"].loops for one in loop.ptx)


def test_of_four_orders_to_the_tensor_cores_one_or_more_carry_a_neighbour_s_line():
    """The page says so: ptxas gives no line of its own to one that is moved among other instructions."""
    right = {
        name: sum("HGMMA" in text for text in names(name, "multiply"))
        for name, found in made().items()
        if found.lined
    }
    assert len(right) == 6
    for name, count in right.items():
        assert 1 <= count < 4, name
        assert sum("HGMMA" in one.text for loop in made()[name].loops for one in loop.sass) == 4, name


@pytest.mark.parametrize(
    ("instruction", "in_triton", "in_cuda"),
    [("SYNCS.PHASECHK", "for tile in tl.range(", "wait("),
     ("WARPGROUP.DEPBAR.LE gsb0, 0x1", "tl.dot(", "wgmma_wait<1>()"),
     ("UTMALDG", "X.load(", "load_tile")],
)  # fmt: skip
def test_the_page_s_answer_names_the_lines_that_wait_and_fetch(instruction, in_triton, in_cuda):
    for name, words in (("triton", in_triton), ("cuda", in_cuda)):
        found = [one for loop in made()[name].loops for one in loop.sass if instruction in one.text]
        assert found
        for file, line in (one.at for one in found):
            near = ladder().texts[file][line - 1 : line + (name == "cuda")]  # or in the line below: see above
            assert words in "".join(near), name


def test_a_kernel_that_has_changed_is_refused_with_the_command(tmp_path):
    data = json.loads(FILE.read_text())
    data["gluon"]["kernel"] = "0"
    (tmp_path / "w3_lens.json").write_text(json.dumps(data))
    with pytest.raises(
        DirectiveError, match=r"^w3_lens.json: gluon: its kernel has changed; .*lens.py --anew"
    ):
        read(tmp_path / "w3_lens.json", ladder())
    del data["gluon"]
    (tmp_path / "w3_lens.json").write_text(json.dumps(data))
    with pytest.raises(DirectiveError, match=r"^w3_lens.json: cannot be read: KeyError\('gluon'\)"):
        read(tmp_path / "w3_lens.json", ladder())


def test_where_a_kernel_stands_in_its_file_does_not_matter():
    one = rung("cutile")
    (part,) = one.shown
    below = SimpleNamespace(shown=[SimpleNamespace(file="f", first=part.first + 3)])
    text = SimpleNamespace(text=lambda part: ladder().text(one.shown[0]))
    assert digest(text, below) == digest(ladder(), one)


@functools.cache
def page():
    """The block of the page, as HTML."""
    found = []
    writer = SimpleNamespace(
        course=SimpleNamespace(root=ROOT), plain=str, shared=lambda name: name,
        slot=lambda raw, words: found.append(raw) or "",
    )  # fmt: skip
    text = re.search(r"^# /// rungs \|.*?^# ///$", PAGE.read_text(), re.DOTALL | re.MULTILINE)[0]
    (block,) = parse(re.sub(r"^# ?", "", text, flags=re.MULTILINE) + "\n")
    rungs(writer, block)
    return found[0]


def test_the_page_has_folds_for_every_rung_and_shows_the_two_of_the_code_view():
    folds = re.findall(r'<details class="fold made">.*?</details>', page(), re.DOTALL)
    assert len(folds) >= 5
    for fold in folds:
        sides = re.findall(r'data-rung="(\w+)"( hidden)?', fold)
        assert [name for name, hidden in sides if not hidden] == ["triton", "cuda"]
        assert len(sides) == 8
    assert page().count("Compiled for sm_90a with") == 8
    assert page().count("names no line of this file") == 2 * (len(folds) - 1)  # the first has the numbers
    assert "of shared memory a block; 1248 instructions" in page() or made()["triton"].all != 1248


def test_long_runs_are_cut_short_and_the_page_stays_light():
    assert re.search(r"\n    … \d+ × F2FP", page())
    made_parts = "".join(re.findall(r'<details class="fold made">.*?</details>', page(), re.DOTALL))
    assert 40_000 < len(made_parts) < 150_000
