# ---
# id: attention
# title: Attention, as far as it goes
# section: Make the model fast
# order: 95
# description: FlashAttention's ideas one by one, each switched off in our own kernel and timed; the backward pass; and the strongest public kernels beside it.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Attention, as far as it goes
#
# By the end of this page you can
#
# - name the four ideas that keep a card's multipliers busy, and say which wait each one removes;
# - forecast what a kernel loses without one of them, and check it: each has a switch;
# - follow the backward pass, with five multiplies where the forward pass has two, and say why one of its three answers is the
#   hard one;
# - say how much of the card's peak such a kernel reaches, and why it is not more;
# - say what a call costs before the GPU has done anything.
#
# This page follows [the workshop on FlashAttention](workshops/w1_flash_attention.py). There you wrote the loop, and met its sister
# kernel, in which some warps are specialists. Here is the third kernel of the family, [k06_wgmma](#the-whole-kernel), in CUDA
# C++: we decide every wait, every register and every byte of shared memory in it. You do not type it. You take it
# apart.

# %% [markdown]
# ## Two stoves, one cook
#
# Every table in this kitchen has two stoves. The **tensor cores** multiply. The **special-function units** take exponentials.
# One step of the loop takes 128 rows of Q past 128 keys. How much does each stove have to do?
#
# There are two matrix products to compute, each of $2 \cdot 128 \cdot 128 \cdot d$ operations. There are $128 \cdot 128$ exponentials,
# whatever d is. Put the card's two rates side by side, as the authors of FlashAttention-3 do [^shah2024], and divide.
#
# /// predict | With d = 64 instead of 128, which stove is the busier one?
# - [stoves.d64.exponentials < 0.9 * stoves.d64.products] The multiply, as before
# - [0.9 * stoves.d64.products <= stoves.d64.exponentials <= 1.1 * stoves.d64.products] Both the same
# - [stoves.d64.exponentials > 1.1 * stoves.d64.products] The exponentials
# /// reveal
# Neither, or only just. There is half as much to multiply, and there are just as many exponentials. At d = 128 the exponentials
# take {{ stoves.d128.exponentials / stoves.d128.products:.2f }} of the time of the multiply, and at d = 64 they take {{ stoves.d64.exponentials / stoves.d64.products:.2f }} of it: both stoves are busy for the same time. If one cook serves both stoves in turn, the tensor cores are cold for {{ 1 - stoves.d128.products / (stoves.d128.products + stoves.d128.exponentials):.0%}}
# of the time at d = 128, and for {{ 1 - stoves.d64.products / (stoves.d64.products + stoves.d64.exponentials):.0%}} at d = 64.
# ///

# %% tags=["fold"]
from course_kernels.measure import quantity, record

MATMUL_PER_S, EXP_PER_S = (
    989e12,
    3.9e12,
)  # an H100 SXM, as the FlashAttention-3 paper has them


def stoves(d, rows=128, keys=128):
    """Seconds of one step on each kind of unit, if the whole card did it."""
    return {
        "products": quantity(4 * rows * keys * d / MATMUL_PER_S, "s"),
        "exponentials": quantity(rows * keys / EXP_PER_S, "s"),
    }


record(stoves={"d64": stoves(64), "d128": stoves(128)})

# %% [markdown]
# So the whole art is this: **never let a stove go cold.** Here are four ideas, in the order in which they appeared.
#
# 1. **Somebody else fetches.** One thread asks the copy engine for tiles of K and V and keeps a ring of them full. The cooks
#    never walk down the hall [^shah2024].
# 2. **While mine boils, I cut.** A warpgroup starts the product of this step's queries and keys, then the product of the
#    *previous* step's weights and values, and takes its exponentials while that second product is still running.
# 3. **You boil while I cut.** Two warpgroups hand the tensor cores back and forth, so that their softmaxes do not happen at the
#    same moment.
# 4. **Do not wash what is clean.** In every step the factor that repairs the plate, $e^{m_\text{old} - m_\text{new}}$, multiplies
#    d numbers of every row, and nearly always it is 1. FlashAttention-4, in its kernel for Blackwell, repairs only when the maximum
#    has grown a lot [^dao-repo]; we do the same on Hopper.
#
# The fourth idea deserves a second look, because it seems to change the sum. It does not. The notes on the sleeve are
# measured against *some* number m; choosing the largest score so far only keeps the exponentials from overflowing. As long as
# the true maximum is at most eight powers of two away, nothing overflows. At the end both the sum and the plate are off by
# the same factor, and the division cancels it.
#
# But the division does not cancel everything. The weights are rounded to 16 bits before they meet V, and their sum is not.
# Where many weights share a row, their roundings average out. Where one weight makes up nearly all of the row, its
# rounding is the error of the answer, unless that weight is exactly 1, as it is when m is the maximum itself. So we
# also wash when the weight of a new maximum is about a quarter of its row's sum or more.
#
# How often would you wash needlessly? Draw random scores like those on this page, 16384 in each row, and let them pass 128 at a
# time.
#
# /// predict | In 128 steps, how often does a row's maximum grow at all, and how often does it grow by so much, or with such a weight, that we wash?
# - [repairs.any > 20] More than 20 times; a few times
# - [repairs.any <= 20 and repairs.large < 1] A few times; hardly ever after the first step
# - [repairs.any <= 20 and repairs.large >= 1] A few times; about as often
# /// reveal
# The maximum grows {{ repairs.any:.1f }} times in 128 steps, and we wash {{ repairs.large:.3f }} times. Everything else is
# washing what is clean.
# ///

# %%
import numpy as np

SLACK = 8  # powers of two
scores = np.random.default_rng(0).standard_normal(
    (1000, 128, 128)
)  # rows, steps, keys
weights = scores * np.log2(np.e)  # in powers of two
reached = np.maximum.accumulate(weights.max(axis=2), axis=1)
grew = np.diff(reached, axis=1) > 0

held, repaired = reached[:, 0].copy(), np.zeros(len(reached))
total = np.exp2(weights[:, 0] - held[:, None]).sum(1)
for step in range(1, reached.shape[1]):
    heaviest = np.exp2(reached[:, step] - held)
    wash = grew[:, step - 1] & ((heaviest > 2**SLACK) | (heaviest >= total / 4))
    total /= np.where(wash, heaviest, 1)
    held = np.where(wash, reached[:, step], held)
    total += np.exp2(weights[:, step] - held[:, None]).sum(1)
    repaired += wash
record(
    repairs={
        "any": quantity(float(grew.sum(1).mean())),
        "large": quantity(float(repaired.mean())),
    }
)

# %% [markdown]
# ## One idea at a time
#
# Each idea is a switch in our kernel. All the variants compute the same answer; each was checked before it was timed.
#
# A warning about this page's tables: compare within a race, never across two races. The same kernel runs on the same shape in
# two of
# them: at d = 128, all keys, it reaches {{ ideas.d128.all.tflops:.0f }} TFLOP/s in this race and {{ race.d128.full.n16384.wgmma.tflops:.0f }}
# in [the last one](#the-race). With different competitors in a round the card runs at a different clock, and here the clock
# decides: [the reason](#how-near-to-the-peak-and-why-no-nearer) is given below.
#
# /// predict | Without ideas 2, 3 and 4, with roles alone: what share of the full speed is left at d = 128?
# - [ideas.d128.roles.tflops < 0.75 * ideas.d128.all.tflops] Less than three quarters
# - [0.75 * ideas.d128.all.tflops <= ideas.d128.roles.tflops < 0.95 * ideas.d128.all.tflops] Three quarters or more, but not nearly all
# - [ideas.d128.roles.tflops >= 0.95 * ideas.d128.all.tflops] Nearly all
# /// reveal
# {{ ideas.d128.roles.tflops / ideas.d128.all.tflops:.0%}} of it at d = 128, {{ ideas.d64.roles.tflops / ideas.d64.all.tflops:.0%}} at d = 64.
#
# /// table
# columns: ["TFLOP/s, N = 16384, full", "d = 128", "d = 64"]
# rows:
#   - ["k03: no roles", "{{ ideas.d128.flash.tflops:.0f }}", "{{ ideas.d64.flash.tflops:.0f }}"]
#   - ["roles, nothing else", "{{ ideas.d128.roles.tflops:.0f }}", "{{ ideas.d64.roles.tflops:.0f }}"]
#   - ["and *you boil while I cut*", "{{ ideas.d128.turns.tflops:.0f }}", "{{ ideas.d64.turns.tflops:.0f }}"]
#   - ["or *while mine boils, I cut*", "{{ ideas.d128.overlap.tflops:.0f }}", "{{ ideas.d64.overlap.tflops:.0f }}"]
#   - ["both, a repair in every step", "{{ ideas.d128.repaired.tflops:.0f }}", "{{ ideas.d64.repaired.tflops:.0f }}"]
#   - ["all four", "{{ ideas.d128.all.tflops:.0f }}", "{{ ideas.d64.all.tflops:.0f }}"]
#   - ["and an eighth of the exponentials by hand", "{{ ideas.d128.by_hand.tflops:.0f }}", "{{ ideas.d64.by_hand.tflops:.0f }}"]
# caption: One kernel with its switches on and off, in the same rounds, on the same inputs.
# ///
# ///
#
# The last row is one more idea, which FlashAttention-4 also uses on Blackwell [^dao-repo]: where the special-function
# units are the bottleneck, compute some of the exponentials with multiplications. $2^x$ is a shift by the whole part of
# x times a polynomial in the rest. Three multiply-adds are enough, since the weights are rounded to eight bits right
# afterwards.
#
# Read the table from top to bottom, and be strict: which of the ideas paid off?
#
# /// claim | ideas.d128.overlap.tflops > 1.05 * ideas.d128.roles.tflops
# At d = 128 the second idea paid off: with roles alone the kernel reaches {{ ideas.d128.roles.tflops:.0f }} TFLOP/s, and
# with products that run alongside the softmax {{ ideas.d128.overlap.tflops:.0f }}.
# /// otherwise
# Even the second idea hardly did: {{ ideas.d128.roles.tflops:.0f }} TFLOP/s without it and {{ ideas.d128.overlap.tflops:.0f }} with it, at d = 128.
# ///
#
# /// claim | ideas.d128.turns.tflops < 1.05 * ideas.d128.roles.tflops and ideas.d64.turns.tflops < 1.05 * ideas.d64.roles.tflops
# The third, *you boil while I cut*, did **not** pay off, or not enough for this race to show it, either at d = 128 or at d = 64.
# The authors of FlashAttention-3 gain from it [^shah2024]. In our kernel the warpgroups fall out of step by themselves,
# and handing over the turn costs two barriers in every step. That is a guess; a count of the waits at those barriers
# would settle it.
# /// otherwise
# The third, *you boil while I cut*: {{ ideas.d128.turns.tflops:.0f }} TFLOP/s at d = 128, {{ ideas.d64.turns.tflops:.0f }} at d = 64, where roles alone make
# {{ ideas.d128.roles.tflops:.0f }} and {{ ideas.d64.roles.tflops:.0f }}.
# ///
#
# /// claim | ideas.d64.all.tflops > ideas.d64.repaired.tflops
# The fourth pays where there is little to multiply: at d = 64 needless washing kept us at {{ ideas.d64.repaired.tflops:.0f }} TFLOP/s, and without it we reach {{ ideas.d64.all.tflops:.0f }}.
# /// otherwise
# The fourth: {{ ideas.d64.repaired.tflops:.0f }} TFLOP/s with a repair in every step, {{ ideas.d64.all.tflops:.0f }} without, at d = 64.
# ///
#
# /// claim | ideas.d64.by_hand.tflops < ideas.d64.all.tflops and ideas.d128.by_hand.tflops < ideas.d128.all.tflops
# And computing exponentials by hand is a **loss** on this card, at both sizes. On paper the two stoves are level at d =
# 64; but a multiply-add takes its turn at the issue slot like any other instruction, and each exponential needs several
# of them.
# /// otherwise
# Exponentials by hand: {{ ideas.d64.by_hand.tflops:.0f }} TFLOP/s against {{ ideas.d64.all.tflops:.0f }} at d = 64.
# ///

# %%
from dataclasses import replace

from course_kernels.attention import k03_flash, k06_wgmma
from course_kernels.attention.problem import PROBLEM
from course_kernels.measure import Competitor, compare
from course_kernels.problem import Workload


def with_tile(name, **changes):
    """Our kernel with some of its switches turned."""

    def attention(q, k, v, *, causal=False):
        tile = k06_wgmma.tile_for(q.shape[3], k.shape[2])
        tile = replace(tile, **changes)
        return k06_wgmma.attend(q, k, v, causal=causal, tile=tile)[0]

    return Competitor(name, PROBLEM, attention)


VARIANTS = {
    "flash": k03_flash,
    **{
        name: with_tile(
            name, overlap=overlap, turns=turns, slack=slack, by_hand=by_hand
        )
        for name, overlap, turns, slack, by_hand in (
            ("roles", False, False, 0, 0),
            ("turns", False, True, 0, 0),
            ("overlap", True, False, 0, 0),
            ("repaired", True, True, 0, 0),
            ("all", True, True, 8, 0),
            ("by_hand", True, True, 8, 2),
        )
    },
}


def long(D, causal):
    """One sequence of 16384, the width of the model kept: 16 heads of 128 numbers or 32 of 64."""
    return Workload.of("bfloat16", B=1, H=2048 // D, N=16384, D=D, causal=causal)


record(
    ideas={
        f"d{D}": compare(VARIANTS, long(D, False), seconds=0.1) for D in (128, 64)
    }
)

# %% [markdown]
# ## The last guest to be seated
#
# With a causal mask the rows have unequal amounts of work: the first block of 128 rows meets one tile of keys, and the last one meets
# all of them. The guest who is seated last decides when the kitchen closes.
#
# /// predict | The longest blocks first, or in the order of their numbers, with the shortest first: what is the difference?
# - [order.longest.tflops < 1.03 * order.numbered.tflops] Hardly any
# - [1.03 * order.numbered.tflops <= order.longest.tflops < 1.15 * order.numbered.tflops] Between 3 and 15 %
# - [order.longest.tflops >= 1.15 * order.numbered.tflops] More than that
# /// reveal
# {{ order.longest.tflops:.0f }} TFLOP/s with the longest first, {{ order.numbered.tflops:.0f }} in the order of their numbers. A
# long block that begins last keeps one table busy while all the others are being cleared. And the order has a second rule: heads
# whose keys and values fit in L2 together run at the same time.
#
# The order determines which piece is next, not which block takes it. Here a block that has finished asks for more: a counter in memory
# hands out the numbers, and the thread that fetches asks for the next one long before it is needed. The alternative is
# to deal everything out beforehand, back and forth, so that the block with the longest piece gets the shortest next.
# That reaches
# {{ order.dealt.tflops:.0f }} TFLOP/s. But then the shares are equal only if the lengths of the pieces form one falling line, and heads cannot
# be kept together.
#
# /// claim | 0.95 * order.dealt.tflops < order.longest.tflops < 1.05 * order.dealt.tflops
# On this shape the two are level. Asking is meant for shapes whose lengths do not form such a line, above all for packed sequences: texts of
# different lengths, one after the other.
# /// otherwise
# On this shape, asking reaches {{ order.longest.tflops / order.dealt.tflops:.2f }} times the speed of dealing out. Asking is meant
# for shapes whose lengths do not form such a line, above all for packed sequences: texts of different lengths, one after the other.
# ///
# ///

# %%
ORDERS = {
    name: with_tile(name, order=order, asks=asks)
    for name, order, asks in (
        ("longest", True, True),
        ("dealt", True, False),
        ("numbered", False, True),
    )
}
record(order=compare(ORDERS, long(128, True), seconds=0.1))

# %% [markdown]
# ## The race
#
# Now we race others: cuDNN, as it comes with PyTorch; FlashAttention-3, as it comes with FlashInfer; and FlashAttention-4 from
# its own repository [^dao-repo], {{ peers.words }}. They run on one card, on one set of inputs, in turns.
#
# /// predict | At N = 16384, d = 128, full: where does a kernel of a few hundred lines end up against cuDNN?
# - [best_over_cudnn.d128.full < 0.97] Behind it
# - [0.97 <= best_over_cudnn.d128.full < 1.15] Level with it, or a little ahead
# - [best_over_cudnn.d128.full >= 1.15] Far ahead of it
# /// reveal
# {{ best_over_cudnn.d128.full:.2f }} times its speed for full attention and {{ best_over_cudnn.d128.causal:.2f }} times for causal;
# at d = 64, {{ best_over_cudnn.d64.full:.2f }} and {{ best_over_cudnn.d64.causal:.2f }} times.
#
# /// define | best_over_cudnn.d128.full = race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.cudnn.tflops
# unit: ×
# what: k06_wgmma over SDPA cuDNN, N = 16384, d = 128, bf16, full
# ///
#
# /// define | best_over_cudnn.d128.causal = race.d128.causal.n16384.wgmma.tflops / race.d128.causal.n16384.cudnn.tflops
# unit: ×
# what: k06_wgmma over SDPA cuDNN, N = 16384, d = 128, bf16, causal
# ///
#
# /// define | best_over_cudnn.d64.full = race.d64.full.n16384.wgmma.tflops / race.d64.full.n16384.cudnn.tflops
# unit: ×
# what: k06_wgmma over SDPA cuDNN, N = 16384, d = 64, bf16, full
# ///
#
# /// define | best_over_cudnn.d64.causal = race.d64.causal.n16384.wgmma.tflops / race.d64.causal.n16384.cudnn.tflops
# unit: ×
# what: k06_wgmma over SDPA cuDNN, N = 16384, d = 64, bf16, causal
# ///
#
# /// table
# columns: ["TFLOP/s", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["**k06_wgmma**, N = 1024", "{{ race.d128.full.n1024.wgmma.tflops:.0f }}", "{{ race.d128.causal.n1024.wgmma.tflops:.0f }}",
#      "{{ race.d64.full.n1024.wgmma.tflops:.0f }}", "{{ race.d64.causal.n1024.wgmma.tflops:.0f }}"]
#   - ["SDPA cuDNN, N = 1024", "{{ race.d128.full.n1024.cudnn.tflops:.0f }}", "{{ race.d128.causal.n1024.cudnn.tflops:.0f }}",
#      "{{ race.d64.full.n1024.cudnn.tflops:.0f }}", "{{ race.d64.causal.n1024.cudnn.tflops:.0f }}"]
#   - ["**k06_wgmma**, N = 4096", "{{ race.d128.full.n4096.wgmma.tflops:.0f }}", "{{ race.d128.causal.n4096.wgmma.tflops:.0f }}",
#      "{{ race.d64.full.n4096.wgmma.tflops:.0f }}", "{{ race.d64.causal.n4096.wgmma.tflops:.0f }}"]
#   - ["SDPA cuDNN, N = 4096", "{{ race.d128.full.n4096.cudnn.tflops:.0f }}", "{{ race.d128.causal.n4096.cudnn.tflops:.0f }}",
#      "{{ race.d64.full.n4096.cudnn.tflops:.0f }}", "{{ race.d64.causal.n4096.cudnn.tflops:.0f }}"]
#   - ["**k06_wgmma**, N = 16384", "{{ race.d128.full.n16384.wgmma.tflops:.0f }}", "{{ race.d128.causal.n16384.wgmma.tflops:.0f }}",
#      "{{ race.d64.full.n16384.wgmma.tflops:.0f }}", "{{ race.d64.causal.n16384.wgmma.tflops:.0f }}"]
#   - ["SDPA cuDNN, N = 16384", "{{ race.d128.full.n16384.cudnn.tflops:.0f }}", "{{ race.d128.causal.n16384.cudnn.tflops:.0f }}",
#      "{{ race.d64.full.n16384.cudnn.tflops:.0f }}", "{{ race.d64.causal.n16384.cudnn.tflops:.0f }}"]
# caption: B · N = 16384, 16 heads of 128 or 32 of 64. For causal attention, half of the operations are counted.
# ///
#
# /// when | peers.fa4 == 1
# /// chart | lines
# title: Attention forward, bf16, d = 128, causal
# x: N
# y: tflops
# x_label: N, with B·N = 16384 and 16 heads
# y_label: TFLOP/s
# x_scale: log2
# series:
#   - {name: race.d128.causal.*.wgmma, label: k06_wgmma}
#   - {name: race.d128.causal.*.specialised, label: k04 with specialists}
#   - {name: race.d128.causal.*.cudnn, label: SDPA cuDNN}
#   - {name: race.d128.causal.*.sdpa_flash, label: SDPA flash}
#   - {name: race.d128.causal.*.fa4, label: FlashAttention-4}
# alt: >-
#   TFLOP/s against sequence length, five rising lines. At N = 16384, k06_wgmma reaches {{ race.d128.causal.n16384.wgmma.tflops:.0f }},
#   the kernel with specialists {{ race.d128.causal.n16384.specialised.tflops:.0f }}, SDPA cuDNN {{ race.d128.causal.n16384.cudnn.tflops:.0f }},
#   SDPA flash {{ race.d128.causal.n16384.sdpa_flash.tflops:.0f }} and FlashAttention-4 {{ race.d128.causal.n16384.fa4.tflops:.0f }}.
# caption: On short rows everybody loses. The work that is done once at the beginning and once at the end of a row is spread over fewer tiles.
# ///
# /// otherwise
# /// chart | lines
# title: Attention forward, bf16, d = 128, causal
# x: N
# y: tflops
# x_label: N, with B·N = 16384 and 16 heads
# y_label: TFLOP/s
# x_scale: log2
# series:
#   - {name: race.d128.causal.*.wgmma, label: k06_wgmma}
#   - {name: race.d128.causal.*.specialised, label: k04 with specialists}
#   - {name: race.d128.causal.*.cudnn, label: SDPA cuDNN}
#   - {name: race.d128.causal.*.sdpa_flash, label: SDPA flash}
# alt: >-
#   TFLOP/s against sequence length, four rising lines. At N = 16384, k06_wgmma reaches {{ race.d128.causal.n16384.wgmma.tflops:.0f }},
#   the kernel with specialists {{ race.d128.causal.n16384.specialised.tflops:.0f }}, SDPA cuDNN {{ race.d128.causal.n16384.cudnn.tflops:.0f }}
#   and SDPA flash {{ race.d128.causal.n16384.sdpa_flash.tflops:.0f }}.
# caption: On short rows everybody loses. The work that is done once at the beginning and once at the end of a row is spread over fewer tiles.
# ///
# ///
# ///
#
# /// claim | best_over_cudnn.d128.causal > 1.02 and best_over_cudnn.d64.full > 1.02 and best_over_cudnn.d64.causal > 1.02
# Long rows are where the ideas pay: with a causal mask and at d = 64 k06_wgmma is ahead of SDPA cuDNN at N = 16384.
# /// otherwise
# The ideas should pay on long rows. At N = 16384, k06_wgmma reaches {{ best_over_cudnn.d128.causal:.2f }} times the speed of SDPA
# cuDNN at d = 128 with a causal mask. At d = 64 it reaches {{ best_over_cudnn.d64.full:.2f }} times for full attention, and
# {{ best_over_cudnn.d64.causal:.2f }} times for causal.
# ///
#
# And the shortest rows at d = 64, all keys? k06_wgmma reaches
# {{ race.d64.full.n1024.wgmma.tflops / race.d64.full.n1024.cudnn.tflops:.0%}} of what SDPA cuDNN reaches at N = 1024.
# A row of 1024 keys takes eight steps, and the work that is done once at its beginning and once at its end is spread
# over those eight.
#
# /// when | peers.fa4 == 1
# /// predict | FlashAttention-4, the source of two of the ideas, ran in the same rounds. At N = 16384, d = 128, full: where does k06_wgmma end up against it?
# - [race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops < 0.85] Behind it, by more than 15 %
# - [0.85 <= race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops <= 1.02] Behind it by 15 % at most, or level with it
# - [race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops > 1.02] Ahead of it, by more than 2 %
# /// reveal
# /// claim | race.d128.full.n16384.wgmma.tflops < race.d128.full.n16384.fa4.tflops
# It loses: here FlashAttention-4 is ahead.
# /// otherwise
# This race does not say who is ahead.
# ///
#
# FlashAttention-4 reaches {{ race.d128.full.n16384.fa4.tflops:.0f }} TFLOP/s, and k06_wgmma
# {{ race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops:.2f }} times that. For causal
# attention the factor is {{ race.d128.causal.n16384.wgmma.tflops / race.d128.causal.n16384.fa4.tflops:.2f }}; at
# d = 64 the two factors are {{ race.d64.full.n16384.wgmma.tflops / race.d64.full.n16384.fa4.tflops:.2f }} and {{ race.d64.causal.n16384.wgmma.tflops / race.d64.causal.n16384.fa4.tflops:.2f }}.
#
# /// table
# columns: ["TFLOP/s", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["N = 1024", "{{ race.d128.full.n1024.fa4.tflops:.0f }}", "{{ race.d128.causal.n1024.fa4.tflops:.0f }}",
#      "{{ race.d64.full.n1024.fa4.tflops:.0f }}", "{{ race.d64.causal.n1024.fa4.tflops:.0f }}"]
#   - ["N = 4096", "{{ race.d128.full.n4096.fa4.tflops:.0f }}", "{{ race.d128.causal.n4096.fa4.tflops:.0f }}",
#      "{{ race.d64.full.n4096.fa4.tflops:.0f }}", "{{ race.d64.causal.n4096.fa4.tflops:.0f }}"]
#   - ["N = 16384", "{{ race.d128.full.n16384.fa4.tflops:.0f }}", "{{ race.d128.causal.n16384.fa4.tflops:.0f }}",
#      "{{ race.d64.full.n16384.fa4.tflops:.0f }}", "{{ race.d64.causal.n16384.fa4.tflops:.0f }}"]
# caption: FlashAttention-4, in the same rounds as the table above.
# ///
#
# And how does k06_wgmma do against the better of the two, SDPA cuDNN or FlashAttention-4? Above one, k06_wgmma is the
# fastest of the three; below one, it is not.
#
# /// table
# columns: ["ratio", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["N = 1024", "{{ race.d128.full.n1024.wgmma.tflops / max(race.d128.full.n1024.cudnn.tflops, race.d128.full.n1024.fa4.tflops):.2f }}", "{{ race.d128.causal.n1024.wgmma.tflops / max(race.d128.causal.n1024.cudnn.tflops, race.d128.causal.n1024.fa4.tflops):.2f }}",
#      "{{ race.d64.full.n1024.wgmma.tflops / max(race.d64.full.n1024.cudnn.tflops, race.d64.full.n1024.fa4.tflops):.2f }}", "{{ race.d64.causal.n1024.wgmma.tflops / max(race.d64.causal.n1024.cudnn.tflops, race.d64.causal.n1024.fa4.tflops):.2f }}"]
#   - ["N = 4096", "{{ race.d128.full.n4096.wgmma.tflops / max(race.d128.full.n4096.cudnn.tflops, race.d128.full.n4096.fa4.tflops):.2f }}", "{{ race.d128.causal.n4096.wgmma.tflops / max(race.d128.causal.n4096.cudnn.tflops, race.d128.causal.n4096.fa4.tflops):.2f }}",
#      "{{ race.d64.full.n4096.wgmma.tflops / max(race.d64.full.n4096.cudnn.tflops, race.d64.full.n4096.fa4.tflops):.2f }}", "{{ race.d64.causal.n4096.wgmma.tflops / max(race.d64.causal.n4096.cudnn.tflops, race.d64.causal.n4096.fa4.tflops):.2f }}"]
#   - ["N = 16384", "{{ race.d128.full.n16384.wgmma.tflops / max(race.d128.full.n16384.cudnn.tflops, race.d128.full.n16384.fa4.tflops):.2f }}", "{{ race.d128.causal.n16384.wgmma.tflops / max(race.d128.causal.n16384.cudnn.tflops, race.d128.causal.n16384.fa4.tflops):.2f }}",
#      "{{ race.d64.full.n16384.wgmma.tflops / max(race.d64.full.n16384.cudnn.tflops, race.d64.full.n16384.fa4.tflops):.2f }}", "{{ race.d64.causal.n16384.wgmma.tflops / max(race.d64.causal.n16384.cudnn.tflops, race.d64.causal.n16384.fa4.tflops):.2f }}"]
# caption: k06_wgmma over the better of the two, from the tables above.
# ///
#
# /// claim | race.d128.causal.n16384.wgmma.tflops < race.d128.causal.n16384.fa4.tflops and race.d64.full.n16384.wgmma.tflops < race.d64.full.n16384.fa4.tflops and race.d64.causal.n16384.wgmma.tflops < race.d64.causal.n16384.fa4.tflops
# With a causal mask and at d = 64 k06_wgmma loses to FlashAttention-4 at N = 16384, too.
# /// otherwise
# With a causal mask and at d = 64 it depends on the column: the last row of the table says which of the two it is.
# ///
#
# /// claim | race.d128.full.n1024.wgmma.tflops > race.d128.full.n1024.fa4.tflops and race.d128.causal.n1024.wgmma.tflops > race.d128.causal.n1024.fa4.tflops and race.d64.full.n1024.wgmma.tflops > race.d64.full.n1024.fa4.tflops and race.d64.causal.n1024.wgmma.tflops > race.d64.causal.n1024.fa4.tflops
# On the shortest rows k06_wgmma wins: at N = 1024 it is ahead of FlashAttention-4, at d = 128 and at d = 64, with a causal
# mask and without.
# /// otherwise
# On the shortest rows, at N = 1024, k06_wgmma reaches {{ race.d128.full.n1024.wgmma.tflops / race.d128.full.n1024.fa4.tflops:.2f }} times the speed of
# FlashAttention-4 at d = 128 for full attention, and {{ race.d128.causal.n1024.wgmma.tflops / race.d128.causal.n1024.fa4.tflops:.2f }} times for causal. At d = 64
# the factors are {{ race.d64.full.n1024.wgmma.tflops / race.d64.full.n1024.fa4.tflops:.2f }} and {{ race.d64.causal.n1024.wgmma.tflops / race.d64.causal.n1024.fa4.tflops:.2f }}.
# ///
# ///
# /// otherwise
# FlashAttention-4, the source of two of the ideas, was **not raced** in this run, because it was not installed. So the strongest
# competitor may be missing here.
# ///
#
# /// when | peers.fa3 == 1
# FlashAttention-3, as it comes with FlashInfer: {{ race.d128.full.n16384.fa3.tflops:.0f }} TFLOP/s for full attention
# and {{ race.d128.causal.n16384.fa3.tflops:.0f }} for causal at d = 128, and
# {{ race.d64.full.n16384.fa3.tflops:.0f }} and {{ race.d64.causal.n16384.fa3.tflops:.0f }} at d = 64. It takes one
# sequence at a time, so it ran only at N = 16384.
#
# /// claim | 0.9 < race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa3.tflops < 1.1 and race.d128.causal.n16384.wgmma.tflops > race.d128.causal.n16384.fa3.tflops and race.d64.full.n16384.wgmma.tflops > race.d64.full.n16384.fa3.tflops and race.d64.causal.n16384.wgmma.tflops > race.d64.causal.n16384.fa3.tflops
# At d = 128, all keys, k06_wgmma is level with it, within a tenth. With a causal mask and at d = 64 k06_wgmma is ahead of
# FlashAttention-3.
# /// otherwise
# At d = 128, k06_wgmma reaches {{ race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa3.tflops:.2f }} times its speed for full attention, and
# {{ race.d128.causal.n16384.wgmma.tflops / race.d128.causal.n16384.fa3.tflops:.2f }} times for causal. At d = 64 the factors are
# {{ race.d64.full.n16384.wgmma.tflops / race.d64.full.n16384.fa3.tflops:.2f }} and {{ race.d64.causal.n16384.wgmma.tflops / race.d64.causal.n16384.fa3.tflops:.2f }}.
# ///
# /// otherwise
# FlashAttention-3 was **not raced** in this run, because FlashInfer, which contains it, was not installed.
# ///
#
# ### How near to the peak, and why no nearer?
#
# The data sheet promises {{ gpu.bf16_tflops:,.0f}} TFLOP/s in bf16. Of that, k06_wgmma reaches:
#
# /// table
# columns: ["% of peak", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["N = 1024", "{{ race.d128.full.n1024.wgmma.of_peak:.0%}}", "{{ race.d128.causal.n1024.wgmma.of_peak:.0%}}", "{{ race.d64.full.n1024.wgmma.of_peak:.0%}}", "{{ race.d64.causal.n1024.wgmma.of_peak:.0%}}"]
#   - ["N = 4096", "{{ race.d128.full.n4096.wgmma.of_peak:.0%}}", "{{ race.d128.causal.n4096.wgmma.of_peak:.0%}}", "{{ race.d64.full.n4096.wgmma.of_peak:.0%}}", "{{ race.d64.causal.n4096.wgmma.of_peak:.0%}}"]
#   - ["N = 16384", "{{ race.d128.full.n16384.wgmma.of_peak:.0%}}", "{{ race.d128.causal.n16384.wgmma.of_peak:.0%}}", "{{ race.d64.full.n16384.wgmma.of_peak:.0%}}", "{{ race.d64.causal.n16384.wgmma.of_peak:.0%}}"]
# caption: The same race as above. For causal attention, half of the operations are counted.
# ///
#
# /// when | peers.fa4 == 1
# FlashAttention-4 does not get much nearer to that peak: at d = 128, full, it reaches {{ race.d128.full.n4096.fa4.of_peak:.0%}} at
# N = 4096 and {{ race.d128.full.n16384.fa4.of_peak:.0%}} at N = 16384. So what holds all of them back?
# ///
#
# **The clock, first.**
#
# /// claim | race.d128.full.n16384.wgmma.sm_mhz < 0.95 * sheet_mhz and ideas.d128.all.sm_mhz < 0.95 * sheet_mhz
# The peak on the data sheet assumes a clock of {{ sheet_mhz:.0f}} MHz [^lockwood-h100]. In all of these races the card
# reported, while k06_wgmma ran, that it was at its power limit, and there it lowers the clock. At N = 16384, d = 128, full, a
# reading for k06_wgmma gives {{ race.d128.full.n16384.wgmma.power_w:.0f}} W and
# {{ race.d128.full.n16384.wgmma.sm_mhz:.0f}} MHz, and one in the race of the ideas gives {{ ideas.d128.all.sm_mhz:.0f}} MHz. Of
# what the tensor cores can do at those clocks, k06_wgmma reaches {{ race.d128.full.n16384.wgmma.of_peak * sheet_mhz / race.d128.full.n16384.wgmma.sm_mhz:.0%}}
# and {{ ideas.d128.all.of_peak * sheet_mhz / ideas.d128.all.sm_mhz:.0%}}. A reading is one moment of a clock that
# moves, so trust these two percentages no further than they agree.
# /// otherwise
# The peak on the data sheet assumes a clock of {{ sheet_mhz:.0f}} MHz [^lockwood-h100], and a reading in this race said
# {{ race.d128.full.n16384.wgmma.sm_mhz:.0f}} MHz. On this card the clock is not what is missing.
# ///
#
# /// define | sheet_mhz = 1830
# unit: MHz
# what: the clock that the data sheet's bf16 peak of an H100 assumes [^lockwood-h100]
# ///
#
# **Then the second stove.** Served in turn, the two stoves would leave the tensor cores busy
# for {{ stoves.d128.products / (stoves.d128.products + stoves.d128.exponentials):.0%}} of the time at d = 128 and for
# {{ stoves.d64.products / (stoves.d64.products + stoves.d64.exponentials):.0%}} at d = 64, whatever the clock. At d =
# 64 the kernel reaches {{ race.d64.full.n16384.wgmma.of_peak:.0%}} of peak, or
# {{ race.d64.full.n16384.wgmma.of_peak * sheet_mhz / race.d64.full.n16384.wgmma.sm_mhz:.0%}} at the clock that was
# read: only a little better than taking turns. At d = 128 it exceeds what taking turns allows. So the overlap succeeds at
# d = 128, while at d = 64 most of the gain is still to be won.
#
# **And on short rows** the beginning and the end weigh more, as described above.
#
# And why are longer rows not faster, where the beginning and the end weigh less? At d = 128, all keys, N = 16384 reaches
# {{ race.d128.full.n16384.wgmma.tflops:.0f }}
# TFLOP/s where N = 4096 reaches {{ race.d128.full.n4096.wgmma.tflops:.0f }}, and with half the square, causal, it is
# {{ race.d128.causal.n16384.wgmma.tflops:.0f }}.
#
# /// claim | 0.9 < race.d128.full.n16384.wgmma.tflops / race.d128.full.n4096.wgmma.tflops < 1.1 and 0.9 < race.d128.causal.n16384.wgmma.tflops / race.d128.full.n4096.wgmma.tflops < 1.1
# On this card the three are level, within a tenth.
# /// otherwise
# On this card the three are not level.
# ///
#
# A step does the same work in all three cases. One launch lasts
# {{ race.d128.full.n16384.wgmma.ms:.1f}} ms in the first case, {{ race.d128.full.n4096.wgmma.ms:.1f}} ms in the second, and
# {{ race.d128.causal.n16384.wgmma.ms:.1f}} ms in the third: the longer a launch lasts, the more time the clock has to fall
# at the power limit. That would eat up what a longer row saves, but it is a guess. With one reading of the clock for each
# competitor, and no counters, this run cannot say more; nor can it say how the rest of the peak is divided among barriers,
# issue slots and the way to the first tile.
#
# /// when | peers.fa4 == 1
# /// claim | race.d128.full.n16384.fa4.tflops > 0.98 * race.d128.full.n4096.fa4.tflops
# And the clock need not be all of it. At the same power limit, in the same rounds, FlashAttention-4 does not fall back on longer
# rows: {{ race.d128.full.n4096.fa4.tflops:.0f }} TFLOP/s at N = 4096, and {{ race.d128.full.n16384.fa4.tflops:.0f }} at N = 16384.
# /// otherwise
# In the same rounds FlashAttention-4 goes from {{ race.d128.full.n4096.fa4.tflops:.0f }} TFLOP/s at N = 4096 to
# {{ race.d128.full.n16384.fa4.tflops:.0f }} at N = 16384.
# ///
# ///

# %%
from course_kernels.attention import k04_specialised, library, peers
from course_kernels.measure import text

INSTALLED = peers.installed()
RACERS = {
    "wgmma": k06_wgmma,
    "cudnn": library.sdpa_cudnn,
    **{name: peer for name, peer in INSTALLED.items() if name == "fa4"},
}
IN_THE_CHART = {"specialised": k04_specialised, "sdpa_flash": library.sdpa_flash}


def race(N, D, causal):
    """All kernels in turns. FlashInfer takes one sequence only."""
    w = Workload.of("bfloat16", B=16384 // N, H=2048 // D, N=N, D=D, causal=causal)
    kernels = RACERS | (IN_THE_CHART if D == 128 and causal else {})
    if N == 16384 and "fa3" in INSTALLED:
        kernels = kernels | {"fa3": INSTALLED["fa3"]}
    return compare(kernels, w, seconds=0.15 if N == 16384 else 0.07)


record(
    peers={
        "fa3": quantity(int("fa3" in INSTALLED)),
        "fa4": quantity(int("fa4" in INSTALLED)),
        "words": text(peers.in_words()),
    },
    race={
        f"d{D}": {
            name: {f"n{N}": race(N, D, causal) for N in (1024, 4096, 16384)}
            for name, causal in (("full", False), ("causal", True))
        }
        for D in (128, 64)
    },
)

# %% [markdown]
# ## The backward pass
#
# To learn, a model needs the backward pass, which takes the gradient of the loss at the output and works out the gradients at Q, K and V.
# Nobody kept the square. So we compute the square again, tile by tile, from Q, K and one number for each row that the forward pass
# saved: L,
# the logarithm of the sum of its exponentials, *log-sum-exp* for short. Write dX for the gradient of the loss at X. Then there are five
# products where the forward pass had two:
#
# $$S = QK^\top, \quad dP = dO\,V^\top,$$
#
# $$dV = P^\top dO, \quad dK = dS^\top Q, \quad dQ = dS\,K$$
#
# with $P = e^{S - L}$ and $dS = P \circ (dP - D)$. The ring multiplies element by element, and $D$ is one number for each row, the sum
# of $dO \circ O$.
#
# Why D? The shares of a row always add up to 1: what one gains, the others lose. So all that matters about each dP is how far it is
# above the mean of its row, weighted by the shares. That mean is the sum of $P \circ dP$ over the row. And since $O = PV$, that is the
# sum of $dO \circ O$, which needs no square.
#
# Look at who owns what. A block that owns some *keys* has all it needs for their dK and dV: every row passes by, and the sums
# stay in its registers. But dQ belongs to the *rows*, and every block of keys has a part of dQ. Somebody must add the parts up:
# either a second kernel makes S and dP once more, which is seven products instead of five, or all blocks add to one sum in L2.
#
# Our kernel writes its tiles with the keys down and the rows across, at first sight the wrong way round. That way P and dS come
# out of the tensor cores exactly as the next product needs its left operand, and never leave the registers. Only dS must be shown
# to the other warpgroup, through shared memory, for dQ.
#
# /// predict | Five products against two. How does the backward pass do against PyTorch's FlashAttention-2?
# - [bwd_over_sdpa_flash.full < 1.1] About as fast
# - [1.1 <= bwd_over_sdpa_flash.full < 1.5] Somewhat faster, not one and a half times
# - [bwd_over_sdpa_flash.full >= 1.5] Faster than that
# /// reveal
# {{ bwd_over_sdpa_flash.full:.2f }} times its speed for full attention and {{ bwd_over_sdpa_flash.causal:.2f }} times
# for causal, at d = 128.
#
# /// define | bwd_over_sdpa_flash.full = backward.d128.full.wgmma.tflops / backward.d128.full.sdpa_flash.tflops
# unit: ×
# what: backward, k04_wgmma over SDPA flash, N = 16384, d = 128, bf16, full
# ///
#
# /// define | bwd_over_sdpa_flash.causal = backward.d128.causal.wgmma.tflops / backward.d128.causal.sdpa_flash.tflops
# unit: ×
# what: backward, k04_wgmma over SDPA flash, N = 16384, d = 128, bf16, causal
# ///
#
# /// table
# columns: ["TFLOP/s, N = 16384", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["**k04_wgmma**", "{{ backward.d128.full.wgmma.tflops:.0f }}", "{{ backward.d128.causal.wgmma.tflops:.0f }}",
#      "{{ backward.d64.full.wgmma.tflops:.0f }}", "{{ backward.d64.causal.wgmma.tflops:.0f }}"]
#   - ["the same, always in one order", "{{ backward.d128.full.in_order.tflops:.0f }}", "{{ backward.d128.causal.in_order.tflops:.0f }}",
#      "{{ backward.d64.full.in_order.tflops:.0f }}", "{{ backward.d64.causal.in_order.tflops:.0f }}"]
#   - ["k03, in Triton", "{{ backward.d128.full.one_pass.tflops:.0f }}", "{{ backward.d128.causal.one_pass.tflops:.0f }}",
#      "{{ backward.d64.full.one_pass.tflops:.0f }}", "{{ backward.d64.causal.one_pass.tflops:.0f }}"]
#   - ["SDPA cuDNN", "{{ backward.d128.full.cudnn.tflops:.0f }}", "{{ backward.d128.causal.cudnn.tflops:.0f }}",
#      "{{ backward.d64.full.cudnn.tflops:.0f }}", "{{ backward.d64.causal.cudnn.tflops:.0f }}"]
#   - ["SDPA flash", "{{ backward.d128.full.sdpa_flash.tflops:.0f }}", "{{ backward.d128.causal.sdpa_flash.tflops:.0f }}",
#      "{{ backward.d64.full.sdpa_flash.tflops:.0f }}", "{{ backward.d64.causal.sdpa_flash.tflops:.0f }}"]
# caption: Five products of 2 · N · N · d operations for each head; a causal mask needs only half of them. Our time includes the small kernels before and after the main one.
# ///
#
# /// when | peers.fa4 == 1
# FlashAttention-4's backward pass ran in the same rounds.
#
# /// table
# columns: ["TFLOP/s, N = 16384", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["FlashAttention-4", "{{ backward.d128.full.fa4.tflops:.0f }}", "{{ backward.d128.causal.fa4.tflops:.0f }}",
#      "{{ backward.d64.full.fa4.tflops:.0f }}", "{{ backward.d64.causal.fa4.tflops:.0f }}"]
# caption: Its time includes the small kernels before and after the main one, as ours does.
# ///
#
# The speed of k04_wgmma over the better of the two, SDPA cuDNN or FlashAttention-4, is {{ backward.d128.full.wgmma.tflops / max(backward.d128.full.cudnn.tflops, backward.d128.full.fa4.tflops):.2f }} full and
# {{ backward.d128.causal.wgmma.tflops / max(backward.d128.causal.cudnn.tflops, backward.d128.causal.fa4.tflops):.2f }} causal at d = 128,
# {{ backward.d64.full.wgmma.tflops / max(backward.d64.full.cudnn.tflops, backward.d64.full.fa4.tflops):.2f }} and
# {{ backward.d64.causal.wgmma.tflops / max(backward.d64.causal.cudnn.tflops, backward.d64.causal.fa4.tflops):.2f }} at d = 64.
# /// otherwise
# FlashAttention-4's backward pass was **not raced** in this run, because it was not installed.
# ///
# ///
#
# And the percentage of peak? At d = 128, full, k04_wgmma reaches {{ backward.d128.full.wgmma.of_peak:.0%}} of it, and at d = 64 it
# reaches {{ backward.d64.full.wgmma.of_peak:.0%}}.
# The reasons are [those of the forward pass](#how-near-to-the-peak-and-why-no-nearer). The card is at its limit, with a clock that was read at {{ backward.d128.full.wgmma.sm_mhz:.0f}} MHz
# here. And there are the exponentials: a step needs as many of them for its five products as a step of the forward pass needs for two. In addition
# there is the sum of dQ, which all blocks share; the run did not count what it costs.
#
# The row *always in one order* is for anyone who must get the same bits twice. Sums of floats depend on their order,
# and microseconds decide which block adds first. So here each block of keys waits for its turn.
#
# /// claim | backward.d128.full.in_order.tflops < 0.95 * backward.d128.full.wgmma.tflops and backward.d64.full.in_order.tflops > 0.9 * backward.d64.full.wgmma.tflops
# At d = 128 the fixed order is expensive: {{ backward.d128.full.in_order.tflops:.0f }} TFLOP/s instead of {{ backward.d128.full.wgmma.tflops:.0f }}.
# At d = 64 it costs next to nothing, with {{ backward.d64.full.in_order.tflops:.0f }} and {{ backward.d64.full.wgmma.tflops:.0f }}:
# there a step takes twice as many rows, so there are half as many turns to wait for.
# /// otherwise
# It costs {{ 1 - backward.d128.full.in_order.tflops / backward.d128.full.wgmma.tflops:.0%}} at d = 128 and {{ 1 - backward.d64.full.in_order.tflops / backward.d64.full.wgmma.tflops:.0%}} at d = 64.
# ///
#
# /// claim | bwd_over_sdpa_flash.full > 1.3 and bwd_over_sdpa_flash.causal > 1.3 and backward.d64.full.wgmma.tflops > 1.3 * backward.d64.full.sdpa_flash.tflops and backward.d64.causal.wgmma.tflops > 1.3 * backward.d64.causal.sdpa_flash.tflops
# At d = 64 k04_wgmma runs at {{ backward.d64.full.wgmma.tflops / backward.d64.full.sdpa_flash.tflops:.2f}} times the speed
# of SDPA flash for full attention, and at
# {{ backward.d64.causal.wgmma.tflops / backward.d64.causal.sdpa_flash.tflops:.2f}} times for causal.
# /// otherwise
# At d = 128, k04_wgmma runs at {{ bwd_over_sdpa_flash.full:.2f}} times the speed of SDPA flash for full attention, and at
# {{ bwd_over_sdpa_flash.causal:.2f}} times for causal. At d = 64 the factors are
# {{ backward.d64.full.wgmma.tflops / backward.d64.full.sdpa_flash.tflops:.2f}} and
# {{ backward.d64.causal.wgmma.tflops / backward.d64.causal.sdpa_flash.tflops:.2f}}.
# ///

# %%
from functools import partial
from importlib import import_module

from course_kernels.attention_backward import k03_one_pass, k04_wgmma
from course_kernels.attention_backward import library as backward_library
from course_kernels.attention_backward.problem import PROBLEM as BACK

IN_ORDER = partial(k04_wgmma.attention_backward, deterministic=True)
BACKWARD = {
    "wgmma": k04_wgmma,
    "in_order": Competitor("in_order", BACK, IN_ORDER),
    "one_pass": k03_one_pass,
    "cudnn": backward_library.sdpa_cudnn,
    "sdpa_flash": backward_library.sdpa_flash,
}


def flash_attention_4(q, k, v, o, lse, do, *, causal=False):
    """Its backward pass alone. It has the heads inside: it gets views and returns views, and nothing is copied."""
    backward = import_module("flash_attn.cute.interface")._flash_attn_bwd
    q, k, v, o, do = (x.transpose(1, 2) for x in (q, k, v, o, do))
    gradients = backward(q, k, v, o, do, lse, causal=causal)
    return tuple(x.transpose(1, 2) for x in gradients)


if "fa4" in INSTALLED:
    BACKWARD["fa4"] = Competitor("flash_attention_4", BACK, flash_attention_4)
record(
    backward={
        f"d{D}": {
            name: compare(BACKWARD, long(D, causal), seconds=0.1)
            for name, causal in (("full", False), ("causal", True))
        }
        for D in (128, 64)
    }
)

# %% [markdown]
# ## Before the first tick
#
# Before a kernel can run, somebody has to *call* it: Python looks at the arguments, describes them to the driver, and puts the
# launch into a queue. While the card is busy with a long kernel, nobody notices the call. With one short sequence everybody does.
#
# /// predict | One sequence of 512, 16 heads. What takes longer: the kernel, or calling it? The kernel is k04, written in Gluon, Triton's lower level.
# - [calls.specialised.us > 1.1 * calls.specialised.host_us] The kernel
# - [calls.specialised.us < 0.9 * calls.specialised.host_us] The call
# - [0.9 * calls.specialised.host_us <= calls.specialised.us <= 1.1 * calls.specialised.host_us] About the same
# /// reveal
# The card needs {{ calls.specialised.us:.0f }} µs and the call {{ calls.specialised.host_us:.0f }} µs. Our k06_wgmma writes down
# once what stays the same, and on each call fills in addresses, numbers and the stream. Such a call takes
# {{ calls.wgmma.host_us:.0f }} µs, with {{ calls.wgmma.us:.0f }} µs on the card. cuDNN, called through PyTorch, needs
# {{ calls.cudnn.host_us:.0f }} µs for the call and
# {{ calls.cudnn.us:.0f }} µs on the card. How long a call takes is a matter
# of the host, and in another run it may take twice as long, or half; what matters is that each of the three calls takes longer
# than its kernel.
# ///
#
# /// exercise | Where it shows
# A model with 32 layers calls attention once in each layer. How long must the kernels be before the call from Gluon stops mattering,
# and what else hides the call?
# /// answer
# It stops mattering as soon as the kernels between two calls take longer than a call, and the queue holds something to begin
# with: then the host runs ahead, and the queue hides the call. And a CUDA graph hides it altogether, since there is nothing left
# to call: [one token](one_token.py) shows what that is worth.
# ///

# %%
record(
    calls=compare(
        {
            "wgmma": k06_wgmma,
            "specialised": k04_specialised,
            "cudnn": library.sdpa_cudnn,
        },
        Workload.of("bfloat16", B=1, H=16, N=512, D=128, causal=False),
        seconds=0.1,
    )
)

# %% [markdown]
# ## Your turn
#
# /// exercise | A switch of your own
# Turn one switch that this page left alone: at d = 128 and N = 16384 a step takes 176 keys, and the answer leaves from the place of Q;
# give the step 128 keys instead, and the answer a place of its own (`block_n=128, own_place=True`). First say what you expect, and which stove
# should cause it. Then race it: `course_kernels.attention.k06_wgmma.attend(q, k, v, tile=…)`.
# /// answer
# Fewer keys in a step mean more steps, so the warpgroups wait for each other more often, and fewer registers, so there is more room to work ahead. A
# place of its own for the answer means that the next rows of Q are fetched while the answer is still leaving. With many
# steps the first effect dominates, with few steps the second. You see only the sum of both, which is why you write a forecast
# down first.
# ///
#
# **You can now** name what attention waits for on this card, switch it on and off, and read a race that shows the losses, too.
# You know from [L7](lectures/l7_profiling.py) which counter shows which wait.

# %% [markdown]
# ## The whole kernel {.beyond}
#
# Read this kernel after you have read everything else: the producer, the consumer, and what both agree on.
#
# /// source | src/course_kernels/attention/k06_wgmma.cu
# fold: "k06_wgmma.cu, all of it"
# ///
