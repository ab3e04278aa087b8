# ---
# id: week_05
# title: "Week 5: fewer bits, and drafts"
# search: {rank: 2}
# nav: "5 · Quantise, draft"
# description: "Why one large number spoils eight bits, what four bits cost a model and what they give a reader, and when a draft is worth its arithmetic."
# ---

# %% [markdown]
# # Week 5: fewer bits, and drafts
#
# /// week
# ///
#
# By the end of this week you can
#
# - round a row of numbers to eight bits by hand, and say what an outlier does to it;
# - say what four bits give in decode, by bytes, and how much of it was there on a card;
# - say when a draft that proposes tokens pays, and when it loses.
#
# ## Why this week
#
# With one reader, decode is bytes: each weight is fetched for one token. The percent of peak that a good kernel reaches there is already high, so two ways are left: fetch fewer bytes, or write more than one token for each fetch.
# The first is quantisation, and it changes what the model says. The second is a draft, and done right it changes nothing.
#
# ## Before you begin
#
# - How many bytes has a model, and how many has its cache? [Week 3](week_03.py#do).
# - Why is decode left of the ridge? [W4, two rhythms](../workshops/w4_serving.py#two-rhythms-in-one-kitchen).
# - What is a number in bf16 made of? [L6, shorter numbers](../lectures/l6_tensor_cores.py#shorter-numbers).
#
# ## Read
#
# /// reading
# dettmers2022: "Take the picture of outliers: a few columns of the activations are much larger than all others, and always the same few. Its cure is in the ideas below."
# frantar2022: "Weights alone, column by column, and the error of each rounding is pushed into the columns that are still to come. Take that step; skip the speed."
# lin2023: "Weights alone, too. Take one sentence: which weights matter is decided by the activations that meet them, so those channels are scaled up before rounding."
# leviathan2023: "Take the rule for keeping a drafted token, and the proof that nothing changes. W6 has both with a pencil."
# hf-quantization: "A table of methods: how many bits each has, on which cards it runs, and whether you can tune the model further. It is out of date within months: read it for the words."
# ///
#
# ## Ideas
#
# /// idea | Quantising after training, or during it?
# *After* (PTQ) takes a finished model and rounds its weights, some with a few hundred texts to look at. *During* (QAT) rounds in the forward pass of training, so that the weights learn to live on the grid. After costs minutes and is what nearly everybody does down to
# four bits. During costs a training run and is what is left below that.
# ///
#
# /// idea | Why do outliers break eight bits, and what does LLM.int8() do?
# One scale serves a whole row. If a single number is a hundred times as large as the others, they all fall on the few steps around zero: you do it by hand below. LLM.int8() finds the columns with such numbers, multiplies them in 16 bits, and only the rest in
# eight [^dettmers2022].
# ///
#
# /// idea | Weights alone, or activations too?
# Rounding weights alone saves *bytes*: they are widened in registers, and the multiply is done in 16 bits. That is what GPTQ and AWQ are for, and decode is where it pays. Rounding activations too lets the *multiply* run in eight bits or four, under a higher flat roof, and that is for
# prefill and large batches. [W4, shorter weights](../workshops/w4_serving.py#shorter-weights) measures where one ends and the other begins.
# ///
#
# /// idea | AWQ: which weights matter?
# Those that meet large activations. AWQ multiplies such an input channel of the weights by a factor before rounding and divides the activation by it, so these weights fall on a finer grid. Nothing is trained, nothing is kept in 16 bits.
# ///
#
# - A draft proposes tokens, the model checks them in one pass: [W6, propose, verify](../workshops/w6_frontier.py#propose-verify).
# - Acceptance rate, and when drafting loses: the same section, and [what four drafts a step are worth](../field_guide/inference.py) for many readers.
#
# ## Do
#
# Round a row. Eight numbers, one of them an outlier; the scale is the largest size divided by 127, and every number becomes a whole multiple of it.

# %%
import numpy as np

ROW = np.array([0.1, -0.3, 0.2, 0.4, -0.2, 0.3, -0.1, 60.0])


def rounded(row, most):
    """A row on a grid of whole multiples, from -most to most."""
    scale = np.abs(row).max() / most
    return scale * np.round(row / scale)


def error(row, kept):
    """Root mean square of the errors over that of the numbers."""
    return float(np.sqrt(np.mean((row - kept) ** 2) / np.mean(row**2)))


together = rounded(ROW, 127)
apart = np.append(rounded(ROW[:-1], 127), ROW[-1])  # the outlier in 16 bits
small = ROW[:-1]

# %% tags=["fold"]
from course_kernels.measure import quantity, record

record(
    step=quantity(np.abs(ROW).max() / 127),
    lost=quantity(int(np.sum(together[:-1] == 0)), how="counted"),
    small={
        "together": quantity(error(small, together[:-1])),
        "apart": quantity(error(small, apart[:-1])),
    },
)

# %% [markdown]
# /// predict | One scale for all eight. How many of the seven small numbers become zero?
# - [lost < 1.5] One at most
# - [1.5 <= lost < 5.5] Some
# - [lost >= 5.5] Nearly all of them
# /// reveal
# {{ lost:.0f}} of them: one step of the grid is {{ step:.2f}} wide, and nothing smaller than half of it survives. Of the seven, {{ small.together:.0%}} is error. With the outlier kept apart it is {{ small.apart:.2%}}.
# ///
#
# Now a model. The task is usually *load an 8B, once in 16 bits, once in eight, once in four, and measure latency, throughput and perplexity*. Here the two halves are apart, on purpose. Speed is taken from the true shape with random weights. What rounding does
# to a model is taken from [a small one that has learnt something](../a_small_model.py), since random weights have nothing to lose. What they lose is its loss on unseen text, in bits a byte: two to that power is the perplexity of a byte.
#
# /// part | docs/workshops/w5_blackwell.py#do-four-bits-ruin-a-model | table
# which: 2
# ///
#
# /// when | w4.crosses > 0
# /// predict | With one reader, four bits fetch {{ w4.step_gb.bits4:.1f}} GB for a token where sixteen fetch {{ w4.step_gb.bits16:.1f}}. How many times as many tokens a second?
# - [w4.rate.whole / w4.rate.our_step < 1.5] Less than one and a half
# - [1.5 <= w4.rate.whole / w4.rate.our_step < 2.5] About two
# - [w4.rate.whole / w4.rate.our_step >= 2.5] About three, as bytes say
# /// reveal
# {{ w4.rate.whole / w4.rate.our_step:.2f}}: {{ w4.rate.our_step:.0f}} tokens/s in 16 bits, {{ w4.rate.whole:.0f}} in four. By bytes it could be {{ w4.step_gb.bits16 / w4.step_gb.bits4:.2f}}. The kernel with few bits reaches less of its own floor: [W4](../workshops/w4_serving.py#shorter-weights) says why.
# ///
#
# And with more readers the gain of our kernels shrinks, and then turns: up to 16 rows it is one kernel, from 32 on another. The grid for gate and up of the same model, with four bits, over the library in 16:
#
# | rows | times the library's speed |
# | ---: | ---: |
# | 1 | {{ w4.lead.m1:.2f}} |
# | 16 | {{ w4.lead.m16:.2f}} |
# | 32 | {{ w4.lead.m32:.2f}} |
# | 128 | {{ w4.lead.m128:.2f}} |
# /// otherwise
# With one reader the bytes of the weights set the pace, so fewer bits can bring as many times the tokens as they are fewer bytes. How much of that comes, and what is left of it with many readers, is the kernel's affair: [W4](../workshops/w4_serving.py#shorter-weights) has the kernels, and asks your card.
# ///
#
# ## Milestone
#
# The milestone comes with [week 6](week_06.py): a card, a 7B in four bits, and how many readers fit. This one is yours until then.
#
# /// exercise | Two scales by hand | 10 minutes
# Take the seven small numbers and the outlier. With one scale of 60 / 127, what does 0.3 become, and what 0.2? Then give the small ones a scale of their own, 0.4 / 127: what does 0.3 become now, and how many bits does the second scale cost each of the eight numbers, if it has 16?
# /// answer
# One step is 0.472. 0.3 is nearer to it than to zero and becomes 0.472; 0.2 becomes 0. With a step of 0.00315, 0.3 is 95 steps, which is 0.299. Sixteen bits for eight numbers are 2 bits each: that is why blocks of 16, 32 or 128 share a scale, and why their scales are short.
# ///
#
# ## What could not run here
#
# bitsandbytes and a GPTQ checkpoint of an 8B model: this course's own kernels and engine stand in their place, and no model of that size is carried along. With them you would see the same
# two things: what is fetched sets the tokens of one reader, and what is rounded sets the perplexity. And a third, the price of doing a product in two parts.
#
# ## What next
#
# [Week 6](week_06.py) puts many readers on one card.
