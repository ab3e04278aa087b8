# ---
# id: l6
# title: Tensor cores
# description: A tiny matrix multiply in one instruction, and four ways to keep the unit that does it busy.
# needs: [gpu, counters, capability 9.0]
# ---

# %% [markdown]
# # Tensor cores
#
# By the end of this page you can
#
# - say what one instruction of a tensor core does, which lane holds which numbers, and how many bytes the instruction
#   needs;
# - read four kernels that climb from the first such instruction to Hopper's own, and say what each is waiting for;
# - choose between TF32, fp16, bf16 and FP8, knowing what each of them costs in precision and gains in speed;
# - tell from counters when tensor cores are idle, and why.
#
# **The headline: {{ climb.triton.of_peak:.0%}} of peak, in bf16, by a Triton kernel.** The kernel with the warp tiles
# of the ladder, without tensor cores, reaches {{ climb.cuda_cores.of_peak:.1%}}. All the ordinary lanes together, at
# the same clock rate and without losing a tick, would reach {{ mill.cores / mill.sheet:.0%}}. You cannot close that
# gap by tuning.
#
# If you have an hour less than this page needs, read three sections,
# [A tiny matmul in one instruction](#a-tiny-matmul-in-one-instruction), [The climb](#the-climb) and
# [When the tensor cores are idle](#when-the-tensor-cores-are-idle), and leave the lab for another day.

# %% [markdown]
# ## A tiny matmul in one instruction
#
# For two lectures the threads have multiplied by hand: one lane, one multiply-add, one tick. But each of the four
# quarters of an SM has a machine that you have not used yet. In the kitchen it is a *mill*.
#
# You put in a *tile* of A and a tile of B, and the machine adds their product to a tile of sums. All 32 threads of a
# warp must drive it together, each with its part of the tiles in its registers.
#
# The machine is a **tensor core**. Its operation is a **matrix multiply-accumulate**, *MMA* for short: D = A × B + C.
# The first such instruction that we use is called `mma.sync`, here in the size `m16n8k16` [^ptx-isa]: A has 16 rows,
# B has 8 columns, and there are 16 steps along k.
#
# /// figure | docs/assets/figures/tensor_one_instruction.svg
# alt: "Three grids: A with 16 by 16 cells, B above with 16 by 8, C with 16 by 8. Lane 0 holds eight cells of A in rows 0 and 8, four of B in column 0 and four of C in rows 0 and 8. Lane 5 holds its own cells, one row and two columns further."
# caption: One instruction, 32 lanes. A and B come from registers, and the sums stay in registers.
# ///
#
# Which lane holds which number is fixed, and the rule is odd. For A the rule takes one line. Do 32 lanes that follow
# it hold all of A, each number once?

# %%
from collections import Counter


def lane_of_a(m, k):
    """Which lane holds A[m, k]."""
    return m % 8 * 4 + k % 8 // 2


for m in (0, 1, 8):
    row = " ".join(f"{lane_of_a(m, k):2d}" for k in range(16))
    print(f"row {m} of A lies in lanes: {row}")

held = Counter(lane_of_a(m, k) for m in range(16) for k in range(16))
print(len(held), "lanes,", set(held.values()), "numbers of A in each")

# %% [markdown] Now run the instruction, with one warp and two small matrices, and compare the result with the true
# product. The card has its own name for the instruction.

# %%
import torch
from course_kernels.gemm import one_instruction
from course_kernels.measure import quantity, record

a, b = one_instruction.small_numbers()
c = one_instruction.multiply(a, b)
truth = a.double() @ b.double()

print("C[0, 0] from the mill:", c[0, 0].item())
print("C[0, 0] in float64:   ", truth[0, 0].item())
print("all 128 sums exact:   ", torch.equal(c.double(), truth))

listing = one_instruction.instructions()
mills = one_instruction.multiplications()
print(f"{len(listing)} machine instructions; those that multiply matrices:")
print("\n".join(mills))

record(
    one={
        "instructions": quantity(len(listing), how="counted"),
        "multiplies": quantity(len(mills), how="counted"),
        "exact": quantity(int(one_instruction.is_exact()), how="counted"),
    }
)

# %% [markdown] This is the line in C++ from which it was compiled:
#
# /// source | src/course_kernels/gemm/one_instruction.cu#instruction
# ///
#
# /// claim | one.multiplies == 1 and one.exact == 1
# {{ one.instructions:.0f }} machine instructions, and **one** of them is the matmul: `HMMA.16816`, with H for
# half-width numbers and 16816 for 16, 8 and 16. All the other instructions compute addresses and move numbers.
# /// otherwise
# {{ one.instructions:.0f }} machine instructions, and {{ one.multiplies:.0f }} of them multiply matrices.
# ///
#
# ### What it eats
#
# One instruction computes 16 × 8 sums of 16 products each, with a multiplication and an addition for each product.
# How many such instructions must an SM do per tick to reach the data sheet's peak? And how many bytes do these
# instructions need?

# %%
from course_kernels.measure.machine import machine_for

name = torch.cuda.get_device_name()
sheet = machine_for(name)
if sheet is None:
    raise RuntimeError(
        f"{name}: no data sheet in course_kernels/measure/machine.py"
    )
sms = torch.cuda.get_device_properties(0).multi_processor_count
SHEET_MHZ = 1830  # the clock that its peak for low precision is drawn for
TRAY = 32 * 4  # bytes that shared memory hands out in a tick

mma_flops = 2 * 16 * 8 * 16
mma_bytes = 2 * (16 * 16 + 16 * 8)
peak = sheet.peak_tflops["bf16"] * 1e12 / (sms * SHEET_MHZ * 1e6)
cores = 2 * 128  # 128 lanes, a multiply-add each

record(
    mill={
        "flops": quantity(mma_flops),
        "bytes": quantity(mma_bytes, "B"),
        "sheet": quantity(peak, "FLOP/clk", of="tensor:bf16"),
        "cores": quantity(cores, "FLOP/clk", of="fp32"),
        "ticks": quantity(mma_bytes / TRAY),
    }
)
print("FLOPs of one mma.m16n8k16:", mma_flops)
print("bytes of A and B that go in:", mma_bytes)
print(f"instructions in each tick, for one SM: {peak / mma_flops:.2f}")

# %% [markdown] The data sheet's peak in bf16 is {{ mill.sheet:.0f }} FLOPs per tick of an SM's clock, at the 1830 MHz
# that the data sheet assumes [^lockwood-h100]. That is *one* `mma.m16n8k16` per tick. An SM has four tensor cores, so
# each of them does one such instruction in four ticks. The 128 ordinary lanes of the SM together do
# {{ mill.cores:.0f }} FLOPs per tick: the tensor cores do {{ mill.sheet / mill.cores:.0f}} times as much.
#
# And the tensor cores consume {{ mill.bytes:.0f }} bytes per tick. You know from
# [the lecture on memory](l3_memory.py) how many bytes shared memory (the tray) delivers per tick: 128.
#
# /// predict | Suppose every instruction fetched its A and its B from shared memory. What share of the peak would be left?
# - [ ] All of it
# - [ ] A half
# - [x] A sixth
# /// reveal
# With {{ mill.ticks:.0f }} ticks of fetching for one tick of multiplying, a sixth is all that is left. A tensor core that is not fed is
# idle.
# ///
#
# So a warp must use each number several times, as a thread does with its [register tile](l4_the_gemm_ladder.py). Let
# the warp hold a *warp tile* of C, say 64 × 64. For a step of 16 along k the warp fetches 64 rows of A and 64 columns
# of B, once, and runs 4 × 8 = 32 instructions on them.

# %%
TILES = ((16, 8), (32, 32), (64, 32), (64, 64), (64, 128), (64, 256))
feed = {}
for m, n in TILES:
    instructions = (m // 16) * (n // 8)
    feed[f"m{m}n{n}"] = 2 * (m + n) * 16 / instructions
    print(
        f"{m:3d} x {n:3d}: {instructions:3d} instructions,"
        f" {feed[f'm{m}n{n}']:4.0f} bytes for each"
    )

record(
    feed={tile: quantity(found, "B") for tile, found in feed.items()},
)

# %% [markdown] Shared memory delivers 128 bytes per tick. With a warp tile of 64 × 64, each instruction needs
# {{ feed.m64n64:.0f }} bytes. That leaves no bandwidth for storing the next tiles. A larger tile would need less, but 64 × 64
# sums in fp32 take 128 registers in each thread, and a thread has at most 255. Keep a tile of 64 × 256 in mind: it
# needs {{ feed.m64n256:.0f }} bytes per instruction. One warp cannot hold such a tile, but four can.
#
# /// exercise | TF32 and FP8 | 3 minutes
# The same instruction exists for TF32, as `m16n8k8`, with 4 bytes per number, and for 8-bit numbers, as `m16n8k32`.
# In each case, how many FLOPs does the instruction do, and how many bytes of A and B does it need?
# /// answer
# TF32: 2 × 16 × 8 × 8 = 2048 FLOPs, and 4 × (16 × 8 + 8 × 8) = 768 bytes. FP8: 2 × 16 × 8 × 32 = 8192 FLOPs and 1 ×
# (16 × 32 + 32 × 8) = 768 bytes. The number of bytes is always 768: four registers of A and two of B in each lane. So
# numbers half as wide give twice as many FLOPs for the same bytes, and that is the whole idea of short formats.
# ///

# %% [markdown]
# ## How fast can it go at all? {.beyond}
#
# Before you climb, see how high the ceiling is. Give the tensor cores the same tiles again and again, tiles that are
# already where the instruction wants them, and count ticks. Nothing is carried, so this is the best that any kernel
# can hope for.
#
# Hopper has *two* such instructions. You know the first, `mma.sync`: one warp runs it, and its operands are in
# registers. The other is `wgmma`, for *warpgroup matrix multiply-accumulate*. Four warps, a **warpgroup**, together
# give one order: 64 rows of A times up to 256 columns of B. B stays in shared memory [^ptx-isa], and A may stay there
# too. No thread has to carry A or B.
#
# /// predict | With nothing to carry, how much of the data sheet's peak does mma.sync reach on this card?
# - [rate.mma / mill.sheet >= 0.85] Nearly all
# - [0.5 <= rate.mma / mill.sheet < 0.85] About two thirds
# - [rate.mma / mill.sheet < 0.5] About a third
# /// reveal
# `mma.sync` reaches {{ rate.mma / mill.sheet:.0%}}. And `wgmma`, with 256 columns, reaches
# {{ rate.wgmma.n256 / mill.sheet:.0%}}.
# ///

# %%
from course_kernels.measure import samples
from course_kernels.microbenchmarks import tensor


def rates(instruction, kind="bf16", **how):
    """FLOPs in a tick of one SM, for a record."""
    found = tensor.flops_per_clock(instruction, kind=kind, **how)
    math = {"e4m3": "fp8"}.get(kind, kind)  # as the data sheet calls it
    return samples(found, unit="FLOP/clk", of=f"tensor:{math}")


record(
    rate={
        "mma": rates("mma"),
        "wgmma": {f"n{N}": rates("wgmma", columns=N) for N in tensor.COLUMNS},
        "held": {
            f"n{N}": rates("wgmma", columns=N, a_in="registers")
            for N in tensor.COLUMNS
        },
        "tf32": {
            "mma": rates("mma", kind="tf32"),
            "wgmma": rates("wgmma", kind="tf32"),
        },
        "e4m3": rates("wgmma", kind="e4m3"),
    },
    # By hand: in N / 2 ticks of milling the tray hands out (64 + N) rows of 32 bytes.
    forecast={
        f"n{N}": quantity(
            min(1.0, TRAY * (N / 2) / (32 * (64 + N))) * peak,
            "FLOP/clk",
            of="tensor:bf16",
        )
        for N in tensor.COLUMNS
    },
)

# %% [markdown]
# /// chart | lines
# title: One matrix instruction again and again, nothing to carry
# x: name
# y: value
# x_label: columns of B in one wgmma
# y_label: FLOPs in each tick of one SM
# x_scale: log2
# series:
#   - {name: rate.wgmma.*, label: "wgmma, A and B in shared memory"}
#   - {name: rate.held.*, label: "wgmma, A in registers"}
#   - {name: forecast.*, label: by hand, style: reference}
# references:
#   - {label: data sheet, value: mill.sheet}
#   - {label: mma.sync, value: rate.mma}
# alt: "FLOPs in each tick of an SM against the columns of B: {{ rate.wgmma.n8:.0f }} at 8 columns with both operands in shared memory, {{ rate.wgmma.n64:.0f }} at 64, {{ rate.wgmma.n256:.0f }} at 256. mma.sync is at {{ rate.mma:.0f }}, the data sheet at {{ mill.sheet:.0f }}."
# caption: Sums of ones, checked after each run. The ticks are counted by the SM's clock, so the card's power limit does not matter.
# ///
#
# /// claim | rate.mma < 0.8 * rate.wgmma.n256
# This is the most important fact on the page. On this card, `mma.sync` reaches at most {{ rate.mma / mill.sheet:.0%}}
# of the data sheet's peak, with 16 warps on the SM and nothing to carry. A kernel that does carry tiles can hardly
# hope for more, however well it is tuned. The previous generation did not have `wgmma`, and much code still uses only
# `mma.sync`. To get the rest of the speed out of a Hopper card you must use `wgmma`. NVIDIA does not say *why* that
# is so, and nothing that we count here explains it.
# /// otherwise
# On this card `mma.sync` reaches {{ rate.mma:.0f }} FLOPs per tick, and `wgmma` reaches {{ rate.wgmma.n256:.0f }}.
# ///
#
# /// claim | max(abs(rate.wgmma.n8 / forecast.n8 - 1), abs(rate.wgmma.n16 / forecast.n16 - 1), abs(rate.wgmma.n32 / forecast.n32 - 1), abs(rate.wgmma.n64 / forecast.n64 - 1), abs(rate.wgmma.n256 / forecast.n256 - 1)) < 0.12
# And `wgmma` has to be *wide*. Work it out by hand: one order with N columns takes 2 × 64 × N × 16 FLOPs, and the
# tensor cores of an SM do {{ mill.flops:.0f}} FLOPs per tick. So an order takes N / 2 ticks of multiplying. For each
# order, shared memory must deliver 64 rows of A and N columns of B, 32 bytes each. At 128 bytes per tick that allows
# {{ forecast.n8:.0f }} FLOPs per tick for 8 columns, {{ forecast.n16:.0f }} for 16, and {{ forecast.n32:.0f }} for 32.
# From 64 columns on, the tensor core is the limit. We measured {{ rate.wgmma.n8:.0f }}, {{ rate.wgmma.n16:.0f }},
# {{ rate.wgmma.n32:.0f }} and, for 64 columns, {{ rate.wgmma.n64:.0f }}. This one division predicts the curve, to
# within 12 % if you measure again. A narrow order is not slow. It is hungry.
# /// otherwise
# With 8 columns `wgmma` reaches {{ rate.wgmma.n8:.0f }} FLOPs per tick, and by hand we get {{ forecast.n8:.0f }};
# with 256 columns it reaches {{ rate.wgmma.n256:.0f }}.
# ///
#
# /// claim | abs(rate.held.n16 / rate.held.n8 / 2 - 1) < 0.08 and rate.held.n8 > 1.2 * rate.wgmma.n8
# With A in registers, only B comes from shared memory, and the narrow orders do better: {{ rate.held.n8:.0f }} FLOPs
# per tick at 8 columns. But the tensor cores are not fully used. An order of 8 columns takes 2 × 64 × 8 × 16 FLOPs.
# Divide, and you find that such an order took {{ 16384 / rate.held.n8:.1f }} ticks, and an order of 16 columns took
# {{ 32768 / rate.held.n16:.1f }}: the same, to within 8 %. It seems that passing A to the tensor cores takes that
# long, no matter how many columns A is multiplied by.
# /// otherwise
# With A in registers, `wgmma` reaches {{ rate.held.n8:.0f }} FLOPs per tick at 8 columns, and {{ rate.held.n16:.0f }}
# at 16.
# ///
#
# /// claim | 0.9 < rate.e4m3 / rate.wgmma.n256 / 2 < 1.1 and 0.9 < 2 * rate.tf32.wgmma / rate.wgmma.n256 < 1.1
# Numbers of half the width are multiplied twice as fast, as you worked out: TF32 reaches {{ rate.tf32.wgmma:.0f }}
# FLOPs per tick, bf16 {{ rate.wgmma.n256:.0f }}, and FP8 {{ rate.e4m3:.0f }}.
# /// otherwise
# TF32 reaches {{ rate.tf32.wgmma:.0f }} FLOPs per tick, bf16 {{ rate.wgmma.n256:.0f }}, and FP8 {{ rate.e4m3:.0f }}.
# ///
#
# ### Ask the assembler
#
# Much of what is written about these instructions is a little wrong. You do not have to take anybody's word for it:
# the assembler either accepts a line or rejects it. You do not even need a GPU.

# %% tags=["fold"]
import re

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.disassemble import sass
from course_kernels.cuda.headers import toolkit_headers
from cuda.core import Program, ProgramOptions

ARCH = arch_of(torch.cuda.get_device_capability())
HEAD = """
#include <mma.h>
#include <cuda_fp8.h>
using namespace nvcuda;
extern "C" __global__ void ask(float *p, unsigned long long a,
                               unsigned long long b, unsigned *r)
"""
SUMS = '"+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])'
INTEGER_SUMS = SUMS.replace("f", "r")
HELD = ", ".join(f'"r"(r[{i}])' for i in range(4))


def becomes(body):
    """The matrix instructions that a few lines of C++ become; none if refused."""
    options = ProgramOptions(
        std="c++17", arch=ARCH, include_path=[*map(str, toolkit_headers())]
    )
    try:
        code = (
            Program(HEAD + "{" + body + "}", "c++", options).compile("cubin").code
        )
    except Exception as refused:
        if "error" not in str(refused):
            raise  # no compiler, which is another matter
        return []
    return sorted(set(re.findall(r"\b((?:[HQI]G?MMA|F2FP)\.[\w.]+)", sass(code))))


def wgmma(kind, k, a="%4", b="%5", inputs='"l"(a), "l"(b)'):
    """One wgmma of 64 x 8 x k."""
    integer = kind == "s8"
    flags = ", 1" if integer else ", 1, 1, 1"
    if kind == "bf16":  # only 16-bit operands may be stored either way round
        flags += ", 0, 0" if a == "%4" else ", 0"
    shape = f"m64n8k{k}.{'s32' if integer else 'f32'}.{kind}.{kind}"
    sums = INTEGER_SUMS if integer else SUMS
    return f"""{"int" if integer else "float"} d[4] = {{}};
        asm volatile("wgmma.mma_async.sync.aligned.{shape} {{%0, %1, %2, %3}}, {a}, {b}{flags};"
                     : {sums} : {inputs});
        for (int i = 0; i < 4; i++) p[i] = d[i];"""


def wmma(kind, k=16):
    """One multiply of 16 x 16 x k by WMMA."""
    return f"""
        wmma::fragment<wmma::matrix_a, 16, 16, {k}, {kind}, wmma::row_major> a_tile;
        wmma::fragment<wmma::matrix_b, 16, 16, {k}, {kind}, wmma::row_major> b_tile;
        wmma::fragment<wmma::accumulator, 16, 16, {k}, float> sums;
        wmma::fill_fragment(sums, 0.0f);
        wmma::fill_fragment(a_tile, a_tile.x[0]);
        wmma::fill_fragment(b_tile, b_tile.x[0]);
        wmma::mma_sync(sums, a_tile, b_tile, sums);
        wmma::store_matrix_sync(p, sums, 16, wmma::mem_row_major);"""


MMA_FP8 = f"""float d[4] = {{}};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
                 : {SUMS} : {HELD}, "r"(r[4]), "r"(r[5]));
    for (int i = 0; i < 4; i++) p[i] = d[i];"""
QUESTIONS = {
    "wgmma, bf16, k = 16": wgmma("bf16", 16),
    "wgmma, TF32, k = 16": wgmma("tf32", 16),
    "wgmma, TF32, k = 8": wgmma("tf32", 8),
    "wgmma, e4m3, k = 16": wgmma("e4m3", 16),
    "wgmma, e4m3, k = 32": wgmma("e4m3", 32),
    "wgmma, int8, k = 32": wgmma("s8", 32),
    "wgmma, A in registers": wgmma(
        "bf16", 16, "{%4, %5, %6, %7}", "%8", HELD + ', "l"(b)'
    ),
    "wgmma, B in registers": wgmma(
        "bf16", 16, "%4", "{%5, %6}", '"l"(a), "r"(r[0]), "r"(r[1])'
    ),
    "WMMA, bf16": wmma("__nv_bfloat16"),
    "WMMA, TF32, k = 8": wmma("wmma::precision::tf32", 8),
    "WMMA, e4m3": wmma("__nv_fp8_e4m3"),
    "mma.sync, e4m3": MMA_FP8,
}
answers = {question: becomes(body) for question, body in QUESTIONS.items()}
for question, found in answers.items():
    print(f"{question:22s} {' + '.join(found) or 'refused'}")

record(
    takes={
        re.sub(r"\W+", "_", question).lower(): quantity(
            bool(found) + 0, how="counted"
        )
        for question, found in answers.items()
    }
)

# %% [markdown]
# /// claim | takes.wgmma_bf16_k_16 == 1 and takes.wgmma_tf32_k_16 == 0 and takes.wgmma_tf32_k_8 == 1 and takes.wgmma_e4m3_k_16 == 0 and takes.wgmma_e4m3_k_32 == 1
# **k depends on the type.** You will read `m64nNk16` as *the* shape of `wgmma`. It is the shape for 16-bit numbers.
# TF32 has k = 8 and 8-bit numbers have k = 32: always 32 bytes along k.
# /// otherwise
# This assembler accepts different shapes from those that we expected; trust the list above.
# ///
#
# /// claim | takes.wgmma_a_in_registers == 1 and takes.wgmma_b_in_registers == 0
# **A may come from registers. B may not.** [Attention](../workshops/w1_flash_attention.py) on Hopper can use that.
# Attention multiplies twice, and the result of the first multiplication is already in registers, so it can be used as
# A in the second.
# /// otherwise
# For where A and B may be, see the list.
# ///
#
# /// claim | takes.wmma_e4m3 == 0 and takes.wmma_bf16 == 1 and takes.mma_sync_e4m3 == 1
# **WMMA does not have FP8**, though you will read that it does. (WMMA is a C++ library; the climb below begins with
# it.) `mma.sync` accepts FP8, but look at what the instruction becomes on this card: `F2FP`, a conversion to fp16,
# and `HMMA`. The line compiles, but no 8-bit multiply takes place. On Hopper, FP8 means `wgmma`.
# /// otherwise
# For what WMMA and `mma.sync` do with FP8, see the list.
# ///
#
# **The card has its own names.** `wgmma` is the name in PTX. In machine code look for `HGMMA`, for `QGMMA` with 8-bit
# floating point, and for `IGMMA` with integers. If you search a SASS listing for `wgmma`, you will find nothing and
# wrongly conclude that the tensor cores are not used.
#
# /// exercise | How wide?
# A warpgroup keeps its sums in registers, in fp32. How many registers of each thread do the sums of one
# `m64n256k16` take? And why is there no `m64n512k16`?
# /// answer
# 64 × 256 sums shared by 128 threads are 128 sums in each thread: half of the 255 registers that a thread can have.
# With 512 columns there would be 256, one more than a thread can have.
# ///

# %% [markdown]
# ## The climb
#
# Four kernels use the tensor cores, each built on one idea: WMMA, `mma.sync`, `wgmma` and Triton. Before these four there
# is a kernel that does not use the tensor cores. All of them take turns on the same matrices: 4096 × 4096 × 4096, with
# inputs and outputs in bf16 and sums in fp32. Beside them run cuBLAS and cuBLASLt, a second interface to NVIDIA's own
# kernels.
#
# /// predict | Which of the first three steps multiplies the speed the most?
# - [climb.cuda_cores.us / climb.wmma.us > max(climb.wmma.us / climb.mma_sync.us, climb.mma_sync.us / climb.wgmma.us)] From the lanes to WMMA
# - [climb.wmma.us / climb.mma_sync.us > max(climb.cuda_cores.us / climb.wmma.us, climb.mma_sync.us / climb.wgmma.us)] From WMMA to `mma.sync`
# - [climb.mma_sync.us / climb.wgmma.us > max(climb.cuda_cores.us / climb.wmma.us, climb.wmma.us / climb.mma_sync.us)] From `mma.sync` to `wgmma`
# /// reveal
# The steps multiply the speed by {{ climb.cuda_cores.us / climb.wmma.us:.1f }}, by
# {{ climb.wmma.us / climb.mma_sync.us:.1f }} and by {{ climb.mma_sync.us / climb.wgmma.us:.2f }}.
# ///

# %%
from course_kernels.gemm import (
    k01_cuda_cores,
    k02_wmma,
    k03_mma_sync,
    k04_wgmma,
    k05_triton,
    library,
)
from course_kernels.measure import compare
from course_kernels.problem import Workload

MILLS = {
    "wmma": k02_wmma,
    "mma_sync": k03_mma_sync,
    "wgmma": k04_wgmma,
    "triton": k05_triton,
    "cublas": library.cublas,
    "cublaslt": library.cublaslt,
}


def square(n, dtype="bfloat16"):
    """n x n x n."""
    return Workload.of(dtype, M=n, N=n, K=n)


record(
    climb=compare(
        {"cuda_cores": k01_cuda_cores, **MILLS}, square(4096), seconds=0.2
    ),
    wide=compare(MILLS, square(8192), seconds=0.2),
)

# %% [markdown]
# /// chart | staircase
# title: bf16 multiply of 4096 × 4096 × 4096
# y_label: TFLOP/s
# steps:
#   - {name: climb.cuda_cores.tflops, label: CUDA cores}
#   - {name: climb.wmma.tflops, label: WMMA}
#   - {name: climb.mma_sync.tflops, label: mma.sync}
#   - {name: climb.wgmma.tflops, label: wgmma}
#   - {name: climb.triton.tflops, label: Triton}
# references:
#   - {label: cuBLAS, value: climb.cublas.tflops}
#   - {label: data sheet, value: climb.cublas.tflops / climb.cublas.of_peak}
# alt: "A staircase: CUDA cores {{ climb.cuda_cores.tflops:.0f }} TFLOP/s, WMMA {{ climb.wmma.tflops:.0f }}, mma.sync {{ climb.mma_sync.tflops:.0f }}, wgmma {{ climb.wgmma.tflops:.0f }}, Triton {{ climb.triton.tflops:.0f }}. cuBLAS is at {{ climb.cublas.tflops:.0f }}."
# ///
#
# /// table
# columns: [kernel, "TFLOP/s", "% of peak", "% of cuBLAS", "% of peak at 8192"]
# rows:
#   - [CUDA cores, "{{ climb.cuda_cores.tflops:.0f }}", "{{ climb.cuda_cores.of_peak:.1%}}", "{{ climb.cublas.us / climb.cuda_cores.us:.1%}}", ""]
#   - [WMMA, "{{ climb.wmma.tflops:.0f }}", "{{ climb.wmma.of_peak:.1%}}", "{{ climb.cublas.us / climb.wmma.us:.1%}}", "{{ wide.wmma.of_peak:.1%}}"]
#   - [mma.sync, "{{ climb.mma_sync.tflops:.0f }}", "{{ climb.mma_sync.of_peak:.1%}}", "{{ climb.cublas.us / climb.mma_sync.us:.1%}}", "{{ wide.mma_sync.of_peak:.1%}}"]
#   - [wgmma, "{{ climb.wgmma.tflops:.0f }}", "{{ climb.wgmma.of_peak:.1%}}", "{{ climb.cublas.us / climb.wgmma.us:.1%}}", "{{ wide.wgmma.of_peak:.1%}}"]
#   - ["**Triton**", "{{ climb.triton.tflops:.0f }}", "**{{ climb.triton.of_peak:.1%}}**", "{{ climb.cublas.us / climb.triton.us:.1%}}", "{{ wide.triton.of_peak:.1%}}"]
#   - [cuBLAS, "{{ climb.cublas.tflops:.0f }}", "{{ climb.cublas.of_peak:.1%}}", "", "{{ wide.cublas.of_peak:.1%}}"]
#   - [cuBLASLt, "{{ climb.cublaslt.tflops:.0f }}", "{{ climb.cublaslt.of_peak:.1%}}", "{{ climb.cublas.us / climb.cublaslt.us:.1%}}", "{{ wide.cublaslt.of_peak:.1%}}"]
# ///
#
# /// define | gemm.mma_sync_of_cublas.n4096 = climb.cublas.us / climb.mma_sync.us
# unit: "1"
# what: our mma.sync kernel over cuBLAS, bf16, 4096 × 4096 × 4096, speed
# ///
#
# /// define | gemm.triton_of_cublas.n4096 = climb.cublas.us / climb.triton.us
# unit: "1"
# what: our Triton kernel over cuBLAS, bf16, 4096 × 4096 × 4096, speed
# ///
#
# /// define | gemm.triton_of_cublas.n8192 = wide.cublas.us / wide.triton.us
# unit: "1"
# what: our Triton kernel over cuBLAS, bf16, 8192 × 8192 × 8192, speed
# ///
#
# Nothing here reaches the data sheet's peak, not even the libraries. The times alone cannot tell you why.
# [Counters can](#when-the-tensor-cores-are-idle).
#
# ### Without tensor cores
#
# This kernel is the ladder of the last two lectures, up to its warp tiles, with one change: numbers arrive as bf16,
# two bytes each, and are converted to fp32 before a thread multiplies them.
#
# /// claim | climb.cuda_cores.of_peak < 0.06 and climb.cublas.us < 0.08 * climb.cuda_cores.us
# This kernel contains nearly everything that you have learnt, and it reaches
# {{ climb.cublas.us / climb.cuda_cores.us:.1%}} of cuBLAS. Warp tiles in fp32 reached
# {{ l5.ladder.warp_tiles.tflops:.0f }} TFLOP/s [a lecture ago](l5_the_top_of_the_ladder.py); here, with half as many
# bytes to fetch, they reach {{ climb.cuda_cores.tflops:.0f }}. A multiply-add in fp32 costs a lane the same time,
# whatever type its operands had in memory. The ladder is right, but it is leaning against the wrong wall.
# /// otherwise
# This kernel reaches {{ climb.cublas.us / climb.cuda_cores.us:.1%}} of cuBLAS.
# ///
#
# ### WMMA: tensor cores for everybody
#
# The easiest way in is a small C++ library, `nvcuda::wmma`, for *warp matrix multiply-accumulate*. You declare a
# **fragment**, a tile spread over the registers of a warp; then you load it, multiply it and store it. All 32 lanes
# make the same call.
#
# /// figure | docs/assets/figures/tensor_fragments.svg
# alt: "In shared memory are a tile of A and a tile of B, 16×16 each. A load turns each into a fragment: little boxes with question marks in 32 pairs of hands. mma_sync takes both to the tensor core, out comes a fragment of C in fp32, and a store writes it to memory."
# caption: A fragment is a tile in which you cannot tell where a number is. That is what makes it easy, and what limits it.
# ///
#
# <details class="fold" markdown="1"><summary>The loop: a warp tile of 2 × 4 fragments of sums</summary>
#
# /// source | src/course_kernels/gemm/k02_wmma.cu#multiply
# ///
#
# </details>
#
# /// diff | src/course_kernels/gemm/k01_cuda_cores.cu | src/course_kernels/gemm/k02_wmma.cu
# ///
#
# /// claim | climb.wmma.us < 0.4 * climb.cuda_cores.us
# This one idea gives {{ climb.cuda_cores.us / climb.wmma.us:.1f }} times the speed of the step before, and reaches
# {{ climb.wmma.of_peak:.1%}} of peak.
# /// otherwise
# The WMMA kernel takes {{ climb.wmma.us / climb.cuda_cores.us:.2f }} of the time that the kernel on the CUDA cores
# takes.
# ///
#
# *Why not faster?* In each round of the loop a warp carries its part of a tile, waits for the other warps, fetches
# fragments, waits, and multiplies, one step after another. It uses the tensor core only in the last step. Other
# warps, and a second block on the same SM, fill some of the gaps, but not all: we
# [count the waiting](#what-they-wait-for) further down.
#
# ### mma.sync: no waiting {.beyond}
#
# So do three things at once. This kernel is the classic of the Ampere generation [^cutlass-gemm].
#
# **Carry ahead.** `cp.async` copies from global memory to shared memory without passing through the registers of a
# thread, and without making it wait. Keep several tiles in flight, each with its own buffer. That is called a
# *multistage pipeline*.
#
# /// figure | docs/assets/figures/tensor_pipeline.svg
# alt: "Two timelines. Above, with one buffer: carry tile 0, multiply tile 0, carry tile 1, multiply tile 1, and so on. Below, with four buffers, a row for each: while tile 0 is multiplied, tiles 1, 2 and 3 are already being carried, and the multiplies follow each other without a gap."
# caption: Little's law once more. The trip is as long as before, but enough trips are in flight.
# ///
#
# **Fetch in the tensor core's order.** `ldmatrix` is an instruction made for this. Each lane gives the address of one
# row of 16 bytes, and the numbers arrive spread over the lanes exactly as `mma.sync` needs them. One instruction
# loads four pieces of 8 × 8 numbers.
#
# There is a catch, and you have met it before. A row of 64 numbers has 128 bytes, so it spans all 32 banks exactly
# once. So the pieces at the same place in eight rows, one above the other, want the same banks. The cure is the one
# that saved the transpose: a *swizzle*.
#
# /// figure | docs/assets/figures/tensor_ldmatrix.svg
# alt: "Two grids of eight rows with eight pieces of 16 bytes. Left, piece 2 of all rows is in one column, in the same four banks. Right, piece c of row r is at place c xor r, and piece 2 is in a different column in each row."
# caption: The same piece of eight rows, now in eight different groups of four banks. The place of a piece is its number, xor its row.
# ///
#
# Count by hand, for each of the eight pieces of a row: how many wavefronts (turns) does shared memory need for one
# piece of 8 × 8 numbers?


# %%
def turns(place):
    """The longest queue at the tray's windows, eight rows of 16 bytes at once."""
    worst = 0
    for piece in range(8):
        windows = Counter(
            place(row, piece) * 4 + word for row in range(8) for word in range(4)
        )
        worst = max(worst, *windows.values())
    return worst


print("as it comes:", turns(lambda row, piece: piece), "turns")
print("swizzled:   ", turns(lambda row, piece: piece ^ row), "turn")

# %% [markdown] **Hold two pairs of fragments.** While one pair of fragments is being multiplied, the next pair is on
# its way from shared memory to registers.
#
# <details class="fold" markdown="1"><summary>Fragments: ldmatrix, and 32 multiplies on what it brought</summary>
#
# /// source | src/course_kernels/gemm/k03_mma_sync.cu#fragments
# ///
#
# </details>
#
# <details class="fold" markdown="1"><summary>The pipeline, in which the three come together</summary>
#
# /// source | src/course_kernels/gemm/k03_mma_sync.cu#pipeline
# ///
#
# </details>
#
# (Lambdas, references to arrays and `asm volatile` are explained
# [on the page on C](../c_for_python_people.py#five-more-words-for-the-top-of-the-ladder).)
#
# <details class="fold" markdown="1"><summary>What it includes: <code>matrix_instructions.cuh</code></summary>
#
# /// source | src/course_kernels/cuda/matrix_instructions.cuh
# ///
#
# </details>
#
# <details class="fold" markdown="1"><summary>What it includes: <code>asynchronous_copy.cuh</code></summary>
#
# /// source | src/course_kernels/cuda/asynchronous_copy.cuh
# ///
#
# </details>
#
# /// claim | gemm.mma_sync_of_cublas.n4096 > 0.55
# This kernel reaches {{ climb.mma_sync.of_peak:.1%}} of peak and **{{ gemm.mma_sync_of_cublas.n4096:.0%}} of
# cuBLAS**. On Ampere, the generation that this kind of kernel was made for, there is no `wgmma` to go on to.
# /// otherwise
# This kernel reaches {{ climb.mma_sync.of_peak:.1%}} of peak and {{ gemm.mma_sync_of_cublas.n4096:.0%}} of cuBLAS.
# ///
#
# /// claim | climb.mma_sync.us < 0.6 * climb.wmma.us and abs(tensor.mma_sync.instructions / tensor.wmma.instructions - 1) < 0.01 and stall.mma_sync.pantry + stall.mma_sync.tray + stall.mma_sync.counter + stall.mma_sync.barrier < 0.3 * (stall.wmma.pantry + stall.wmma.tray + stall.wmma.counter + stall.wmma.barrier)
# This kernel runs at {{ climb.wmma.us / climb.mma_sync.us:.1f }} times the speed of WMMA, with the same machine
# instruction, `HMMA`, and the same number of these instructions. Most of the waiting has gone. We
# [count the waiting](#what-they-wait-for) further down.
# /// otherwise
# This kernel takes {{ climb.mma_sync.us / climb.wmma.us:.2f }} of WMMA's time.
# ///
#
# *Why not faster?* You measured the reason: the instruction itself reaches at most {{ rate.mma / mill.sheet:.0%}} of
# the data sheet's peak. Of *that* ceiling this kernel reaches
# {{ climb.mma_sync.of_peak * mill.sheet / rate.mma:.0%}}. (The picture has four buffers. On this card the kernel has
# three, for a larger tile.)
#
# ### wgmma: leave it in shared memory
#
# Now comes Hopper's own instruction. The tiles stay in shared memory. A **warpgroup**, four warps that give one order
# together, tells the tensor cores *where* the tiles are with a **descriptor**: 64 bits with an address, two distances
# and the name of a swizzle. The tensor cores do the fetching. The order is *asynchronous*: once it is given, the
# threads go on, but they must wait until the order is done before they touch the sums.
#
# /// figure | docs/assets/figures/tensor_wgmma.svg
# alt: "In shared memory are A, 64 rows, and B, up to 256 columns, 16 deep along k. An arrow leads to the four tensor cores of an SM. Each writes 16 rows of C into the registers of one of four warps. Below, four steps: fence, mma_async, commit, wait."
# caption: 128 threads give one order. Nobody carries A or B by hand.
# ///
#
# <details class="fold" markdown="1"><summary>The loop, whole</summary>
#
# /// source | src/course_kernels/gemm/k04_wgmma.cu#loop
# ///
#
# </details>
#
# <details class="fold" markdown="1"><summary>What it includes: <code>wgmma.cuh</code></summary>
#
# /// source | src/course_kernels/gemm/wgmma.cuh
# ///
#
# </details>
#
# /// claim | climb.wgmma.us < climb.mma_sync.us
# This kernel reaches {{ climb.wgmma.of_peak:.1%}} of peak, and {{ climb.mma_sync.us / climb.wgmma.us:.2f }} times the
# speed of the step before. It is a plain kernel: no warp has a special role.
# /// otherwise
# This kernel reaches {{ climb.wgmma.of_peak:.1%}} of peak, and takes {{ climb.wgmma.us / climb.mma_sync.us:.2f }} of
# the time of the step before.
# ///
#
# /// claim | tensor.wgmma.busy < 0.85 * tensor.mma_sync.busy
# *Why not faster?* The [ceiling](#how-fast-can-it-go-at-all), which is what the instruction reaches with nothing to
# carry, has gone up from {{ rate.mma / mill.sheet:.0%}} to {{ rate.wgmma.n256 / mill.sheet:.0%}} of the data sheet's
# peak, and the kernel has not kept up. The counters [further down](#when-the-tensor-cores-are-idle) show that its
# tensor cores are at work in {{ tensor.wgmma.busy:.0%}} of the ticks, and those of the `mma.sync` kernel in
# {{ tensor.mma_sync.busy:.0%}}. So the faster tensor core is idle more of the time.
# /// otherwise
# *Why not faster?* Its tensor cores are at work in {{ tensor.wgmma.busy:.0%}} of the ticks, and those of the
# `mma.sync` kernel in {{ tensor.mma_sync.busy:.0%}}.
# ///
#
# Those counters do not say what each habit of the kernel costs. But its source shows what a better kernel would do
# differently. All its threads copy, in pieces of 16 bytes, and no thread has copying as its only job. All threads
# meet at one barrier. The card's **copy engine**, which NVIDIA calls TMA, *tensor memory accelerator*, is idle,
# although it can bring a whole tile on the order of a single thread. And while a block writes out its sums, it gives
# the tensor cores nothing to do. The workshop on Hopper looks into each of these.
#
# ### Triton: say what, not how
#
# Here are the same ideas, in one loop. `tl.dot` becomes the `wgmma` instruction. The compiler takes care of the
# swizzle, the ring of buffers and the descriptors. And the copy engine, TMA, brings the tiles.
#
# <details class="fold" markdown="1"><summary>The kernel, whole</summary>
#
# /// source | src/course_kernels/gemm/k05_triton.py#kernel
# ///
#
# </details>
#
# /// claim | gemm.triton_of_cublas.n4096 > 0.95 and gemm.triton_of_cublas.n8192 > 0.95
# **{{ gemm.triton_of_cublas.n4096:.0%}} of cuBLAS at 4096, {{ gemm.triton_of_cublas.n8192:.0%}} at 8192.** These are
# two shapes that suit a tile of 128 × 256. The library has kernels for every shape, type and layout; we have this one
# loop.
# /// otherwise
# The Triton kernel reaches {{ gemm.triton_of_cublas.n4096:.0%}} of cuBLAS at 4096, and
# {{ gemm.triton_of_cublas.n8192:.0%}} at 8192.
# ///
#
# /// claim | climb.triton.us < 0.95 * climb.wgmma.us
# It runs at {{ climb.wgmma.us / climb.triton.us:.2f}} times the speed of our own `wgmma` kernel, with the same tiles
# and the same `HGMMA` in the middle. Three things differ. In Triton's kernel one thread orders a tile from the copy
# engine, whereas in ours 256 threads copy. The copy engine also writes out the sums. And the blocks of Triton's
# kernel stay, and move from tile to tile. This page does not separate the three differences.
# /// otherwise
# It runs at {{ climb.wgmma.us / climb.triton.us:.2f}} times the speed of our own `wgmma` kernel.
# ///
#
# ### Read the machine code {.beyond}
#
# What did the compilers make of all this? Count the instructions in the binaries that have just run.

# %% tags=["fold"]
from dataclasses import asdict

from course_kernels.cuda.compile import compile_cubin

SHAPE = asdict(k03_mma_sync.SHAPES[9, 0])
BF16 = {"TYPE": "__nv_bfloat16", "WHOLE": 1}
in_triton = next(iter(k05_triton.gemm_kernel.device_caches[0][0].values()))
BINARIES = {  # the kernel's own name, and where its machine code comes from
    "cuda_cores": (
        "gemm_cuda_cores",
        compile_cubin(k01_cuda_cores.SOURCE, ARCH, BF16),
    ),
    "wmma": ("gemm_wmma", compile_cubin(k02_wmma.SOURCE, ARCH, BF16)),
    "wmma_fp16": (
        "gemm_wmma",
        compile_cubin(k02_wmma.SOURCE, ARCH, {**BF16, "TYPE": "__half"}),
    ),
    "mma_sync": (
        "gemm_mma_sync",
        compile_cubin(
            k03_mma_sync.SOURCE, ARCH, {"TYPE": "Bf16", "WHOLE": 1, **SHAPE}
        ),
    ),
    "wgmma": ("gemm_wgmma", compile_cubin(k04_wgmma.SOURCE, ARCH)),
    "triton": ("gemm_kernel", in_triton.asm["cubin"]),
}
NAMES = (
    *("FFMA", "HMMA", "HGMMA", "LD", "LDS", "LDSM", "MOVM"),
    *("LDGSTS", "UTMALDG"),
)
LINE = r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?([A-Z0-9]+)"  # not @!PT: never


def counted_in(kernel, cubin):
    """How often each name occurs in one kernel of a binary."""
    text = sass(cubin).partition(f".text.{kernel}:")[2].partition(".text.")[0]
    found = Counter(re.findall(LINE, text, re.MULTILINE))
    return {one: quantity(found[one], how="counted") for one in NAMES}


record(code={idea: counted_in(*binary) for idea, binary in BINARIES.items()})

# %% [markdown]
# /// table
# turned: true
# columns: [kernel, FFMA, HMMA, HGMMA, LD, LDS, LDSM, MOVM, LDGSTS, UTMALDG]
# rows:
#   - [CUDA cores, "{{ code.cuda_cores.FFMA:.0f}}", "{{ code.cuda_cores.HMMA:.0f}}", "{{ code.cuda_cores.HGMMA:.0f}}", "{{ code.cuda_cores.LD:.0f}}", "{{ code.cuda_cores.LDS:.0f}}", "{{ code.cuda_cores.LDSM:.0f}}", "{{ code.cuda_cores.MOVM:.0f}}", "{{ code.cuda_cores.LDGSTS:.0f}}", "{{ code.cuda_cores.UTMALDG:.0f}}"]
#   - [WMMA, "{{ code.wmma.FFMA:.0f}}", "{{ code.wmma.HMMA:.0f}}", "{{ code.wmma.HGMMA:.0f}}", "{{ code.wmma.LD:.0f}}", "{{ code.wmma.LDS:.0f}}", "{{ code.wmma.LDSM:.0f}}", "{{ code.wmma.MOVM:.0f}}", "{{ code.wmma.LDGSTS:.0f}}", "{{ code.wmma.UTMALDG:.0f}}"]
#   - [mma.sync, "{{ code.mma_sync.FFMA:.0f}}", "{{ code.mma_sync.HMMA:.0f}}", "{{ code.mma_sync.HGMMA:.0f}}", "{{ code.mma_sync.LD:.0f}}", "{{ code.mma_sync.LDS:.0f}}", "{{ code.mma_sync.LDSM:.0f}}", "{{ code.mma_sync.MOVM:.0f}}", "{{ code.mma_sync.LDGSTS:.0f}}", "{{ code.mma_sync.UTMALDG:.0f}}"]
#   - [wgmma, "{{ code.wgmma.FFMA:.0f}}", "{{ code.wgmma.HMMA:.0f}}", "{{ code.wgmma.HGMMA:.0f}}", "{{ code.wgmma.LD:.0f}}", "{{ code.wgmma.LDS:.0f}}", "{{ code.wgmma.LDSM:.0f}}", "{{ code.wgmma.MOVM:.0f}}", "{{ code.wgmma.LDGSTS:.0f}}", "{{ code.wgmma.UTMALDG:.0f}}"]
#   - [Triton, "{{ code.triton.FFMA:.0f}}", "{{ code.triton.HMMA:.0f}}", "{{ code.triton.HGMMA:.0f}}", "{{ code.triton.LD:.0f}}", "{{ code.triton.LDS:.0f}}", "{{ code.triton.LDSM:.0f}}", "{{ code.triton.MOVM:.0f}}", "{{ code.triton.LDGSTS:.0f}}", "{{ code.triton.UTMALDG:.0f}}"]
# caption: "Lines of machine code. FFMA is a multiply-add of one lane; HMMA and HGMMA are the tensor core. LDS reads shared memory, LD reads through a generic address, here one in shared memory, LDSM is ldmatrix, MOVM transposes a small square. LDGSTS copies without going through registers, UTMALDG is the copy engine, TMA."
# ///
#
# /// claim | code.cuda_cores.HMMA == 0 and code.wmma.HMMA > 20 and code.mma_sync.LDGSTS > 10 and code.wgmma.HGMMA == 4 and code.wgmma.LD + code.wgmma.LDS + code.wgmma.LDSM < 1
# This is the climb, line by line. In the first row there is no tensor core. In the second `HMMA` appears, and in the
# third `LDGSTS` too, which is what `cp.async` becomes. In the fourth row, {{ code.wgmma.HGMMA:.0f}} lines of `HGMMA`
# do what {{ code.mma_sync.HMMA:.0f}} lines of `HMMA` did in a tile of the same depth, and no line reads from shared
# memory into registers.
# /// otherwise
# `HMMA` and `HGMMA` are the tensor cores' own names.
# ///
#
# /// claim | code.wmma.LDSM == 0 and code.wmma.MOVM > 20 and code.wmma_fp16.LDSM > 8 and code.wmma_fp16.MOVM == 0
# And look at WMMA's loads. In bf16 these loads became `LD` and `MOVM`. `LD` does not even know that it reads shared
# memory, and `MOVM` transposes squares of 8 × 8 in the registers. Compile the very same source for fp16, and the
# loads become {{ code.wmma_fp16.LDSM:.0f}} `LDSM`, without any `MOVM`. Both types have 16 bits. WMMA is convenient
# because the compiler chooses. Here it chose differently for the two types, and you cannot tell it which way you
# want. (This page does not time what that costs.) With `mma.sync` we write `ldmatrix` ourselves.
# /// otherwise
# WMMA's loads became {{ code.wmma.LDSM:.0f}} `LDSM` and {{ code.wmma.MOVM:.0f}} `MOVM` in bf16, {{ code.wmma_fp16.LDSM:.0f}} and
# {{ code.wmma_fp16.MOVM:.0f}} in fp16.
# ///
#
# /// claim | code.triton.HGMMA > 2.5 and code.triton.UTMALDG > 3.5
# Triton's compiler also chose `HGMMA`, and `UTMALDG`: the copy engine brings the tiles.
# /// otherwise
# Triton's kernel has {{ code.triton.HGMMA:.0f}} `HGMMA` and {{ code.triton.HMMA:.0f}} `HMMA`.
# ///
#
# /// exercise | Four buffers
# Take a block tile of 128 × 256, 64 deep, in bf16. How many bytes does one pair of tiles take in shared memory? How many
# pairs fit in the 227 KiB that a block can have on this card? And how many bytes are in flight while one pair is multiplied?
# /// answer
# (128 + 256) × 64 × 2 = 49 152 bytes, 48 KiB. Four pairs are 192 KiB; a fifth does not fit. Three pairs are in flight:
# 144 KiB on each SM. From [Little's law](l3_memory.py#how-many-must-be-walking) you know how many bytes one SM must
# have in flight for HBM (the pantry). This is several times as much, and much of it most likely comes from L2, which
# is nearer.
# ///
#
# ### Now type it
#
# You begin with one call, then walk along k, and then use shared memory.
#
# /// lab | wmma
# ///

# %% [markdown]
# ## Shorter numbers
#
# Numbers of half the width mean half as many bytes to carry and half as many ticks of the tensor core. So why not
# always use the shortest type?
#
# /// figure | docs/assets/figures/tensor_formats.svg
# alt: "Five formats in rows of bits. fp32: 8 bits of exponent, 23 of fraction. TF32: 8 and 10, stored in 32 bits. bf16: 8 and 7, with the range of fp32. fp16: 5 and 10, up to 65504. e4m3: 4 and 3, up to 448, no infinity."
# caption: The exponent sets how far a format reaches, the fraction how fine its steps.
# ///
#
# The *fraction* sets how fine the steps are. With 7 bits there are 128 steps from one power of two to the next, with
# 3 bits there are eight. The *exponent* sets how far a format reaches. fp16 ends at 65504, and e4m3 ends at 448
# [^micikevicius2022]. Round a few numbers by hand:

# %%
FORMATS = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn,
}
for value in (1 / 3, 300.0, 70000.0, 0.0005):
    row = ", ".join(
        f"{kind} {torch.tensor(value).to(dtype).float().item():.6g}"
        for kind, dtype in FORMATS.items()
    )
    print(f"{value:.6g} becomes {row}")

# %% [markdown] One third: every format misses it, bf16 by more than fp16, and e4m3 by the most. 70000: bf16 comes
# close, but for fp16 the number is out of range and becomes *infinity*. e4m3 has no infinity; a conversion cuts the
# number off at 448 or gives *not a number*. And 0.0005 becomes zero in e4m3, because the smallest step of e4m3 is
# 2<sup>−9</sup>.
#
# So FP8 needs help: a **scale**. Divide the whole tensor by one number so that its largest element becomes 448,
# multiply the 8-bit numbers, and multiply the scale back in at the end. That costs one multiplication for each sum of
# C, and a pass over the tensor to find its largest element.

# %%
small = torch.tensor([0.0005, 0.002, -0.001])
scale = small.abs().max() / 448


def through_fp8(x):
    """The numbers, rounded to e4m3."""
    return x.to(torch.float8_e4m3fn).float()


print("as it is:   ", through_fp8(small).numpy())
print("scaled:     ", through_fp8(small / scale).numpy())
print("scaled back:", (through_fp8(small / scale) * scale).numpy())

# %% [markdown]
# ### What it costs in error
#
# Now take a whole product, 4096 × 4096 × 4096, of normally distributed numbers with variance 1. For each type, round
# the *same* fp32 matrices and let the library multiply. The truth is the product *before* rounding, in float64.
#
# What error should you expect? A sum of products a × b has an error because a and b were rounded. If the answer is
# stored in 16 bits, it is rounded once more. Such errors are random, so their squares add up. To find the size of one
# such error, round a million numbers.
#
# /// predict | bf16 has three bits of fraction fewer than fp16. How much larger is its error?
# - [error.bf16.rms / error.fp16.rms >= 7] Eight times
# - [4.5 <= error.bf16.rms / error.fp16.rms < 7] Six times
# - [error.bf16.rms / error.fp16.rms < 4.5] Three times
# /// reveal
# The error is {{ error.bf16.rms / error.fp16.rms:.1f}} times as large: 2 × 2 × 2, one 2 for each bit.
#
# /// chart | lines
# title: "Error of a product, by bits of fraction"
# x: name
# y: value
# x_label: bits of fraction
# y_label: rms error, millionths of the answer
# x_scale: linear
# y_scale: log
# series:
#   - {name: rms.*, label: measured}
#   - {name: expected.*, label: by hand, style: reference}
# alt: "The relative error of a product against the bits of fraction, on a logarithmic scale: {{ error.fp8.rms:.0f}} millionths with 3 bits, {{ error.bf16.rms:.0f}} with 7, {{ error.fp16.rms:.0f}} and {{ error.tf32.rms:.0f}} with 10, {{ error.fp32.rms:.1f}} with 23."
# caption: Up to 10 bits, every bit of fraction halves the error. The point at the right end, fp32, is higher than that.
# ///
#
# /// table
# columns: [type, "TFLOP/s", "% of its peak", "rms error", "worst error", it loses]
# rows:
#   - [fp32, "{{ speed.fp32.tflops:.0f }}", "{{ speed.fp32.of_peak:.0%}}", "{{ error.fp32.rms:.1f}}", "{{ error.fp32.worst:.1f}}", speed]
#   - [TF32, "{{ speed.tf32.tflops:.0f }}", "{{ speed.tf32.of_peak:.0%}}", "{{ error.tf32.rms:,.0f}}", "{{ error.tf32.worst:,.0f}}", "bytes: it is stored as fp32"]
#   - [fp16, "{{ speed.fp16.tflops:.0f }}", "{{ speed.fp16.of_peak:.0%}}", "{{ error.fp16.rms:,.0f}}", "{{ error.fp16.worst:,.0f}}", "range: past 65504 everything is infinite"]
#   - [bf16, "{{ speed.bf16.tflops:.0f }}", "{{ speed.bf16.of_peak:.0%}}", "{{ error.bf16.rms:,.0f}}", "{{ error.bf16.worst:,.0f}}", precision]
#   - ["FP8, e4m3, fast accumulation", "{{ speed.fp8.tflops:.0f }}", "{{ speed.fp8.of_peak:.0%}}", "{{ error.fp8.rms:,.0f}}", "{{ error.fp8.worst:,.0f}}", "both: it needs a scale"]
# caption: "Errors are in millionths of the size of the truth: rms over all elements, and the worst one. Speed and error come from different runs of the same library."
# ///
#
# /// claim | max(abs(error.tf32.rms / expected.tf32_b10 - 1), abs(error.fp16.rms / expected.fp16_b10 - 1), abs(error.bf16.rms / expected.bf16_b7 - 1), abs(error.fp8.rms / expected.fp8_b3 - 1)) < 0.1
# The forecast by hand was right for all four types. TF32: {{ expected.tf32_b10:.0f}} millionths by hand,
# {{ error.tf32.rms:.0f}} measured. fp16: {{ expected.fp16_b10:.0f}} and {{ error.fp16.rms:.0f}}. bf16:
# {{ expected.bf16_b7:.0f}} and {{ error.bf16.rms:.0f}}. FP8: {{ expected.fp8_b3:.0f}} and {{ error.fp8.rms:.0f}}. So
# nearly all of the error arises where numbers are *rounded*, on the way in and on the way out. On such data the
# tensor core itself adds next to nothing. You chose the error when you chose the type.
# /// otherwise
# For bf16 we get {{ expected.bf16_b7:.0f}} millionths by hand and {{ error.bf16.rms:.0f}} by measuring; for FP8 we
# get {{ expected.fp8_b3:.0f}} and {{ error.fp8.rms:.0f}}.
# ///
# ///
#
# ### The rounding by hand, and the runs {.beyond}

# %%
from course_kernels.gemm import rounding

BITS = {"fp32": 23, "tf32": 10, "fp16": 10, "bf16": 7, "fp8": 3}  # of fraction
million = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0))


def rounded(x, fraction):
    """fp32 numbers, rounded to this many bits of fraction."""
    drop = 23 - fraction
    bits = x.view(torch.int32)
    return ((bits + (1 << (drop - 1))) >> drop << drop).view(torch.float32)


def one_rounding(fraction):
    """Rms error of one rounding, over the rms of what is rounded."""
    off = rounded(million, fraction) - million
    return (off.square().mean() / million.square().mean()).sqrt().item()


def by_hand(*roundings):
    """The squares of independent errors add up."""
    return sum(one_rounding(fraction) ** 2 for fraction in roundings) ** 0.5


EXPECTED = {
    "tf32_b10": by_hand(10, 10),  # a and b; the answer stays fp32
    "fp16_b10": by_hand(10, 10, 10),  # a, b and the answer
    "bf16_b7": by_hand(7, 7, 7),
    "fp8_b3": by_hand(3, 3, 7),  # the answer comes as bf16
}
found = rounding.errors(4096, 4096, 4096)
record(
    error={
        kind: {which: quantity(1e6 * value) for which, value in both.items()}
        for kind, both in found.items()
    },
    # in millionths, for the chart
    rms={
        f"{kind}_b{BITS[kind]}": quantity(1e6 * found[kind]["rms"]) for kind in BITS
    },
    expected={kind: quantity(1e6 * value) for kind, value in EXPECTED.items()},
)

# %% tags=["fold"]
from course_kernels.gemm_fp8 import k01_triton as fp8_triton
from course_kernels.gemm_fp8 import library as fp8_library
from course_kernels.measure import measure
from course_kernels.sgemm import library as sgemm_library

record(
    speed={
        "fp32": measure(sgemm_library.cublas, square(4096, "float32"), seconds=0.2),
        **compare(
            {"tf32": library.cublas, "tf32_triton": k05_triton},
            square(4096, "float32"),
            seconds=0.2,
        ),
        "fp16": measure(library.cublas, square(4096, "float16"), seconds=0.2),
        "bf16": measure(library.cublas, square(4096), seconds=0.2),
        **compare(
            {"fp8": fp8_library.cublaslt, "fp8_triton": fp8_triton},
            square(4096),
            seconds=0.2,
        ),
    }
)

# %% [markdown]
# ### What it buys
#
# /// chart | bars
# title: The library, 4096 × 4096 × 4096
# x_label: TFLOP/s
# bars:
#   - {name: speed.fp32.tflops, label: "fp32, CUDA cores"}
#   - {name: speed.tf32.tflops, label: TF32}
#   - {name: speed.fp16.tflops, label: fp16}
#   - {name: speed.bf16.tflops, label: bf16}
#   - {name: speed.fp8.tflops, label: "FP8, e4m3"}
# alt: "Speed of the library by type: fp32 {{ speed.fp32.tflops:.0f }} TFLOP/s, TF32 {{ speed.tf32.tflops:.0f }}, fp16 {{ speed.fp16.tflops:.0f }}, bf16 {{ speed.bf16.tflops:.0f }}, FP8 {{ speed.fp8.tflops:.0f }}."
# ///
#
# /// claim | speed.fp8.us < 0.65 * speed.bf16.us and error.fp8.rms > 8 * error.bf16.rms
# FP8 takes {{ speed.fp8.us / speed.bf16.us:.2f}} of the time of bf16, and its error is
# {{ error.fp8.rms / error.bf16.rms:.0f}} times as large, about {{ error.fp8.rms / 1e6:.0%}} of the size of the
# answer. Only experiment can show whether a model tolerates such an error. The authors of the format found that
# models for images and for language trained about as well in FP8 as in 16 bits [^micikevicius2022].
# /// otherwise
# FP8 takes {{ speed.fp8.us / speed.bf16.us:.2f}} of the time of bf16, and its error is
# {{ error.fp8.rms / error.bf16.rms:.1f}} times as large.
# ///
#
# /// claim | speed.tf32.us < 0.2 * speed.fp32.us and error.tf32.rms > 150 * error.fp32.rms
# TF32 is the trap among these types. The tensors are fp32, they take four bytes per number, and PyTorch has a switch
# for TF32, `torch.set_float32_matmul_precision("high")`. With this switch a multiply takes
# {{ speed.tf32.us / speed.fp32.us:.2f}} of the time, and its error is {{ error.tf32.rms / error.fp32.rms:.0f}} times
# as large. When somebody shows you a speed in fp32, ask to see the error.
# /// otherwise
# TF32 takes {{ speed.tf32.us / speed.fp32.us:.2f}} of the time of fp32.
# ///
#
# ### And fp32? And our own TF32? {.beyond}
#
# /// claim | error.fp32.rms > 20 * error.tf32.rms / 2**13
# fp32 has 13 bits more than TF32, and halving the error 13 times would leave {{ error.tf32.rms / 2**13:.2f}}
# millionths. We measured {{ error.fp32.rms:.1f}}. In fp32 the inputs are not rounded, because the truth is computed
# from the same fp32 numbers. What is left is the rounding of the sums, thousands of times over.
# /// otherwise
# The error in fp32 is {{ error.fp32.rms:.1f}} millionths.
# ///
#
# /// claim | 1.02 < speed.tf32_triton.us / speed.tf32.us < 1.8
# To be fair, here is a race that we lose. In TF32 the Triton kernel from the bf16 race takes
# {{ speed.tf32_triton.us / speed.tf32.us:.2f}} times as long as the library. With 16-bit types `wgmma` accepts B in
# either layout. With TF32 and FP8 it needs numbers that follow each other along k to be side by side, and our B is
# stored by rows. So a separate kernel transposes B first. That kernel would account for most of the loss; we have not
# timed it alone.
# /// otherwise
# In TF32 our Triton kernel takes {{ speed.tf32_triton.us / speed.tf32.us:.2f}} times as long as the library.
# ///
#
# ### Where a sum stops growing {.beyond}
#
# In [the lecture on memory](l3_memory.py#first-is-it-right) an fp32 sum of small numbers stopped growing at
# 2<sup>24</sup>. Do the tensor cores have such a limit? Give the tensor cores nothing but ones, and let them add.

# %%
sums = {kind: tensor.sum_of_ones(kind) for kind in ("tf32", "bf16", "e4m3")}
for kind, (ones, said) in sums.items():
    print(f"{kind}: {ones} ones make {said}")

record(
    edge={
        kind: {
            "ones": quantity(ones, how="counted"),
            "said": quantity(said, how="counted"),
        }
        for kind, (ones, said) in sums.items()
    }
)

# %% [markdown]
# /// claim | edge.bf16.said == edge.bf16.ones and edge.tf32.said == edge.tf32.ones and edge.e4m3.said == 16384 and edge.e4m3.ones > 20000
# In bf16 and TF32 all the ones are counted. In FP8 the sum stops at {{ edge.e4m3.said:.0f}}, which is 2<sup>14</sup>,
# and all further ones are lost. The 8-bit tensor core keeps fewer bits of a sum than fp32 has, whatever the type of
# the result is called. DeepSeek's engineers met this limit when they trained in FP8, and they too found around 14
# bits [^deepseek2024]. The cure is to take the sum out of the tensor core now and then, and to go on adding in fp32.
# cuBLASLt has a switch, *fast accumulation*, which was on in our runs above. With the switch off, the library very
# likely applies that cure; we did not run it that way.
# /// otherwise
# In FP8, {{ edge.e4m3.ones:.0f}} ones make {{ edge.e4m3.said:.0f}}; in bf16, {{ edge.bf16.ones:.0f}} make {{ edge.bf16.said:.0f}}.
# ///
#
# Random numbers around zero hide this limit. Their sum grows with the square *root* of its length: 4096 products add
# up to about 64 times the size of one product, not 4096 times. So the FP8 error above does not show the limit. A test
# on random numbers tells you about random numbers only.
#
# /// exercise | Which type?
# (a) Gradients of a loss, many of them near 2<sup>−20</sup>. (b) The weights of a layer, all between −0.5 and 0.5,
# for inference. (c) The running sum of a million numbers of about 1. (d) The positions of stars, in metres. Which of
# fp32, fp16, bf16 and e4m3 can hold each of these, and which would you choose?
# /// answer
# (a) fp32, and bf16 with half the bytes. fp16's smallest normal number is 2<sup>−14</sup>, and below that fp16 loses
# precision; e4m3 would need a scale. (b) fp16 and bf16 hold the weights as they are. e4m3 holds them with a scale,
# and that is what servers do. (c) Only fp32: a sum of ones stops growing at 256 in bf16, and at 2048 in fp16. (d)
# None of the short ones. fp32 has the range, but at that distance its steps are far larger than a metre. Some numbers
# need float64.
# ///

# %% [markdown]
# ## When the tensor cores are idle
#
# A time tells you that a kernel is *slow*, but not *why*. Ask three questions, in this order; each has its own
# counter. The profiler calls the tensor cores the *tensor pipe*.
#
# 1. **Are they used at all?** How many operations went through the tensor pipe?
# 2. **How much of the time are they used?** In what share of the ticks was the tensor pipe at work?
# 3. **If they were idle, what were the warps waiting for?** In each tick, a warp that cannot issue has a reason, a
#    *stall reason*.
#
# Here are the counts for this page's multiplies of 4096, and for two more that you have most likely run: `torch.mm`
# on fp32 tensors with PyTorch's default settings, and with TF32 switched on. The counters also record the
# [issue slots](l5_the_top_of_the_ladder.py#every-other-instruction-costs-a-multiply-add), as in the previous lecture.
#
# /// predict | Which issues more instructions in a tick: our kernel on the CUDA cores, or cuBLAS, which is some twenty times as fast?
# - [tensor.cublas.issue > 1.25 * tensor.cuda_cores.issue] cuBLAS, of course
# - [tensor.cuda_cores.issue > 1.25 * tensor.cublas.issue] The CUDA cores
# - [0.8 * tensor.cuda_cores.issue <= tensor.cublas.issue <= 1.25 * tensor.cuda_cores.issue] About the same
# /// reveal
# The kernel on the CUDA cores issues in {{ tensor.cuda_cores.issue:.0%}} of the ticks, and cuBLAS issues in
# {{ tensor.cublas.issue:.0%}}. The faster kernel needs few orders: one order of `wgmma`, 256 columns wide, is 128
# ticks of work for four tensor cores. *Busy* is not the same as *fast*.
#
# /// table
# columns: [4096 × 4096 × 4096, "operations of the tensor cores, billions", "tensor cores at work, of all ticks", "issue slots used"]
# rows:
#   - ["torch.mm, fp32", "{{ tensor.fp32.operations / 1e9:.1f}}", "{{ tensor.fp32.busy:.1%}}", "{{ tensor.fp32.issue:.1%}}"]
#   - ["torch.mm, TF32", "{{ tensor.tf32.operations / 1e9:.1f}}", "{{ tensor.tf32.busy:.1%}}", "{{ tensor.tf32.issue:.1%}}"]
#   - ["CUDA cores, bf16", "{{ tensor.cuda_cores.operations / 1e9:.1f}}", "{{ tensor.cuda_cores.busy:.1%}}", "{{ tensor.cuda_cores.issue:.1%}}"]
#   - [WMMA, "{{ tensor.wmma.operations / 1e9:.1f}}", "{{ tensor.wmma.busy:.1%}}", "{{ tensor.wmma.issue:.1%}}"]
#   - [mma.sync, "{{ tensor.mma_sync.operations / 1e9:.1f}}", "{{ tensor.mma_sync.busy:.1%}}", "{{ tensor.mma_sync.issue:.1%}}"]
#   - [wgmma, "{{ tensor.wgmma.operations / 1e9:.1f}}", "{{ tensor.wgmma.busy:.1%}}", "{{ tensor.wgmma.issue:.1%}}"]
#   - [Triton, "{{ tensor.triton.operations / 1e9:.1f}}", "{{ tensor.triton.busy:.1%}}", "{{ tensor.triton.issue:.1%}}"]
#   - [cuBLAS, "{{ tensor.cublas.operations / 1e9:.1f}}", "{{ tensor.cublas.busy:.1%}}", "{{ tensor.cublas.issue:.1%}}"]
#   - ["cuBLAS, 4095", "{{ tensor.odd.operations / 1e9:.1f}}", "{{ tensor.odd.busy:.1%}}", "{{ tensor.odd.issue:.1%}}"]
# ///
# ///

# %% tags=["fold"]
from course_kernels.measure import count_many

TENSOR = "sm__inst_executed_pipe_tensor.sum"
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
REASONS = {
    "pantry": "long_scoreboard",
    "tray": "short_scoreboard",
    "counter": "mio_throttle",
    "barrier": "barrier",
    "mill": "math_pipe_throttle",
    "order": "gmma",
}
OPERATIONS = tuple(
    f"sm__ops_path_tensor_src_{kind}_dst_fp32.sum" for kind in ("bf16", "tf32")
)
CYCLES, TIME = "sm__cycles_elapsed.max", "gpu__time_duration.sum"
METRICS = (
    TENSOR,
    *OPERATIONS,
    BUSY,
    ISSUE,
    CYCLES,
    TIME,
    *(STALL.format(r) for r in REASONS.values()),
)
JOBS = {
    "cuda_cores": (k01_cuda_cores, square(4096)),
    **{who: (kernel, square(4096)) for who, kernel in MILLS.items()},
    "fp32": (sgemm_library.cublas, square(4096, "float32")),
    "tf32": (library.cublas, square(4096, "float32")),
    "odd": (library.cublas, square(4095)),
}
tallies = dict(zip(JOBS, count_many(list(JOBS.values()), METRICS), strict=True))


def multiply(job):
    """The counters of the job's longest-running kernel: the multiply."""
    return max(
        (kernel["metrics"] for kernel in tallies[job].kernels),
        key=lambda metrics: metrics[CYCLES]["value"],
    )


def clock(job):
    """The clock that the SMs had on average while it ran, MHz."""
    found = multiply(job)
    seconds = found[TIME]["value"] * (1 if found[TIME]["unit"] == "s" else 1e-9)
    return found[CYCLES]["value"] / seconds / 1e6


def told(job, metric, scale=1.0):
    """One counter of the multiply, as a number to record."""
    return quantity(multiply(job)[metric]["value"] * scale, how="counted")


record(
    counted=tallies,
    tensor={
        job: {
            "instructions": told(job, TENSOR),
            "operations": quantity(
                sum(multiply(job)[kind]["value"] for kind in OPERATIONS),
                how="counted",
            ),
            "busy": told(job, BUSY, 0.01),
            "issue": told(job, ISSUE, 0.01),
            "clock": quantity(clock(job), "MHz", "counted"),
        }
        for job in JOBS
    },
    stall={
        job: {
            reason: told(job, STALL.format(name))
            for reason, name in REASONS.items()
        }
        for job in JOBS
    },
    odd=measure(library.cublas, square(4095), seconds=0.1),
)

# %% [markdown] Read the table in the answer above from the top.
#
# /// claim | tensor.fp32.operations == 0 and tensor.cuda_cores.operations == 0 and tensor.fp32.busy == 0 and 0.5 < tensor.tf32.busy < 1.5
# **Not used.** Two kernels show a zero: our kernel on the CUDA cores, and `torch.mm` on fp32 tensors with PyTorch's
# default settings. The second is busy and correct, and the card's strongest unit is idle. Flip one switch, and in the
# same call the tensor cores are at work in {{ tensor.tf32.busy:.0%}} of the ticks.
# /// otherwise
# The tensor cores did {{ tensor.fp32.operations:.0f}} operations for fp32, and {{ tensor.cuda_cores.operations:.0f}}
# for the kernel on the CUDA cores.
# ///
#
# Work out by hand how many instructions there should be. `mma.m16n8k16` does {{ mill.flops:.0f}} FLOPs, and a
# multiply of 4096 takes 2 × 4096³ FLOPs.

# %%
needed = 2 * 4096**3 // mma_flops
orders = 2 * 4096**3 // (2 * 64 * 256 * 16)
print(f"{needed / 1e6:.2f} million of mma.m16n8k16")
print(f"{orders / 1e6:.2f} million of wgmma.m64n256k16, by four warps each")

record(needed={"mma": quantity(needed), "wgmma": quantity(4 * orders)})

# %% [markdown]
# /// claim | 0.99 < tensor.mma_sync.instructions / needed.mma < 1.01 and 0.99 < tensor.wgmma.instructions / needed.wgmma < 1.01 and max(abs(tensor.wmma.operations / needed.mma / mill.flops - 1), abs(tensor.mma_sync.operations / needed.mma / mill.flops - 1), abs(tensor.wgmma.operations / needed.mma / mill.flops - 1), abs(tensor.triton.operations / needed.mma / mill.flops - 1)) < 0.01
# The counters agree: {{ tensor.mma_sync.instructions / 1e6:.2f}} million instructions in our `mma.sync` kernel, and
# {{ tensor.wgmma.instructions / 1e6:.2f}} million in the kernel with `wgmma`, where each of the four warps is
# counted. And look at the column of operations: 2 × 4096³ is {{ needed.mma * mill.flops / 1e9:.1f}} billion, and each
# of our four kernels did exactly that many.
# /// otherwise
# The counters show {{ tensor.mma_sync.instructions / 1e6:.2f}} million instructions in our `mma.sync` kernel; by hand
# we get {{ needed.mma / 1e6:.2f}} million.
# ///
#
# /// claim | odd.tflops < 0.3 * climb.cublas.tflops and tensor.odd.operations < 2500 * tensor.odd.instructions and tensor.odd.operations > 60000 * tensor.cublas.instructions
# **The wrong shape.** In the last row, the matrices are smaller by one in each dimension. There is less to do, and yet the library falls to {{ odd.tflops / climb.cublas.tflops:.0%}} of its speed at 4096. Rows of 4095 numbers in bf16 do not begin at multiples of 16
# bytes: neither the copy engine nor any 16-byte load can fetch them. The counters show an older kind of kernel, which uses neither: {{ tensor.odd.operations / tensor.odd.instructions:.0f}} FLOPs per matrix instruction, compared with {{ tensor.cublas.operations / tensor.cublas.instructions:.0f}} at 4096. That is less than one `mma.m16n8k16` does, and far less than any wide `wgmma` does. So pad rows to a multiple of 8 numbers, or 16 bytes.
# /// otherwise
# At 4095 the library reaches {{ odd.tflops / climb.cublas.tflops:.0%}} of its speed at 4096.
# ///
#
# ### And the best of them? {.beyond}
#
# /// define | sheet.mhz = 1830
# unit: MHz
# what: the clock that the card's data sheet assumes [^lockwood-h100]
# ///
#
# /// claim | tensor.cublas.busy > max(0.85, tensor.wmma.busy, tensor.mma_sync.busy) and climb.cublas.of_peak < 0.9 and tensor.cuda_cores.clock > max(tensor.wmma.clock, tensor.mma_sync.clock) and min(tensor.wmma.clock, tensor.mma_sync.clock) > tensor.cublas.clock and wide.cublas.power_w > 500
# The library's tensor cores are at work in {{ tensor.cublas.busy:.2%}} of the ticks, and still it reaches only
# {{ climb.cublas.of_peak:.2%}} of the data sheet. The library is not idle. It has *fewer ticks*. The data sheet
# assumes 1830 MHz [^lockwood-h100]. With tensor cores as busy as these, {{ climb.cublas.of_peak:.2%}} ÷
# {{ tensor.cublas.busy:.2%}} × 1830 = about {{ climb.cublas.of_peak / tensor.cublas.busy * sheet.mhz:.0f}} MHz. And
# the profiler counts ticks and time, so it knows the clock rate: {{ tensor.cuda_cores.clock:.0f }} MHz for the kernel
# on the CUDA cores, {{ tensor.wmma.clock:.0f }} for WMMA, {{ tensor.mma_sync.clock:.0f }} for `mma.sync`, and
# {{ tensor.cublas.clock:.0f }} for the library. Of these four, the kernel that does not use the tensor cores has the
# highest clock, and the kernel with the busiest tensor cores has the lowest. (The profiler runs each kernel on its
# own, whereas in our race the kernels follow each other. So do not expect the two clock rates of the library to
# agree.) What is the reason? The card itself reports it. Its sensors, read while the library multiplies at 8192, report
# *power limit*, at {{ wide.cublas.power_w:.0f }} W: you will find this reading in [the ledger](../numbers.md).
# [The measuring page](../how_we_measure.py) shows what that limit does to a longer run.
# /// otherwise
# The library's tensor cores are at work in {{ tensor.cublas.busy:.0%}} of the ticks, and it reaches {{ climb.cublas.of_peak:.0%}}
# of the data sheet.
# ///
#
# ### What they wait for {.beyond}
#
# The numbers are of the same kind as in [the previous lecture](l5_the_top_of_the_ladder.py): for each instruction
# that a scheduler issues, how many ticks do all its warps together wait for a given reason? Three reasons are new.
# *Its queue* means that a warp wants shared memory, and the queue of orders to shared memory is full. *The tensor
# core itself* means that the arithmetic unit that the warp wants is taken. *An order in flight* means, judging by its
# name, that the warp is waiting for a `wgmma`.
#
# /// table
# turned: true
# columns: [kernel, HBM or L2, shared memory, "its queue", barrier, the tensor core itself, an order in flight]
# rows:
#   - [CUDA cores, "{{ stall.cuda_cores.pantry:.2f}}", "{{ stall.cuda_cores.tray:.2f}}", "{{ stall.cuda_cores.counter:.2f}}", "{{ stall.cuda_cores.barrier:.2f}}", "{{ stall.cuda_cores.mill:.2f}}", "{{ stall.cuda_cores.order:.2f}}"]
#   - [WMMA, "{{ stall.wmma.pantry:.2f}}", "{{ stall.wmma.tray:.2f}}", "{{ stall.wmma.counter:.2f}}", "{{ stall.wmma.barrier:.2f}}", "{{ stall.wmma.mill:.2f}}", "{{ stall.wmma.order:.2f}}"]
#   - [mma.sync, "{{ stall.mma_sync.pantry:.2f}}", "{{ stall.mma_sync.tray:.2f}}", "{{ stall.mma_sync.counter:.2f}}", "{{ stall.mma_sync.barrier:.2f}}", "{{ stall.mma_sync.mill:.2f}}", "{{ stall.mma_sync.order:.2f}}"]
#   - [wgmma, "{{ stall.wgmma.pantry:.2f}}", "{{ stall.wgmma.tray:.2f}}", "{{ stall.wgmma.counter:.2f}}", "{{ stall.wgmma.barrier:.2f}}", "{{ stall.wgmma.mill:.2f}}", "{{ stall.wgmma.order:.2f}}"]
# caption: "NVIDIA's names for the six: long scoreboard, short scoreboard, MIO throttle, barrier, math pipe throttle, GMMA. The first kernel does not use the tensor cores: there, the fifth means the lanes."
# ///
#
# /// claim | stall.wmma.pantry > 1.2 * stall.wmma.mill and tensor.wmma.busy < 0.45
# **Waiting to be fed.** For each instruction that the WMMA kernel issues, its warps wait {{ stall.wmma.pantry:.1f}} ticks for HBM or L2,
# {{ stall.wmma.counter + stall.wmma.tray:.1f}} for shared memory or in its queue, {{ stall.wmma.barrier:.1f}} at a barrier, and
# {{ stall.wmma.mill:.1f}} for the tensor core. The tensor core is at work in {{ tensor.wmma.busy:.0%}} of the ticks.
# /// otherwise
# In the WMMA kernel, for each instruction the warps wait {{ stall.wmma.pantry:.1f}} ticks for HBM or L2, and
# {{ stall.wmma.mill:.1f}} for the tensor core.
# ///
#
# /// claim | stall.mma_sync.mill > 2 * stall.mma_sync.tray and stall.mma_sync.mill > 2 * stall.mma_sync.pantry and tensor.mma_sync.busy > 0.55
# **Waiting for the tensor core.** In the `mma.sync` kernel the pipeline has done its work: its warps hardly wait for
# HBM, L2 or shared memory. For each instruction they wait {{ stall.mma_sync.mill:.1f}} ticks for the tensor core, and
# the tensor core is at work in {{ tensor.mma_sync.busy:.0%}} of the ticks. Yet in the race the kernel reaches only
# {{ climb.mma_sync.of_peak:.0%}} of peak. Work it out by hand: with this instruction a busy tensor core reaches
# {{ rate.mma / mill.sheet:.0%}} of the data sheet's peak, it is busy in {{ tensor.mma_sync.busy:.0%}} of the ticks,
# and the clock is {{ tensor.mma_sync.clock / sheet.mhz:.0%}} of the data sheet's clock. Multiply, and you get
# {{ rate.mma / mill.sheet * tensor.mma_sync.busy * tensor.mma_sync.clock / sheet.mhz:.0%}}. The factors and the race
# were not measured at the same time, so expect the product to be near the share that was timed, not equal to it.
# /// otherwise
# In the `mma.sync` kernel, for each instruction the warps wait {{ stall.mma_sync.mill:.1f}} ticks for the tensor
# core, and {{ stall.mma_sync.tray:.1f}} for shared memory.
# ///
#
# A word of caution: such tables are about warps, and a kernel with `wgmma` needs few warps. A warp that waits for its
# order looks idle while four tensor cores work for it. So for `wgmma`, Triton and the library read the column *tensor
# cores at work*, not this table.
#
# /// exercise | Six suspects
# Your model is slow, and the counter says that the tensor pipe is hardly ever at work. Name as many causes as you
# can, and say for each of them what you would look at first.
# /// answer
#
# - The type: fp32 without TF32, or float64. Look at the operations of the tensor pipe: zero.
# - The shape: rows of A or B whose length in bytes is not a multiple of 16. Look at the kernel's name. Pad.
# - Too little work: when A has only one row, as with a batch of one, the multiply is memory-bound, and no tensor core
#   can help. Work out the intensity.
# - Too few blocks: a small C leaves most SMs empty. Count the tiles of C.
# - Not the multiply at all: elementwise kernels between the multiplies take the time. Fuse.
# - An older instruction: `mma.sync` on Hopper, WMMA, FP8 through `mma.sync`. Look for `HGMMA` and `QGMMA` in the machine code.
# ///

# %% [markdown]
# ## Before you leave the tensor core
#
# **You can now** look at a multiply and ask, in this order:
#
# 1. *Is the tensor core used?* Check the type, the shape and the instruction.
# 2. *Is it fed?* Compare the bytes that each instruction needs with what shared memory delivers.
# 3. *Does it wait?* Keep the pipeline that feeds it full, and avoid barriers.
# 4. *What does the type cost in precision?* Measure the error on a million numbers before you train with the type.
#
# **Where this leads.** Attention is two multiplies with a softmax between them, and the matrix between the two is
# larger than all the others: see [the lecture on attention](l8_attention.py). The workshop on Hopper continues from
# our `wgmma` kernel, with a warp that only carries, the copy engine, and clusters.
# [How every number here is measured](../how_we_measure.py) explains the clock and the counters.
# [The ledger](../numbers.md) lists each number with its spread.
