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
# - read a step of the ladder as a diff, and say which counter must move before you run it;
# - check that it moved, and by how much;
# - work out by hand what a tile asks of an SM: calls, bytes off the tray, blocks over the card;
# - say why the last kernel is not faster, and point at the number that says so.
#
# **The headline: {{ ladder.persistent.of_peak:.0%}} of peak, in plain fp32, by a kernel you can read.** The naive one has
# {{ ladder.naive.of_peak:.1%}}. The library, cuBLAS, has {{ ladder.cublas.of_peak:.0%}}, so we end at
# **{{ sgemm.last_of_cublas:.0%}} of the library**.
#
# [The lecture before](l4_the_gemm_ladder.py) climbed the first five steps. Each of them carried less: less from the pantry,
# then less off the tray. It ended with three complaints: lanes queue at the windows, one call fetches one word, and all wait with
# folded hands while the next tile comes. Each of them is a step here, and there are more.

# %% [markdown]
# ## The whole ladder, once
#
# Eleven kernels and the library, side by side, in one run: they take turns on the same two matrices of
# 4096 × 4096 numbers. Each had its answer checked first. TF32 is off, and the check would see it if it were not.

# %%
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
    k11_persistent,
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
    "persistent": k11_persistent,
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
#   - {name: ladder.warp_tiles.tflops, label: "8 warp tiles"}
#   - {name: ladder.asynchronous.tflops, label: "9 asynchronous"}
#   - {name: ladder.tuned.tflops, label: "10 tuned"}
#   - {name: ladder.persistent.tflops, label: "11 persistent"}
# references:
#   - {label: cuBLAS, value: ladder.cublas.tflops}
#   - {label: data sheet, value: ladder.cublas.tflops / ladder.cublas.of_peak}
# alt: "A staircase of eleven kernels, in TFLOP/s: naive {{ ladder.naive.tflops:.1f }}, coalesced {{ ladder.coalesced.tflops:.1f }}, shared tiles {{ ladder.shared_tiles.tflops:.1f }}, register column {{ ladder.register_column.tflops:.1f }}, register tile {{ ladder.register_tile.tflops:.1f }}, vector loads {{ ladder.vectorised.tflops:.1f }}, conflict-free {{ ladder.conflict_free.tflops:.1f }}, warp tiles {{ ladder.warp_tiles.tflops:.1f }}, asynchronous {{ ladder.asynchronous.tflops:.1f }}, tuned {{ ladder.tuned.tflops:.1f }}, persistent {{ ladder.persistent.tflops:.1f }}. cuBLAS stands at {{ ladder.cublas.tflops:.1f }}, the data sheet at {{ ladder.cublas.tflops / ladder.cublas.of_peak:.0f }}."
# caption: The first five steps are the lecture before. The strong part of a step is what it added.
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
#   - [8 warp tiles, "{{ ladder.warp_tiles.of_peak:.1%}}", "{{ ladder.warp_tiles.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.warp_tiles.tflops:.1f }}", "{{ ladder.conflict_free.us / ladder.warp_tiles.us:.2f }}"]
#   - [9 asynchronous, "{{ ladder.asynchronous.of_peak:.1%}}", "{{ ladder.asynchronous.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.asynchronous.tflops:.1f }}", "{{ ladder.warp_tiles.us / ladder.asynchronous.us:.2f }}"]
#   - [10 tuned, "{{ ladder.tuned.of_peak:.1%}}", "{{ ladder.tuned.tflops / ladder.cublas.tflops:.1%}}", "{{ ladder.tuned.tflops:.1f }}", "{{ ladder.asynchronous.us / ladder.tuned.us:.2f }}"]
#   - ["**11 persistent**", "**{{ ladder.persistent.of_peak:.1%}}**", "**{{ ladder.persistent.tflops / ladder.cublas.tflops:.1%}}**", "{{ ladder.persistent.tflops:.1f }}", "{{ ladder.tuned.us / ladder.persistent.us:.2f }}"]
#   - ["*cuBLAS*", "*{{ ladder.cublas.of_peak:.1%}}*", "*100 %*", "*{{ ladder.cublas.tflops:.1f }}*", ""]
# caption: Medians of {{ ladder.cublas.n }} rounds. Per cent of peak is of the data sheet, per cent of cuBLAS of the same rounds.
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
# /// claim | sgemm.first_of_cublas < 0.02 and sgemm.last_of_cublas > 0.9
# From {{ sgemm.first_of_cublas:.1%}} of the library to {{ sgemm.last_of_cublas:.1%}}. Read the second column beside the
# third, always. The library itself is at {{ ladder.cublas.of_peak:.0%}} of the data sheet, so a kernel that equals it
# still leaves {{ 1 - ladder.cublas.of_peak:.0%}} of the card unused. *Where those go* is the last question of this page.
# /// otherwise
# From {{ sgemm.first_of_cublas:.1%}} of the library to {{ sgemm.last_of_cublas:.1%}}. The library itself is at
# {{ ladder.cublas.of_peak:.0%}} of the data sheet.
# ///
#
# /// claim | ladder.naive.us > ladder.coalesced.us and ladder.coalesced.us > ladder.shared_tiles.us and ladder.shared_tiles.us > ladder.register_column.us and ladder.register_column.us > ladder.register_tile.us
# The steps of the last lecture hold in this run as well: each of the first five kernels is faster than the one before
# it.
# /// otherwise
# In this run not every one of the first five kernels is faster than the one before it; see the table.
# ///
#
# Peers have climbed this before us, and in this order you can read their numbers too. The best known ladder, Boehm's,
# ended at 93.7 % of cuBLAS on an RTX A6000, and three of its twelve kernels were slower than one before them
# [^boehm2022]. It is a fine text. On another card some of its steps do not pay, and so ours differ.

# %% [markdown]
# ## Every other call costs a multiply-add
#
# You know [what a room can do in one tick](l4_the_gemm_ladder.py#what-a-room-can-do-in-one-tick). Its four schedulers make
# one *call* each: one instruction, to one warp. NVIDIA's tools say *issue slot* for the place of a call. The peak of the card is
# all four calling *multiply and add* in every tick. **Every other call takes the place of a multiply-add**: a fetch, an
# address, a barrier.
#
# So the first bound is a share: how many of the calls are multiply-adds? Take one thread and one step of k. It holds
# 8 × 8 sums. It needs 8 numbers of A and 8 of B.

# %%
def calls(rows, columns, load_bytes):
    """One thread, one step of k: its multiply-adds, and its loads off the tray."""
    return rows * columns, (rows + columns) * 4 // load_bytes


shapes = {
    "t8x8_by4": (8, 8, 4),
    "t8x8_by16": (8, 8, 16),
    "t8x16_by16": (8, 16, 16),
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
# columns: [register tile, bytes in one load, "of all calls, multiply-adds", "bytes off the tray for one multiply-add"]
# rows:
#   - [8 × 8, "4", "{{ by_hand.t8x8_by4.share:.1%}}", "{{ by_hand.t8x8_by4.bytes:.2f }}"]
#   - [8 × 8, "16", "{{ by_hand.t8x8_by16.share:.1%}}", "{{ by_hand.t8x8_by16.bytes:.2f }}"]
#   - [8 × 16, "16", "{{ by_hand.t8x16_by16.share:.1%}}", "{{ by_hand.t8x16_by16.bytes:.2f }}"]
# caption: By hand, for a thread on its own. Addresses, the loop and the barriers are not in it.
# ///
#
# The last column is the second bound. The tray hands out {{ l3.per_clock.shared:.0f }} bytes in a tick, as
# [you measured](l3_memory.py#how-much-at-once), and the lanes want 128 multiply-adds in a tick. So **one byte for each multiply-add** is the
# budget, and an 8 × 8 tile uses up all of it. What saves us is that lanes want the *same* numbers: a number that several lanes of
# a warp want leaves the tray once.
#
# Now ask the hardware. This is the only visit to the counters on this page, for all its kernels. It stays folded;
# later sections quote from it.

# %% tags=["fold"]
from course_kernels.measure import count_many

RUNGS = (
    "register_tile",
    "vectorised",
    "conflict_free",
    "warp_tiles",
    "asynchronous",
    "tuned",
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
TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
L2_HITS = "lts__t_sector_hit_rate.pct"
STALLS = (
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "mio_throttle",
    "math_pipe_throttle",
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
    TURNS,
    CONFLICTS,
    L2_HITS,
    *(f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio" for why in STALLS),
)
counted = dict(
    zip(
        RUNGS,
        count_many([(LADDER[rung], square) for rung in RUNGS], METRICS),
        strict=True,
    )
)


def vital_signs(one):
    """What the counters say of a kernel, as numbers to record."""
    read = {name: m["value"] for name, m in one.kernels[0]["metrics"].items()}
    warp_fmas = read[FMAS] / 32
    signs = {
        "registers": (read[REGISTERS], "device"),
        "shared_kib": (read[SHARED] / 1024, "device"),
        "occupancy": (read[OCCUPANCY] / 100, "counted"),
        "issued": (read[ISSUED] / 100, "counted"),
        "share": (warp_fmas / read[CALLS], "counted"),
        "loads": (read[SHARED_LOADS] / warp_fmas, "counted"),
        "turns": (read[TURNS] / warp_fmas, "counted"),
        "turns_a_load": (read[TURNS] / read[SHARED_LOADS], "counted"),
        "conflicts": (read[CONFLICTS] / read[SHARED_LOADS], "counted"),
        "l2_hits": (read[L2_HITS] / 100, "counted"),
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
# columns: [kernel, "calls used", "of the calls, multiply-adds", "both together", "% of peak, timed"]
# rows:
#   - [5 register tile, "{{ vital.register_tile.issued:.0%}}", "{{ vital.register_tile.share:.0%}}", "{{ vital.register_tile.issued * vital.register_tile.share:.0%}}", "{{ ladder.register_tile.of_peak:.0%}}"]
#   - [11 persistent, "{{ vital.persistent.issued:.0%}}", "{{ vital.persistent.share:.0%}}", "{{ vital.persistent.issued * vital.persistent.share:.0%}}", "{{ ladder.persistent.of_peak:.0%}}"]
#   - [cuBLAS, "{{ vital.cublas.issued:.0%}}", "{{ vital.cublas.share:.0%}}", "{{ vital.cublas.issued * vital.cublas.share:.0%}}", "{{ ladder.cublas.of_peak:.0%}}"]
# caption: The first two columns are counted by Nsight Compute on one call, the last is timed.
# ///
#
# **Calls used × share of multiply-adds.** Everything on this page works on one of the two. A step makes the share larger
# (fewer other calls), or it uses more of the calls (less waiting). The last column is lower than their product wherever the
# clock of the card stands below the one on the data sheet. We come back to that.
#
# /// exercise | A 4 × 4 register tile
# How many of its calls are multiply-adds, with 16-byte loads? How many bytes off the tray for one multiply-add?
# Which of the two bounds is the worse one?
# /// answer
# 16 multiply-adds, 4 + 4 numbers, two loads: 16 of 18 calls are multiply-adds. 32 bytes for 16 multiply-adds is 2
# bytes each, and the budget is one. So for a thread on its own the tray is worse. With lanes that want the same
# numbers it may still work.
# ///

# %% [markdown]
# ## 6 · Sixteen bytes in every load
#
# The register tile fetches its 16 numbers in small bites. `float4` takes four neighbours in one call.
#
# /// figure | docs/assets/figures/sgemm_vector_loads.svg
# alt: "The calls for one thread in one step of k, as a row of cells. With loads of 4 bytes: 8 loads of A, 8 of B and 64 multiply-adds, 80 calls. With loads of 16 bytes: 2, 2 and 64, together 68 calls."
# ///
#
# Four neighbours must *be* neighbours. For B they are: a row of its tile is a row in memory. The 8 numbers of A that a
# thread needs lie below each other, so the tile of A is laid down *transposed* on the tray. That is done once, on the way in.
#
# /// diff | src/course_kernels/sgemm/k05_register_tile.cu | src/course_kernels/sgemm/k06_vectorised.cu
# title: "What changes: k05_register_tile.cu → k06_vectorised.cu"
# ///
#
# /// predict | The multiply-adds stay. Which counter must move, and how far?
# Loads off the tray to a quarter · bytes off the tray to a quarter · sectors from the pantry to a quarter
# /// reveal
# Loads off the tray for one multiply-add: {{ vital.register_tile.loads:.3f }} before, {{ vital.vectorised.loads:.3f }} now.
# By hand: {{ by_hand.t8x8_by4.loads:.3f }} and {{ by_hand.t8x8_by16.loads:.3f }}. The bytes stay, of course.
# ///
#
# /// table
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "loads off the tray for one multiply-add", "of the calls, multiply-adds"]
# rows:
#   - [5 register tile, "{{ ladder.register_tile.of_peak:.1%}}", "{{ vital.register_tile.registers:.0f }}", "{{ vital.register_tile.shared_kib:.1f }}", "{{ vital.register_tile.occupancy:.0%}}", "{{ vital.register_tile.loads:.3f }}", "{{ vital.register_tile.share:.1%}}"]
#   - ["**6 vector loads**", "**{{ ladder.vectorised.of_peak:.1%}}**", "{{ vital.vectorised.registers:.0f }}", "{{ vital.vectorised.shared_kib:.1f }}", "{{ vital.vectorised.occupancy:.0%}}", "{{ vital.vectorised.loads:.3f }}", "{{ vital.vectorised.share:.1%}}"]
# ///
#
# /// claim | ladder.register_tile.us > ladder.vectorised.us and vital.vectorised.loads < 0.5 * vital.register_tile.loads
# **{{ ladder.vectorised.of_peak:.1%}} of peak**, {{ ladder.register_tile.us / ladder.vectorised.us:.2f }} times the speed of
# the register tile. For a fetch off the tray there was a call {{ vital.register_tile.loads / vital.vectorised.loads:.1f}} times as
# often before. Of all calls {{ vital.vectorised.share:.1%}} are multiply-adds now, before it were
# {{ vital.register_tile.share:.1%}}.
# /// otherwise
# {{ ladder.vectorised.of_peak:.1%}} of peak, against {{ ladder.register_tile.of_peak:.1%}}; loads off the tray for one
# multiply-add: {{ vital.vectorised.loads:.3f }}, before {{ vital.register_tile.loads:.3f }}.
# ///
#
# **Why not faster?** A load of the tray takes {{ vital.vectorised.turns_a_load:.1f }} turns, and
# {{ vital.vectorised.conflicts:.1f }} of them are queues.
#
# /// exercise | Sixteen bytes need an address
# K is 1023. Row 1 of A begins 4092 bytes after row 0. Can a thread read its first four numbers with one load of 16 bytes?
# What must the kernel do?
# /// answer
# No: 4092 is not a multiple of 16, and a 16-byte load must begin at one. The kernel asks once whether K and N are
# multiples of 4. If not, it fetches number by number. That is the *ugly size* in the chart further down.
# ///

# %% [markdown]
# ## 7 · Nobody queues
#
# 32 lanes ask for 16 bytes each. The tray has 32 windows of 4 bytes, 128 bytes in one turn. So eight lanes at a time,
# if no two of them want different words behind one window.
#
# In kernel 6 a thread owns 8 columns side by side. Its neighbour begins 8 words further on. Look what that
# does to the windows.
#
# /// figure | docs/assets/figures/sgemm_windows.svg
# alt: "Eight lanes read 16 bytes each from 32 windows. If a thread owns 8 neighbouring columns, lanes 0 to 3 use windows 0 to 3, 8 to 11, 16 to 19 and 24 to 27, and lanes 4 to 7 want the same windows again: two turns, and half of the windows idle. If a thread owns 4 columns and another 4 further on, the eight lanes cover all 32 windows: one turn."
# ///
#
# So hand the columns out otherwise. A thread still owns 8, but four here, and four half a tile further on. The same sums, only
# dealt out to other hands. For A, where the tile is laid down transposed, a few spare words at the end of each row keep the
# *writers* from one window.
#
# /// diff | src/course_kernels/sgemm/k06_vectorised.cu | src/course_kernels/sgemm/k07_conflict_free.cu
# title: "What changes: k06_vectorised.cu → k07_conflict_free.cu"
# ///
#
# Count it on your fingers first: eight lanes, 16 bytes each, and the longest queue.

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
# /// predict | No call is saved, and no byte. Which counter moves?
# Loads · turns for one load · registers
# /// reveal
# Turns for one load: {{ vital.vectorised.turns_a_load:.2f }} before, {{ vital.conflict_free.turns_a_load:.2f }} now. The loads
# themselves: {{ vital.vectorised.loads:.3f }} and {{ vital.conflict_free.loads:.3f }} for one multiply-add.
# ///
#
# /// table
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "turns for one load", "of them queues"]
# rows:
#   - [6 vector loads, "{{ ladder.vectorised.of_peak:.1%}}", "{{ vital.vectorised.registers:.0f }}", "{{ vital.vectorised.shared_kib:.1f }}", "{{ vital.vectorised.occupancy:.0%}}", "{{ vital.vectorised.turns_a_load:.2f }}", "{{ vital.vectorised.conflicts:.2f }}"]
#   - ["**7 conflict-free**", "**{{ ladder.conflict_free.of_peak:.1%}}**", "{{ vital.conflict_free.registers:.0f }}", "{{ vital.conflict_free.shared_kib:.1f }}", "{{ vital.conflict_free.occupancy:.0%}}", "{{ vital.conflict_free.turns_a_load:.2f }}", "{{ vital.conflict_free.conflicts:.2f }}"]
# ///
#
# /// claim | ladder.vectorised.us > ladder.conflict_free.us and vital.conflict_free.turns_a_load < 0.8 * vital.vectorised.turns_a_load
# **{{ ladder.conflict_free.of_peak:.1%}} of peak**, {{ ladder.vectorised.us / ladder.conflict_free.us:.2f }} times the speed of
# kernel 6, for turns that fell from {{ vital.vectorised.turns_a_load:.2f }} to {{ vital.conflict_free.turns_a_load:.2f}} a load.
# /// otherwise
# {{ ladder.conflict_free.of_peak:.1%}} of peak, against {{ ladder.vectorised.of_peak:.1%}}; turns for one load
# {{ vital.conflict_free.turns_a_load:.2f }}, before {{ vital.vectorised.turns_a_load:.2f }}.
# ///
#
# **Why not faster?** Nobody queues now, but a warp that spans 16 threads of a row still wants 128 different numbers of B in
# every step.
#
# /// exercise | Pad or interleave?
# You could also have left the columns side by side and padded. Where would the spare words have to go, so that lanes 0 to 7
# meet 32 windows, and why is it awkward with 16-byte loads?
# /// answer
# Between the columns of lane 3 and lane 4: four spare words after every 32. Then lane 4 begins at window 4. It works,
# but a row is no longer one piece, each address needs one more calculation, and that costs calls. Interleaving
# costs nothing.
# ///

# %% [markdown]
# ## 8 · Stand closer together
#
# A number that several lanes want leaves the tray once. So count what a *warp* wants, not what a thread wants.
#
# /// figure | docs/assets/figures/sgemm_warp_tile.svg
# alt: "Two ways to seat 32 threads with a register tile of 8 by 8 each. In two rows of 16 they cover 16 by 128 sums and need 16 numbers of A and 128 of B, 144 together. In eight rows of 4 they cover 64 by 32 and need 64 and 32, 96 together."
# caption: The nearer to a square, the less there is to fetch.
# ///
#
# So seat the warp 8 × 4. Its 64 × 32 sums are its **warp tile**. You have met the other two: the **block tile** of a block, and the
# **register tile** of a thread. Remember the three words; whoever reads other people's kernels needs them. In NVIDIA's
# CUTLASS the same three are called threadblock tile, warp tile and thread tile [^cutlass-gemm]. On tensor cores the
# innermost one is the tile of a single instruction.
#
# /// diff | src/course_kernels/sgemm/k07_conflict_free.cu | src/course_kernels/sgemm/k08_warp_tiles.cu
# title: "What changes: k07_conflict_free.cu → k08_warp_tiles.cu"
# ///
#
# /// predict | 96 numbers instead of 144 for the same 2048 multiply-adds of a warp. What do the counters say?
# Fewer loads · fewer turns, the loads stay · nothing, a load is a load
# /// reveal
# Loads for one multiply-add: {{ vital.conflict_free.loads:.3f }} and {{ vital.warp_tiles.loads:.3f }}. Turns for one load:
# {{ vital.conflict_free.turns_a_load:.2f }} and {{ vital.warp_tiles.turns_a_load:.2f }}.
# ///
#
# /// table
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "turns for one load", "turns for one multiply-add"]
# rows:
#   - [7 conflict-free, "{{ ladder.conflict_free.of_peak:.1%}}", "{{ vital.conflict_free.registers:.0f }}", "{{ vital.conflict_free.shared_kib:.1f }}", "{{ vital.conflict_free.occupancy:.0%}}", "{{ vital.conflict_free.turns_a_load:.2f }}", "{{ vital.conflict_free.turns:.3f }}"]
#   - ["**8 warp tiles**", "**{{ ladder.warp_tiles.of_peak:.1%}}**", "{{ vital.warp_tiles.registers:.0f }}", "{{ vital.warp_tiles.shared_kib:.1f }}", "{{ vital.warp_tiles.occupancy:.0%}}", "{{ vital.warp_tiles.turns_a_load:.2f }}", "{{ vital.warp_tiles.turns:.3f }}"]
# caption: A room makes four calls in a tick and the tray takes one turn, so past 0.25 turns for one multiply-add the tray would be the bound.
# ///
#
# /// claim | ladder.conflict_free.us > ladder.warp_tiles.us and vital.warp_tiles.turns < 0.9 * vital.conflict_free.turns
# **{{ ladder.warp_tiles.of_peak:.1%}} of peak**, {{ ladder.conflict_free.us / ladder.warp_tiles.us:.2f }} times the speed of
# kernel 7. For one multiply-add the tray takes {{ vital.warp_tiles.turns:.3f }} turns, before
# {{ vital.conflict_free.turns:.3f }}.
# /// otherwise
# {{ ladder.warp_tiles.of_peak:.1%}} of peak, against {{ ladder.conflict_free.of_peak:.1%}}; turns for one multiply-add
# {{ vital.warp_tiles.turns:.3f }}, before {{ vital.conflict_free.turns:.3f }}.
# ///
#
# **Why not faster?** Everybody stops twice in each step: once until the tile has come, once until all are through with it.
#
# /// exercise | The best seats
# 32 threads, 8 × 8 sums each. Try 4 × 8, 8 × 4, 2 × 16 and 32 × 1. How many numbers does the warp want in each step?
# /// answer
# 4 × 8: 32 + 64 = 96. 8 × 4: the same. 2 × 16: 144. 32 × 1: 256 + 8 = 264. Nearly square wins, as a square has the
# shortest fence for its area.
# ///
#
# /// lab | register_tile
# ///

# %% [markdown]
# ## 9 · Fetch while you cook
#
# Up to here every step of the outer loop has two halves. All fetch, all wait, all multiply, all wait. While they fetch,
# the stove is cold.
#
# /// figure | docs/assets/figures/sgemm_two_trays.svg
# alt: "Two time lines. With one tray, fetch 0, multiply 0, fetch 1, multiply 1, fetch 2, multiply 2 come one after the other. With two trays, tile 1 is fetched while tile 0 is multiplied, and so on: the last multiplication ends earlier."
# ///
#
# Two things are new. First, a second tray: while one tile is used, the next is brought. Second, `cp.async`, a call that brings
# 16 bytes from the hall *straight to the tray*. A plain load puts them into a register, and somebody has to stand there, hand
# stretched out, until they come. `cp.async` does not go through the hands at all [^nvidia-ampere]. You order now, and ask later whether it
# has come.
#
# /// diff | src/course_kernels/sgemm/k08_warp_tiles.cu | src/course_kernels/sgemm/k09_asynchronous.cu
# title: "What changes: k08_warp_tiles.cu → k09_asynchronous.cu"
# ///
#
# Now look at reasons for *waiting*. When a warp cannot be called, the counters note why. `barrier`: it waits for
# the others of its block. `long scoreboard`: for bytes from L2 or the pantry. `short scoreboard`: for bytes off the tray.
# The numbers below are warps of one scheduler that wait for that reason, on average, whenever a call is made.
#
# /// predict | Which wait must shrink?
# For the tray · for the hall and for each other · for the arithmetic
# /// reveal
# For the hall, {{ vital.warp_tiles.long_scoreboard:.2f }} before and {{ vital.asynchronous.long_scoreboard:.2f }} now. For each
# other, {{ vital.warp_tiles.barrier:.2f }} and {{ vital.asynchronous.barrier:.2f }}.
# ///
#
# /// table
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "calls used", "waiting for the hall", "waiting for each other"]
# rows:
#   - [8 warp tiles, "{{ ladder.warp_tiles.of_peak:.1%}}", "{{ vital.warp_tiles.registers:.0f }}", "{{ vital.warp_tiles.shared_kib:.1f }}", "{{ vital.warp_tiles.occupancy:.0%}}", "{{ vital.warp_tiles.issued:.1%}}", "{{ vital.warp_tiles.long_scoreboard:.2f }}", "{{ vital.warp_tiles.barrier:.2f }}"]
#   - ["**9 asynchronous**", "**{{ ladder.asynchronous.of_peak:.1%}}**", "{{ vital.asynchronous.registers:.0f }}", "{{ vital.asynchronous.shared_kib:.1f }}", "{{ vital.asynchronous.occupancy:.0%}}", "{{ vital.asynchronous.issued:.1%}}", "{{ vital.asynchronous.long_scoreboard:.2f }}", "{{ vital.asynchronous.barrier:.2f }}"]
# ///
#
# /// claim | ladder.warp_tiles.us > ladder.asynchronous.us and vital.asynchronous.long_scoreboard + vital.asynchronous.barrier < vital.warp_tiles.long_scoreboard + vital.warp_tiles.barrier
# **{{ ladder.asynchronous.of_peak:.1%}} of peak**, {{ ladder.warp_tiles.us / ladder.asynchronous.us:.2f }} times the speed of
# kernel 8. The calls used rose from {{ vital.warp_tiles.issued:.1%}} to
# {{ vital.asynchronous.issued:.1%}}.
# /// otherwise
# {{ ladder.asynchronous.of_peak:.1%}} of peak, against {{ ladder.warp_tiles.of_peak:.1%}}; calls used
# {{ vital.asynchronous.issued:.1%}}, before {{ vital.warp_tiles.issued:.1%}}.
# ///
#
# **Why not faster?** The waiting is nearly gone. What is left are calls that are no multiply-adds:
# {{ 1 - vital.asynchronous.share:.1%}} of all.
#
# /// exercise | A third tray
# With two trays, how many barriers does one step of the outer loop still need, and what does each of them guard? What does a
# third tray change?
# /// answer
# Two: one says *the next tile has come, for all of us*; the other says *all of us are through with the old one*, before
# somebody orders into its tray. With a third tray the order goes into one that nobody reads or waits for, so
# a single barrier does both. And a tile may be on its way for two steps instead of one.
# ///

# %% [markdown]
# ## 10 · A larger tile, and the right one
#
# More sums in each hand, and every number off the tray is used more often.
#
# /// figure | docs/assets/figures/sgemm_larger_tile.svg
# alt: "Two register tiles with the numbers they read. 8 by 8 reads 16 numbers for 64 multiply-adds, 4 for each number. 8 by 16 reads 24 numbers for 128 multiply-adds, 5.3 for each."
# ///
#
# The price: 128 of a thread's 255 registers hold sums and nothing else. So fewer threads fit on an SM. Remember
# [the trap](l3_memory.py#how-many-must-be-walking): occupancy was never the goal.
#
# /// diff | src/course_kernels/sgemm/k09_asynchronous.cu | src/course_kernels/sgemm/k10_tuned.cu
# title: "What changes: k09_asynchronous.cu → k10_tuned.cu"
# ///
#
# This is the one step that has no idea of its own: the same kernel with other constants. Which ones? Nobody worked that out
# on paper. We tried shapes that fit into the registers and the tray, and the best stands in the launcher, by compute
# capability. On another card another may win.
#
# /// predict | Registers up, seats down. What of occupancy, and what of the speed?
# Both fall · occupancy falls, speed rises · neither moves
# /// reveal
# Occupancy {{ vital.asynchronous.occupancy:.0%}} before, {{ vital.tuned.occupancy:.0%}} now; % of peak
# {{ ladder.asynchronous.of_peak:.1%}} before, {{ ladder.tuned.of_peak:.1%}} now.
# ///
#
# /// table
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "of the calls, multiply-adds", "turns for one multiply-add"]
# rows:
#   - [9 asynchronous, "{{ ladder.asynchronous.of_peak:.1%}}", "{{ vital.asynchronous.registers:.0f }}", "{{ vital.asynchronous.shared_kib:.1f }}", "{{ vital.asynchronous.occupancy:.0%}}", "{{ vital.asynchronous.share:.1%}}", "{{ vital.asynchronous.turns:.3f }}"]
#   - ["**10 tuned**", "**{{ ladder.tuned.of_peak:.1%}}**", "{{ vital.tuned.registers:.0f }}", "{{ vital.tuned.shared_kib:.1f }}", "{{ vital.tuned.occupancy:.0%}}", "{{ vital.tuned.share:.1%}}", "{{ vital.tuned.turns:.3f }}"]
# ///
#
# /// claim | ladder.asynchronous.us > ladder.tuned.us and vital.tuned.occupancy < vital.asynchronous.occupancy
# **{{ ladder.tuned.of_peak:.1%}} of peak**, {{ ladder.asynchronous.us / ladder.tuned.us:.2f }} times the speed of kernel 9, with
# *fewer* warps on the SM. {{ vital.tuned.share:.1%}} of the calls are multiply-adds; the pencil said
# {{ by_hand.t8x16_by16.share:.1%}}, without addresses and loop.
# /// otherwise
# {{ ladder.tuned.of_peak:.1%}} of peak, against {{ ladder.asynchronous.of_peak:.1%}}; occupancy
# {{ vital.tuned.occupancy:.0%}}, before {{ vital.asynchronous.occupancy:.0%}}.
# ///
#
# **Why not faster?** Inside a block hardly anything is left. What is left lies between the blocks.
#
# /// exercise | Why not 16 × 16?
# By the pencil a 16 × 16 register tile reads 32 numbers for 256 multiply-adds. What speaks against it?
# /// answer
# 256 sums alone need 256 registers, and a thread can have 255. Some would *spill* into local memory, which lies in the
# pantry. 8 × 16 is about as large as it gets.
# ///

# %% [markdown]
# ## 11 · Which tile next?
#
# Nothing inside the loop changes any more. But hundreds of tiles of C wait to be computed, and they do not run all at once.
# *Which ones run together* decides what must lie on the serving counter, in L2.
#
# /// figure | docs/assets/figures/sgemm_tile_order.svg
# alt: "The tiles of C as a grid of 12 by 12; 24 of them are worked on at a time. Row after row, they cover two rows and need 2 strips of A and all 12 of B, 14 together. In bands of four rows, they need 4 strips of A and 6 of B, 10 together."
# ///
#
# So walk in bands. And let a block *stay*: as many blocks as fit on the card are started once, and each
# takes tile after tile. A kernel whose blocks stay is called **persistent**. It pays for its start once, and *you* decide the
# order, not the card.
#
# /// diff | src/course_kernels/sgemm/k10_tuned.cu | src/course_kernels/sgemm/k11_persistent.cu
# title: "What changes: k10_tuned.cu → k11_persistent.cu"
# ///
#
# /// predict | Which counter moves?
# Turns at the tray · hits in L2 · multiply-adds
# /// reveal
# Of the boxes asked of L2, {{ vital.tuned.l2_hits:.1%}} were there before and {{ vital.persistent.l2_hits:.1%}} now. From the pantry came
# {{ counted.tuned.read_bytes / 1e6:.0f }} MB before and {{ counted.persistent.read_bytes / 1e6:.0f }} MB now. By hand, A
# and B once are {{ (square_bytes.a + square_bytes.b) / 1e6:.0f }} MB.
# ///

# %%
record(
    square_bytes={
        "a": quantity(4 * square.M * square.K, "B"),
        "b": quantity(4 * square.K * square.N, "B"),
    }
)

# %% [markdown]
# /// table
# columns: [kernel, "% of peak", registers, "shared memory, KiB", occupancy, "hits in L2", "MB from the pantry", "calls used"]
# rows:
#   - [10 tuned, "{{ ladder.tuned.of_peak:.1%}}", "{{ vital.tuned.registers:.0f }}", "{{ vital.tuned.shared_kib:.1f }}", "{{ vital.tuned.occupancy:.0%}}", "{{ vital.tuned.l2_hits:.1%}}", "{{ counted.tuned.read_bytes / 1e6:.0f }}", "{{ vital.tuned.issued:.1%}}"]
#   - ["**11 persistent**", "**{{ ladder.persistent.of_peak:.1%}}**", "{{ vital.persistent.registers:.0f }}", "{{ vital.persistent.shared_kib:.1f }}", "{{ vital.persistent.occupancy:.0%}}", "{{ vital.persistent.l2_hits:.1%}}", "{{ counted.persistent.read_bytes / 1e6:.0f }}", "{{ vital.persistent.issued:.1%}}"]
# ///
#
# /// claim | ladder.tuned.us > ladder.persistent.us
# **{{ ladder.persistent.of_peak:.1%}} of peak**, {{ ladder.tuned.us / ladder.persistent.us:.3f }} times the speed of kernel 10. It is
# the smallest step of all, and the last.
# /// otherwise
# {{ ladder.persistent.of_peak:.1%}} of peak, against {{ ladder.tuned.of_peak:.1%}}.
# ///
#
# /// exercise | How wide a band?
# 16 blocks run at a time, and C has 8 × 8 tiles. How many strips of A and B are wanted at a time in bands of 1, 2, 4 and 8 rows?
# /// answer
# One row at a time: 2 rows of 8, so 2 + 8 = 10. Bands of 2: 2 + 8 = 10. Bands of 4: 4 + 4 = 8. Bands of 8: 8 + 2 = 10. The square wins again.
# ///

# %% [markdown]
# ## Why is the last one not faster?
#
# Now take the last kernel apart. Peak is a product of three: the clock, the calls used, the share.
#
# /// table
# columns: ["", 11 persistent, cuBLAS]
# rows:
#   - ["clock around the run, of the highest", "{{ ladder.persistent.sm_mhz / l1.card.clock_mhz:.1%}}", "{{ ladder.cublas.sm_mhz / l1.card.clock_mhz:.1%}}"]
#   - ["× calls used", "{{ vital.persistent.issued:.1%}}", "{{ vital.cublas.issued:.1%}}"]
#   - ["× of the calls, multiply-adds", "{{ vital.persistent.share:.1%}}", "{{ vital.cublas.share:.1%}}"]
#   - ["= % of peak, by counters", "{{ ladder.persistent.sm_mhz / l1.card.clock_mhz * vital.persistent.issued * vital.persistent.share:.1%}}", "{{ ladder.cublas.sm_mhz / l1.card.clock_mhz * vital.cublas.issued * vital.cublas.share:.1%}}"]
#   - ["**% of peak, by the clock on the wall**", "**{{ ladder.persistent.of_peak:.1%}}**", "**{{ ladder.cublas.of_peak:.1%}}**"]
#   - [registers, "{{ vital.persistent.registers:.0f }}", "{{ vital.cublas.registers:.0f }}"]
#   - ["shared memory, KiB", "{{ vital.persistent.shared_kib:.1f }}", "{{ vital.cublas.shared_kib:.1f }}"]
#   - [occupancy, "{{ vital.persistent.occupancy:.1%}}", "{{ vital.cublas.occupancy:.1%}}"]
#   - ["turns at the tray for one multiply-add", "{{ vital.persistent.turns:.3f }}", "{{ vital.cublas.turns:.3f }}"]
#   - ["waiting for the hall", "{{ vital.persistent.long_scoreboard:.2f }}", "{{ vital.cublas.long_scoreboard:.2f }}"]
#   - ["waiting for the tray", "{{ vital.persistent.short_scoreboard:.2f }}", "{{ vital.cublas.short_scoreboard:.2f }}"]
#   - ["waiting for each other", "{{ vital.persistent.barrier:.2f }}", "{{ vital.cublas.barrier:.2f }}"]
#   - ["waiting for the multipliers", "{{ vital.persistent.math_pipe_throttle:.2f }}", "{{ vital.cublas.math_pipe_throttle:.2f }}"]
#   - ["waiting, a fixed number of ticks", "{{ vital.persistent.wait:.2f }}", "{{ vital.cublas.wait:.2f }}"]
#   - ["waiting, for two operands in one bank", "{{ vital.persistent.dispatch_stall:.2f }}", "{{ vital.cublas.dispatch_stall:.2f }}"]
#   - ["ready, but another was called", "{{ vital.persistent.not_selected:.2f }}", "{{ vital.cublas.not_selected:.2f }}"]
# caption: Counters of one call of 4096 × 4096 × 4096. Waiting is in warps for each scheduler.
# ///
#
# [The first lecture](l1_what_a_gpu_is.py) had a kernel that only multiplies and adds in its registers. It had {{ l1.fma.of_peak:.1%}} of peak.
# Nothing on these lanes goes beyond it, and our last kernel has {{ ladder.persistent.tflops / l1.fma.tflops:.1%}} of *that*.
#
# /// claim | abs(ladder.persistent.sm_mhz / l1.card.clock_mhz * vital.persistent.issued * vital.persistent.share / ladder.persistent.of_peak - 1) < 0.08
# The product of the three comes out at the measured number, to within 8 %. So nothing is hidden: whoever wants more
# must raise one of the three.
# /// otherwise
# The product of the three is {{ ladder.persistent.sm_mhz / l1.card.clock_mhz * vital.persistent.issued * vital.persistent.share:.1%}}, measured are
# {{ ladder.persistent.of_peak:.1%}}: the clock that we read around the run is not the one during it.
# ///

# %% [markdown]
# ## From small to large, and ugly ones
#
# One size says little. Here is the last kernel against the library, from 128 to 8192.

# %%
SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
UGLY = (1000, 1023, 4095)


def both_at(N):
    """The last kernel and the library on N × N matrices."""
    return compare(
        {"ours": k11_persistent, "cublas": library.cublas},
        Workload.of("float32", M=N, N=N, K=N),
        seconds=0.1,
    )


sizes = {f"n{N}": both_at(N) for N in (*SIZES, *UGLY)}
record(
    sizes={
        who: {name: pair[who] for name, pair in sizes.items()}
        for who in ("ours", "cublas")
    },
    smooth={
        who: {f"n{N}": sizes[f"n{N}"][who] for N in SIZES}
        for who in ("ours", "cublas")
    },
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
#   - {name: smooth.ours.*, label: 11 persistent}
#   - {name: smooth.cublas.*, label: cuBLAS}
# references:
#   - {label: data sheet, value: ladder.cublas.tflops / ladder.cublas.of_peak}
# alt: "TFLOP/s against N. Our last kernel: {{ smooth.ours.n128.tflops:.1f }} at 128, {{ smooth.ours.n1024.tflops:.1f }} at 1024, {{ smooth.ours.n4096.tflops:.1f }} at 4096, {{ smooth.ours.n8192.tflops:.1f }} at 8192. cuBLAS: {{ smooth.cublas.n128.tflops:.1f }}, {{ smooth.cublas.n1024.tflops:.1f }}, {{ smooth.cublas.n4096.tflops:.1f }}, {{ smooth.cublas.n8192.tflops:.1f }}."
# ///
#
# Small matrices lose, and you can say by hand why. A block computes one tile of C. How many tiles are there, and how many rooms?

# %%
import torch

sms = torch.cuda.get_device_properties(0).multi_processor_count


def waves(N, rows, columns):
    """Tiles of an N × N answer, rounds over the card, and how full they are."""
    tiles = -(-N // rows) * -(-N // columns)
    rounds = -(-tiles // sms)
    return tiles, rounds, tiles / (rounds * sms)


tile = {
    "n" + str(N): dict(
        zip(("tiles", "rounds", "full"), waves(N, 128, 256), strict=True)
    )
    for N in SIZES
}
record(
    sms=quantity(sms, how="device"),
    waves={
        name: {word: quantity(value) for word, value in found.items()}
        for name, found in tile.items()
    },
)

# %% [markdown]
# /// table
# columns: [N, tiles, "rounds over {{ sms:.0f }} SMs", "rooms in use, by hand", "% of peak", "% of peak, cuBLAS", "% of cuBLAS"]
# rows:
#   - ["128", "{{ waves.n128.tiles:.0f }}", "{{ waves.n128.rounds:.0f }}", "{{ waves.n128.full:.0%}}", "{{ smooth.ours.n128.of_compute:.1%}}", "{{ smooth.cublas.n128.of_compute:.1%}}", "{{ smooth.ours.n128.tflops / smooth.cublas.n128.tflops:.0%}}"]
#   - ["256", "{{ waves.n256.tiles:.0f }}", "{{ waves.n256.rounds:.0f }}", "{{ waves.n256.full:.0%}}", "{{ smooth.ours.n256.of_compute:.1%}}", "{{ smooth.cublas.n256.of_compute:.1%}}", "{{ smooth.ours.n256.tflops / smooth.cublas.n256.tflops:.0%}}"]
#   - ["512", "{{ waves.n512.tiles:.0f }}", "{{ waves.n512.rounds:.0f }}", "{{ waves.n512.full:.0%}}", "{{ smooth.ours.n512.of_compute:.1%}}", "{{ smooth.cublas.n512.of_compute:.1%}}", "{{ smooth.ours.n512.tflops / smooth.cublas.n512.tflops:.0%}}"]
#   - ["1024", "{{ waves.n1024.tiles:.0f }}", "{{ waves.n1024.rounds:.0f }}", "{{ waves.n1024.full:.0%}}", "{{ smooth.ours.n1024.of_compute:.1%}}", "{{ smooth.cublas.n1024.of_compute:.1%}}", "{{ smooth.ours.n1024.tflops / smooth.cublas.n1024.tflops:.0%}}"]
#   - ["2048", "{{ waves.n2048.tiles:.0f }}", "{{ waves.n2048.rounds:.0f }}", "{{ waves.n2048.full:.0%}}", "{{ smooth.ours.n2048.of_compute:.1%}}", "{{ smooth.cublas.n2048.of_compute:.1%}}", "{{ smooth.ours.n2048.tflops / smooth.cublas.n2048.tflops:.0%}}"]
#   - ["4096", "{{ waves.n4096.tiles:.0f }}", "{{ waves.n4096.rounds:.0f }}", "{{ waves.n4096.full:.0%}}", "{{ smooth.ours.n4096.of_compute:.1%}}", "{{ smooth.cublas.n4096.of_compute:.1%}}", "{{ smooth.ours.n4096.tflops / smooth.cublas.n4096.tflops:.0%}}"]
#   - ["8192", "{{ waves.n8192.tiles:.0f }}", "{{ waves.n8192.rounds:.0f }}", "{{ waves.n8192.full:.0%}}", "{{ smooth.ours.n8192.of_compute:.1%}}", "{{ smooth.cublas.n8192.of_compute:.1%}}", "{{ smooth.ours.n8192.tflops / smooth.cublas.n8192.tflops:.0%}}"]
# caption: Per cent of peak is of the multiply-adds, at every size. At the small ones the launch and the trip to the pantry are most of the time.
# ///
#
# /// claim | smooth.ours.n1024.of_compute < 0.6 * smooth.ours.n4096.of_compute and waves.n1024.full < 0.5
# At 1024 there are {{ waves.n1024.tiles:.0f }} tiles for {{ sms:.0f }} rooms. So {{ 1 - waves.n1024.full:.0%}} of the card
# stands empty, and no idea of this ladder helps: they all live inside a tile. A tile so large is a choice for large
# matrices. The library has smaller ones as well, and picks.
# /// otherwise
# At 1024 there are {{ waves.n1024.tiles:.0f }} tiles for {{ sms:.0f }} rooms, and we reach {{ smooth.ours.n1024.of_compute:.1%}}
# of peak.
# ///
#
# And the ugly ones. 1000 is a multiple of 8 and of no tile. Of 1023 and 4095 not even every row begins where a 16-byte load
# may.
#
# /// table
# columns: [N, "% of peak", "% of peak, cuBLAS", "% of cuBLAS", "ours, over the next power of two"]
# rows:
#   - ["1000", "{{ sizes.ours.n1000.of_compute:.1%}}", "{{ sizes.cublas.n1000.of_compute:.1%}}", "{{ sizes.ours.n1000.tflops / sizes.cublas.n1000.tflops:.0%}}", "{{ sizes.ours.n1000.tflops / sizes.ours.n1024.tflops:.0%}}"]
#   - ["1023", "{{ sizes.ours.n1023.of_compute:.1%}}", "{{ sizes.cublas.n1023.of_compute:.1%}}", "{{ sizes.ours.n1023.tflops / sizes.cublas.n1023.tflops:.0%}}", "{{ sizes.ours.n1023.tflops / sizes.ours.n1024.tflops:.0%}}"]
#   - ["4095", "{{ sizes.ours.n4095.of_compute:.1%}}", "{{ sizes.cublas.n4095.of_compute:.1%}}", "{{ sizes.ours.n4095.tflops / sizes.cublas.n4095.tflops:.0%}}", "{{ sizes.ours.n4095.tflops / sizes.ours.n4096.tflops:.0%}}"]
# ///
#
# /// claim | sizes.ours.n4095.us > 1.02 * sizes.ours.n4096.us
# One number less in each direction, a little *less* work, and {{ sizes.ours.n4095.us / sizes.ours.n4096.us:.2f }} times the
# time. Number by number instead of four at once: that is the price of an address.
# /// otherwise
# One number less in each direction takes {{ sizes.ours.n4095.us / sizes.ours.n4096.us:.3f }} times the time of 4096.
# ///
#
# /// exercise | The last wave
# A card has 100 SMs, one block fits on each, and every tile takes as long as every other. How full is the card with 100 tiles, 101,
# 150, and 1050?
# /// answer
# 100: one round, 100 %. 101: two rounds for 101 of 200 places, 50.5 %. 150: 75 %. 1050: eleven rounds, 1050 of 1100, 95.5 %.
# One tile too many can cost half the card, and with many rounds it hardly shows.
# ///

# %% [markdown]
# ## Few tiles, long K
#
# There is a shape that small tiles do not cure: a small C with a long K. Layers of models have it, when few rows meet a long
# sum. Then cut the *sum*.
#
# /// figure | docs/assets/figures/sgemm_split_k.svg
# alt: "Above: four tiles of C, one block for each, walk the whole of K, and 4 of 16 rooms cook. Below: K is cut in four, four blocks work on each tile, 16 of 16 rooms cook, and the four parts are added up. Each part is written to the pantry and read again."
# ///
#
# **Split-K**: several blocks share a tile of C, each takes a piece of K, and somebody adds the pieces up. It is no rung of the
# ladder, because at 4096 it has nothing to offer.

# %%
from course_kernels.sgemm import k12_split_k

FEW = {
    "m128_k16384": (128, 128, 16384),
    "m256_k16384": (256, 256, 16384),
    "m512_k8192": (512, 512, 8192),
    "m1024_k4096": (1024, 1024, 4096),
    "m4096_k4096": (4096, 4096, 4096),
}
record(
    few={
        name: compare(
            {
                "whole": k11_persistent,
                "split": k12_split_k,
                "cublas": library.cublas,
            },
            Workload.of("float32", M=M, N=N, K=K),
            seconds=0.1,
        )
        for name, (M, N, K) in FEW.items()
    }
)

# %% [markdown]
# /// table
# columns: ["M × N × K", "% of peak, whole K", "% of peak, split", "% of peak, cuBLAS", "split over whole, time"]
# rows:
#   - ["128 × 128 × 16384", "{{ few.m128_k16384.whole.of_compute:.1%}}", "{{ few.m128_k16384.split.of_compute:.1%}}", "{{ few.m128_k16384.cublas.of_compute:.1%}}", "{{ few.m128_k16384.split.us / few.m128_k16384.whole.us:.2f }}"]
#   - ["256 × 256 × 16384", "{{ few.m256_k16384.whole.of_compute:.1%}}", "{{ few.m256_k16384.split.of_compute:.1%}}", "{{ few.m256_k16384.cublas.of_compute:.1%}}", "{{ few.m256_k16384.split.us / few.m256_k16384.whole.us:.2f }}"]
#   - ["512 × 512 × 8192", "{{ few.m512_k8192.whole.of_compute:.1%}}", "{{ few.m512_k8192.split.of_compute:.1%}}", "{{ few.m512_k8192.cublas.of_compute:.1%}}", "{{ few.m512_k8192.split.us / few.m512_k8192.whole.us:.2f }}"]
#   - ["1024 × 1024 × 4096", "{{ few.m1024_k4096.whole.of_compute:.1%}}", "{{ few.m1024_k4096.split.of_compute:.1%}}", "{{ few.m1024_k4096.cublas.of_compute:.1%}}", "{{ few.m1024_k4096.split.us / few.m1024_k4096.whole.us:.2f }}"]
#   - ["4096 × 4096 × 4096", "{{ few.m4096_k4096.whole.of_compute:.1%}}", "{{ few.m4096_k4096.split.of_compute:.1%}}", "{{ few.m4096_k4096.cublas.of_compute:.1%}}", "{{ few.m4096_k4096.split.us / few.m4096_k4096.whole.us:.2f }}"]
# caption: Below 1 in the last column, cutting K pays.
# ///
#
# /// predict | At which of these shapes does cutting K save most, and where does it lose?
# Always saves · most at the top, nothing at the bottom · most at the bottom
# /// reveal
# From top to bottom: {{ few.m128_k16384.split.us / few.m128_k16384.whole.us:.2f }},
# {{ few.m256_k16384.split.us / few.m256_k16384.whole.us:.2f }}, {{ few.m512_k8192.split.us / few.m512_k8192.whole.us:.2f }},
# {{ few.m1024_k4096.split.us / few.m1024_k4096.whole.us:.2f }}, {{ few.m4096_k4096.split.us / few.m4096_k4096.whole.us:.2f }} of the
# time.
# ///
#
# /// claim | few.m256_k16384.split.us < 0.3 * few.m256_k16384.whole.us and few.m4096_k4096.split.us > 0.99 * few.m4096_k4096.whole.us
# With 256 × 256 sums of 16384 products, the cut takes {{ few.m256_k16384.whole.us / few.m256_k16384.split.us:.1f}} times less time.
# At 4096 it takes {{ few.m4096_k4096.split.us / few.m4096_k4096.whole.us:.2f }} times the time of the kernel before: every
# room is busy anyway, and nothing is won by cutting.
# /// otherwise
# With 256 × 256 sums of 16384 products, the cut takes {{ few.m256_k16384.split.us / few.m256_k16384.whole.us:.2f }} of the time, at
# 4096 {{ few.m4096_k4096.split.us / few.m4096_k4096.whole.us:.2f }}.
# ///
#
# The answer is not the same bit for bit: it is added in another order. The worst error at 256 × 256 × 16384 is
# {{ few.m256_k16384.split.error:.1e}} split and {{ few.m256_k16384.whole.error:.1e}} whole. Shorter sums round less.
#
# /// exercise | How many pieces?
# C has 12 tiles, the card 132 SMs, and K is 8192. How many pieces fill the card? How many bytes does that write and read once more, if
# a tile is 128 × 256 in fp32?
# /// answer
# 132 / 12 = 11 pieces fill it exactly. Each piece of each tile is 128 × 256 × 4 bytes = 128 KiB, so 132 × 128 KiB = 16.5 MiB are
# written, and read again. That fits in L2, so it is cheaper than it looks. Eight pieces, 96 of 132 rooms, would write less and use less of the
# card: measure.
# ///

# %% [markdown]
# ## The same in bf16, and a wall
#
# Numbers of half the length: half the bytes to fetch. Take the same structure, feed it bf16 and add up in fp32 as before. On the
# other side stands the library, which knows another kind of instruction.

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
# /// predict | Against cuBLAS in bf16, where does this land?
# About where fp32 did · about half · a few per cent
# /// reveal
# {{ half.ours.tflops / half.cublas.tflops:.1%}}.
# ///
#
# /// table
# columns: ["4096 × 4096 × 4096", "% of peak", "TFLOP/s"]
# rows:
#   - ["fp32, the last of the ladder", "{{ ladder.persistent.of_peak:.1%}}", "{{ ladder.persistent.tflops:.1f }}"]
#   - ["fp32, cuBLAS", "{{ ladder.cublas.of_peak:.1%}}", "{{ ladder.cublas.tflops:.1f }}"]
#   - ["bf16, same structure, on the lanes", "{{ half.ours.of_peak:.1%}}", "{{ half.ours.tflops:.1f }}"]
#   - ["bf16, cuBLAS", "{{ half.cublas.of_peak:.1%}}", "{{ half.cublas.tflops:.0f }}"]
# caption: Per cent of peak is of the data sheet's peak for that type.
# ///
#
# /// claim | half.ours.tflops < 0.1 * half.cublas.tflops
# All of two lectures, and **{{ half.ours.tflops / half.cublas.tflops:.1%}} of the library**. It is no mistake in the kernel. Its lanes are about as busy as they were in fp32, and they have no
# faster multiply-add for shorter numbers. The library does not use the lanes. Beside them, in every room, stands a machine that does a
# whole small matrix multiply in one call: a *tensor core*.
# /// otherwise
# {{ half.ours.tflops / half.cublas.tflops:.1%}} of the library, which uses tensor cores.
# ///
#
# /// exercise | What would the best possible kernel on the lanes reach?
# Suppose a kernel had every lane multiply and add in every tick. What per cent of this card's bf16 peak is that?
# /// answer
# The fp32 peak over the bf16 peak: {{ ladder.cublas.tflops / ladder.cublas.of_peak:.0f}} of
# {{ half.cublas.tflops / half.cublas.of_peak:.0f }} TFLOP/s, or
# {{ ladder.cublas.tflops / ladder.cublas.of_peak / (half.cublas.tflops / half.cublas.of_peak):.1%}}. That is the wall. No tiling gets you over it.
# ///

# %% [markdown]
# ## Before you leave the ladder
#
# **You can now** read a step as a diff and ask three questions before you run it.
#
# 1. *Which of the three does it raise?* The clock, the calls used, or the share.
# 2. *Which counter shows it?* Loads, turns, a wait, hits in L2, registers.
# 3. *What is the next bound?* Name it before you look.
#
# And you know the three tiles by name, block, warp and register, which is how every matrix multiply on a GPU is described.
#
# **Where this leads.** The wall above has a door. [The next lecture](l6_tensor_cores.py) goes through it: a small matrix multiply as *one
# instruction*. How the clock and the counters of this page work: [how every number here is measured](../how_we_measure.py). Each
# number with its spread: [the ledger](../numbers.md).
