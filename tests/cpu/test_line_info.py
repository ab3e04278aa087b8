"""Lines of source behind SASS and PTX: told by the compilers, inlined places too, and no instruction changed by it."""

from pathlib import Path

import pytest

from course_kernels import line_info
from course_kernels.cuda.compile import CompileError, compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.line_info import Place, compile_with_lines, kinds, ptx_lines, sass_lines

pytest.importorskip("cuda.core")

HEADER = """\
__device__ inline float scaled(float x) {
  return 3.0f * x + 1.0f;
}
"""
KERNEL = """\
#include "part.cuh"
extern "C" __global__ void scale(const float *x, float *y, int N) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < N)
    y[i] =
        scaled(x[i]);
  asm volatile("{ .reg .pred p;\\n}" ::);
}
extern "C" __global__ void fill(float *y) {
  y[threadIdx.x] = 2.0f;
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    (folder / "part.cuh").write_text(HEADER)
    (folder / "scale.cu").write_text(KERNEL)
    return folder / "scale.cu", compile_with_lines(folder / "scale.cu", "sm_90a")


def named(file, *lines):
    return [Place(str(file), line) for line in lines]


def test_each_instruction_says_its_line_and_where_that_was_inlined(made):
    file, code = made
    lines = {line.stem: line for line in sass_lines(code.cubin)["scale"] if line.name}

    assert list(lines["STG"].places) == named(file, 5)
    assert list(lines["S2R"].places) == named(file, 3)
    assert list(lines["FFMA"].places) == [Place(str(file.with_name("part.cuh")), 2), *named(file, 6)]


def test_ptx_says_the_same_and_goes_on_behind_braces_of_assembler(made):
    file, code = made
    found = ptx_lines(code.ptx)
    lines = {line.name: line for line in found["scale"] if line.name}

    assert list(found) == ["scale", "fill"]
    assert list(lines["st.global.f32"].places) == named(file, 5)
    assert list(lines["fma.rn.f32"].places) == [Place(str(file.with_name("part.cuh")), 2), *named(file, 6)]
    assert lines["ret"].text == "ret;"  # comes after the assembler's own brace
    assert not any(".loc" in line.text or "//" in line.text for line in found["scale"])


def test_asking_for_lines_changes_no_instruction(made):
    file, code = made

    def bare(cubin):
        return [line.partition("*/")[2].strip() for line in sass(cubin).splitlines() if "/*0" in line]

    plain = bare(compile_cubin(file, "sm_90a"))

    assert len(plain) > 20
    assert bare(code.cubin) == plain


def test_instructions_are_counted_by_kernel(made):
    _, code = made
    found = {name: kinds(lines) for name, lines in sass_lines(code.cubin).items()}

    assert set(found) == {"scale", "fill"}
    assert (found["scale"]["LDG"], found["scale"]["STG"], found["scale"]["FFMA"]) == (1, 1, 1)
    assert "LDG" not in found["fill"]


def test_a_slip_is_the_compilers_own_message_with_its_line(tmp_path):
    slip = tmp_path / "slip.cu"
    slip.write_text('extern "C" __global__ void f(int *x) {\n  x[0] = y;\n}\n')

    with pytest.raises(CompileError, match=r"slip\.cu does not compile for sm_90a\n(?s:.*)\(2\): error"):
        compile_with_lines(slip, "sm_90a")


# As Triton writes it: a comment says where a line was inlined, by the file's name alone.
TRITON = """\
.visible .entry k(
	.param .u64 k_param_0
)
{
	.loc	1 7 0                           // mine.py:7:0
	mov.b64 	%rd1, k_param_0;
	.loc	2 43 17                         // standard.py:43:17 @[ mine.py:3:1 @[ mine.py:9:34 ] ]
	@!complete bra.uni waitLoop;
$L__tmp1:
	ret;
}
	.file	1 "/home/me/mine.py"
	.file	2 "/usr/triton" "standard.py"
"""


def test_tritons_comments_say_where_a_line_was_inlined():
    *head, first, second, label, _, _ = ptx_lines(TRITON)["k"]

    assert [line.text for line in head][-2:] == [")", "{"]
    assert first.places == (Place("/home/me/mine.py", 7),)
    assert second.places == (
        Place("/usr/triton/standard.py", 43),
        Place("/home/me/mine.py", 3),
        Place("/home/me/mine.py", 9),
    )
    assert (second.name, label.name, label.places) == ("bra.uni", "", ())


# As NVRTC writes it: each .loc names the place one step out, which the .loc before it has told of.
NESTED = """\
.visible .entry k(
)
{
	.loc	1 50 3
	.loc	3 80 3, function_name $L__info_string1, inlined_at 1 50 3
	.loc	4 64 5, function_name $L__info_string2, inlined_at 3 80 3
	ret;
}
	.file	1 "/x/k.cu"
	.file	3 "/x/ring.cuh"
	.file	4 "/x/wait.cuh"
"""


def test_a_place_that_is_inlined_twice_says_both_calls():
    ret = next(line for line in ptx_lines(NESTED)["k"] if line.name == "ret")

    assert ret.places == (Place("/x/wait.cuh", 64), Place("/x/ring.cuh", 80), Place("/x/k.cu", 50))


def test_a_place_holds_until_the_next_and_none_crosses_a_kernel():
    text = "\n".join(
        [
            "//---- .text.a ----",
            ".text.a:",
            '\t//## File "/x/p.cuh", line 2 inlined at "/x/a.cu", line 5',
            '\t//## File "/x/a.cu", line 5',
            "        /*0000*/                   FFMA R1, R2, R3, R4 ;",
            "        /*0010*/              @!PT LDS RZ, [RZ] ;",
            "        /*0020*/               @P0 BRA `(.L_x_1) ;",
            '\t//## File "/x/a.cu", line 6',
            "        /*0030*/                   EXIT ;",
            "//---- .text.b ----",
            ".text.b:",
            "        /*0000*/                   EXIT ;",
        ]
    )

    found = line_info._sass_lines(text)

    inlined = (Place("/x/p.cuh", 2), Place("/x/a.cu", 5))
    assert [(line.text, line.places) for line in found["a"]] == [
        ("FFMA R1, R2, R3, R4", inlined),
        ("@P0 BRA `(.L_x_1)", inlined),
        ("EXIT", (Place("/x/a.cu", 6),)),
    ]
    assert found["b"][0].places == ()


def test_files_are_named_in_the_order_of_their_lines(made):
    file, code = made

    names = line_info.files_of(sass_lines(code.cubin)["scale"])

    assert {Path(name).name for name in names} == {"scale.cu", "part.cuh"}
    assert names[0] == str(file)
