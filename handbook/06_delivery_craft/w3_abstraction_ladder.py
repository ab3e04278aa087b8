# ---
# id: teach_w3
# title: "Teaching W3: the ladder of tools"
# nav: W3 · The abstraction ladder
# description: How to lead a room from a matrix multiply in Triton to the words of CUTLASS, and to a rule for which rung a job deserves.
# needs: compiler
# ---

# %% [markdown]
# # Teaching W3: the ladder of tools
#
# After this page you can put side by side two programs that do the same work, one a few times as long as the other, and lead a
# room to the real question: *who decided what?* You will have counted the lines yourself, you will be able to read a CuTe layout
# aloud, and you will send everybody home with a rule of their own.
#
# To run it you need [the map of the three hours](../05_the_frontier/w3_map.md), this page, and the lab of the tiles lecture in Triton.
# Nobody needs a GPU to type; the two demos need one.

# %% [markdown]
# ## What it is really about
#
# You do not always have to write raw CUDA. There is a ladder of tools. Each rung further up
# makes more decisions for you, and you cannot take those decisions back. The skill is not to be high or low on the
# ladder. The skill is to know *which decisions this job needs*, and to take the highest rung that still leaves them to
# you.
#
# /// callout | metaphor
# There are three ways to make dinner. **Triton** is a meal kit: the recipe is one page, and it settles who peels what, where and when. **CUTLASS
# and CuTe** are raw
# ingredients and a professional kitchen: you have labelled measuring cups and sharp knives, and you must know what you are doing. **Raw
# CUDA** is an oven that you build yourself, in a field. A Tuesday dinner does not need an oven of your own. A dish that
# nobody has ever cooked may need one.
# ///
#
# /// figure | docs/assets/figures/tool_ladder.svg
# alt: >-
#   A ladder: Triton on top, TileLang and CUTLASS with CuTe in the middle, raw CUDA at the bottom. Upwards less code, downwards more
#   control. Beside each rung, who decides: the size of a tile is yours on every rung; where it is kept is the tool's in Triton and yours
#   below; which thread and which instruction is the tool's in Triton and TileLang, yours further down.
# ///

# %% [markdown]
# ## By hand: count the lines
#
# The most persuasive minute of the session is a silent one: two listings side by side, in the same font size. Let the room guess
# before you show them. Afterwards, let them *count*, by one rule: a line counts if it contains something other than a comment or
# a docstring.
#
# /// predict | Our wgmma kernel in CUDA C++, with the two headers that it needs, against our Triton kernel with its load and store. How many lines?
# Write down two numbers. Then write down two more: what share of the library's speed does each reach?
#
# - [count.wgmma.device >= 2.5 * count.triton.device] Three times as many in CUDA C++, or more
# - [1.3 * count.triton.device <= count.wgmma.device < 2.5 * count.triton.device] Twice as many in CUDA C++
# - [count.wgmma.device < 1.3 * count.triton.device] About as many
# /// reveal
# There are {{ count.wgmma.device:.0f}} lines against {{ count.triton.device:.0f}}, on the card. The speeds are in the table. Look at the host as well: there Triton
# has the longer file. With the host's lines, the two sums are {{ count.wgmma.device + count.wgmma.host:.0f}}
# and {{ count.triton.device + count.triton.host:.0f}}.
#
# /// table
# columns: [our GEMM, "lines on the card", "lines on the host", "together", "% of peak", "% of cuBLAS"]
# rows:
#   - [CUDA cores, "{{ count.cuda_cores.device:.0f}}", "{{ count.cuda_cores.host:.0f}}", "{{ count.cuda_cores.device + count.cuda_cores.host:.0f}}", "{{ l6.climb.cuda_cores.of_peak:.0%}}", "{{ l6.climb.cublas.us / l6.climb.cuda_cores.us:.0%}}"]
#   - [WMMA, "{{ count.wmma.device:.0f}}", "{{ count.wmma.host:.0f}}", "{{ count.wmma.device + count.wmma.host:.0f}}", "{{ l6.climb.wmma.of_peak:.0%}}", "{{ l6.climb.cublas.us / l6.climb.wmma.us:.0%}}"]
#   - [mma.sync, "{{ count.mma_sync.device:.0f}}", "{{ count.mma_sync.host:.0f}}", "{{ count.mma_sync.device + count.mma_sync.host:.0f}}", "{{ l6.climb.mma_sync.of_peak:.0%}}", "{{ l6.climb.cublas.us / l6.climb.mma_sync.us:.0%}}"]
#   - [wgmma, "{{ count.wgmma.device:.0f}}", "{{ count.wgmma.host:.0f}}", "{{ count.wgmma.device + count.wgmma.host:.0f}}", "{{ l6.climb.wgmma.of_peak:.0%}}", "{{ l6.climb.cublas.us / l6.climb.wgmma.us:.0%}}"]
#   - ["**Triton**", "{{ count.triton.device:.0f}}", "{{ count.triton.host:.0f}}", "{{ count.triton.device + count.triton.host:.0f}}", "{{ l6.climb.triton.of_peak:.0%}}", "{{ l6.climb.cublas.us / l6.climb.triton.us:.0%}}"]
# caption: 4096 × 4096 × 4096, bf16. The cell below counts the lines, including those that a kernel shares with its neighbours, such as our own headers.
# ///
#
# /// claim | count.triton.device < 0.5 * count.wgmma.device and l6.climb.triton.us < 0.95 * l6.climb.wgmma.us
# Triton has less than half of the lines on the card, and {{ l6.climb.wgmma.us / l6.climb.triton.us:.2f}} times the speed. That is not because Triton
# is the cleverer tool. Somebody wrote the swizzle, the ring of buffers with its barriers, `wgmma` and the orders to
# the copy engine *into the compiler*, and much of that is what the lectures on the ladder taught. The rest we wrote ourselves, in those few
# lines: the order of tiles, blocks that stay, and C in strips. Our `wgmma` kernel does without these.
# /// otherwise
# {{ count.triton.device:.0f}} lines against {{ count.wgmma.device:.0f}}, and {{ l6.climb.wgmma.us / l6.climb.triton.us:.2f}} times the speed on this card.
# ///
# ///

# %% tags=["fold"]
import ast
import io
import re
import tokenize
from pathlib import Path

from course_kernels.attention import k03_flash, k04_specialised
from course_kernels.cuda.includes import sources_of
from course_kernels.gemm import (
    k01_cuda_cores,
    k02_wmma,
    k03_mma_sync,
    k04_wgmma,
    k05_triton,
)
from course_kernels.measure import quantity, record

QUIET = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
QUIET |= {tokenize.DEDENT, tokenize.ENDMARKER}


def cuda_lines(path):
    """Lines of C++ that hold more than a comment."""
    code = re.sub(r"/[*].*?[*]/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
    return sum(bool(line.strip()) for line in code.splitlines())


def python_lines(path, names=None):
    """Lines of Python that hold more than a comment or a doc string."""
    text = path.read_text()
    tree = ast.parse(text)
    keep, drop = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(
                first.value, ast.Constant
            ):
                drop |= set(range(first.lineno, first.end_lineno + 1))
        if isinstance(node, ast.FunctionDef) and (
            names is None or node.name in names
        ):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            keep |= set(range(start, node.end_lineno + 1))
    spoken = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in QUIET:
            spoken |= set(range(token.start[0], token.end[0] + 1))
    return len((spoken if names is None else spoken & keep) - drop)


def launcher_files(path):
    """A launcher, and the files of its folder that it takes in, as `sources_of` does for the card."""
    own = rf"^from course_kernels[.]{path.parent.name}[.](\w+) import"
    found = {path}
    for name in re.findall(own, path.read_text(), re.MULTILINE):
        found |= launcher_files(path.with_name(f"{name}.py"))
    return found


def launcher_lines(kernel):
    """Lines of Python of a kernel, what it shares with its neighbours included."""
    return sum(python_lines(file) for file in launcher_files(Path(kernel.__file__)))


cuda = {
    "cuda_cores": k01_cuda_cores,
    "wmma": k02_wmma,
    "mma_sync": k03_mma_sync,
    "wgmma": k04_wgmma,
}
count = {
    name: {
        "device": sum(cuda_lines(file) for file in sources_of(kernel.SOURCE)),
        "host": launcher_lines(kernel),
    }
    for name, kernel in cuda.items()
}
triton_file = Path(k05_triton.__file__)
in_triton = python_lines(triton_file, {"gemm_kernel", "_load", "_store"})
count["triton"] = {
    "device": in_triton,
    "host": launcher_lines(k05_triton) - in_triton,
}
print("kernel       device  host")
for name, lines in count.items():
    print(f"{name:12s} {lines['device']:6d} {lines['host']:5d}")
attention = {
    "flash": launcher_lines(k03_flash),
    "specialised": launcher_lines(k04_specialised),
}
print("attention: Triton", attention["flash"], " Gluon", attention["specialised"])

record(
    count={
        name: {part: quantity(n, how="counted") for part, n in lines.items()}
        for name, lines in count.items()
    },
    attention={name: quantity(n, how="counted") for name, n in attention.items()},
)

# %% [markdown]
# ### How the usual comparison goes wrong
#
# You will hear "forty lines against six hundred". Teach what each number counts.
#
# - **About 40** lines make up the kernel in Triton's own tutorial, without the list of settings that it tries and without the function that calls it [^triton-tutorials].
# - **186** lines, comments included, make up the file of the warp-tile kernel in the well-known ladder, in fp32, without tensor cores
#   [^boehm2022]. All eight rungs of that article
#   together are about 700 lines.
# - **560 to 640** lines make up each of the fastest kernels of the Hopper worklog [^shankhdhar2024]. They do far more than the tutorial's kernel.
#
# So 40 against 600 compares a short kernel that *uses* tensor cores with a long one for a different card. And "they do roughly the
# same" is not right either: what sets the Triton kernel apart from the fp32 ladder is an instruction, not its length. Our pair in the table above is
# fair: the
# same formula, the same type, the same instruction in the middle, and lines on the card counted by one rule. The gap is smaller,
# and it is still the point. Say which lines you count: with the host's lines the gap is smaller still.
#
# /// callout | trip
# "Triton is shorter *and* ahead, so always Triton." Ask this: *who would have to change the compiler* if it did not do what you
# need? Then show the other pair, on an {{ w1.gpu.name }}: attention in Triton has {{ attention.flash:.0f}} lines, card and host
# together, and reaches {{ w1.flash.n16384.of_peak:.0%}} of peak; one rung down, in Gluon, it has {{ attention.specialised:.0f}}
# lines by the same rule and reaches {{ w1.specialised.n16384.of_peak:.0%}}. There, going
# down a rung paid off. (Compare these with the column *together*, not with the lines on the card.)
# ///

# %% [markdown]
# ## The live build: Triton, a tile at a time
#
# The lab is [the one from the tiles lecture](../../docs/lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory),
# `sgemm_tiles`, this time in **Triton**. Most of the room did it in CUDA C++ then, and that is why the repetition works: stage by stage they
# meet their own lines again, without the threads. Ask at every stage: *what did you not have to say?*
#
# | stage | what they type | what they no longer say |
# |---|---|---|
# | 1 | a column times a row, for one k | which thread has which number |
# | 2 | masks on loads and the store | `if (…) return`, and who may still reach the barrier |
# | 3 | `tl.dot` of two tiles | shared memory, both barriers, the queues at its banks |
# | 4 | the mask of the last k | nothing new; count your lines |
#
# The count surprises people, so know it beforehand: there are twelve lines below `def`, and thirteen between the braces of the CUDA answer
# (`nox -s lab -- sgemm_tiles --door cuda --stage 4`).
# The Triton kernel is hardly shorter. Say so before somebody else does. The last column of the table lists what is gone, and lines are not on the
# list: no
# threads, no shared memory, no barriers. The difference in length shows only when the CUDA kernel has to be fast, and the next listing shows one.
#
# Those who did it in Triton in lecture 4 start again with an empty starter and type from memory: `nox -s lab -- sgemm_tiles --stage 0` keeps
# the old file.
#
# One word of the kernel is a trap, and the lesson of the day in miniature: `input_precision="ieee"`. Without it, on a GPU, `tl.dot` rounds fp32 to
# TF32. The tool
# decided something for you, quietly. The decision is good, but it was not yours.
#
# ### The gap sheet
#
# FlashAttention in Triton needs no typing: they know the loop from W1. Hand out this sheet, our own kernel with five holes. (It
# uses powers of two; the logarithm is already in `scale`.)
#
# ```python
# for start in tl.range(first, last, BLOCK_N):
#     k = rows_of(K, head, start)
#     s = tl.dot(q, k.T)                              # [BLOCK_M, BLOCK_N]
#     m_new = ______________________________________  # [BLOCK_M]
#     p = tl.math.exp2(s * scale - m_new[:, None])
#     repair = _____________________________________
#     l = __________________________________________
#     v = rows_of(V, head, start)
#     acc = tl.dot(p.to(v.dtype), v, _______________)
#     m = ____
# ```
#
# /// exercise | Fill it in yourself first
# Five holes, no peeking. Then compare with `_weigh` and `_attend` in `src/course_kernels/attention/k03_flash.py`.
# /// answer
# `tl.maximum(m, tl.max(s, 1) * scale)` · `tl.math.exp2(m - m_new)` · `l * repair + tl.sum(p, 1)` · `acc * repair[:, None]` · `m_new`. Usual slips:
# the maximum along axis 0, and the forgotten repair of `acc`, which hides in the third argument of `tl.dot`.
# ///

# %% [markdown]
# ## By hand: a layout is a measuring cup
#
# CuTe has one idea, and it fits on a slip of paper: a **layout** is a *shape* and a *stride* of the same form. Multiply each coordinate by its
# stride, and add up. That is all. Write (4, 8) : (8, 1) on the board and ask where (2, 3) is. 2 × 8 + 3 × 1 = 19.
# Now (4, 8) : (1, 4). 2 × 1 + 3 × 4 = 14. It is the same cup with different marks.
#
# Then comes the step that makes CuTe what it is: a coordinate may be a *pair*, and its stride a pair too. Remember the odd table of the tensor cores,
# [which lane holds what](../../docs/lectures/l6_tensor_cores.py#a-tiny-matmul-in-one-instruction)? CUTLASS says it in one line [^cute-mma-sm80]. Here it is:
#
# ```text
# thread, value  →  place in A:   ((4, 8), (2, 2, 2)) : ((32, 1), (16, 8, 128))
# ```
#
# Let the room work out lane 5 by hand: 5 is (1, 1), since 5 = 1 + 4 · 1. So 1 × 32 + 1 × 1 = 33, which is row 1, column 2: place =
# row + 16 · column. Here is the whole table, checked against the formula of the lecture.


# %%
def where(shape, stride, index):
    """Where a layout puts its index-th element; the first digit runs first."""
    if isinstance(shape, int):
        return index * stride
    place = 0
    for size, step in zip(shape, stride, strict=True):
        whole = size if isinstance(size, int) else volume(size)
        place += where(size, step, index % whole)
        index //= whole
    return place


def volume(shape):
    """How many elements a shape has."""
    if isinstance(shape, int):
        return shape
    result = 1
    for size in shape:
        result *= volume(size)
    return result


print("(2, 3) in (4, 8):(8, 1) and in (4, 8):(1, 4):", end=" ")
print(where((4, 8), (8, 1), 2 + 4 * 3), where((4, 8), (1, 4), 2 + 4 * 3))

SHAPE, STRIDE = ((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))
agree = 0
for lane in range(32):
    for value in range(8):
        place = where(SHAPE, STRIDE, lane + 32 * value)
        m, k = place % 16, place // 16
        agree += lane == m % 8 * 4 + k % 8 // 2  # the formula of the lecture
        if lane in (0, 5, 6, 31) and value in (0, 2):
            print(f"lane {lane}, value {value}: A[{m}, {k}]")
print(agree, "of 256 numbers lie in the lane that the lecture said")
record(layout={"agree": quantity(agree), "of": quantity(32 * 8)})

# %% [markdown]
# {{ layout.agree:.0f}} of {{ layout.of:.0f}}. A page of index arithmetic has become two brackets and a colon. *That* is what the
# cups are good for: you can add a dimension, cut out a tile, give a tile to a thread, and the arithmetic stays right.
#
# ### The words they already have
#
# A CUTLASS kernel of the older kind is defined by three tiles and a number. Put these four lines on the board; nobody needs a
# compiler.
#
# ```c++
# using ThreadblockShape  = cutlass::gemm::GemmShape<128, 256, 32>;
# using WarpShape         = cutlass::gemm::GemmShape<64, 64, 32>;
# using InstructionShape  = cutlass::gemm::GemmShape<16, 8, 16>;
# constexpr int Stages    = 3;
# ```
#
# Then ask, and let the calculator answer:
#
# | question | worked out |
# |---|---|
# | How many warps, how many threads? | (128 / 64) · (256 / 64) = 8, and 256 |
# | How many sums in a thread? | 64 · 64 / 32 = 128 |
# | How many orders to the tensor core does a warp give in one step of 32? | (64 / 16) · (64 / 8) · (32 / 16) = 64 |
# | How much shared memory, in bf16? | 3 · (128 + 256) · 32 · 2 bytes = 72 KiB |
#
# *Block tile, warp tile, one instruction's tile, buffers.* They have had [all four words](../../docs/lectures/l4_the_gemm_ladder.py#the-words-for-tiles) for two
# weeks. When they notice, say nothing for a moment.
#
# Then take our own kernel in the other dialect, `sgemm/k08_warp_tiles.cu`, in fp32. They should find and draw: block tile 128 × 128 in steps of 8,
# warp tile
# 32 × 64, register tile 8 × 8. There are eight warps, and 256 threads with 64 sums each. Somebody will ask what CUTLASS calls the register tile.
# None of the three names fits it: without tensor cores, one instruction is one multiply-add, so its tile is `<1, 1, 1>`. The other
# two you know already. By default, CUTLASS uses `<128, 128, 8>` and `<32, 64, 8>` for fp32 [^cutlass-defaults]. Those are ours,
# number for number. CUTLASS does not add one more level. It adds the freedom to change these numbers without touching the index
# arithmetic.

# %% [markdown]
# ## The rule
#
# Let your students make their own rule before you show yours. Our rule is four questions, asked from the top. The first
# *yes* gives the rung. These
# are the six jobs for the card that you print: a bf16 GEMM of 4096 each way · bias and GELU on a large tensor · attention with a
# mask of your own · the same, and it must reach
# cuDNN · a multiply whose sum is promoted every 128 k · an instruction of a card that came out today.

# %%
RULE = (
    ("does a library call do it, near enough to what binds?", "call it"),
    ("is it about tiles, and is the tool's choice good enough?", "Triton"),
    ("must you say who waits for whom, or where a number lies?", "CuTe, Gluon"),
    ("is there an instruction that no tool emits?", "CUDA C++ with PTX"),
)
JOBS = {  # the answers of a room that argued well
    "bf16 GEMM, 4096 each way": "ynnn",
    "bias and GELU on a large tensor": "nynn",
    "attention with a mask of your own": "nynn",
    "the same, and it must reach cuDNN": "nnyn",
    "a sum that is promoted every 128 k": "nynn",
    "an instruction of a card that came out today": "nnny",
}


def rung(answers):
    """The rung of the first yes."""
    return next(
        tool for (_, tool), yes in zip(RULE, answers, strict=True) if yes == "y"
    )


for job, answers in JOBS.items():
    print(f"{job:46s} {rung(answers)}")

# %% [markdown]
# Two remarks will save you arguments. *Near enough* needs a number: measure what you have, work out the percent of peak, and only then climb down.
# And the answers to the questions change: an instruction that no tool emitted last year may be a keyword today. The questions stay.
#
# /// callout | say
# "Triton until it can't. Then CUTLASS. Then raw CUDA. And *knowing which rung you are on* is the skill. Nobody is paid for the rung. They are paid
# for the dinner."
# ///

# %% [markdown]
# ## Where the tools are used
#
# /// callout | production
# When you call `torch.compile` on a GPU, the result is mostly Triton: PyTorch's compiler relies on it for NVIDIA, AMD and Intel
# cards [^torch-compiler]. FlashAttention-3 is CUDA C++ on CUTLASS, and its successor is written in CuTe's Python dialect
# [^dao-repo].
# That dialect has the same layouts, tensors and control as the C++ version, without the templates [^cutlass-dsl]. TileLang is a
# third way: it has tiles as in Triton, but you may say where they are kept and how deep the pipeline is; on Hopper it finds TMA and
# wgmma by itself [^tilelang].
# ///
#
# Here are the nine cells of the tour, as we would fill them. If a room disagrees, it has usually seen a newer version: note the
# question.
#
# | | how large is a tile | where is it kept | which thread, which instruction |
# |---|---|---|---|
# | TileLang | you | you | tool |
# | Gluon | you | you | you |
# | CuTe in Python | you | you | you |
#
# For the reading hour, there is one worklog that everybody should know: Kapil Sharma, *Learn CUTLASS the hard way!*, from a naive
# multiply to a CUTLASS
# kernel [^sharma2025]. In its second part, that kernel, written for an Ada card, reaches 396 TFLOP/s on an H100 where PyTorch
# reaches 754
# [^sharma2025]. Show *that*. A rung does not give you a speed. That kernel uses the older instruction, and on Hopper you must use `wgmma`.

# %% [markdown]
# ## The silent minute
#
# /// callout | click
# Put the two listings on the projector, side by side, in the same size: `gemm/k04_wgmma.cu` and `gemm_kernel` in
# `gemm/k05_triton.py`. Say the two counts,
# {{ count.wgmma.device:.0f}} and {{ count.triton.device:.0f}} on the card. Then say nothing until somebody laughs. Then say the two speeds: {{ l6.climb.wgmma.of_peak:.0%}} and {{ l6.climb.triton.of_peak:.0%}} of peak. "The compiler wrote the coalescing, shared memory, the swizzle and the
# pipeline. We wrote the order of tiles, and blocks that stay.
# You spent two lectures on the first four. That is why you can *read* what it wrote."
# ///
#
# ## What they will believe
#
# - *"Higher is easier, so higher is better."* Each rung has a ceiling. Ask which decision they would want back.
# - *"Lower is faster."* Our own `wgmma` kernel is a rung lower than our own Triton kernel: look at the two shares of peak. On a low rung you *can* be fast, no more.
# - *"TF32 crept in."* `tl.dot` on fp32. The lab's grader catches the rounding on a GPU, not in the interpreter.
# - *"A layout is a shape."* The shape says how many, and the stride says where. Both, always.
# - *Counting lines to win.* Do you count generated code, headers, settings? Say your rule first, then count.
#
# /// callout | demo
# Run *Triton beside the library* for the multiply, and *one rung down* for attention, where Gluon is between Triton and cuDNN. Both
# need a Hopper card. Without one, show [the climb](../../docs/lectures/l6_tensor_cores.py#the-climb) and
# [what is still lost](../../docs/workshops/w1_flash_attention.py#what-is-still-lost).
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../05_the_frontier/w3_map.md) has each step. The live build loses time when somebody's Triton is not installed: have
# them run the lab's starter before the session. If you are late at the break, drop the gap sheet. If you are late at minute 140,
# drop the second demo and show its recorded result.
#
# /// exercise | Rehearse
# Explain ((4, 8), (2, 2, 2)) : ((32, 1), (16, 8, 128)) aloud, in four sentences, to somebody who has never seen CuTe. Which number do you begin with?
# /// answer
# Begin with the 4 and its 32: "Four lanes are side by side in a row of A, two columns apart, and 32 is two columns of 16." Then explain the 8 and its 1, which are eight rows.
# Then come the values: the next column, eight rows down, eight columns on.
# ///
#
# ## For at home: layouts as puzzles
#
# If they liked the cups, here are twenty more as homework, in plain Python and without a GPU. Do the first stage yourself before you
# give it out.
#
# /// lab | layouts
# ///
#
# ## You can now teach
#
# - the ladder, as a list of decisions and who makes them;
# - a multiply in Triton, in four stages, and what each stage no longer has to say;
# - layouts by hand, up to the table of the tensor cores;
# - CUTLASS's three shapes, in words from the ladder;
# - an honest count of lines, and a rule with four questions.
#
# **Where this leads.** Now you have tools. The next workshop has customers: [teaching W4](w4_serving.py).
