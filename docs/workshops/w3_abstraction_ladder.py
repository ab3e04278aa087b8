# ---
# id: w3
# title: The ladder of tools
# description: One multiply on eight rungs and one attention on six, each checked and then timed in the same rounds; what each tool decides for you, read from its machine code; and what each rung costs.
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
# **The promise: the same dinner, cooked at eight levels.**
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
# The longest is k14, and it is too long for this page. Count by one rule: a line counts if it holds more than a comment, and headers
# of ours that the kernel includes count as well.
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
# Read the Triton kernel once more, now as a list of what it does *not* say. Beside it is k14, idea by idea: the same multiply,
# with everything said. Then choose any two rungs. Leave the folds closed for now: they hold
# [what the compilers made of these lines](#line-by-line), and would answer a question that comes first.
#
# /// rungs | docs/workshops/w3_rungs.toml
# alt: "Kernels of two rungs beside each other, idea by idea"
# left: Left
# right: Right
# unsaid: "Not said: the tool does it."
# rest: "All the rest: what is declared, how the work begins and ends"
# made:
#   file: docs/workshops/w3_lens.json
#   numbers: "What the compilers made of it, in numbers"
#   facts: "Compiled for sm_90a with {compiler}, and not run. {registers} registers a thread, {shared} KB of shared memory a block; {all} instructions, {loop} of them in the loop over k."
#   counts: "In the loop: {counts}."
#   summary: "What became of these lines in the loop over k"
#   rest: "All other instructions of the loop over k"
#   unlined: "Here the compiler names no line of this file: the last fold has the whole loop."
#   nothing: "Nothing in this loop."
#   multiplies: "The loop of those who multiply"
#   fetches: "The loop of those who fetch"
# ///
#
# No thread. No shared memory, no barrier, no swizzle. It does say the tile, the order of the tiles, that a program walks over
# many of them, and, outside of this listing, how many warps and stages it wants.
#
# TileLang is one step down. Its kernel has two forms, one tile for each block or many. In either of them, find the two lines that give a
# tile a *place*. Then find the one line that says *pipeline*.
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
# ## Type it: the multiply in Triton
#
# You did this lab in CUDA C++ in [the lecture on tiles](../lectures/l4_the_gemm_ladder.py). Do it again one rung up, and ask at every stage: what
# did you *not* have to say?
#
# | stage | what you type | what you no longer say |
# |---|---|---|
# | 1 | a column times a row, for one k | which thread has which number |
# | 2 | masks on loads and the store | `if (…) return`, and who may still reach the barrier |
# | 3 | `tl.dot` of two tiles | shared memory, both barriers, the queues at its banks |
# | 4 | the mask of the last k | nothing new; count your lines |
#
# Mind one word, `input_precision="ieee"`. Without it, on a GPU, `tl.dot` rounds fp32 to TF32. The tool decided something for you,
# quietly. The decision is good, but it was not yours.
#
# The stages, the starter and the grader are [on the page of that lecture](../lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory):
# `nox -s lab -- sgemm_tiles --door triton`.

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
# - [with_tma >= 8] All eight
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
# caption: "Instructions in the machine code of each kernel, for sm_90a. A line that appears once may run a thousand times; what matters is which instructions appear at all. `STG` is one more: a thread stores numbers of C by itself. *All* counts every instruction."
# ///
# ///
#
# /// define | with_tma = min(code.helion.UTMALDG, 1) + min(code.triton.UTMALDG, 1) + min(code.cutile.UTMALDG, 1) + min(code.tilelang.UTMALDG, 1) + min(code.gluon.UTMALDG, 1) + min(code.cute_dsl.UTMALDG, 1) + min(code.cutlass.UTMALDG, 1) + min(code.cuda.UTMALDG, 1)
# unit: "1"
# what: of the eight kernels those with at least one UTMALDG in their machine code
# ///
#
# Now read the table from left to right, with the kernels beside it. Neither Helion's kernel nor Triton's says *barrier*, *swizzle*
# or *register*: wherever their rows have `SYNCS` and `STSM`, the tool decided. In Gluon and CuTe-DSL each of our six instructions
# comes from lines that somebody wrote. And k14 has all six because we wrote all of them, one evening each.
#
# ### Who does it
#
# Nine jobs belong to every fast multiply. The lectures took them one at a time. Here they are under the three words from the
# beginning: what is done at the edges and how C leaves (TILE); which memory holds what, and in which order (PLACE); and who does
# what, when, by which instruction (THREAD).
#
# | | Helion | Triton | cuTile | TileLang | Gluon | CuTe-DSL | CUTLASS | CUDA C++ |
# |---|---|---|---|---|---|---|---|---|
# | **TILE** | | | | | | | | |
# | tails | tool | you | you | tool | engine | engine | engine | engine |
# | epilogue | tool | you | tool | you | you | you | part | you |
# | **PLACE** | | | | | | | | |
# | shared memory | tool | tool | tool | you | you | you | part | you |
# | swizzle | tool | tool | tool | tool | you | you | part | you |
# | accumulator | tool | tool | tool | tool | you | you | part | you |
# | **THREAD** | | | | | | | | |
# | coalescing | engine | engine | engine | engine | engine | engine | engine | engine |
# | TMA | set | you | tool | you | you | you | part | you |
# | pipeline | set | set | tool | you | you | you | part | you |
# | roles | none | none | tool | tool | you | you | part | you |
#
# Six words are enough. *you*: a line of the kernel says it. *set*: you say it, but beside the kernel, as a setting. *tool*: no line
# says it, and the machine code does it all the same. *part*: it came with a part that you chose from a catalogue. *engine*: the
# copy engine does it, and nobody has to write it any more. *none*: it is not done at all.
#
# Read it down, and you see how much a rung leaves to you. Read it across, and one row is the same on every rung: coalescing, your
# first job in the lectures. One thread orders a whole tile, and no thread has addresses of its own left to put in order.
# [Every cell, with its proof](#every-cell-with-its-proof) is in a fold below: prove some of them yourself first.
#
# /// exercise | Prove a cell | 6 minutes
# Take one *you*, one *tool* and one *none* from the table. For the first, find the words in the kernel. For the other two, find the
# instruction in the machine code that proves it, or that is missing.
# /// answer
# A *you* is proved by words of the kernel, a *tool* by an instruction that no line asked for, a *none* by one that is missing.
# ///
#
# /// exercise | A zero | 3 minutes
# Take a zero of the table, in the columns `USETMAXREG`, `STSM` or `UTMASTG`. What does that kernel do instead, and who decided
# that?
# /// answer
# Without `USETMAXREG` every thread has as many registers as every other: there are no roles, or the roles get equal shares. Without
# `UTMASTG` the threads store C themselves, by `STG`. Without `STSM` the sums go to C, or to shared memory, from where they are
# in the registers. On the upper rungs the compiler decided that. On the lower ones somebody left it out.
# ///
#
# #### Every cell, with its proof {.beyond}
#
# Words that are in the kernel, or an instruction, with how often it is in the machine code.
#
# | **TILE** | tails | epilogue |
# |---|---|---|
# | Helion | tool: {{ code.helion.UTMALDG:.0f}} `UTMALDG` | tool: {{ code.helion.STSM:.0f}} `STSM`, {{ code.helion.UTMASTG:.0f}} `UTMASTG` |
# | Triton | you: `mask=`, `X.load([row, col])` | you: `STRIPS`, `.split()` |
# | cuTile | you: `padding_mode=` | tool: {{ code.cutile.UTMASTG:.0f}} `UTMASTG` |
# | TileLang | tool: {{ code.tilelang.UTMALDG:.0f}} `UTMALDG` | you: `T.copy(acc, c)` |
# | Gluon | engine: {{ code.gluon.UTMALDG:.0f}} `UTMALDG` | you: `async_copy_shared_to_global` |
# | CuTe-DSL | engine: {{ code.cute_dsl.UTMALDG:.0f}} `UTMALDG` | you: `StMatrix8x8x16bOp` |
# | CUTLASS C++ | engine: {{ code.cutlass.UTMALDG:.0f}} `UTMALDG` | part: `EpilogueTileAuto` |
# | CUDA C++, k14 | engine: {{ code.cuda.UTMALDG:.0f}} `UTMALDG` | you: `store_matrices`, `store_panel` |
#
# | **PLACE** | shared memory | swizzle | accumulator |
# |---|---|---|---|
# | Helion | tool: {{ code.helion.UTMALDG:.0f}} `UTMALDG` | tool: {{ code.helion.HGMMA:.0f}} `HGMMA` | tool: {{ code.helion.HGMMA:.0f}} `HGMMA` |
# | Triton | tool: {{ code.triton.UTMALDG:.0f}} `UTMALDG` | tool: {{ code.triton.HGMMA:.0f}} `HGMMA` | tool: {{ code.triton.HGMMA:.0f}} `HGMMA` |
# | cuTile | tool: {{ code.cutile.UTMALDG:.0f}} `UTMALDG` | tool: {{ code.cutile.HGMMA:.0f}} `HGMMA` | tool: {{ code.cutile.HGMMA:.0f}} `HGMMA` |
# | TileLang | you: `T.alloc_shared` | tool: {{ code.tilelang.HGMMA:.0f}} `HGMMA` | tool: {{ code.tilelang.HGMMA:.0f}} `HGMMA` |
# | Gluon | you: `allocate_shared_memory` | you: `A.layout`, `C.layout` | you: `NVMMADistributedLayout` |
# | CuTe-DSL | you: `SmemAllocator` | you: `make_smem_layout_a` | you: `partition_shape_C` |
# | CUTLASS C++ | part: `SharedStorage` | part: `Mainloop` | part: `Mainloop` |
# | CUDA C++, k14 | you: `extern __shared__` | you: `swizzled(` | you: `float d[STRIPS][BN / 2]` |
#
# | **THREAD** | coalescing | TMA | pipeline | roles |
# |---|---|---|---|---|
# | Helion | engine: {{ code.helion.LDG:.0f}} `LDG` | set: `"tensor_descriptor"` | set: `"num_stages"`; tool: {{ code.helion.SYNCS:.0f}} `SYNCS` | none: {{ code.helion.USETMAXREG:.0f}} `USETMAXREG` |
# | Triton | engine: {{ code.triton.LDG:.0f}} `LDG` | you: `TMA`, `X.load([row, col])` | set: `num_stages=`; tool: {{ code.triton.SYNCS:.0f}} `SYNCS` | none: {{ code.triton.USETMAXREG:.0f}} `USETMAXREG` |
# | cuTile | engine: {{ code.cutile.LDG:.0f}} `LDG` | tool: {{ code.cutile.UTMALDG:.0f}} `UTMALDG` | tool: {{ code.cutile.SYNCS:.0f}} `SYNCS` | tool: {{ code.cutile.USETMAXREG:.0f}} `USETMAXREG` |
# | TileLang | engine: {{ code.tilelang.LDG:.0f}} `LDG` | you: `disable_tma=` | you: `T.Pipelined`; tool: {{ code.tilelang.SYNCS:.0f}} `SYNCS` | tool: {{ code.tilelang.USETMAXREG:.0f}} `USETMAXREG` |
# | Gluon | engine: {{ code.gluon.LDG:.0f}} `LDG` | you: `async_copy_global_to_shared` | you: `mbarrier.wait` | you: `warp_specialize` |
# | CuTe-DSL | engine: {{ code.cute_dsl.LDG:.0f}} `LDG` | you: `make_tiled_tma_atom` | you: `PipelineTmaAsync` | you: `setmaxregister_increase` |
# | CUTLASS C++ | engine: {{ code.cutlass.LDG:.0f}} `LDG` | part: `TmaWarpSpecialized` | part: `StageCountAutoCarveout` | part: `TmaWarpSpecialized` |
# | CUDA C++, k14 | engine: {{ code.cuda.LDG:.0f}} `LDG` | you: `load_tile` | you: `barrier_init`, `wait(` | you: `registers_up` |
#
# *Tails* is what lies past the edges of a matrix, *epilogue* the way of C out of the registers, *accumulator* which thread holds which
# sum. A `wgmma` finds its tile by a descriptor, and that names a swizzle: so a kernel with `HGMMA` and no word about layouts got its
# swizzle from the tool. The `LDG` of CUTLASS bring no tile: they would fetch the factor of the sums, if somebody gave a pointer to one.
#
# ### Line by line
#
# Counts say which instructions there are, not whose they are. For that, go back to
# [the two kernels beside each other](#one-multiply-on-every-rung), and now open the folds. Below each idea is what the compilers made of
# its lines in the loop over k: first PTX, then SASS, the machine code. The number before an instruction is its place in the loop, and
# the instructions that count are in bold. It is a lens: choose a line, and see which instructions it became, or that it became none.
#
# Four things to know before you look:
#
# - Two names are new. `WARPGROUP` begins a group of products, or waits for one; `BAR` is a barrier among warps.
# - Where those who fetch have a loop of their own, both loops are there.
# - Triton's kernel asks for one loop in place of two (`flatten=True`), so its loop has in it whatever is done once for each tile, too.
#   TileLang's loops do several steps of k in one pass.
# - *Compiled, not run*: these kernels were compiled for the page, and nobody ran what came out. So none of the times on this page
#   belongs to these listings. The first fold names the compilers. Those of the table above may be older or newer, so the counts need
#   not agree.
#
# /// exercise | Through the lens | 6 minutes
# Choose Triton on the left and k14 on the right. Our k14 says `wait` for a tile, and `wgmma_wait` for its products. Triton's kernel has
# no word for either, but its machine code waits all the same: `SYNCS.PHASECHK` for a tile, `WARPGROUP.DEPBAR` for products. Open the
# folds, and look for these two and for `UTMALDG`. Which of *Triton's* lines do they come from?
# /// answer
# `SYNCS.PHASECHK` comes from the head of the loop, `for tile in tl.range(…)`: the compiler makes its pipeline out of the loop.
# `WARPGROUP.DEPBAR` comes from `tl.dot`, and `UTMALDG` from `X.load`. In k14 each of them comes from the line that says it, or from one
# beside it.
#
# But do not take a line for a proof. On two of the rungs the compiler names no lines of the kernel at all. On each of the other six at
# least one of the four `HGMMA` carries the line of an instruction beside it: instructions are moved, and the table of lines does not
# always follow.
# ///
#
# To see line by line what became of a kernel of your own, type `nox -s profile -- FILE --code`. It writes one page with your source,
# its PTX and its machine code in step, and you need no GPU for it. What the next generation's instructions look like is on the page
# [Compiled, not run](../compiled_not_run.py).

# %% tags=["fold"]
from concurrent.futures import ThreadPoolExecutor

import torch
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import listing
from course_kernels.problem import Workload

ARCH = "sm_90a"
NAMES = (
    *("HGMMA", "UTMALDG", "LDG", "LDGSTS", "SYNCS", "USETMAXREG"),
    *("STSM", "UTMASTG", "STG"),
)


def square(n):
    """A product of n each way, in bf16."""
    return Workload.of("bfloat16", M=n, N=n, K=n)


def machine_code(rung):
    """The instructions of a rung at 4096."""
    if rung is k14_tuned:
        return listing.instructions(sass(compile_cubin(rung.SOURCE, ARCH)))
    return listing.instructions(sass(rung.compiled(square(4096), ARCH).cubin))


with ThreadPoolExecutor(1) as pool:  # nvcc reads CUTLASS while the others compile
    slowest = pool.submit(machine_code, in_cutlass)
    codes = {
        name: machine_code(rung)
        for name, rung in RUNGS.items()
        if rung not in (k05_triton, in_cutlass)
    }
    codes["cutlass"] = slowest.result()
ones = torch.ones(4096, 4096, dtype=torch.bfloat16, device="cuda")
k05_triton.gemm(ones, ones)
compiled_by_triton, *_ = k05_triton.gemm_kernel.device_caches[0]
codes["triton"] = listing.instructions(
    sass(next(iter(compiled_by_triton.values())).asm["cubin"])
)
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
# own, with the compiler's caches empty, and once more in a new process, with what the first one had left behind. Loading the language
# is part of both. So the second number is what every new process pays, and a cache can save no more than the difference.
#
# /// predict | The slowest first call, against the quickest: how many times as long?
# - [slowest_first < 10 * quickest_first] Less than ten times
# - [10 * quickest_first <= slowest_first < 20 * quickest_first] Ten to twenty times
# - [slowest_first >= 20 * quickest_first] More than that
# /// reveal
# The quickest takes {{ quickest_first:.1f}} s, the slowest {{ slowest_first:.1f}} s.
#
# /// table
# columns: [rung, "first call, s", "again, with its cache, s"]
# rows:
#   - [Helion, "{{ first.helion.cold:.1f}}", "{{ first.helion.warm:.1f}}"]
#   - [Triton, "{{ first.triton.cold:.1f}}", "{{ first.triton.warm:.1f}}"]
#   - [cuTile, "{{ first.cutile.cold:.1f}}", "{{ first.cutile.warm:.1f}}"]
#   - [TileLang, "{{ first.tilelang.cold:.1f}}", "{{ first.tilelang.warm:.1f}}"]
#   - [Gluon, "{{ first.gluon.cold:.1f}}", "{{ first.gluon.warm:.1f}}"]
#   - [CuTe-DSL, "{{ first.cute_dsl.cold:.1f}}", "{{ first.cute_dsl.warm:.1f}}"]
#   - [CUTLASS C++, "{{ first.cutlass.cold:.1f}}", "{{ first.cutlass.warm:.2f}}"]
#   - ["CUDA C++, k14", "{{ first.cuda.cold:.1f}}", "{{ first.cuda.warm:.1f}}"]
# caption: "Seconds by the wall clock, from the import of the kernel to its answer, one process after the other, with nothing else at work. PyTorch was loaded and the inputs were on the card before the clock started."
# ///
#
# Each number is of a single call, so small differences say nothing. Where the second column is as long as the first, or longer,
# nothing was saved: nothing is kept, or nearly all of the time is loading. CuTe-DSL's own code says that it keeps nothing: a kernel that
# was only compiled, by `cute.compile`, goes nowhere on disk.
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
#
# /// callout | trip
# Four things that cost an evening, and that no error message tells:
#
# - cuTile ends with *Return code 5* and no reason. Look at `CUDA_HOME`: a compiler that is found on the PATH takes its parts from the
#   toolkit named there, and an older one does not work. Unset it, or install `cuda-tile[tileiras]`.
# - Helion 1.5.1 does not import beside torch 2.11, and pip does not say so. This page uses 1.4.0.
# - Compile CUTLASS with `-DNDEBUG`. With its asserts every `wgmma` waits for the one before it, and only warning C7510 tells.
# - For few rows, look at `max_swizzle_size` of CUTLASS's scheduler. [An exercise below](#the-scoreboard) shows what it does.
#
# Each of them is a script in `findings/`.
# ///

# %% tags=["fold"]
import time

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


began = time.perf_counter()
seconds = first_call.all_timed(FILES, square(4096))
first_calls_s = time.perf_counter() - began
record(
    first_calls=quantity(first_calls_s, "s", how="timed"),
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

# %% [markdown]
# ## The scoreboard
#
# All rungs multiply the same inputs in the same rounds, and each answer was checked before its clock started. Timing is in
# [bursts](w2_hopper.py#two-clocks): launches follow one another without a gap. Two libraries by NVIDIA run beside them: cuBLAS, as
# PyTorch calls it, and cuBLASLt, which offers several ways to do one product. It calls them guesses, and we take the fastest of its
# first eight.
#
# /// predict | At 8192, how much of the better library's speed does the slowest of the eight rungs reach?
# - [slowest.n8192 < 0.6] Less than three fifths
# - [0.6 <= slowest.n8192 < 0.85] Three fifths or more, and less than 85 %
# - [slowest.n8192 >= 0.85] 85 % or more
# /// reveal
# The slowest of the eight reaches {{ slowest.n8192:.0%}} of the speed of the better of the two libraries.
#
# /// table
# columns: [rung, "4096, TFLOP/s", "% of peak", "of the library", "8192, TFLOP/s", "% of peak", "of the library"]
# rows:
#   - [Helion, "{{ burst.n4096.helion:.0f}}", "{{ burst.n4096.helion / sheet.bf16:.0%}}", "{{ of_library.n4096.helion:.3f}}", "{{ burst.n8192.helion:.0f}}", "{{ burst.n8192.helion / sheet.bf16:.0%}}", "{{ of_library.n8192.helion:.3f}}"]
#   - [Triton, "{{ burst.n4096.triton:.0f}}", "{{ burst.n4096.triton / sheet.bf16:.0%}}", "{{ of_library.n4096.triton:.3f}}", "{{ burst.n8192.triton:.0f}}", "{{ burst.n8192.triton / sheet.bf16:.0%}}", "{{ of_library.n8192.triton:.3f}}"]
#   - [cuTile, "{{ burst.n4096.cutile:.0f}}", "{{ burst.n4096.cutile / sheet.bf16:.0%}}", "{{ of_library.n4096.cutile:.3f}}", "{{ burst.n8192.cutile:.0f}}", "{{ burst.n8192.cutile / sheet.bf16:.0%}}", "{{ of_library.n8192.cutile:.3f}}"]
#   - [TileLang, "{{ burst.n4096.tilelang:.0f}}", "{{ burst.n4096.tilelang / sheet.bf16:.0%}}", "{{ of_library.n4096.tilelang:.3f}}", "{{ burst.n8192.tilelang:.0f}}", "{{ burst.n8192.tilelang / sheet.bf16:.0%}}", "{{ of_library.n8192.tilelang:.3f}}"]
#   - [Gluon, "{{ burst.n4096.gluon:.0f}}", "{{ burst.n4096.gluon / sheet.bf16:.0%}}", "{{ of_library.n4096.gluon:.3f}}", "{{ burst.n8192.gluon:.0f}}", "{{ burst.n8192.gluon / sheet.bf16:.0%}}", "{{ of_library.n8192.gluon:.3f}}"]
#   - [CuTe-DSL, "{{ burst.n4096.cute_dsl:.0f}}", "{{ burst.n4096.cute_dsl / sheet.bf16:.0%}}", "{{ of_library.n4096.cute_dsl:.3f}}", "{{ burst.n8192.cute_dsl:.0f}}", "{{ burst.n8192.cute_dsl / sheet.bf16:.0%}}", "{{ of_library.n8192.cute_dsl:.3f}}"]
#   - [CUTLASS C++, "{{ burst.n4096.cutlass:.0f}}", "{{ burst.n4096.cutlass / sheet.bf16:.0%}}", "{{ of_library.n4096.cutlass:.3f}}", "{{ burst.n8192.cutlass:.0f}}", "{{ burst.n8192.cutlass / sheet.bf16:.0%}}", "{{ of_library.n8192.cutlass:.3f}}"]
#   - ["CUDA C++, k14", "{{ burst.n4096.cuda:.0f}}", "{{ burst.n4096.cuda / sheet.bf16:.0%}}", "{{ of_library.n4096.cuda:.3f}}", "{{ burst.n8192.cuda:.0f}}", "{{ burst.n8192.cuda / sheet.bf16:.0%}}", "{{ of_library.n8192.cuda:.3f}}"]
#   - [cuBLAS, "{{ burst.n4096.cublas:.0f}}", "{{ burst.n4096.cublas / sheet.bf16:.0%}}", "", "{{ burst.n8192.cublas:.0f}}", "{{ burst.n8192.cublas / sheet.bf16:.0%}}", ""]
#   - ["cuBLASLt, its best", "{{ burst.n4096.cublaslt:.0f}}", "{{ burst.n4096.cublaslt / sheet.bf16:.0%}}", "", "{{ burst.n8192.cublaslt:.0f}}", "{{ burst.n8192.cublaslt / sheet.bf16:.0%}}", ""]
# caption: "M = N = K, bf16, random normal inputs, B stored as (K, N), in bursts, warm L2. *Of the library* is the speed over that of the better of the two libraries at this size."
# ///
# ///
#
# /// define | of_library.n4096.helion = burst.n4096.helion / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung helion over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.triton = burst.n4096.triton / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung triton over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.cutile = burst.n4096.cutile / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung cutile over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.tilelang = burst.n4096.tilelang / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung tilelang over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.gluon = burst.n4096.gluon / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung gluon over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.cute_dsl = burst.n4096.cute_dsl / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung cute_dsl over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.cutlass = burst.n4096.cutlass / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung cutlass over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n4096.cuda = burst.n4096.cuda / max(burst.n4096.cublas, burst.n4096.cublaslt)
# unit: ×
# what: the rung cuda over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.helion = burst.n8192.helion / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung helion over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.triton = burst.n8192.triton / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung triton over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.cutile = burst.n8192.cutile / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung cutile over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.tilelang = burst.n8192.tilelang / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung tilelang over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.gluon = burst.n8192.gluon / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung gluon over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.cute_dsl = burst.n8192.cute_dsl / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung cute_dsl over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.cutlass = burst.n8192.cutlass / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung cutlass over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | of_library.n8192.cuda = burst.n8192.cuda / max(burst.n8192.cublas, burst.n8192.cublaslt)
# unit: ×
# what: the rung cuda over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | slowest.n8192 = min(of_library.n8192.helion, of_library.n8192.triton, of_library.n8192.cutile, of_library.n8192.tilelang, of_library.n8192.gluon, of_library.n8192.cute_dsl, of_library.n8192.cutlass, of_library.n8192.cuda)
# unit: ×
# what: the slowest of the eight kernels over the better library, 8192, bf16, NN, in bursts
# ///
#
# /// define | tilelang_of_cublas.n4096 = burst.n4096.tilelang / burst.n4096.cublas
# unit: ×
# what: the rung tilelang over torch's cuBLAS, 4096, bf16, NN, in bursts
# ///
#
# /// define | tilelang_of_cublas.n8192 = burst.n8192.tilelang / burst.n8192.cublas
# unit: ×
# what: the rung tilelang over torch's cuBLAS, 8192, bf16, NN, in bursts
# ///
#
# /// define | cutedsl_of_cublas.n4096 = burst.n4096.cute_dsl / burst.n4096.cublas
# unit: ×
# what: the rung cute_dsl over torch's cuBLAS, 4096, bf16, NN, in bursts
# ///
#
# /// define | cutedsl_of_cublas.n8192 = burst.n8192.cute_dsl / burst.n8192.cublas
# unit: ×
# what: the rung cute_dsl over torch's cuBLAS, 8192, bf16, NN, in bursts
# ///
#
# *The library* need not be the same one in both halves of the table. Most people compare with the cuBLAS that PyTorch calls. Over that
# alone, TileLang has {{ tilelang_of_cublas.n4096:.3f}} of the speed at 4096 and {{ tilelang_of_cublas.n8192:.3f}} at 8192, and CuTe-DSL
# {{ cutedsl_of_cublas.n4096:.3f}} and {{ cutedsl_of_cublas.n8192:.3f}}. So before you believe a share, ask: of which library?
#
# And at the shapes of a model? These are the products of Llama 3.1 8B for a prompt of 1024 tokens.
#
# /// table
# columns: ["TFLOP/s, 1024 rows", "query, 4096 × 4096", "key, 1024 × 4096", "gate, 14336 × 4096", "down, 4096 × 14336"]
# rows:
#   - [Helion, "{{ layer.query.helion:.0f}}", "{{ layer.key.helion:.0f}}", "{{ layer.gate.helion:.0f}}", "{{ layer.down.helion:.0f}}"]
#   - [Triton, "{{ layer.query.triton:.0f}}", "{{ layer.key.triton:.0f}}", "{{ layer.gate.triton:.0f}}", "{{ layer.down.triton:.0f}}"]
#   - [cuTile, "{{ layer.query.cutile:.0f}}", "{{ layer.key.cutile:.0f}}", "{{ layer.gate.cutile:.0f}}", "{{ layer.down.cutile:.0f}}"]
#   - [TileLang, "{{ layer.query.tilelang:.0f}}", "{{ layer.key.tilelang:.0f}}", "{{ layer.gate.tilelang:.0f}}", "{{ layer.down.tilelang:.0f}}"]
#   - [Gluon, "{{ layer.query.gluon:.0f}}", "{{ layer.key.gluon:.0f}}", "{{ layer.gate.gluon:.0f}}", "{{ layer.down.gluon:.0f}}"]
#   - [CuTe-DSL, "{{ layer.query.cute_dsl:.0f}}", "{{ layer.key.cute_dsl:.0f}}", "{{ layer.gate.cute_dsl:.0f}}", "{{ layer.down.cute_dsl:.0f}}"]
#   - [CUTLASS C++, "{{ layer.query.cutlass:.0f}}", "{{ layer.key.cutlass:.0f}}", "{{ layer.gate.cutlass:.0f}}", "{{ layer.down.cutlass:.0f}}"]
#   - ["CUDA C++, k14", "{{ layer.query.cuda:.0f}}", "{{ layer.key.cuda:.0f}}", "{{ layer.gate.cuda:.0f}}", "{{ layer.down.cuda:.0f}}"]
#   - [cuBLAS, "{{ layer.query.cublas:.0f}}", "{{ layer.key.cublas:.0f}}", "{{ layer.gate.cublas:.0f}}", "{{ layer.down.cublas:.0f}}"]
#   - ["cuBLASLt, its best", "{{ layer.query.cublaslt:.0f}}", "{{ layer.key.cublaslt:.0f}}", "{{ layer.gate.cublaslt:.0f}}", "{{ layer.down.cublaslt:.0f}}"]
# caption: "bf16, bursts, B stored as (K, N). [The multiply, size by size](../multiply_on_hopper.py) has our k14 at more of these shapes."
# ///
#
# /// exercise | Every second turn | 4 minutes
# A persistent block of CUTLASS walks over tiles, in groups that keep L2 warm. In the column *query*, C has 1024 rows and 4096 columns. A
# tile is 128 × 256, and a cluster is two tiles, one below the other. The scheduler rounds the tiles up to whole groups of so many
# clusters each way as you ask for, by `max_swizzle_size`. How many tiles does C have? Over how many does a block's walk go when you ask
# for 8? What do you ask for?
# /// answer
# C has 8 rows of 16 tiles, 128 in all. A group of 8 clusters is 16 tiles high, so the 8 rows are rounded up to 16, and the walk goes
# over 256: every second turn is for a tile that does not exist. We met this when we timed this table for the first time, and found it
# in CUTLASS's source; at 4096 and 8192 rows nothing is rounded up, so there nobody sees it. Ask for 4: a group is 8 tiles high, and
# nothing is added. Our launcher now asks, for each product, for the largest group that adds the fewest tiles.
# ///
#
# Look at the column *key*, too. C has 1024 × 1024 numbers there: 32 tiles of 128 × 256, for a card with some four times as many SMs.
# Seven of our rungs cut C in the same way at every size that the copy engine takes; k14 chooses its tile by the size. A share of peak
# is a share at one size.
#
# Why not more, at the large sizes? Every rung above runs the same instruction at the same power limit. What is left between them is
# logistics: how soon the next tile is there, who stores C, and what else draws power meanwhile. The workshop on Hopper takes k14 apart,
# wait by wait, and [measures what each step is worth](w2_hopper.py#what-the-last-per-cents-cost).

# %% tags=["fold"]
from course_kernels.gemm import heuristics
from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure.bursts import Race
from course_kernels.measure.machine import machine_for

PEAK = machine_for(torch.cuda.get_device_name()).peak_tflops["bf16"]
GUESSES, ROUNDS, REST_S = 8, 5, 0.1
library.cublas(ones, ones)  # from here on torch has loaded what makes the guesses


def guess(number):
    """One of cuBLASLt's guesses; it is bound to its inputs before it is timed."""

    def bound(a, b):
        ways = heuristics.ways(a, b, GUESSES)
        if number >= len(ways):
            raise ValueError(f"cuBLASLt: {len(ways)} guesses")
        return ways[number]

    return bound


def best_guess(w):
    """The number of the fastest of cuBLASLt's guesses that are right, by short bursts."""
    field = {str(number): guess(number) for number in range(GUESSES)}
    race = Race(field, PROBLEM, w, bind=field, optional=field)
    race.burst(rounds=2, rest_s=0.02)
    return int(race.fastest(race.names))


def raced(w):
    """Every rung and the library in bursts, and the worst error of each."""
    field = {name: rung.gemm for name, rung in RUNGS.items()}
    field |= {"cublas": library.cublas, "cublaslt": guess(best_guess(w))}
    race = Race(field, PROBLEM, w, bind=("cublaslt",))
    return race.burst(rounds=ROUNDS, rest_s=REST_S), race.errors


def layer(n, k):
    """A product of a prompt of 1024 tokens with weights of n by k."""
    return Workload.of("bfloat16", M=1024, N=n, K=k)


LAYERS = {
    "query": (4096, 4096),
    "key": (1024, 4096),
    "gate": (14336, 4096),
    "down": (4096, 14336),
}
squares = {f"n{n}": raced(square(n)) for n in (4096, 8192)}
record(
    sheet={"bf16": quantity(PEAK, "TFLOP/s", "given")},
    burst={size: rates for size, (rates, _) in squares.items()},
    error={name: quantity(found) for name, found in squares["n4096"][1].items()},
    layer={name: raced(layer(n, k))[0] for name, (n, k) in LAYERS.items()},
)

# %% [markdown]
# ## Attention, on six rungs
#
# A multiply is where every tool shines: it is the example in its manual. Attention is the harder dish. It has two products,
# and a softmax between them that no tensor core takes.
#
# Triton's kernel here is the one of [the workshop on FlashAttention](w1_flash_attention.py), and so is its sister in Gluon, whose
# roles are written out. In CUDA C++ it is the kernel that [Attention, as far as it goes](../attention_on_hopper.py) takes apart.
# TileLang's, cuTile's and CuTe-DSL's are new. The last has a famous sister: FlashAttention-4 *is* attention in CuTe-DSL, by its
# authors [^dao-repo], and that page races it.
#
# /// predict | Three of the six let you say who waits for whom: Gluon, CuTe-DSL and CUDA C++. Are they the three fastest on the full square, without a mask, at N = 16384?
# - [min(attend.full.gluon.tflops, attend.full.cute_dsl.tflops, attend.full.cuda.tflops) >= max(attend.full.triton.tflops, attend.full.cutile.tflops, attend.full.tilelang.tflops)] Yes, all three
# - [min(attend.full.gluon.tflops, attend.full.cute_dsl.tflops, attend.full.cuda.tflops) < max(attend.full.triton.tflops, attend.full.cutile.tflops, attend.full.tilelang.tflops)] No: one of the others is ahead of at least one of them
# /// reveal
# /// table
# columns: [rung, "lines on the card", "full, TFLOP/s", "% of peak", "of cuDNN", "causal, TFLOP/s", "% of peak", "of cuDNN"]
# rows:
#   - [Triton, "{{ attention_lines.triton:.0f}}", "{{ attend.full.triton.tflops:.0f}}", "{{ attend.full.triton.of_peak:.0%}}", "{{ attend.full.cudnn.us / attend.full.triton.us:.2f}}", "{{ attend.causal.triton.tflops:.0f}}", "{{ attend.causal.triton.of_peak:.0%}}", "{{ attend.causal.cudnn.us / attend.causal.triton.us:.2f}}"]
#   - [cuTile, "{{ attention_lines.cutile:.0f}}", "{{ attend.full.cutile.tflops:.0f}}", "{{ attend.full.cutile.of_peak:.0%}}", "{{ attend.full.cudnn.us / attend.full.cutile.us:.2f}}", "{{ attend.causal.cutile.tflops:.0f}}", "{{ attend.causal.cutile.of_peak:.0%}}", "{{ attend.causal.cudnn.us / attend.causal.cutile.us:.2f}}"]
#   - [TileLang, "{{ attention_lines.tilelang:.0f}}", "{{ attend.full.tilelang.tflops:.0f}}", "{{ attend.full.tilelang.of_peak:.0%}}", "{{ attend.full.cudnn.us / attend.full.tilelang.us:.2f}}", "{{ attend.causal.tilelang.tflops:.0f}}", "{{ attend.causal.tilelang.of_peak:.0%}}", "{{ attend.causal.cudnn.us / attend.causal.tilelang.us:.2f}}"]
#   - [Gluon, "{{ attention_lines.gluon:.0f}}", "{{ attend.full.gluon.tflops:.0f}}", "{{ attend.full.gluon.of_peak:.0%}}", "{{ attend.full.cudnn.us / attend.full.gluon.us:.2f}}", "{{ attend.causal.gluon.tflops:.0f}}", "{{ attend.causal.gluon.of_peak:.0%}}", "{{ attend.causal.cudnn.us / attend.causal.gluon.us:.2f}}"]
#   - [CuTe-DSL, "{{ attention_lines.cute_dsl:.0f}}", "{{ attend.full.cute_dsl.tflops:.0f}}", "{{ attend.full.cute_dsl.of_peak:.0%}}", "{{ attend.full.cudnn.us / attend.full.cute_dsl.us:.2f}}", "{{ attend.causal.cute_dsl.tflops:.0f}}", "{{ attend.causal.cute_dsl.of_peak:.0%}}", "{{ attend.causal.cudnn.us / attend.causal.cute_dsl.us:.2f}}"]
#   - [CUDA C++, "{{ attention_lines.cuda:.0f}}", "{{ attend.full.cuda.tflops:.0f}}", "{{ attend.full.cuda.of_peak:.0%}}", "{{ attend.full.cudnn.us / attend.full.cuda.us:.2f}}", "{{ attend.causal.cuda.tflops:.0f}}", "{{ attend.causal.cuda.of_peak:.0%}}", "{{ attend.causal.cudnn.us / attend.causal.cuda.us:.2f}}"]
#   - [cuDNN, "closed", "{{ attend.full.cudnn.tflops:.0f}}", "{{ attend.full.cudnn.of_peak:.0%}}", "", "{{ attend.causal.cudnn.tflops:.0f}}", "{{ attend.causal.cudnn.of_peak:.0%}}", ""]
# caption: "bf16, 16 heads of 128 numbers, N = 16384, cold L2, all in the same rounds. *Full*: every query meets every key. *Causal*: only earlier keys, and half of the operations are counted. *Of cuDNN* is the speed over that of cuDNN's kernel."
# ///
# ///
#
# The question for every row is the same: *which decision would you want back?* A warpgroup that does a product and then a softmax, in
# turns, gives the tensor cores nothing to do during its softmax. Whether another warpgroup's product fills that gap is left to chance,
# unless somebody says so: the tool, if it knows this dish, or you.
#
# /// claim | attend.full.cute_dsl.us < attend.full.tilelang.us
# Compare TileLang with CuTe-DSL. In both, some warps do nothing but fetch, and two warpgroups multiply. In TileLang a warpgroup waits
# for each of its products. In CuTe-DSL it takes the exponentials of one tile while the product of the tile before runs, and the two
# warpgroups hand the tensor cores to each other. CuTe-DSL's kernel has
# {{ attend.full.tilelang.us / attend.full.cute_dsl.us - 1:.0%}} more speed on the full square, and
# {{ attention_lines.cute_dsl - attention_lines.tilelang:.0f}} more lines.
#
# Is that the price of those two decisions? Two compilers made these kernels, and they may differ in more than we said. To know, take
# one decision out of the kernel in CuTe-DSL and time it again; this page has not done that.
# /// otherwise
# TileLang and CuTe-DSL show that more to say need not pay. In TileLang a warpgroup waits for each of its products; in CuTe-DSL it
# takes the exponentials of one tile while the product of the tile before runs. On the full square its
# {{ attention_lines.cute_dsl - attention_lines.tilelang:.0f}} more lines bought nothing.
# ///
#
# To be allowed to say so is not to be obeyed. In CuTe-DSL, too, there are compilers below you, and two of our decisions had to be
# won back from them:
#
# - A compiler put the rounding of the weights off until the next product had begun, and then the assembler waited for every product.
# - The assembler moved the last wait in front of the exponentials, where nothing is left to overlap.
#
# Find both cures in `src/course_kernels/attention/in_cute_dsl.py`: a conversion that is said as an instruction, and a wait for
# something long over.

# %% tags=["fold"]
from course_kernels.attention import (
    in_cute_dsl as attention_in_cute_dsl,
)
from course_kernels.attention import (
    in_cutile as attention_in_cutile,
)
from course_kernels.attention import (
    in_tilelang as attention_in_tilelang,
)
from course_kernels.attention import (
    k03_flash,
    k04_specialised,
    k06_wgmma,
)
from course_kernels.attention import library as attention_library
from course_kernels.measure import compare

ATTENTION = {
    "triton": k03_flash,
    "cutile": attention_in_cutile,
    "tilelang": attention_in_tilelang,
    "gluon": k04_specialised,
    "cute_dsl": attention_in_cute_dsl,
    "cuda": k06_wgmma,
}


def heads(causal):
    """Attention of one long sequence, in bf16."""
    return Workload.of("bfloat16", B=1, H=16, N=16384, D=128, causal=causal)


field = {**ATTENTION, "cudnn": attention_library.sdpa_cudnn}
record(
    attention_lines={
        name: quantity(lines_of(rung)["kernel"], how="counted")
        for name, rung in ATTENTION.items()
    },
    attend={
        "full": compare(field, heads(causal=False), seconds=0.15),
        "causal": compare(field, heads(causal=True), seconds=0.15),
    },
)

# %% [markdown]
# ## A layout is a measuring cup
#
# CuTe has one idea, and it fits on a slip of paper. A **layout** is a *shape* and a *stride* of the same form, written
# shape : stride. Multiply each number of a coordinate by its stride, and add up. That is the address.
#
# /// exercise | By hand first | 5 minutes
# Where does (4, 8) : (8, 1) put the coordinate (2, 3)? Where does (4, 8) : (1, 4) put it? Which of the two is *row by row*? And
# which stride would leave one unused number at the end of every row?
# /// answer
# 2 · 8 + 3 · 1 = 19, and 2 · 1 + 3 · 4 = 14. The first is row by row: one step to the right is one address further. With
# one number of padding a row takes 9, so the stride is (9, 1).
# ///
#
# Now step through it. Choose another layout, then send it *through* another one: to compose two layouts is to ask the first where to
# look in the second.
#
# /// explorable | layouts
# ask: "Index 14 of (4, 8):(8, 1): which address? Say it first. And with the stride (1, 4), with padding, in blocks?"
# alt: >-
#   A grid of 4 rows and 8 columns, an address in each cell. A frame marks the cell in row 2 and column 3. Below it are the
#   two numbers of this coordinate with their strides, 8 and 1, and the two products, 16 and 3, together 19. At the bottom are
#   all addresses in the order of the index: 0, 8, 16, 24, then 1, and so on.
# knobs:
#   layout: {label: a layout to begin with, at: rows, choices: {rows: row by row, columns: column by column,
#            padded: "row by row, with padding", blocks: in blocks of 2 by 2, zigzag: zigzag, repeated: "one row, repeated", own: your own}}
#   inner: {label: first through another layout, at: none, choices: {none: none, second: every second index, turned: "transposed, the second number first",
#           row: one row, tile: a tile of 2 by 2, dealt: dealt to 4 threads}}
#   shape: {label: "shape, without its brackets", at: [4, 8]}
#   stride: {label: "stride, a number for each size", at: [8, 1]}
#   split: {label: numbers that make the row, at: 1}
#   address: {label: the address, at: shown, choices: {shown: shown, hidden: I say it first}}
#   at: {label: index, at: 14}
# says:
#   unlike: "The numbers of the shape are {sizes}, those of the stride {strides}: each size needs a stride of its own."
#   no_number: "Sizes are whole numbers from 1 up, and strides whole numbers from 0 to 99."
#   too_many: "That is too large for the grid: it has room for 8 rows, 16 columns and 64 elements."
#   alone: "{outer}, index {at} of {last}."
#   through: "Index {at} of the first layout, {inner}, gives {middle}. That is the index for the second one, {outer}."
#   coordinate: "The first number runs first, so the coordinate is {coordinate}."
#   products: "Each number times its stride: {products} = {address}."
#   hidden: "Which address is that? Multiply each number by its stride, and add up. The next step shows it."
#   one: "Both together are one layout, {composed}."
#   several: "Both together are no layout: no stride for each number leads the same way."
# row: {index: "{at}", "index for the second": "{middle}", coordinate: "{coordinate}", "number × stride": "{products}", address: "{address}"}
# caption: Tap a cell to go to its index. Previous and Next go from index to index.
# ///
#
# A coordinate may be a *pair*, and its stride a pair too. That is how one line describes what each lane of a warp holds of A in
# [one instruction of the tensor cores](../lectures/l6_tensor_cores.py#a-tiny-matmul-in-one-instruction).
# CUTLASS has this very line in its source [^cute-mma-sm80].
#
# ```text
# thread, value  →  place in A:   ((4, 8), (2, 2, 2)) : ((32, 1), (16, 8, 128))
# ```
#
# /// exercise | Lane 5 | 4 minutes
# Lane 5 is the pair (1, 1), because 5 = 1 + 4 · 1. Where is its first number, in a tile of 16 rows that lies column by column?
# /// answer
# 1 · 32 + 1 · 1 = 33. A column has 16 numbers, so 33 is column 2, row 1.
# ///
#
# The lab `layouts` has twenty such questions, from an address to the swizzle that keeps the banks apart: `nox -s lab -- layouts`. You
# need no GPU for it.
#
# ### CUTLASS, word for word
#
# Here is the whole kernel in CUTLASS C++, without the launch. Read it with the words that you have.
#
# /// source | src/course_kernels/gemm/in_cutlass.cu#kernel
# ///
#
# | CUTLASS says | you know it as |
# |---|---|
# | `Tile`, 128 × 256 × 64 | [block tile](../lectures/l4_the_gemm_ladder.py#the-words-for-tiles), and the step of k |
# | `Cluster`, 2 × 1 × 1 | two blocks that share [one delivery](w2_hopper.py#k11-one-delivery-for-two-blocks) of B |
# | `KernelTmaWarpSpecializedCooperative` | [roles](w2_hopper.py#roles): one warp orders by TMA, two warpgroups share a tile |
# | `StageCountAutoCarveout` | how many places the ring has: as many as fit beside the tile of C |
# | `TmaWarpSpecializedCooperative` | C leaves [by the copy engine](w2_hopper.py#k12-c-leaves-by-the-copy-engine) |
# | `PersistentScheduler` | blocks that stay, and walk over tiles |
# | `OpClassTensorOp`, `Sm90` | `wgmma` |
#
# Nothing on the left is new to you. What is new is who wrote it down.

# %% [markdown]
# ## What `torch.compile` writes
#
# The rung above all of these is one you have used for weeks without climbing: `torch.compile` [^torch-compiler]. For bias and GELU it writes a
# kernel in Triton. Here it is, as it came out on this machine.
#
# /// text | inductor.bias_gelu
# ///
#
# /// exercise | Read it | 5 minutes
# Find: the line that says which elements a program has; the line that adds the bias; what the bias is indexed by; how often a number
# of x is read; and what would have to change in it for a fused product. Then put [our kernel](../lectures/l2_the_cuda_model.py)
# beside it.
# /// answer
# `xindex` says which elements a program has. The bias is read at `xindex % 4096`, the column, and added before the GELU. A
# number of x is read once and written once, which is all that bytes allow. A product would need tiles and a loop over k: that is
# another template of the compiler's, and the epilogue would move into it.
# ///
#
# Now a whole feed-forward block, with its three products: `(silu(x @ gate) * (x @ up)) @ down`, at the shapes of Llama 3.1 8B, for a
# prompt of 1024 tokens.
#
# /// predict | How many kernels does it write for this block?
# - [1 <= inductor.written < 2] One, for what is between the products; the products are calls to the library
# - [inductor.written >= 2 and inductor.products == 0] The products as well
# - [inductor.written >= 2 and inductor.products > 0] Several, and it calls the library, too
# - [inductor.written < 1] None
# /// reveal
# Kernels that it wrote: {{ inductor.written:.0f}}. Products for which it calls the library: {{ inductor.products:.0f}}. This is what it
# wrote:
#
# /// text | inductor.mlp
# ///
# ///
#
# /// exercise | Beside ours | 6 minutes
# Here is our kernel for the step between the products.
#
# /// source | src/course_kernels/swiglu/k01_fused.py#kernel
# ///
#
# For both kernels: how often is a number read, and how often is one written? Which of them needs room for its answer? What does
# ours say about memory that the other does not? And what would save more time than either of them can?
# /// answer
# Both read two numbers and write one. Where the compiler calls an argument `in_out_ptr0`, it writes over what it has read, so it
# needs no room; ours has an output of its own. Ours says what will not be read again (`eviction_policy`), takes gate and up as two
# parts of one row (`apart`), and may begin while the kernel before it ends (`PDL`). More time is in the products: both multiply
# the same x, and the library is called for each. With gate and up side by side in one matrix it is one call. And a product with silu
# in its epilogue would save the way to memory and back, but a call to the library has no place for that.
# ///

# %% tags=["fold"]
import re

from torch._inductor.utils import run_and_get_code


def bias_gelu(x, bias):
    """gelu(x + bias), with the tanh form."""
    return torch.nn.functional.gelu(x + bias, approximate="tanh")


def mlp(x, gate, up, down):
    """A feed-forward block of Llama."""
    return (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down


def written_for(function, *shapes):
    """The kernels that it writes in Triton, and the products that it calls."""
    inputs = [
        torch.randn(shape, dtype=torch.bfloat16, device="cuda") for shape in shapes
    ]
    _, written = run_and_get_code(torch.compile(function), *inputs)
    code = "\n".join(written)
    kernels = re.findall(r"^@triton\.jit\ndef .*?(?=\n''')", code, re.DOTALL | re.M)
    if not kernels:
        raise RuntimeError(f"{function.__name__}: no kernel in what was written")
    return kernels, re.findall(r"\bextern_kernels\.(?:add)?mm\(", code)


(gelu, *_), _ = written_for(bias_gelu, (4096, 4096), (4096,))
kernels, products = written_for(
    mlp, (1024, 4096), (4096, 14336), (4096, 14336), (14336, 4096)
)
record(
    inductor={
        "bias_gelu": text(gelu),
        "mlp": text("\n\n\n".join(kernels)),
        "written": quantity(len(kernels), how="counted"),
        "products": quantity(len(products), how="counted"),
    }
)

# %% [markdown]
# ## The price list
#
# Here is what each rung costs and what it gives, on one page. Lines are counted by the one rule of this page. Compiling is counted
# apart, and no rate has any of it in it. To make all first calls took {{ first_calls:.0f}} s: the two columns of seconds, and the start
# of a process for each of them.
#
# /// table
# columns: [rung, "lines on the card", "first call, s", "again, with its cache, s", "% of peak at 8192", "of the best", "largest error at 4096", "package, MB"]
# rows:
#   - [Helion, "{{ lines.helion.kernel:.0f}}", "{{ first.helion.cold:.1f}}", "{{ first.helion.warm:.1f}}", "{{ burst.n8192.helion / sheet.bf16:.0%}}", "{{ burst.n8192.helion / best.n8192:.3f}}", "{{ error.helion:.4f}}", "{{ wheel.helion:.0f}}"]
#   - [Triton, "{{ lines.triton.kernel:.0f}}", "{{ first.triton.cold:.1f}}", "{{ first.triton.warm:.1f}}", "{{ burst.n8192.triton / sheet.bf16:.0%}}", "{{ burst.n8192.triton / best.n8192:.3f}}", "{{ error.triton:.4f}}", "comes with PyTorch"]
#   - [cuTile, "{{ lines.cutile.kernel:.0f}}", "{{ first.cutile.cold:.1f}}", "{{ first.cutile.warm:.1f}}", "{{ burst.n8192.cutile / sheet.bf16:.0%}}", "{{ burst.n8192.cutile / best.n8192:.3f}}", "{{ error.cutile:.4f}}", "{{ wheel.cutile:.0f}}"]
#   - [TileLang, "{{ lines.tilelang.kernel:.0f}}", "{{ first.tilelang.cold:.1f}}", "{{ first.tilelang.warm:.1f}}", "{{ burst.n8192.tilelang / sheet.bf16:.0%}}", "{{ burst.n8192.tilelang / best.n8192:.3f}}", "{{ error.tilelang:.4f}}", "{{ wheel.tilelang:.0f}}"]
#   - [Gluon, "{{ lines.gluon.kernel:.0f}}", "{{ first.gluon.cold:.1f}}", "{{ first.gluon.warm:.1f}}", "{{ burst.n8192.gluon / sheet.bf16:.0%}}", "{{ burst.n8192.gluon / best.n8192:.3f}}", "{{ error.gluon:.4f}}", "comes with Triton"]
#   - [CuTe-DSL, "{{ lines.cute_dsl.kernel:.0f}}", "{{ first.cute_dsl.cold:.1f}}", "{{ first.cute_dsl.warm:.1f}}", "{{ burst.n8192.cute_dsl / sheet.bf16:.0%}}", "{{ burst.n8192.cute_dsl / best.n8192:.3f}}", "{{ error.cute_dsl:.4f}}", "{{ wheel.cute_dsl:.0f}}"]
#   - [CUTLASS C++, "{{ lines.cutlass.kernel:.0f}}", "{{ first.cutlass.cold:.1f}}", "{{ first.cutlass.warm:.2f}}", "{{ burst.n8192.cutlass / sheet.bf16:.0%}}", "{{ burst.n8192.cutlass / best.n8192:.3f}}", "{{ error.cutlass:.4f}}", "{{ wheel.cutlass:.0f}}"]
#   - ["CUDA C++, k14", "{{ lines.cuda.kernel:.0f}}", "{{ first.cuda.cold:.1f}}", "{{ first.cuda.warm:.1f}}", "{{ burst.n8192.cuda / sheet.bf16:.0%}}", "{{ burst.n8192.cuda / best.n8192:.3f}}", "{{ error.cuda:.4f}}", "comes with the driver's toolkit"]
# caption: "*Of the best* is of the fastest of these eight at 8192. The error is that of the worst element, against its own size and the mean size of all. MB are what a package and those that it brings for itself take on disk, by its own list of files."
# ///
#
# /// define | best.n8192 = max(burst.n8192.helion, burst.n8192.triton, burst.n8192.cutile, burst.n8192.tilelang, burst.n8192.gluon, burst.n8192.cute_dsl, burst.n8192.cutlass, burst.n8192.cuda)
# unit: TFLOP/s
# what: the fastest of the eight kernels, 8192, bf16, NN, in bursts
# ///
#
# The last price has no number: what you could not get. We tried to make each rung do one thing more, and here is how it said no.
#
# | rung | we wanted | how it said no |
# |---|---|---|
# | Helion | two blocks that share a delivery | `num_ctas=2` is no setting: *Unsupported config keys for backend 'triton'* |
# | Triton | roles for the warps | `warp_specialize=True` on the loop over k is taken without a word, and the machine code stays the same |
# | cuTile | a ring of a given depth | there is no `num_stages`; the hint `latency` moves the depth, and at 10 the sums no longer fit into the registers |
# | TileLang | the same text for Blackwell | for sm_100a it compiles without a word, to the tensor core's instruction of two generations ago |
# | Gluon | the number of a thread | the language has layouts of threads, and no name for a thread |
# | CuTe-DSL | to leave a loop early | a `break` that depends on a value of the card is refused: *Early exit (break) is not allowed* |
# | CUTLASS C++ | a step of our own between the sums and C, such as a softmax | what its catalogue lacks has no place to go: *Could not find a callbacks specialization* |
# | CUDA C++, k14 | the next generation of cards | for sm_100a: *Instruction 'wgmma.fence' not supported* |
#
# Notice who says no aloud. Two of the eight take the wish, say nothing, and do not do it. There only the machine code tells you.
# Each row is a test in `tests/ladder`, which fails on the day when the tool has learnt it.

# %% [markdown]
# ## Your rule
#
# Before you read ours: here are six jobs. Put each on a rung, without reasons.
#
# 1. a bf16 multiply of 4096 each way
# 2. bias and GELU on a large tensor
# 3. attention with a mask of your own
# 4. the same, and it must reach cuDNN
# 5. a multiply whose sum is promoted every 128 k
# 6. an instruction of a card that came out today
#
# Now make a rule of at most four questions, so that the first *yes* gives the rung. One number must be on the table before
# anybody climbs down. Which?
#
# /// exercise | Ours, and the rows it rests on | 8 minutes
# Write your four questions down, then open the answer. Where do the tables of this page contradict your rule, or ours?
# /// answer
# The number is your percentage of peak, with the roof or the wait that holds you back.
#
# 1. *Does a library call do it, near enough to what binds?* Call it. This rests on the rows of cuBLAS in the scoreboard, and of cuDNN
#    in the table of attention.
# 2. *Is it about tiles, and is the tool's choice good enough?* Triton, cuTile or TileLang. This rests on *lines* and *of the best* in the
#    price list: at the larger size Triton has {{ burst.n8192.triton / best.n8192:.0%}} of the speed of the fastest kernel here, in
#    {{ lines.triton.kernel:.0f}} lines. Look at your own size, too.
# 3. *Must you say who waits for whom, or where a number lies?* Gluon, CuTe-DSL or CUTLASS. This rests on the rows *swizzle*,
#    *pipeline* and *roles* of the table of jobs, and on the table of attention: on the full square the kernel in Gluon has
#    {{ attend.full.triton.us / attend.full.gluon.us:.2f}} times the speed of that in Triton, in {{ attention_lines.gluon:.0f}}
#    lines against {{ attention_lines.triton:.0f}}.
#    But read both columns *of cuDNN*, with the mask and without: wherever TileLang's row reaches cuDNN, the question before this one
#    was already a *yes*.
# 4. *Is there an instruction that no tool emits?* CUDA C++ with PTX. This rests on the table of machine code, which says what is
#    emitted today, and on the list of what said no.
#
# By this rule the six jobs are: call it; Triton; Triton; Gluon or CuTe-DSL; Triton; CUDA C++. A different answer with a reason
# counts. And the rows will change: an instruction that no tool emitted last year may be a keyword today. The questions stay.
# ///
#
# /// exercise | Homework: one rung up
# Take SwiGLU, silu(x) · y for the two parts of a row, which you know in CUDA C++ or in Triton. Write it one rung up from where you
# wrote it last, with two lines on top that say what it is. Before you begin, predict two numbers: its lines, and its share of the
# bandwidth.
#
# Without a GPU write it in NumPy, and predict the lines alone. The judge hands over tensors of torch, so the file `my_swiglu.py` begins
# and ends with a step between the two:
#
# ```python
# import numpy as np
# import torch
#
#
# def swiglu(gate, up=None):
#     if up is None:  # gate holds both: the gate first
#         gate, up = gate.chunk(2, dim=-1)
#     a, b = gate.float().numpy(), up.float().numpy()
#     y = ...  # yours
#     return torch.from_numpy(y).to(gate.dtype)
# ```
#
# Then `nox -s judge -- my_swiglu.py --problem swiglu`, with a GPU or without one. Without one it says right or wrong, and nothing
# about speed.
# /// answer
# In Triton it is one load of each of the two inputs, one line of arithmetic and one store, behind a mask. It is bound by bytes: read
# two numbers, write one. If your share of the bandwidth is low, look at the width of the loads before you climb down.
# ///
#
# ## Before you leave
#
# **You can now**
#
# 1. name eight rungs, and say of each which of tile, place and thread it decides;
# 2. open the machine code of a kernel that you did not write, and find out who fetches, who waits and who stores;
# 3. read a layout aloud, and a CUTLASS kernel word for word;
# 4. say what a rung costs before you climb down to it.
#
# Triton until it can't. Then CUTLASS. Then raw CUDA. Nobody is paid for the rung. They are paid for the dinner.
#
# **Where this leads.** Now you have tools. [The next workshop](w4_serving.py) has customers. [The ledger](../numbers.md) lists every
# number above, with its spread.
