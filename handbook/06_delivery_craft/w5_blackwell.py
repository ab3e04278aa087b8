# ---
# id: teach_w5
# title: "Teaching W5: Blackwell and NVFP4"
# nav: W5 · Blackwell
# description: How to lead a room from eight places on a ruler to a four-bit quantiser of their own, and to three honest sentences about ninety-fold.
# ---

# %% [markdown]
# # Teaching W5: Blackwell and NVFP4
#
# After this page you can quantise sixteen numbers to four bits with chalk, say what the shared scale is and what it is not, explain
# Blackwell's new hardware without a slide, and take a famous race apart so that every step in it is one that your
# students know.
#
# You need this page and [the map of the three hours](../05_the_frontier/w5_map.md). You do not need a Blackwell card:
# nothing on this page claims to have run on one.

# %% [markdown]
# ## What it is really about
#
# Without the sign, four bits give you eight places on a ruler. That is not much, but it is enough if the ruler is where
# the numbers
# are. So small groups of numbers share one extra number, a **scale**, that moves the ruler. Everything else this evening follows
# from that: half the bytes of FP8, a tensor core (a mill) that eats four-bit numbers and their scales together, a new place for
# its sums, and a race in which nearly all
# of the gain came from things that your students learned in week one.
#
# /// callout | metaphor
# fp32 is a paragraph. FP8 is a short sentence. Four bits are an abbreviation in a text message: *3k*. You cannot say much in it. But if the
# two of you have agreed beforehand that *everything in this message is in thousands*, then *3* is enough, and it means a lot.
#
# The agreement costs a few characters, once, and serves the whole message. That is the scale of a block.
# ///
#
# /// figure | docs/assets/figures/shared_scale.svg
# alt: "Sixteen numbers of four bits each and one scale that they share. The ruler of eight places is moved to where the numbers are: times a scale of 0.75, 6 becomes 4.5, 3 becomes 2.25, 1½ becomes 1.125 and ½ becomes 0.375."
# ///

# %% [markdown]
# ## By hand: sixteen numbers
#
# Sign, two bits of exponent, one of fraction: **E2M1**. First let your students find the eight magnitudes from the
# bits. Exponent 00 is
# special, as in every float: it has no leading one, so its values are 0 and a half.
#
# Then do the sixteen numbers twice: as they are, and in units of a scale. The scale is the largest divided by six, so that the
# largest lands at the end of the ruler. The scale itself is stored in 8 bits, as **E4M3**, so it is rounded as well.
#
# /// predict | The sixteen numbers lie between −0.27 and 0.27. Without a scale, how many of them become zero?
# Ask the room before the first line is written.
#
# - [zeros.plain < 4] None, or a few
# - [4 <= zeros.plain < 12] About 8
# - [zeros.plain >= 12] Nearly all
# /// reveal
# {{ zeros.plain:.0f}} of 16. The ruler has nothing between 0 and a half, and a quarter is the border.
# ///

# %%
from math import floor, log2

from course_kernels.measure import quantity, record

E2M1 = []
for code in range(8):  # the sign is the fourth bit
    exponent, fraction = code >> 1, code & 1
    E2M1.append(
        fraction / 2 if exponent == 0 else (1 + fraction / 2) * 2 ** (exponent - 1)
    )
print("codes 000 to 111:", E2M1)


def nearest(x):
    """The nearest place on the ruler, of two the even code; past its end, the end."""
    code = min(range(8), key=lambda code: (abs(E2M1[code] - abs(x)), code % 2))
    return E2M1[code] if x >= 0 else 0.0 - E2M1[code]


def e4m3(x):
    """The nearest E4M3 number to x >= 0: three bits of fraction, at most 448."""
    if x == 0:
        return 0.0
    step = 2.0 ** (max(floor(log2(x)), -6) - 3)
    return min(round(x / step) * step, 448.0)


SIXTEEN = (0.03, -0.11, 0.27, 0.08, -0.02, 0.15, -0.19, 0.05)
SIXTEEN += (0.12, -0.07, 0.01, -0.24, 0.09, 0.18, -0.14, 0.06)

largest = max(map(abs, SIXTEEN))
exact = largest / 6
s = e4m3(exact)
two = 2.0 ** (floor(log2(largest)) - 2)  # a power of two, as MXFP4 has it

plain = [nearest(x) for x in SIXTEEN]
nvfp4 = [nearest(x / s) * s for x in SIXTEEN]
mxfp4 = [nearest(x / two) * two for x in SIXTEEN]

print(f"\nlargest / 6 = {exact:.4f}, as E4M3 {s:.6f}; the power of two is {two}")
print("\n     x   plain    x/s  place    back    miss")
for x, p, q in zip(SIXTEEN, plain, nvfp4, strict=True):
    place = nearest(x / s)
    print(
        f"{x:6.2f}  {p:6.1f} {x / s:6.2f} {place:6.1f} {q:7.4f} {abs(x - q):7.4f}"
    )


def misses(back):
    """Sum of the sixteen misses."""
    return sum(abs(x - y) for x, y in zip(SIXTEEN, back, strict=True))


record(
    scale=quantity(s),
    exact=quantity(exact),
    zeros={"plain": quantity(plain.count(0)), "nvfp4": quantity(nvfp4.count(0))},
    miss={
        "plain": quantity(misses(plain)),
        "nvfp4": quantity(misses(nvfp4)),
        "mxfp4": quantity(misses(mxfp4)),
    },
    bits=quantity((16 * 4 + 8) / 16),
)

# %% [markdown]
# | sixteen numbers | their misses, added up |
# |---|---:|
# | four bits as they are | {{ miss.plain:.3f}} |
# | four bits and a power of two | {{ miss.mxfp4:.3f}} |
# | four bits and an E4M3 scale | {{ miss.nvfp4:.3f}} |
#
# All three rows use the same four bits. The agreement costs 8 bits for 16 numbers, so a number takes {{ bits:.1f}} bits and not four. Make them say
# *four and a half* whenever they compute bytes.
#
# The room should hear two things, because both are usually explained wrongly.
#
# - **It is not a shared exponent.** A shared power of two is MXFP4, for 32 numbers [^rouhani2023]. NVFP4 shares an E4M3 number, which has a
#   fraction, among 16, and above them all is one fp32 scale for the whole tensor [^nvidia-nvfp4]. The ruler moves in finer steps.
# - **E4M3 is the precise one of the two 8-bit formats**, E5M2 the one with the wider range [^micikevicius2022]. That is why a scale is
#   E4M3: its rounding affects sixteen numbers at once.
#
# The last two rows differ by a hair. In units of the finer scale, −0.24 is −5.12, just past the midpoint of 4 and 6, and it
# has the largest miss of all. One block proves nothing, and you should say so. Here are a thousand.

# %% tags=["fold"]
from course_kernels.nvfp4 import accuracy

accuracy.main()
record(
    how_many=quantity(len(accuracy.kinds_of_numbers()["normal"])),
    err={
        scale: {kind: quantity(error) for kind, error in found.items()}
        for scale, found in accuracy.scale_errors().items()
    },
)

# %% [markdown]
# Relative error, rms, of {{ how_many:,.0f}} numbers; the giant's own error is left out, so that you can see what it does to the
# others.
#
# | scale | well-behaved | one giant | all tiny |
# |---|---:|---:|---:|
# | one for the tensor | {{ err.one.normal:.1%}} | {{ err.one.giant:.1%}} | {{ err.one.tiny:.1%}} |
# | a power of two for 32 | {{ err.power.normal:.1%}} | {{ err.power.giant:.1%}} | {{ err.power.tiny:.1%}} |
# | E4M3 for 16, alone | {{ err.e4m3.normal:.1%}} | {{ err.e4m3.giant:.1%}} | {{ err.e4m3.tiny:.1%}} |
# | E4M3 for 16, and one for the tensor | {{ err.second.normal:.1%}} | {{ err.second.giant:.1%}} | {{ err.second.tiny:.1%}} |
#
# /// callout | teaching
# Let them guess the worst cell. Most guess *one giant, one scale*, and it is bad: nearly everything becomes zero. But
# *tiny, E4M3 alone* is equally bad: the scale itself is below what E4M3 can express, so each block loses its ruler.
# That is what the second,
# fp32 scale is for. On the sheet, the row *E4M3 for 16* has the tensor's scale in it; let somebody take it out.
# ///
#
# Then say something about models. An error of about a tenth is a lot for a single number. Whether a *model* minds is a different
# question, and only an experiment on that model answers it. The students' page has done one, with
# [a small model's loss in each format](../../docs/workshops/w5_blackwell.py#do-four-bits-ruin-a-model). Do not quote others from memory.
#
# The students run the same table at minute 160: `PYTHONPATH=src python -m course_kernels.nvfp4.accuracy`.

# %% [markdown]
# ## The hardware, by feel
#
# There are three new things, with one picture for each. Use no acronym without its place in the kitchen.
#
# - **Tensor memory** (TMEM). On Hopper, the sums of a tile are in registers, and the registers are full. Blackwell gives the
#   tensor core
#   its own memory for them: 128 lanes of 512 columns, 32 bits each, on every SM [^tilus-tmem]. The sums are always in tensor memory. A may be there, too; B stays in shared memory [^cutlass-tcgen05]. So *a memory for operands* is loose talk: it is first of all a memory
#   for sums.
# - **tcgen05**. A single thread gives the order to the tensor core [^cutlass-tcgen05]. On Ampere it took a warp of 32, on Hopper four warps; you can show both on [the page of L6](../../docs/lectures/l6_tensor_cores.py#the-climb).
# - **Pairs of blocks**. Two neighbouring blocks can carry out one order together [^cutlass-tcgen05], and each keeps only a part of what they share.
#
# The sums for the sheet:

# %%
from course_kernels.measure.machine import machine_for

tmem_bytes = 128 * 512 * 4
tile_bytes = 128 * 256 * 4  # fp32 sums of a tile
b200 = machine_for("NVIDIA B200")
peaks = {16: b200.peak_tflops["bf16"], 8: b200.peak_tflops["fp8"], 4: 9000.0}
ridges = {
    bits: 1e3 * peak / b200.bandwidth_gb_per_s for bits, peak in peaks.items()
}
one_row = 2 / (4.5 / 8)  # two operations for each weight of 4.5 bits

print(f"TMEM {tmem_bytes // 1024} KiB, a tile's sums {tile_bytes // 1024} KiB")
for bits, ridge in ridges.items():
    print(f"{bits:2d} bits: ridge {ridge:6.0f} operations per byte")
print(f"one row times four-bit weights: {one_row:.2f} operations per byte")
record(
    tmem=quantity(tmem_bytes / 1024),
    tile=quantity(tile_bytes / 1024),
    ridge={
        f"bits{bits}": quantity(ridge, "FLOP/B") for bits, ridge in ridges.items()
    },
    one_row=quantity(one_row, "FLOP/B"),
)

# %% [markdown]
# The peaks are those of NVIDIA's sheet for the DGX B200, dense, and so is the 9000 at four bits [^nvidia-b200]. Look at the last
# two lines together. A vector times a grid is at {{ one_row:.1f}} operations per byte, the ridge at {{ ridge.bits4:.0f}}. The
# four-bit tensor core has nothing to do with tonight's race. Bytes do, and so do the lanes that unpack them.

# %% [markdown]
# ## The race, step by step
#
# GPU MODE and NVIDIA held a hackathon on four-bit kernels in the autumn of 2025. Its first problem was a batched GEMV: a grid in
# NVFP4 times a vector that is also in NVFP4, with its own scales [^gpumode-nvfp4]. (What the room types at minute 115 is the
# easier job: its vector stays in float64.) Yue Zhang kept a diary [^zhang2025]. **It ran on a B200, and its times are cited.** Your students
# rebuild the steps in NumPy and *count* what each one saves. Between them they forecast our own climb of the same problem:
# [twelve kernels, measured on our card](../../docs/workshops/w5_blackwell.py#the-climb). Never put the two on one axis.
#
# The floor comes first, on paper too: the bytes of the grid and its scales, for the three shapes of the problem.

# %%
SHAPES = (
    (7168, 16384, 1),
    (4096, 7168, 8),
    (7168, 2048, 4),
)  # rows, columns, batch
megabytes = [m * k * batch * (1 / 2 + 1 / 16) / 1e6 for m, k, batch in SHAPES]
for shape, size in zip(SHAPES, megabytes, strict=True):
    print(f"{shape}: {size:6.1f} MB")
TB_PER_S, END = 8, 22.392  # of a B200's data sheet; µs of the last entry
least = (megabytes[0] * megabytes[1] * megabytes[2]) ** (1 / 3) / TB_PER_S
record(
    mb={f"shape{i}": quantity(size, "MB") for i, size in enumerate(megabytes)},
    sheet={"floor": quantity(least, "µs"), "share": quantity(least / END)},
)

# %% [markdown]
# The organisers' own floor, their *speed of light*, is 8.622, 17.275 and 4.317 µs for the three, 8.63 µs as a geometric mean [^gpumode-nvfp4].
# Theirs is a little above the data sheet's: the bytes above at 8 TB/s [^nvidia-b200] take {{ sheet.floor:.2f}} µs, as a
# geometric mean. The problem statement says why that may be: theirs is the larger of two times, one for the multiply-adds and one for memory, tested at a
# clock of 1.5 GHz
# [^gpumode-nvfp4]. Here it is still the bytes that count: those of the first shape over 8.622 µs [^gpumode-nvfp4] come to nearly the sheet's bandwidth. So the last entry,
# 22.4 µs [^gpumode-nvfp4], is {{ sheet.share:.1%}} of the *sheet* and 39 % of their floor. Say which of the two you divide by.
#
# Now the steps, each as the author describes it.
#
# - **The draft: 2000 µs** [^zhang2025]. A thread takes a row and picks the numbers apart bit by bit.
# - **Side by side: 443 µs** [^zhang2025]. Neighbours fetch neighbours, several threads share a row, and a warp adds up by shuffles. That is all of L3.
# - **Wide loads and the card's own conversions: 39 µs** [^zhang2025]. No shared memory, 16 bytes in each load, intrinsics for FP4
#   and FP8. This is the largest step of all. Note what it *removes*: the bit-twiddling.
# - **Decoding in PTX: about 27 µs, then tuned, about 26** [^zhang2025].
# - **Two tiles in each turn: about 22.9 µs** [^zhang2025]. That is ILP, from L3 again.
# - **One fused piece of PTX: 22.3 µs** [^zhang2025].
#
# Two lines frame these: the organisers' template in CuTe DSL, which already ran in about 100 µs [^zhang2025], and the floor.
#
# /// callout | click
# Three sentences, all true. *Ninety-fold*, against his own first draft [^zhang2025]. *Four and a half times the template's speed* [^zhang2025].
# *39 % of the organisers' speed of light*, with 22.4 µs on the leaderboard over a floor of 8.63 [^gpumode-nvfp4]. Ask the room which of them answers
# our question. Only the last one says what percent of peak.
#
# That takes nothing away from the work. A climb from 2000 to 22 µs [^zhang2025] in which every step has a name is the best
# worklog that you can show a student. It only takes something away from the *headline*.
# ///
#
# Our own five factors, at K = 16384 on our card: k02 has {{ w5.ladder.k16384.k01.us / w5.ladder.k16384.k02.us:.1f}} times the speed of k01, k03
# {{ w5.ladder.k16384.k02.us / w5.ladder.k16384.k03.us:.1f}} times that of k02, the table {{ w5.ladder.k16384.k06.us / w5.ladder.k16384.k05.us:.1f}} times that of the bits, k07
# {{ w5.ladder.k16384.k06.us / w5.ladder.k16384.k07.us:.1f}} times that of k06, and k09 {{ w5.ladder.k16384.k08.us / w5.ladder.k16384.k09.us:.2f}} times that of k08. Be ready for the last
# one: the timelines on *steps* have one or two chains and nobody else, and on a card many warps share the hands, each of them a chain already.
#
# ### What they type
#
# Your students type the decoder, in two ways, and then the multiply: twenty lines, which are the artifact.

# %%
import numpy as np

GRID = np.array(E2M1)
MIDDLES = (GRID[1:] + GRID[:-1]) / 2


def places(size):
    """The code of the nearest place for every size, of two the even one."""
    lower = np.searchsorted(MIDDLES, size)
    upper = np.searchsorted(MIDDLES, size, side="right")  # another one in a tie
    return np.where(lower % 2, upper, lower)


def by_bits(code):
    """A four-bit code picked apart: sign, exponent, fraction."""
    exponent, fraction = (code >> 1) & 3, code & 1
    value = (
        fraction / 2 if exponent == 0 else (1 + fraction / 2) * 2 ** (exponent - 1)
    )
    return -value if code & 8 else value


TABLE = np.array([by_bits(code) for code in range(16)])  # one look instead
assert all(by_bits(code) == TABLE[code] for code in range(16))


def pack(codes):
    """Two codes to a byte, the first in the low half."""
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def unpack(packed):
    """The codes in order again."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(
        *packed.shape[:-1], -1
    )


def quantise(row):
    """Codes and scales of one row, 16 numbers to a scale."""
    blocks = row.reshape(-1, 16)
    scales = np.array([e4m3(v) for v in np.abs(blocks).max(axis=1) / 6])
    safe = np.where(scales == 0, 1, scales)[:, None]
    codes = places(np.abs(blocks) / safe)
    return (codes | (blocks < 0) << 3).ravel(), scales


def gemv4(packed, scales, x):
    """y = W x for packed four-bit rows; one multiply by a scale for sixteen products."""
    y = np.zeros(len(packed))
    for i, row in enumerate(packed):
        for block, s in enumerate(scales[i]):
            part = slice(16 * block, 16 * block + 16)
            y[i] += s * (TABLE[unpack(row)[part]] @ x[part])
    return y


rng = np.random.default_rng(0)
W, x = rng.standard_normal((8, 64)), rng.standard_normal(64)
codes, scales = map(np.array, zip(*map(quantise, W), strict=True))
packed = pack(codes)
y = gemv4(packed, scales, x)

decoded = TABLE[codes] * scales.repeat(16, axis=1)
against_decoded = np.abs(y - decoded @ x).max()
against_weights = np.abs(y - W @ x).max()
print(f"worst error against the decoded grid:   {against_decoded:.1e}")
print(f"worst error against the grid as it was: {against_weights:.2f}")
print(f"bytes: {packed.nbytes} of codes and {scales.size} of scales")
record(
    worst={
        "decoded": quantity(float(against_decoded)),
        "weights": quantity(float(against_weights)),
    },
    gemv_bytes=quantity(packed.nbytes + scales.size, "B"),
)

# %% [markdown]
# **Two truths.** Against the decoded grid it is right to the last digit. Against the grid as it was before rounding, it is off by {{ worst.weights:.1f}}, and that is
# the *format*, not a bug. If you mix up the two, you will hunt a bug all evening. Write both lines on the board.
#
# Here are the chains of the second-to-last step, for a wait of 6 ticks and 3 of work:

# %% tags=["fold"]
WAIT, WORK, TILES = 6, 3, 4


def ticks(chains):
    """Ticks for all tiles when so many are under way at once and one pair of hands works."""
    ready, hands = [WAIT] * chains, 0
    for tile in range(TILES):
        chain = tile % chains
        hands = max(hands, ready[chain]) + WORK
        ready[chain] = hands + WAIT  # its next tile is ordered now
    return hands


print({chains: ticks(chains) for chains in (1, 2, 3)})
record(ticks={f"chains{chains}": quantity(ticks(chains)) for chains in (1, 2, 3)})

# %% [markdown]
# {{ ticks.chains1:.0f}} ticks with one chain, {{ ticks.chains2:.0f}} with two, {{ ticks.chains3:.0f}} with three. And why not three in the race? Each
# chain needs registers of its own, and a thread has only so many.

# %% [markdown]
# ## In production today
#
# /// callout | production
# Blackwell was announced in 2024, and NVIDIA's post on NVFP4 is from June 2025 [^nvidia-nvfp4]. So it is current hardware, not *months
# old*, and its successor has been announced. Say *current*: anything that you call the newest will be old when you teach this
# again.
#
# Which Blackwell? The data-centre cards, capability 10.0, have tensor memory and tcgen05. An RTX 50, capability 12.0, is Blackwell by name and has
# four-bit arithmetic, but neither tensor memory nor tcgen05. Look at the number, not at the name.
# ///
#
# There is a second diary of the same problem, by Amandeep Singh [^singh2026]. Give it to those who ask for more.

# %% [markdown]
# ## The demo
#
# /// callout | demo
# *Sixteen bits against eight.* Our card stops at FP8, so we show that: the same multiply, 4096 on each side. On the page of L6, FP8 takes
# {{ l6.speed.fp8.us / l6.speed.bf16.us:.2f}} of the time of bf16, and makes {{ l6.error.fp8.rms / l6.error.bf16.rms:.0f}} times its error. In percent of its own
# peak FP8 is at {{ l6.speed.fp8.of_peak:.0%}}, bf16 at {{ l6.speed.bf16.of_peak:.0%}}. A forecast for four bits starts from here, and it should be a modest one.
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **"Four bits must ruin everything."** Show the sixteen: {{ zeros.plain:.0f}} zeros without a scale, {{ zeros.nvfp4:.0f}} with one. *It is not four bits alone. It is four
# bits, and a ruler that fits the numbers.* Then show [the loss](../../docs/workshops/w5_blackwell.py#do-four-bits-ruin-a-model).
# ///
#
# - *"A shared exponent."* That is MXFP4. Here the shared number has a fraction.
# - *"4 bits."* Four and a half. Scales are a ninth of the bytes in the race.
# - *"Bit-twiddling and ILP made it ninety-fold."* Twiddling was the start, and was thrown out. ILP and fused PTX are the last
#   small steps.
# - *"Same chip, same mathematics, ninety-fold."* And the first draft was a first draft. Ask for the template and the floor.
# - *The order in a byte.* Here the low half comes first. If a student swaps the halves, the sixteen on the sheet catch it at once.
# - *A block of zeros.* Its scale is 0, and then you divide by it.
# - *Ties.* 3.5 is exactly between 3 and 4. The rule is everywhere the same, on the sheet, in the lab and in hardware: the even code, here 4, code 110. At 5 it is 4, too.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "Eight places. That is all you get. Now tell me: where would *you* put the ruler? There. And who pays for moving it? Sixteen of
# you together, half a bit each. That is the whole invention."
# ///
#
# /// callout | say
# "From the draft? From the template? From the floor? If somebody shows you one quotient, ask for the other two."
# ///

# %% [markdown]
# ## The sheets, to print
#
# Two sheets and a page of log paper for everybody. The log paper runs from 1 to 10 000.
#
# ***Sixteen*, front.** Eight codes and their values: 000 = ____ … 111 = ____. A ruler from 0 to 6. My number ____ goes to ____ and misses by ____. Largest ÷ 6 = ____, as
# E4M3 s = ____
#
# | x | place, without s | miss | x ÷ s and place | back, and miss |
# |---|---|---|---|---|
# | 0.03 | | | | |
# | −0.11 | | | | |
# | 0.27 | | | | |
# | 0.08 | | | | |
# | −0.02 | | | | |
# | 0.15 | | | | |
# | −0.19 | | | | |
# | 0.05 | | | | |
# | 0.12 | | | | |
# | −0.07 | | | | |
# | 0.01 | | | | |
# | −0.24 | | | | |
# | 0.09 | | | | |
# | 0.18 | | | | |
# | −0.14 | | | | |
# | 0.06 | | | | |
# | **misses together** | | | | |
#
# ***Sixteen*, back.** Our climb, five factors before you open them: k02 ____ k03 ____ table or bits ____ k07 ____ k09 ____. Error in percent; the worst cell guessed first: ____
#
# | | well-behaved | one giant | all tiny |
# |---|---|---|---|
# | one scale for the tensor | | | |
# | a power of two for 32 | | | |
# | E4M3 for 16, and the tensor's | | | |
#
# ***Steps*, front.** Box 1: guess for the time and for the error from bf16 to FP8; then two times, two percentages, two errors.
# Box 2: TMEM = ____ KiB, sums of a tile
# 128 × 256 = ____ KiB; where are A, B and the sums? Box 3:
#
# | instruction | who speaks | A | B | sums |
# |---|---|---|---|---|
# | mma.sync | | | | |
# | wgmma | | | | |
# | tcgen05 | | | | |
#
# Box 4: ridges at 16, 8 and 4 bits = ____, ____, ____; one row at 4.5 bits a weight = ____
#
# ***Steps*, back.** A library · a prototype · a race: DSL or CUDA with PTX? Give each a reason in five words.
#
# Box 3, filled: mma.sync has 32 voices, and A, B and the sums are in registers. wgmma has 128; B is in shared memory, A in shared
# memory or in registers, the sums in registers [^ptx-isa]. tcgen05 has one; B is in shared memory, A in shared memory or in
# tensor memory, the sums in tensor memory [^cutlass-tcgen05].

# %% [markdown]
# ## The minutes
#
# [The map](../05_the_frontier/w5_map.md) has every step. The sixteen numbers by hand (minutes 8 to 20) carry the evening: never
# shorten that step. If you are late after
# the break, give them `by_bits`, and keep the GEMV; if you are very late, drop the discussion of CuTe DSL, which is in the last
# paragraph of the steps above.
#
# /// exercise | Rehearse
# Quantise 0.27, −0.24, 0.01 and 0.12 with s = {{ scale:.6f}}, aloud, as you will at the board. Then: a student's sixteen have no zeros at all under *plain*.
# What went wrong?
# /// answer
# 0.27 / s is 5.76, so 6, back 0.281. −0.24 / s is −5.12, so −6, back −0.281. 0.01 / s is 0.21, so 0. 0.12 / s is 2.56, so 3, back 0.141. The student rounded
# to one digit, or divided by the scale in both columns.
# ///

# %% [markdown]
# ## For at home: a quantiser of their own
#
# What they did with a pencil, as homework in plain Python and without a GPU: from one code to a whole tensor, with both scales.
# [The students' page](../../docs/workshops/w5_blackwell.py#the-next-thousand) has the lab. Do its first stage yourself before you give it out.

# %% [markdown]
# ## You can now teach
#
# - the eight places of E2M1 from their bits, and a block of sixteen with its scale, in chalk;
# - the difference between a shared exponent and a shared number, and the scale above the scales;
# - tensor memory, the single voice and the pair, each with its place in the kitchen;
# - a race of six steps, each from a lecture that your students know, between a template and a floor;
# - two truths for a quantised answer, and three sentences about one speed-up.
#
# **Where this leads.** The finale: [teaching W6](w6_frontier.py). Shorter numbers, measured: [L6](../../docs/lectures/l6_tensor_cores.py#shorter-numbers). The session before this one: [teaching W4](w4_serving.py).
