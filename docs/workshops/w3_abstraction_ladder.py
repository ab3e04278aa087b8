# ---
# id: w3
# title: The ladder of tools
# description: One multiply and one attention in seven languages, checked by one check and timed in one round; what each tool decides for you, read from its machine code; and what each rung costs.
# needs: [capability 9.0, packages ladder]
# ---

# %% [markdown]
# # The ladder of tools
#
# By the end of this page you can
#
# - say of any GPU language which decisions it makes for you, and check that in the machine code;
# - read a CuTe layout aloud, and work out by hand where it puts a number;
# - read a CUTLASS kernel with the words of the lectures on the GEMM ladder;
# - name the price of each rung: lines, seconds of compiling, megabytes, percentage of peak, and why not more;
# - make a rule for which rung a job deserves, and defend it with numbers.
#
# **The promise: the same dinner, cooked at seven levels.**
#
# There are three ways to make dinner. You can open a meal kit: the recipe is one page, and somebody has decided who peels what,
# where and when. You can cook in a professional kitchen: the cups are labelled, the knives are sharp, and you must know what
# you are doing. Or you can build the oven yourself, in a field. A Tuesday dinner needs no oven of your own. A dish that nobody
# has ever cooked may need one.
#
# In the lectures you built the oven. You know what coalescing, shared memory, a swizzle, a ring of buffers, TMA and `wgmma` are,
# because you wrote or read each of them. Now you meet the tools that write them for you, and because you know what has to be
# done, you can look up *who does it*.

# %% [markdown]
# ## Who decides?
#
# Every kernel needs three decisions. How large is a **tile**? In which **place** is it kept: HBM, shared memory, registers? And
# which **thread** does what, with which instruction? On each rung, some of these are yours and some are the tool's.
#
# /// figure | docs/assets/figures/tool_ladder.svg
# alt: >-
#   A ladder: Triton on top, TileLang and CUTLASS with CuTe in the middle, raw CUDA at the bottom. Upwards less code, downwards more
#   control. Beside each rung, who decides: the size of a tile is yours on every rung; where it is kept is the tool's in Triton and yours
#   below; which thread and which instruction is the tool's in Triton and TileLang, yours further down.
# ///
#
# These are the rungs of this page, from the top.
#
# | rung | what you write | the tile | its place | thread and instruction |
# |---|---|---|---|---|
# | **Helion** [^helion] | loops over tiles, in PyTorch's words; it writes Triton | a setting beside the kernel | tool | tool |
# | **Triton** [^triton-tutorials] | what a program does with its tiles | you | tool | tool |
# | **cuTile** [^cutile] | the same idea, by NVIDIA: tiles are values | you | tool | tool |
# | **TileLang** [^tilelang] | tiles with a place, and a pipeline | you | you | tool |
# | **Gluon** | Triton with layouts, barriers and roles given back | you | you | you |
# | **CuTe-DSL** [^cutlass-dsl] | CUTLASS's layouts and instructions, in Python | you | you | you |
# | **CUTLASS C++** [^cutlass-gemm] | parts from a catalogue, put together by templates | you | the part's | the part's |
# | **CUDA C++** | everything | you | you | you |
#
# A tool is not a speed. Each of these kernels multiplies two bf16 grids, adds in fp32 and rounds once. Each is written the way its
# own language wants to be written, and tuned with the same effort: at most eight settings, tried on this card. Only ours in
# CUDA C++, k14 of [the workshop on Hopper](w2_hopper.py), had weeks.

# %% [markdown]
# ## One multiply, on every rung
#
# Look at the shortest and at the longest first. Here is all that runs on the card in Helion.
#
# /// source | src/course_kernels/gemm/in_helion.py#kernel
# ///
#
# And here is what k14 would look like on paper: {{ lines.cuda.kernel:.0f}} lines. Count by one rule: a line counts if it holds more
# than a comment, and headers of ours that the kernel includes count as well.
#
# /// predict | From Triton to CUDA C++: how many times as many lines run on the card?
# - [lines.cuda.kernel < 4 * lines.triton.kernel] Fewer than four times as many
# - [4 * lines.triton.kernel <= lines.cuda.kernel < 12 * lines.triton.kernel] Four to twelve times
# - [lines.cuda.kernel >= 12 * lines.triton.kernel] More than that
# /// reveal
# {{ lines.triton.kernel:.0f}} lines in Triton and {{ lines.cuda.kernel:.0f}} in CUDA C++.
#
# /// table
# columns: [rung, lines on the card, lines of the whole file]
# rows:
#   - [Helion, "{{ lines.helion.kernel:.0f}}", "{{ lines.helion.file:.0f}}"]
#   - [Triton, "{{ lines.triton.kernel:.0f}}", "{{ lines.triton.file:.0f}}"]
#   - [cuTile, "{{ lines.cutile.kernel:.0f}}", "{{ lines.cutile.file:.0f}}"]
#   - [TileLang, "{{ lines.tilelang.kernel:.0f}}", "{{ lines.tilelang.file:.0f}}"]
#   - [Gluon, "{{ lines.gluon.kernel:.0f}}", "{{ lines.gluon.file:.0f}}"]
#   - [CuTe-DSL, "{{ lines.cute_dsl.kernel:.0f}}", "{{ lines.cute_dsl.file:.0f}}"]
#   - [CUTLASS C++, "{{ lines.cutlass.kernel:.0f}}", "{{ lines.cutlass.file:.0f}}"]
#   - ["CUDA C++, k14", "{{ lines.cuda.kernel:.0f}}", "{{ lines.cuda.file:.0f}}"]
# caption: "Lines on the card are those between the marks of the kernel; in CUDA C++ the file and our headers. The whole file checks, compiles and launches, too. CUTLASS's own headers, which the kernel could not do without, count for nobody."
# ///
# ///
#
# Read the Triton kernel once more, now as a list of what it does *not* say.
#
# /// source | src/course_kernels/gemm/k05_triton.py#kernel
# ///
#
# No thread. No shared memory, no barrier, no swizzle. It does say the tile, the order of the tiles, that a program walks over
# many of them, and, outside of this listing, how many warps and stages it wants.
#
# TileLang is one step down. Find the two lines that give a tile a *place*, and the one that says *pipeline*.
#
# /// source | src/course_kernels/gemm/in_tilelang.py#kernel
# ///

# %% tags=["fold"]
from importlib import metadata
from pathlib import Path

from course_kernels import line_count
from course_kernels.gemm import (
    in_cute_dsl,
    in_cutile,
    in_cutlass,
    in_gluon,
    in_helion,
    in_tilelang,
    k05_triton,
    k14_tuned,
    library,
)
from course_kernels.measure import quantity, record, text

RUNGS = {
    "helion": in_helion,
    "triton": k05_triton,
    "cutile": in_cutile,
    "tilelang": in_tilelang,
    "gluon": in_gluon,
    "cute_dsl": in_cute_dsl,
    "cutlass": in_cutlass,
    "cuda": k14_tuned,
}


def lines_of(rung):
    """Lines that run on the card, and those of the launcher's file with them."""
    launcher = Path(rung.__file__)
    source = getattr(rung, "SOURCE", None)
    host = len(line_count.spoken_lines(launcher))
    if source is None:
        return {"kernel": line_count.kernel_lines(launcher), "file": host}
    device = line_count.source_lines(source)
    return {"kernel": device, "file": device + host}


record(
    lines={
        name: {
            part: quantity(found, how="counted")
            for part, found in lines_of(rung).items()
        }
        for name, rung in RUNGS.items()
    }
)

# %% [markdown]
# ## What the compiler wrote
#
# *The compiler does that* is a claim, and you can check it. Every rung ends as machine code, and machine code does not hide
# anything. Six instructions are enough to see who did what.
#
# | instruction | you know it as |
# |---|---|
# | `HGMMA` | `wgmma`: a warpgroup multiplies two tiles |
# | `UTMALDG` | TMA brings a tile |
# | `SYNCS` | an mbarrier: somebody waits for a tile, or says that it is there |
# | `USETMAXREG` | roles: registers go from those who fetch to those who multiply |
# | `STSM` | a warp lays its sums into shared memory, eight rows at a time |
# | `UTMASTG` | TMA takes a tile of C away |
#
# /// predict | Of the eight kernels, how many have TMA bring their tiles?
# - [with_tma == 8] All eight
# - [5 <= with_tma < 8] Five to seven
# - [with_tma < 5] Four or fewer
# /// reveal
# {{ with_tma:.0f}} of 8.
#
# /// table
# columns: [rung, HGMMA, UTMALDG, SYNCS, USETMAXREG, STSM, UTMASTG, STG, all]
# rows:
#   - [Helion, "{{ code.helion.HGMMA:.0f}}", "{{ code.helion.UTMALDG:.0f}}", "{{ code.helion.SYNCS:.0f}}", "{{ code.helion.USETMAXREG:.0f}}", "{{ code.helion.STSM:.0f}}", "{{ code.helion.UTMASTG:.0f}}", "{{ code.helion.STG:.0f}}", "{{ code.helion.all:.0f}}"]
#   - [Triton, "{{ code.triton.HGMMA:.0f}}", "{{ code.triton.UTMALDG:.0f}}", "{{ code.triton.SYNCS:.0f}}", "{{ code.triton.USETMAXREG:.0f}}", "{{ code.triton.STSM:.0f}}", "{{ code.triton.UTMASTG:.0f}}", "{{ code.triton.STG:.0f}}", "{{ code.triton.all:.0f}}"]
#   - [cuTile, "{{ code.cutile.HGMMA:.0f}}", "{{ code.cutile.UTMALDG:.0f}}", "{{ code.cutile.SYNCS:.0f}}", "{{ code.cutile.USETMAXREG:.0f}}", "{{ code.cutile.STSM:.0f}}", "{{ code.cutile.UTMASTG:.0f}}", "{{ code.cutile.STG:.0f}}", "{{ code.cutile.all:.0f}}"]
#   - [TileLang, "{{ code.tilelang.HGMMA:.0f}}", "{{ code.tilelang.UTMALDG:.0f}}", "{{ code.tilelang.SYNCS:.0f}}", "{{ code.tilelang.USETMAXREG:.0f}}", "{{ code.tilelang.STSM:.0f}}", "{{ code.tilelang.UTMASTG:.0f}}", "{{ code.tilelang.STG:.0f}}", "{{ code.tilelang.all:.0f}}"]
#   - [Gluon, "{{ code.gluon.HGMMA:.0f}}", "{{ code.gluon.UTMALDG:.0f}}", "{{ code.gluon.SYNCS:.0f}}", "{{ code.gluon.USETMAXREG:.0f}}", "{{ code.gluon.STSM:.0f}}", "{{ code.gluon.UTMASTG:.0f}}", "{{ code.gluon.STG:.0f}}", "{{ code.gluon.all:.0f}}"]
#   - [CuTe-DSL, "{{ code.cute_dsl.HGMMA:.0f}}", "{{ code.cute_dsl.UTMALDG:.0f}}", "{{ code.cute_dsl.SYNCS:.0f}}", "{{ code.cute_dsl.USETMAXREG:.0f}}", "{{ code.cute_dsl.STSM:.0f}}", "{{ code.cute_dsl.UTMASTG:.0f}}", "{{ code.cute_dsl.STG:.0f}}", "{{ code.cute_dsl.all:.0f}}"]
#   - [CUTLASS C++, "{{ code.cutlass.HGMMA:.0f}}", "{{ code.cutlass.UTMALDG:.0f}}", "{{ code.cutlass.SYNCS:.0f}}", "{{ code.cutlass.USETMAXREG:.0f}}", "{{ code.cutlass.STSM:.0f}}", "{{ code.cutlass.UTMASTG:.0f}}", "{{ code.cutlass.STG:.0f}}", "{{ code.cutlass.all:.0f}}"]
#   - ["CUDA C++, k14", "{{ code.cuda.HGMMA:.0f}}", "{{ code.cuda.UTMALDG:.0f}}", "{{ code.cuda.SYNCS:.0f}}", "{{ code.cuda.USETMAXREG:.0f}}", "{{ code.cuda.STSM:.0f}}", "{{ code.cuda.UTMASTG:.0f}}", "{{ code.cuda.STG:.0f}}", "{{ code.cuda.all:.0f}}"]
# caption: "Instructions in the machine code of each kernel, for sm_90a. A line that appears once may run a thousand times; what matters is which lines appear at all."
# ///
# ///
#
# /// define | with_tma = min(code.helion.UTMALDG, 1) + min(code.triton.UTMALDG, 1) + min(code.cutile.UTMALDG, 1) + min(code.tilelang.UTMALDG, 1) + min(code.gluon.UTMALDG, 1) + min(code.cute_dsl.UTMALDG, 1) + min(code.cutlass.UTMALDG, 1) + min(code.cuda.UTMALDG, 1)
# unit: "1"
# what: of the eight kernels those with at least one UTMALDG in their machine code
# ///
#
# Now read the table from left to right, with the kernels beside it. Neither Helion's kernel nor Triton's says *copy engine*, *barrier*
# or *register*: wherever their rows have `UTMALDG` and `SYNCS`, the tool decided. In Gluon and CuTe-DSL each of these columns is a
# line that somebody wrote. And k14 has all of them because we wrote all of them, one evening each.
#
# /// exercise | A zero | 3 minutes
# Take a zero of the table, in the columns `USETMAXREG`, `STSM` or `UTMASTG`. What does that kernel do instead, and who decided
# that?
# /// answer
# Without `USETMAXREG` every thread has as many registers as every other: there are no roles, or the roles get equal shares. Without
# `UTMASTG` the threads store C themselves, by `STG`. Without `STSM` the sums go to C, or to shared memory, from where they are
# in the registers. On the upper rungs the compiler decided that. On the lower ones somebody left it out.
# ///

# %% tags=["fold"]
import torch
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import listing
from course_kernels.problem import Workload

ARCH = "sm_90a"
NAMES = ("HGMMA", "UTMALDG", "SYNCS", "USETMAXREG", "STSM", "UTMASTG", "STG")


def square(n):
    """A product of n each way, in bf16."""
    return Workload.of("bfloat16", M=n, N=n, K=n)


def machine_code(rung):
    """The instructions of a rung at 4096."""
    if rung is k14_tuned:
        return listing.instructions(sass(compile_cubin(rung.SOURCE, ARCH)))
    return listing.instructions(sass(rung.compiled(square(4096), ARCH).cubin))


codes = {
    name: machine_code(rung)
    for name, rung in RUNGS.items()
    if rung is not k05_triton
}
codes["triton"] = listing.instructions(sass(in_gluon.cubin_of_triton(square(4096))))
record(
    code={
        name: {
            "all": quantity(len(lines), how="counted"),
            **{
                one: quantity(found, how="counted")
                for one, found in listing.counted(lines, NAMES).items()
            },
        }
        for name, lines in codes.items()
    }
)

# %% [markdown]
# ## The price of a rung
#
# The first price is paid before anything runs: the compiler's time. The first call of each kernel was made in a process of its
# own, with empty caches, and once more with what the first process had left behind.
#
# /// predict | The slowest first call, against the quickest: how many times as long?
# - [slowest_first < 10 * quickest_first] Less than ten times
# - [10 * quickest_first <= slowest_first < 40 * quickest_first] Ten to forty times
# - [slowest_first >= 40 * quickest_first] More than that
# /// reveal
# {{ quickest_first:.1f}} s against {{ slowest_first:.1f}} s.
#
# /// table
# columns: [rung, "first call, s", "again, with its cache, s", "package, MB"]
# rows:
#   - [Helion, "{{ first.helion.cold:.1f}}", "{{ first.helion.warm:.1f}}", "{{ wheel.helion:.0f}}"]
#   - [Triton, "{{ first.triton.cold:.1f}}", "{{ first.triton.warm:.1f}}", "comes with PyTorch"]
#   - [cuTile, "{{ first.cutile.cold:.1f}}", "{{ first.cutile.warm:.1f}}", "{{ wheel.cutile:.0f}}"]
#   - [TileLang, "{{ first.tilelang.cold:.1f}}", "{{ first.tilelang.warm:.1f}}", "{{ wheel.tilelang:.0f}}"]
#   - [Gluon, "{{ first.gluon.cold:.1f}}", "{{ first.gluon.warm:.1f}}", "comes with Triton"]
#   - [CuTe-DSL, "{{ first.cute_dsl.cold:.1f}}", "{{ first.cute_dsl.warm:.1f}}", "{{ wheel.cute_dsl:.0f}}"]
#   - [CUTLASS C++, "{{ first.cutlass.cold:.1f}}", "{{ first.cutlass.warm:.1f}}", "{{ wheel.cutlass:.0f}}"]
#   - ["CUDA C++, k14", "{{ first.cuda.cold:.1f}}", "{{ first.cuda.warm:.1f}}", "comes with the driver's toolkit"]
# caption: "Seconds by the wall clock, from the call to the answer, on a host where eight such processes ran at once. MB are what a package and those that it brings for itself take on disk, by its own list of files."
# ///
# ///
#
# /// define | slowest_first = max(first.helion.cold, first.triton.cold, first.cutile.cold, first.tilelang.cold, first.gluon.cold, first.cute_dsl.cold, first.cutlass.cold, first.cuda.cold)
# unit: s
# what: the longest first call of the eight kernels, with empty caches
# ///
#
# /// define | quickest_first = min(first.helion.cold, first.triton.cold, first.cutile.cold, first.tilelang.cold, first.gluon.cold, first.cute_dsl.cold, first.cutlass.cold, first.cuda.cold)
# unit: s
# what: the shortest first call of the eight kernels, with empty caches
# ///

# %% tags=["fold"]
from course_kernels import first_call

FILES = {
    name: rung.__name__.removeprefix("course_kernels.").replace(".", "/")
    for name, rung in RUNGS.items()
}
PACKAGES = {  # and what each brings along for itself alone
    "helion": ("helion",),
    "cutile": ("cuda-tile", "nvidia-cuda-tileiras"),
    "tilelang": ("tilelang", "apache-tvm-ffi", "z3-solver"),
    "cute_dsl": (
        "nvidia-cutlass-dsl-libs-base",
        "nvidia-cutlass-dsl-libs-core",
        "nvidia-cutlass-dsl-libs-cu13",
    ),
    "cutlass": ("nvidia-cutlass",),
}


def megabytes(packages):
    """What packages take on disk, by their own lists of files."""
    files = [f for one in packages for f in metadata.files(one) or ()]
    return sum(file.size or 0 for file in files) / 1e6


seconds = first_call.all_timed(FILES, square(4096))
record(
    first={
        name: {
            "cold": quantity(found.cold_s, "s", how="timed"),
            "warm": quantity(found.warm_s, "s", how="timed"),
        }
        for name, found in seconds.items()
    },
    wheel={
        name: quantity(megabytes(packages), "MB", how="counted")
        for name, packages in PACKAGES.items()
    },
)
