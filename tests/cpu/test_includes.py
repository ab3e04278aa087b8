"""A source's includes are followed as NVRTC follows them: whatever it opens in the project is listed, and no more."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import course_kernels
from course_kernels.cuda import includes
from course_kernels.cuda.compile import CompileError, compile_cubin
from course_kernels.cuda.includes import IncludeRefused, includes_of, sources_of, toolkit_includes

ROOT = Path(course_kernels.__file__).parent
LABS = Path(__file__).parents[2] / "labs"


@pytest.fixture
def shared(tmp_path, monkeypatch):
    folder = tmp_path / "cuda"
    folder.mkdir()
    monkeypatch.setattr(includes, "SHARED", folder)
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(path):
    return [found.relative_to(path.parents[1]).as_posix() for found in sources_of(path)]


# Each includes beside.cuh, in a way that a search for '#include "' does not see.
HIDDEN = {
    "angle brackets": "#include <beside.cuh>\n",
    "blanks": "\t# \f include\v<beside.cuh>\n",
    "comments": "/* a\n */ # /* b */ include /* c\n */ <beside.cuh> // d\n",
    "a continued line": '#inc\\\nlude \\\n "beside.cuh"\n',
    "a continued name": '#include "bes\\\nide.cuh"\n',
    "Windows lines": '#include\\\r\n "beside.cuh"\r\n',
    "a digraph": '%:include "beside.cuh"\n',
    "after a comment's end": '/\\\n/ */ /*\n#include "beside.cuh"\n',
    "after a number": "constexpr int X = 1'0; /* '\n*/\n#include \"beside.cuh\"\n",
    "behind a raw string that ends over two lines": 'constexpr int X = sizeof(R"()\\\n");\n#include "beside.cuh"\n',
    "behind a raw string": 'constexpr int X = sizeof(R"x(\n#include "nothing.cuh"\n)x");\n#include "beside.cuh"\n',
    "in an #if": '#if 1\n#include "beside.cuh"\n#endif\n',
    "asked for": '#if __has_include(<beside.cuh>)\nextern "C" __global__ void beside() {}\n#endif\n',
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_every_spelling_is_followed_and_is_what_nvrtc_opens(tmp_path, shared, text):
    pytest.importorskip("cuda.core")
    source = write(tmp_path / "here/a.cu", text)
    write(tmp_path / "here/beside.cuh", 'extern "C" __global__ void beside() {}\n')

    assert names(source) == ["here/a.cu", "here/beside.cuh"]
    assert b".text.beside\0" in compile_cubin(source, "sm_90a")


# None of these is an include.
QUIET = {
    "line comment": '// #include "no.cuh"\n',
    "continued line comment": '// so \\\n#include "no.cuh"\n',
    "block comment": '/*\n#include "no.cuh"\n*/\n',
    "string": 'constexpr int X = sizeof("\\\n#include \\"no.cuh\\"");\n',
    "raw string": 'constexpr int X = sizeof(R"(\n#include "no.cuh"\n)");\n',
    "another directive": '#pragma once\n#define included "no.cuh"\n',
    "mid-line": '#define X(a) #a "include" "no.cuh"\n',
}


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_what_is_no_include_is_none_to_nvrtc_either(tmp_path, text):
    pytest.importorskip("cuda.core")
    source = write(tmp_path / "here/a.cu", text)

    assert names(source) == ["here/a.cu"]
    assert compile_cubin(source, "sm_90a")


def test_an_include_inside_if_0_is_followed(tmp_path):
    source = write(tmp_path / "here/a.cu", '#if 0\nwe don\'t\n#include "b.cuh"\n#endif\n')
    write(tmp_path / "here/b.cuh", "")

    assert names(source) == ["here/a.cu", "here/b.cuh"]


# Who holds x.cuh, how it is asked for from other/h.cuh, and who wins; NVRTC is asked, too.
ORDER = [
    (("other", "here", "cuda"), '"x.cuh"', "other"),
    (("here", "cuda"), '"x.cuh"', "here"),
    (("cuda",), '"x.cuh"', "cuda"),
    (("other", "here", "cuda"), "<x.cuh>", "here"),
    (("other", "cuda"), "<x.cuh>", "cuda"),
]


@pytest.mark.parametrize(("holders", "asked", "winner"), ORDER)
def test_folders_are_searched_in_nvrtcs_order(tmp_path, shared, holders, asked, winner):
    pytest.importorskip("cuda.core")
    source = write(tmp_path / "here/a.cu", '#include "../other/h.cuh"\n')
    write(tmp_path / "other/h.cuh", f"#include {asked}\n")
    for holder in holders:
        write(tmp_path / holder / "x.cuh", f'extern "C" __global__ void in_{holder}() {{}}\n')

    assert names(source) == ["here/a.cu", "other/h.cuh", f"{winner}/x.cuh"]
    assert f".text.in_{winner}\0".encode() in compile_cubin(source, "sm_90a")


def test_a_new_header_that_shadows_another_is_listed(tmp_path, shared):
    source = write(tmp_path / "here/a.cu", '#include "x.cuh"\n')
    write(shared / "x.cuh", "")
    before = names(source)
    write(tmp_path / "here/x.cuh", "")

    assert before == ["here/a.cu", "cuda/x.cuh"]
    assert names(source) == ["here/a.cu", "here/x.cuh"]


def test_a_header_that_is_only_asked_about_is_listed_once_it_is_there(tmp_path):
    source = write(tmp_path / "here/a.cu", '#if __has_include("x.cuh")\n#endif\n')
    before = names(source)
    write(tmp_path / "here/x.cuh", "")

    assert before == ["here/a.cu"]
    assert names(source) == ["here/a.cu", "here/x.cuh"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '#define X "x.cuh"\n#include X\n',
            "a.cu, line 2: #include X: write the file's name between quotes or angle brackets;"
            " which file a macro names, we cannot see",
        ),
        (
            "#include \\\n  WHICH(2)\n",
            "a.cu, line 1: #include WHICH(2): write the file's name between quotes or angle brackets;"
            " which file a macro names, we cannot see",
        ),
        (
            "#include_next <x.cuh>\n",
            "a.cu, line 1: #include_next <x.cuh>: write #include with the file's own name;"
            " which file is next, we cannot see",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_in_one_line(tmp_path, text, said):
    source = write(tmp_path / "a.cu", text)
    with pytest.raises(IncludeRefused) as caught:
        sources_of(source)
    with pytest.raises(CompileError) as of_the_compiler:
        compile_cubin(source, "sm_90a")

    assert str(caught.value) == str(of_the_compiler.value) == said


def test_a_macro_in_a_header_is_refused_too(tmp_path):
    source = write(tmp_path / "a.cu", "#include <b.cuh>\n")
    write(tmp_path / "b.cuh", "\n#include NAME\n")
    with pytest.raises(IncludeRefused, match=r"^b\.cuh, line 2: #include NAME: "):
        sources_of(source)


def test_a_missing_include_says_who_asks_for_it(tmp_path, shared):
    source = write(tmp_path / "a.cu", '// one\n#include "gone.cuh"\n')
    with pytest.raises(FileNotFoundError) as caught:
        sources_of(source)

    assert str(caught.value) == (
        f"{tmp_path / 'gone.cuh'}: no such file, included by a.cu, line 2; write it there or in cuda/,"
        " or <gone.cuh> for a header of the CUDA toolkit"
    )


def test_the_toolkits_headers_are_named(tmp_path):
    source = write(
        tmp_path / "a.cu", "#include <mma.h>\n#include <b.cuh>\n#if __has_include(<no.h>)\n#endif\n"
    )
    write(tmp_path / "b.cuh", "#include <cuda_fp16.h>\n#include <mma.h>\n")

    assert toolkit_includes(source) == ["mma.h", "cuda_fp16.h"]


def test_lines_are_counted_over_continued_ones():
    found = includes_of('#define A \\\n 1\n/*\n*/\n#include <a>\n#include "b"\n', "a.cu")

    assert [(include.name, include.quoted, include.line) for include in found] == [
        ("a", False, 5),
        ("b", True, 6),
    ]


def test_every_source_of_the_project_can_be_followed():
    found = {path: sources_of(path) for path in (*ROOT.rglob("*.cu"), *LABS.glob("*/*/*.cu"))}

    assert len(found) > 50
    assert all(files[0] == path for path, files in found.items())
    headers = {path for files in found.values() for path in files if path.suffix == ".cuh"}
    # What cuda/hopper/ offers may be used by tests alone.
    headers |= {path for tried in Path(__file__).parent.glob("*.cu") for path in sources_of(tried)}
    assert {path.name for path in ROOT.rglob("*.cuh")} <= {path.name for path in headers}


def test_it_needs_neither_torch_nor_cuda_nor_numpy():
    code = "import sys; import course_kernels.cuda.includes; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
    )
    loaded = {re.split(r"\.", name)[0] for name in done.stdout.split()}

    assert "course_kernels" in loaded
    assert not {"torch", "numpy", "cuda", "triton"} & loaded
