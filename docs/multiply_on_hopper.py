# ---
# id: by_size
# title: "The multiply, size by size"
# section: Make the model fast
# order: 105
# description: Our multiply against the library at fifteen shapes, including those of an 8B model; why one row needs a different kernel; and the model's prefill with our multiply and our attention in it.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # The multiply, size by size
#
# By the end of this page you can
#
# - tell from the three sizes of a product alone whether it is bound by bytes or by arithmetic;
# - read a scoreboard with losses in it, and say in which of its rows a better multiply would help;
# - say what a kernel for many rows leaves unused when there is only one row, and what kind of kernel avoids that;
# - say what percentage of peak, or of bandwidth, a kernel reaches, and why it is not more;
# - forecast what a swap in a model can gain, and check it.
#
# This page follows [the workshop on Hopper](workshops/w2_hopper.py). There k14 met the library at three square sizes. A model is
# not made of squares. Its grids of weights are wide or narrow, and the number of rows varies: a thousand tokens of a prompt, or a
# single one. So here is k14 at all of these shapes.
#
# *k14* is one launcher, not one kernel. Before each product the launcher makes a plan from the three sizes: it chooses one of six tiles,
# with k whole or cut into parts. Where the plan takes the largest tile and there is an SM for each tile, a separate kernel runs,
# `one_wave.cu`, in which each block makes a single tile and ends. On this page that happens three times: for the square
# of 2048, queries and output with 1024 rows, and keys and values with 4096. All other products run `k14_tuned.cu`.

# %% [markdown]
# ## Bytes or arithmetic, by hand
#
# The product of an (M, K) and a (K, N) grid takes 2 · M · N · K operations. It reads two grids and writes one: M · K + K · N + M · N numbers,
# two bytes each in bf16. Divide, and the twos cancel:
#
# $$\text{intensity} = \frac{M N K}{M K + K N + M N}$$
#
# For a square the intensity is N ÷ 3. The number of operations that the card can do for each byte, its
# [ridge](lectures/l1_what_a_gpu_is.py#the-first-roofline), is {{ ridge:.0f}}: {{ sheet.bf16:.0f}} TFLOP/s divided by
# {{ sheet.bandwidth:,.0f}} GB/s.
#
# /// define | ridge = 1000 * sheet.bf16 / sheet.bandwidth
# unit: FLOP/B
# what: bf16 operations that the card can do for each byte that it can read or write, by its data sheet
# ///
#
# /// predict | Squares of 512, 1024, 2048, 4096 and 8192. How many of the five are bound by bytes?
# - [intensity.square.n512 >= ridge] None
# - [intensity.square.n512 < ridge and intensity.square.n1024 >= ridge] One
# - [intensity.square.n1024 < ridge] Two or more
# /// reveal
# {{ intensity.square.n512:.0f}} operations per byte at 512, {{ intensity.square.n1024:.0f}} at 1024, and above the ridge, {{ ridge:.0f}},
# bytes are no longer the limit. All larger squares are bound by arithmetic.
# ///
#
# Now take a linear layer. Its weights are a fixed grid of (N, K), and M rows come in. As long as there are few rows, the weights
# make up nearly all of the bytes, and each weight takes two bytes and two operations for each row. So the intensity is about M,
# and always a little less.
#
# /// predict | The gate of the 8B model, 14336 × 4096: at how many rows does it cross the ridge?
# - [crosses.gate < 100] Less than a hundred
# - [100 <= crosses.gate < 600] A few hundred
# - [crosses.gate >= 600] More than that
# /// reveal
# {{ crosses.gate:.0f}}. For the model's smallest grid, keys or values, it takes {{ crosses.key:.0f}} rows: there x and the
# result make up a larger part of the bytes.
# ///
#
# So before any clock runs, this table tells you what each product will wait for.
#
# /// table
# columns: ["operations for each byte", "N × K", "1 row", "64", "1024", "4096"]
# rows:
#   - ["queries, output", "4096 × 4096", "{{ intensity.query.m1:.1f}}", "{{ intensity.query.m64:.0f}}", "{{ intensity.query.m1024:.0f}}", "{{ intensity.query.m4096:.0f}}"]
#   - ["keys, values", "1024 × 4096", "{{ intensity.key.m1:.1f}}", "{{ intensity.key.m64:.0f}}", "{{ intensity.key.m1024:.0f}}", "{{ intensity.key.m4096:.0f}}"]
#   - ["gate, up", "14336 × 4096", "{{ intensity.gate.m1:.1f}}", "{{ intensity.gate.m64:.0f}}", "{{ intensity.gate.m1024:.0f}}", "{{ intensity.gate.m4096:.0f}}"]
#   - ["down", "4096 × 14336", "{{ intensity.down.m1:.1f}}", "{{ intensity.down.m64:.0f}}", "{{ intensity.down.m1024:.0f}}", "{{ intensity.down.m4096:.0f}}"]
#   - ["head", "128256 × 4096", "{{ intensity.head.m1:.1f}}", "{{ intensity.head.m64:.0f}}", "{{ intensity.head.m1024:.0f}}", "{{ intensity.head.m4096:.0f}}"]
# caption: "Below {{ ridge:.0f}} a product is bound by bytes, above it by arithmetic. The shape belongs to Llama 3.1 8B, which [one token](one_token.py) takes apart."
# ///

# %% tags=["fold"]
import dataclasses

import torch
from course_kernels.gemm import heuristics, k05_triton, k14_tuned, library
from course_kernels.gemm.plans import plan_of
from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure import Competitor, compare, quantity, record
from course_kernels.measure.bursts import Race
from course_kernels.measure.machine import machine_for
from course_kernels.problem import Workload
from course_models.config import LLAMA_8B

c = LLAMA_8B
card = torch.cuda.get_device_name()
data_sheet = machine_for(card)
if data_sheet is None:
    raise RuntimeError(
        f"{card}: no data sheet in course_kernels/measure/machine.py"
    )
PEAK, BANDWIDTH = data_sheet.peak_tflops["bf16"], data_sheet.bandwidth_gb_per_s
RIDGE = 1000 * PEAK / BANDWIDTH
SMS = torch.cuda.get_device_properties(0).multi_processor_count

SQUARES = (512, 1024, 2048, 4096, 8192)
GRIDS = {  # N and K of the weights; queries are as large as output, keys as values, gate as up
    "query": (c.heads * c.head_dim, c.width),
    "key": (c.kv_heads * c.head_dim, c.width),
    "gate": (c.hidden, c.width),
    "down": (c.width, c.hidden),
    "head": (c.vocab, c.width),
}
ROWS = (1, 64, 1024, 4096)


def intensity(M, N, K):
    """Operations for each byte, in bf16."""
    return quantity(M * N * K / (M * K + K * N + M * N), "FLOP/B")


record(
    sheet={
        "bf16": quantity(PEAK, "TFLOP/s", "given"),
        "bandwidth": quantity(BANDWIDTH, "GB/s", "given"),
        "sms": quantity(SMS),
    },
    intensity={
        "square": {f"n{N}": intensity(N, N, N) for N in SQUARES},
        **{
            name: {f"m{M}": intensity(M, N, K) for M in ROWS}
            for name, (N, K) in GRIDS.items()
        },
    },
    crosses={
        name: quantity(RIDGE / (1 - RIDGE * (1 / N + 1 / K)), "rows")
        for name, (N, K) in GRIDS.items()
    },
)

# %% [markdown]
# ## Five squares
#
# Again there are two ways of timing, and this time the size decides which of them is useful. In a
# [burst](workshops/w2_hopper.py#two-clocks) the launches follow one another without a gap, all of them queued before
# the first begins, on numbers that L2 still holds. A product of 512 then never touches memory. In a model the rows of a
# product may still be in L2, from the kernel before; its weights are not, because all the other layers have passed
# through since. So 512 and 1024 are timed as on all other pages, with a cold L2. From 2048 on we take bursts: {{ rounds:.0f}}
# of them, each after a rest of {{ rest:.1f}} s.
#
# All of these products have B stored as (K, N): *NN*, with neither of the two transposed, because that is what our
# Triton kernel takes. *The library* is the better of cuBLAS and of cuBLASLt's eight best guesses, each timed.
#
# /// predict | At the worst of the five sizes, what share of the library's speed does our kernel reach?
# - [min(lead.n512, lead.n1024, lead.n2048, lead.n4096, lead.n8192) < 0.6] Less than three fifths
# - [0.6 <= min(lead.n512, lead.n1024, lead.n2048, lead.n4096, lead.n8192) < 0.8] Three fifths or more, but less than four fifths
# - [min(lead.n512, lead.n1024, lead.n2048, lead.n4096, lead.n8192) >= 0.8] Four fifths, or more
# /// reveal
# {{ lead.n512:.2f}} times the library's speed at 512, {{ lead.n1024:.2f}} at 1024, {{ lead.n2048:.2f}} at 2048, {{ lead.n4096:.2f}} at 4096 and {{ lead.n8192:.2f}} at 8192.
#
# /// table
# columns: ["TFLOP/s, NN", "ours, k14", "cuBLAS", "cuBLASLt, its best", "k05, Triton", "ours over the better library", "ours, % of peak"]
# rows:
#   - ["512, cold", "{{ small.n512.tuned.tflops:.0f}}", "{{ small.n512.cublas.tflops:.0f}}", "{{ small.n512.cublaslt.tflops:.0f}}", "{{ small.n512.triton.tflops:.0f}}", "{{ lead.n512:.3f}}", "{{ small.n512.tuned.of_peak:.0%}}"]
#   - ["1024, cold", "{{ small.n1024.tuned.tflops:.0f}}", "{{ small.n1024.cublas.tflops:.0f}}", "{{ small.n1024.cublaslt.tflops:.0f}}", "{{ small.n1024.triton.tflops:.0f}}", "{{ lead.n1024:.3f}}", "{{ small.n1024.tuned.of_peak:.0%}}"]
#   - ["2048, bursts", "{{ square.n2048.tuned:.0f}}", "{{ square.n2048.cublas:.0f}}", "{{ square.n2048.cublaslt:.0f}}", "{{ square.n2048.triton:.0f}}", "{{ lead.n2048:.3f}}", "{{ square.n2048.tuned / sheet.bf16:.0%}}"]
#   - ["4096, bursts", "{{ square.n4096.tuned:.0f}}", "{{ square.n4096.cublas:.0f}}", "{{ square.n4096.cublaslt:.0f}}", "{{ square.n4096.triton:.0f}}", "{{ lead.n4096:.3f}}", "{{ square.n4096.tuned / sheet.bf16:.0%}}"]
#   - ["8192, bursts", "{{ square.n8192.tuned:.0f}}", "{{ square.n8192.cublas:.0f}}", "{{ square.n8192.cublaslt:.0f}}", "{{ square.n8192.triton:.0f}}", "{{ lead.n8192:.3f}}", "{{ square.n8192.tuned / sheet.bf16:.0%}}"]
# caption: "M = N = K, bf16, random normal inputs."
# ///
#
# Read the table with care: the same kernel differs from burst to burst by a few percent.
#
# /// claim | min(lead.n1024, lead.n2048, lead.n4096, lead.n8192) > 0.85 and max(lead.n1024, lead.n2048, lead.n4096, lead.n8192) < 1.15
# From 1024 on, ours and the library are close: ours reaches {{ lead.n1024:.2f}}, {{ lead.n2048:.2f}}, {{ lead.n4096:.2f}} and {{ lead.n8192:.2f}}
# of the library's speed. [W2](workshops/w2_hopper.py#the-scoreboard) has the same race, timed in two ways. And the opponent is
# a library of many kernels, at the best of its nine tries.
# /// otherwise
# From 1024 on ours reaches {{ lead.n1024:.2f}}, {{ lead.n2048:.2f}}, {{ lead.n4096:.2f}} and {{ lead.n8192:.2f}} of the library's speed.
# ///
#
# /// claim | lead.n512 < 1.04
# At **512** ours reaches {{ lead.n512:.2f}} of the library's speed. Even with the smallest tiles, a C of this size is
# {{ blocks.n512:.0f}} blocks, for {{ sheet.sms:.0f}} SMs.
# /// otherwise
# At **512** ours reaches {{ lead.n512:.2f}} times the library's speed, with {{ blocks.n512:.0f}} blocks for {{ sheet.sms:.0f}} SMs.
# ///
# ///
#
# /// define | lead.n512 = min(small.n512.cublas.us, small.n512.cublaslt.us) / small.n512.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 512, bf16, NN, cold L2
# ///
#
# /// define | lead.n1024 = min(small.n1024.cublas.us, small.n1024.cublaslt.us) / small.n1024.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 1024, bf16, NN, cold L2
# ///
#
# /// define | lead.n2048 = square.n2048.tuned / max(square.n2048.cublas, square.n2048.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 2048, bf16, NN, in bursts
# ///
#
# /// define | lead.n4096 = square.n4096.tuned / max(square.n4096.cublas, square.n4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | lead.n8192 = square.n8192.tuned / max(square.n8192.cublas, square.n8192.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///

# %% tags=["fold"]
GUESSES = 8  # of cuBLASLt's heuristics
ROUNDS, REST_S = 5, 0.1  # of bursts, and before each
NAMES = {
    "tuned": "gemm/k14_tuned",
    "cublas": "gemm/library.cublas",
    "cublaslt": "cuBLASLt, its best",
    "triton": "gemm/k05_triton",
}


def turned(a, b):
    """NT: the same B, stored as (N, K), which is how a linear layer keeps its weights."""
    return a, b.t().contiguous().t()


def as_it_is(a, b):
    """NN: B is stored as (K, N)."""
    return a, b


def guess(number):
    """One of cuBLASLt's guesses; it is bound to its inputs before it is timed."""

    def bound(a, b):
        ways = heuristics.ways(a, b, GUESSES)
        if number >= len(ways):
            raise ValueError(f"cuBLASLt: {len(ways)} guesses")
        return ways[number]

    return bound


def best_guess(w, lay):
    """The number of the fastest of cuBLASLt's guesses that are right, by short bursts."""
    field = {str(number): guess(number) for number in range(GUESSES)}
    race = Race(field, PROBLEM, w, lay=lay, bind=field, optional=field)
    race.burst(rounds=2, rest_s=0.02)
    return int(race.fastest(race.names))


def kept(number):
    """That guess as a function of its inputs, which asks again only when they change."""
    last = {}

    def multiply(a, b):
        key = a.data_ptr(), b.data_ptr(), a.shape, b.shape
        if key not in last:
            last.clear()
            last[key] = guess(number)(a, b)
        return last[key]()

    return multiply


def size(M, N, K):
    """A product in bf16."""
    return Workload.of("bfloat16", M=M, N=N, K=K)


def in_bursts(w, lay, more):
    """Everybody who takes this layout, checked, then six bursts each."""
    field = {"tuned": k14_tuned.gemm, "cublas": library.cublas, **more}
    field["cublaslt"] = guess(best_guess(w, lay))
    race = Race(field, PROBLEM, w, lay=lay, bind=("cublaslt",))
    return race.burst(rounds=ROUNDS, rest_s=REST_S)


def when_cold(w, lay, problem, more):
    """The same by the clock of all other pages."""
    field = {
        "tuned": k14_tuned.gemm,
        "cublas": library.cublas,
        "cublaslt": kept(best_guess(w, lay)),
        **more,
    }
    turned_too = "" if problem is PROBLEM else ", NT"
    return compare(
        {
            name: Competitor(NAMES[name] + turned_too, problem, way)
            for name, way in field.items()
        },
        w,
        seconds=0.05,
    )


ones = torch.ones(64, 64, dtype=torch.bfloat16, device="cuda")
library.cublas(ones, ones)  # from here on torch has loaded what makes the guesses
TRITON = {"triton": k05_triton.gemm}
record(
    rounds=quantity(ROUNDS, how="given"),
    rest=quantity(REST_S, "s", "given"),
    small={
        f"n{N}": when_cold(size(N, N, N), as_it_is, PROBLEM, TRITON)
        for N in SQUARES[:2]
    },
    square={
        f"n{N}": in_bursts(size(N, N, N), as_it_is, TRITON) for N in SQUARES[2:]
    },
    blocks={
        "n512": quantity(plan_of(512, 512, 512, SMS).grid),
        **{
            name: quantity(plan_of(1, N, K, SMS).grid)
            for name, (N, K) in GRIDS.items()
        },
    },
)

# %% [markdown]
# ## Many rows: the layers of a model
#
# A prefill of 1024 tokens brings 1024 rows to every grid of the model; four prompts of that length bring 4096. Now the weights
# are stored as (N, K), as in every checkpoint: *NT*, with the second matrix transposed. Our Triton kernel does not accept that
# layout.
#
# /// predict | Ten products: five grids, with 1024 and with 4096 rows. In how many of them is ours ahead of the library?
# - [ahead.all >= 8.5] In nine or ten
# - [4.5 <= ahead.all < 8.5] In five to eight
# - [ahead.all < 4.5] In four or fewer
# /// reveal
# In {{ ahead.all:.0f}}. But look at the last column before you count: a lead or a loss of less than bursts differ from one another decides nothing.
#
# /// table
# columns: ["TFLOP/s, NT, bursts", "ours, k14", "cuBLAS", "cuBLASLt, its best", "ours over the better library"]
# rows:
#   - ["queries, output: 1024 rows", "{{ many.query.m1024.tuned:.0f}}", "{{ many.query.m1024.cublas:.0f}}", "{{ many.query.m1024.cublaslt:.0f}}", "{{ over.query.m1024:.3f}}"]
#   - ["queries, output: 4096 rows", "{{ many.query.m4096.tuned:.0f}}", "{{ many.query.m4096.cublas:.0f}}", "{{ many.query.m4096.cublaslt:.0f}}", "{{ over.query.m4096:.3f}}"]
#   - ["keys, values: 1024 rows", "{{ many.key.m1024.tuned:.0f}}", "{{ many.key.m1024.cublas:.0f}}", "{{ many.key.m1024.cublaslt:.0f}}", "{{ over.key.m1024:.3f}}"]
#   - ["keys, values: 4096 rows", "{{ many.key.m4096.tuned:.0f}}", "{{ many.key.m4096.cublas:.0f}}", "{{ many.key.m4096.cublaslt:.0f}}", "{{ over.key.m4096:.3f}}"]
#   - ["gate, up: 1024 rows", "{{ many.gate.m1024.tuned:.0f}}", "{{ many.gate.m1024.cublas:.0f}}", "{{ many.gate.m1024.cublaslt:.0f}}", "{{ over.gate.m1024:.3f}}"]
#   - ["gate, up: 4096 rows", "{{ many.gate.m4096.tuned:.0f}}", "{{ many.gate.m4096.cublas:.0f}}", "{{ many.gate.m4096.cublaslt:.0f}}", "{{ over.gate.m4096:.3f}}"]
#   - ["down: 1024 rows", "{{ many.down.m1024.tuned:.0f}}", "{{ many.down.m1024.cublas:.0f}}", "{{ many.down.m1024.cublaslt:.0f}}", "{{ over.down.m1024:.3f}}"]
#   - ["down: 4096 rows", "{{ many.down.m4096.tuned:.0f}}", "{{ many.down.m4096.cublas:.0f}}", "{{ many.down.m4096.cublaslt:.0f}}", "{{ over.down.m4096:.3f}}"]
#   - ["head: 1024 rows", "{{ many.head.m1024.tuned:.0f}}", "{{ many.head.m1024.cublas:.0f}}", "{{ many.head.m1024.cublaslt:.0f}}", "{{ over.head.m1024:.3f}}"]
#   - ["head: 4096 rows", "{{ many.head.m4096.tuned:.0f}}", "{{ many.head.m4096.cublas:.0f}}", "{{ many.head.m4096.cublaslt:.0f}}", "{{ over.head.m4096:.3f}}"]
# caption: "bf16, random normal inputs, {{ rounds:.0f}} bursts, each after a rest of {{ rest:.1f}} s."
# ///
#
# Grid by grid:
#
# /// claim | over.gate.m1024 < 0.96
# First a **loss**: gate and up, with 1024 rows. Ours reaches {{ over.gate.m1024:.3f}} of the library's speed.
# With large tiles there would be 448 of them, 8 down and 56 across, on {{ sheet.sms:.0f}} SMs: three full rounds take 3 × 132 =
# 396 tiles, and 448 − 396 = 52 are left for a fourth round, which is two fifths full. So our plan takes tiles of half the size:
# 896 of them, in seven rounds of 128, with four SMs left out. Then all rounds are full, but a small tile fetches more
# for the same result. The other remedy is in [W2](workshops/w2_hopper.py): let idle SMs begin the tiles of others. Our
# kernel has a switch for that; it was not raced for this shape.
# /// otherwise
# Gate and up, with 1024 rows: ours reaches {{ over.gate.m1024:.3f}} times the library's speed.
# ///
#
# In the other nine products ours reaches from
# {{ min(over.query.m1024, over.query.m4096, over.key.m1024, over.key.m4096, over.gate.m4096, over.down.m1024, over.down.m4096, over.head.m1024, over.head.m4096):.3f}}
# to
# {{ max(over.query.m1024, over.query.m4096, over.key.m1024, over.key.m4096, over.gate.m4096, over.down.m1024, over.down.m4096, over.head.m1024, over.head.m4096):.3f}}
# times the library's speed. Here *the library* is the best of nine tries, whereas ours had a single try.
# ///
#
# /// define | over.query.m1024 = many.query.m1024.tuned / max(many.query.m1024.cublas, many.query.m1024.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 1024 rows, queries, output of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.query.m4096 = many.query.m4096.tuned / max(many.query.m4096.cublas, many.query.m4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096 rows, queries, output of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.key.m1024 = many.key.m1024.tuned / max(many.key.m1024.cublas, many.key.m1024.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 1024 rows, keys, values of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.key.m4096 = many.key.m4096.tuned / max(many.key.m4096.cublas, many.key.m4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096 rows, keys, values of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.gate.m1024 = many.gate.m1024.tuned / max(many.gate.m1024.cublas, many.gate.m1024.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 1024 rows, gate, up of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.gate.m4096 = many.gate.m4096.tuned / max(many.gate.m4096.cublas, many.gate.m4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096 rows, gate, up of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.down.m1024 = many.down.m1024.tuned / max(many.down.m1024.cublas, many.down.m1024.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 1024 rows, down of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.down.m4096 = many.down.m4096.tuned / max(many.down.m4096.cublas, many.down.m4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096 rows, down of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.head.m1024 = many.head.m1024.tuned / max(many.head.m1024.cublas, many.head.m1024.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 1024 rows, head of the 8B model, bf16, NT, in bursts
# ///
#
# /// define | over.head.m4096 = many.head.m4096.tuned / max(many.head.m4096.cublas, many.head.m4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096 rows, head of the 8B model, bf16, NT, in bursts
# ///
#
# Do not simply add these rows up. In a layer, gate, up and down make up most of the work; a lead or a loss at keys and values is in a corner.
#
# ### How near to the peak, and why no nearer?
#
# /// exercise | The course's question | 4 minutes
# Divide by the {{ sheet.bf16:.0f}} TFLOP/s of the data sheet: keys and gate with 1024 rows, down with 4096. (For the
# squares the first table already has the percentages.) Then say for each, and for the squares, what keeps it from
# reaching the rest: too little to do, rounds, or the clock?
# /// answer
# /// table
# columns: ["% of peak", "ours, k14", "the better library"]
# rows:
#   - ["keys, values: 1024 rows", "{{ many.key.m1024.tuned / sheet.bf16:.0%}}", "{{ max(many.key.m1024.cublas, many.key.m1024.cublaslt) / sheet.bf16:.0%}}"]
#   - ["gate, up: 1024 rows", "{{ many.gate.m1024.tuned / sheet.bf16:.0%}}", "{{ max(many.gate.m1024.cublas, many.gate.m1024.cublaslt) / sheet.bf16:.0%}}"]
#   - ["down: 4096 rows", "{{ many.down.m4096.tuned / sheet.bf16:.0%}}", "{{ max(many.down.m4096.cublas, many.down.m4096.cublaslt) / sheet.bf16:.0%}}"]
# caption: From the table above, against {{ sheet.bf16:.0f}} TFLOP/s.
# ///
#
# - **Small products have too little to do.** The square of 512 is {{ blocks.n512:.0f}} blocks, and keys and values with 1024
#   rows are 128 small tiles: a single round, in which the way to the first product, and from the last product to memory, takes a large
#   part of the time. The library pays for that, too.
# - **Large products all end at about the same share**, ours and the library's. No clock was read in the bursts on this
#   page. [W2](workshops/w2_hopper.py#power-decides) read the clock with k14 at 8192, where the kernel ran for seconds:
#   there the card is at its power limit, and the clock drops. The peak assumes a clock that the card cannot hold.
# - **In between, it is a question of rounds**: how many tiles there are for {{ sheet.sms:.0f}} SMs, and how full the last round
#   is. Gate and up are an example.
#
# This page cannot say how much of what is missing is the clock and how much is waiting, since no counter was read during a burst.
# ///

# %% tags=["fold"]
many = {
    name: {f"m{M}": in_bursts(size(M, N, K), turned, {}) for M in ROWS[2:]}
    for name, (N, K) in GRIDS.items()
}


def is_ahead(found):
    """Whether our median is above both of the library's."""
    rate = {name: samples.quantiles["0.5"] for name, samples in found.items()}
    return rate["tuned"] > max(rate["cublas"], rate["cublaslt"])


record(
    many=many,
    ahead={
        "all": quantity(
            sum(is_ahead(found) for of in many.values() for found in of.values())
        )
    },
)

# %% [markdown]
# ## One row, and 64
#
# Now take a single token. Each grid is read once and multiplied with one row; nothing is used twice, so bytes are the limit. The
# question is no longer how many TFLOP/s a kernel reaches, but what share of the memory's bandwidth. A burst would be wrong here.
# L2 would hold the small grids whole, whereas in a model the other layers have long pushed them out. So we time as on all
# other pages, with a cold L2.
#
# /// exercise | The floor of one row | 3 minutes
# Take the queries, 4096 × 4096 in bf16, with one row. How many bytes are the weights? How long do they take at
# {{ sheet.bandwidth:,.0f}} GB/s? And how long would the operations take at {{ sheet.bf16:.0f}} TFLOP/s?
# /// answer
# 4096 × 4096 × 2 = 33 554 432 bytes, {{ floor.query:.1f}} µs. There are as many operations as bytes, because a weight in bf16 takes
# two of each: 33.6 million, done in {{ floor.operations * 1000:.0f}} ns. Nobody waits for the tensor cores.
# ///
#
# /// predict | One row, the gate: what percentage of the memory's bandwidth does our kernel reach, although it was made for many rows?
# - [few.gate.m1.tuned.of_peak < 0.4] Less than 40
# - [0.4 <= few.gate.m1.tuned.of_peak < 0.7] Between 40 and 70
# - [few.gate.m1.tuned.of_peak >= 0.7] More than 70
# /// reveal
# {{ few.gate.m1.tuned.of_peak:.0%}}; cuBLAS reaches {{ few.gate.m1.cublas.of_peak:.0%}}.
#
# /// table
# columns: ["% of the bandwidth, NT, cold", "ours, k14", "cuBLAS", "cuBLASLt, its best", "ours over the better library"]
# rows:
#   - ["queries, output: 1 row", "{{ few.query.m1.tuned.of_peak:.0%}}", "{{ few.query.m1.cublas.of_peak:.0%}}", "{{ few.query.m1.cublaslt.of_peak:.0%}}", "{{ few_over.query.m1:.2f}}"]
#   - ["queries, output: 64 rows", "{{ few.query.m64.tuned.of_peak:.0%}}", "{{ few.query.m64.cublas.of_peak:.0%}}", "{{ few.query.m64.cublaslt.of_peak:.0%}}", "{{ few_over.query.m64:.2f}}"]
#   - ["keys, values: 1 row", "{{ few.key.m1.tuned.of_peak:.0%}}", "{{ few.key.m1.cublas.of_peak:.0%}}", "{{ few.key.m1.cublaslt.of_peak:.0%}}", "{{ few_over.key.m1:.2f}}"]
#   - ["keys, values: 64 rows", "{{ few.key.m64.tuned.of_peak:.0%}}", "{{ few.key.m64.cublas.of_peak:.0%}}", "{{ few.key.m64.cublaslt.of_peak:.0%}}", "{{ few_over.key.m64:.2f}}"]
#   - ["gate, up: 1 row", "{{ few.gate.m1.tuned.of_peak:.0%}}", "{{ few.gate.m1.cublas.of_peak:.0%}}", "{{ few.gate.m1.cublaslt.of_peak:.0%}}", "{{ few_over.gate.m1:.2f}}"]
#   - ["gate, up: 64 rows", "{{ few.gate.m64.tuned.of_peak:.0%}}", "{{ few.gate.m64.cublas.of_peak:.0%}}", "{{ few.gate.m64.cublaslt.of_peak:.0%}}", "{{ few_over.gate.m64:.2f}}"]
#   - ["down: 1 row", "{{ few.down.m1.tuned.of_peak:.0%}}", "{{ few.down.m1.cublas.of_peak:.0%}}", "{{ few.down.m1.cublaslt.of_peak:.0%}}", "{{ few_over.down.m1:.2f}}"]
#   - ["down: 64 rows", "{{ few.down.m64.tuned.of_peak:.0%}}", "{{ few.down.m64.cublas.of_peak:.0%}}", "{{ few.down.m64.cublaslt.of_peak:.0%}}", "{{ few_over.down.m64:.2f}}"]
#   - ["head: 1 row", "{{ few.head.m1.tuned.of_peak:.0%}}", "{{ few.head.m1.cublas.of_peak:.0%}}", "{{ few.head.m1.cublaslt.of_peak:.0%}}", "{{ few_over.head.m1:.2f}}"]
#   - ["head: 64 rows", "{{ few.head.m64.tuned.of_peak:.0%}}", "{{ few.head.m64.cublas.of_peak:.0%}}", "{{ few.head.m64.cublaslt.of_peak:.0%}}", "{{ few_over.head.m64:.2f}}"]
# caption: "Each percentage is the bytes that must move, each counted once, divided by the time, as a share of the data sheet's bandwidth. The last column is a ratio of speeds."
# ///
#
# Grid by grid, with one row:
#
# /// claim | 0.85 < few_over.query.m1 < 1.1
# **Queries, output**: level, or nearly. Ours reaches {{ few_over.query.m1:.2f}} of the library's speed, in {{ blocks.query:.0f}} blocks.
# /// otherwise
# **Queries, output**: ours reaches {{ few_over.query.m1:.2f}} times the library's speed, in {{ blocks.query:.0f}} blocks.
# ///
#
# /// claim | 0.8 < few_over.key.m1 < 1.15
# **Keys, values**: level, or nearly. Ours reaches {{ few_over.key.m1:.2f}} of the library's speed, in {{ blocks.key:.0f}}
# blocks; a kernel that moves so few bytes spends most of its time on its beginning and its end.
# /// otherwise
# **Keys, values**: ours reaches {{ few_over.key.m1:.2f}} times the library's speed, in {{ blocks.key:.0f}} blocks.
# ///
#
# **Gate, up**: ours reaches {{ few_over.gate.m1:.2f}} times the library's speed, in {{ blocks.gate:.0f}} blocks.
#
# /// claim | 0.9 < few_over.down.m1 < 1.1
# **Down**: level, or nearly. Ours reaches {{ few_over.down.m1:.2f}} of the library's speed, in {{ blocks.down:.0f}} blocks.
# /// otherwise
# **Down**: ours reaches {{ few_over.down.m1:.2f}} times the library's speed, in {{ blocks.down:.0f}} blocks.
# ///
#
# /// claim | 0.9 < few_over.head.m1 < 1.1
# **Head**: level, or nearly. Ours reaches {{ few_over.head.m1:.2f}} of the library's speed, in {{ blocks.head:.0f}} blocks.
# /// otherwise
# **Head**: ours reaches {{ few_over.head.m1:.2f}} times the library's speed, in {{ blocks.head:.0f}} blocks.
# ///
# ///
#
# /// define | few_over.query.m1 = min(few.query.m1.cublas.us, few.query.m1.cublaslt.us) / few.query.m1.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, one row, queries, output of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.query.m64 = min(few.query.m64.cublas.us, few.query.m64.cublaslt.us) / few.query.m64.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 64 rows, queries, output of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.key.m1 = min(few.key.m1.cublas.us, few.key.m1.cublaslt.us) / few.key.m1.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, one row, keys, values of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.key.m64 = min(few.key.m64.cublas.us, few.key.m64.cublaslt.us) / few.key.m64.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 64 rows, keys, values of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.gate.m1 = min(few.gate.m1.cublas.us, few.gate.m1.cublaslt.us) / few.gate.m1.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, one row, gate, up of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.gate.m64 = min(few.gate.m64.cublas.us, few.gate.m64.cublaslt.us) / few.gate.m64.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 64 rows, gate, up of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.down.m1 = min(few.down.m1.cublas.us, few.down.m1.cublaslt.us) / few.down.m1.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, one row, down of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.down.m64 = min(few.down.m64.cublas.us, few.down.m64.cublaslt.us) / few.down.m64.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 64 rows, down of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.head.m1 = min(few.head.m1.cublas.us, few.head.m1.cublaslt.us) / few.head.m1.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, one row, head of the 8B model, bf16, NT, cold L2
# ///
#
# /// define | few_over.head.m64 = min(few.head.m64.cublas.us, few.head.m64.cublaslt.us) / few.head.m64.tuned.us
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 64 rows, head of the 8B model, bf16, NT, cold L2
# ///
#
# /// exercise | 64 rows for the price of how many? | 2 minutes
# Before you look at the table again: our kernel takes 64 rows instead of one through the head. How many times as long does it take, and why?
# /// answer
# {{ few.head.m64.tuned.us / few.head.m1.tuned.us:.2f}} times: {{ few.head.m1.tuned.us:.0f}} µs and {{ few.head.m64.tuned.us:.0f}}
# µs. The same weights are read once, and the tiles are the same: what was a row of zeros is now a real row. So if you serve many
# readers, let them share a pass.
# ///
#
# ### Why not more of the bandwidth?
#
# Keep the two columns apart. Against the library our kernel loses little or nothing with one row. Against the *bytes* both kernels
# lose, and the smaller the grid, the more they lose: {{ few.head.m1.tuned.of_peak:.0%}} of the bandwidth at the head, {{ few.gate.m1.tuned.of_peak:.0%}}
# at the gate, {{ few.key.m1.tuned.of_peak:.0%}} at keys and values. The clock is not the reason: every reading in this race is {{ few.gate.m1.tuned.sm_mhz:.0f}}
# MHz, and no limit was reported. Then what is the reason? Go through our kernel with one row in your hand.
#
# - **The tile.** The shortest tile has 64 rows. One of them is real; TMA fills the other 63 with zeros. They cost no bytes from
#   memory, and the tensor cores have nothing better to do. So far, no harm done.
# - **The places.** But the zeros take up room in the ring. A pair of tiles is (64 + 128) × 64 numbers, 24 KiB, and 8 KiB of these
#   are zeros and one row. By [Little's law](lectures/l3_memory.py#how-many-must-be-walking) that room should hold weights that are
#   in flight.
# - **The blocks.** A block has 128 columns of C or more. Keys have 1024: eight tiles. Cut into eight parts along k, which is called
#   *split-K*, they make {{ blocks.key:.0f}} blocks, for {{ sheet.sms:.0f}} SMs, and then a second kernel must add the parts. An SM without a
#   block requests nothing from memory.
# - **The one thread.** The producer asks for whole tiles, waits, and asks again. That suits tiles that are used 64 times over.
#   Here each is used once.
#
# A kernel for one row has a different shape. There is no tile of C at all. Each warp takes a few rows of the weights, reads them in
# vectors of 16 bytes, with many loads in flight, multiplies them by the one row of x, and adds up by shuffles. It has no tensor core,
# no ring and no roles: it is a reduction, as in [L5](lectures/l5_the_top_of_the_ladder.py), with weights in it. Such a kernel is called *matrix
# times vector*, GEMV.
#
# Is it worth it? We did not race such a kernel here, so look at two other pages. [W4](workshops/w4_serving.py#shorter-weights)
# has a kernel for few rows, on gate and up as one grid: with one row it takes {{ w4.few.bf16.m1.us:.1f}} µs, where
# cuBLAS takes {{ w4.few.cublas.m1.us:.1f}}. By itself, then, such a kernel gains little. It gains in combination: in [one
# token](one_token.py#five-kernels-a-layer) such kernels also do the norm, the turn and the sum, and begin before the previous
# kernel has ended, and the step goes from {{ one_token.rate.our_attention:.0f}} tokens/s to
# {{ one_token.rate.our_step:.0f}}.

# %% tags=["fold"]
NT = dataclasses.replace(
    PROBLEM,
    make_inputs=lambda *how: turned(*PROBLEM.make_inputs(*how)),
)


record(
    few={
        name: {f"m{M}": when_cold(size(M, N, K), turned, NT, {}) for M in ROWS[:2]}
        for name, (N, K) in GRIDS.items()
    },
    floor={
        "query": quantity(2 * 4096**2 / BANDWIDTH / 1e3, "µs"),
        "operations": quantity(2 * 4096**2 / PEAK / 1e6, "µs"),
    },
)

# %% [markdown]
# ## In the model
#
# Take a prefill of {{ context:.0f}} tokens through the 8B model, as in [one token](one_token.py#prefill-the-same-weights-a-thousand-rows).
# You can swap its parts. The base uses the library: cuBLAS for every product, and PyTorch's fused attention. There are three
# swaps: our multiply; our attention ([k06](attention_on_hopper.py#the-whole-kernel), which understands shared heads, so nothing is
# copied out for it); and both. A fifth way is `torch.compile`, with the library's multiply and attention.
#
# The code that swaps the multiply says in which cases it leaves the work to torch's linear. With fewer than {{ least_rows:.0f}} rows, or where the
# copy engine does not accept the sizes or addresses, ours does not run. In a prefill that affects only the head:
# the answer begins with one token, so the head has one row.
#
# /// source | src/course_models/hopper_operators.py
# fold: The swaps
# ///
#
# ### The forecast
#
# You have a scoreboard, so use it. How many operations does each kind of grid need in this prefill, and how long do they take at the
# rates above?
#
# /// table
# columns: ["products of the prefill", "TFLOP", "ms by cuBLAS", "ms by ours"]
# rows:
#   - ["queries and output", "{{ work.query:.2f}}", "{{ work.query / many.query.m1024.cublas * 1000:.2f}}", "{{ work.query / many.query.m1024.tuned * 1000:.2f}}"]
#   - ["keys and values", "{{ work.key:.2f}}", "{{ work.key / many.key.m1024.cublas * 1000:.2f}}", "{{ work.key / many.key.m1024.tuned * 1000:.2f}}"]
#   - ["gate and up", "{{ work.gate:.2f}}", "{{ work.gate / many.gate.m1024.cublas * 1000:.2f}}", "{{ work.gate / many.gate.m1024.tuned * 1000:.2f}}"]
#   - ["down", "{{ work.down:.2f}}", "{{ work.down / many.down.m1024.cublas * 1000:.2f}}", "{{ work.down / many.down.m1024.tuned * 1000:.2f}}"]
#   - ["**all of them**", "", "{{ forecast.cublas:.2f}}", "{{ forecast.ours:.2f}}"]
#   - ["attention, for comparison", "{{ work.attention:.2f}}", "", ""]
# caption: "All 32 layers, 1024 rows. The rates were measured in bursts, with a high clock: a prefill that runs for a while runs at a lower clock, with either kernel."
# ///
#
# /// define | forecast.cublas = 1000 * (work.query / many.query.m1024.cublas + work.key / many.key.m1024.cublas + work.gate / many.gate.m1024.cublas + work.down / many.down.m1024.cublas)
# unit: ms
# what: time of the products of a prefill of 1024 tokens, all layers, by cuBLAS, from the bursts above
# ///
#
# /// define | forecast.ours = 1000 * (work.query / many.query.m1024.tuned + work.key / many.key.m1024.tuned + work.gate / many.gate.m1024.tuned + work.down / many.down.m1024.tuned)
# unit: ms
# what: time of the products of a prefill of 1024 tokens, all layers, by k14_tuned, from the bursts above
# ///
#
# /// define | gain.multiply = swap.library.us / swap.our_multiply.us
# unit: ×
# what: speed of a captured prefill with our multiply over that with the library's, 8B shape, 1024 tokens
# ///
#
# /// define | gain.attention = swap.library.us / swap.our_attention.us
# unit: ×
# what: speed of a captured prefill with our attention over that with the library's, 8B shape, 1024 tokens
# ///
#
# /// define | gain.both = swap.library.us / swap.both.us
# unit: ×
# what: speed of a captured prefill with our multiply and attention over that with the library's, 8B shape, 1024 tokens
# ///
#
# ### Whose clock?
#
# There is one trap before the bars. Called line by line from Python, this prefill makes well over a thousand launches, and the host
# needs about as long to write them as the card needs to carry them out: {{ swap.library_eager.ms:.1f}} ms, against {{ swap.library.ms:.1f}}
# ms in a graph. A race between two kernels would then say as much about Python as about the kernels. So each of the five
# variants is captured in a [CUDA graph](lectures/l2_the_cuda_model.py#many-orders-written-once-graphs): all orders on
# one slip, written before the clock starts. What remains is the card's own time.
#
# /// predict | With our multiply in place of cuBLAS, and nothing else changed: what happens to the whole prefill?
# - [gain.multiply < 0.9] It gets slower by more than a tenth
# - [0.9 <= gain.multiply < 1.08] Little: a few percent, one way or the other
# - [gain.multiply >= 1.08] It gets faster by more than that
# /// reveal
# {{ gain.multiply:.3f}} times the speed. Our attention alone: {{ gain.attention:.3f}}. Both: {{ gain.both:.3f}}.
#
# /// chart | bars
# title: "The same model, the same card: prefill of {{ context:.0f}} tokens, each in a CUDA graph"
# x_label: "TFLOP/s"
# bars:
#   - {name: swap.library.tflops, label: "the library's multiply and attention"}
#   - {name: swap.our_multiply.tflops, label: our multiply}
#   - {name: swap.our_attention.tflops, label: our attention}
#   - {name: swap.both.tflops, label: both of ours}
#   - {name: swap.compiled.tflops, label: torch.compile}
# references:
#   - {label: data sheet, value: sheet.bf16}
# alt: "Bars in TFLOP/s for a prefill of {{ context:.0f}} tokens, each captured in a CUDA graph: the library's multiply and attention {{ swap.library.tflops:.0f}}, our multiply {{ swap.our_multiply.tflops:.0f}}, our attention {{ swap.our_attention.tflops:.0f}}, both of ours {{ swap.both.tflops:.0f}}, torch.compile {{ swap.compiled.tflops:.0f}}. A line marks the data sheet's peak, {{ sheet.bf16:.0f}}."
# caption: "The shape of Llama 3.1 8B, random weights, bf16, one prompt."
# ///
#
# /// table
# columns: [prefill, "ms", "TFLOP/s", "% of peak"]
# rows:
#   - ["the library's multiply and attention", "{{ swap.library.ms:.2f}}", "{{ swap.library.tflops:.0f}}", "{{ swap.library.of_peak:.0%}}"]
#   - ["our multiply", "{{ swap.our_multiply.ms:.2f}}", "{{ swap.our_multiply.tflops:.0f}}", "{{ swap.our_multiply.of_peak:.0%}}"]
#   - ["our attention", "{{ swap.our_attention.ms:.2f}}", "{{ swap.our_attention.tflops:.0f}}", "{{ swap.our_attention.of_peak:.0%}}"]
#   - ["both of ours", "{{ swap.both.ms:.2f}}", "{{ swap.both.tflops:.0f}}", "{{ swap.both.of_peak:.0%}}"]
#   - ["torch.compile", "{{ swap.compiled.ms:.2f}}", "{{ swap.compiled.tflops:.0f}}", "{{ swap.compiled.of_peak:.0%}}"]
# ///
#
# Why only {{ swap.our_multiply.of_peak:.0%}} of peak, when the products by themselves had more? Part of it is the clock:
# with our multiply it was read at {{ swap.our_multiply.sm_mhz:.0f}} MHz, at {{ swap.our_multiply.power_w:.0f}} W. The
# larger part is everything that is not a product. Compare the whole time with the forecast. The products should take {{ forecast.cublas:.1f}}
# ms of the library's {{ swap.library.ms:.1f}} ms. The rest is what happens between them: norms, turns, the two halves of
# the feed-forward block, attention. No multiply touches that.
#
# /// claim | 0.9 < gain.multiply < 1.08 and 0.9 < gain.attention < 1.12
# Neither swap decides anything: with our multiply the prefill reaches {{ gain.multiply:.3f}} of the library's speed, as the grids
# above suggest, and with our attention {{ gain.attention:.3f}}. Attention is {{ work.attention / work.all:.1%}} of the operations
# here, and never had much to gain.
# /// otherwise
# With our multiply the prefill reaches {{ gain.multiply:.3f}} of the library's speed, with our attention {{ gain.attention:.3f}}.
# With {{ work.attention:.2f}} of {{ work.all:.2f}} TFLOP, attention never had much to gain.
# ///
#
# /// claim | swap.compiled.us < swap.both.us
# And `torch.compile` is ahead of both of ours together, {{ swap.compiled.ms:.1f}} ms against {{ swap.both.ms:.1f}} ms, without a
# better multiply. It fuses what comes between the products. If you want the rest of this prefill's time, look there next.
# /// otherwise
# `torch.compile` fuses what comes between the products, and needs {{ swap.compiled.ms:.1f}} ms; both of ours together, with
# nothing fused, need {{ swap.both.ms:.1f}} ms.
# ///
# ///

# %% tags=["fold"]
from course_models import bench
from course_models.config import prefill_flops
from course_models.hopper_operators import LEAST_ROWS, PREFILL_SWAPS
from course_models.prefill_graph import CapturedPrefill

CONTEXT = 1024
TIMES = {"query": 2, "key": 2, "gate": 2, "down": 1}  # such products in a layer

model = bench.subject()  # the 8B shape, random weights
twins = {
    "library": model.with_operators(bench.LIBRARY),
    **{name: model.with_operators(swap) for name, swap in PREFILL_SWAPS.items()},
    "compiled": bench.compiled(model),
}
tokens = torch.zeros(1, CONTEXT, dtype=torch.int64, device="cuda")
ways = {
    name: CapturedPrefill(bench.prefilling(twin), tokens)
    for name, twin in twins.items()
}
ways["library_eager"] = bench.prefilling(twins["library"])
problem = bench.prefill_problem(model)

work = {
    name: 2 * CONTEXT * GRIDS[name][0] * GRIDS[name][1] * c.layers * times / 1e12
    for name, times in TIMES.items()
}
head = 2 * c.vocab * c.width / 1e12  # of one row
every = prefill_flops(c, 1, CONTEXT) / 1e12
record(
    context=quantity(CONTEXT, how="given"),
    least_rows=quantity(LEAST_ROWS, how="given"),
    work={
        **{name: quantity(of, "TFLOP") for name, of in work.items()},
        "attention": quantity(every - sum(work.values()) - head, "TFLOP"),
        "all": quantity(every, "TFLOP"),
    },
    swap=compare(
        {
            name: Competitor(f"prefill, {name}", problem, way)
            for name, way in ways.items()
        },
        Workload.of("bfloat16", B=1, N=CONTEXT),
        seconds=0.4,
    ),
)

# %% [markdown]
# ## Your turn
#
# /// exercise | A size of your own | 6 minutes
# Take a different model: a width of 8192, 28 672 numbers in the middle, 64 query heads and 8 key heads of 128 numbers. For its
# keys and its gate, with 16 rows and with 2048: bytes or arithmetic? Give the intensity first. Then say which of the four products
# you would give to our kernel, and measure two of them if you have a Hopper card: `k14_tuned.gemm(x, weight.t())` in a race with
# `library.cublas`.
# /// answer
# Keys are 1024 × 8192. With 16 rows: 16 · 1024 · 8192 divided by (16 · 8192 + 8192 · 1024 + 16 · 1024) is
# {{ yours.key.m16:.1f}}; with 2048 rows {{ yours.key.m2048:.0f}}. The gate is 28 672 × 8192: {{ yours.gate.m16:.1f}}
# and {{ yours.gate.m2048:.0f}}. With 16 rows both products are bound by bytes, and are work for a kernel made for few rows.
# With 2048 rows both are bound by arithmetic; the gate has plenty of tiles, and keys have 16 × 4 = 64 large tiles, enough
# for half of the SMs, so they need a smaller tile.
# ///
#
# **You can now** say whether a product waits for bytes before anybody runs it; read a scoreboard for the rows that matter; say what one row leaves unused; and forecast a swap.
#
# **Where this leads.** What the kernel does inside is the subject of [the workshop on Hopper](workshops/w2_hopper.py). The
# work between the products, and how to get rid of it, is the subject of [the workshop on serving](workshops/w4_serving.py). [The
# ledger](numbers.md) lists every number above, with its spread.

# %% tags=["fold"]
OTHERS = {"key": (8 * 128, 8192), "gate": (28672, 8192)}
record(
    yours={
        name: {f"m{M}": intensity(M, N, K) for M in (16, 2048)}
        for name, (N, K) in OTHERS.items()
    }
)
