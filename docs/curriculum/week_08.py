# ---
# id: week_08
# title: "Week 8: shards, short floats, recomputing"
# search: {rank: 2}
# nav: "8 · ZeRO"
# description: "What each stage of ZeRO keeps and sends, worked out for four ranks; why bf16 took over; and what recomputing costs."
# ---

# %% [markdown]
# # Week 8: shards, short floats, recomputing
#
# /// week
# ///
#
# By the end of this week you can
#
# - say what a card holds and sends with DDP and with ZeRO 1, 2 and 3;
# - say why a gradient vanishes in fp16 and not in bf16, and what loss scaling does;
# - say what recomputing activations saves, and what it costs.
#
# ## Why this week
#
# Sixteen bytes for each parameter: that is what training keeps, on every card, with plain data parallel. Most of it is the same on all of them. Giving each card a share costs traffic, and traffic costs percent of peak; this week counts both.
#
# ## Before you begin
#
# - What does data parallel send in a step? [Week 7](week_07.py#do).
# - What are reduce-scatter and all-gather? [Clusters](../field_guide/clusters.py#a-ring-by-hand).
# - What are a format's exponent and fraction for? [L6](../lectures/l6_tensor_cores.py#shorter-numbers).
#
# ## Read
#
# /// reading
# rajbhandari2020: "Take the three stages, and its table of bytes. Work the third stage's traffic out yourself: summaries often leave an all-gather out."
# fsdp2: "The documentation of `fully_shard`, which is FSDP2. The address that is often given for it is another announcement."
# micikevicius2018: "Take the three tricks: a master copy in fp32, loss scaling, sums in fp32. The second is gone with bf16."
# nvidia-mixed: "The same as a guide. Read the part on which operators stay in fp32."
# korthikanti2022: "Take what to recompute: attention's square, and not the multiplies."
# ///
#
# ## Ideas
#
# - ZeRO 1, 2, 3, and what each sends: below.
#
# /// idea | What does FSDP send, and when?
# Before a layer's forward pass its parameters are gathered, and thrown away after. Before its backward pass they are gathered *again*. Then its gradients are summed and scattered, so that each card keeps its share. How much is that in all? You count it below.
# ///
#
# /// idea | What does mixed precision keep?
# Multiplies read 16 bits. The optimizer works on a master copy in 32, since a small step added to a large weight would be rounded away in 16. So a parameter takes two bytes, its gradient two, and master, mean and square of Adam four each: sixteen.
# ///
#
# /// idea | Why bf16, and not fp16?
# Both have 16 bits. fp16 spends five on the exponent, bf16 eight, as fp32 does. So bf16 has fewer digits and reaches as far as fp32; a small gradient stays a small gradient. In fp16 it becomes zero, unless the loss is multiplied by a large number first and the gradients divided by it later, which is loss scaling.
# ///
#
# /// idea | What does recomputing save?
# The forward pass keeps what the backward pass will need: for each layer some dozen activations, and with plain attention a square. Keep only each layer's input, and do its forward pass once more when its turn comes backwards. That is a third more arithmetic, and a fraction of the memory. With FlashAttention the square is gone anyway, and you choose what is dear to keep and cheap to make.
# ///
#
# ## Do
#
# Four ranks, a model of 4096 parameters, one step of Adam. Each rank has a gradient of its own; the update must be that of the mean. Adam works on each number for itself, so a rank can make the step for its piece alone. Work out what it holds, and what it sends.

# %%
import numpy as np

RANKS, N = 4, 4096
B16, B32 = (
    2,
    4,
)  # bytes of a parameter or gradient, and of a number of the optimizer
drawn = np.random.default_rng(8)
start = drawn.standard_normal(N)
gradients = [drawn.standard_normal(N) for _ in range(RANKS)]


def adam(weights, gradient, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    """The first step: mean and square begin at zero."""
    mean, square = (1 - b1) * gradient, (1 - b2) * gradient**2
    return weights - lr * (mean / (1 - b1)) / (np.sqrt(square / (1 - b2)) + eps)


def step(stage):
    """Weights after a step, bytes that a rank holds, bytes that it sends; 0 is plain data parallel."""
    pieces = [slice(r * N // RANKS, (r + 1) * N // RANKS) for r in range(RANKS)]
    mean = sum(gradients) / RANKS
    around = (RANKS - 1) / RANKS * N * B16  # one reduce-scatter, or one all-gather
    share = {
        "parameters": stage >= 3,
        "gradients": stage >= 2,
        "optimizer": stage >= 1,
    }
    bytes_of = {"parameters": B16, "gradients": B16, "optimizer": 3 * B32}
    held = sum(
        bytes_of[what] * N / (RANKS if cut else 1) for what, cut in share.items()
    )
    if stage == 0:
        return adam(start, mean), held, 2 * around
    made = [adam(start[piece], mean[piece]) for piece in pieces]
    return np.concatenate(made), held, (3 if stage == 3 else 2) * around


runs = {stage: step(stage) for stage in range(4)}
same = all(np.array_equal(runs[0][0], weights) for weights, _, _ in runs.values())

# %% [markdown]
# And a gradient of ten to the minus eight, in fp16 and with loss scaling:

# %%
SMALL, SCALE = 1e-8, 2.0**14
plain = np.float16(SMALL)
scaled = np.float32(np.float16(SMALL * SCALE)) / SCALE

# %% tags=["fold"]
from course_kernels.measure import quantity, record

CARDS, BILLIONS = 8, 13
whole = 16 * BILLIONS
assert same  # every stage makes the same step
record(
    held={f"z{stage}": quantity(run[1] / N) for stage, run in runs.items()},
    sent={f"z{stage}": quantity(run[2] / N) for stage, run in runs.items()},
    more=quantity(runs[3][2] / runs[0][2]),
    plain=quantity(float(plain)),
    off=quantity(abs(float(scaled) - SMALL) / SMALL),
    big={
        "gb": quantity(whole, "GB"),
        "card": quantity(whole / CARDS, "GB"),
        "parameters": quantity(B16 * BILLIONS / CARDS, "GB"),
        "optimizer": quantity(3 * B32 * BILLIONS / CARDS, "GB"),
        "ddp": quantity(2 * B16 * BILLIONS, "GB"),
        "zero3": quantity(3 * B16 * BILLIONS, "GB"),
    },
)

# %% [markdown]
# A step made piece by piece is the step made at once, to the last bit: that is checked while this page is built.
#
# /// predict | ZeRO-3 with four ranks. How much more than plain data parallel does a rank send?
# - [more < 1.2] As good as nothing
# - [1.2 <= more < 1.8] Half as much again
# - [more >= 1.8] Twice as much, or more
# /// reveal
# {{ more:.2f}} times as much. What it holds goes from {{ held.z0:.0f}} bytes a parameter to {{ held.z3:.0f}}.
#
# | bytes for each parameter | holds | sends |
# | --- | ---: | ---: |
# | data parallel | {{ held.z0:.1f}} | {{ sent.z0:.1f}} |
# | ZeRO-1, the optimizer's numbers cut | {{ held.z1:.1f}} | {{ sent.z1:.1f}} |
# | ZeRO-2, and the gradients | {{ held.z2:.1f}} | {{ sent.z2:.1f}} |
# | ZeRO-3, and the parameters | {{ held.z3:.1f}} | {{ sent.z3:.1f}} |
# ///
#
# The first two stages are free: the all-reduce was a reduce-scatter and an all-gather before, and the step is made between the two. The third pays for the second gathering of the parameters.
#
# And the small gradient: in fp16 it is {{ plain:.0f}}, and nothing will ever be learnt from it. Scaled by 2¹⁴ and back it is off by {{ off * 1e6:.0f}} millionths. bf16 keeps it as it is, to its eight bits: its exponent reaches as far as that of fp32.
#
# ## Milestone
#
# /// exercise | Thirteen billion on eight cards | 10 minutes
# A 13B model on 8 cards with ZeRO-3, bf16 with Adam in fp32. How many GB of parameters, gradients and optimizer has a card? How much does a card send in a step, with the ring's small discount left out, and how much with data parallel?
# /// answer
# 16 bytes for each parameter are {{ big.gb:.0f}} GB, an eighth of that is {{ big.card:.0f}} GB a card: {{ big.parameters:.2f}} GB of parameters, as many of gradients, and {{ big.optimizer:.1f}} GB for the optimizer. The parameters are 26 GB in bf16. Two gatherings and one scattering are {{ big.zero3:.0f}} GB; data parallel's all-reduce is
# {{ big.ddp:.0f}} GB. Activations come on top of all this.
# ///
#
# ## What could not run here
#
# A model trained on two cards with DDP and FSDP2, its peak memory beside these formulas: it awaits its measurement. You would see the activations on top, and in FSDP's peak one layer's whole parameters, since they are there while it works.
#
# ## What next
#
# [Week 9](week_09.py) comes back to one card, and writes its first Triton.
