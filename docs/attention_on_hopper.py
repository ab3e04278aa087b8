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
# - name the four ideas that keep a card's multipliers busy, and say which wait each of them removes;
# - forecast what a kernel loses without one of them, and check it: each has a switch;
# - follow the backward pass, five multiplies where the forward has two, and say why one of its three answers is the hard one;
# - say how much of the card's peak that is, and why it is not more;
# - say what a call costs before the GPU has done anything.
#
# This is the page behind [the workshop on FlashAttention](workshops/w1_flash_attention.py). There you wrote the loop, and met a sister of it with
# specialists. Here is the third of the family, [k06_wgmma](#the-whole-of-it), in CUDA C++: every wait, every register and
# every byte of shared memory in it is ours. Nobody types it. You take it apart.

# %% [markdown]
# ## Two stoves, one cook
#
# In every table of this kitchen there are two stoves. The **tensor cores** multiply. The **special-function units** take exponentials.
# One step of the loop takes 128 rows of Q past 128 keys. What does each stove have to do?
#
# The multiply: two products, each $2 \cdot 128 \cdot 128 \cdot d$ operations. The exponentials: $128 \cdot 128$ of them, whatever d is.
# Set the card's two rates side by side, as the authors of FlashAttention-3 do [^shah2024], and divide.
#
# /// predict | With d = 64 instead of 128, which stove is the busier one?
# - [stoves.d64.exponentials < 0.9 * stoves.d64.products] The multiply, as before
# - [0.9 * stoves.d64.products <= stoves.d64.exponentials <= 1.1 * stoves.d64.products] Both the same
# - [stoves.d64.exponentials > 1.1 * stoves.d64.products] The exponentials
# /// reveal
# Neither, or by next to nothing. There is half as much to multiply, and as many exponentials. At d = 128 the exponentials take {{ stoves.d128.exponentials / stoves.d128.products:.2f }} of the time of the multiply,
# at d = 64 {{ stoves.d64.exponentials / stoves.d64.products:.2f }} of it: both stoves are at work for the same time. If one cook serves both stoves in turn, the tensor cores are cold for
# {{ 1 - stoves.d128.products / (stoves.d128.products + stoves.d128.exponentials):.0%}} of the time at d = 128, for
# {{ 1 - stoves.d64.products / (stoves.d64.products + stoves.d64.exponentials):.0%}} at d = 64.
# ///

# %% tags=["fold"]
from course_kernels.measure import quantity, record

MATMUL_PER_S, EXP_PER_S = (
    989e12,
    3.9e12,
)  # an H100 SXM, as the FlashAttention-3 paper has them


def stoves(d, rows=128, keys=128):
    """Seconds of one step on each kind of unit, were the whole card at it."""
    return {
        "products": quantity(4 * rows * keys * d / MATMUL_PER_S, "s"),
        "exponentials": quantity(rows * keys / EXP_PER_S, "s"),
    }


record(stoves={"d64": stoves(64), "d128": stoves(128)})

# %% [markdown]
# So the whole art is one sentence: **never let a stove go cold.** Four ideas, in the order in which they came.
#
# 1. **Somebody else fetches.** One thread asks the copy engine for tiles of K and V and keeps a ring of them full. Those who cook never go to the
#    hall [^shah2024].
# 2. **While mine boils, I cut.** A warpgroup begins the product of this step's queries and keys, and the product of the *last* step's weights and values, and
#    takes its exponentials while the second one still runs.
# 3. **You boil while I cut.** Two warpgroups hand the tensor cores to each other, so that their softmaxes do not fall on the same moment.
# 4. **Do not wash what is clean.** The repair of the plate, $e^{m_\text{old} - m_\text{new}}$, is multiplied into d numbers of every row in every step, and nearly always it
#    is 1. FlashAttention-4 repairs only when the maximum has grown by much, in its kernel for Blackwell [^dao-repo]; we do so on Hopper.
#
# The fourth wants a second look, for it seems to change the sum. It does not. The notes on the sleeve are weighed against *some* number m; that it is the largest so
# far only keeps the exponentials from overflowing. As long as the true maximum is at most eight powers of two away, nothing overflows. At the end
# both sum and plate are off by the same amount, and the division takes it out.
#
# One thing it does not take out. The weights are rounded to 16 bits before they meet V, and their sum is not. Where many weights share a row, their roundings
# cancel. Where one weight is nearly all of it, its rounding is the error of the answer, unless that weight is exactly 1, as it is when m is the maximum itself. So we
# also wash when the weight of a new maximum is about a quarter of its row's sum or more.
#
# How often would you wash in vain? Draw scores like those of this page, 16384 to a row, and let them pass 128 at a time.
#
# /// predict | In 128 steps, how often does a row's maximum grow at all, and how often by so much, or with such a weight, that we wash?
# - [repairs.any > 20] More than 20 times; a few times
# - [repairs.any <= 20 and repairs.large < 1] A few times; hardly ever after the first step
# - [repairs.any <= 20 and repairs.large >= 1] A few times; about as often
# /// reveal
# It grows {{ repairs.any:.1f }} times in 128 steps, and we wash {{ repairs.large:.3f }} times. Everything else is washing what is clean.
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
# Each idea is a switch of our kernel. All of these compute the same answer; each was checked before it was timed.
#
# A warning for this page's tables. Compare within a race, never across two. The same kernel on the same shape is in two of them: at d = 128, all keys, it makes {{ ideas.d128.all.tflops:.0f }} TFLOP/s in this race
# and {{ race.d128.full.n16384.wgmma.tflops:.0f }} in [the last one](#the-race). Other competitors in a round leave the card a different clock, and the clock decides here: [why](#how-near-to-the-peak-and-why-no-nearer) comes below.
#
# /// predict | Without ideas 2, 3 and 4, roles alone: what share of the full speed is left at d = 128?
# - [ideas.d128.roles.tflops < 0.75 * ideas.d128.all.tflops] Less than three quarters
# - [0.75 * ideas.d128.all.tflops <= ideas.d128.roles.tflops < 0.95 * ideas.d128.all.tflops] Three quarters or more, and not nearly all
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
# caption: One kernel, its switches on and off; in the same rounds, on the same inputs.
# ///
# ///
#
# The last row is one more idea, and FlashAttention-4's on Blackwell as well [^dao-repo]: where the special-function units are the bottleneck, make some of the exponentials from
# multiplications. $2^x$ is a shift by the whole part of x times a polynomial in the rest. Three multiply-adds suffice, since the weights are rounded
# to eight bits next.
#
# Read the table from top to bottom, and be strict: which of the ideas paid?
#
# /// claim | ideas.d128.overlap.tflops > 1.05 * ideas.d128.roles.tflops
# At d = 128 the second idea did: roles make {{ ideas.d128.roles.tflops:.0f }} TFLOP/s, and with products that run beside the softmax it is {{ ideas.d128.overlap.tflops:.0f }}.
# /// otherwise
# Even the second idea hardly did: {{ ideas.d128.roles.tflops:.0f }} TFLOP/s without it and {{ ideas.d128.overlap.tflops:.0f }} with it, at d = 128.
# ///
#
# /// claim | ideas.d128.turns.tflops < 1.05 * ideas.d128.roles.tflops and ideas.d64.turns.tflops < 1.05 * ideas.d64.roles.tflops
# The third, *you boil while I cut*, did **not**, or not so that this race could see it, neither at d = 128 nor at d = 64. The authors of FlashAttention-3 gain by it [^shah2024]. In ours the warpgroups fall out of step by themselves, and
# handing over the turn costs two barriers in every step. That is a guess; a count of the waits at those barriers would settle it.
# /// otherwise
# The third, *you boil while I cut*: {{ ideas.d128.turns.tflops:.0f }} TFLOP/s at d = 128, {{ ideas.d64.turns.tflops:.0f }} at d = 64, where roles alone make
# {{ ideas.d128.roles.tflops:.0f }} and {{ ideas.d64.roles.tflops:.0f }}.
# ///
#
# /// claim | ideas.d64.all.tflops > ideas.d64.repaired.tflops
# The fourth pays where there is little to multiply: at d = 64 the washing in vain kept us at {{ ideas.d64.repaired.tflops:.0f }} TFLOP/s, and without it there are {{ ideas.d64.all.tflops:.0f }}.
# /// otherwise
# The fourth: {{ ideas.d64.repaired.tflops:.0f }} TFLOP/s with a repair in every step, {{ ideas.d64.all.tflops:.0f }} without, at d = 64.
# ///
#
# /// claim | ideas.d64.by_hand.tflops < ideas.d64.all.tflops and ideas.d128.by_hand.tflops < ideas.d128.all.tflops
# And exponentials by hand are a **loss** on this card, at both sizes. On paper the two stoves are level at d = 64; but a multiply-add takes its turn at the issue slot like any other instruction, and there are
# several of them for one exponential.
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
# ## Who is seated last
#
# Causal rows have unequal work: the first block of 128 rows meets one tile of keys, the last one all of them. The guest who is seated last decides when the kitchen closes.
#
# /// predict | The longest blocks first, or as they are numbered, the shortest first: what is the difference?
# - [order.longest.tflops < 1.03 * order.numbered.tflops] None to speak of
# - [1.03 * order.numbered.tflops <= order.longest.tflops < 1.15 * order.numbered.tflops] Between 3 and 15 in a hundred
# - [order.longest.tflops >= 1.15 * order.numbered.tflops] More than that
# /// reveal
# {{ order.longest.tflops:.0f }} TFLOP/s with the longest first, {{ order.numbered.tflops:.0f }} as they are numbered. A long block that begins last keeps
# one table busy while all others are swept. And the order has a second half: heads whose keys and values fit in L2 together run together.
#
# The order says what is next, and not whose. Here a block that is done asks: a counter in memory hands out the numbers, and the thread that fetches asks for the next one
# long before it is needed. The other way is to deal everything out beforehand, to and fro, so that the block with the longest gets the shortest next:
# {{ order.dealt.tflops:.0f }} TFLOP/s. Then shares are equal only if all blocks form one falling line, and heads cannot be kept together.
#
# /// claim | 0.95 * order.dealt.tflops < order.longest.tflops < 1.05 * order.dealt.tflops
# On this shape the two are level. Asking is for shapes that do not fall in one line: above all packed sequences, texts of different lengths one after the other.
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
# Now against others. cuDNN, as PyTorch carries it. FlashAttention-3, as FlashInfer carries it, and FlashAttention-4 from its own repository [^dao-repo],
# {{ peers.words }}. One card, one set of inputs, in turns.
#
# /// predict | At N = 16384, d = 128, full: where does a kernel of a few hundred lines end up against cuDNN?
# - [best_over_cudnn.d128.full < 0.97] Behind it
# - [0.97 <= best_over_cudnn.d128.full < 1.15] Level with it, or a little ahead
# - [best_over_cudnn.d128.full >= 1.15] Far ahead of it
# /// reveal
# {{ best_over_cudnn.d128.full:.2f }} times its speed; causal {{ best_over_cudnn.d128.causal:.2f }}; at d = 64
# {{ best_over_cudnn.d64.full:.2f }} and {{ best_over_cudnn.d64.causal:.2f }}.
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
# caption: B · N = 16384, 16 heads of 128 or 32 of 64. Causal counts half of the operations.
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
#   TFLOP/s against sequence length, five lines that rise. At N = 16384, k06_wgmma has {{ race.d128.causal.n16384.wgmma.tflops:.0f }}, the kernel with
#   specialists at {{ race.d128.causal.n16384.specialised.tflops:.0f }}, SDPA cuDNN at {{ race.d128.causal.n16384.cudnn.tflops:.0f }}, SDPA flash at
#   {{ race.d128.causal.n16384.sdpa_flash.tflops:.0f }} and FlashAttention-4 at {{ race.d128.causal.n16384.fa4.tflops:.0f }}.
# caption: Short rows are where everybody loses. Whatever happens once at the beginning and once at the end of a row has fewer tiles to be shared out over.
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
#   TFLOP/s against sequence length, four lines that rise. At N = 16384, k06_wgmma has {{ race.d128.causal.n16384.wgmma.tflops:.0f }}, the kernel with
#   specialists at {{ race.d128.causal.n16384.specialised.tflops:.0f }}, SDPA cuDNN at {{ race.d128.causal.n16384.cudnn.tflops:.0f }} and SDPA flash at
#   {{ race.d128.causal.n16384.sdpa_flash.tflops:.0f }}.
# caption: Short rows are where everybody loses. Whatever happens once at the beginning and once at the end of a row has fewer tiles to be shared out over.
# ///
# ///
# ///
#
# /// claim | best_over_cudnn.d128.causal > 1.02 and best_over_cudnn.d64.full > 1.02 and best_over_cudnn.d64.causal > 1.02
# Long rows are where the ideas pay: with a causal mask and at d = 64 k06_wgmma is ahead of SDPA cuDNN at N = 16384.
# ///
#
# And the shortest rows at d = 64, all keys? k06_wgmma makes {{ race.d64.full.n1024.wgmma.tflops / race.d64.full.n1024.cudnn.tflops:.0%}} of what SDPA cuDNN makes at N = 1024.
# A row of 1024 keys is eight steps, and what happens once at its beginning and once at its end is shared out over those eight.
#
# /// when | peers.fa4 == 1
# /// predict | FlashAttention-4, from which two of the ideas are, ran in the same rounds. At N = 16384, d = 128, full: where does k06_wgmma end up against it?
# - [race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops < 0.98] Behind it, by more than two in a hundred
# - [0.98 <= race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops <= 1.02] Within two in a hundred of it
# - [race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops > 1.02] Ahead of it, by more than two in a hundred
# /// reveal
# It makes {{ race.d128.full.n16384.fa4.tflops:.0f }} TFLOP/s, and k06_wgmma {{ race.d128.full.n16384.wgmma.tflops / race.d128.full.n16384.fa4.tflops:.2f }} times that; causal {{ race.d128.causal.n16384.wgmma.tflops / race.d128.causal.n16384.fa4.tflops:.2f }} times;
# at d = 64 {{ race.d64.full.n16384.wgmma.tflops / race.d64.full.n16384.fa4.tflops:.2f }} and {{ race.d64.causal.n16384.wgmma.tflops / race.d64.causal.n16384.fa4.tflops:.2f }}.
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
# And against the better of the two, SDPA cuDNN or FlashAttention-4? Above one, k06_wgmma is the best of the three; below it, it is not.
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
# ///
# /// otherwise
# FlashAttention-4, from which two of the ideas are, was **not raced** in this run: it was not installed. So the strongest may be missing here.
# ///
#
# /// when | peers.fa3 == 1
# FlashAttention-3, as FlashInfer carries it: {{ race.d128.full.n16384.fa3.tflops:.0f }} TFLOP/s full, {{ race.d128.causal.n16384.fa3.tflops:.0f }} causal at d = 128, and
# {{ race.d64.full.n16384.fa3.tflops:.0f }} and {{ race.d64.causal.n16384.fa3.tflops:.0f }} at d = 64. It takes one sequence at a time, so it ran at N = 16384 alone.
# /// otherwise
# FlashAttention-3 was **not raced** in this run: FlashInfer, which carries it, was not installed.
# ///
#
# ### How near to the peak, and why no nearer?
#
# The data sheet promises {{ gpu.bf16_tflops:,.0f}} TFLOP/s in bf16. Of that k06_wgmma has:
#
# /// table
# columns: ["% of peak", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["N = 1024", "{{ race.d128.full.n1024.wgmma.of_peak:.0%}}", "{{ race.d128.causal.n1024.wgmma.of_peak:.0%}}", "{{ race.d64.full.n1024.wgmma.of_peak:.0%}}", "{{ race.d64.causal.n1024.wgmma.of_peak:.0%}}"]
#   - ["N = 4096", "{{ race.d128.full.n4096.wgmma.of_peak:.0%}}", "{{ race.d128.causal.n4096.wgmma.of_peak:.0%}}", "{{ race.d64.full.n4096.wgmma.of_peak:.0%}}", "{{ race.d64.causal.n4096.wgmma.of_peak:.0%}}"]
#   - ["N = 16384", "{{ race.d128.full.n16384.wgmma.of_peak:.0%}}", "{{ race.d128.causal.n16384.wgmma.of_peak:.0%}}", "{{ race.d64.full.n16384.wgmma.of_peak:.0%}}", "{{ race.d64.causal.n16384.wgmma.of_peak:.0%}}"]
# caption: The same race as above. Causal counts half of the operations.
# ///
#
# /// when | peers.fa4 == 1
# FlashAttention-4 is no nearer to it by much: at N = 4096, d = 128, full, it has {{ race.d128.full.n4096.fa4.of_peak:.0%}}. So what holds all of them back?
# ///
#
# **The clock, first.**
#
# /// claim | race.d128.full.n16384.wgmma.sm_mhz < 0.95 * sheet_mhz and ideas.d128.all.sm_mhz < 0.95 * sheet_mhz
# The peak on the sheet is worked out at {{ sheet_mhz:.0f}} MHz [^lockwood-h100]. In all of these races the card was at a limit, by its own word: nearly always that of power, some {{ race.d128.full.n16384.wgmma.power_w:.0f}} W, at d = 64 now and then that of heat. Then it takes
# the clock down. At N = 16384, d = 128, full, a reading for k06_wgmma says {{ race.d128.full.n16384.wgmma.sm_mhz:.0f}} MHz, and in the race of the ideas {{ ideas.d128.all.sm_mhz:.0f}}. Of what the tensor cores can do at those clocks it has {{ race.d128.full.n16384.wgmma.of_peak * sheet_mhz / race.d128.full.n16384.wgmma.sm_mhz:.0%}} and {{ ideas.d128.all.of_peak * sheet_mhz / ideas.d128.all.sm_mhz:.0%}}.
# A reading is one moment of a clock that moves, so trust the tens and not the ones.
# /// otherwise
# The peak on the sheet is worked out at {{ sheet_mhz:.0f}} MHz [^lockwood-h100], and a reading in this race said {{ race.d128.full.n16384.wgmma.sm_mhz:.0f}} MHz. The clock is not what is missing on this card.
# ///
#
# /// define | sheet_mhz = 1830
# unit: MHz
# what: the clock for which the data sheet's peak of an H100 in bf16 is worked out [^lockwood-h100]
# ///
#
# **Then the other stove.** Served in turn, the two stoves would leave the tensor cores {{ stoves.d128.products / (stoves.d128.products + stoves.d128.exponentials):.0%}} of the time at d = 128 and {{ stoves.d64.products / (stoves.d64.products + stoves.d64.exponentials):.0%}} at d = 64, at whatever clock. At d = 64 the kernel has
# {{ race.d64.full.n16384.wgmma.of_peak:.0%}} of peak, or {{ race.d64.full.n16384.wgmma.of_peak * sheet_mhz / race.d64.full.n16384.wgmma.sm_mhz:.0%}} at the clock that was read: hardly better than in turn. At d = 128 it is past what turns allow. So the work side by side succeeds at d = 128, and at d = 64 most of it is still to be won.
#
# **And short rows** have their beginnings and ends, as said above.
#
# And why is longer not faster? At d = 128, all keys, N = 16384 makes {{ race.d128.full.n16384.wgmma.tflops:.0f }} TFLOP/s where N = 4096 makes {{ race.d128.full.n4096.wgmma.tflops:.0f }}, and with half the square, causal, it is {{ race.d128.causal.n16384.wgmma.tflops:.0f }}. A step does the same work in all three.
# One launch of the first lasts {{ race.d128.full.n16384.wgmma.ms:.1f}} ms, of the second {{ race.d128.full.n4096.wgmma.ms:.1f}} ms, of the third {{ race.d128.causal.n16384.wgmma.ms:.1f}} ms: the longer one lasts, the longer the clock has to sink at the power limit. That fits, and
# it is a guess. With one reading of the clock for each competitor, and no counter beside it, this run cannot say more; nor how the rest of peak is shared out among barriers, issue slots and the way to the first tile.

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
    """Everybody in turns. FlashInfer takes one sequence only."""
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
# ## The way back
#
# To learn, a model needs the way back: what does the loss say to Q, K and V, once it is known what it says to the output? Nobody kept the square. So it is
# made again, tile by tile, from Q, K and one number for each row that the forward pass left: L, the logarithm of the sum of its exponentials, *log-sum-exp* for short. Write dX for what the loss says to X. Then come five products where the forward pass had two:
#
# $$S = QK^\top, \quad dP = dO\,V^\top,$$
#
# $$dV = P^\top dO, \quad dK = dS^\top Q, \quad dQ = dS\,K$$
#
# with $P = e^{S - L}$ and $dS = P \circ (dP - D)$. The ring means number by number, and $D$ is one number for each row, the sum of $dO \circ O$.
#
# Why D? The shares of a row always add up to 1: what one gains, the others lose. So of each dP only what is above the row's mean counts, the mean weighted by the shares: the sum of $P \circ dP$ over the row. And as $O = PV$, that is the sum of
# $dO \circ O$, which needs no square.
#
# Look at who owns what. A block that owns some *keys* has all it needs for their dK and dV: every row passes by, and the sums stay in its registers. But dQ belongs to the
# *rows*, and every block of keys has a part of it. Somebody must add up: either a second kernel makes S and dP once more, seven products instead of five, or all blocks
# add to one sum in L2.
#
# Our kernel writes its tiles with the keys down and the rows across, the wrong way round at first sight. So P and dS come out of the tensor cores just as the next product
# wants its left operand, and never leave the registers. Only dS must be shown to the other warpgroup, through shared memory, for dQ.
#
# /// predict | Five products against two. How does the backward pass do against PyTorch's FlashAttention-2?
# - [bwd_over_sdpa_flash.full < 1.1] About as fast
# - [1.1 <= bwd_over_sdpa_flash.full < 1.5] Somewhat faster, not one and a half times
# - [bwd_over_sdpa_flash.full >= 1.5] Faster than that
# /// reveal
# {{ bwd_over_sdpa_flash.full:.2f }} times its speed full, {{ bwd_over_sdpa_flash.causal:.2f }} causal, at d = 128.
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
# caption: Five products of 2 · N · N · d operations a head; with a causal mask only half of them are needed. The small kernels before and after are in our time.
# ///
#
# /// when | peers.fa4 == 1
# FlashAttention-4's way back ran in the same rounds.
#
# /// table
# columns: ["TFLOP/s, N = 16384", "d = 128, full", "causal", "d = 64, full", "causal"]
# rows:
#   - ["FlashAttention-4", "{{ backward.d128.full.fa4.tflops:.0f }}", "{{ backward.d128.causal.fa4.tflops:.0f }}",
#      "{{ backward.d64.full.fa4.tflops:.0f }}", "{{ backward.d64.causal.fa4.tflops:.0f }}"]
# caption: With its small kernels before and after, as in our time.
# ///
#
# k04_wgmma over the better of the two, SDPA cuDNN or FlashAttention-4: {{ backward.d128.full.wgmma.tflops / max(backward.d128.full.cudnn.tflops, backward.d128.full.fa4.tflops):.2f }} full and
# {{ backward.d128.causal.wgmma.tflops / max(backward.d128.causal.cudnn.tflops, backward.d128.causal.fa4.tflops):.2f }} causal at d = 128,
# {{ backward.d64.full.wgmma.tflops / max(backward.d64.full.cudnn.tflops, backward.d64.full.fa4.tflops):.2f }} and
# {{ backward.d64.causal.wgmma.tflops / max(backward.d64.causal.cudnn.tflops, backward.d64.causal.fa4.tflops):.2f }} at d = 64.
# /// otherwise
# FlashAttention-4's way back was **not raced** in this run: it was not installed.
# ///
# ///
#
# And of peak? At d = 128, full, k04_wgmma has {{ backward.d128.full.wgmma.of_peak:.0%}} of it, at d = 64 {{ backward.d64.full.wgmma.of_peak:.0%}}. The reasons are [those of the forward pass](#how-near-to-the-peak-and-why-no-nearer): a card at its limit, with a reading of {{ backward.d128.full.wgmma.sm_mhz:.0f}} MHz here, and exponentials, of which a
# step needs as many for five products as the forward pass for two. What comes on top is the sum of dQ, which all blocks share; the run did not count what it costs.
#
# *In one order* is for those who must get the same bits twice. Sums of floats depend on their order, and who adds first is a matter of microseconds. So each block of keys waits
# for its turn.
#
# /// claim | backward.d128.full.in_order.tflops < 0.95 * backward.d128.full.wgmma.tflops and backward.d64.full.in_order.tflops > 0.9 * backward.d64.full.wgmma.tflops
# At d = 128 the order is dear: {{ backward.d128.full.in_order.tflops:.0f }} TFLOP/s instead of {{ backward.d128.full.wgmma.tflops:.0f }}. At d = 64 it is had for next to nothing, {{ backward.d64.full.in_order.tflops:.0f }} and
# {{ backward.d64.full.wgmma.tflops:.0f }}: there a step takes twice as many rows, so there are half as many turns to wait for.
# /// otherwise
# It costs {{ 1 - backward.d128.full.in_order.tflops / backward.d128.full.wgmma.tflops:.0%}} at d = 128 and {{ 1 - backward.d64.full.in_order.tflops / backward.d64.full.wgmma.tflops:.0%}} at d = 64.
# ///
#
# /// claim | bwd_over_sdpa_flash.full > 1.3 and bwd_over_sdpa_flash.causal > 1.3 and backward.d64.full.wgmma.tflops > 1.3 * backward.d64.full.sdpa_flash.tflops and backward.d64.causal.wgmma.tflops > 1.3 * backward.d64.causal.sdpa_flash.tflops
# At d = 64 it is {{ backward.d64.full.wgmma.tflops / backward.d64.full.sdpa_flash.tflops:.2f}} times SDPA flash, and {{ backward.d64.causal.wgmma.tflops / backward.d64.causal.sdpa_flash.tflops:.2f}} times causal.
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
    """Its backward pass alone. It has the heads inside: it gets views and answers with views, nothing is copied."""
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
# A kernel that is called must first be *called*: Python looks at the arguments, describes them to the driver, and puts the launch into a queue. While the card is busy with something long, nobody
# sees it. With one short sequence everybody does.
#
# /// predict | One sequence of 512, 16 heads. What takes longer: the kernel, or calling it? It is k04, written in Gluon, Triton's lower level.
# - [calls.specialised.us > 1.1 * calls.specialised.host_us] The kernel
# - [calls.specialised.us < 0.9 * calls.specialised.host_us] The call
# - [0.9 * calls.specialised.host_us <= calls.specialised.us <= 1.1 * calls.specialised.host_us] About the same
# /// reveal
# The card needs {{ calls.specialised.us:.0f }} µs and the call {{ calls.specialised.host_us:.0f }} µs. Ours writes down once what stays the same, and at a call fills in addresses, numbers and
# the stream: {{ calls.wgmma.host_us:.0f }} µs, with {{ calls.wgmma.us:.0f }} µs on the card. cuDNN through PyTorch: {{ calls.cudnn.host_us:.0f }} µs and
# {{ calls.cudnn.us:.0f }} µs. The host of this card is a virtual machine, where every launch is dear; what counts is the relation.
# ///
#
# /// exercise | Where it shows
# A model with 32 layers calls attention once in each. At which length of the kernel does the call from Gluon stop mattering, and what else hides it?
# /// answer
# As soon as the kernels between two calls take longer than a call, and the queue holds something to begin with: then the host runs ahead, and the queue hides it. And a CUDA graph hides it altogether, since
# nobody calls: [one token](one_token.py) shows what that is worth.
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
# Turn one switch that this page did not: at d = 128 and N = 16384 a step takes 176 keys, and the answer leaves from the place of Q; give it 128 keys instead (`block_n=128, own_place=True`).
# First say what you expect, and from which stove. Then race it: `course_kernels.attention.k06_wgmma.attend(q, k, v, tile=…)`.
# /// answer
# Fewer keys a step: more steps, so more waits for each other, and fewer registers, so more room to work ahead. A place of its own for the answer: the next rows of Q are fetched while
# it still leaves. With many steps the first counts, with few the second. What you see is the sum of both, and the reason to write a forecast down first.
# ///
#
# **You can now** name what attention waits for on this card, switch it on and off, and read a race with the losses in it. Which counter shows which wait, you know from [L7](lectures/l7_profiling.py).

# %% [markdown]
# ## The whole of it {.beyond}
#
# Read it once you have read everything else. The producer, the consumer, and what both agree on.
#
# /// source | src/course_kernels/attention/k06_wgmma.cu
# fold: "k06_wgmma.cu, all of it"
# ///
