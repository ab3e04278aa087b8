# ---
# id: l5
# title: The top of the ladder
# description: From the register tile to the library, one idea at a time, with a counter that proves each step, and where it ends.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # The top of the ladder
#
# By the end of this page you can
#
# - read a step of the ladder as a diff, and say before you run the kernel which counter must change;
# - check that this counter changed, and by how much;
# - work out by hand what a tile demands of an SM and of the card: issue slots, bytes from shared memory, and blocks;
# - say why the last kernel is not faster, and point to the number that shows the reason.
#
# **The headline: {{ ladder.persistent.of_peak:.0%}} of peak, in plain fp32, by a kernel that you can read.** The
# naive kernel reaches {{ ladder.naive.of_peak:.1%}}. The library, cuBLAS, reaches {{ ladder.cublas.of_peak:.0%}}, so
# we end at **{{ sgemm.last_of_cublas:.1%}} of the library**.
#
# [The previous lecture](l4_the_gemm_ladder.py) climbed the first five steps. Each of them moved fewer bytes: first
# from HBM, then from shared memory. That lecture ended with three faults of the last kernel: lanes queue at the
# banks, one instruction fetches only one word, and everybody stands idle while the next tile comes in. Each of these
# faults leads to a step here.

# %% [markdown]
# ## The whole ladder, once
#
# Here are twelve kernels and the library, measured side by side in one run: they take turns on the same two matrices
# of 4096 × 4096 numbers. Each answer was checked first. TF32 is off, and the check of the answers would notice if it
# were on.
#
# Eleven of the twelve are steps of the ladder. Number 8 is a *side note*: it is a sound idea from good books, but on
# this card, at this size, the idea does not pay by itself. You will see why, and knowing why is worth as much as a
# step.
#
# The last two, 11 and 12, need a word of warning: each is a **tuning bundle**. Several changes are made at once, so
# we measure the step as a whole. [Further down](#one-change-at-a-time) we undo some of these changes, one at a time.
#
# The core of the page is the lab and steps 6, 7 and 9: each of these three steps changes a different counter. The
# other steps are folded away, and so is the section on
# [what holds the last one back](#why-is-the-last-one-not-faster). Unfold them to climb all the way up.

# %% tags=["fold"]
import torch
from course_kernels.measure import compare, quantity, record
from course_kernels.problem import Workload
from course_kernels.sgemm import (
    k01_naive,
    k02_coalesced,
    k03_shared_tiles,
    k04_register_column,
    k05_register_tile,
    k06_vectorised,
    k07_conflict_free,
    k08_warp_tiles,
    k09_asynchronous,
    k10_tuned,
    k11_register_banks,
    k12_persistent,
    library,
)

LADDER = {
    "naive": k01_naive,
    "coalesced": k02_coalesced,
    "shared_tiles": k03_shared_tiles,
    "register_column": k04_register_column,
    "register_tile": k05_register_tile,
    "vectorised": k06_vectorised,
    "conflict_free": k07_conflict_free,
    "warp_tiles": k08_warp_tiles,
    "asynchronous": k09_asynchronous,
    "tuned": k10_tuned,
    "register_banks": k11_register_banks,
    "persistent": k12_persistent,
    "cublas": library.cublas,
}
square = Workload.of("float32", M=4096, N=4096, K=4096)
record(ladder=compare(LADDER, square, seconds=0.3))

# %% [markdown]
# /// chart | staircase
# title: "4096 × 4096 × 4096 in fp32, step by step"
# y_label: TFLOP/s
# steps:
#   - {name: ladder.naive.tflops, label: "1 naive"}
#   - {name: ladder.coalesced.tflops, label: "2 coalesced"}
#   - {name: ladder.shared_tiles.tflops, label: "3 shared tiles"}
#   - {name: ladder.register_column.tflops, label: "4 register column"}
#   - {name: ladder.register_tile.tflops, label: "5 register tile"}
#   - {name: ladder.vectorised.tflops, label: "6 vector loads"}
#   - {name: ladder.conflict_free.tflops, label: "7 conflict-free"}
#   - {name: ladder.warp_tiles.tflops, label: "8 side note: warp tiles"}
#   - {name: ladder.asynchronous.tflops, label: "9 asynchronous"}
#   - {name: ladder.tuned.tflops, label: "10 tuned"}
#   - {name: ladder.register_banks.tflops, label: "11 register banks"}
#   - {name: ladder.persistent.tflops, label: "12 persistent"}
# references:
#   - {label: cuBLAS, value: ladder.cublas.tflops}
#   - {label: data sheet, value: ladder.cublas.tflops / ladder.cublas.of_peak}
# alt: "A staircase of eleven steps and a side note, in TFLOP/s: naive {{ ladder.naive.tflops:.1f }}, coalesced {{ ladder.coalesced.tflops:.1f }}, shared tiles {{ ladder.shared_tiles.tflops:.1f }}, register column {{ ladder.register_column.tflops:.1f }}, register tile {{ ladder.register_tile.tflops:.1f }}, vector loads {{ ladder.vectorised.tflops:.1f }}, conflict-free {{ ladder.conflict_free.tflops:.1f }}, side note warp tiles {{ ladder.warp_tiles.tflops:.1f }}, asynchronous {{ ladder.asynchronous.tflops:.1f }}, tuned {{ ladder.tuned.tflops:.1f }}, register banks {{ ladder.register_banks.tflops:.1f }}, persistent {{ ladder.persistent.tflops:.1f }}. cuBLAS is at {{ ladder.cublas.tflops:.1f }}, the data sheet at {{ ladder.cublas.tflops / ladder.cublas.of_peak:.0f }}."
# caption: The first five steps are from the previous lecture. The solid part of a step is what it added; for the side note, 8, it may be noise.
# ///
#
# /// table
# columns: [kernel, "% of peak", "% of cuBLAS", "TFLOP/s", "over the step before"]
# rows:
#   - [1 naive, "{{ ladder.naive.of_peak:.1%}}", "{{ ladder.naive.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.naive.tflops:.2f }}", ""]
#   - [2 coalesced, "{{ ladder.coalesced.of_peak:.1%}}", "{{ ladder.coalesced.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.coalesced.tflops:.1f }}", "{{ ladder.naive.us / ladder.coalesced.us:.1f }}"]
#   - [3 shared tiles, "{{ ladder.shared_tiles.of_peak:.1%}}", "{{ ladder.shared_tiles.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.shared_tiles.tflops:.1f }}", "{{ ladder.coalesced.us / ladder.shared_tiles.us:.2f }}"]
#   - [4 register column, "{{ ladder.register_column.of_peak:.1%}}", "{{ ladder.register_column.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.register_column.tflops:.1f }}", "{{ ladder.shared_tiles.us / ladder.register_column.us:.2f }}"]
#   - [5 register tile, "{{ ladder.register_tile.of_peak:.1%}}", "{{ ladder.register_tile.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.register_tile.tflops:.1f }}", "{{ ladder.register_column.us / ladder.register_tile.us:.2f }}"]
#   - [6 vector loads, "{{ ladder.vectorised.of_peak:.1%}}", "{{ ladder.vectorised.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.vectorised.tflops:.1f }}", "{{ ladder.register_tile.us / ladder.vectorised.us:.2f }}"]
#   - [7 conflict-free, "{{ ladder.conflict_free.of_peak:.1%}}", "{{ ladder.conflict_free.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.conflict_free.tflops:.1f }}", "{{ ladder.vectorised.us / ladder.conflict_free.us:.2f }}"]
#   - ["*side note:* 8 warp tiles", "{{ ladder.warp_tiles.of_peak:.1%}}", "{{ ladder.warp_tiles.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.warp_tiles.tflops:.1f }}", "{{ ladder.conflict_free.us / ladder.warp_tiles.us:.3f }}"]
#   - [9 asynchronous, "{{ ladder.asynchronous.of_peak:.1%}}", "{{ ladder.asynchronous.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.asynchronous.tflops:.1f }}", "{{ ladder.conflict_free.us / ladder.asynchronous.us:.2f }}"]
#   - [10 tuned, "{{ ladder.tuned.of_peak:.1%}}", "{{ ladder.tuned.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.tuned.tflops:.1f }}", "{{ ladder.asynchronous.us / ladder.tuned.us:.2f }}"]
#   - [11 register banks, "{{ ladder.register_banks.of_peak:.1%}}", "{{ ladder.register_banks.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.register_banks.tflops:.1f }}", "{{ ladder.tuned.us / ladder.register_banks.us:.2f }}"]
#   - ["**12 persistent**", "**{{ ladder.persistent.of_peak:.1%}}**", "**{{ ladder.persistent.tflops / ladder.cublas.tflops:.1%}}**", "{{ ladder.persistent.tflops:.1f }}", "{{ ladder.register_banks.us / ladder.persistent.us:.3f }}"]
#   - ["*cuBLAS*", "*{{ ladder.cublas.of_peak:.1%}}*", "*100 %*", "*{{ ladder.cublas.tflops:.1f }}*", ""]
# caption: Medians of {{ ladder.cublas.n }} rounds. Percent of peak refers to the data sheet, percent of cuBLAS to the same rounds.
# ///
#
# /// define | sgemm.first_of_cublas = ladder.naive.tflops / ladder.cublas.tflops
# unit: "1"
# what: the naive fp32 kernel over cuBLAS with TF32 off, 4096 × 4096 × 4096
# ///
#
# /// define | sgemm.last_of_cublas = ladder.persistent.tflops / ladder.cublas.tflops
# unit: "1"
# what: the last fp32 kernel of the ladder over cuBLAS with TF32 off, 4096 × 4096 × 4096
# ///
#
# /// claim | sgemm.first_of_cublas < 0.015 and abs(sgemm.last_of_cublas - 1) < 0.07
# The naive kernel is at {{ sgemm.first_of_cublas:.1%}} of the library, and kernel 12 is at
# {{ sgemm.last_of_cublas:.1%}}. Regard the last kernel and the library as equally fast: on a different card either of
# them may be ahead, though hardly by as much as 7 %. Always read the second column together with the third. The
# library itself is at {{ ladder.cublas.of_peak:.0%}} of the data sheet, so a kernel that equals it still leaves
# {{ 1 - ladder.cublas.of_peak:.0%}} of the card unused. The last question of this page is *where that part goes*.
# /// otherwise
# The naive kernel is at {{ sgemm.first_of_cublas:.1%}} of the library, and kernel 12 is at
# {{ sgemm.last_of_cublas:.1%}}. The library itself is at {{ ladder.cublas.of_peak:.0%}} of the data sheet.
# ///
#
# /// claim | ladder.naive.us > 5 * ladder.coalesced.us and ladder.coalesced.us > ladder.shared_tiles.us and ladder.shared_tiles.us > ladder.register_column.us and ladder.register_column.us > ladder.register_tile.us
# The steps of the last lecture hold in this run too: each of the first five kernels is faster than the one before it.
# /// otherwise
# In this run not every one of the first five kernels is faster than the one before it; see the table.
# ///
#
# So the times are no longer a secret. The predictions below ask for something else: what the *counters* will say.
#
# Other people have climbed such a ladder before us. The best-known ladder, Boehm's, ended at 93.7 % of cuBLAS on an
# RTX A6000, and three of its twelve kernels were slower than an earlier one [^boehm2022]. On a different card,
# different steps pay, as you will see.

# %% [markdown]
# ## Every other instruction costs a multiply-add
#
# You know [what an SM can do in one tick](l4_the_gemm_ladder.py#what-an-sm-can-do-in-one-tick). Each of its four
# schedulers has one *issue slot* per tick (the kitchen's *call*): it issues one instruction for one warp. The card is
# at its peak when all four schedulers issue a *multiply-add* in every tick. **Every other instruction takes the place
# of a multiply-add**, whether it fetches a number, computes an address or waits at a barrier.
#
# So the first bound is a share: how many of the instructions are multiply-adds? Take one thread and one step along K.
# The thread holds 8 × 8 sums, and needs 8 numbers of A and 8 of B.


# %%
def calls(rows, columns, load_bytes):
    """One thread, one step of k: its multiply-adds, and its loads off the tray."""
    return rows * columns, (rows + columns) * 4 // load_bytes


shapes = {
    "t8x8_by4": (8, 8, 4),
    "t8x8_by16": (8, 8, 16),
    "t16x8_by16": (16, 8, 16),
}
by_hand = {}
for name, (rows, columns, load_bytes) in shapes.items():
    useful, loads = calls(rows, columns, load_bytes)
    by_hand[name] = {
        "share": quantity(useful / (useful + loads)),
        "loads": quantity(loads / useful),
        "bytes": quantity(4 * (rows + columns) / useful, "B"),
    }
    print(f"{rows} × {columns}, {load_bytes:2} bytes a load:", end=" ")
    print(f"{useful} multiply-adds, {loads} loads")
record(by_hand=by_hand)

# %% [markdown]
# /// table
# columns: [register tile, bytes in one load, "share of multiply-adds", "bytes from shared memory for one multiply-add"]
# rows:
#   - [8 × 8, "4", "{{ by_hand.t8x8_by4.share:.1%}}", "{{ by_hand.t8x8_by4.bytes:.2f }}"]
#   - [8 × 8, "16", "{{ by_hand.t8x8_by16.share:.1%}}", "{{ by_hand.t8x8_by16.bytes:.2f }}"]
#   - [16 × 8, "16", "{{ by_hand.t16x8_by16.share:.1%}}", "{{ by_hand.t16x8_by16.bytes:.2f }}"]
# caption: By hand, for a single thread. Addresses, the loop and the barriers are not included.
# ///
#
# The last column is the second bound. Shared memory (the tray) delivers {{ l3.per_clock.shared:.0f }} bytes per tick,
# as [you measured](l3_memory.py#how-much-at-once), and the lanes can do 128 multiply-adds per tick. So the budget is
# **one byte per multiply-add**, and an 8 × 8 tile uses up all of this budget. What saves us is that several lanes
# want the *same* numbers: a number that several lanes of a warp want leaves shared memory only once. (Step 8 takes a
# closer look at the words *only once*.)
#
# Now ask the hardware. The next cell, which stays folded, reads the counters of all the kernels on this page. Later
# sections quote its counts.

# %% tags=["fold"]
from course_kernels.measure import count_many

RUNGS = (
    "register_tile",
    "vectorised",
    "conflict_free",
    "warp_tiles",
    "asynchronous",
    "tuned",
    "register_banks",
    "persistent",
    "cublas",
)
REGISTERS = "launch__registers_per_thread"
SHARED = "launch__shared_mem_per_block"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUED = "smsp__issue_active.avg.pct_of_peak_sustained_elapsed"
CALLS = "smsp__inst_executed.sum"
FMAS = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
SHARED_STORES = "smsp__inst_executed_op_shared_st.sum"
GLOBAL_LOADS = "smsp__inst_executed_op_global_ld.sum"
COPIES = "smsp__inst_executed_op_ldgsts.sum"
TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
L2_HITS = "lts__t_sector_hit_rate.pct"
ROOMS = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
STALLS = (
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "mio_throttle",
    "math_pipe_throttle",
    "lg_throttle",
    "not_selected",
    "dispatch_stall",
    "wait",
)
METRICS = (
    REGISTERS,
    SHARED,
    OCCUPANCY,
    ISSUED,
    CALLS,
    FMAS,
    SHARED_LOADS,
    SHARED_STORES,
    GLOBAL_LOADS,
    COPIES,
    TURNS,
    CONFLICTS,
    L2_HITS,
    ROOMS,
    *(
        f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio"
        for why in STALLS
    ),
)
counted = dict(
    zip(
        RUNGS,
        count_many([(LADDER[rung], square) for rung in RUNGS], METRICS),
        strict=True,
    )
)


def vital_signs(one):
    """What the counters say about a kernel, as numbers to record."""
    # Kernel 12 clears a part of C first: the largest launch is the multiply.
    most = max(one.kernels, key=lambda kernel: kernel["metrics"][CALLS]["value"])
    read = {name: m["value"] for name, m in most["metrics"].items()}
    warp_fmas = read[FMAS] / 32
    signs = {
        "registers": (read[REGISTERS], "device"),
        "shared_kib": (read[SHARED] / 1024, "device"),
        "occupancy": (read[OCCUPANCY] / 100, "counted"),
        "issued": (read[ISSUED] / 100, "counted"),
        "share": (warp_fmas / read[CALLS], "counted"),
        "loads": (read[SHARED_LOADS] / warp_fmas, "counted"),
        "carried": (
            (read[SHARED_STORES] + read[GLOBAL_LOADS] + read[COPIES]) / warp_fmas,
            "counted",
        ),
        "turns": (read[TURNS] / warp_fmas, "counted"),
        "turns_a_load": (read[TURNS] / read[SHARED_LOADS], "counted"),
        "conflicts": (read[CONFLICTS] / read[SHARED_LOADS], "counted"),
        "l2_hits": (read[L2_HITS] / 100, "counted"),
        "rooms": (read[ROOMS] / 100, "counted"),
    }
    for why in STALLS:
        name = f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio"
        signs[why] = (read[name], "counted")
    return {name: quantity(value, how=how) for name, (value, how) in signs.items()}


record(
    counted=counted,
    vital={rung: vital_signs(counted[rung]) for rung in RUNGS},
)

# %% [markdown]
# /// table
# columns: [kernel, "issue slots used", "share of multiply-adds", "both together", "% of peak, timed"]
# rows:
#   - [5 register tile, "{{ vital.register_tile.issued:.0%}}", "{{ vital.register_tile.share:.0%}}", "{{ vital.register_tile.issued * vital.register_tile.share:.0%}}", "{{ ladder.register_tile.of_peak:.0%}}"]
#   - [12 persistent, "{{ vital.persistent.issued:.0%}}", "{{ vital.persistent.share:.0%}}", "{{ vital.persistent.issued * vital.persistent.share:.0%}}", "{{ ladder.persistent.of_peak:.0%}}"]
#   - [cuBLAS, "{{ vital.cublas.issued:.0%}}", "{{ vital.cublas.share:.0%}}", "{{ vital.cublas.issued * vital.cublas.share:.0%}}", "{{ ladder.cublas.of_peak:.0%}}"]
# caption: Nsight Compute counted the first two columns on one launch; the last one is timed.
# ///
#
# **Issue slots used × share of multiply-adds.** Every step on this page improves one of these two factors: it makes
# the share of multiply-adds larger (fewer other instructions) or uses more of the slots (less waiting). And the
# product of the two factors *is*, nearly, the percentage of peak.
#
# /// exercise | A 4 × 4 register tile | 3 minutes
# With 16-byte loads, how many of the instructions for this tile are multiply-adds? How many bytes does one
# multiply-add take from shared memory? Which of the two bounds is lower?
# /// answer
# 16 multiply-adds need 4 + 4 numbers, or two loads: 16 of 18 instructions are multiply-adds. 32 bytes for 16
# multiply-adds is 2 bytes each, and the budget is one. So for a single thread shared memory is the lower bound. If
# several lanes want the same numbers, the tile may still work.
# ///
#
# Now it is your turn. Everything that follows builds on the register tile of step 5. In the lab you write this tile
# yourself. The lab needs nothing from the rest of this page, so do it now, or after you have read the page.
#
# /// lab | register_tile
# ///

# %% [markdown]
# ## 6 · Sixteen bytes in every access
#
# The kernel with the register tile moves its numbers one by one: from global memory (down the hall), into shared
# memory, and out to C. With `float4`, one instruction moves four neighbouring numbers.
#
# /// figure | docs/assets/figures/sgemm_vector_loads.svg
# alt: "What a thread carries for one step of eight along K. Number by number: 8 loads from global memory and 8 stores into shared memory, 16 instructions. Sixteen bytes at a time: 2 loads, and 5 stores, because the four numbers of A go to four rows of the tile: 7 instructions."
# ///
#
# But the four numbers must *be* neighbours in memory. In A and B they are neighbours along a row. But from shared
# memory a thread wants 8 numbers of A that are *one below the other*, so the tile of A is transposed, once, on the
# way in. That costs four stores of one number each.
#
# /// diff | src/course_kernels/sgemm/k05_register_tile.cu | src/course_kernels/sgemm/k06_vectorised.cu
# title: "What changes: k05_register_tile.cu → k06_vectorised.cu"
# ///
#
# `template`, `alignas` and the other features of C++ that are new from here on are explained
# [on the page on C](../c_for_python_people.py#five-more-words-for-the-top-of-the-ladder).
#
# Besides the instructions in the picture, each load from global memory needs an address and, before that, a check: is
# the thread still inside the matrix? Two loads instead of eight mean a quarter of these checks.
#
# /// predict | The bytes stay the same. What falls: loads from shared memory, instructions that carry, or both?
# - [vital.vectorised.loads < 0.8 * vital.register_tile.loads and vital.vectorised.carried < 0.8 * vital.register_tile.carried] Both
# - [vital.vectorised.loads >= 0.8 * vital.register_tile.loads and vital.vectorised.carried < 0.8 * vital.register_tile.carried] Only the instructions that carry
# - [vital.vectorised.loads < 0.8 * vital.register_tile.loads and vital.vectorised.carried >= 0.8 * vital.register_tile.carried] Only the loads from shared memory
# - [vital.vectorised.loads >= 0.8 * vital.register_tile.loads and vital.vectorised.carried >= 0.8 * vital.register_tile.carried] Neither
# /// reveal
# There were {{ vital.register_tile.loads:.4f }} loads from shared memory per multiply-add before, and there are
# {{ vital.vectorised.loads:.4f }} now. There were {{ vital.register_tile.carried:.4f }} instructions per multiply-add
# that carry numbers, from global memory and into shared memory, and there are {{ vital.vectorised.carried:.4f }} now.
# By hand, we get {{ carried.one_by_one:.4f }} and {{ carried.by_four:.4f }}.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "loads from shared memory for one multiply-add", "instructions that carry", "share of multiply-adds"]
# rows:
#   - [5 register tile, "{{ ladder.register_tile.of_peak:.1%}}", "{{ vital.register_tile.registers:.0f }}", "{{ vital.register_tile.shared_kib:.1f }}", "{{ vital.register_tile.occupancy:.0%}}", "{{ vital.register_tile.loads:.4f }}", "{{ vital.register_tile.carried:.4f }}", "{{ vital.register_tile.share:.1%}}"]
#   - ["**6 vector loads**", "**{{ ladder.vectorised.of_peak:.1%}}**", "{{ vital.vectorised.registers:.0f }}", "{{ vital.vectorised.shared_kib:.1f }}", "{{ vital.vectorised.occupancy:.0%}}", "{{ vital.vectorised.loads:.4f }}", "{{ vital.vectorised.carried:.4f }}", "{{ vital.vectorised.share:.1%}}"]
# caption: "Shared memory, here and below, includes the 1 KiB that the system keeps for itself in every block."
# ///
#
# /// claim | abs(vital.register_tile.loads / by_hand.t8x8_by16.loads - 1) < 0.1 and abs(vital.vectorised.loads / by_hand.t8x8_by16.loads - 1) < 0.1
# Look at the loads from shared memory: there were {{ vital.register_tile.loads:.4f }} per multiply-add *before* the
# change, although the source reads single numbers, and by hand we get {{ by_hand.t8x8_by4.loads:.2f }}. **The
# compiler got there first.** The compiler saw that these numbers are neighbours, and loaded 16 bytes at a time without being
# asked. For the loads from global memory the compiler could not do so. There the source of kernel 5 gives
# neighbouring numbers to neighbouring threads, and no thread has four in a row. Read the counter before you make an
# improvement that the compiler has already made.
# /// otherwise
# There were {{ vital.register_tile.loads:.4f }} loads from shared memory per multiply-add before, and there are
# {{ vital.vectorised.loads:.4f }} now. By hand we get {{ by_hand.t8x8_by4.loads:.4f }} and
# {{ by_hand.t8x8_by16.loads:.4f }}.
# ///
# ///
#
# For 512 multiply-adds, a thread needed 16 carrying instructions before, and needs 7 now.

# %%
record(
    carried={
        "one_by_one": quantity((8 + 8) / (8 * 8 * 8)),
        "by_four": quantity((2 + 5) / (8 * 8 * 8)),
    }
)

# %% [markdown]
# /// claim | ladder.register_tile.us > ladder.vectorised.us and vital.vectorised.carried < 0.7 * vital.register_tile.carried
# **{{ ladder.vectorised.of_peak:.1%}} of peak**, {{ ladder.register_tile.us / ladder.vectorised.us:.2f }} times the
# speed of the register tile. Now {{ vital.vectorised.share:.1%}} of all instructions are multiply-adds, compared with
# {{ vital.register_tile.share:.1%}} before.
# /// otherwise
# The kernel reaches {{ ladder.vectorised.of_peak:.1%}} of peak, compared with {{ ladder.register_tile.of_peak:.1%}}
# before. Now {{ vital.vectorised.share:.1%}} of all instructions are multiply-adds, compared with
# {{ vital.register_tile.share:.1%}} before.
# ///
#
# **Why not faster?** A load from shared memory takes {{ vital.vectorised.turns_a_load:.1f }} wavefronts, and
# {{ vital.vectorised.conflicts:.1f }} of these are lost in queues.
#
# /// exercise | Sixteen bytes need an address | 2 minutes
# K is 1023. Row 1 of A begins 4092 bytes after row 0. Can a thread read its first four numbers with one load of 16 bytes?
# What must the kernel do?
# /// answer
# No: 4092 is not a multiple of 16, and the address of a 16-byte load must be a multiple of 16. The kernel checks once
# whether K and N are multiples of 4. If not, it fetches the numbers one by one. Such sizes are the *ugly sizes* in a
# [table further down](#from-small-to-large-and-ugly-sizes).
# ///

# %% [markdown]
# ## 7 · Eight lanes, thirty-two banks {#7-nobody-queues}
#
# 32 lanes ask for 16 bytes each. Shared memory has 32 banks (the windows) of 4 bytes, so one wavefront (a turn)
# delivers 128 bytes. A wavefront can serve eight lanes, as long as no two of them want different words in the same
# bank.
#
# In kernel 6 a thread owns 8 columns side by side. The columns of the next thread begin 8 words further on. Look at
# what that does to the banks.
#
# /// figure | docs/assets/figures/sgemm_windows.svg
# alt: "Eight lanes read 16 bytes each from 32 banks. If a thread owns 8 neighbouring columns, lanes 0 to 3 use banks 0 to 3, 8 to 11, 16 to 19 and 24 to 27, and lanes 4 to 7 want the same banks again: two wavefronts, and half of the banks idle. If a thread owns 4 columns and another 4 further on, the eight lanes cover all 32 banks: one wavefront."
# ///
#
# So hand out the columns differently. A thread still owns 8 columns, but now four of them lie half a tile further on.
# The sums are the same, but they are distributed differently among the threads. And the tile of A, which is written
# column by column, gets four spare words at the end of each row, so that the threads that *write* do not collide at
# one bank either.
#
# /// diff | src/course_kernels/sgemm/k06_vectorised.cu | src/course_kernels/sgemm/k07_conflict_free.cu
# title: "What changes: k06_vectorised.cu → k07_conflict_free.cu"
# ///
#
# First count the wavefronts on your fingers: eight neighbouring lanes want 16 bytes of B each. How long is the
# longest queue?

# %%
from collections import Counter


def turns(first_words):
    """Turns for lanes that each read four words from `first_words` on."""
    words = {first + n for first in first_words for n in range(4)}
    return max(Counter(word % 32 for word in words).values())


side_by_side = turns([8 * lane for lane in range(8)])
interleaved = turns([4 * lane for lane in range(8)])
print("8 columns side by side:", side_by_side, "turns")
print("4 columns, and 4 more further on:", interleaved, "turn")
record(
    queue={
        "side_by_side": quantity(side_by_side),
        "interleaved": quantity(interleaved),
    }
)

# %% [markdown]
# /// predict | This saves not a single byte and not a single multiply-add. Which counter moves?
# - [vital.conflict_free.loads < 0.8 * vital.vectorised.loads and vital.conflict_free.turns_a_load >= 0.8 * vital.vectorised.turns_a_load and vital.conflict_free.registers >= 0.9 * vital.vectorised.registers] Loads from shared memory
# - [vital.conflict_free.turns_a_load < 0.8 * vital.vectorised.turns_a_load and vital.conflict_free.loads >= 0.8 * vital.vectorised.loads and vital.conflict_free.registers >= 0.9 * vital.vectorised.registers] Wavefronts for one load
# - [vital.conflict_free.registers < 0.9 * vital.vectorised.registers and vital.conflict_free.loads >= 0.8 * vital.vectorised.loads and vital.conflict_free.turns_a_load >= 0.8 * vital.vectorised.turns_a_load] Registers of a thread
# - [vital.conflict_free.loads >= 0.8 * vital.vectorised.loads and vital.conflict_free.turns_a_load >= 0.8 * vital.vectorised.turns_a_load and vital.conflict_free.registers >= 0.9 * vital.vectorised.registers or vital.conflict_free.loads < 0.8 * vital.vectorised.loads and vital.conflict_free.turns_a_load < 0.8 * vital.vectorised.turns_a_load or vital.conflict_free.loads < 0.8 * vital.vectorised.loads and vital.conflict_free.registers < 0.9 * vital.vectorised.registers or vital.conflict_free.turns_a_load < 0.8 * vital.vectorised.turns_a_load and vital.conflict_free.registers < 0.9 * vital.vectorised.registers] None of them alone
# /// reveal
# One load takes {{ vital.conflict_free.turns_a_load:.2f }} wavefronts now, compared with
# {{ vital.vectorised.turns_a_load:.2f }} before. There were {{ vital.vectorised.loads:.3f }} loads per multiply-add
# before, and there are {{ vital.conflict_free.loads:.3f }} now.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "wavefronts for one load", "of these, lost in queues", "wavefronts for one multiply-add"]
# rows:
#   - [6 vector loads, "{{ ladder.vectorised.of_peak:.1%}}", "{{ vital.vectorised.registers:.0f }}", "{{ vital.vectorised.shared_kib:.1f }}", "{{ vital.vectorised.occupancy:.0%}}", "{{ vital.vectorised.turns_a_load:.2f }}", "{{ vital.vectorised.conflicts:.2f }}", "{{ vital.vectorised.turns:.3f }}"]
#   - ["**7 conflict-free**", "**{{ ladder.conflict_free.of_peak:.1%}}**", "{{ vital.conflict_free.registers:.0f }}", "{{ vital.conflict_free.shared_kib:.1f }}", "{{ vital.conflict_free.occupancy:.0%}}", "{{ vital.conflict_free.turns_a_load:.2f }}", "{{ vital.conflict_free.conflicts:.2f }}", "{{ vital.conflict_free.turns:.3f }}"]
# caption: An SM issues four instructions in a tick and shared memory handles one wavefront, so above 0.25 wavefronts for one multiply-add of a warp, shared memory is the bound.
# ///
#
# /// claim | ladder.vectorised.us > ladder.conflict_free.us and vital.conflict_free.turns_a_load < 0.8 * vital.vectorised.turns_a_load
# **{{ ladder.conflict_free.of_peak:.1%}} of peak**, {{ ladder.vectorised.us / ladder.conflict_free.us:.2f }} times
# the speed of kernel 6, and the number of wavefronts per load fell from {{ vital.vectorised.turns_a_load:.2f }} to
# {{ vital.conflict_free.turns_a_load:.2f}}.
# /// otherwise
# The kernel reaches {{ ladder.conflict_free.of_peak:.1%}} of peak, compared with {{ ladder.vectorised.of_peak:.1%}}
# before. One load took {{ vital.vectorised.turns_a_load:.2f }} wavefronts before, and takes
# {{ vital.conflict_free.turns_a_load:.2f }} now.
# ///
#
# /// claim | abs(vital.vectorised.turns_a_load - vital.conflict_free.turns_a_load - 2 * (queue.side_by_side - queue.interleaved)) < 0.1
# Does the count on your fingers agree with the counter? You counted for eight lanes. A warp has four times eight
# lanes, so a load of B took 4 × 2 wavefronts before and takes 4 × 1 now. Every second load is a load of B. The other
# loads fetch A, and A is read as before. So the average must fall by 2, and it fell by
# {{ vital.vectorised.turns_a_load - vital.conflict_free.turns_a_load:.2f }}.
# /// otherwise
# By hand, the average load should take 2 wavefronts fewer than before; according to the counter it takes
# {{ vital.vectorised.turns_a_load - vital.conflict_free.turns_a_load:.2f }} fewer.
# ///
# ///
#
# **Why not faster?** We have a suspicion: a row of a warp is 16 threads wide, so the warp still wants 128 different
# numbers of B in every step. The next section tests this suspicion.
#
# /// exercise | Pad or interleave? | 3 minutes
# You could also have left the columns side by side and added padding. Where would the spare words have to go, so that
# lanes 0 to 7 use all 32 banks, and why is such padding awkward with 16-byte loads?
# /// answer
# Between the columns of lane 3 and lane 4: four spare words after every 32. Then lane 4 begins at bank 4. The padding
# works, but a row is no longer in one piece. The code that stores B has to step over the gaps too, and each gap must
# be exactly 16 bytes. Interleaving needs no spare words.
# ///
#
# ### Shared memory is a roof, too {.beyond}
#
# /// claim | vital.vectorised.turns > 0.26 and vital.conflict_free.turns < 0.24 and vital.conflict_free.short_scoreboard < 0.5 * vital.vectorised.short_scoreboard
# The last line of the table above is a roof. For one multiply-add of a warp, shared memory took
# {{ vital.vectorised.turns:.3f }} wavefronts, and at peak speed it can give only 0.25. So kernel 6, with its queues,
# could never have exceeded {{ 0.25 / vital.vectorised.turns:.0%}} of peak. The kernel was well below even that. What
# slowed its warps down was the *wait*: for each instruction they spent {{ vital.vectorised.short_scoreboard:.2f }}
# ticks waiting for bytes from shared memory, and now they spend {{ vital.conflict_free.short_scoreboard:.2f }}.
# /// otherwise
# For one multiply-add of a warp, shared memory takes {{ vital.conflict_free.turns:.3f }} wavefronts, compared with
# {{ vital.vectorised.turns:.3f }} before.
# ///

# %% [markdown]
# ## 8 · Stand closer together: a side note {.beyond}
#
# A number that several lanes want leaves shared memory once. So count what a *warp* wants, not what a thread wants.
#
# /// figure | docs/assets/figures/sgemm_warp_tile.svg
# alt: "Two ways to seat 32 threads with a register tile of 8 by 8 each. In two rows of 16 they cover 16 by 128 sums and need 16 numbers of A and 128 of B, 144 together. In four rows of 8 they cover 32 by 64 and need 32 and 64, 96 together."
# caption: The closer to a square, the less there is to fetch.
# ///
#
# So seat the warp in 4 rows of 8. Its 32 × 64 sums are its **warp tile**. Of
# [the three tiles](l4_the_gemm_ladder.py#the-words-for-tiles), the warp tile is the one that our kernels did not have
# yet. CUTLASS gives the same advice: make the warp tile large, so that the warp reuses what it has read
# [^cutlass-gemm].
#
# /// diff | src/course_kernels/sgemm/k07_conflict_free.cu | src/course_kernels/sgemm/k08_warp_tiles.cu
# title: "What changes: k07_conflict_free.cu → k08_warp_tiles.cu"
# ///
#
# /// predict | 96 numbers instead of 144, for the same 2048 multiply-adds of a warp. What do the counters say?
# - [vital.warp_tiles.loads / vital.conflict_free.loads >= 0.85 and vital.warp_tiles.turns / vital.conflict_free.turns >= 0.85] The same number of both
# - [vital.warp_tiles.turns / vital.conflict_free.turns < 0.85 and vital.warp_tiles.loads / vital.conflict_free.loads >= 0.85] The same number of loads, a third fewer wavefronts
# - [vital.warp_tiles.loads / vital.conflict_free.loads < 0.85] A third fewer loads
# /// reveal
# There are {{ vital.warp_tiles.loads:.4f }} loads per multiply-add now, compared with
# {{ vital.conflict_free.loads:.4f }} before. There are {{ vital.warp_tiles.turns:.4f }} wavefronts per multiply-add
# now, compared with {{ vital.conflict_free.turns:.4f }} before.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "wavefronts for one load", "wavefronts for one multiply-add", "issue slots used"]
# rows:
#   - [7 conflict-free, "{{ ladder.conflict_free.of_peak:.1%}}", "{{ vital.conflict_free.registers:.0f }}", "{{ vital.conflict_free.shared_kib:.1f }}", "{{ vital.conflict_free.occupancy:.0%}}", "{{ vital.conflict_free.turns_a_load:.2f }}", "{{ vital.conflict_free.turns:.3f }}", "{{ vital.conflict_free.issued:.1%}}"]
#   - ["**8 warp tiles**", "**{{ ladder.warp_tiles.of_peak:.1%}}**", "{{ vital.warp_tiles.registers:.0f }}", "{{ vital.warp_tiles.shared_kib:.1f }}", "{{ vital.warp_tiles.occupancy:.0%}}", "{{ vital.warp_tiles.turns_a_load:.2f }}", "{{ vital.warp_tiles.turns:.3f }}", "{{ vital.warp_tiles.issued:.1%}}"]
# ///
#
# /// claim | abs(vital.warp_tiles.turns / vital.conflict_free.turns - 1) < 0.03
# **Here the count by hand was wrong.** The warp wants a third fewer numbers, but not one wavefront is saved. Why? A
# load of 16 bytes per lane is too much for one wavefront, so shared memory serves the lanes of a warp in groups. A
# number that two *groups* want leaves shared memory twice, whatever we worked out by hand for the whole warp. Take
# eight neighbouring lanes again. In both kernels these lanes are in one row. They want eight times 16 bytes of B,
# which is a full wavefront, and all of them want the same 16 bytes of A. For such a group nothing has changed.
# (NVIDIA does not say which lanes form a group. The counter shows that there are groups: a load without any queue
# takes {{ vital.warp_tiles.turns_a_load:.1f }} wavefronts.)
# /// otherwise
# There were {{ vital.conflict_free.turns:.3f }} wavefronts per multiply-add before, and there are
# {{ vital.warp_tiles.turns:.3f }} now.
# ///
# ///
#
# /// claim | abs(ladder.warp_tiles.us / ladder.conflict_free.us - 1) < 0.06
# And the time does not show a difference either: the kernel took {{ ladder.conflict_free.us:.0f }} µs before, and
# takes {{ ladder.warp_tiles.us:.0f }} µs now. That is a tie, to within the 6 % that we vouch for. So the warp tile is
# not a step of this ladder. It stays in the kernels that follow, for two reasons: if you read CUTLASS you will meet
# warp tiles everywhere, and on tensor cores a whole warp multiplies together, and the warp tile is what it works on.
# /// otherwise
# The kernel took {{ ladder.conflict_free.us:.0f }} µs before, and takes {{ ladder.warp_tiles.us:.0f }} µs now.
# ///
#
# **Why not faster?** Shared memory is hardly the reason: for each instruction the warps wait
# {{ vital.warp_tiles.short_scoreboard:.2f }} ticks for shared memory, and {{ vital.warp_tiles.long_scoreboard:.2f }}
# ticks for numbers from further away. All warps stop twice in each step: once until the tile has arrived, and once
# until every warp is done with the tile. The next step counts what these stops cost.
#
# /// exercise | The best seats
# A warp has 32 threads, with 8 × 8 sums each. Seat the threads in 4 × 8, 8 × 4, 2 × 16 and 32 × 1. How many numbers
# does the warp want in each step?
# /// answer
# 4 × 8: 32 + 64 = 96. 8 × 4: the same. 2 × 16: 144. 32 × 1: 256 + 8 = 264. The shapes that are nearly square win,
# because a square has the shortest fence for its area.
# ///

# %% [markdown]
# ## 9 · Fetch while you multiply
#
# So far, every step of the outer loop has had two halves. The whole block fetches and waits, and then it multiplies
# and waits again. While a block fetches, the lanes are idle, unless another block on the SM is at work.
#
# /// figure | docs/assets/figures/sgemm_two_trays.svg
# alt: "Two time lines. With one buffer, fetch 0, multiply 0, fetch 1, multiply 1, fetch 2, multiply 2 come one after the other. With two buffers, tile 1 is fetched while tile 0 is multiplied, and so on: the last multiplication ends earlier."
# ///
#
# Two things are new. First, there is a second buffer: while one tile is being used, the next tile is on its way.
# Second, there is `cp.async`, an instruction that copies up to 16 bytes from global memory *straight into shared
# memory*. A plain load puts the bytes into registers, which have to be kept free until the bytes arrive. `cp.async`
# does not use registers for the data [^nvidia-ampere]. You order the bytes now, and ask later whether they have
# arrived.
#
# /// diff | src/course_kernels/sgemm/k08_warp_tiles.cu | src/course_kernels/sgemm/k09_asynchronous.cu
# title: "What changes: k08_warp_tiles.cu → k09_asynchronous.cu"
# ///
#
# Now look at the reasons for *waiting*. When a warp cannot be issued, the counters record why. `barrier` means that
# the warp is waiting for the other warps of its block. `long scoreboard` means that it is waiting for bytes from L2
# or HBM. `short scoreboard` means that it is waiting for bytes from shared memory. The answer is in ticks: how
# long the warps of one scheduler, together, wait for that reason per instruction issued.
#
# /// predict | Which wait must shrink?
# - [vital.asynchronous.long_scoreboard >= 0.8 * vital.warp_tiles.long_scoreboard and vital.asynchronous.barrier >= 0.8 * vital.warp_tiles.barrier and vital.asynchronous.short_scoreboard < 0.8 * vital.warp_tiles.short_scoreboard] The one for shared memory
# - [vital.asynchronous.long_scoreboard < 0.8 * vital.warp_tiles.long_scoreboard] Above all, the one for global memory
# - [vital.asynchronous.long_scoreboard >= 0.8 * vital.warp_tiles.long_scoreboard and vital.asynchronous.barrier < 0.8 * vital.warp_tiles.barrier] Only the one for each other
# - [vital.asynchronous.long_scoreboard >= 0.8 * vital.warp_tiles.long_scoreboard and vital.asynchronous.barrier >= 0.8 * vital.warp_tiles.barrier and vital.asynchronous.short_scoreboard >= 0.8 * vital.warp_tiles.short_scoreboard] None of them
# /// reveal
# The wait for global memory is {{ vital.asynchronous.long_scoreboard:.2f }} ticks now, compared with
# {{ vital.warp_tiles.long_scoreboard:.2f }} before. The wait of the warps for each other is
# {{ vital.asynchronous.barrier:.2f }} ticks now, compared with {{ vital.warp_tiles.barrier:.2f }} before.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "issue slots used", "share of multiply-adds", "waiting for global memory", "waiting for each other"]
# rows:
#   - [8 warp tiles, "{{ ladder.warp_tiles.of_peak:.1%}}", "{{ vital.warp_tiles.registers:.0f }}", "{{ vital.warp_tiles.shared_kib:.1f }}", "{{ vital.warp_tiles.occupancy:.0%}}", "{{ vital.warp_tiles.issued:.1%}}", "{{ vital.warp_tiles.share:.1%}}", "{{ vital.warp_tiles.long_scoreboard:.2f }}", "{{ vital.warp_tiles.barrier:.2f }}"]
#   - ["**9 asynchronous**", "**{{ ladder.asynchronous.of_peak:.1%}}**", "{{ vital.asynchronous.registers:.0f }}", "{{ vital.asynchronous.shared_kib:.1f }}", "{{ vital.asynchronous.occupancy:.0%}}", "{{ vital.asynchronous.issued:.1%}}", "{{ vital.asynchronous.share:.1%}}", "{{ vital.asynchronous.long_scoreboard:.2f }}", "{{ vital.asynchronous.barrier:.2f }}"]
# ///
#
# /// define | extra_calls.warp_tiles = 1 / vital.warp_tiles.share - 1 - vital.warp_tiles.loads - vital.warp_tiles.carried
# unit: "1"
# what: instructions for one multiply-add that neither multiply, nor load from shared memory, nor carry, kernel 8
# ///
#
# /// define | extra_calls.asynchronous = 1 / vital.asynchronous.share - 1 - vital.asynchronous.loads - vital.asynchronous.carried
# unit: "1"
# what: instructions for one multiply-add that neither multiply, nor load from shared memory, nor carry, kernel 9
# ///
#
# /// claim | ladder.conflict_free.us > ladder.asynchronous.us and ladder.warp_tiles.us > ladder.asynchronous.us and vital.asynchronous.long_scoreboard + vital.asynchronous.barrier < 0.6 * (vital.warp_tiles.long_scoreboard + vital.warp_tiles.barrier)
# **{{ ladder.asynchronous.of_peak:.1%}} of peak**, {{ ladder.conflict_free.us / ladder.asynchronous.us:.2f }} times
# the speed of kernel 7. An instruction is issued in {{ vital.asynchronous.issued:.0%}} of the ticks, compared with
# {{ vital.warp_tiles.issued:.0%}} before.
# /// otherwise
# The kernel reaches {{ ladder.asynchronous.of_peak:.1%}} of peak, compared with {{ ladder.conflict_free.of_peak:.1%}}
# before. It uses {{ vital.asynchronous.issued:.1%}} of the issue slots, compared with
# {{ vital.warp_tiles.issued:.1%}} before.
# ///
#
# **Why not faster?** Hardly any warp waits for global memory any more. But in {{ 1 - vital.asynchronous.issued:.0%}}
# of the ticks nothing is issued, and {{ 1 - vital.asynchronous.share:.0%}} of the instructions are not multiply-adds.
# ///
#
# /// exercise | One barrier | 3 minutes
# Kernel 8 has two barriers in each step, and kernel 9 has only one. What does that one barrier guarantee? And why may
# a thread order the next tile only *after* the barrier?
# /// answer
# The barrier guarantees two things: this step's tile has arrived for all threads, and all threads are done with the
# tile of the previous step. The next tile goes into the buffer of *that* previous tile. If you order the next tile
# before the barrier, a slow warp may still be reading from that buffer.
# ///
#
# ### What it costs {.beyond}
#
# /// claim | vital.asynchronous.share < 0.97 * vital.warp_tiles.share and vital.asynchronous.carried < vital.warp_tiles.carried and extra_calls.asynchronous > 1.5 * extra_calls.warp_tiles
# There is a price, and you see it in the share of multiply-adds: it was {{ vital.warp_tiles.share:.1%}} before, and
# is {{ vital.asynchronous.share:.1%}} now. The instructions that carry numbers are not the cause: there are
# {{ vital.asynchronous.carried:.4f }} of them per multiply-add, down from {{ vital.warp_tiles.carried:.4f }}. What
# has grown is the number of instructions per multiply-add that neither carry, nor load from shared memory, nor multiply:
# from {{ extra_calls.warp_tiles:.3f }} to {{ extra_calls.asynchronous:.3f }}. Very likely these instructions compute
# addresses and check the edges. `cp.async` cannot transpose a tile on the way, so A is copied one number at a time,
# and each number needs its own two addresses.
# /// otherwise
# The share of multiply-adds was {{ vital.warp_tiles.share:.1%}} before, and is {{ vital.asynchronous.share:.1%}} now.
# ///

# %% [markdown]
# ## 10 · A larger tile, and the right one {.beyond}
#
# Give each thread more sums, and every number from shared memory is used more often.
#
# /// figure | docs/assets/figures/sgemm_larger_tile.svg
# alt: "Two register tiles with the numbers they read. 8 by 8 reads 16 numbers for 64 multiply-adds, 4 for each number. 16 by 8 reads 24 numbers for 128 multiply-adds, 5.3 for each."
# ///
#
# The price is that 128 of a thread's 255 registers hold sums and nothing else. So fewer threads fit on an SM. Remember
# [the trap](l3_memory.py#how-many-must-be-walking): occupancy was never the goal.
#
# /// diff | src/course_kernels/sgemm/k09_asynchronous.cu | src/course_kernels/sgemm/k10_tuned.cu
# title: "What changes: k09_asynchronous.cu → k10_tuned.cu"
# ///
#
# This is the only step without an idea of its own: it is the same kernel with different constants, and with a third
# buffer, because there is room for one. Which constants are best? Nobody works that out on paper. You try them out.
# The constants in the launcher, listed by compute capability, come from [a race of shapes](#which-shape). Some shapes
# in that race are too close to rank, and on a different card a different shape may be the best.
#
# /// predict | Half as many warps fit on an SM. In what share of the ticks is an instruction still issued?
# - [vital.tuned.issued / vital.asynchronous.issued < 0.8] In far fewer
# - [0.8 <= vital.tuned.issued / vital.asynchronous.issued < 0.97] In somewhat fewer
# - [vital.tuned.issued / vital.asynchronous.issued >= 0.97] In as many, or more
# /// reveal
# An instruction is issued in {{ vital.tuned.issued:.1%}} of the ticks, compared with
# {{ vital.asynchronous.issued:.1%}} before. Occupancy was {{ vital.asynchronous.occupancy:.0%}} before, and is now
# {{ vital.tuned.occupancy:.0%}}.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "share of multiply-adds", "wavefronts for one multiply-add"]
# rows:
#   - [9 asynchronous, "{{ ladder.asynchronous.of_peak:.1%}}", "{{ vital.asynchronous.registers:.0f }}", "{{ vital.asynchronous.shared_kib:.1f }}", "{{ vital.asynchronous.occupancy:.0%}}", "{{ vital.asynchronous.share:.1%}}", "{{ vital.asynchronous.turns:.3f }}"]
#   - ["**10 tuned**", "**{{ ladder.tuned.of_peak:.1%}}**", "{{ vital.tuned.registers:.0f }}", "{{ vital.tuned.shared_kib:.1f }}", "{{ vital.tuned.occupancy:.0%}}", "{{ vital.tuned.share:.1%}}", "{{ vital.tuned.turns:.3f }}"]
# ///
#
# /// claim | ladder.asynchronous.us > ladder.tuned.us and vital.tuned.occupancy < vital.asynchronous.occupancy
# **{{ ladder.tuned.of_peak:.1%}} of peak**, {{ ladder.asynchronous.us / ladder.tuned.us:.2f }} times the speed of
# kernel 9, with *fewer* warps on the SM. {{ vital.tuned.share:.1%}} of the instructions are multiply-adds; by hand we
# got {{ by_hand.t16x8_by16.share:.1%}}, without the addresses and the loop.
# /// otherwise
# The kernel reaches {{ ladder.tuned.of_peak:.1%}} of peak, compared with {{ ladder.asynchronous.of_peak:.1%}} before.
# Occupancy is {{ vital.tuned.occupancy:.0%}}, compared with {{ vital.asynchronous.occupancy:.0%}} before.
# ///
#
# **Why not faster?** In {{ 1 - vital.tuned.issued:.0%}} of the ticks nothing is issued, even now.
#
# /// claim | vital.tuned.dispatch_stall > max(vital.tuned.long_scoreboard, vital.tuned.short_scoreboard, vital.tuned.barrier, vital.tuned.wait, vital.tuned.mio_throttle, vital.tuned.math_pipe_throttle, vital.tuned.lg_throttle)
# Among warps that could not be issued, the longest wait that we counted has a name that is new to you,
# *dispatch*: {{ vital.tuned.dispatch_stall:.2f }} ticks per instruction.
# /// otherwise
# For each instruction the warps wait {{ vital.tuned.dispatch_stall:.2f }} ticks for something called *dispatch*.
# ///
# ///
#
# /// exercise | Why not 16 × 16?
# On paper a 16 × 16 register tile reads 32 numbers for 256 multiply-adds. What is the argument against such a tile?
# /// answer
# The 256 sums alone need 256 registers, and a thread can have 255. Some sums would *spill* into local memory, which
# is in HBM. 16 × 8 is about the largest register tile that is possible.
# ///

# %% [markdown]
# ## 11 · Two drawers {.beyond}
#
# *Dispatch* is the path from the issue slot to the lanes. What can hold up a multiply-add there, when all its numbers
# are already in registers? The registers themselves.
#
# A thread's registers are in two banks: think of two drawers, one for the even register numbers and one for the odd
# register numbers. NVIDIA does not document this; Jia and others found it by experiment on the Volta generation
# [^jia2018]. A multiply-add needs three numbers: one of A, one of B, and the sum. By their rule two of these numbers
# may come out of the same drawer in one tick, but three may not. For this card we take the rule as a guess, and see
# whether the counters agree with it.
#
# /// figure | docs/assets/figures/sgemm_register_banks.svg
# alt: "Registers in two drawers, even and odd. With 16-byte stores, sums 0 to 3 are in four registers in a row, as b 0 to 3 are, so sum 0 is in the drawer of b 0. If a is there too, all three numbers come from one drawer: 2 ticks. If they are stored one by one, the compiler may put sum 0 across from b 0, and every multiply-add takes 1 tick."
# ///
#
# Who decides which register a number is in? The compiler does, and so do you, without knowing it. A 16-byte *store*
# needs four sums in four registers in a row. A 16-byte *load* puts four numbers of B into four registers in a row. So
# sum number c and b number c easily end up in the same drawer, and then it is a matter of chance whether *a* is in
# that drawer too. **The stores that we made wide in step 6 can tie the compiler's hands.**
#
# Do not take our word for it. Count the multiply-adds that take all three numbers from one drawer, in the machine
# code of our own kernels. The next kernel, number 11, stores the numbers of C one by one.

# %%
import re

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.sgemm.tiles import tiles_here

FFMA = re.compile(
    r"FFMA R\d+, R(\d+)(?:\.reuse)?, R(\d+)(?:\.reuse)?, R(\d+)(?:\.reuse)?"
)


def one_drawer(source, name):
    """Of a kernel's multiply-adds, those with three registers of one drawer."""
    arch = arch_of(torch.cuda.get_device_capability())
    code = sass(compile_cubin(source, arch, tiles_here().defines))
    code = code.split(f".text.{name}:")[1].split("\n.text.")[0]
    triples = FFMA.findall(code)
    same = [t for t in triples if len({int(r) % 2 for r in t}) == 1]
    print(f"{name:22}{len(triples):5} multiply-adds,{len(same):4} from one drawer")
    return quantity(len(same) / len(triples), how="counted")


record(
    drawer={
        "tuned": one_drawer(k10_tuned.SOURCE, "sgemm_tuned"),
        "register_banks": one_drawer(
            k11_register_banks.SOURCE, "sgemm_register_banks"
        ),
        "persistent": one_drawer(k12_persistent.SOURCE, "sgemm_persistent"),
    }
)

# %% [markdown] (This count ignores numbers that are *still at hand*; the exercise below takes them into account.
# Kernel 12 comes in the next section.)
#
# So store the numbers of C one by one. These stores happen only once, at the very end, and in the loop the compiler
# is free. That is one of five changes, because this step is a tuning bundle. There is one fewer buffer. The
# multiply-adds go along one row of sums and back along the next row, so that each multiply-add still has one number
# at hand from the multiply-add before. The next numbers are read from shared memory while the current ones are
# multiplied. And instead of computing an address for every copy, a thread keeps one pointer into A and one into B,
# and advances both.
#
# /// diff | src/course_kernels/sgemm/k10_tuned.cu | src/course_kernels/sgemm/k11_register_banks.cu
# title: "What changes: k10_tuned.cu → k11_register_banks.cu"
# ///
#
# /// predict | More store instructions at the end, fewer addresses in the loop, the same loads from shared memory. What moves?
# - [vital.register_banks.share > 1.02 * vital.tuned.share and vital.register_banks.dispatch_stall >= 0.8 * vital.tuned.dispatch_stall] Only the share of multiply-adds
# - [vital.register_banks.dispatch_stall < 0.8 * vital.tuned.dispatch_stall and vital.register_banks.share <= 1.02 * vital.tuned.share] Only the waiting for dispatch
# - [vital.register_banks.share > 1.02 * vital.tuned.share and vital.register_banks.dispatch_stall < 0.8 * vital.tuned.dispatch_stall] Both of these
# - [vital.register_banks.share <= 1.02 * vital.tuned.share and vital.register_banks.dispatch_stall >= 0.8 * vital.tuned.dispatch_stall] Neither of these
# /// reveal
# Multiply-adds are {{ vital.register_banks.share:.1%}} of the instructions now, compared with
# {{ vital.tuned.share:.1%}} before. The wait for dispatch was {{ vital.tuned.dispatch_stall:.2f }} ticks before, and
# is {{ vital.register_banks.dispatch_stall:.2f }} now. A multiply-add took {{ vital.tuned.turns:.3f }} wavefronts
# before, and takes {{ vital.register_banks.turns:.3f }} now.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "multiply-adds from one drawer", "waiting for dispatch", "issue slots used", "share of multiply-adds"]
# rows:
#   - [10 tuned, "{{ ladder.tuned.of_peak:.1%}}", "{{ vital.tuned.registers:.0f }}", "{{ vital.tuned.shared_kib:.1f }}", "{{ vital.tuned.occupancy:.0%}}", "{{ drawer.tuned:.0%}}", "{{ vital.tuned.dispatch_stall:.2f }}", "{{ vital.tuned.issued:.1%}}", "{{ vital.tuned.share:.1%}}"]
#   - ["**11 register banks**", "**{{ ladder.register_banks.of_peak:.1%}}**", "{{ vital.register_banks.registers:.0f }}", "{{ vital.register_banks.shared_kib:.1f }}", "{{ vital.register_banks.occupancy:.0%}}", "{{ drawer.register_banks:.0%}}", "{{ vital.register_banks.dispatch_stall:.2f }}", "{{ vital.register_banks.issued:.1%}}", "{{ vital.register_banks.share:.1%}}"]
# ///
#
# /// claim | ladder.tuned.us > ladder.register_banks.us and vital.register_banks.dispatch_stall < 0.8 * vital.tuned.dispatch_stall and drawer.register_banks < 0.5 * drawer.tuned and vital.register_banks.share > 1.02 * vital.tuned.share
# **{{ ladder.register_banks.of_peak:.1%}} of peak**, {{ ladder.tuned.us / ladder.register_banks.us:.3f }} times the
# speed of kernel 10. An instruction is issued in {{ vital.register_banks.issued:.1%}} of the ticks, compared with
# {{ vital.tuned.issued:.1%}} before, and a larger share of the instructions are multiply-adds. The wait for dispatch
# fell to {{ vital.register_banks.dispatch_stall / vital.tuned.dispatch_stall:.0%}} of what it was, as the rule of the
# drawers predicts. That is not proof: the bundle changed five things at once. [Further down](#one-change-at-a-time)
# we change just one thing. But from the source alone you would never have thought of looking at the registers. First
# the counter for a wait pointed to them, and then the machine code did.
# /// otherwise
# The kernel reaches {{ ladder.register_banks.of_peak:.1%}} of peak, compared with {{ ladder.tuned.of_peak:.1%}}
# before. The wait for dispatch is {{ vital.register_banks.dispatch_stall:.2f }} ticks, compared with
# {{ vital.tuned.dispatch_stall:.2f }} before.
# ///
# ///
#
# **Why not faster?** We have a suspicion: the stores at the end write one number per thread, and an instruction fills
# only a quarter of each sector of 32 bytes. The stores happen only once, so they can hardly matter much. But averaged
# over the whole run, {{ 1 - vital.register_banks.rooms:.1%}} of the SMs are empty.
#
# /// exercise | Which of these cost an extra tick?
# Apply the rule of the drawers. (a) R8 += R2 × R5. (b) R8 += R2 × R4. (c) R9 += R3 × R7. (d) R8 += R2 × R4, where R2
# is still at hand from the multiply-add before.
# /// answer
# (b) and (c): each takes three numbers from one drawer. (a) takes two numbers from one drawer and one from the other.
# (d) takes only two numbers out of the drawer, so it costs nothing extra. That is why the multiply-adds go along one
# row and back along the next; the machine code marks such a register with `.reuse`.
# ///

# %% [markdown]
# ## 12 · Nobody idles at the end {.beyond}
#
# A block computes one tile of C, and one block fills an SM (a room). How many tiles are there, and how many SMs? Work
# it out by hand:

# %%
sms = torch.cuda.get_device_properties(0).multi_processor_count
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)


def waves(N, rows, columns):
    """Tiles of an N × N answer, rounds over the card, and how full they are."""
    tiles = -(-N // rows) * -(-N // columns)
    rounds = -(-tiles // sms)
    return {
        "tiles": quantity(tiles),
        "rounds": quantity(rounds),
        "full": quantity(tiles / (rounds * sms)),
    }


record(
    sms=quantity(sms, how="device"),
    waves={f"n{N}": waves(N, *tiles_here().block) for N in SIZES},
)

# %% [markdown] At 4096 there are {{ waves.n4096.tiles:.0f }} tiles for {{ sms:.0f }} SMs. That is
# {{ waves.n4096.tiles / sms:.2f }} *waves*, so it takes {{ waves.n4096.rounds:.0f }} rounds. In the last round some
# SMs are empty. Over all rounds {{ waves.n4096.full:.1%}} of the places are used, if all tiles take equally long. No
# change within the tile can recover the rest.
#
# /// figure | docs/assets/figures/sgemm_last_wave.svg
# alt: "Ten tiles in four SMs take three waves, and in the last one two SMs are idle. Below, the last two tiles are cut along K: each is shared by two SMs, and the whole job ends half a wave earlier."
# ///
#
# So change two things. Let the blocks **stay**: start only as many blocks as the card has places for, and let each
# block process one tile after another. Such a kernel is called *persistent*. And when there are too few tiles left
# for all blocks, lay these tiles end to end and cut them into equal lengths *along K*. A block that has computed a
# piece of a tile *adds* the result to C. The idea is known as stream-K [^osama2023].
#
# But this step is a bundle again, with two more changes. The next tiles are ordered right after the barrier. And the
# stores are wide again. Kernel 11 stored the numbers of C one by one, to keep the drawers in order. Here is a way to
# have both tidy drawers and wide stores. The libraries do not compute A × B but **α × A × B**, with a number α that
# the caller gives. This kernel does the same, and its caller gives 1. The products with α are *new* numbers, in
# registers of their own. Four of these products can be side by side and be stored as 16 bytes. The sums stay where
# they were.
#
# /// diff | src/course_kernels/sgemm/k11_register_banks.cu | src/course_kernels/sgemm/k12_persistent.cu
# title: "What changes: k11_register_banks.cu → k12_persistent.cu"
# ///
#
# /// predict | {{ waves.n4096.full:.0%}} of the places are used. How much of the rest do we get back, in time?
# All of it, part of it, or less than nothing? Pick one, and say why.
# /// reveal
# The SMs are in use for {{ vital.persistent.rooms:.1%}} of the ticks, compared with
# {{ vital.register_banks.rooms:.1%}} before. The kernel takes
# {{ ladder.persistent.us / ladder.register_banks.us:.3f }} times as long. If we had got all of the rest back, this
# factor would be {{ waves.n4096.full:.3f }}; if we had got nothing back, it would be 1.
#
# /// table
# turned: true
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "SMs in use, of all ticks", "issue slots used, of all ticks", "share of multiply-adds", "multiply-adds from one drawer", "hits in L2", "MB from HBM", "MB written"]
# rows:
#   - [11 register banks, "{{ ladder.register_banks.of_peak:.1%}}", "{{ vital.register_banks.registers:.0f }}", "{{ vital.register_banks.shared_kib:.1f }}", "{{ vital.register_banks.occupancy:.0%}}", "{{ vital.register_banks.rooms:.1%}}", "{{ vital.register_banks.issued:.1%}}", "{{ vital.register_banks.share:.1%}}", "{{ drawer.register_banks:.0%}}", "{{ vital.register_banks.l2_hits:.0%}}", "{{ counted.register_banks.read_bytes / 1e6:.0f }}", "{{ counted.register_banks.write_bytes / 1e6:.0f }}"]
#   - ["**12 persistent**", "**{{ ladder.persistent.of_peak:.1%}}**", "{{ vital.persistent.registers:.0f }}", "{{ vital.persistent.shared_kib:.1f }}", "{{ vital.persistent.occupancy:.0%}}", "{{ vital.persistent.rooms:.1%}}", "{{ vital.persistent.issued:.1%}}", "{{ vital.persistent.share:.1%}}", "{{ drawer.persistent:.0%}}", "{{ vital.persistent.l2_hits:.0%}}", "{{ counted.persistent.read_bytes / 1e6:.0f }}", "{{ counted.persistent.write_bytes / 1e6:.0f }}"]
# ///
#
# **{{ ladder.persistent.of_peak:.1%}} of peak**, {{ ladder.register_banks.us / ladder.persistent.us:.3f }} times the
# speed of kernel 11, and the last step of the ladder. At this size the times cannot confirm the gain: two cards
# differ by about as much. So look at the counters. Further down, with
# [smaller matrices](#from-small-to-large-and-ugly-sizes), the times do confirm the gain.
#
# /// claim | vital.persistent.rooms > 1.01 * vital.register_banks.rooms and vital.persistent.issued > 1.01 * vital.register_banks.issued
# The counters are clear. Hardly any SM is empty now: SMs are in use
# {{ vital.persistent.rooms / vital.register_banks.rooms:.3f }} times as much as before, and instructions are issued
# in {{ vital.persistent.issued:.1%}} of the ticks, compared with {{ vital.register_banks.issued:.1%}} before. Four
# things changed at once, and further down we take three of them apart.
# /// otherwise
# The SMs are in use for {{ vital.persistent.rooms:.1%}} of the ticks, and instructions are issued in {{ vital.persistent.issued:.1%}}.
# Four things changed at once, and further down we take three of them apart.
# ///
# ///
#
# /// claim | counted.persistent.read_bytes > 1.5 * counted.register_banks.read_bytes and vital.persistent.share < 0.995 * vital.register_banks.share and vital.persistent.l2_hits < vital.register_banks.l2_hits
# The new kernel has its price. {{ counted.persistent.read_bytes / counted.register_banks.read_bytes:.1f}} times as
# many bytes come from HBM: blocks that work on pieces are at *different places along K* at the same moment, so
# perhaps they no longer want the same strips of A and B. Nobody was waiting for HBM, so the extra bytes hardly hurt
# here. And a smaller share of the instructions are multiply-adds, {{ vital.persistent.share:.1%}} instead of
# {{ vital.register_banks.share:.1%}}, very likely because a loop that may begin and end anywhere along K has more to
# compute.
# /// otherwise
# {{ counted.persistent.read_bytes / 1e6:.0f }} MB come from HBM, compared with
# {{ counted.register_banks.read_bytes / 1e6:.0f }} MB before.
# ///
#
# There is one more price, and it is not paid in time. Which block adds its part first differs from run to run, and
# fp32 sums depend on the order of the additions. So the last bits of some sums may differ between two runs of the
# *same* kernel. If you must have the same bits in every run, stay with kernel 11.
#
# **Why not faster?** This is the last kernel of the ladder, and the question gets a
# [section of its own](#why-is-the-last-one-not-faster).
#
# /// exercise | The last wave
# A card has 100 SMs, one block fits on each SM, and all tiles take equally long. How full is the card with 100, 101,
# 150 and 1050 tiles?
# /// answer
# 100 tiles: one round, all places taken. 101: two rounds, 101 of 200 places. 150: 150 of 200. 1050: eleven rounds,
# 1050 of 1100 places. One tile too many can cost half the card, but with many rounds the loss is hardly noticeable.
# ///

# %% [markdown]
# ## What holds the last one back? {#why-is-the-last-one-not-faster .beyond}
#
# Take kernel 12 apart, and put the library beside it. The percentage of peak is the product of three factors: the
# clock rate, the issue slots used, and the share of multiply-adds. We begin with the clock rate, read while a kernel
# runs for a second.

# %% tags=["fold"]
from course_kernels.measure import samples
from course_kernels.measure.sensors import Sampler
from course_kernels.sgemm.problem import PROBLEM


def under_load(function, seconds=1.0):
    """Clock and power while a kernel runs again and again."""
    generator = torch.Generator(device="cuda").manual_seed(7)
    a, b = PROBLEM.make_inputs(square, generator, "cuda")
    runs = round(seconds / 0.0028)  # of about as long each
    with Sampler() as sampler:
        for _ in range(runs):
            function(a, b)
        torch.cuda.synchronize()
    second_half = slice(len(sampler.columns["t_s"]) // 2, None)
    return {
        "mhz": samples(
            sampler.columns["sm_mhz"][second_half], unit="MHz", how="device"
        ),
        "watt": samples(
            sampler.columns["power_w"][second_half], unit="W", how="device"
        ),
    }


record(
    load={
        "persistent": under_load(k12_persistent.sgemm),
        "cublas": under_load(library.cublas),
    }
)

# %% [markdown]
# /// table
# columns: ["", 12 persistent, cuBLAS]
# rows:
#   - ["clock, of the highest", "{{ load.persistent.mhz / l1.card.clock_mhz:.1%}}", "{{ load.cublas.mhz / l1.card.clock_mhz:.1%}}"]
#   - ["× issue slots used, of all ticks", "{{ vital.persistent.issued:.1%}}", "{{ vital.cublas.issued:.1%}}"]
#   - ["× share of multiply-adds", "{{ vital.persistent.share:.1%}}", "{{ vital.cublas.share:.1%}}"]
#   - ["= % of peak, by counters", "{{ product.persistent:.1%}}", "{{ product.cublas:.1%}}"]
#   - ["**% of peak, timed**", "**{{ ladder.persistent.of_peak:.1%}}**", "**{{ ladder.cublas.of_peak:.1%}}**"]
#   - ["SMs in use, of all ticks", "{{ vital.persistent.rooms:.1%}}", "{{ vital.cublas.rooms:.1%}}"]
#   - [registers, "{{ vital.persistent.registers:.0f }}", "{{ vital.cublas.registers:.0f }}"]
#   - ["shared memory, KiB", "{{ vital.persistent.shared_kib:.1f }}", "{{ vital.cublas.shared_kib:.1f }}"]
#   - [occupancy, "{{ vital.persistent.occupancy:.1%}}", "{{ vital.cublas.occupancy:.1%}}"]
#   - ["wavefronts of shared memory for one multiply-add", "{{ vital.persistent.turns:.3f }}", "{{ vital.cublas.turns:.3f }}"]
#   - ["waiting for dispatch", "{{ vital.persistent.dispatch_stall:.2f }}", "{{ vital.cublas.dispatch_stall:.2f }}"]
#   - ["waiting for shared memory", "{{ vital.persistent.short_scoreboard:.2f }}", "{{ vital.cublas.short_scoreboard:.2f }}"]
#   - ["waiting for global memory", "{{ vital.persistent.long_scoreboard:.2f }}", "{{ vital.cublas.long_scoreboard:.2f }}"]
#   - ["waiting for each other", "{{ vital.persistent.barrier:.2f }}", "{{ vital.cublas.barrier:.2f }}"]
#   - ["waiting a fixed number of ticks", "{{ vital.persistent.wait:.2f }}", "{{ vital.cublas.wait:.2f }}"]
#   - ["ready, but a different one was issued", "{{ vital.persistent.not_selected:.2f }}", "{{ vital.cublas.not_selected:.2f }}"]
# caption: Counters of one launch of 4096 × 4096 × 4096. Waiting is given in ticks for each instruction issued, over all warps of a scheduler. Clock and power under load, ours and the library's, are {{ load.persistent.mhz:.0f }} and {{ load.cublas.mhz:.0f }} MHz, {{ load.persistent.watt:.0f }} and {{ load.cublas.watt:.0f }} W.
# ///
#
# /// define | product.persistent = load.persistent.mhz / l1.card.clock_mhz * vital.persistent.issued * vital.persistent.share
# unit: "1"
# what: clock × issue slots used × share of multiply-adds, last kernel of the ladder, 4096 × 4096 × 4096
# ///
#
# /// define | product.cublas = load.cublas.mhz / l1.card.clock_mhz * vital.cublas.issued * vital.cublas.share
# unit: "1"
# what: clock × issue slots used × share of multiply-adds, cuBLAS in fp32, 4096 × 4096 × 4096
# ///
#
# /// claim | abs(product.persistent / ladder.persistent.of_peak - 1) < 0.12 and abs(product.cublas / ladder.cublas.of_peak - 1) < 0.12
# Compare the product of the three factors with the percentage that was timed: {{ product.persistent:.1%}} and
# {{ ladder.persistent.of_peak:.1%}} for our kernel, {{ product.cublas:.1%}} and {{ ladder.cublas.of_peak:.1%}} for
# the library. In our run the two differ by {{ abs(product.persistent / ladder.persistent.of_peak - 1):.1%}} and
# {{ abs(product.cublas / ladder.cublas.of_peak - 1):.1%}}. The clock, the counters and the time come from three separate runs, and on a different day the two results may differ by more: we vouch for a difference of less than 12 %. That is
# enough to say that no large factor is missing: if you want more speed, you must raise one of the three.
# /// otherwise
# The product of the three factors is {{ product.persistent:.1%}}, and the percentage that was timed is
# {{ ladder.persistent.of_peak:.1%}}.
# ///
#
# /// claim | load.cublas.mhz > 0.92 * l1.card.clock_mhz and load.persistent.mhz > 0.92 * l1.card.clock_mhz
# The clock is hardly to blame. While the library runs, the clock is at {{ load.cublas.mhz:.0f }} MHz, with a maximum
# of {{ l1.card.clock_mhz:.0f }} MHz, and the card draws {{ load.cublas.watt:.0f }} W. We expect the clock to stay
# above 92 % of its maximum on other cards of this model, too.
# /// otherwise
# The clock runs at {{ load.cublas.mhz:.0f }} MHz under load; its maximum is {{ l1.card.clock_mhz:.0f }} MHz.
# ///
#
# [The first lecture](l1_what_a_gpu_is.py#the-peak-by-hand) had a kernel that only multiplies and adds, in registers.
# That kernel reached {{ l1.fma.of_peak:.1%}} of peak. Nothing that we have run on these lanes is faster. Our
# last kernel reaches {{ ladder.persistent.tflops / l1.fma.tflops:.1%}} of *that kernel's* speed, and the library
# reaches {{ ladder.cublas.tflops / l1.fma.tflops:.1%}}.
#
# /// claim | vital.persistent.share < 0.95 and vital.persistent.issued < 0.9 and vital.persistent.rooms > 0.98
# So what is missing? {{ 1 - vital.persistent.share:.1%}} of the instructions are not multiply-adds: they load from
# shared memory, copy, compute addresses, or run the loop. And in {{ 1 - vital.persistent.issued:.1%}} of the ticks
# nothing is issued. SMs are hardly ever empty any more: only in {{ 1 - vital.persistent.rooms:.1%}} of the ticks. But
# a scheduler has only two warps, and when both have to wait, there is no other warp to issue.
# /// otherwise
# {{ 1 - vital.persistent.share:.1%}} of the instructions are not multiply-adds, and in {{ 1 - vital.persistent.issued:.1%}} of
# the ticks nothing is issued.
# ///
#
# /// claim | vital.cublas.issued > vital.persistent.issued and vital.cublas.share < vital.persistent.share and vital.cublas.turns > 1.1 * vital.persistent.turns
# And what about the library? The library's kernel is built in a similar way: it has as many warps as ours, and uses nearly all
# the registers. It takes *more* wavefronts of shared memory, {{ vital.cublas.turns:.3f }} per multiply-add against
# our {{ vital.persistent.turns:.3f }}. A smaller share of its instructions are multiply-adds,
# {{ vital.cublas.share:.1%}} against our {{ vital.persistent.share:.1%}}. In return it issues an instruction a little
# more often, in {{ vital.cublas.issued:.1%}} of the ticks against our {{ vital.persistent.issued:.1%}}. These are two
# ways to the same speed. A kernel that used as many issue slots as the library's and had our share of multiply-adds
# would reach {{ vital.cublas.issued * vital.persistent.share:.1%}}.
# /// otherwise
# The library issues in {{ vital.cublas.issued:.1%}} of the ticks, and {{ vital.cublas.share:.1%}} of its instructions are multiply-adds.
# ///
#
# ### An idea that can gain nothing here
#
# There is one more idea in every good book, and we have left it out: **the order of the tiles**. Tiles that run at the same time
# should share strips of A and B, so that the strips are still in L2. CUTLASS calls this rasterization [^cutlass-gemm].
#
# /// figure | docs/assets/figures/sgemm_tile_order.svg
# alt: "The tiles of C as a grid of 12 by 12; 24 of them are worked on at a time. Row after row, they cover two rows and need 2 strips of A and all 12 of B, 14 together. In bands of four rows, they need 4 strips of A and 6 of B, 10 together."
# ///
#
# Would a better order pay? Ask the counters before you write such a kernel.

# %%
record(
    square_bytes={
        "a": quantity(4 * square.M * square.K, "B"),
        "b": quantity(4 * square.K * square.N, "B"),
    }
)

# %% [markdown]
# /// claim | counted.persistent.read_bytes / ladder.persistent.us / 1e3 < 0.1 * l3.card.bandwidth and vital.persistent.long_scoreboard < 0.05
# A and B together are {{ (square_bytes.a + square_bytes.b) / 1e6:.0f }} MB. Kernel 12 reads
# {{ counted.persistent.read_bytes / 1e6:.0f }} MB from HBM, and L2 answers {{ vital.persistent.l2_hits:.0%}} of its
# requests. So there are bytes to save. But spread over the time that the arithmetic takes, these bytes are
# {{ counted.persistent.read_bytes / ladder.persistent.us / 1e3 / l3.card.bandwidth:.1%}} of what HBM can deliver, and
# the wait for global memory is {{ vital.persistent.long_scoreboard:.2f }} ticks per instruction. You would save bytes
# that nobody is waiting for. Tensor cores need the same bytes in a fraction of the time, so with tensor cores you
# would have to ask again.
# /// otherwise
# A and B together are {{ (square_bytes.a + square_bytes.b) / 1e6:.0f }} MB; kernel 12 reads {{ counted.persistent.read_bytes / 1e6:.0f }}
# MB from HBM.
# ///
#
# ### Which shape?
#
# The tiles of steps 10 to 12 were chosen by this race: six shapes of kernel 11, all from the same source with
# different constants.

# %% tags=["fold"]
import numpy as np
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.measure.competitor import Competitor
from course_kernels.sgemm.arguments import product_of
from course_kernels.sgemm.tiles import Tiles

SHAPES = {
    "small": Tiles((128, 128), (32, 64), (8, 8)),
    "square": Tiles((128, 128), (64, 64), (16, 8)),
    "tall": Tiles((256, 128), (64, 64), (16, 8)),
    "turned": Tiles((128, 256), (64, 64), (8, 16)),
    "flat": Tiles((128, 256), (32, 128), (16, 8)),
    "wide": Tiles((128, 256), (64, 64), (16, 8)),
}


def of_shape(tiles):
    """Kernel 11 with these tiles, compiled."""
    return load_kernel(
        k11_register_banks.SOURCE, "sgemm_register_banks", tiles.defines
    )


def shaped(tiles):
    """Kernel 11 with these tiles; for sizes that every tile divides."""
    kernel = of_shape(tiles)

    def sgemm(a, b):
        c, M, N, K = product_of(a, b)
        grid = (N // tiles.block[1], M // tiles.block[0])
        sizes = (np.int32(M), np.int32(N), np.int32(K))
        launch(kernel, grid, tiles.threads, a, b, c, *sizes)
        return c

    return sgemm


def race(functions, seconds):
    """Each checked against float64, then timed in rounds."""
    field = {
        name: Competitor(name, PROBLEM, function)
        for name, function in functions.items()
    }
    return compare(field, square, seconds=seconds)


def seats(tiles):
    """How many threads of such a kernel fit in a room."""
    blocks = of_shape(tiles).occupancy.max_active_blocks_per_multiprocessor(
        tiles.threads, 0
    )
    return quantity(blocks * tiles.threads, how="device")


record(
    shape=race({name: shaped(tiles) for name, tiles in SHAPES.items()}, 0.1),
    places={name: seats(tiles) for name, tiles in SHAPES.items()},
)

# %% [markdown]
# /// table
# columns: [block tile, warp tile, register tile, threads that fit, "time, µs", "over the last"]
# rows:
#   - ["128 × 128", "32 × 64", "8 × 8", "{{ places.small:.0f }}", "{{ shape.small.us:.0f }}", "{{ shape.small.us / shape.wide.us:.3f }}"]
#   - ["128 × 128", "64 × 64", "16 × 8", "{{ places.square:.0f }}", "{{ shape.square.us:.0f }}", "{{ shape.square.us / shape.wide.us:.3f }}"]
#   - ["256 × 128", "64 × 64", "16 × 8", "{{ places.tall:.0f }}", "{{ shape.tall.us:.0f }}", "{{ shape.tall.us / shape.wide.us:.3f }}"]
#   - ["128 × 256", "64 × 64", "8 × 16", "{{ places.turned:.0f }}", "{{ shape.turned.us:.0f }}", "{{ shape.turned.us / shape.wide.us:.3f }}"]
#   - ["128 × 256", "32 × 128", "16 × 8", "{{ places.flat:.0f }}", "{{ shape.flat.us:.0f }}", "{{ shape.flat.us / shape.wide.us:.3f }}"]
#   - ["**128 × 256**", "**64 × 64**", "**16 × 8**", "{{ places.wide:.0f }}", "**{{ shape.wide.us:.0f }}**", "**{{ shape.wide.us / shape.wide.us:.3f }}**"]
# caption: 4096 × 4096 × 4096, all answers checked. An SM seats at most 2048 threads.
# ///
#
# /// claim | shape.wide.us < 1.07 * min(shape.small.us, shape.square.us, shape.tall.us, shape.turned.us, shape.flat.us)
# We keep the last shape. We do not claim that it is the best: several shapes differ by less than two cards do, and
# this race cannot put them in order. But the race does show that we give away less than 7 % with this shape. The 8 ×
# 8 tile of steps 5 to 9 takes {{ shape.small.us / shape.wide.us:.2f }} times as long, even with all the other ideas
# of kernel 11.
# /// otherwise
# The 8 × 8 tile of steps 5 to 9 takes {{ shape.small.us / shape.wide.us:.2f }} times as long as the shape that we keep.
# ///
#
# /// claim | abs(shape.flat.us / shape.wide.us - 1) < 0.06
# And compare the last two rows: they have the same block and register tiles, but the warp tile is flat in one and
# square in the other. The ratio of their times is {{ shape.flat.us / shape.wide.us:.3f }}. If there is any
# difference, it is less than 6 %. This confirms the side note, step 8.
# /// otherwise
# A flat warp tile takes {{ shape.flat.us / shape.wide.us:.3f }} times as long as a square warp tile.
# ///
#
# ### One change at a time
#
# Here are five changes, each to one part of kernel 12. The race and the check are the same as before. Look at the row
# in **bold** first: this kernel stores the sums themselves, without α, and its source is otherwise identical to
# kernel 12's, letter for letter.

# %% tags=["fold"]
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp(prefix="course-changed-"))
(folder / "vectors.cuh").write_text(
    (k12_persistent.SOURCE.parent / "vectors.cuh").read_text()
)
CHANGES = {
    "unchanged": ("", ""),
    "three_trays": ("STAGES = 2;", "STAGES = 3;"),
    "no_sharing": (
        "const bool whole = round < rounds;",
        "const bool whole = true;\n    if (round * blocks + block >= tiles) return;",
    ),
    "in_bands": (
        "tile / tiles_n * BM, tile % tiles_n * BN",
        "(tile / (8 * tiles_n) * 8 + tile % 8) * BM, tile % (8 * tiles_n) / 8 * BN",
    ),
    "one_way": ("r % 2 ? TN - 1 - i : i", "i"),
    "sums_themselves": ("alpha * sums", "sums"),
}


def changed(name, before, after):
    """The last kernel with one piece of its source replaced; for 4096 only."""
    text = k12_persistent.SOURCE.read_text()
    if before not in text:
        raise ValueError(f"{name}: the source has no {before!r} any more")
    path = folder / f"{name}.cu"
    path.write_text(text.replace(before, after) if before else text)
    tiles = tiles_here()
    kernel = load_kernel(path, "sgemm_persistent", tiles.defines)
    blocks = k12_persistent.places(kernel, tiles.threads)

    def sgemm(a, b):
        c, M, N, K = product_of(a, b)
        tiles_n = N // tiles.block[1]
        count = M // tiles.block[0] * tiles_n
        if name != "no_sharing":
            c[count // blocks * blocks // tiles_n * tiles.block[0] :].zero_()
        sizes = (np.int32(M), np.int32(N), np.int32(K))
        alpha = k12_persistent.ALPHA
        launch(kernel, blocks, tiles.threads, a, b, c, *sizes, alpha)
        return c

    return sgemm


record(
    idea=race(
        {
            "kernel_11": k11_register_banks.sgemm,
            **{name: changed(name, *how) for name, how in CHANGES.items()},
        },
        0.2,
    ),
    one_drawer_without_alpha=one_drawer(
        folder / "sums_themselves.cu", "sgemm_persistent"
    ),
)

# %% [markdown]
# /// table
# columns: [what is changed, "time, µs", "over unchanged"]
# rows:
#   - [nothing, "{{ idea.unchanged.us:.0f }}", "{{ idea.unchanged.us / idea.unchanged.us:.3f }}"]
#   - ["three buffers instead of two", "{{ idea.three_trays.us:.0f }}", "{{ idea.three_trays.us / idea.unchanged.us:.3f }}"]
#   - ["blocks stay, but the last wave is not shared", "{{ idea.no_sharing.us:.0f }}", "{{ idea.no_sharing.us / idea.unchanged.us:.3f }}"]
#   - ["tiles in bands of eight rows, for L2", "{{ idea.in_bands.us:.0f }}", "{{ idea.in_bands.us / idea.unchanged.us:.3f }}"]
#   - ["**the sums themselves are stored, without α**", "{{ idea.sums_themselves.us:.0f }}", "{{ idea.sums_themselves.us / idea.unchanged.us:.3f }}"]
#   - ["multiply-adds always from the left, not there and back", "{{ idea.one_way.us:.0f }}", "{{ idea.one_way.us / idea.unchanged.us:.3f }}"]
# caption: Above 1, the change costs time.
# ///
#
# /// claim | idea.sums_themselves.us > 1.08 * idea.unchanged.us and one_drawer_without_alpha > 0.3 and drawer.persistent < 0.05
# **Here are the two drawers on their own.** Without α, the 16-byte stores need the *sums* side by side. In the
# machine code {{ one_drawer_without_alpha:.0%}} of the multiply-adds then take all three numbers from one drawer;
# with α, {{ drawer.persistent:.0%}} of them do. Without α, the kernel takes
# {{ idea.sums_themselves.us / idea.unchanged.us:.3f }} times as long. Nothing else in the source was changed. We did
# not look at what else the compiler changed, and we did not count the wait for dispatch here. So the result strongly
# supports the rule of the drawers, but it is not proof.
# /// otherwise
# Without α the sums themselves are stored, and the kernel takes {{ idea.sums_themselves.us / idea.unchanged.us:.3f }}
# times as long.
# ///
#
# /// claim | idea.one_way.us > 0.98 * idea.unchanged.us
# Going along one row of sums and back along the next is meant to pay too. A kernel that always starts from the left
# has fewer numbers still at hand, and takes {{ idea.one_way.us / idea.unchanged.us:.3f }} times as long in this race.
# On a different card the factor may be smaller. We vouch only for this: going back along the next row does not cost
# you more than 2 %.
# /// otherwise
# A kernel whose multiply-adds always start from the left takes {{ idea.one_way.us / idea.unchanged.us:.3f }} times as
# long.
# ///
#
# You can also see the two halves of step 12 separately. With blocks that stay, and no sharing, the kernel takes
# {{ idea.no_sharing.us / idea.kernel_11.us:.3f }} times as long as kernel 11. With the last wave shared as well, it
# takes {{ idea.unchanged.us / idea.kernel_11.us:.3f }} times as long. Do not rank figures that are so close together:
# two cards differ by about as much. The arithmetic says that *sharing* should pay and that *staying* only makes it
# possible. This race alone cannot prove that.
#
# /// claim | idea.three_trays.us > 0.99 * idea.unchanged.us
# A third buffer would give each tile one more step to arrive. With three buffers the kernel takes
# {{ idea.three_trays.us / idea.unchanged.us:.3f }} times as long in this race, and we do not expect the third buffer
# to save as much as 1 % anywhere. Nobody was waiting for tiles any more.
# /// otherwise
# With the extra buffer the kernel takes {{ idea.three_trays.us / idea.unchanged.us:.3f }} of the time.
# ///
#
# /// claim | abs(idea.in_bands.us / idea.unchanged.us - 1) < 0.06
# With a different order of the tiles the kernel takes {{ idea.in_bands.us / idea.unchanged.us:.3f }} times as long.
# To within 6 % the order changes nothing, as the counters predicted.
# /// otherwise
# With a different order of the tiles the kernel takes {{ idea.in_bands.us / idea.unchanged.us:.3f }} times as long.
# ///
#
# /// exercise | How wide a band?
# 16 blocks run at a time, and C has 8 × 8 tiles. How many strips of A and B are needed at a time in bands of 1, 2, 4 and 8 rows?
# /// answer
# One row at a time: 2 rows of 8, so 2 + 8 = 10. Bands of 2: 2 + 8 = 10. Bands of 4: 4 + 4 = 8. Bands of 8: 8 + 2 = 10.
# The square needs the fewest strips.
# ///

# %% [markdown]
# ## From small to large, and ugly sizes
#
# One size tells you little. A kernel must be right at every size, which is why you take care of the edges in the lab.
# Some sizes are *ugly*: 1000 is a multiple of 8 but not of any tile, and in a matrix with 1023 or 4095 columns most
# rows do not even begin at an address where a 16-byte access is allowed.
#
# ### Size by size, beside the library {.beyond}
#
# Here are the last two steps beside the library, at sizes from 128 to 8192.

# %%
UGLY = (1000, 1023, 4095)
FIELD = {
    "whole": k11_register_banks,
    "shared": k12_persistent,
    "cublas": library.cublas,
}
runs = {
    f"n{N}": compare(FIELD, Workload.of("float32", M=N, N=N, K=N), seconds=0.05)
    for N in (*SIZES, *UGLY)
}
record(
    smooth={who: {f"n{N}": runs[f"n{N}"][who] for N in SIZES} for who in FIELD},
    ugly={who: {f"n{N}": runs[f"n{N}"][who] for N in UGLY} for who in FIELD},
)

# %% [markdown]
# /// chart | lines
# title: "N × N × N in fp32"
# x: N
# y: tflops
# x_label: N
# y_label: TFLOP/s
# x_scale: log2
# series:
#   - {name: smooth.whole.*, label: 11 register banks}
#   - {name: smooth.shared.*, label: 12 persistent}
#   - {name: smooth.cublas.*, label: cuBLAS, style: reference}
# references:
#   - {label: data sheet, value: ladder.cublas.tflops / ladder.cublas.of_peak}
# alt: "TFLOP/s against N. Kernel 12: {{ smooth.shared.n128.tflops:.1f }} at 128, {{ smooth.shared.n1024.tflops:.1f }} at 1024, {{ smooth.shared.n4096.tflops:.1f }} at 4096, {{ smooth.shared.n8192.tflops:.1f }} at 8192. Kernel 11: {{ smooth.whole.n128.tflops:.1f }}, {{ smooth.whole.n1024.tflops:.1f }}, {{ smooth.whole.n4096.tflops:.1f }}, {{ smooth.whole.n8192.tflops:.1f }}. cuBLAS: {{ smooth.cublas.n128.tflops:.1f }}, {{ smooth.cublas.n1024.tflops:.1f }}, {{ smooth.cublas.n4096.tflops:.1f }}, {{ smooth.cublas.n8192.tflops:.1f }}."
# ///
#
# /// table
# columns: [N, tiles, "SMs in use by hand, kernel 11", "% of peak, 11", "% of peak, 12", "% of peak, cuBLAS", "the better of ours, % of cuBLAS"]
# rows:
#   - ["128", "{{ waves.n128.tiles:.0f }}", "{{ waves.n128.full:.0%}}", "{{ smooth.whole.n128.of_compute:.1%}}", "{{ smooth.shared.n128.of_compute:.1%}}", "{{ smooth.cublas.n128.of_compute:.1%}}", "{{ max(smooth.whole.n128.tflops, smooth.shared.n128.tflops) / smooth.cublas.n128.tflops:.0%}}"]
#   - ["256", "{{ waves.n256.tiles:.0f }}", "{{ waves.n256.full:.0%}}", "{{ smooth.whole.n256.of_compute:.1%}}", "{{ smooth.shared.n256.of_compute:.1%}}", "{{ smooth.cublas.n256.of_compute:.1%}}", "{{ max(smooth.whole.n256.tflops, smooth.shared.n256.tflops) / smooth.cublas.n256.tflops:.0%}}"]
#   - ["512", "{{ waves.n512.tiles:.0f }}", "{{ waves.n512.full:.0%}}", "{{ smooth.whole.n512.of_compute:.1%}}", "{{ smooth.shared.n512.of_compute:.1%}}", "{{ smooth.cublas.n512.of_compute:.1%}}", "{{ max(smooth.whole.n512.tflops, smooth.shared.n512.tflops) / smooth.cublas.n512.tflops:.0%}}"]
#   - ["1024", "{{ waves.n1024.tiles:.0f }}", "{{ waves.n1024.full:.0%}}", "{{ smooth.whole.n1024.of_compute:.1%}}", "{{ smooth.shared.n1024.of_compute:.1%}}", "{{ smooth.cublas.n1024.of_compute:.1%}}", "{{ max(smooth.whole.n1024.tflops, smooth.shared.n1024.tflops) / smooth.cublas.n1024.tflops:.0%}}"]
#   - ["2048", "{{ waves.n2048.tiles:.0f }}", "{{ waves.n2048.full:.0%}}", "{{ smooth.whole.n2048.of_compute:.1%}}", "{{ smooth.shared.n2048.of_compute:.1%}}", "{{ smooth.cublas.n2048.of_compute:.1%}}", "{{ max(smooth.whole.n2048.tflops, smooth.shared.n2048.tflops) / smooth.cublas.n2048.tflops:.0%}}"]
#   - ["4096", "{{ waves.n4096.tiles:.0f }}", "{{ waves.n4096.full:.0%}}", "{{ smooth.whole.n4096.of_compute:.1%}}", "{{ smooth.shared.n4096.of_compute:.1%}}", "{{ smooth.cublas.n4096.of_compute:.1%}}", "{{ max(smooth.whole.n4096.tflops, smooth.shared.n4096.tflops) / smooth.cublas.n4096.tflops:.0%}}"]
#   - ["8192", "{{ waves.n8192.tiles:.0f }}", "{{ waves.n8192.full:.0%}}", "{{ smooth.whole.n8192.of_compute:.1%}}", "{{ smooth.shared.n8192.of_compute:.1%}}", "{{ smooth.cublas.n8192.of_compute:.1%}}", "{{ max(smooth.whole.n8192.tflops, smooth.shared.n8192.tflops) / smooth.cublas.n8192.tflops:.0%}}"]
#   - ["1000", "", "", "{{ ugly.whole.n1000.of_compute:.1%}}", "{{ ugly.shared.n1000.of_compute:.1%}}", "{{ ugly.cublas.n1000.of_compute:.1%}}", "{{ max(ugly.whole.n1000.tflops, ugly.shared.n1000.tflops) / ugly.cublas.n1000.tflops:.0%}}"]
#   - ["1023", "", "", "{{ ugly.whole.n1023.of_compute:.1%}}", "{{ ugly.shared.n1023.of_compute:.1%}}", "{{ ugly.cublas.n1023.of_compute:.1%}}", "{{ max(ugly.whole.n1023.tflops, ugly.shared.n1023.tflops) / ugly.cublas.n1023.tflops:.0%}}"]
#   - ["4095", "", "", "{{ ugly.whole.n4095.of_compute:.1%}}", "{{ ugly.shared.n4095.of_compute:.1%}}", "{{ ugly.cublas.n4095.of_compute:.1%}}", "{{ max(ugly.whole.n4095.tflops, ugly.shared.n4095.tflops) / ugly.cublas.n4095.tflops:.0%}}"]
# caption: Percent of peak refers to the arithmetic, at every size. The small matrices have too few tiles for the SMs.
# ///
#
# /// claim | smooth.whole.n1024.of_compute < 0.4 * smooth.whole.n4096.of_compute and smooth.shared.n1024.us < 0.5 * smooth.whole.n1024.us
# At 1024 there are {{ waves.n1024.tiles:.0f }} tiles for {{ sms:.0f }} SMs. So with kernel 11,
# {{ 1 - waves.n1024.full:.0%}} of the card is empty. Kernel 12 cuts those tiles along K and gives every SM work, and
# it runs at {{ smooth.whole.n1024.us / smooth.shared.n1024.us:.1f }} times the speed of kernel 11. Cutting the tiles
# also helps *small* matrices, a bonus that we had not asked for.
# /// otherwise
# At 1024 there are {{ waves.n1024.tiles:.0f }} tiles for {{ sms:.0f }} SMs. Kernel 11 reaches
# {{ smooth.whole.n1024.of_compute:.1%}} of peak, and kernel 12 reaches {{ smooth.shared.n1024.of_compute:.1%}}.
# ///
#
# /// claim | abs(smooth.shared.n2048.us / smooth.whole.n2048.us - 1) < 0.06
# At 2048 there is next to nothing to gain. {{ waves.n2048.tiles:.0f }} tiles nearly fill the SMs. Cutting the tiles
# takes {{ smooth.shared.n2048.us / smooth.whole.n2048.us:.3f }} times as long as leaving them whole: the two times
# are the same, to within 6 %. We reach {{ smooth.shared.n2048.tflops / smooth.cublas.n2048.tflops:.1%}} of the
# library.
# /// otherwise
# At 2048 kernel 12 takes {{ smooth.shared.n2048.us / smooth.whole.n2048.us:.3f }} times as long as kernel 11.
# ///
#
# How we compare with the library depends on the size. At 512 we reach
# {{ smooth.shared.n512.tflops / smooth.cublas.n512.tflops:.0%}} of the library's speed. A tile of 128 × 256 is a
# choice for large matrices. Most likely the library also has smaller tiles and picks among them; we have not looked.
# And the time of such a short job differs more from card to card than the time of a long job, so take this figure as
# the result of one run.
#
# /// claim | smooth.shared.n1024.tflops > 1.02 * smooth.cublas.n1024.tflops
# At 1024 kernel 12 wins, with {{ smooth.shared.n1024.tflops / smooth.cublas.n1024.tflops:.0%}} of
# the library's speed.
# /// otherwise
# At 1024 we reach {{ smooth.shared.n1024.tflops / smooth.cublas.n1024.tflops:.0%}} of the library's speed.
# ///
#
# /// claim | smooth.shared.n512.host_us > 1.2 * smooth.shared.n512.us
# And these are only the times on the card. At 512, kernel 12 works for {{ smooth.shared.n512.us:.0f }} µs, and its
# caller is busy for {{ smooth.shared.n512.host_us:.0f }} µs. In that time Python allocates C, clears a part of it,
# and writes the order. In this race the caller does other work between its calls, which very likely makes the caller
# slower; the library's caller takes {{ smooth.cublas.n512.host_us:.0f }} µs. If your caller is as slow as ours when
# it calls the kernel over and over, the card has to wait. Then a faster caller is worth more than a faster kernel.
# /// otherwise
# And these are only the times on the card. At 512, kernel 12 works for {{ smooth.shared.n512.us:.0f }} µs, and its
# caller is busy for {{ smooth.shared.n512.host_us:.0f }} µs.
# ///
#
# /// claim | abs(smooth.shared.n4096.tflops / smooth.cublas.n4096.tflops - 1) < 0.07 and abs(smooth.shared.n8192.tflops / smooth.cublas.n8192.tflops - 1) < 0.07
# At 4096 and at 8192 our kernel and the library are level: we reach
# {{ smooth.shared.n4096.tflops / smooth.cublas.n4096.tflops:.1%}} and
# {{ smooth.shared.n8192.tflops / smooth.cublas.n8192.tflops:.1%}} of the library's speed in this race. On a different
# card either of them may be ahead, and we expect them to differ by less than 7 %. Do not make too much of this. The
# library is this fast for many types, shapes and layouts, and we are this fast for one.
# /// otherwise
# At 4096 we reach {{ smooth.shared.n4096.tflops / smooth.cublas.n4096.tflops:.1%}} of the library's speed, and at
# 8192 we reach {{ smooth.shared.n8192.tflops / smooth.cublas.n8192.tflops:.1%}}.
# ///
# Now come the ugly sizes.
#
# /// claim | ugly.shared.n4095.us > 1.02 * smooth.shared.n4096.us and ugly.shared.n1023.tflops < 0.85 * ugly.cublas.n1023.tflops
# Size 4095 is a little *less* work than 4096, and yet kernel 12 takes
# {{ ugly.shared.n4095.us / smooth.shared.n4096.us:.2f }} times as long, because it moves one number at a time instead
# of four. The library takes {{ ugly.cublas.n4095.us / smooth.cublas.n4096.us:.2f }} times as long. With small
# matrices the difference is clearer. At 1023 we reach {{ ugly.shared.n1023.tflops / ugly.cublas.n1023.tflops:.0%}} of
# the library's speed. At 1000, where the kernel still moves four numbers at a time, we reach
# {{ ugly.shared.n1000.tflops / ugly.cublas.n1000.tflops:.0%}}.
# /// otherwise
# With kernel 12, size 4095 takes {{ ugly.shared.n4095.us / smooth.shared.n4096.us:.3f }} times as long as 4096; with
# the library, it takes {{ ugly.cublas.n4095.us / smooth.cublas.n4096.us:.3f }} times as long.
# ///
#
# /// exercise | Pick a tile
# A card has 132 SMs, with one block on each. For a C of 1024 × 1024, how full is the card with block tiles of 128 ×
# 256, 128 × 128 and 64 × 64, if tiles are not shared? What does the smaller tile cost?
# /// answer
# 32 tiles take 32 of 132 places, 64 tiles take 64 of 132, and 256 tiles take 256 of the 264 places in two rounds. The
# smaller tile carries more bytes per multiply-add, from L2 and from shared memory, and has fewer sums in each thread.
# So the smaller tile is slower where the large tile fills the card, and faster where the large tile leaves SMs
# without work.
# ///
#
# ### Try a tile
#
# Try any tile that you can think of, and compare it with the tiles that were measured.
#
# /// explorable | tiles
# ask: At 1024 × 1024, which block tile gives every SM work? How much more does it carry for that?
# alt: >-
#   On the left a block tile of C, 128 by 256, with its thin strips of A and B, and in its corner the tile of one thread. On
#   the right three bars: how full an SM is with blocks, by shared memory, by registers, by threads; a pointer marks
#   registers, which run out first, after one block. Below, four waves over the card, and the last is not full.
# knobs:
#   shape: {label: measured tiles, at: k11, choices: {own: "none of them", near: "the nearest of them", k03: "kernel 3",
#           k04: "kernel 4", k05: "kernels 5 and 6", k07: "kernels 7 and 8", k09: "kernel 9", k10: "kernel 10",
#           k11: "kernels 11 and 12", square: "11, square block", tall: "11, tall block", turned: "11, turned thread"}}
#   M: {label: M, at: 4096}
#   N: {label: N, at: 4096}
#   BM: {label: BM, at: 128}
#   BN: {label: BN, at: 256}
#   BK: {label: BK, at: 8}
#   TM: {label: TM, at: 16}
#   TN: {label: TN, at: 8}
#   bytes: {label: type, at: 4, choices: {4: fp32, 2: "16 bits"}}
#   pad: {label: "spare words, A", at: 4}
#   stages: {label: "buffers:", at: 2}
# data:
#   sms: "{{ sms:.0f }}"
#   threads: "{{ l1.card.threads:.0f }}"
#   registers: "{{ l1.card.registers:.0f }}"
#   shared: "{{ l1.card.shared_kib:.0f }}"
#   counted: {shared_tiles: "{{ l4.vital.shared_tiles.registers:.0f }}", register_column: "{{ l4.vital.register_column.registers:.0f }}",
#             register_tile: "{{ vital.register_tile.registers:.0f }}", vectorised: "{{ vital.vectorised.registers:.0f }}",
#             conflict_free: "{{ vital.conflict_free.registers:.0f }}", warp_tiles: "{{ vital.warp_tiles.registers:.0f }}",
#             asynchronous: "{{ vital.asynchronous.registers:.0f }}", tuned: "{{ vital.tuned.registers:.0f }}",
#             register_banks: "{{ vital.register_banks.registers:.0f }}", persistent: "{{ vital.persistent.registers:.0f }}"}
#   ladder: "{{ ladder.*.of_compute:.1% }}"
#   shapes: "{{ shape.*.of_compute:.1% }}"
#   sizes: {shared_tiles: "{{ l4.sizes.shared_tiles.*.of_compute:.1% }}", register_column: "{{ l4.sizes.register_column.*.of_compute:.1% }}",
#           register_tile: "{{ l4.sizes.register_tile.*.of_compute:.1% }}", register_banks: "{{ smooth.whole.*.of_compute:.1% }}",
#           persistent: "{{ smooth.shared.*.of_compute:.1% }}"}
#   odd: {shared_tiles: "{{ l4.ugly.shared_tiles.*.of_compute:.1% }}", register_column: "{{ l4.ugly.register_column.*.of_compute:.1% }}",
#         register_tile: "{{ l4.ugly.register_tile.*.of_compute:.1% }}", register_banks: "{{ ugly.whole.*.of_compute:.1% }}",
#         persistent: "{{ ugly.shared.*.of_compute:.1% }}"}
# says:
#   fits: "Blocks of {threads} threads: {blocks} on an SM, {occupancy}% of its seats."
#   by_shared: "Shared memory runs out first."
#   by_registers: "Registers run out first."
#   by_threads: "Threads run out first."
#   by_blocks: "An SM does not take more blocks."
#   least: "By hand a thread needs {least} registers, for its sums and what they are made of; a compiler takes more."
#   counted: "A thread has {registers} registers; its sums and what they are made of would be {least}."
#   carries: >-
#     A multiply-add costs {l2} bytes from L2, {intensity} FLOP per byte, and {near} bytes from shared memory; of the instructions
#     at most {share}% are multiply-adds.
#   waves: "{tiles} tiles on {places} places are {waves} waves, and {full}% of the places are used."
#   measured: "Measured, at this size: kernel {kernel1} reaches {rate1} of peak."
#   two: "Measured, at this size: kernel {kernel1} reaches {rate1} of peak, kernel {kernel2} {rate2}."
#   none: "Nobody measured this one."
#   too_many: "This cannot be launched: a block would have {threads} threads, and 1,024 is the most."
#   spills: "This does not fit: a thread would hold {least} numbers, and has 255 registers. The rest would be in HBM."
#   too_much: "This cannot be launched: a block needs {shared} KiB of shared memory, more than an SM has."
#   too_wide: "This cannot be launched: {threads} threads with {least} registers or more are {asked}, more than an SM has."
# row: {block: "{threads} threads", "shared memory, KiB": "{shared}", "registers per thread": "{registers}",
#       "from L2, bytes per multiply-add": "{l2}", "FLOP per byte": "{intensity}", "from shared memory, bytes": "{near}",
#       "multiply-adds for a load": "{load}", "blocks on an SM": "{blocks}", "occupancy, %": "{occupancy}", waves: "{waves}",
#       "the last wave has": "{last}", "places used, %": "{full}"}
# caption: "The system keeps 1 KiB of shared memory in each block."
# ///

# %% [markdown]
# ## Few tiles, long K {.beyond}
#
# Now take this to the extreme: a small C with a very long K. Some layers of a model have this shape: C has few rows,
# and each sum is long. Here cutting K does more than fill the last wave: the whole speed depends on it.
#
# /// figure | docs/assets/figures/sgemm_split_k.svg
# alt: "Above: four tiles of C, one block for each, walk the whole of K, and 4 of 16 SMs work. Below: K is cut in four, four blocks work on each tile, 16 of 16 SMs work, and the four parts are added up in C: once more all of C for each piece of K."
# ///
#
# Cutting K so that several blocks share a tile is called **split-K**. Kernel 12 does it without being asked: when there are fewer
# tiles than SMs, *every* tile is a leftover.

# %%
FEW = {
    "m128": (128, 128, 65536),
    "m256": (256, 256, 16384),
    "m512": (512, 512, 16384),
    "m1024": (1024, 1024, 8192),
    "m4096": (4096, 4096, 4096),
}
record(
    few={
        name: compare(FIELD, Workload.of("float32", M=M, N=N, K=K), seconds=0.05)
        for name, (M, N, K) in FEW.items()
    }
)

# %% [markdown]
# /// predict | At which of the shapes, from 128 × 128 to 4096 × 4096, does cutting K save the most?
# - [few.m128.shared.us / few.m128.whole.us < 0.5 * few.m4096.shared.us / few.m4096.whole.us] At 128 × 128, where C is one tile
# - [few.m4096.shared.us / few.m4096.whole.us < 0.5 * few.m128.shared.us / few.m128.whole.us] At 4096 × 4096, where there is the most work
# - [0.5 * few.m4096.shared.us / few.m4096.whole.us <= few.m128.shared.us / few.m128.whole.us <= 2 * few.m4096.shared.us / few.m4096.whole.us] About the same everywhere
# /// reveal
# From the smallest shape to the largest, the kernel that cuts K takes
# {{ few.m128.shared.us / few.m128.whole.us:.3f }}, {{ few.m256.shared.us / few.m256.whole.us:.3f }},
# {{ few.m512.shared.us / few.m512.whole.us:.2f }}, {{ few.m1024.shared.us / few.m1024.whole.us:.2f }}, and
# {{ few.m4096.shared.us / few.m4096.whole.us:.2f }} of the time of kernel 11, which does not cut it.
#
# /// table
# columns: ["M × N × K", "% of peak, 11: whole K", "% of peak, 12: shared", "% of peak, cuBLAS", "12, % of cuBLAS", "times the speed of 11"]
# rows:
#   - ["128 × 128 × 65536", "{{ few.m128.whole.of_compute:.1%}}", "{{ few.m128.shared.of_compute:.1%}}", "{{ few.m128.cublas.of_compute:.1%}}", "{{ few.m128.shared.tflops / few.m128.cublas.tflops:.0%}}", "{{ few.m128.whole.us / few.m128.shared.us:.1f }}"]
#   - ["256 × 256 × 16384", "{{ few.m256.whole.of_compute:.1%}}", "{{ few.m256.shared.of_compute:.1%}}", "{{ few.m256.cublas.of_compute:.1%}}", "{{ few.m256.shared.tflops / few.m256.cublas.tflops:.0%}}", "{{ few.m256.whole.us / few.m256.shared.us:.1f }}"]
#   - ["512 × 512 × 16384", "{{ few.m512.whole.of_compute:.1%}}", "{{ few.m512.shared.of_compute:.1%}}", "{{ few.m512.cublas.of_compute:.1%}}", "{{ few.m512.shared.tflops / few.m512.cublas.tflops:.0%}}", "{{ few.m512.whole.us / few.m512.shared.us:.1f }}"]
#   - ["1024 × 1024 × 8192", "{{ few.m1024.whole.of_compute:.1%}}", "{{ few.m1024.shared.of_compute:.1%}}", "{{ few.m1024.cublas.of_compute:.1%}}", "{{ few.m1024.shared.tflops / few.m1024.cublas.tflops:.0%}}", "{{ few.m1024.whole.us / few.m1024.shared.us:.1f }}"]
#   - ["4096 × 4096 × 4096", "{{ few.m4096.whole.of_compute:.1%}}", "{{ few.m4096.shared.of_compute:.1%}}", "{{ few.m4096.cublas.of_compute:.1%}}", "{{ few.m4096.shared.tflops / few.m4096.cublas.tflops:.0%}}", "{{ few.m4096.whole.us / few.m4096.shared.us:.2f }}"]
# caption: Percent of peak refers to the arithmetic. A and B together are never less than 33 MB here, so in the top rows the limit of HBM is not far away.
# ///
#
# /// claim | few.m256.whole.us > 30 * few.m256.shared.us
# With 256 × 256 sums of 16384 products, kernel 11 keeps two SMs busy. Kernel 12 keeps all of them busy, and is
# {{ few.m256.whole.us / few.m256.shared.us:.0f }} times as fast. *This* is what cutting K is for.
# /// otherwise
# With 256 × 256 sums of 16384 products, cutting K makes the multiply {{ few.m256.whole.us / few.m256.shared.us:.1f }}
# times as fast.
# ///
# ///
#
# /// claim | abs(few.m256.shared.us / few.m256.cublas.us - 1) < 0.07 and abs(few.m512.shared.us / few.m512.cublas.us - 1) < 0.07
# Kernel 12 is level with the library at 256 × 256 and at 512 × 512, with
# {{ few.m256.shared.tflops / few.m256.cublas.tflops:.0%}} and
# {{ few.m512.shared.tflops / few.m512.cublas.tflops:.0%}} of its speed here. If you measure again, we expect the two
# to differ by less than 7 %.
# /// otherwise
# At 256 × 256 kernel 12 reaches {{ few.m256.shared.tflops / few.m256.cublas.tflops:.0%}} of the library's speed, and
# at 512 × 512 it reaches {{ few.m512.shared.tflops / few.m512.cublas.tflops:.0%}}.
# ///
#
# /// claim | few.m1024.shared.us < few.m1024.cublas.us
# At 1024 × 1024 × 8192 we are ahead of the library, with {{ few.m1024.shared.tflops / few.m1024.cublas.tflops:.0%}}
# of its speed. Our kernel is one source file, without a list of special cases.
# /// otherwise
# At 1024 × 1024 × 8192 kernel 12 reaches {{ few.m1024.shared.tflops / few.m1024.cublas.tflops:.1%}} of the library's
# speed.
# ///
#
# /// claim | few.m128.shared.tflops < 0.8 * few.m128.cublas.tflops
# With a single tile kernel 12 loses: it reaches {{ few.m128.shared.tflops / few.m128.cublas.tflops:.0%}} of the
# library's speed at 128 × 128. There are two possible reasons. Each block multiplies a tile of 128 × 256, and half of
# it is outside C. And all blocks add to the *same* few numbers of C. We have not separated these two causes. A smaller tile
# would at least waste less work.
# /// otherwise
# At 128 × 128 kernel 12 reaches {{ few.m128.shared.tflops / few.m128.cublas.tflops:.0%}} of the library's speed.
# ///
#
# /// claim | few.m256.whole.error > 6 * few.m256.shared.error
# There is a small bonus: many short sums lose less to rounding than one long sum. The worst error at 256 × 256 ×
# 16384 is {{ few.m256.shared.error:.1e}} with shared tiles and {{ few.m256.whole.error:.1e}} with whole tiles.
# /// otherwise
# The worst error at 256 × 256 × 16384 is {{ few.m256.shared.error:.1e}} with shared tiles and
# {{ few.m256.whole.error:.1e}} with whole tiles.
# ///
#
# /// exercise | How many pieces?
# C has 12 tiles, the card has 132 SMs, and K is 8192. Into how many pieces is each tile cut? If a tile is 128 × 256
# in fp32, how many bytes are added to C, and how large is C itself?
# /// answer
# 132 / 12 = 11 pieces for each tile. A piece is 128 × 256 × 4 bytes = 128 KiB, so 132 × 128 KiB = 16.5 MiB are added
# to a C of 12 × 128 KiB = 1.5 MiB. All of this stays in L2, but each number of C is still added to eleven times.
# ///

# %% [markdown]
# ## The same in bf16 {#the-same-in-bf16-and-a-wall}
#
# Numbers half as long mean half as many bytes to fetch. Take the structure of kernel 8 and feed it numbers in bf16.
# The numbers become fp32 on their way into shared memory, and are multiplied and added up as before. We race this
# kernel against the library, which uses a different kind of instruction.

# %%
from course_kernels.gemm import k01_cuda_cores
from course_kernels.gemm import library as gemm_library

record(
    half=compare(
        {"ours": k01_cuda_cores, "cublas": gemm_library.cublas},
        Workload.of("bfloat16", M=4096, N=4096, K=4096),
        seconds=0.2,
    )
)

# %% [markdown]
# /// predict | Against cuBLAS in bf16, where does this end up?
# - [half.ours.tflops / half.cublas.tflops < 0.2] Below a fifth
# - [0.2 <= half.ours.tflops / half.cublas.tflops < 0.7] About half
# - [half.ours.tflops / half.cublas.tflops >= 0.7] About where fp32 did
# /// reveal
# {{ half.ours.tflops / half.cublas.tflops:.1%}}.
#
# /// table
# columns: ["4096 × 4096 × 4096", "% of peak", "TFLOP/s"]
# rows:
#   - ["fp32, the last of the ladder", "{{ ladder.persistent.of_peak:.1%}}", "{{ ladder.persistent.tflops:.1f }}"]
#   - ["fp32, cuBLAS", "{{ ladder.cublas.of_peak:.1%}}", "{{ ladder.cublas.tflops:.1f }}"]
#   - ["fp32, kernel 8", "{{ ladder.warp_tiles.of_peak:.1%}}", "{{ ladder.warp_tiles.tflops:.1f }}"]
#   - ["bf16, structure of kernel 8, on the lanes", "{{ half.ours.of_peak:.1%}}", "{{ half.ours.tflops:.1f }}"]
#   - ["bf16, cuBLAS", "{{ half.cublas.of_peak:.1%}}", "{{ half.cublas.tflops:.0f }}"]
# caption: Percent of peak refers to the data sheet's peak for that type.
# ///
#
# /// claim | half.ours.tflops < 0.07 * half.cublas.tflops and 1 < half.ours.tflops / ladder.warp_tiles.tflops < 1.2
# After two whole lectures, we reach **{{ half.ours.tflops / half.cublas.tflops:.1%}} of the library**. The kernel
# itself is not at fault: it does {{ half.ours.tflops / ladder.warp_tiles.tflops:.2f }} times as many multiply-adds as
# kernel 8 does in fp32 in the same time. At the speed of kernel 12 it would reach
# {{ ladder.persistent.tflops / half.cublas.tflops:.1%}} of the library. As far as we know, a lane has no faster
# multiply-add that takes bf16 and adds up in fp32. (There is a multiply-add for pairs of 16-bit numbers. It keeps the
# sums in 16 bits too, which is not what we want.) The library does not use the lanes, as
# [the next lecture](l6_tensor_cores.py#when-the-tensor-cores-are-idle) shows by counting. Every SM also has
# machines that do a whole small matrix multiply in one instruction: the *tensor cores*.
# /// otherwise
# {{ half.ours.tflops / half.cublas.tflops:.1%}} of the library, which uses tensor cores.
# ///
# ///
#
# /// exercise | What would the best possible kernel on the lanes reach? | 3 minutes
# Suppose that every lane did a multiply-add in fp32 in every tick. What percentage of this card's bf16 peak would
# that be?
# /// answer
# The fp32 peak divided by the bf16 peak: {{ ladder.cublas.tflops / ladder.cublas.of_peak:.0f}} of
# {{ half.cublas.tflops / half.cublas.of_peak:.0f }} TFLOP/s, or
# {{ ladder.cublas.tflops / ladder.cublas.of_peak / (half.cublas.tflops / half.cublas.of_peak):.1%}}. That is the
# wall, and no choice of tiles gets you over it.
# ///

# %% [markdown]
# ## Before you leave the ladder
#
# **You can now** read a step as a diff and ask three questions before you run the kernel.
#
# 1. *Which of the three factors does the step raise?* The clock rate, the issue slots used, or the share of
#    multiply-adds.
# 2. *Which counter shows the change?* It may be loads, wavefronts, a wait, hits in L2, or registers.
# 3. *What is the next bound?* Name it before you look.
#
# And you know the three tiles by name: block, warp and register. With them you can read CUTLASS in its own words.
#
# **Where this leads.** The wall above has a door. [The next lecture](l6_tensor_cores.py) goes through that door: a
# small matrix multiply as *one instruction*. How the clock and the counters of this page work, and each number with
# its spread, you find by the last line of every page.
