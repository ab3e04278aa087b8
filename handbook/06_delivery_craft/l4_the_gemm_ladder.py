# ---
# id: teach_l4
# title: "Teaching L4: the GEMM ladder"
# description: How to have a room forecast five matrix multiplies before they run, and what to say when the famous trick gains little.
# ---

# %% [markdown]
# # Teaching L4: the GEMM ladder
#
# After this page you can climb five rungs with a room in two hours. Your students type three of them, and write down a guess before each of the five. You will know what tiles save and what they do not, and what to say when shared memory, the most famous
# trick of all, gains less than your students hoped.
#
# You need this page, [the map](../02_the_climb/l4_map.md), and [the students' page](../../docs/lectures/l4_the_gemm_ladder.py).
# Type its lab, `sgemm_tiles`, once yourself.

# %% [markdown]
# ## What it is really about
#
# The lecture is not about five tricks. It asks one question five times: *which roof holds this kernel back, and what would
# raise that roof?* There are four roofs: lanes (multiply-adds), issue slots (instructions), shared memory and L1 (words), L2 and
# HBM (bytes). A trick is only ever the answer. A student who leaves with five tricks has a collection; a student who leaves
# with the question has a trade.
#
# /// callout | metaphor
# A patient cook makes one dish at a time. For every bite she walks: one ingredient from A, one from B, chop, into the pot, walk again. Rung 2 tells her to
# walk beside her neighbours. Rung 3 sets a tray between them. Rungs 4 and 5 tell her to keep in her hands what she will need
# again. The chopping never changes. She only walks less.
# ///

# %% [markdown]
# ## By hand: bytes for one number of C
#
# Start small enough to count: grids of 8 × 8, tiles of 4, and a tally mark for every number that comes from memory. Count first without tiles, then with them.

# %%
from course_kernels.measure import quantity, record

N, TILE = 8, 4
A = [[m + k for k in range(N)] for m in range(N)]
B = [[k - n for n in range(N)] for k in range(N)]


def plain():
    """C, and how many numbers came from memory: two for every multiply-add."""
    C = [
        [sum(A[m][k] * B[k][n] for k in range(N)) for n in range(N)]
        for m in range(N)
    ]
    return C, 2 * N**3


def tiled():
    """The same C; a tile of A and one of B are carried, then used by all."""
    C, carried = [[0] * N for _ in range(N)], 0
    for m0 in range(0, N, TILE):
        for n0 in range(0, N, TILE):  # the tile of C stays
            for k0 in range(0, N, TILE):  # the tiles of A and B walk
                a = [row[k0 : k0 + TILE] for row in A[m0 : m0 + TILE]]
                b = [row[n0 : n0 + TILE] for row in B[k0 : k0 + TILE]]
                carried += 2 * TILE * TILE
                for m in range(TILE):
                    for n in range(TILE):
                        for k in range(TILE):
                            C[m0 + m][n0 + n] += a[m][k] * b[k][n]
    return C, carried


(right, fetched), (same, carried) = plain(), tiled()
print("the same C:", right == same)
print(fetched, "numbers fetched without tiles,", carried, "with tiles of", TILE)

# %% [markdown]
# /// predict | Now K = 4096 and tiles of 32, fp32. How many bytes come from memory for one number of C, without tiles and with them?
# It takes two multiplications and a division. Write both numbers down.
#
# - [ ] 16 384, and 512 with tiles
# - [x] 32 768, and 1024 with tiles
# - [ ] 32 768, and 32 with tiles
# /// reveal
# {{ one.plain:,.0f}} bytes, and {{ one.tiled:,.0f}} with tiles. On the board: 2 × 4096 × 4, then ÷ 32.
#
# /// table
# columns: ["the sheet says", "what happened", "your question"]
# rows:
#   - ["{{ one.plain:.0f }} and {{ one.tiled:.0f }}", "right", "which 32 threads share it?"]
#   - ["{{ slips.row_only:.0f }}", "only the row of A", "what does she chop it with?"]
#   - ["{{ slips.numbers:.0f }}", "numbers, not bytes", "what does one number weigh?"]
#   - ["{{ slips.all_share:.0f }} with tiles", "divided by 32 × 32", "does a number of A serve all 1024, or one row of them?"]
# ///
# ///

# %%
K = 4096
one = {"plain": 2 * K * 4, "tiled": 2 * K * 4 // 32}
slips = {
    "row_only": K * 4,  # the column of B forgotten
    "numbers": 2 * K,  # numbers, not bytes
    "all_share": 2 * K * 4 // 32**2,  # as if all 1024 threads shared one number
}
record(
    small={"fetched": quantity(fetched), "carried": quantity(carried)},
    one={name: quantity(value, "B") for name, value in one.items()},
    slips={name: quantity(value) for name, value in slips.items()},
    words={
        f"r{R}x{S}": quantity((R + S) / (R * S))
        for R, S in ((1, 1), (8, 1), (32, 1), (8, 8))
    },
)

# %% [markdown]
# The last slip in the table that you unfolded is worth a minute. A tile has 1024 threads, but only the 32 in one row need a given number of A. That is why a tile's *side* counts, and why a larger tile saves more.
#
# /// callout | by_hand
# Then the hands. R numbers of A and S numbers of B meet in R × S multiply-adds, which take R + S words from shared memory. One and one:
# {{ words.r1x1:.0f }} words for each multiply-add. Eight and one:
# {{ words.r8x1:.3f}}. Thirty-two and one: {{ words.r32x1:.2f}}, and it never falls below 1. Eight and eight: {{ words.r8x8:.2f}}. Draw the square. *The words grow
# with its sides, the work with its area.*
# ///

# %% [markdown]
# ## In production today
#
# /// callout | production
# The best-known ladder of this kind climbs from 1.3 % to 93.7 % of cuBLAS on an RTX A6000 [^boehm2022]. Our five rungs are its
# first five. CUTLASS, NVIDIA's own library of such kernels, documents the same nesting of tiles, for the block, the warp and the
# thread, with an outer product at the bottom [^cutlass-gemm]. Once you have drawn the square, you can read that documentation.
# ///
#
# Mind the yardstick when you quote such a ladder. Percent *of cuBLAS* is not percent of peak: here cuBLAS itself is at {{ l4.ladder.cublas.of_peak:.0%}}
# of peak. And this is a ladder for fp32 without tensor cores.

# %% [markdown]
# ## The click
#
# /// callout | click
# In percent of peak, from the bottom: {{ l4.ladder.naive.of_peak:.2%}}, {{ l4.ladder.coalesced.of_peak:.1%}}, {{ l4.ladder.shared_tiles.of_peak:.0%}},
# {{ l4.ladder.register_column.of_peak:.0%}}, {{ l4.ladder.register_tile.of_peak:.0%}}. All five kernels do the same multiply-adds. For the first one, the pencil said
# {{ l4.hand.naive.by_tray / 128:.2%}}.
# ///
#
# /// claim | l4.ladder.shared_tiles.us > 0.4 * l4.ladder.coalesced.us and l4.vital.shared_tiles.hall > 0.6 * l4.vital.coalesced.hall
# The disappointment comes in the middle, and it is the best moment of the lecture. Tiles carry a 32nd of what was asked for, on paper, and the
# kernel gets {{ l4.ladder.coalesced.us / l4.ladder.shared_tiles.us:.2f}} times as fast. Why? L1 had caught the reuse before anybody asked it to: {{ l4.vital.coalesced.hall:.2f }} bytes
# for each multiply-add came from L2 before the tiles, {{ l4.vital.shared_tiles.hall:.2f }} after. *You raised a
# roof that was not the lowest.* Let them say which one is the lowest.
# /// otherwise
# Tiles carry a 32nd of what was asked for, on paper, and the kernel gets {{ l4.ladder.coalesced.us / l4.ladder.shared_tiles.us:.2f}} times as fast. {{ l4.vital.coalesced.hall:.2f }} bytes for each multiply-add came from L2 before, {{ l4.vital.shared_tiles.hall:.2f }} after.
# ///
#
# /// callout | demo
# One command runs all five and cuBLAS. The naive kernel is the long wait: use it to have the room name a roof for each rung. Then
# read from the bottom up, in percent of *peak*: that is the column *of peak* on the screen. Without a GPU, use [the recorded staircase](../../docs/lectures/l4_the_gemm_ladder.py#the-staircase).
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **"The naive kernel waits for memory."** HBM is busy for {{ l4.vital.naive.hbm:.1%}} of its time. It waits for *wavefronts*: 33
# for 32 multiply-adds, and the counter says {{ l4.vital.naive.turns:.1f }}. Bytes are only one of the four roofs.
# ///
#
# - *The early `return` before a barrier.* It leaves holes in a tile, or something worse happens: the language no longer promises anything. A
#   thread without a number of C still carries for others.
# - *The second barrier.* It looks superfluous. But without it a fast warp would refill shared memory while a slow one
#   is still reading.
# - *Zeros in A only.* Past the end of B there may be a NaN, and zero times NaN is NaN.
# - *They move the tile of C.* C stays. Hold it down with a finger.
# - *"Low occupancy, bad kernel."* The best of the five takes {{ l4.vital.register_tile.seats:.0%}} of the seats, the worst {{ l4.vital.naive.seats:.0%}}.
# - *Percent of what?* Ask every time: of peak, or of the library?

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "On the first day you asked why the slow one is slow, and I put a box around the question. Now you tell me. Don't say *memory*;
# give me a number. Thirty-three wavefronts for thirty-two multiply-adds. You had it on paper before the machine said a word. From
# here on nobody has to ask *how do I make it fast?* You ask: which roof is it?"
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../02_the_climb/l4_map.md) has every step. If you are running late at the break, hand out the file as it is after stage 3 and have the students explain its two barriers. Keep the square of both hands, because the next lecture begins there.
#
# /// exercise | Before they ask
# A student has tiles of 64 × 64, with one number of C for each thread, and is proud that this halves the bytes. Which two things do
# you tell her?
# /// answer
# A block of 64 × 64 has 4096 threads, and the limit is 1024: it will not launch. And if each thread made four numbers instead,
# the bytes would halve, but each multiply-add would still take two words from shared memory, unless the four share words in
# registers. She has raised the roof of L2, but shared memory is the lowest roof.
# ///

# %% [markdown]
# ## You can now teach
#
# - what a multiply must carry, what the patient cook asks for, and the factor between the two;
# - wavefronts for 32 multiply-adds, using the table from the last lecture;
# - tiles with paper squares, then in code, with a reason for each barrier;
# - one hand and both hands, as the sides and the area of a square;
# - a staircase in percent of peak, and why percent of the library is something different.
#
# **Where this leads.** The students' page is [the GEMM ladder](../../docs/lectures/l4_the_gemm_ladder.py). Before this page comes
# [teaching memory](l3_memory.py), after it [teaching the top of the ladder](l5_the_top_of_the_ladder.py).
