# ---
# id: week_08
# title: "Week 8: shards, short floats, recomputing"
# search: {rank: 2}
# nav: "8 · ZeRO"
# description: "What each stage of ZeRO keeps and sends, worked out for four ranks and measured on two; why bf16 took over; and what recomputing costs."
# needs: [gpus 2, capability 9.0]
# ---

# %% [markdown]
# # Week 8: shards, short floats, recomputing
#
# /// week
# ///
#
# By the end of this week you can
#
# - say what a card holds and sends with DDP and with ZeRO 1, 2 and 3, and hold a real training against it;
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


def step(stage, ranks=RANKS):
    """Weights after a step, bytes that a rank holds, bytes that it sends; 0 is plain data parallel."""
    pieces = [slice(r * N // ranks, (r + 1) * N // ranks) for r in range(ranks)]
    mean = sum(gradients[:ranks]) / ranks
    around = (ranks - 1) / ranks * N * B16  # one reduce-scatter, or one all-gather
    share = {
        "parameters": stage >= 3,
        "gradients": stage >= 2,
        "optimizer": stage >= 1,
    }
    bytes_of = {"parameters": B16, "gradients": B16, "optimizer": 3 * B32}
    held = sum(
        bytes_of[what] * N / (ranks if cut else 1) for what, cut in share.items()
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
# ### On two cards
#
# Now a model of {{ model.millions:.0f}} million parameters, trained on two cards, with weights and gradients in bf16 and an Adam that keeps its three numbers in fp32. FSDP2 is one function, `fully_shard`, and one of its arguments decides which stage it is:
#
# /// source | src/course_models/two_cards/ways.py#share_out
# ///
#
# The formulas for two ranks are those above: {{ due.ddp:.0f}}, {{ due.zero2:.0f}} and {{ due.zero3:.0f}} bytes a parameter. ZeRO-3 needs something on top, since whoever works must be whole: two blocks of 16, as the next one is fetched while one works, the gradient of one, and embedding and head with theirs. That is {{ whole_gb:.2f}} GB.
#
# Peaks are counted with {{ few:.0f}} tokens on a card, so that activations are small. Bytes are counted at each collective. Before that, all three make three steps in float64, and every weight is held against those of one card with the tokens of both.

# %% tags=["fold"]
from course_kernels.measure import samples
from course_models.config import attention_parameters, block_parameters, parameters
from course_models.two_cards.together import FEW, HALF_A_BILLION, train

STAGES = {"ddp": 0, "zero2": 2, "zero3": 3}
PAIR = 2
SHAPE = (8, 1024)  # sequences of a card, and their tokens: for the time of a step
trained = train([*STAGES], [SHAPE])
weights = parameters(HALF_A_BILLION)
block = attention_parameters(HALF_A_BILLION) + block_parameters(HALF_A_BILLION)
tables = 2 * HALF_A_BILLION.vocab * HALF_A_BILLION.width
whole_bytes = (
    2 * B16 * block + B16 * block + 2 * B16 * tables
)  # parameters of two, a gradient, both of the tables
formula = {way: step(stage, PAIR) for way, stage in STAGES.items()}
record(
    model={"millions": quantity(weights / 1e6)},
    few=quantity(FEW[0] * FEW[1], how="given"),
    batch=quantity(SHAPE[0] * SHAPE[1], how="given"),
    whole_gb=quantity(whole_bytes / 1e9, "GB"),
    due={way: quantity(run[1] / N) for way, run in formula.items()},
    peak_due={
        way: quantity(
            (run[1] / N * weights + (whole_bytes if way == "zero3" else 0)) / 1e9,
            "GB",
        )
        for way, run in formula.items()
    },
    sent_due={
        way: quantity(run[2] / N * weights / 1e6, "MB")
        for way, run in formula.items()
    },
    peak={
        way: quantity(kept.peak_bytes / 1e9, "GB", how="counted")
        for way, kept in trained.kept.items()
    },
    after={
        way: quantity(kept.held_bytes / 1e9, "GB", how="counted")
        for way, kept in trained.kept.items()
    },
    states={
        way: quantity(kept.state_bytes / 1e9, "GB", how="counted")
        for way, kept in trained.kept.items()
    },
    carried={
        way: quantity(sum(kept.sent_bytes.values()) / 1e6, "MB", how="counted")
        for way, kept in trained.kept.items()
    },
    ms={
        way: samples([us / 1e3 for us in taken], "ms", "device")
        for way, taken in trained.us[0].items()
    },
)

# %% [markdown]
# /// predict | Two cards. Which part of DDP's peak memory has ZeRO-3?
# - [peak.zero3 < 0.45 * peak.ddp] Less than 45 %
# - [0.45 * peak.ddp <= peak.zero3 < 0.65 * peak.ddp] 45 to 65 %
# - [peak.zero3 >= 0.65 * peak.ddp] 65 % or more
# /// reveal
# {{ peak.zero3 / peak.ddp:.0%}}: {{ peak.zero3:.2f}} GB of {{ peak.ddp:.2f}}.
#
# /// table
# columns: ["two cards", "peak by formula, GB", "peak, GB", "right after a step, GB", "sent by formula, MB", "sent, MB"]
# rows:
#   - ["DDP", "{{ peak_due.ddp:.2f}}", "{{ peak.ddp:.2f}}", "{{ after.ddp:.2f}}", "{{ sent_due.ddp:.0f}}", "{{ carried.ddp:.0f}}"]
#   - ["FSDP2, gathered once: ZeRO-2", "{{ peak_due.zero2:.2f}}", "{{ peak.zero2:.2f}}", "{{ after.zero2:.2f}}", "{{ sent_due.zero2:.0f}}", "{{ carried.zero2:.0f}}"]
#   - ["FSDP2, gathered twice: ZeRO-3", "{{ peak_due.zero3:.2f}}", "{{ peak.zero3:.2f}}", "{{ after.zero3:.2f}}", "{{ sent_due.zero3:.0f}}", "{{ carried.zero3:.0f}}"]
# caption: "{{ few:.0f}} tokens a card, the busier card, what PyTorch had given out for the training; what NCCL keeps for itself is not in it."
# ///
#
# /// claim | abs(peak.zero2 / peak_due.zero2 - 1) < 0.1 and abs(peak.zero3 / peak_due.zero3 - 1) < 0.1 and peak.ddp > 1.1 * peak_due.ddp
# Both peaks of FSDP2 are within a tenth of their formula. DDP's is not: it has {{ peak.ddp / peak_due.ddp:.2f}} times what the formula says. That is {{ peak.ddp - peak_due.ddp:.2f}} GB more, about as much as the gradients once again, and right after the step it is gone.
# /// otherwise
# Peak over formula: {{ peak.ddp / peak_due.ddp:.2f}} with DDP, {{ peak.zero2 / peak_due.zero2:.2f}} with ZeRO-2, {{ peak.zero3 / peak_due.zero3:.2f}} with ZeRO-3.
# ///
# ///
#
# /// claim | abs(carried.ddp / sent_due.ddp - 1) < 0.1 and abs(carried.zero2 / sent_due.zero2 - 1) < 0.1 and abs(carried.zero3 / sent_due.zero3 - 1) < 0.1
# The bytes sent are within a tenth of their formula, all three.
# /// otherwise
# Bytes over formula: {{ carried.ddp / sent_due.ddp:.2f}}, {{ carried.zero2 / sent_due.zero2:.2f}} and {{ carried.zero3 / sent_due.zero3:.2f}}.
# ///
#
# Look at the column in the middle. Right after a step weights, gradients and the optimizer's numbers are {{ states.zero2:.2f}} GB with ZeRO-2, as with ZeRO-3: FSDP2 gives back what it gathered, block by block, as the backward pass goes. So its ZeRO-2 is dear only while it works. DDP has a trap of its own. Its gradients lie in its buckets here, with `gradient_as_bucket_view=True`; by default they are kept beside them, two more bytes a parameter.
#
# /// predict | {{ batch:,.0f}} tokens on each card. How much longer than DDP's is a step of ZeRO-3?
# - [ms.zero3 < 1.03 * ms.ddp] Less than 3 %, if at all
# - [1.03 * ms.ddp <= ms.zero3 < 1.2 * ms.ddp] 3 to 20 %
# - [ms.zero3 >= 1.2 * ms.ddp] 20 % or more
# /// reveal
# {{ ms.zero3:.1f}} ms, and DDP {{ ms.ddp:.1f}} ms; ZeRO-2 takes {{ ms.zero2:.1f}}. Half as many bytes again travel, and the link could carry what is more in {{ (carried.zero3 - carried.ddp) / link_gb_s:.1f}} ms. The rest is what gathering block by block asks of card and host, and how much each of the two takes the record does not say. One part of a step becomes shorter: each card's Adam has half the numbers to read and write. Medians of 8 rounds, interleaved. When DDP's gradients hide, and when not, is in [week 7](week_07.py#on-two-cards).
# ///
#
# /// define | link_gb_s = two_card_experts.copy.mb / two_card_experts.copy.one_way.us * 1000
# unit: GB/s
# what: a copy into the neighbour's memory over NVLink, one way, 512 MiB
# ///
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
# Recomputing in the same training, and eight cards. You would see activations shrink to a layer's input, for a third more arithmetic; and with eight cards everything that is cut shrink further, while what is whole at a time stays as it is.
#
# ## What next
#
# [Week 9](week_09.py) comes back to one card, and writes its first Triton.
