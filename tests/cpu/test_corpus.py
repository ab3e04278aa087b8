"""The text that small models learn: the same on every Python, and refused in one line where it is not."""

import hashlib
import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from course_models.corpus import PINS, CorpusError, Pin, load, main, make_pins, pieces, read_pins

LONG = "    # " + "a comment that is long enough to be text. " * 5


def function(name, word="soup"):
    return f"def {name}():\n    '''{word}'''\n{LONG}\n    return {word!r}\n"


def library(folder, **files):
    folder.mkdir(parents=True)
    (folder / "os.py").write_text(function("os"))
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def name_of(held_out):
    """A file name that is held out, or is not."""
    for number in range(1000):
        name = f"m{number}"
        if Pin(f"{name}.py", "", 0, ()).held_out is held_out:
            return name
    raise AssertionError


LEARNT, HELD = name_of(False), name_of(True)


@pytest.fixture
def two(tmp_path):
    """Two libraries that agree in a part of what they say, and pins of what they agree in."""
    files = {LEARNT: function("f") + function("g"), HELD: function("h")}
    one = library(tmp_path / "one", **files)
    other = library(
        tmp_path / "other", **files | {LEARNT: function("new") + function("f") + function("g", "stew")}
    )
    pins = tmp_path / "pins.txt"
    lines = [f"{p.name} {p.digest} {p.size} {''.join(p.marks)}\n" for p in make_pins([one, other])]
    pins.write_text("# head\n" + "".join(lines))
    return one, other, pins


def test_what_two_pythons_share_is_the_text_of_both(two):
    one, other, pins = two
    found, again = load(one, pins), load(other, pins)
    assert found == again
    assert found.sha256 == again.sha256
    assert found.absent == ()
    text = b"".join(found.train)
    assert b"def f()" in text
    assert b"def g()" not in text
    assert b"def new()" not in text
    assert b"def h()" in found.held_out[0]


def test_one_more_python_narrows_the_text_and_brings_nothing_in(two, tmp_path):
    _, other, pins = two
    third = library(
        tmp_path / "third", **{LEARNT: function("g", "stew") + function("k"), HELD: function("h")}
    )
    narrowed = make_pins([other, third], read_pins(pins))
    # Both have g as stew, which the first two do not share; what all three share is h, and os.
    assert {pin.name for pin in narrowed} == {"os.py", f"{HELD}.py"}
    assert {mark for pin in narrowed for mark in pin.marks} < {
        m for pin in read_pins(pins) for m in pin.marks
    }


def test_files_are_held_out_whole_and_by_their_name_alone(two):
    one, _, pins = two
    found = load(one, pins)
    assert not any(b"def h()" in text for text in found.train)
    assert (found.train_bytes, found.held_out_bytes) == (sum(map(len, found.train)), len(found.held_out[0]))
    assert Pin("calendar.py", "", 0, ()).held_out
    assert not Pin("difflib.py", "", 0, ()).held_out


@pytest.mark.parametrize(
    "spoil", [lambda path: path.unlink(), lambda path: path.write_text(function("h", "stew"))]
)
def test_a_file_to_measure_on_that_is_another_one_is_refused(two, spoil):
    one, _, pins = two
    spoil(one / f"{HELD}.py")
    with pytest.raises(
        CorpusError, match=rf"^corpus: {HELD}\.py of .* is not what the loss is measured on"
    ) as caught:
        load(one, pins)
    assert "\n" not in str(caught.value)


def test_the_same_pieces_in_another_order_are_another_text(tmp_path):
    one = library(tmp_path / "one", **{LEARNT: function("f"), HELD: function("g") + function("h")})
    pins = tmp_path / "pins.txt"
    pins.write_text("".join(f"{p.name} {p.digest} {p.size} {''.join(p.marks)}\n" for p in make_pins([one])))
    assert len(load(one, pins).held_out) == 1
    (one / f"{HELD}.py").write_text(function("h") + function("g"))
    with pytest.raises(CorpusError, match="is not what the loss is measured on"):
        load(one, pins)


def test_a_little_to_train_on_may_differ_and_much_may_not(tmp_path):
    many = {f"{LEARNT}_{i}": function(f"f{i}") for i in range(200)} | {HELD: function("h")}
    one = library(tmp_path / "one", **many)
    pins = tmp_path / "pins.txt"
    pins.write_text("".join(f"{p.name} {p.digest} {p.size} {''.join(p.marks)}\n" for p in make_pins([one])))
    learnt = [p.name for p in read_pins(pins) if not p.held_out and p.name != "os.py"]
    whole = load(one, pins)
    (one / learnt[0]).unlink()
    fewer = load(one, pins)
    assert fewer.absent == (learnt[0],)
    assert fewer.held_out == whole.held_out
    assert fewer.sha256 != whole.sha256
    for name in learnt[1:10]:
        (one / name).write_text("syntax error(")
    with pytest.raises(CorpusError, match=r"has 9\d% of the text to train on, and 98% are needed"):
        load(one, pins)


def test_pins_that_are_gone_or_spoilt_are_one_line(tmp_path, two):
    one, _, pins = two
    with pytest.raises(CorpusError, match="No such file or directory: restore it with git"):
        load(one, tmp_path / "absent.txt")
    for text in ("half a line", "name digest many marks extra", ""):
        pins.write_text(text)
        with pytest.raises(CorpusError, match=r"restore it with git"):
            load(one, pins)


def test_a_file_is_cut_at_its_functions_and_short_pieces_fall_out(tmp_path):
    path = tmp_path / "m.py"
    body = f"class C:\n    '''{'long ' * 60}'''\n    @property\n    def p(self):\n{LONG}\n        return 1\n"
    path.write_text(
        f"import os\n\n{body}\n\n{function('f')}x = 1\n{function('f')}\ndef é():\n{LONG}\n    pass\n",
        encoding="utf-8",
    )
    found = list(pieces(path))
    assert [re.findall(r"class C|def \w+", piece) for piece in found] == [["class C"], ["def p"], ["def f"]]
    assert found[1].startswith("    @property")
    path.write_bytes(b"\xff\xfe")
    assert list(pieces(path)) == []
    assert list(pieces(tmp_path / "absent.py")) == []


@pytest.fixture(scope="module")
def ours():
    """The text as the Python that runs the tests has it."""
    return load()


def test_the_text_of_this_python_is_the_pinned_one(ours):
    assert 3_000_000 < ours.train_bytes < 4_500_000
    assert 200_000 < ours.held_out_bytes < 500_000
    assert (
        ours.sha256
        == hashlib.sha256(
            b"".join(b"%d\n" % len(text) + text for text in (*ours.train, *ours.held_out))
        ).hexdigest()
    )
    assert all(text.isascii() for text in (*ours.train, *ours.held_out))


def libraries():
    """The standard libraries of the other Pythons of this machine that are new enough, each with its Python."""
    code = "import sys, sysconfig; print(*sys.version_info[:2], sysconfig.get_path('stdlib'))"
    found = {}
    for folder in os.get_exec_path():
        for minor in (".13", ".12", ".11", ""):
            python = Path(folder) / f"python3{minor}"
            if python.is_file():
                done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
                major, second, library = (done.stdout.strip().split(" ", 2) + [""] * 3)[:3]
                if major == "3" and 11 <= int(second) <= 13:
                    found[library] = python
    found.pop(sysconfig.get_path("stdlib"), None)
    return found


def test_another_python_of_this_machine_has_the_same_text(ours):
    code = "import sys; sys.path.insert(0, sys.argv[1])\nfrom course_models.corpus import load; print(load().sha256)"
    found = set()
    for python in libraries().values():
        command = [str(python), "-W", "ignore", "-c", code, str(PINS.parents[1])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout.strip())
    if not found:
        pytest.skip("no other Python from 3.11 to 3.13 here")
    assert found == {ours.sha256}


def test_the_command_wants_libraries(capsys):
    assert main(["/nowhere"]) == 2
    assert "name the folders of standard libraries" in capsys.readouterr().err
