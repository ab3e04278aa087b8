# ---
# id: w5
# title: "Four bits and a shared scale: NVFP4 and Blackwell"
# nav: "W5 · Blackwell"
# description: Sixteen numbers encoded with a pencil, who rounds how, a light tour of Blackwell, and a four-bit product in twelve stages on the card we have, against the fastest way to read its bytes.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Four bits and a shared scale: NVFP4 and Blackwell
#
# *Eight places on a ruler, and who moves the ruler.*
#
# By the end of this page you can
#
# - encode sixteen numbers in NVFP4 with a pencil, and say for each one where its error comes from;
# - say what a block's scale is for, what the second scale is for, and what a shared exponent is instead;
# - name three questions to ask a library before you trust its four bits;
# - climb a matrix-vector product in four bits from its first draft, with a forecast before each stage, and say after each
#   stage what it waits for now;
# - read a famous speed-up, and name the baseline that it is against.
#
# /// callout | trip
# **Three kinds of statement are on this page, and none is ever mixed with another.** *Measured* means on our card, {{ gpu.name }}:
# it has no four-bit arithmetic, so every kernel here decodes in software. *Compiled, not run* means machine code for a
# Blackwell card that we do not have; it is on [a page of its own](../compiled_not_run.py). *Cited* means that somebody else
# measured it, on another card. A cited number has its source beside it, and is on no axis with ours.
# ///
#
# If you are an hour short, read [sixteen numbers](#sixteen-numbers), [first the floor](#first-the-floor),
# [read a nibble](#read-a-nibble) and [the hackathon's ladder](#the-hackathons-ladder).

# %% [markdown]
# ## Numbers as messages
#
# An fp32 number is a paragraph. An FP8 number is a short sentence. Four bits are an abbreviation in a text message: *3k*. You
# cannot say much in it. But if both of you have agreed that *everything in this message is in thousands*, then *3* is enough.
#
# | format | bits of a number | sign, exponent, mantissa | who shares what |
# |---|---|---|---|
# | fp32 | 32 | 1, 8, 23 | nothing |
# | bf16 | 16 | 1, 8, 7 | nothing |
# | FP8, E4M3 [^micikevicius2022] | 8 | 1, 4, 3 | nothing, or a scale that software keeps |
# | MXFP4 [^rouhani2023] | 4 | 1, 2, 1 | 32 numbers share a power of two, in 8 bits |
# | NVFP4 [^nvidia-nvfp4] | 4 | 1, 2, 1 | 16 numbers share an E4M3 number, in 8 bits; the tensor has one fp32 scale above |
#
# Both four-bit formats have the same number inside, **E2M1**. Exponent 00 is special, as in every float: it has no leading one, so
# it holds 0 and a half.
#
# /// exercise | Eight places | 4 minutes
# Write down the eight numbers that three bits stand for, from 000 to 111. Where is the ruler fine, and where is it coarse? How many
# bits does a number take in NVFP4 and in MXFP4, with its part of the block's scale?
# /// answer
# 0, 0.5, 1, 1.5, 2, 3, 4, 6. Near zero the step is a half, at the end it is 2. NVFP4: 4 + 8 ÷ 16 = 4.5 bits. MXFP4: 4 + 8 ÷ 32 = 4.25.
# ///
#
# /// figure | docs/assets/figures/shared_scale.svg
# alt: "Sixteen numbers of four bits each and one scale that they share. The ruler of eight places is moved to where the numbers are: times a scale of 0.75, 6 becomes 4.5, 3 becomes 2.25, 1½ becomes 1.125 and ½ becomes 0.375."
# ///

# %% [markdown]
# ## Sixteen numbers
#
# Take a pencil. These are sixteen weights:
#
# /// text | sixteen
# ///
#
# /// predict | As they are, without a scale: how many of the sixteen become zero?
# - [zeros.plain < 4] None, or a few
# - [4 <= zeros.plain < 12] About 8
# - [zeros.plain >= 12] Nearly all
# /// reveal
# {{ zeros.plain:.0f}} of 16. The ruler has nothing between 0 and a half, and a quarter is the border.
# ///
#
# So move the ruler. The largest of the block is to come out at 6, the ruler's end: the scale is the largest over 6. It is stored
# in 8 bits, as E4M3, so it is rounded too. From then on only the *rounded* scale counts: a number is divided by what it
# will be multiplied by.
#
# There is one rule for ties, on this page, on the sheet and in the lab: **of two codes that are as near, take the even one**, the
# one whose last bit is 0. So 5 goes to 4, code 110, and 3.5 goes to 4, too.
#
# /// exercise | All sixteen, with a pencil | 12 minutes
# Work out the scale, then for each number: over the scale, the code in four bits, and back again. Add up the sixteen misses.
# Which number misses by most, and why that one?
# /// answer
# 0.27 ÷ 6 is {{ exact:.4f}}, and E4M3 has {{ scale:.6f}} nearest to it.
#
# /// text | by_hand
# ///
#
# Together they miss by {{ miss.nvfp4:.3f}}; without a scale it was {{ miss.plain:.3f}}. The largest miss is that of −0.24, just past
# the midpoint of 4 and 6, where the ruler is coarsest.
# ///
#
# The page checks you. Step through it, then type sixteen numbers of your own, or those of your sheet.
#
# /// explorable | four_bits
# ask: "Sixteen numbers, the largest 0.27. Which scale brings it to 6? Say it before you take the next step."
# alt: >-
#   A ruler with the numbers of E2M1, from 0 to 6. Below it a table of sixteen numbers, the first column filled: 0.03, −0.11,
#   0.27 and so on. A frame marks the third, 0.27, the largest.
# knobs:
#   numbers: {label: sixteen numbers, at: [0.03, -0.11, 0.27, 0.08, -0.02, 0.15, -0.19, 0.05, 0.12, -0.07, 0.01, -0.24, 0.09, 0.18, -0.14, 0.06]}
#   scale: {label: their scale, at: nearest, choices: {nearest: an E4M3 number, second: "E4M3, and a second scale above", power: a power of two, plain: none}}
#   at: {label: step, at: 0}
# says:
#   too_large: "Numbers from −1 to 1 million, please: a minus, digits and a point."
#   largest: "The largest of the sixteen is {largest}. It should come out at 6, the end of the ruler."
#   nearest: "{largest} ÷ 6 is {wanted}. The nearest E4M3 number is {scale}: that is the scale, and the step of the ruler."
#   second: "The whole tensor, here these sixteen, has a scale of its own: {largest} ÷ (6 × 448) = {above}. In units of that the block's scale is {scale}, and one step is both multiplied, {step}."
#   power: "Take the largest power of two that is not above {largest}, and divide it by 4, the power of two in 6. The scale is {scale}."
#   plain: "The numbers stay as they are: the step is {step}."
#   codes: "Each number over the step, {step}, goes to the nearest place; a tie goes to the even code. {zeros} that were not zero became zero, and {ends} are at the end of the ruler."
#   decoded: "Back again: what a code stands for, times {step}."
#   error: "Together the sixteen miss by {off}. The largest miss is that of {which}, by {worst}."
# row: {largest: "{largest}", scale: "{scale}", step: "{step}", "became zero": "{zeros}", "misses together": "{off}", "largest miss": "{worst}"}
# caption: "Type sixteen numbers of your own, such as your sheet's. *Keep this row* puts the result of one scale beside the next."
# ///
#
# /// exercise | Break it | 4 minutes
# In the explorable, find sixteen numbers of which fifteen become zero although there is a scale. Then find sixteen that come back
# without any miss.
# /// answer
# One giant and fifteen small ones: anything below a quarter of the scale becomes zero, that is, below about 1/24 of the largest. And
# multiples on the ruler: 6, 4, 3, 2, 1.5 and so on, times a scale that E4M3 has, such as 0.75.
# ///

# %% tags=["fold"]
import json
from pathlib import Path

import numpy as np
from course_kernels.measure import quantity, record, text
from course_kernels.nvfp4 import blocks, formats

SIXTEEN = np.array(
    [
        *(0.03, -0.11, 0.27, 0.08, -0.02, 0.15, -0.19, 0.05),
        *(0.12, -0.07, 0.01, -0.24, 0.09, 0.18, -0.14, 0.06),
    ],
    dtype=np.float32,
)


def plain(x):
    """Four bits without any scale, and back."""
    return formats.decode(formats.encode(x, formats.E2M1), formats.E2M1)


made = blocks.encode(SIXTEEN, second=1)
back = blocks.decode(made)
scale = formats.values(formats.E4M3)[made.scales[0]]
lines = [
    f"{x:6.2f}   over the scale {x / scale:6.2f}   code {code:04b}   back {y:8.4f}   miss {abs(x - y):.4f}"
    for x, code, y in zip(SIXTEEN, made.codes, back, strict=True)
]
with_zeros = np.concatenate([SIXTEEN, np.zeros(16, np.float32)])
mxfp4 = blocks.decode(blocks.encode(with_zeros, blocks.MXFP4), blocks.MXFP4)[:16]
record(
    sixteen=text(
        "\n".join(
            "".join(f"{x:7.2f}" for x in row) for row in SIXTEEN.reshape(2, 8)
        )
    ),
    exact=quantity(float(SIXTEEN.max() / 6)),
    scale=quantity(float(scale)),
    zeros={"plain": quantity(int((plain(SIXTEEN) == 0).sum()), how="counted")},
    miss={
        name: quantity(float(np.abs(SIXTEEN - decoded).sum()))
        for name, decoded in (
            ("plain", plain(SIXTEEN)),
            ("nvfp4", back),
            ("mxfp4", mxfp4),
        )
    },
    by_hand=text("\n".join(lines)),
)

# %% [markdown]
# ## The next thousand
#
# Sixteen were enough for the pencil. The lab has you write the rest in plain Python, from one code up to a whole tensor with both
# scales. You need no GPU for it: `nox -s lab -- nvfp4`.
#
# /// lab | nvfp4
# ///
#
# ## The second scale
#
# E4M3 goes from 2⁻⁹ to 448. A tensor of weights around a hundred-thousandth needs scales far below that, and so NVFP4 has a **second
# scale**, an fp32 number for the whole tensor: the largest of the tensor over 6 × 448. In units of it, the block with the
# largest number has the largest scale there is, 448, and all others have room below.
#
# Three kinds of numbers, four kinds of scale, twelve errors.
#
# /// predict | Normal random numbers; the same with one giant among them; the same, all tiny. Which two cells are the worst?
# - [min(err.one.giant, err.e4m3.tiny) > max(err.one.normal, err.one.tiny, err.power.normal, err.power.giant, err.power.tiny, err.e4m3.normal, err.e4m3.giant, err.second.normal, err.second.giant, err.second.tiny)] One giant with one scale for all, and tiny numbers with E4M3 alone
# - [min(err.one.giant, err.e4m3.tiny) <= max(err.one.normal, err.one.tiny, err.power.normal, err.power.giant, err.power.tiny, err.e4m3.normal, err.e4m3.giant, err.second.normal, err.second.giant, err.second.tiny)] Another two
# /// reveal
# /// table
# columns: [scale, well-behaved, one giant, all tiny]
# rows:
#   - [one for the whole tensor, "{{ err.one.normal:.1%}}", "{{ err.one.giant:.1%}}", "{{ err.one.tiny:.1%}}"]
#   - ["a power of two for 32, MXFP4", "{{ err.power.normal:.1%}}", "{{ err.power.giant:.1%}}", "{{ err.power.tiny:.1%}}"]
#   - [E4M3 for 16 alone, "{{ err.e4m3.normal:.1%}}", "{{ err.e4m3.giant:.1%}}", "{{ err.e4m3.tiny:.1%}}"]
#   - ["E4M3 for 16 and a second scale, NVFP4", "{{ err.second.normal:.1%}}", "{{ err.second.giant:.1%}}", "{{ err.second.tiny:.1%}}"]
# caption: "Root mean square of the error over that of the numbers, {{ how_many:,.0f}} numbers, without the giant's own error."
# ///
# ///
#
# Two things are usually told wrongly. **It is not a shared exponent**: that is MXFP4, whose scales are powers of two. An NVFP4 scale has a
# mantissa, so the ruler moves in finer steps. And **the error of a tenth is that of single numbers**. Whether a model minds is
# a question for the model, and only an experiment with its loss answers it.

# %% tags=["fold"]
rng = np.random.default_rng(0)
normal = rng.standard_normal(16 * 1024).astype(np.float32)
giant = normal.copy()
giant[7] = 100
KINDS = {"normal": normal, "giant": giant, "tiny": normal * np.float32(1e-5)}


def one_scale(x):
    """One scale for all of x, and back."""
    step = np.abs(x).max() / np.float32(6)
    return plain(x / step) * step


def in_blocks(form, second=None):
    """Return what goes into blocks of a format and back."""
    return lambda x: blocks.decode(blocks.encode(x, form, second=second), form)


WAYS = {
    "one": one_scale,
    "power": in_blocks(blocks.MXFP4),
    "e4m3": in_blocks(blocks.NVFP4, second=1),
    "second": in_blocks(blocks.NVFP4),
}


def error(x, decoded):
    """Relative error, rms, but for the eighth number."""
    off, size = np.delete(decoded - x, 7), np.delete(x, 7)
    return float(
        np.sqrt(
            np.square(off, dtype=float).mean() / np.square(size, dtype=float).mean()
        )
    )


record(
    how_many=quantity(len(normal), how="counted"),
    err={
        name: {kind: quantity(error(x, way(x))) for kind, x in KINDS.items()}
        for name, way in WAYS.items()
    },
)

# %% [markdown]
# ## Who rounds how
#
# A format says which numbers there are. It does not say what becomes of all the others. We asked the libraries that you will meet
# the same questions, by running them.
#
# /// predict | Of {{ rounding.asked:.0f}} questions that two or more libraries answered, how many got one answer from all of them?
# - [rounding.agreed >= 0.8 * rounding.asked] Four in five, or more
# - [0.4 * rounding.asked <= rounding.agreed < 0.8 * rounding.asked] About half
# - [rounding.agreed < 0.4 * rounding.asked] Fewer
# /// reveal
# {{ rounding.agreed:.0f}} of {{ rounding.asked:.0f}}. These touch you sooner or later:
#
# /// text | rounding.short
# ///
# ///
#
# Three questions before you trust four bits out of a file or a cast:
#
# 1. *What happens above the largest number?* Some saturate, some make NaN. One block that overflows is then either a little
#    wrong or gone.
# 2. *Which nibble is first?* Nearly everybody has element 0 in the low four bits and element 1 in the high ones. GGUF puts the
#    element half a block further on beside it.
# 3. *Is the second scale multiplied or divided by?* Two exporters pack the same weights into the same bytes: ModelOpt's
#    `weight_scale_2` is multiplied, and the `weight_global_scale` of compressed-tensors is its reciprocal, so there you divide.
#
# And one for your own tests: Triton's interpreter rounds fp8 differently from the card. Where a lab casts to fp8, the grader's
# truth is the card's.
#
# #### Every question, every library {.beyond}
#
# The versions, and what each answered. `ours` is `course_kernels/nvfp4/formats.py`.
#
# /// text | rounding.versions
# ///
#
# /// text | rounding.whole
# ///

# %% tags=["fold"]
KEPT = json.loads(
    Path(blocks.__file__).with_name("who_rounds_how.json").read_text()
)
SHORT = (
    *("480 to E4M3", "nan to E4M3", "0.7 to E8M0", "0 to E8M0", "-2 to E8M0"),
    *("3.5 to E2M1", "nan to E2M1", "which elements byte 0 holds"),
)


def by_answer(question):
    """A question, and who gave which answer."""
    found = {}
    for who, answer in KEPT["answers"][question].items():
        found.setdefault(answer, []).append(who)
    return "\n".join(
        [
            question,
            *(
                f"    {answer}  ←  {' · '.join(who)}"
                for answer, who in found.items()
            ),
        ]
    )


# One answer for each library: what it does unless it is told otherwise.
TOLD = ("ours", "CUDA headers, otherwise", "CUDA headers, to nearest")


def default_answers(answers):
    """What libraries answer, without those that refuse."""
    return [
        answer
        for who, answer in answers.items()
        if who not in TOLD and not answer.startswith("refused")
    ]


asked = [
    set(found)
    for answers in KEPT["answers"].values()
    if len(found := default_answers(answers)) > 1
]
record(
    rounding={
        "asked": quantity(len(asked), how="counted"),
        "agreed": quantity(sum(len(found) == 1 for found in asked), how="counted"),
        "short": text("\n".join(map(by_answer, SHORT))),
        "whole": text("\n".join(map(by_answer, KEPT["answers"]))),
        "versions": text(
            "\n".join(
                f"{who}: {version}" for who, version in KEPT["versions"].items()
            )
        ),
    }
)

# %% [markdown]
# ## A light tour of Blackwell
#
# Three things are new on a data-centre Blackwell, capability 10.0. Each has one picture.
#
# - **A place for sums.** On Hopper the sums of a tile are in registers, and the registers are full. Blackwell's tensor core has a
#   memory of its own for them, *tensor memory*: 128 lanes of 512 columns of 32 bits, on every multiprocessor [^tilus-tmem]. A may
#   be there, too; B stays in shared memory [^cutlass-tcgen05].
# - **One voice.** On Ampere a warp of 32 threads asks for a product together, on Hopper four warps. Here a single thread asks
#   [^cutlass-tcgen05]. Everybody else has their hands free.
# - **Pairs.** Two neighbouring blocks can carry out one order together [^cutlass-tcgen05], and each keeps only a part of what they share.
#
# And the tensor core takes four-bit numbers with their scales as they are. You can read all of this in machine code, instruction by
# instruction, on the page [Compiled, not run](../compiled_not_run.py#four-bits-scaled-in-hardware). An RTX 50, capability 12.0, is
# called Blackwell as well and multiplies four bits, but has neither tensor memory nor `tcgen05`. Look at the number, not at the name.
#
# /// exercise | How many tiles? | 4 minutes
# How large is tensor memory, in KiB? How large are the fp32 sums of a tile of 128 × 256? What is the rest good for?
# /// answer
# 128 · 512 · 4 bytes are 256 KiB. The sums are 128 · 256 · 4 bytes, 128 KiB. So two tiles fit: the tensor core adds to one
# while the other is carried out.
# ///
#
# ## Where is the ridge?
#
# NVIDIA's sheet for a B200 says 2250, 4500 and 9000 TFLOP/s, dense, at 16, 8 and 4 bits, and 8 TB/s [^nvidia-b200].
#
# /// exercise | Three ridges and a cross | 5 minutes
# Work out three ridges, in operations for each byte. Then the intensity of a matrix times *one* vector in NVFP4: two operations for
# each weight of 4.5 bits. Which side is it on? Does this job need the four-bit tensor core?
# /// answer
# {{ ridge.bits16:.0f}}, {{ ridge.bits8:.0f}} and {{ ridge.bits4:.0f}}. One vector has {{ one_row:.1f}} operations for a byte, far to the left of all three. It needs
# no tensor core at all. It needs bytes, and hands that unpack them as fast as they come. And so our card can run this race: it has the hands.
# ///

# %% tags=["fold"]
from course_kernels.measure.machine import machine_for

b200 = machine_for("NVIDIA B200")
PEAKS = {"bits16": b200.peak_tflops["bf16"], "bits8": b200.peak_tflops["fp8"]}
PEAKS["bits4"] = 2 * PEAKS["bits8"]
record(
    ridge={
        bits: quantity(1e3 * peak / b200.bandwidth_gb_per_s, "FLOP/B")
        for bits, peak in PEAKS.items()
    },
    one_row=quantity(2 / (4.5 / 8), "FLOP/B"),
)

# %% [markdown]
# ## First the floor
#
# In the autumn of 2025 GPU MODE and NVIDIA held a hackathon on four-bit kernels. Its first problem was a batched matrix times
# a vector, both in NVFP4, at three shapes [^gpumode-nvfp4]. That is our problem, too, in the same shapes, without the second scale, which
# only multiplies the result. Before any kernel, take the pencil: what is the least that it could take?
#
# /// exercise | The bytes of three shapes | 5 minutes
# M, K and L (rows, numbers in a row, and how many such products) are 7168, 16384, 1; then 4096, 7168, 8; then 7168, 2048, 4. How
# many megabytes has the matrix, with its scales, in each? What part of them are scales?
# /// answer
# M · K · L · (1/2 + 1/16) bytes: {{ mb.k16384:.1f}}, {{ mb.k7168:.1f}} and {{ mb.k2048:.1f}} MB. A ninth of them are scales.
# ///
#
# By the sheet's bandwidth of this card the floor of the first shape is {{ ladder.k16384.k01.floor_us:.1f}} µs, the floor of the second
# {{ ladder.k7168.k01.floor_us:.1f}} µs, and the floor of the third {{ ladder.k2048.k01.floor_us:.1f}} µs. Nobody gets below it, and below *per cent of the floor* always means: of the bandwidth by the
# data sheet, for a kernel's own bytes. The bytes of the last shape fit into this card's L2 cache, and many of the first. So the cache is
# emptied before every sample, or the clock would time the cache.
#
# There is a second budget, and it decides this race. In the time in which memory brings one byte, a card can issue only so
# many instructions. Here it is {{ budget:.1f}} instructions of a thread for each byte, at the highest clock. A kernel that spends more
# on a byte is bound by its hands, however it loads.
#
# ## The climb
#
# Twelve kernels, one idea each, and none of them is slowed down on purpose: take its idea away, and you have the one before.
# Five are for the room. For each, write down your forecast before you open it: a factor, and what the kernel will wait for then.
#
# ### Side by side
#
# The first draft is the formula: one thread takes one row, and decodes number after number. Neighbouring threads are a
# whole row apart in memory. In k02 a warp takes a row, and its lanes take neighbouring bytes.
#
# /// predict | k01 to k02, at K = 16384: how many times the speed?
# - [ladder.k16384.k01.us < 3 * ladder.k16384.k02.us] Less than three times
# - [3 * ladder.k16384.k02.us <= ladder.k16384.k01.us < 10 * ladder.k16384.k02.us] Three to ten times
# - [ladder.k16384.k01.us >= 10 * ladder.k16384.k02.us] Ten times or more
# /// reveal
# k02 has {{ ladder.k16384.k01.us / ladder.k16384.k02.us:.1f}} times the speed: {{ ladder.k16384.k02.us:,.0f}} µs, where k01 takes {{ ladder.k16384.k01.us:,.0f}} µs. Both
# spend about as many instructions on a byte, {{ per_byte.k01:.0f}} and {{ per_byte.k02:.0f}}.
#
# /// diff | src/course_kernels/gemv_fp4/k01_thread_a_row.cu | src/course_kernels/gemv_fp4/k02_warp_a_row.cu
# ///
# ///
#
# You did this in [the lecture on memory](../lectures/l3_memory.py#ask-for-neighbours), with another problem and the same cure.
#
# ### Sixteen bytes a load
#
# k02 asks for each byte of a, and with each for a scale that eight bytes share. k03 asks for 16 bytes at once, and for their two scales.
#
# /// predict | k02 to k03: what happens to the instructions for each byte, and to the time?
# - [ladder.k16384.k03.us < 0.75 * ladder.k16384.k02.us] Fewer instructions, and clearly less time
# - [0.75 * ladder.k16384.k02.us <= ladder.k16384.k03.us] Fewer instructions, but hardly less time
# /// reveal
# k03 takes {{ ladder.k16384.k03.us:,.0f}} µs, and k02 took {{ ladder.k16384.k02.us:,.0f}} µs. The instructions for each byte went from
# {{ per_byte.k02:.0f}} to {{ per_byte.k03:.0f}}, and the budget is {{ budget:.1f}}: hands decide here, not memory.
#
# /// diff | src/course_kernels/gemv_fp4/k02_warp_a_row.cu | src/course_kernels/gemv_fp4/k03_vectors.cu
# ///
# ///
#
# ### One scale for sixteen products
#
# k04 adds up the sixteen products of a block first, and multiplies the sum by both scales. That is the distributive law, and it is
# exact: products of E2M1 numbers are multiples of a quarter, and sixteen of them never leave what a float holds. In the room you
# type this stage yourself, in NumPy, for 8 rows of 64: decode a block, multiply, add up, and multiply by the scale once.
#
# /// diff | src/course_kernels/gemv_fp4/k03_vectors.cu | src/course_kernels/gemv_fp4/k04_block_sums.cu
# ///
#
# It takes {{ ladder.k16384.k04.us:,.0f}} µs. Fifteen of sixteen multiplications by scales are gone, and yet {{ per_byte.k04:.0f}} of
# {{ per_byte.k03:.0f}} instructions for each byte remain. Decoding is where they are.
#
# /// exercise | Two truths | 4 minutes
# A result in four bits can be compared with the product of the *decoded* matrix, or with that of the weights before rounding. Which
# of them is the truth for a kernel, and what is the other good for?
# /// answer
# The decoded one: the kernel gets codes and scales, and nothing else. Compared with the weights before rounding it is off by what the format
# costs, however right the kernel is. If you mix up the two, you hunt a bug that is not there.
# ///
#
# ### Read a nibble
#
# There are two classic ways to decode a nibble without working out its definition. k05 looks it up in a table of sixteen floats in
# shared memory. k06 shifts sign, exponent and mantissa to the places where a float has them, and multiplies once: {{ per_byte.k05:.0f}} and
# {{ per_byte.k06:.0f}} instructions for each byte.
#
# /// predict | The table or the bits: which one is faster?
# - [ladder.k16384.k05.us < 0.95 * ladder.k16384.k06.us] The table: it has fewer instructions
# - [ladder.k16384.k06.us < 0.95 * ladder.k16384.k05.us] The bits: no memory is asked
# - [ladder.k16384.k05.us >= 0.95 * ladder.k16384.k06.us and ladder.k16384.k06.us >= 0.95 * ladder.k16384.k05.us] They are within 5 %
# /// reveal
# The table takes {{ ladder.k16384.k05.us:,.0f}} µs, the bits {{ ladder.k16384.k06.us:,.0f}} µs. The sixteen floats are in sixteen
# banks, so [no lane queues](../lectures/l3_memory.py#thirty-two-windows). But shared memory hands out 32 words in a cycle [^nvidia-shared-load], one warp's
# look-up, while a multiprocessor can begin four instructions. So weigh a look-up as four before you compare counts.
#
# /// diff | src/course_kernels/gemv_fp4/k05_table.cu | src/course_kernels/gemv_fp4/k06_bits.cu
# ///
# ///
#
# ### Two in a register
#
# Numbers i and i + 4 of a word are 16 bits apart. One shift and one mask put the bits of *both* where a half has them, and one
# instruction multiplies and adds both. This is k07.
#
# /// predict | k06 to k07: the instructions for each byte go from {{ per_byte.k06:.0f}} to {{ per_byte.k07:.1f}}. And the time?
# - [ladder.k16384.k07.us < 0.65 * ladder.k16384.k06.us] It goes down about as much
# - [0.65 * ladder.k16384.k06.us <= ladder.k16384.k07.us] It goes down less
# /// reveal
# k07 takes {{ ladder.k16384.k07.us:,.0f}} µs, and k06 took {{ ladder.k16384.k06.us:,.0f}} µs. That is {{ ladder.k16384.k07.of_peak:.0%}} of the floor's speed.
#
# /// diff | src/course_kernels/gemv_fp4/k06_bits.cu | src/course_kernels/gemv_fp4/k07_pairs.cu
# ///
# ///
#
# ### More under way
#
# k08 decodes b once for a whole block and keeps it in shared memory: that is {{ per_byte.k08:.1f}} instructions for each byte. k09 changes
# little in that number, {{ per_byte.k09:.1f}}. A lane of k08 waits for a vector before it asks for the next. A lane of k09 has
# eight vectors under way.
#
# /// exercise | Two chains | 4 minutes
# A load takes 6 ticks, and the work on it 3. Four loads, one chain: each is asked for when the one before is worked on. How many ticks
# until all is done? And with two chains, so that one is worked on while the other is under way?
# /// answer
# {{ ticks.chains1:.0f}} and {{ ticks.chains2:.0f}}. More chains want more registers, and a thread has only so many.
# ///
#
# /// predict | k08 to k09: what does it bring?
# - [ladder.k16384.k09.us < 0.8 * ladder.k16384.k08.us] A fifth of the time or more: it waited for memory
# - [0.8 * ladder.k16384.k08.us <= ladder.k16384.k09.us < 0.95 * ladder.k16384.k08.us] Some of the time
# - [ladder.k16384.k09.us >= 0.95 * ladder.k16384.k08.us] Next to nothing: other warps had filled the wait already
# /// reveal
# k09 takes {{ ladder.k16384.k09.us:,.1f}} µs, and k08 took {{ ladder.k16384.k08.us:,.1f}} µs. That is {{ ladder.k16384.k09.of_peak:.0%}} of the floor's speed.
#
# /// diff | src/course_kernels/gemv_fp4/k08_decoded_once.cu | src/course_kernels/gemv_fp4/k09_in_flight.cu
# ///
# ///
#
# ### Four in a register
#
# Can decoding cost still less? Twice an E2M1 number is a whole number from −12 to 12, so it fits into a byte. One `PRMT` looks up four
# of them in two registers, and one `IDP` multiplies and adds four. This is k10, with {{ per_byte.k10:.1f}} instructions for each byte.
#
# /// diff | src/course_kernels/gemv_fp4/k09_in_flight.cu | src/course_kernels/gemv_fp4/k10_bytes.cu
# ///
#
# /// source | src/course_kernels/gemv_fp4/bytes.cuh
# ///
#
# ### All twelve
#
# /// table
# columns: [kernel, "instructions for each byte", "K = 16384, µs", "% of the floor's speed", "K = 7168, µs", "%", "K = 2048, µs", "%"]
# rows:
#   - ["k01, one thread a row", "{{ per_byte.k01:.1f}}", "{{ ladder.k16384.k01.us:,.1f}}", "{{ ladder.k16384.k01.of_peak:.0%}}", "{{ ladder.k7168.k01.us:,.1f}}", "{{ ladder.k7168.k01.of_peak:.0%}}", "{{ ladder.k2048.k01.us:,.1f}}", "{{ ladder.k2048.k01.of_peak:.0%}}"]
#   - ["k02, one warp a row", "{{ per_byte.k02:.1f}}", "{{ ladder.k16384.k02.us:,.1f}}", "{{ ladder.k16384.k02.of_peak:.0%}}", "{{ ladder.k7168.k02.us:,.1f}}", "{{ ladder.k7168.k02.of_peak:.0%}}", "{{ ladder.k2048.k02.us:,.1f}}", "{{ ladder.k2048.k02.of_peak:.0%}}"]
#   - ["k03, 16 bytes a load", "{{ per_byte.k03:.1f}}", "{{ ladder.k16384.k03.us:,.1f}}", "{{ ladder.k16384.k03.of_peak:.0%}}", "{{ ladder.k7168.k03.us:,.1f}}", "{{ ladder.k7168.k03.of_peak:.0%}}", "{{ ladder.k2048.k03.us:,.1f}}", "{{ ladder.k2048.k03.of_peak:.0%}}"]
#   - ["k04, scales once a block", "{{ per_byte.k04:.1f}}", "{{ ladder.k16384.k04.us:,.1f}}", "{{ ladder.k16384.k04.of_peak:.0%}}", "{{ ladder.k7168.k04.us:,.1f}}", "{{ ladder.k7168.k04.of_peak:.0%}}", "{{ ladder.k2048.k04.us:,.1f}}", "{{ ladder.k2048.k04.of_peak:.0%}}"]
#   - ["k05, a table", "{{ per_byte.k05:.1f}}", "{{ ladder.k16384.k05.us:,.1f}}", "{{ ladder.k16384.k05.of_peak:.0%}}", "{{ ladder.k7168.k05.us:,.1f}}", "{{ ladder.k7168.k05.of_peak:.0%}}", "{{ ladder.k2048.k05.us:,.1f}}", "{{ ladder.k2048.k05.of_peak:.0%}}"]
#   - ["k06, bits into place", "{{ per_byte.k06:.1f}}", "{{ ladder.k16384.k06.us:,.1f}}", "{{ ladder.k16384.k06.of_peak:.0%}}", "{{ ladder.k7168.k06.us:,.1f}}", "{{ ladder.k7168.k06.of_peak:.0%}}", "{{ ladder.k2048.k06.us:,.1f}}", "{{ ladder.k2048.k06.of_peak:.0%}}"]
#   - ["k07, two in a register", "{{ per_byte.k07:.1f}}", "{{ ladder.k16384.k07.us:,.1f}}", "{{ ladder.k16384.k07.of_peak:.0%}}", "{{ ladder.k7168.k07.us:,.1f}}", "{{ ladder.k7168.k07.of_peak:.0%}}", "{{ ladder.k2048.k07.us:,.1f}}", "{{ ladder.k2048.k07.of_peak:.0%}}"]
#   - ["k08, b decoded once", "{{ per_byte.k08:.1f}}", "{{ ladder.k16384.k08.us:,.1f}}", "{{ ladder.k16384.k08.of_peak:.0%}}", "{{ ladder.k7168.k08.us:,.1f}}", "{{ ladder.k7168.k08.of_peak:.0%}}", "{{ ladder.k2048.k08.us:,.1f}}", "{{ ladder.k2048.k08.of_peak:.0%}}"]
#   - ["k09, eight loads under way", "{{ per_byte.k09:.1f}}", "{{ ladder.k16384.k09.us:,.1f}}", "{{ ladder.k16384.k09.of_peak:.0%}}", "{{ ladder.k7168.k09.us:,.1f}}", "{{ ladder.k7168.k09.of_peak:.0%}}", "{{ ladder.k2048.k09.us:,.1f}}", "{{ ladder.k2048.k09.of_peak:.0%}}"]
#   - ["k10, four in a register", "{{ per_byte.k10:.1f}}", "{{ ladder.k16384.k10.us:,.1f}}", "{{ ladder.k16384.k10.of_peak:.0%}}", "{{ ladder.k7168.k10.us:,.1f}}", "{{ ladder.k7168.k10.of_peak:.0%}}", "{{ ladder.k2048.k10.us:,.1f}}", "{{ ladder.k2048.k10.of_peak:.0%}}"]
#   - ["k11, b in registers, rows shared out", "{{ per_byte.k11:.1f}}", "{{ ladder.k16384.k11.us:,.1f}}", "{{ ladder.k16384.k11.of_peak:.0%}}", "{{ ladder.k7168.k11.us:,.1f}}", "{{ ladder.k7168.k11.of_peak:.0%}}", "{{ ladder.k2048.k11.us:,.1f}}", "{{ ladder.k2048.k11.of_peak:.0%}}"]
#   - ["k12, a ring in shared memory", "{{ per_byte.k12:.1f}}", "{{ ladder.k16384.k12.us:,.1f}}", "{{ ladder.k16384.k12.of_peak:.0%}}", "{{ ladder.k7168.k12.us:,.1f}}", "{{ ladder.k7168.k12.of_peak:.0%}}", "{{ ladder.k2048.k12.us:,.1f}}", "{{ ladder.k2048.k12.of_peak:.0%}}"]
# caption: "Cold L2, the twelve in the same rounds at each shape; instructions of the loop that does the work, counted in the machine code for sm_90a. For k11 and k12 the count is that for K = 16384."
# ///
#
# /// chart | bars
# title: Twelve stages at K = 16384
# x_label: "% of the floor's speed"
# bars:
#   - {name: 100 * ladder.k16384.k01.of_peak, label: "k01, one thread a row"}
#   - {name: 100 * ladder.k16384.k02.of_peak, label: "k02, one warp a row"}
#   - {name: 100 * ladder.k16384.k03.of_peak, label: "k03, 16 bytes a load"}
#   - {name: 100 * ladder.k16384.k04.of_peak, label: "k04, scales once a block"}
#   - {name: 100 * ladder.k16384.k05.of_peak, label: "k05, a table"}
#   - {name: 100 * ladder.k16384.k06.of_peak, label: "k06, bits into place"}
#   - {name: 100 * ladder.k16384.k07.of_peak, label: "k07, two in a register"}
#   - {name: 100 * ladder.k16384.k08.of_peak, label: "k08, b decoded once"}
#   - {name: 100 * ladder.k16384.k09.of_peak, label: "k09, eight loads under way"}
#   - {name: 100 * ladder.k16384.k10.of_peak, label: "k10, four in a register"}
#   - {name: 100 * ladder.k16384.k11.of_peak, label: "k11, b in registers, rows shared out"}
#   - {name: 100 * ladder.k16384.k12.of_peak, label: "k12, a ring in shared memory"}
# alt: "A bar for each of the twelve kernels, in per cent of the floor's speed: the first has {{ 100 * ladder.k16384.k01.of_peak:.0f}}, k07 {{ 100 * ladder.k16384.k07.of_peak:.0f}}, the last {{ 100 * ladder.k16384.k12.of_peak:.0f}}."
# ///
#
# From the first to the last it is {{ ladder.k16384.k01.us / ladder.k16384.k12.us:,.0f}} times the speed. We tell this number and do not aim at it:
# it measures the first draft as much as the last kernel.
#
# #### Evenings {.beyond}
#
# Three more changes, one idea each. **k08**: b is decoded once for a block of threads and not once for a row.
#
# /// diff | src/course_kernels/gemv_fp4/k07_pairs.cu | src/course_kernels/gemv_fp4/k08_decoded_once.cu
# ///
#
# **k11**: K is split over the lanes of several warps, so a lane keeps its part of b in registers while rows pass by, and each
# multiprocessor has the same work.
#
# /// source | src/course_kernels/gemv_fp4/k11_resident.cu
# ///
#
# **k12**: what is under way waits in shared memory, brought there by asynchronous copies, and no register waits.
#
# /// source | src/course_kernels/gemv_fp4/k12_ring.cu
# ///

# %% tags=["fold"]
from importlib import import_module

import torch
from course_kernels.gemv_fp4 import per_byte
from course_kernels.gemv_fp4.problem import HACKATHON, LARGE, PROBLEM
from course_kernels.measure import compare

NAMES = (
    *("k01_thread_a_row", "k02_warp_a_row", "k03_vectors", "k04_block_sums"),
    *("k05_table", "k06_bits", "k07_pairs", "k08_decoded_once"),
    *("k09_in_flight", "k10_bytes", "k11_resident", "k12_ring"),
)
LADDER = {
    name[:3]: import_module(f"course_kernels.gemv_fp4.{name}") for name in NAMES
}
WAIT, WORK, LOADS = 6, 3, 4


def ticks(chains):
    """Ticks for all loads with so many under way at once and one pair of hands."""
    ready, hands = [WAIT] * chains, 0
    for load in range(LOADS):
        hands = max(hands, ready[load % chains]) + WORK
        ready[load % chains] = hands + WAIT
    return hands


card = machine_for(torch.cuda.get_device_name())
sms = torch.cuda.get_device_properties(0).multi_processor_count
issued = sms * card.multiprocessors.fp32_lanes * card.multiprocessors.max_mhz
record(
    ladder={f"k{w.K}": compare(LADDER, w, seconds=0.1) for w in HACKATHON},
    per_byte={
        name[:3]: quantity(per_byte.loop_of(name).per_byte, how="counted")
        for name in NAMES
    },
    budget=quantity(issued / card.bandwidth_gb_per_s / 1e3),
    mb={
        f"k{w.K}": quantity(w.L * w.M * w.K * 9 / 16 / 1e6, "MB") for w in HACKATHON
    },
    ticks={f"chains{n}": quantity(ticks(n)) for n in (1, 2)},
)

# %% [markdown]
# ### Lab {.beyond}
#
# In this lab you climb the first stages yourself. You begin with one byte on paper, and you end with a decoder that only shifts bits.
# The last task is a layer from a checkpoint. NumPy and Triton's interpreter need no GPU: `nox -s lab -- fp4_gemv`.
#
# /// lab | fp4_gemv
# ///
#
# ## Against a bare read
#
# The data sheet's bandwidth is a promise; no kernel reads at quite that rate, and a short one has to start and end. So here is a
# fairer rival: a kernel that reads the very same bytes, adds them up as whole words, and does nothing else. It is tried with
# {{ reads.ways:.0f}} numbers of loads and blocks, the quickest is taken, and then it runs in the same rounds as k11 and k12, on the same inputs.
#
# /// source | src/course_kernels/gemv_fp4/bare_read.cu
# ///
#
# /// predict | How much longer than the bare read does the better of our two best kernels take, at K = 16384?
# - [over_bare_read.k16384 < 1.1] Less than a tenth longer
# - [1.1 <= over_bare_read.k16384 < 1.3] A tenth to three tenths
# - [over_bare_read.k16384 >= 1.3] More than that
# /// reveal
# /// table
# columns: [shape, "bare read, µs", "k11, µs", "k12, µs", "the better over the bare read"]
# rows:
#   - ["K = 16384, L = 1", "{{ beside.k16384.read:.1f}}", "{{ beside.k16384.k11:.1f}}", "{{ beside.k16384.k12:.1f}}", "{{ over_bare_read.k16384:.2f}}"]
#   - ["K = 7168, L = 8", "{{ beside.k7168.read:.1f}}", "{{ beside.k7168.k11:.1f}}", "{{ beside.k7168.k12:.1f}}", "{{ over_bare_read.k7168:.2f}}"]
#   - ["K = 2048, L = 4", "{{ beside.k2048.read:.1f}}", "{{ beside.k2048.k11:.1f}}", "{{ beside.k2048.k12:.1f}}", "{{ over_bare_read.k2048:.2f}}"]
# caption: "Cold L2, medians of the same rounds."
# ///
#
# /// claim | over_bare_read.k16384 <= 1.1 and over_bare_read.k7168 <= 1.1 and over_bare_read.k2048 <= 1.1
# At all three shapes the better kernel takes at most 1.1 times as long as the bare read. Decoding four bits in software costs next to
# nothing once it fits into the time that memory needs anyway.
# /// otherwise
# Not at all three shapes does the decoding disappear behind the bare read: {{ over_bare_read.k16384:.2f}}, {{ over_bare_read.k7168:.2f}} and
# {{ over_bare_read.k2048:.2f}} times its time. What is left is the start, the end, and hands that are not always free when a byte comes.
# ///
# ///
#
# /// define | over_bare_read.k16384 = min(beside.k16384.k11, beside.k16384.k12) / beside.k16384.read
# unit: ×
# what: the better of k11 and k12 over the quickest bare read of the same bytes, K = 16384, cold L2
# ///
#
# /// define | over_bare_read.k7168 = min(beside.k7168.k11, beside.k7168.k12) / beside.k7168.read
# unit: ×
# what: the better of k11 and k12 over the quickest bare read of the same bytes, K = 7168, cold L2
# ///
#
# /// define | over_bare_read.k2048 = min(beside.k2048.k11, beside.k2048.k12) / beside.k2048.read
# unit: ×
# what: the better of k11 and k12 over the quickest bare read of the same bytes, K = 2048, cold L2
# ///
#
# And where starting and ending hardly count? With the batch raised to 8 the first shape has {{ large.k12.hbm_mb:,.0f}} MB. There k12 takes
# {{ large.k12.us:,.0f}} µs, {{ large.k12.us / large.k12.floor_us:.2f}} times the data sheet's floor, and k11 {{ large.k11.us / large.k11.floor_us:.2f}} times.

# %% tags=["fold"]
import secrets
from functools import partial

from course_kernels.gemv_fp4 import bare_read
from course_kernels.measure.clock import Clock
from course_kernels.measure.summary import samples_of
from course_kernels.problem import worst_error

BEST = {"k11": LADDER["k11"], "k12": LADDER["k12"]}


def quickest_read(inputs):
    """The bare read in its quickest form; each form's sum is checked first."""
    truth = bare_read.words_of(*inputs)
    ways = {
        f"{vectors} {resident}": partial(
            bare_read.bare_read, *inputs, vectors=vectors, resident=resident
        )
        for vectors, resident in bare_read.WAYS
    }
    for way, read in ways.items():
        if int(read().sum(dtype=torch.int64)) % 2**32 != truth:
            raise RuntimeError(f"bare read, {way}: not every word was read")
    found = Clock().time(ways, 0.02).samples_us
    return ways[min(found, key=lambda way: np.median(found[way]))]


def beside(w):
    """The bare read and our best kernels, in the same rounds on the same inputs."""
    inputs = PROBLEM.make_inputs(
        w, torch.Generator("cuda").manual_seed(w.K), "cuda"
    )
    calls = {
        name: partial(kernel.gemv_fp4, *inputs) for name, kernel in BEST.items()
    }
    truth = PROBLEM.reference(*inputs)
    for name, call in calls.items():
        if worst_error(call(), truth) > PROBLEM.max_error(w):
            raise RuntimeError(f"{name} on {w.label}: wrong")
    del truth
    calls["read"] = quickest_read(inputs)
    group = f"g{secrets.token_hex(4)}"
    return {
        name: samples_of(list(us), "µs", "device", group)
        for name, us in Clock().time(calls, 0.2).samples_us.items()
    }


record(
    reads={"ways": quantity(len(bare_read.WAYS), how="counted")},
    beside={f"k{w.K}": beside(w) for w in HACKATHON},
    large=compare(BEST, LARGE, seconds=0.2),
)

# %% [markdown]
# ## The hackathon's ladder
#
# **Cited, not measured by us, and on a B200.** Yue Zhang kept a diary of the same problem [^zhang2025]. His times are geometric means over
# the three shapes. They are in no table or chart with ours: another card, another clock, other shapes of a mean.
#
# - The first draft, a thread to a row, bit by bit: 2000 µs [^zhang2025].
# - Neighbours fetch neighbours, a team takes a row: 443 µs [^zhang2025].
# - Wide loads, no shared memory, and the card's own conversions: 39 µs [^zhang2025].
# - Decoding in PTX, then tuned: about 27, then about 26 µs [^zhang2025].
# - Two tiles in each turn: about 22.9 µs [^zhang2025].
# - One fused piece of PTX: 22.3 µs [^zhang2025].
#
# The organisers' template in CuTe-DSL ran in about 100 µs [^zhang2025]. Their *speed of light*, what a kernel could reach at best, is 8.63 µs as a
# geometric mean, and the last entry has 22.4 µs, which is 39 % of it [^gpumode-nvfp4].
# It is the larger of two times, one for memory and one for the multiply-adds, at a clock of 1.5 GHz [^gpumode-nvfp4]. Ask the same of every
# such number: who measured it, on which card, at which clock, and of which floor is it a part?
#
# /// exercise | Three true sentences | 6 minutes
# Divide the first draft by the last step, the template by the last step, and the *speed of light* by the last entry. Which of these three
# quotients answers *what per cent of peak are you at*? And which would you work out for our climb, from the table above?
# /// answer
# *Ninety-fold*, against his own first draft [^zhang2025]. *Four and a half times the template's speed* [^zhang2025]. *39 % of the
# organisers' speed of light*, with 22.4 µs over a floor of 8.63 [^gpumode-nvfp4]. Only the last one answers the question. For our climb: of the
# floor {{ ladder.k16384.k12.of_peak:.0%}} at the first shape, and {{ over_bare_read.k16384:.2f}} times the time of a bare read, are the two sentences that need no excuse.
# ///
#
# Set the two climbs beside each other *by idea*, not by time. Both begin with neighbours. His largest step replaced decoding by
# the card's own conversion instruction. Ours has no such instruction, so its place is taken by two numbers in a register, and then four.
# In both, more loads under way came late and brought less than the steps before.
#
# ### CuTe-DSL or CUDA?
#
# The same author took both roads. In the Python DSL he went from about 100 to about 33 µs, in CUDA with PTX to 22.3 µs [^zhang2025]. A second
# diary of the same problem is by Amandeep Singh [^singh2025].
#
# | you want | take | since |
# |---|---|---|
# | a prototype that runs tonight | CuTe-DSL | layouts, copies and products are calls; a change is a line, and compiles in seconds |
# | a library that must last | CUDA C++, or CUTLASS | it compiles ahead, has no Python in the way, and its machine code stays the same |
# | the last third of a race | CUDA C++ with PTX | you choose the very instruction of the decode, and where its result is |
# | to find out whether it is worth it | the floor first, then either | far from a bare read of your bytes, ask what you wait for; close to it, stop |
#
# [The ladder of tools](w3_abstraction_ladder.py#the-price-list) has the price of each of these, measured.
#
# ## Homework
#
# /// exercise | A wrong answer for your neighbour
# Take your `nvfp4.py` from the lab. Plant one fault in a copy that random numbers will not show at once, and write down on a slip which input
# shows it. Swap with your neighbour.
# /// answer
# Good places to hide: a block of zeros; a tie, such as 5 times the scale; the order of the two codes in a byte, where a test has both
# equal; a scale that ought to be at least 2⁻⁹; the second scale, multiplied where it is to be divided by, in a test in which it is 1.
# ///
#
# And the worklog of your capstone, with *three* baselines: your first draft, the template or the library, and the floor.
#
# ## Before you leave
#
# **You can now**
#
# 1. write the eight numbers of E2M1, and encode sixteen numbers with a scale, ties to even;
# 2. say what NVFP4 shares, what MXFP4 shares, and why there is a second scale;
# 3. ask a library what it does at the end of its range, which nibble is first, and which way its second scale goes;
# 4. count a kernel's instructions for each byte, and say from the budget whether memory or hands will decide;
# 5. hear *ninety-fold*, and ask: from what, on what, and how far from the floor?
#
# It is not four bits alone. It is four bits, and a ruler that is where the numbers are.
#
# **Where this leads.** The last workshop asks the questions of this page of kernels that nobody here wrote.
# [Compiled, not run](../compiled_not_run.py) is the other half of Blackwell. [The ledger](../numbers.md) lists every number above, with its spread.
