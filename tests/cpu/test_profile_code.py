"""`nox -s profile -- FILE --code`: one file with source, PTX and SASS in step, and one line for what is wrong."""

import re
from pathlib import Path

import pytest

from course_kernels.line_info import MachineLine, Place
from course_profile import code as command
from course_profile import code_worker, run
from course_profile.code_page import page
from course_profile.code_worker import BELIEVED
from course_profile.machine_code import Kernel

pytest.importorskip("cuda.core")

PART = "__device__ inline float scaled(float x) { return 3.0f * x + 1.0f; }\n"
SCALE = """\
#include "part.cuh"
extern "C" __global__ void scale(const float *x, float *y, int N) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  extern __shared__ float room[];
  room[threadIdx.x] = x[i];
  if (i < N && 0 < N) y[i] = scaled(room[threadIdx.x]);
}
extern "C" __global__ void fill(float *y) { y[threadIdx.x] = 2.0f; }
"""
ADD = """\
import torch, triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024})], key=["N"])
@triton.jit
def add_kernel(x, y, z, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < N)
    tl.store(z + i, a + tl.load(y + i, mask=i < N), mask=i < N)


def vector_add(x, y):
    assert x.is_cuda and torch.cuda.get_device_capability(x.device) == (9, 0)
    z = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, z, x.numel())
    return z
"""


@pytest.fixture
def here(monkeypatch):
    """The process that runs a file is this one."""

    def run_here(arguments, environment, limit_s):
        at = arguments.index("course_profile.code_worker")
        code_worker.main(*map(Path, arguments[at + 1 :]))
        return ""

    monkeypatch.setattr(run, "_said_by", run_here)


def rows(text, pane):
    """The lines of a pane: their places and their words."""
    section = re.search(rf'<section class="pane {pane}".*?</section>', text, re.DOTALL)[0]
    return re.findall(
        r'<div(?: data-p="([^"]*)"[^>]*)?(?: class="quiet")?>(?:<b>.*?</i>)?<code>(.*?)</code>', section
    )


def test_a_kernel_in_cuda_is_one_page_that_asks_for_nothing(here, tmp_path, capsys):
    (tmp_path / "part.cuh").write_text(PART)
    (tmp_path / "scale.cu").write_text(SCALE)

    assert command.main([f"{tmp_path / 'scale.cu'}:scale", "--code"]) == 0

    said = capsys.readouterr().out
    text = (tmp_path / "scale_code.html").read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["part.cuh", "scale.cu", "scale_code.html"]
    assert re.match(
        r"scale: \d+ instructions for sm_90a, \d+ registers, 0 bytes of shared memory and what its", said
    )
    assert said.endswith(f"the code: {tmp_path / 'scale_code.html'}\n")
    assert not re.search(r"https?:|\bsrc=|<link|@import|url\(", text)
    assert str(tmp_path) not in text  # names of files, and none of the machine's folders
    assert "fill" not in re.findall(r'<h2 class="name">(.*?)</h2>', text)
    # Three panes in step: the store of y, and the addition that a header has.
    source = {words: places for places, words in rows(text, "source")}
    store = source["  if (i &lt; N &amp;&amp; 0 &lt; N) y[i] = scaled(room[threadIdx.x]);"]
    assert (store, source[PART.strip()]) == ("0:6", "1:1")
    for pane, store_of, added in (("sass", "STG.E", "FFMA"), ("ptx", "st.global.f32", "fma.rn.f32")):
        found = {words.split()[0]: places.split() for places, words in rows(text, pane)}
        assert (found[store_of], found[added]) == (["0:6"], ["1:1", "0:6"])


def test_a_kernel_in_triton_is_compiled_as_a_card_would_launch_it(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(ADD)

    assert command.main([f"{tmp_path / 'mine.py'}:vector_add", "--problem", "vector_add", "--code"]) == 0

    said, text = capsys.readouterr().out, (tmp_path / "mine_code.html").read_text()
    assert said.startswith("add_kernel: ")
    assert f"missing: {BELIEVED}\n" in said
    loads = [words for places, words in rows(text, "sass") if places.split() == ["0:9"] and "LDG" in words]
    stores = [places for places, words in rows(text, "ptx") if "st.global" in words]
    # 512 numbers of 128 threads: a vector of four each, since torch's addresses and this N are multiples of 16.
    assert [re.search(r"LDG\.\S+", one)[0] for one in loads] == ["LDG.E.128"]
    assert stores == ["0:10"]
    assert not re.search(r"https?:|\bsrc=", text)
    assert str(tmp_path) not in text


BAD = {
    "slip": (SCALE.replace("y[i] =", "q[i] ="), "scale.cu", 1, "refused: scale.cu does not compile: line 6"),
    "no kernel": ("// nothing\n", "scale.cu", 2, "scale.cu: no kernel in it"),
    "other kernel": (SCALE, "scale.cu:add", 2, "scale.cu defines no add; it has scale, fill"),
    "gone": ("", "gone.cu", 2, "there is no file gone.cu"),
    "text": ("", "mine.txt", 2, "mine.txt: expected FILE[:function], where FILE ends in .py or .cu"),
    "nobody says": ("def f(x): return x\n", "mine.py", 2, "mine.py: nobody says what it computes"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_one_line_and_no_page_is_written(here, case, tmp_path, monkeypatch, capsys):
    text, asked, code, wanted = BAD[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "part.cuh").write_text(PART)
    if text:
        (tmp_path / asked.partition(":")[0]).write_text(text)

    assert command.main([asked, "--code"]) == code

    said = capsys.readouterr()
    assert wanted in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert not list(tmp_path.glob("*.html*"))


def test_it_times_nothing_and_says_so(capsys):
    assert command.main(["x.cu", "--code", "--hint"]) == 2
    assert capsys.readouterr().err == (
        "--code times nothing, and does not go with --hint: run the two one by one\n"
    )


def test_a_folder_that_nobody_may_write_to_is_told(tmp_path, capsys, monkeypatch):
    (tmp_path / "fill.cu").write_text('extern "C" __global__ void fill(float *y) { y[0] = 2.0f; }\n')

    def full(folder, name, data):
        raise OSError(28, "No space left on device", str(folder / name))

    monkeypatch.setattr(command, "write", full)
    monkeypatch.setattr(command, "machine_code", lambda asked, gpu: ([], ()))

    assert command.main([str(tmp_path / "fill.cu"), "--code"]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'fill_code.html'}: No space left on device\n"


def test_of_several_kernels_one_is_chosen_and_files_of_one_name_are_told_apart(tmp_path):
    (tmp_path / "a").mkdir()
    for file in (tmp_path / "x.cu", tmp_path / "a" / "x.cu"):
        file.write_text("one\ntwo\n")

    def line(name, *places):
        return MachineLine(f"{name} <R1>", name, tuple(Place(file, at) for file, at in places))

    sass = (
        line("HGMMA.64x256", (str(tmp_path / "a" / "x.cu"), 2), (str(tmp_path / "x.cu"), 1)),
        line("IADD3", ("/usr/lib/far.py", 9)),
        line("EXIT"),
    )
    kernels = [Kernel(name, "sm_90a", 40, 1024, False, 8, sass, ()) for name in ("k<1>", "l")]

    text = page(tmp_path / "x.cu", kernels, ["no GPU"], tmp_path).decode()

    assert "<option>k&lt;1&gt;</option><option>l</option>" in text
    assert 'data-files="' + tmp_path.name + '/x.cu|a/x.cu|far.py" data-shown="2"' in text
    assert rows(text, "sass")[:3] == [
        ("1:2 0:1", "HGMMA.64x256 &lt;R1&gt;"),
        ("2:9", "IADD3 &lt;R1&gt;"),
        ("", "EXIT &lt;R1&gt;"),
    ]
    for words in ("2 of 3", "8 bytes", "far.py, not shown", "Its compiler shows none.", "No GPU."):
        assert words in text
    assert text.index("<code>HGMMA</code> 1") < text.index("<summary>2 other kinds")
