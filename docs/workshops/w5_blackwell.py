# ---
# id: w5
# title: "Blackwell and NVFP4"
# nav: "W5 · Blackwell"
# description: Sixteen numbers encoded with a pencil, what four bits cost a model, who rounds how, a light tour of Blackwell, and a four-bit product in twelve stages on the card we have, against the fastest way to read its bytes.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Blackwell and NVFP4
#
# *Four bits and a shared scale: eight places on a ruler, and who moves the ruler.*
#
# By the end of this page you can
#
# - encode sixteen numbers in NVFP4 with a pencil, and say for each one where its error comes from;
# - say what a block's scale is for, what the second scale is for, and what a shared exponent is instead;
# - answer *four bits must destroy it* with a model's loss, and say what that answer leaves open;
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
# Take three kinds of numbers: well-behaved ones, from a normal distribution; the same with one giant among them; the same again, all tiny,
# a hundred-thousandth of their size. And three kinds of scale: one for the whole tensor, in fp32; a power of two for each 32, as in MXFP4;
# an E4M3 number for each 16 with a second scale above, as in NVFP4. That makes nine cells.
#
# /// predict | In which of the nine cells is the error largest?
# Circle it on the back of *sixteen* first.
#
# - [err.one.giant > max(err.one.normal, err.one.tiny, err.power.normal, err.power.giant, err.power.tiny, err.second.normal, err.second.giant, err.second.tiny)] One giant, with one scale for the whole tensor
# - [max(err.one.tiny, err.power.tiny, err.second.tiny) >= max(err.one.normal, err.one.giant, err.power.normal, err.power.giant, err.second.normal, err.second.giant)] A cell of the tiny numbers
# - [err.one.giant <= max(err.one.normal, err.one.tiny, err.power.normal, err.power.giant, err.power.tiny, err.second.normal, err.second.giant, err.second.tiny) and max(err.one.tiny, err.power.tiny, err.second.tiny) < max(err.one.normal, err.one.giant, err.power.normal, err.power.giant, err.second.normal, err.second.giant)] Another cell
# /// reveal
# /// table
# columns: [scale, well-behaved, one giant, all tiny]
# rows:
#   - [one for the whole tensor, "{{ err.one.normal:.1%}}", "{{ err.one.giant:.1%}}", "{{ err.one.tiny:.1%}}"]
#   - ["a power of two for 32, MXFP4", "{{ err.power.normal:.1%}}", "{{ err.power.giant:.1%}}", "{{ err.power.tiny:.1%}}"]
#   - ["E4M3 for 16 and a second scale, NVFP4", "{{ err.second.normal:.1%}}", "{{ err.second.giant:.1%}}", "{{ err.second.tiny:.1%}}"]
# caption: "Root mean square of the error over that of the numbers, {{ how_many:,.0f}} numbers, without the giant's own error."
# ///
#
# With one ruler for all, a giant makes it coarse for everybody. With one ruler for each block, the giant's neighbours alone pay.
# ///
#
# /// predict | Now take the second scale away, so that only E4M3 for 16 is left. What is the error of the tiny numbers?
# - [err.e4m3.tiny < 0.2] About the same
# - [0.2 <= err.e4m3.tiny < 0.9] Clearly larger
# - [err.e4m3.tiny >= 0.9] As large as the numbers themselves
# /// reveal
# {{ err.e4m3.tiny:.0%}}; with the second scale it was {{ err.second.tiny:.1%}}. For the well-behaved ones it is {{ err.e4m3.normal:.1%}} without and
# {{ err.second.normal:.1%}} with it. The scale that the tiny ones need is far below 2⁻⁹, the smallest E4M3 number, so every block of theirs gets that one, and becomes zeros.
# ///
#
# Run all of it yourself. You need no GPU:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.nvfp4.accuracy
# ```
#
# Two things are usually told wrongly. **It is not a shared exponent**: that is MXFP4, whose scales are powers of two. An NVFP4 scale has a
# mantissa, so the ruler moves in finer steps. And **an error of a tenth is that of single numbers**. Whether a model minds is
# a question for the model: the next section asks one.

# %% tags=["fold"]
from course_kernels.nvfp4 import accuracy

record(
    how_many=quantity(len(accuracy.kinds_of_numbers()["normal"]), how="counted"),
    err={
        scale: {kind: quantity(error) for kind, error in found.items()}
        for scale, found in accuracy.scale_errors().items()
    },
)

# %% [markdown]
# ## Do four bits ruin a model?
#
# Four formats, from eight bits down to four: FP8 in E4M3 with one scale for the tensor, NVFP4, MXFP4, and INT4, the whole numbers
# from −8 to 7 with a scale in bf16 for each 128 of them. Three kinds of weights: normal random ones; the same, with about one in 256 made
# twenty times larger, the *outliers*; and real ones, all matrices of the layers of [the small model](../a_small_model.py) that this course trains.
#
# /// predict | Of the three formats with four bits, which one changes the real weights least?
# - [off.real.nvfp4 < min(off.real.mxfp4, off.real.int4)] NVFP4
# - [off.real.mxfp4 <= off.real.nvfp4 and off.real.mxfp4 < off.real.int4] MXFP4
# - [off.real.int4 <= off.real.nvfp4 and off.real.int4 <= off.real.mxfp4] INT4
# /// reveal
# NVFP4 changes them by {{ off.real.nvfp4:.1%}}, MXFP4 by {{ off.real.mxfp4:.1%}} and INT4 by {{ off.real.int4:.1%}}.
#
# /// table
# columns: [format, "bits of a number", "normal, error", "worst block", "outliers, error", "worst block", "real, error", "worst block"]
# rows:
#   - [FP8, "{{ bits.fp8:.0f}}", "{{ off.normal.fp8:.1%}}", "{{ worst.normal.fp8:.0%}}", "{{ off.outliers.fp8:.1%}}", "{{ worst.outliers.fp8:.0%}}", "{{ off.real.fp8:.1%}}", "{{ worst.real.fp8:.0%}}"]
#   - [NVFP4, "{{ bits.nvfp4:.1f}}", "{{ off.normal.nvfp4:.1%}}", "{{ worst.normal.nvfp4:.0%}}", "{{ off.outliers.nvfp4:.1%}}", "{{ worst.outliers.nvfp4:.0%}}", "{{ off.real.nvfp4:.1%}}", "{{ worst.real.nvfp4:.0%}}"]
#   - [MXFP4, "{{ bits.mxfp4:.2f}}", "{{ off.normal.mxfp4:.1%}}", "{{ worst.normal.mxfp4:.0%}}", "{{ off.outliers.mxfp4:.1%}}", "{{ worst.outliers.mxfp4:.0%}}", "{{ off.real.mxfp4:.1%}}", "{{ worst.real.mxfp4:.0%}}"]
#   - [INT4, "{{ bits.int4:.3f}}", "{{ off.normal.int4:.1%}}", "{{ worst.normal.int4:.0%}}", "{{ off.outliers.int4:.1%}}", "{{ worst.outliers.int4:.0%}}", "{{ off.real.int4:.1%}}", "{{ worst.real.int4:.0%}}"]
# caption: "Error: root mean square of the errors over that of the numbers. Worst block: the same within 32 numbers, for every format, and of all such blocks the largest. Bits with a number's part of its block's scale."
# ///
#
# /// claim | worst.outliers.int4 > 5 * worst.outliers.nvfp4
# Look at the outliers' worst blocks. In INT4 a giant and 127 others share a ruler, and the worst 32 neighbours have an error of {{ worst.outliers.int4:.0%}}. In NVFP4 a
# giant has only fifteen neighbours, and no block is worse than {{ worst.outliers.nvfp4:.0%}}.
# /// otherwise
# The outliers' worst block has {{ worst.outliers.int4:.0%}} of error in INT4, where 128 share a scale, and {{ worst.outliers.nvfp4:.0%}} in NVFP4, where 16 do.
# ///
# ///
#
# Now the whole model. Its seven products in each layer get the rounded weights; everything else stays as it was: embedding, norms, and the
# numbers that flow through. Then it guesses the files that it has never learnt, byte after byte. Its loss is in bits a byte, and lower is better.
#
# /// predict | In which order does the loss go up?
# Write down all four, and by how much you expect the worst of them to be worse than the model as it was.
#
# - [loss.fp8 < loss.nvfp4 < loss.int4 < loss.mxfp4] FP8, NVFP4, INT4, MXFP4
# - [loss.fp8 < loss.nvfp4 < loss.mxfp4 < loss.int4] FP8, NVFP4, MXFP4, INT4
# - [loss.fp8 >= loss.nvfp4 or loss.nvfp4 >= min(loss.int4, loss.mxfp4) or loss.int4 == loss.mxfp4] Another order
# /// reveal
# /// table
# columns: [weights, "bits of a number", "loss, bits a byte", "more than before"]
# rows:
#   - [as they were trained, "16", "{{ loss.plain:.3f}}", ""]
#   - [FP8, "{{ bits.fp8:.0f}}", "{{ loss.fp8:.3f}}", "{{ loss.fp8 - loss.plain:.3f}}"]
#   - [NVFP4, "{{ bits.nvfp4:.1f}}", "{{ loss.nvfp4:.3f}}", "{{ loss.nvfp4 - loss.plain:.3f}}"]
#   - [MXFP4, "{{ bits.mxfp4:.2f}}", "{{ loss.mxfp4:.3f}}", "{{ loss.mxfp4 - loss.plain:.3f}}"]
#   - [INT4, "{{ bits.int4:.3f}}", "{{ loss.int4:.3f}}", "{{ loss.int4 - loss.plain:.3f}}"]
#   - [the draft of this model instead, "16", "{{ loss.draft:.3f}}", "{{ loss.draft - loss.plain:.3f}}"]
# caption: "The small model has {{ weights.small / 1e6:.1f}} million weights, its draft {{ weights.draft / 1e6:.1f}} million, trained in the same way. The last column is taken before rounding."
# ///
#
# /// claim | loss.nvfp4 - loss.plain < 0.1 * (loss.draft - loss.plain)
# **"Four bits must destroy it."** NVFP4 costs this model {{ loss.nvfp4 - loss.plain:.3f}} bits a byte. That is less than a tenth of what it costs to take the draft
# instead, {{ loss.draft - loss.plain:.3f}}: to store numbers in fewer bits is cheaper than to store fewer numbers.
# /// otherwise
# **"Four bits must destroy it."** NVFP4 costs this model {{ loss.nvfp4 - loss.plain:.3f}} bits a byte; to take the draft instead would cost {{ loss.draft - loss.plain:.3f}}.
# ///
# ///
#
# What this leaves open: it is one model, and a small one. Its weights alone are rounded, not what flows through. And part of each difference is luck: how much
# is [the next section's](#what-helps) last answer. Ask the loss of the model that you mean to round, before you round it.
#
# ### What helps {.beyond}
#
# Three choices are left to whoever encodes. **Which scale?** The nearest number to largest ÷ 6; the next one up, so that nothing is cut off at the end; or
# whichever makes the block's error smallest, tried out. **Is there a second scale?** And **a rotation**: multiply every block by a Hadamard
# matrix, which has only 1 and −1 in it, all over one root so that no length changes, and each number is spread over its whole block. Where one factor of a product is
# rotated, the other one must be as well, and the product stays the same [^ashkboos2024].
#
# /// predict | A rotation leaves no giant in a block. What does it do to the error of weights with outliers?
# - [off.outliers.nvfp4_turned < off.outliers.nvfp4 and off.outliers.int4_turned < off.outliers.int4] It gets smaller in NVFP4 and in INT4
# - [off.outliers.nvfp4_turned >= off.outliers.nvfp4 and off.outliers.int4_turned < off.outliers.int4] Smaller in INT4, not in NVFP4
# - [off.outliers.int4_turned >= off.outliers.int4] Not even in INT4 does it get smaller
# /// reveal
# With a rotation it is {{ off.outliers.nvfp4_turned:.1%}} in NVFP4, {{ off.outliers.mxfp4_turned:.1%}} in MXFP4 and {{ off.outliers.int4_turned:.1%}} in INT4.
#
# /// table
# columns: [weights in, "outliers, error", "real, error", "loss, more than before"]
# rows:
#   - [NVFP4, "{{ off.outliers.nvfp4:.1%}}", "{{ off.real.nvfp4:.2%}}", "{{ loss.nvfp4 - loss.plain:.3f}}"]
#   - ["NVFP4, no second scale", "{{ off.outliers.nvfp4_alone:.1%}}", "{{ off.real.nvfp4_alone:.2%}}", "{{ loss.nvfp4_alone - loss.plain:.3f}}"]
#   - ["NVFP4, scales rounded up", "{{ off.outliers.nvfp4_up:.1%}}", "{{ off.real.nvfp4_up:.2%}}", "{{ loss.nvfp4_up - loss.plain:.3f}}"]
#   - ["NVFP4, scales by error", "{{ off.outliers.nvfp4_error:.1%}}", "{{ off.real.nvfp4_error:.2%}}", "{{ loss.nvfp4_error - loss.plain:.3f}}"]
#   - ["NVFP4, rotated by 16", "{{ off.outliers.nvfp4_turned:.1%}}", "{{ off.real.nvfp4_turned:.2%}}", "{{ loss.nvfp4_turned - loss.plain:.3f}}"]
#   - ["NVFP4, rotated by 128", "{{ off.outliers.nvfp4_turned128:.1%}}", "{{ off.real.nvfp4_turned128:.2%}}", "{{ loss.nvfp4_turned128 - loss.plain:.3f}}"]
#   - [MXFP4, "{{ off.outliers.mxfp4:.1%}}", "{{ off.real.mxfp4:.2%}}", "{{ loss.mxfp4 - loss.plain:.3f}}"]
#   - ["MXFP4, nearest power", "{{ off.outliers.mxfp4_nearest:.1%}}", "{{ off.real.mxfp4_nearest:.2%}}", "{{ loss.mxfp4_nearest - loss.plain:.3f}}"]
#   - ["MXFP4, scales rounded up", "{{ off.outliers.mxfp4_up:.1%}}", "{{ off.real.mxfp4_up:.2%}}", "{{ loss.mxfp4_up - loss.plain:.3f}}"]
#   - ["MXFP4, scales by error", "{{ off.outliers.mxfp4_error:.1%}}", "{{ off.real.mxfp4_error:.2%}}", "{{ loss.mxfp4_error - loss.plain:.3f}}"]
#   - ["MXFP4, rotated by 32", "{{ off.outliers.mxfp4_turned:.1%}}", "{{ off.real.mxfp4_turned:.2%}}", "{{ loss.mxfp4_turned - loss.plain:.3f}}"]
#   - [INT4, "{{ off.outliers.int4:.1%}}", "{{ off.real.int4:.2%}}", "{{ loss.int4 - loss.plain:.3f}}"]
#   - ["INT4, rotated by 128", "{{ off.outliers.int4_turned:.1%}}", "{{ off.real.int4_turned:.2%}}", "{{ loss.int4_turned - loss.plain:.3f}}"]
# caption: "Errors as above. The first row of each format has the format's own rule: nearest in NVFP4, the power of two that is not above the largest in MXFP4."
# ///
#
# /// claim | off.outliers.int4_turned < 0.5 * off.outliers.int4 and off.outliers.nvfp4_turned > off.outliers.nvfp4
# In INT4 the rotation takes away more than half of the error, and in NVFP4 it adds to it. A block of sixteen with a scale of its own is the cure
# for giants already, and a rotation makes the giant's fifteen neighbours as coarse as the giant. Long blocks need it, short ones do not.
# /// otherwise
# INT4 has {{ off.outliers.int4:.1%}} of error without and {{ off.outliers.int4_turned:.1%}} with a rotation, NVFP4 {{ off.outliers.nvfp4:.1%}} and {{ off.outliers.nvfp4_turned:.1%}}.
# ///
#
# /// claim | 0.98 * off.real.nvfp4 < off.real.nvfp4_turned < 1.02 * off.real.nvfp4 and 0.98 * off.real.nvfp4 < off.real.nvfp4_turned128 < 1.02 * off.real.nvfp4
# These real weights have hardly a giant, so there is little to spread: NVFP4 with either rotation has the same error as without, to within 2 %. And yet the three
# losses are {{ loss.nvfp4 - loss.plain:.3f}}, {{ loss.nvfp4_turned - loss.plain:.3f}} and {{ loss.nvfp4_turned128 - loss.plain:.3f}} above the model's. So much is luck: which errors fall on which weights. Make
# nothing of smaller differences in that column.
#
# Look back with that at the four formats: INT4's loss is {{ loss.int4 - loss.nvfp4:.3f}} above NVFP4's, and MXFP4's is {{ loss.mxfp4 - loss.nvfp4:.3f}} above it.
# /// otherwise
# On the real weights NVFP4 has {{ off.real.nvfp4:.2%}} of error, with the rotations {{ off.real.nvfp4_turned:.2%}} and {{ off.real.nvfp4_turned128:.2%}}.
# ///
#
# /// claim | off.real.nvfp4_error < off.real.nvfp4 < off.real.nvfp4_alone and off.real.nvfp4 < off.real.nvfp4_up
# What does help with real weights is to try scales out: {{ off.real.nvfp4_error:.1%}} of error, where the nearest scale has {{ off.real.nvfp4:.1%}}. To round up is worse than to round to the
# nearest. And the second scale takes a hair off the error even here, where nothing is tiny: without it these scales are so near E4M3's lower end that some lose digits.
# /// otherwise
# On the real weights the nearest scale has {{ off.real.nvfp4:.2%}} of error, the one by error {{ off.real.nvfp4_error:.2%}}, the one rounded up {{ off.real.nvfp4_up:.2%}}, and without a second
# scale it is {{ off.real.nvfp4_alone:.2%}}.
# ///
# ///

# %% tags=["fold"]
import torch
from course_kernels.nvfp4.accuracy import Rounding
from course_models import corpus, pretrained
from course_models.config import parameters
from course_models.rounded_weights import matrices, rounded_model
from course_models.train import bits_per_byte

HOWS = {
    "fp8": Rounding("FP8"),
    "nvfp4": Rounding("NVFP4"),
    "mxfp4": Rounding("MXFP4"),
    "int4": Rounding("INT4"),
    "nvfp4_alone": Rounding("NVFP4", second=False),
    "nvfp4_up": Rounding("NVFP4", rule="up"),
    "nvfp4_error": Rounding("NVFP4", rule="error"),
    "nvfp4_turned": Rounding("NVFP4", rotation=16),
    "nvfp4_turned128": Rounding("NVFP4", rotation=128),
    "mxfp4_nearest": Rounding("MXFP4", rule="nearest"),
    "mxfp4_up": Rounding("MXFP4", rule="up"),
    "mxfp4_error": Rounding("MXFP4", rule="error"),
    "mxfp4_turned": Rounding("MXFP4", rotation=32),
    "int4_turned": Rounding("INT4", rotation=128),
}
library = corpus.load()
models = {
    name: pretrained.load(name, dtype=torch.float32, device="cuda")
    for name in ("small", "draft")
}


def flat(model):
    """All weights that are rounded, one behind the other."""
    return np.concatenate([w.cpu().numpy().ravel() for _, w in matrices(model)])


made = {
    "normal": accuracy.normal_weights(256, 1024),
    "outliers": accuracy.outlier_weights(256, 1024),
}
errors = {
    kind: {
        name: accuracy.errors(x, accuracy.rounded(x, how))
        for name, how in HOWS.items()
    }
    for kind, x in made.items()
}
real = flat(models["small"])
errors["real"] = {}
losses = {
    "plain": bits_per_byte(models["small"], library.held_out),
    "draft": bits_per_byte(models["draft"], library.held_out),
}
for name, how in HOWS.items():
    twin = rounded_model(models["small"], how)
    errors["real"][name] = accuracy.errors(real, flat(twin))
    losses[name] = bits_per_byte(twin, library.held_out)
record(
    bits={
        name: quantity(HOWS[name].bits_per_number, "bit", how="counted")
        for name in ("fp8", "nvfp4", "mxfp4", "int4")
    },
    off={
        kind: {name: quantity(e.relative) for name, e in of_kind.items()}
        for kind, of_kind in errors.items()
    },
    worst={
        kind: {name: quantity(e.worst) for name, e in of_kind.items()}
        for kind, of_kind in errors.items()
    },
    loss={name: quantity(bits, "bit") for name, bits in losses.items()},
    weights={
        name: quantity(parameters(model.config), how="counted")
        for name, model in models.items()
    },
)
del models, twin

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
# 2. *Which nibble is first?* A nibble is half a byte. Nearly everybody has element 0 in the low one and element 1 in the high one.
#    GGUF, the files of llama.cpp, puts the element half a block further on beside it.
# 3. *Is the second scale multiplied or divided by?* Two exporters pack the same weights into the same bytes: ModelOpt's
#    `weight_scale_2` is multiplied, and the `weight_global_scale` of compressed-tensors is its reciprocal, so there you divide.
#
# And two for your own tests. Triton's interpreter rounds fp8 differently from the card: where a lab casts to fp8, the grader's
# truth is the card's. And a library may differ from its own description: ONNX says that its cast to E8M0 keeps 2⁻¹²⁷, the format's
# smallest number, and makes the largest number of infinity; its reference evaluator makes 2⁻¹²⁶ of the one and NaN of the other
# (`findings/onnx_e8m0_special_values.sh`).
#
# ### Every question, every library {.beyond}
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
# called Blackwell as well and multiplies four bits, but has neither tensor memory nor `tcgen05`, the instructions that go with it. Look at the number, not at the name.
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
# {{ ridge.bits16:.0f}}, {{ ridge.bits8:.1f}} and {{ ridge.bits4:.0f}}. One vector has {{ one_row:.1f}} operations for a byte, far to the left of all three. It needs
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
# {{ ladder.k7168.k01.floor_us:.1f}} µs, and the floor of the third {{ ladder.k2048.k01.floor_us:.1f}} µs. Nobody gets below it. *Per cent of the floor's speed* is, from here on,
# the floor over a kernel's time: a kernel with all of it would read its own bytes at the data sheet's bandwidth.
#
# The bytes of the last shape fit into this card's L2 cache, and many of the first. So the cache is
# emptied before every sample, or the clock would time the cache.
#
# There is a second budget. In the time in which memory brings one byte, a card can issue only so
# many instructions. Here it is {{ budget:.1f}} instructions of a thread for each byte, at the highest clock. A kernel that spends more
# on a byte is bound by its hands, however it loads. One that spends less can still wait for something else.
#
# ## The climb
#
# Twelve kernels, one idea each, and none of them is slowed down on purpose: take its idea away, and you have the one before.
# In all of them a is the matrix and b the vector.
#
# The room climbs five stages: neighbours, wide loads, reading a nibble, two numbers in a register, more loads under way. For each, write down your
# forecast before you open it: a factor, and what the kernel will wait for then. What the whole climb comes to is [below](#all-twelve).
#
# ### Side by side
#
# *The room, stage one.* The first draft is the formula: one thread takes one row, and decodes number after number. Neighbouring threads are a
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
# *The room, stage two.* k02 asks for each byte of a, and with each for a scale that eight bytes share. k03 asks for 16 bytes at once, and for their two scales.
#
# /// predict | k02 to k03: what happens to the instructions for each byte, and to the time?
# - [ladder.k16384.k03.us < 0.75 * ladder.k16384.k02.us] Fewer instructions, and clearly less time
# - [0.75 * ladder.k16384.k02.us <= ladder.k16384.k03.us] Fewer instructions, but hardly less time
# /// reveal
# k03 takes {{ ladder.k16384.k03.us:,.0f}} µs, and k02 took {{ ladder.k16384.k02.us:,.0f}} µs. The instructions for each byte went from
# {{ per_byte.k02:.0f}} to {{ per_byte.k03:.0f}}, that is, to {{ per_byte.k03 / per_byte.k02:.0%}}, and the time to {{ ladder.k16384.k03.us / ladder.k16384.k02.us:.0%}}. The budget is
# {{ budget:.1f}}: hands decide here, not memory.
#
# /// diff | src/course_kernels/gemv_fp4/k02_warp_a_row.cu | src/course_kernels/gemv_fp4/k03_vectors.cu
# ///
# ///
#
# ### One scale for sixteen products
#
# k04 adds up the sixteen products of a block first, and multiplies the sum by both scales. That is the distributive law, and it is
# exact: products of E2M1 numbers are multiples of a quarter, and sixteen of them never leave what a float holds.
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
# ### Lab: a product of your own
#
# Type this stage yourself, in NumPy, for 8 rows of 64: decode a block, multiply, add up, and multiply by the scale once. Compare with
# float64 of the decoded matrix, and print how many bytes you read.
#
# ### Read a nibble
#
# *The room, stage three.* There are two classic ways to decode a nibble, half a byte, without working out its definition. k05 looks it up in a table of sixteen floats in
# shared memory. k06 shifts sign, exponent and mantissa to the places where a float has them, and multiplies once: {{ per_byte.k05:.0f}} and
# {{ per_byte.k06:.0f}} instructions for each byte.
#
# /// predict | The table or the bits: which one is faster?
# - [ladder.k16384.k05.us < 0.95 * ladder.k16384.k06.us] The table: it has fewer instructions
# - [ladder.k16384.k06.us < 0.95 * ladder.k16384.k05.us] The bits: no memory is asked
# - [ladder.k16384.k05.us >= 0.95 * ladder.k16384.k06.us and ladder.k16384.k06.us >= 0.95 * ladder.k16384.k05.us] They are within 5 %
# /// reveal
# The table takes {{ ladder.k16384.k05.us:,.0f}} µs, the bits {{ ladder.k16384.k06.us:,.0f}} µs. The sixteen floats are in sixteen
# banks, so [no lane queues](../lectures/l3_memory.py#thirty-two-windows).
#
# But shared memory hands out 32 words in a cycle [^nvidia-shared-load], one warp's
# look-up, while a multiprocessor can begin four instructions. So there are two queues side by side, and the longer one decides: all {{ per_byte.k05:.1f}}
# instructions of k05 in the one, and in the other its {{ look_ups:.1f}} look-ups for each byte, each as long as four. Compare the longer of the two with the {{ per_byte.k06:.1f}} of
# k06 before you compare counts.
#
# From k04 to k05, and from k05 to k06:
#
# /// diff | src/course_kernels/gemv_fp4/k04_block_sums.cu | src/course_kernels/gemv_fp4/k05_table.cu
# ///
#
# /// diff | src/course_kernels/gemv_fp4/k05_table.cu | src/course_kernels/gemv_fp4/k06_bits.cu
# ///
# ///
#
# ### Two in a register
#
# *The room, stage four.* Numbers i and i + 4 of a word are 16 bits apart. One shift and one mask put the bits of *both* where a half, a float16, has them, and one
# instruction multiplies and adds both. This is k07.
#
# /// predict | k06 to k07: the instructions for each byte go from {{ per_byte.k06:.0f}} to {{ per_byte.k07:.1f}}. And the time?
# - [ladder.k16384.k07.us < 0.75 * ladder.k16384.k06.us] It falls by more than a quarter
# - [0.75 * ladder.k16384.k06.us <= ladder.k16384.k07.us < ladder.k16384.k06.us] It falls by a quarter at most
# - [ladder.k16384.k07.us >= ladder.k16384.k06.us] It does not fall
# /// reveal
# k07 takes {{ ladder.k16384.k07.us:,.0f}} µs, and k06 took {{ ladder.k16384.k06.us:,.0f}} µs. The instructions came down to {{ per_byte.k07 / per_byte.k06:.0%}}, the time to
# {{ ladder.k16384.k07.us / ladder.k16384.k06.us:.0%}}. That is {{ ladder.k16384.k07.of_peak:.0%}} of the floor's speed.
#
# /// diff | src/course_kernels/gemv_fp4/k06_bits.cu | src/course_kernels/gemv_fp4/k07_pairs.cu
# ///
# ///
#
# ### More under way
#
# *The room, stage five.* k08 decodes b once for a whole block and keeps it in shared memory: that is {{ per_byte.k08:.1f}} instructions for each byte. k09 changes
# little in that number, {{ per_byte.k09:.1f}}. A lane of k08 waits for a vector, its 16 bytes, before it asks for the next. A lane of k09 has
# eight vectors under way, two of each of four rows.
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
# - [ladder.k16384.k09.us >= 0.95 * ladder.k16384.k08.us] Next to nothing, or less: other warps had filled the wait already
# /// reveal
# k09 takes {{ ladder.k16384.k09.us:,.1f}} µs, and k08 took {{ ladder.k16384.k08.us:,.1f}} µs. That is {{ ladder.k16384.k09.of_peak:.0%}} of the floor's speed.
#
# The two chains of the exercise were alone. On the card many warps share the hands, and each of them is a chain already.
#
# /// claim | ladder.k7168.k09.us > ladder.k7168.k08.us and ladder.k2048.k09.us > ladder.k2048.k08.us
# **And a loss.** With shorter rows k09 is the slower one: {{ ladder.k7168.k09.us:,.1f}} µs where k08 takes {{ ladder.k7168.k08.us:,.1f}}, at K = 7168, and
# {{ ladder.k2048.k09.us:,.1f}} where k08 takes {{ ladder.k2048.k08.us:,.1f}}, at K = 2048. Eight vectors hold more registers, so fewer warps may be there to fill the wait. And at
# K = 2048 a row has 64 vectors, two for each lane of a warp, so the loop has a single round: a lane asks for all eight, waits once, and has nothing
# under way while it works.
#
# A profiler would have to say what counts for most. k11 goes down the rows instead of along them, and always has something to ask for.
# /// otherwise
# With shorter rows k09 takes {{ ladder.k7168.k09.us:,.1f}} µs and k08 {{ ladder.k7168.k08.us:,.1f}}, at K = 7168, and {{ ladder.k2048.k09.us:,.1f}} and
# {{ ladder.k2048.k08.us:,.1f}} at K = 2048, where a row has two vectors for each lane of a warp.
# ///
#
# /// diff | src/course_kernels/gemv_fp4/k08_decoded_once.cu | src/course_kernels/gemv_fp4/k09_in_flight.cu
# ///
# ///
#
# ### Four in a register
#
# Can decoding cost still less? Twice an E2M1 number is a whole number from −12 to 12, so it fits into a byte. Two instructions help. `PRMT` picks
# four bytes out of the eight of two registers: a look-up of four numbers at once. `IDP` multiplies four bytes by four others, and adds all four
# products to a sum. This is k10, with {{ per_byte.k10:.1f}} instructions for each byte.
#
# It takes {{ ladder.k16384.k10.us:,.1f}} µs, where k09 took {{ ladder.k16384.k09.us:,.1f}}. Both are within the budget of {{ budget:.1f}}, and fewer instructions still bring something.
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
# caption: "Cold L2, the twelve in the same rounds at each shape; instructions of the loop that does the work, counted in the machine code for sm_90a. %: of the floor's speed at that shape. For k11 and k12 the count is that for K = 16384."
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
# alt: "A bar for each of the twelve kernels, in per cent of the floor's speed: the first has {{ 100 * ladder.k16384.k01.of_peak:.0f}}, k05 {{ 100 * ladder.k16384.k05.of_peak:.0f}}, k06 {{ 100 * ladder.k16384.k06.of_peak:.0f}}, k07 {{ 100 * ladder.k16384.k07.of_peak:.0f}}, k08 {{ 100 * ladder.k16384.k08.of_peak:.0f}}, k09 {{ 100 * ladder.k16384.k09.of_peak:.0f}}, k10 {{ 100 * ladder.k16384.k10.of_peak:.0f}}, k11 {{ 100 * ladder.k16384.k11.of_peak:.0f}}, k12 {{ 100 * ladder.k16384.k12.of_peak:.0f}}."
# ///
#
# From the first to the better of the last two it is {{ ladder.k16384.k01.us / min(ladder.k16384.k11.us, ladder.k16384.k12.us):,.0f}} times the speed, at K = 16384. We tell this number
# and do not aim at it: it measures the first draft as much as the last kernel. The last two get a comparison of their own, [below](#where-starting-hardly-counts).
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
# /// diff | src/course_kernels/gemv_fp4/k10_bytes.cu | src/course_kernels/gemv_fp4/k11_resident.cu
# ///
#
# **k12**: what is under way, eight rows where k11 has two, waits in shared memory, brought there by asynchronous copies, and no register waits.
#
# /// diff | src/course_kernels/gemv_fp4/k11_resident.cu | src/course_kernels/gemv_fp4/k12_ring.cu
# ///

# %% tags=["fold"]
from importlib import import_module

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
table = per_byte.loop_of("k05_table")
sms = torch.cuda.get_device_properties(0).multi_processor_count
issued = sms * card.multiprocessors.fp32_lanes * card.multiprocessors.max_mhz
record(
    ladder={f"k{w.K}": compare(LADDER, w, seconds=0.05) for w in HACKATHON},
    per_byte={
        name[:3]: quantity(per_byte.loop_of(name).per_byte, how="counted")
        for name in NAMES
    },
    look_ups=quantity(table.instructions["LDS"] / table.a_bytes, how="counted"),
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
# fairer rival: a kernel that reads the very same bytes, adds them up as whole words, and does nothing else. A slow rival would be
# no rival.
#
# So there are three of them: plain loads of 16 bytes, asynchronous copies into a ring with as much under way as k12's, and the copy engine that brings
# whole chunks. Together they are tried in {{ reads.ways:.0f}} ways, with more and less under way. The quickest way of each then runs in the same rounds as k11 and
# k12, on the same inputs, and the quickest of the three is what counts.
#
# /// source | src/course_kernels/gemv_fp4/bare_read.cu
# ///
#
# /// predict | How much longer than the bare read does the better of our two best kernels take, at K = 16384?
# - [over_bare_read.k16384 < 1.2] Less than a fifth longer
# - [1.2 <= over_bare_read.k16384 < 1.5] A fifth to a half
# - [over_bare_read.k16384 >= 1.5] More than that
# /// reveal
# /// table
# columns: [shape, "plain loads, µs", "asynchronous copies, µs", "copy engine, µs", "k11, µs", "k12, µs", "the better over the quickest read"]
# rows:
#   - ["K = 16384, L = 1", "{{ beside.k16384.bare_read:.1f}}", "{{ beside.k16384.bare_read_ring:.1f}}", "{{ beside.k16384.bare_read_bulk:.1f}}", "{{ beside.k16384.k11:.1f}}", "{{ beside.k16384.k12:.1f}}", "{{ over_bare_read.k16384:.2f}}"]
#   - ["K = 7168, L = 8", "{{ beside.k7168.bare_read:.1f}}", "{{ beside.k7168.bare_read_ring:.1f}}", "{{ beside.k7168.bare_read_bulk:.1f}}", "{{ beside.k7168.k11:.1f}}", "{{ beside.k7168.k12:.1f}}", "{{ over_bare_read.k7168:.2f}}"]
#   - ["K = 2048, L = 4", "{{ beside.k2048.bare_read:.1f}}", "{{ beside.k2048.bare_read_ring:.1f}}", "{{ beside.k2048.bare_read_bulk:.1f}}", "{{ beside.k2048.k11:.1f}}", "{{ beside.k2048.k12:.1f}}", "{{ over_bare_read.k2048:.2f}}"]
# caption: "Cold L2, medians of the same rounds. The last column: the quicker of k11 and k12 over the quickest of the three reads."
# ///
#
# Our aim was at most a tenth more than the quickest read, at each of the three shapes. By the medians it is {{ over_bare_read.k16384:.2f}},
# {{ over_bare_read.k7168:.2f}} and {{ over_bare_read.k2048:.2f}} times its time. Single samples differ by more than what these leave to the aim; their spread is in
# [the ledger](../numbers.md).
#
# /// claim | over_bare_read.k16384 < 1.2 and over_bare_read.k7168 < 1.2 and over_bare_read.k2048 < 1.2
# At all three shapes it is less than a fifth more. So decoding four bits in software, multiplying and adding up fit for the most part into the time
# that memory needs anyway.
# /// otherwise
# What is left of it is the price of decoding, multiplying and adding up.
# ///
#
# What is above 1 can be in three places: at the start, where b is decoded, at the end, where sums meet, and wherever no hands are free as a byte
# comes. This table does not tell them apart.
#
# The quickest way of each of the three reads, where a vector is 16 bytes and a stage is one part of a ring:
#
# /// text | reads.quickest
# ///
# ///
#
# /// define | over_bare_read.k16384 = min(beside.k16384.k11, beside.k16384.k12) / min(beside.k16384.bare_read, beside.k16384.bare_read_ring, beside.k16384.bare_read_bulk)
# unit: ×
# what: the better of k11 and k12 over the quickest bare read of the same bytes, K = 16384, cold L2
# ///
#
# /// define | over_bare_read.k7168 = min(beside.k7168.k11, beside.k7168.k12) / min(beside.k7168.bare_read, beside.k7168.bare_read_ring, beside.k7168.bare_read_bulk)
# unit: ×
# what: the better of k11 and k12 over the quickest bare read of the same bytes, K = 7168, cold L2
# ///
#
# /// define | over_bare_read.k2048 = min(beside.k2048.k11, beside.k2048.k12) / min(beside.k2048.bare_read, beside.k2048.bare_read_ring, beside.k2048.bare_read_bulk)
# unit: ×
# what: the better of k11 and k12 over the quickest bare read of the same bytes, K = 2048, cold L2
# ///
#
# ### Where starting hardly counts
#
# With the batch raised to 8 the first shape has {{ large.k12.hbm_mb:,.0f}} MB. A block has {{ rows.large:.0f}} rows there, and {{ rows.k16384:.0f}} when the batch is 1.
#
# /// predict | k11 keeps two rows under way in registers, k12 eight in shared memory. Which of them is ahead here?
# - [ring.large > 1.05] k11, by more than 5 %
# - [0.95 <= ring.large <= 1.05] Neither is ahead by more than 5 %
# - [ring.large < 0.95] k12, by more than 5 %
# /// reveal
# k11 takes {{ large.k11.us:,.0f}} µs here, and k12 {{ large.k12.us:,.0f}}. Here are all four shapes, by the rows that a block has one after the other:
#
# /// table
# columns: [shape, "rows of a block, one after the other", "k12's time over k11's"]
# rows:
#   - ["K = 2048, L = 4", "{{ rows.k2048:.0f}}", "{{ ring.k2048:.2f}}"]
#   - ["K = 16384, L = 1", "{{ rows.k16384:.0f}}", "{{ ring.k16384:.2f}}"]
#   - ["K = 7168, L = 8", "{{ rows.k7168:.0f}}", "{{ ring.k7168:.2f}}"]
#   - ["K = 16384, L = 8", "{{ rows.large:.0f}}", "{{ ring.large:.2f}}"]
# caption: "Cold L2, the two kernels in the same rounds at each shape."
# ///
#
# /// claim | ring.k2048 > 1.05 and 0.9 < ring.k16384 < 1.1 and 0.9 < ring.k7168 < 1.1 and 0.9 < ring.large < 1.1
# With the fewest rows in a block the ring loses, and with more of them neither is a tenth ahead. So eight rows under way are hardly better than two: k11's many
# warps, with two rows each, seem to ask for enough. And the ring has its price. Each vector goes through shared memory and out again,
# {{ per_byte.k12:.1f}} instructions for each byte where k11 has {{ per_byte.k11:.1f}}, and a block with few rows ends when its ring has hardly gone around.
# A profiler would have to say how much each of the two is.
# /// otherwise
# k12 has {{ per_byte.k12:.1f}} instructions for each byte, since each vector goes through shared memory and out again, and k11 has {{ per_byte.k11:.1f}}.
# What k12 gains is that more is under way.
# ///
#
# /// claim | over_floor.large <= 1.35
# The better one of k11 and k12 takes {{ over_floor.large:.2f}} times the data sheet's floor here. Our aim was at most a good third more, so it is met. With so many bytes the start and
# the end are hardly a part of it.
# /// otherwise
# The better one of k11 and k12 takes {{ over_floor.large:.2f}} times the data sheet's floor here. Our aim was at most a good third more than the floor.
# ///
# ///
#
# /// define | ring.k16384 = beside.k16384.k12 / beside.k16384.k11
# unit: ×
# what: the time of k12 over that of k11, K = 16384, cold L2
# ///
#
# /// define | ring.k7168 = beside.k7168.k12 / beside.k7168.k11
# unit: ×
# what: the time of k12 over that of k11, K = 7168, cold L2
# ///
#
# /// define | ring.k2048 = beside.k2048.k12 / beside.k2048.k11
# unit: ×
# what: the time of k12 over that of k11, K = 2048, cold L2
# ///
#
# /// define | ring.large = large.k12.us / large.k11.us
# unit: ×
# what: the time of k12 over that of k11, K = 16384 with a batch of 8, cold L2
# ///
#
# /// define | over_floor.large = min(large.k11.us, large.k12.us) / large.k11.floor_us
# unit: ×
# what: the better of k11 and k12 over the data sheet's floor, K = 16384 with a batch of 8, cold L2
# ///

# %% tags=["fold"]
import secrets
from functools import partial

from course_kernels.gemv_fp4 import bare_read
from course_kernels.gemv_fp4.by_shares import cut_of
from course_kernels.measure.clock import Clock
from course_kernels.measure.summary import samples_of
from course_kernels.problem import worst_error

BEST = {"k11": LADDER["k11"], "k12": LADDER["k12"]}


def in_rounds(calls, seconds):
    """Times of calls, taken in the same rounds with a cold L2."""
    group = f"g{secrets.token_hex(4)}"
    return {
        name: samples_of(list(us), "µs", "device", group)
        for name, us in Clock().time(calls, seconds).samples_us.items()
    }


def check(name, out, truth, most):
    """Refuse a wrong result before anything is timed."""
    if not worst_error(out, truth) <= most:
        raise RuntimeError(f"{name}: wrong result")


def quickest_reads(inputs):
    """The quickest way of each bare read; the sum of each way is checked first."""
    truth = bare_read.words_of(*inputs)
    ways = {
        way: partial(bare_read.bare_read, *inputs, way=way)
        for way in bare_read.WAYS
    }
    for way, read in ways.items():
        if int(read().sum(dtype=torch.int64)) % 2**32 != truth:
            raise RuntimeError(f"{way}: not every word was read")
    found = Clock().time(ways, 0.01).samples_us
    medians = {way: float(np.median(us)) for way, us in found.items()}
    return {
        name: min((way for way in ways if way.kernel == name), key=medians.get)
        for name in bare_read.SOURCES
    }


def beside(w, inputs, reads):
    """The bare reads and our best kernels, in the same rounds on the same inputs."""
    calls = {
        name: partial(kernel.gemv_fp4, *inputs) for name, kernel in BEST.items()
    }
    truth = PROBLEM.reference(*inputs)
    for name, call in calls.items():
        check(f"{name} on {w.label}", call(), truth, PROBLEM.max_error(w))
    del truth
    for name, way in reads.items():
        calls[name] = partial(bare_read.bare_read, *inputs, way=way)
    return in_rounds(calls, 0.1)


def rows_of(w):
    """Rows that a block of k11 and k12 works on, for each of its groups of warps."""
    cut = cut_of(w.L, w.M, w.K, sms)
    return quantity(w.M / cut.blocks / cut.groups, how="counted")


found, quickest = {}, []
for w in HACKATHON:
    inputs = PROBLEM.make_inputs(
        w, torch.Generator("cuda").manual_seed(w.K), "cuda"
    )
    reads = quickest_reads(inputs)
    found[f"k{w.K}"] = beside(w, inputs, reads)
    for way in reads.values():
        quickest.append(
            f"K = {w.K}: {way.kernel}, vectors of a lane {way.vectors}, "
            f"stages {way.stages}, blocks a multiprocessor {way.resident}"
        )
del inputs
record(
    reads={
        "ways": quantity(len(bare_read.WAYS), how="counted"),
        "quickest": text("\n".join(quickest)),
    },
    beside=found,
    large=compare(BEST, LARGE, seconds=0.05),
    rows={
        **{f"k{w.K}": rows_of(w) for w in HACKATHON},
        "large": rows_of(LARGE),
    },
)

# %% [markdown]
# ## A few rows {.beyond}
#
# A vector in four bits is what the hackathon asked for. Somebody with this card wants something else: a checkpoint in NVFP4, and rows in bf16 that are never rounded to
# four bits. The rows are few, one for each request that is being answered. So here are 1 to 16 rows times {{ few_n:.0f}} × {{ few_k:.0f}} weights, the layer of
# [the workshop on serving](w4_serving.py#shorter-weights). A lane decodes the weights that it will hand to its tensor core, two numbers with a shift
# and a mask, and multiplies them by their scale; the product itself is in bf16.
#
# /// source | src/course_kernels/skinny_gemm_fp4/k02_fragments.cu
# ///
#
# We wrote it twice. In k02 above, the warps of a block share out K, fetch all of x, and meet again and again to add up their sums. In k03, eight blocks share out K, as one
# [cluster](w2_hopper.py#the-last-rung): a block needs a part of x only, a warp holds all of that part in its registers, and nobody meets until
# the sums are sent.
#
# /// source | src/course_kernels/skinny_gemm_fp4/k03_cluster.cu
# ///
#
# Beside both, in the same rounds, run cuBLAS with the very same weights in bf16, and the four bits of that workshop, INT4 with a scale for each 128.
#
# /// exercise | What can it bring at most? | 2 minutes
# Weights of 16 bits become weights of 4.5. If nothing but memory were waited for, how many times the speed would that be? And with INT4 and a scale in
# bf16 for each 128?
# /// answer
# 16 ÷ 4.5 is about 3.6. INT4 has 4 + 16 ÷ 128 = 4.125 bits, and 16 ÷ 4.125 is about 3.9.
# ///
#
# /// predict | With one row: how many times the speed of cuBLAS does it have?
# - [small_batch.m1 < 1.5] Less than one and a half times
# - [1.5 <= small_batch.m1 < 3] One and a half to three times
# - [small_batch.m1 >= 3] Three times or more, nearly what the bits say
# /// reveal
# /// table
# columns: ["", "1 row", "2", "4", "8", "16"]
# rows:
#   - ["bf16, cuBLAS, µs", "{{ few.m1.cublas:.1f}}", "{{ few.m2.cublas:.1f}}", "{{ few.m4.cublas:.1f}}", "{{ few.m8.cublas:.1f}}", "{{ few.m16.cublas:.1f}}"]
#   - ["NVFP4, k02, µs", "{{ few.m1.fp4:.1f}}", "{{ few.m2.fp4:.1f}}", "{{ few.m4.fp4:.1f}}", "{{ few.m8.fp4:.1f}}", "{{ few.m16.fp4:.1f}}"]
#   - ["NVFP4, k03, µs", "{{ few.m1.cluster:.1f}}", "{{ few.m2.cluster:.1f}}", "{{ few.m4.cluster:.1f}}", "{{ few.m8.cluster:.1f}}", "{{ few.m16.cluster:.1f}}"]
#   - ["INT4, ours, µs", "{{ few.m1.int4:.1f}}", "{{ few.m2.int4:.1f}}", "{{ few.m4.int4:.1f}}", "{{ few.m8.int4:.1f}}", "{{ few.m16.int4:.1f}}"]
#   - ["the floor of NVFP4, µs", "{{ few_floor.m1:.1f}}", "{{ few_floor.m2:.1f}}", "{{ few_floor.m4:.1f}}", "{{ few_floor.m8:.1f}}", "{{ few_floor.m16:.1f}}"]
#   - ["the better of k02 and k03: its speed over cuBLAS's", "{{ small_batch.m1:.2f}}", "{{ small_batch.m2:.2f}}", "{{ small_batch.m4:.2f}}", "{{ small_batch.m8:.2f}}", "{{ small_batch.m16:.2f}}"]
# caption: "Cold L2, medians of the same rounds. The floor: bytes of weights, scales and rows, in and out, at the data sheet's bandwidth."
# ///
#
# /// claim | small_batch.m1 < 2.7 and small_batch.m2 < 2.7 and small_batch.m4 < 2.7 and small_batch.m8 < 2.7 and small_batch.m16 < 2.7
# **We miss our aim.** From one row to 16, NVFP4 has less than 2.7 times the speed of cuBLAS, and that was to be the least. The last line has
# {{ small_batch.m1:.2f}}, {{ small_batch.m2:.2f}}, {{ small_batch.m4:.2f}} and {{ small_batch.m8:.2f}} there and, with 16 rows, only {{ small_batch.m16:.2f}}.
# /// otherwise
# The last line has {{ small_batch.m1:.2f}}, {{ small_batch.m2:.2f}}, {{ small_batch.m4:.2f}}, {{ small_batch.m8:.2f}} and {{ small_batch.m16:.2f}}.
# ///
#
# **Why not what the bits say?** These are exactly as many weights as the hackathon's first shape has, {{ few_n:.0f}} · {{ few_k:.0f}} and 7168 · 16384. The quickest bare read of those bytes
# took {{ min(beside.k16384.bare_read, beside.k16384.bare_read_ring, beside.k16384.bare_read_bulk):.1f}} µs above, and their floor is {{ few_floor.m1:.1f}} µs. The floor of cuBLAS, with 16 bits a weight, is {{ wide_floor:.1f}} µs, and it takes {{ few.m1.cublas:.1f}}.
# Work out both quotients: every read has a start and an end, and the shorter it is, the larger is their part. So shorter numbers save less than their
# bits: even in the time of that bare read we would have {{ few.m1.cublas / min(beside.k16384.bare_read, beside.k16384.bare_read_ring, beside.k16384.bare_read_bulk):.1f}} times the speed of cuBLAS with one row.
#
# The rest is ours. With one row k02 takes {{ few.m1.fp4:.1f}} µs and with eight {{ few.m8.fp4:.1f}}. With 16 it is {{ few.m16.fp4:.1f}} µs, although the floor is nearly the
# same. So what comes on top there is not the bytes of the weights. A multiply of the tensor cores takes eight rows of x, and 16 rows are a second multiply for every weight and twice as
# many numbers of x to fetch. k03 has the same multiplies, and fetches x once:
#
# /// claim | few.m16.cluster < 0.95 * few.m16.fp4 and few.m8.cluster > 0.9 * few.m8.fp4
# with 16 rows it takes {{ few.m16.cluster:.1f}} µs where k02 takes {{ few.m16.fp4:.1f}}, so the multiplies alone were not all that came on top.
# It also meets less often, and this table does not part the two. With eight rows
# it brings hardly anything: {{ few.m8.cluster:.1f}} µs beside {{ few.m8.fp4:.1f}}.
# /// otherwise
# with 16 rows it takes {{ few.m16.cluster:.1f}} µs where k02 takes {{ few.m16.fp4:.1f}}, and with eight {{ few.m8.cluster:.1f}} beside {{ few.m8.fp4:.1f}}.
# ///
#
# **And beside INT4?** It has fewer bytes, and its scale waits until 128 products are added up, where NVFP4's must be multiplied into every sixteen weights.
#
# /// claim | few.m1.int4 > few.m1.fp4 and few.m2.int4 > few.m2.fp4 and few.m4.int4 > few.m4.fp4 and few.m8.int4 > few.m8.fp4
# And yet our INT4 kernel takes longer than the one for NVFP4, from one row to eight. So these two lines compare two kernels, not two formats. One
# difference is in the head of the source above: there the warps of a block meet after every tile, here after every second one.
# /// otherwise
# With one row it takes {{ few.m1.int4:.1f}} µs, and NVFP4 {{ few.m1.fp4:.1f}}.
# ///
#
# What NVFP4's finer scales buy is [above](#do-four-bits-ruin-a-model), in the error of weights with outliers.
# ///
#
# /// define | small_batch.m1 = few.m1.cublas / min(few.m1.fp4, few.m1.cluster)
# unit: ×
# what: speed of our better product with NVFP4 weights over cuBLAS in bf16, one row, 28672 × 4096, cold L2
# ///
#
# /// define | small_batch.m2 = few.m2.cublas / min(few.m2.fp4, few.m2.cluster)
# unit: ×
# what: speed of our better product with NVFP4 weights over cuBLAS in bf16, two rows, 28672 × 4096, cold L2
# ///
#
# /// define | small_batch.m4 = few.m4.cublas / min(few.m4.fp4, few.m4.cluster)
# unit: ×
# what: speed of our better product with NVFP4 weights over cuBLAS in bf16, four rows, 28672 × 4096, cold L2
# ///
#
# /// define | small_batch.m8 = few.m8.cublas / min(few.m8.fp4, few.m8.cluster)
# unit: ×
# what: speed of our better product with NVFP4 weights over cuBLAS in bf16, eight rows, 28672 × 4096, cold L2
# ///
#
# /// define | small_batch.m16 = few.m16.cublas / min(few.m16.fp4, few.m16.cluster)
# unit: ×
# what: speed of our better product with NVFP4 weights over cuBLAS in bf16, sixteen rows, 28672 × 4096, cold L2
# ///

# %% tags=["fold"]
from course_kernels.problem import Workload
from course_kernels.skinny_gemm.library import cublas
from course_kernels.skinny_gemm.problem import PROBLEM as WIDE
from course_kernels.skinny_gemm_fp4 import k02_fragments as fp4_rows
from course_kernels.skinny_gemm_fp4 import k03_cluster as fp4_cluster
from course_kernels.skinny_gemm_fp4.layout import values_of
from course_kernels.skinny_gemm_fp4.problem import PROBLEM as FP4
from course_kernels.skinny_gemm_w4 import k02_fragments as int4_rows
from course_kernels.skinny_gemm_w4.problem import PROBLEM as INT4

GRID = {"N": 28672, "K": 4096}
FEW = {f"m{M}": Workload.of("bfloat16", M=M, **GRID) for M in (1, 2, 4, 8, 16)}


def few_rows(w):
    """cuBLAS and the kernels with four bits, in the same rounds."""
    draw = torch.Generator("cuda").manual_seed(w.M)
    x, *packed = FP4.make_inputs(w, draw, "cuda")
    whole = (values_of(*packed[:2]) * packed[2]).to(x.dtype)
    int4 = INT4.make_inputs(w, draw, "cuda")
    calls = {
        "cublas": partial(cublas, x, whole),
        "fp4": partial(fp4_rows.skinny_gemm_fp4, x, *packed),
        "cluster": partial(fp4_cluster.skinny_gemm_fp4, x, *packed),
        "int4": partial(int4_rows.skinny_gemm_w4, *int4),
    }
    # Each against the product of exactly the numbers that it was given.
    given = {
        "cublas": (WIDE, (x, whole)),
        "fp4": (FP4, (x, *packed)),
        "cluster": (FP4, (x, *packed)),
        "int4": (INT4, int4),
    }
    for name, (problem, inputs) in given.items():
        truth = problem.reference(*inputs)
        check(f"{name} on {w.label}", calls[name](), truth, problem.max_error(w))
    return in_rounds(calls, 0.05)


def floor(size):
    """Time of so many bytes at the data sheet's bandwidth."""
    return quantity(size / card.bandwidth_gb_per_s / 1e3, "µs")


record(
    few={name: few_rows(w) for name, w in FEW.items()},
    few_floor={
        name: floor(FP4.reads_bytes(w) + FP4.writes_bytes(w))
        for name, w in FEW.items()
    },
    wide_floor=floor(WIDE.reads_bytes(FEW["m1"]) + WIDE.writes_bytes(FEW["m1"])),
    few_n=quantity(GRID["N"], how="counted"),
    few_k=quantity(GRID["K"], how="counted"),
)

# %% [markdown]
# ## The hackathon's ladder
#
# **Cited, not measured by us, and on a B200.** Yue Zhang kept a diary of the same problem [^zhang2025]. His times are geometric means over
# the three shapes. They are in no table or chart with ours: another card, another clock, and a mean where we have each shape for itself.
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
# organisers' speed of light*, with 22.4 µs over a floor of 8.63 [^gpumode-nvfp4]. Only the last one answers the question. For our climb: the
# better one of k11 and k12 has {{ max(ladder.k16384.k11.of_peak, ladder.k16384.k12.of_peak):.0%}} of the floor's speed at the first shape, and {{ over_bare_read.k16384:.2f}} times the time of a bare read: these are the two sentences that need no excuse.
# ///
#
# Set the two climbs beside each other *by idea*, not by time. Both begin with neighbours. His largest step replaced decoding by
# the card's own conversion instruction. Ours has no such instruction, so its place is taken by two numbers in a register, and then four.
# In both, more loads under way came late. His brought less than the steps before; what ours brought is [above](#more-under-way).
#
# ### CuTe-DSL or CUDA?
#
# The same author took both roads. In the Python DSL he went from about 100 to about 33 µs, in CUDA with PTX to 22.3 µs [^zhang2025]. A second
# diary of the same problem is by Amandeep Singh [^singh2026].
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
# 3. ask a model's loss what four bits cost it, and how much of the answer is luck;
# 4. ask a library what it does at the end of its range, which nibble is first, and which way its second scale goes;
# 5. count a kernel's instructions for each byte, and say from the budget when hands alone hold it back;
# 6. hear *ninety-fold*, and ask: from what, on what, and how far from the floor?
#
# It is not four bits alone. It is four bits, and a ruler that is where the numbers are.
#
# **Where this leads.** The last workshop asks the questions of this page of kernels that nobody here wrote.
# [Compiled, not run](../compiled_not_run.py) is the other half of Blackwell. [The ledger](../numbers.md) lists every number above, with its spread.
