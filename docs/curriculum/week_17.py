# ---
# id: week_17
# title: "Week 17: FlashAttention-3"
# search: {rank: 2}
# nav: "17 · FA-3"
# description: "How three ideas of Hopper meet in one kernel; what FP8 does to attention's numbers and to its time, in a plain kernel; and which unit then becomes the roof."
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Week 17: FlashAttention-3
#
# /// week
# ///
#
# By the end of this week you can
#
# - say which Hopper feature each part of FlashAttention-3 uses, and what it hides;
# - round attention's inputs to FP8, and say what one scale, a scale for each block, and a rotation do to its error;
# - run attention in FP8 on a card, and say what its rounding costs, and V's transposition;
# - say why a quicker multiply does not make attention quicker by as much.
#
# ## Why this week
#
# Attention has two units to keep busy, and they must be busy at the same time. FlashAttention-3 is the kernel in which TMA, warpgroups with roles, and FP8 come together, and its authors say which percent of the peak each idea gave. It is the best single kernel to read on Hopper.
#
# ## Before you begin
#
# - What are TMA, WGMMA and ping-pong? [Week 16](week_16.py), or [W2](../workshops/w2_hopper.py#roles).
# - How does FlashAttention go through its tiles? [Week 4](week_04.py), or [W1](../workshops/w1_flash_attention.py#the-whole-algorithm-in-numpy).
# - What is E4M3? [W5](../workshops/w5_blackwell.py#numbers-as-messages).
#
# ## Read
#
# /// reading
# shah2024: "The whole paper. Take table 2, where the two kinds of overlap are switched off one at a time, and section 3.3 on FP8. It is CUDA C++ on CUTLASS: the *Triton reference implementation* that some lists ask you to annotate does not exist."
# gordic2025: "From the card and its machine code to a multiply for Hopper, with drawings. You know its first two parts by now: take the third, without tensor cores, and the fourth, with them."
# colfax-hopper: "A page that leads to a paper: one multiply for Hopper with TMA and WGMMA, written in CuTe. Read it when you write one yourself."
# ///
#
# ## Ideas
#
# - TMA, ping-pong, overlap: how they meet in one kernel, one idea at a time: [attention on Hopper](../attention_on_hopper.py#one-idea-at-a-time).
#
# /// idea | Three quarters of the peak, and a third: what do these two shares say?
# FlashAttention-3 reports up to 740 TFLOP/s in fp16 on an H100, 75 % of its peak, and gives FlashAttention-2 some 35 % there [^shah2024]. Both are of the forward pass, at long sequences and the head that suits best. The second was written for another card: it has neither TMA nor WGMMA. So the difference is a difference of instructions first.
# ///
#
# - Anatomy of a fast multiply: [W2, the last rung](../workshops/w2_hopper.py#the-last-rung), and [size by size](../multiply_on_hopper.py).
#
# /// idea | What does Blackwell change?
# The accumulator moves out of the registers into a memory of its own, tensor memory; one thread starts a multiply for a whole block, or for a pair of blocks; four bits become a type. On a B200 the exponential unit stays as it was, so the balance of this week's milestone tips further. [Compiled, not run](../compiled_not_run.py) reads the
# instructions, and [W5](../workshops/w5_blackwell.py#a-light-tour-of-blackwell) tours it.
# ///
#
# ## Do
#
# FP8 attention, its numbers first. Queries, keys and values are rounded to e4m3, and so are the weights of the softmax before they meet the values. The inputs are those of the paper's experiment: normal numbers, one in a thousand with a normal number ten times as wide added to it [^shah2024].

# %%
import numpy as np
from course_kernels.nvfp4.accuracy import rotated
from course_kernels.nvfp4.formats import E4M3, decode, encode

N, D, BLOCK, HEADS = 512, 128, 64, 8


def e4m3(x, rows=None):
    """x on the grid of e4m3, its largest number at 448; one scale, or one for each block of rows."""
    parts = [x] if rows is None else np.split(x, len(x) // rows)
    out = []
    for part in parts:
        scale = np.float32(np.abs(part).max() / E4M3.largest)
        out.append(
            decode(encode((part / scale).astype(np.float32), E4M3), E4M3) * scale
        )
    return np.concatenate(out).astype(np.float64)


def attention(q, k, v, weights=lambda p: p):
    """Plain attention; what the weights become before they meet the values."""
    s = q @ k.T / np.sqrt(D)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return weights(p) @ v / p.sum(axis=1, keepdims=True)


def in_fp8(q, k, v, rows=None, rotate=False):
    """The same in FP8: the weights lie between 0 and 1, so their scale is known."""
    if rotate:  # a rotation of both changes no product of a query and a key
        q, k = rotated(q, D), rotated(k, D)
    q, k, v = (e4m3(x, rows) for x in (q, k, v))
    return attention(
        q,
        k,
        v,
        lambda p: decode(encode((p * 448).astype(np.float32), E4M3), E4M3) / 448,
    )


def with_outliers(drawn):
    """Numbers of the paper's experiment."""
    wide = drawn.normal(0, 10, (N, D)) * (drawn.random((N, D)) < 0.001)
    return drawn.normal(0, 1, (N, D)) + wide


def rms(x):
    """Root mean square."""
    return float(np.sqrt(np.mean(x * x)))


drawn = np.random.default_rng(17)
errors, sizes, heads = {"one": [], "blocks": [], "rotated": []}, [], []
for _ in range(HEADS):
    q, k, v = (with_outliers(drawn) for _ in range(3))
    truth = attention(q, k, v)
    sizes.append(rms(truth))
    heads.append((q, k, v, truth))
    errors["one"].append(rms(in_fp8(q, k, v) - truth))
    errors["blocks"].append(rms(in_fp8(q, k, v, rows=BLOCK) - truth))
    errors["rotated"].append(rms(in_fp8(q, k, v, rows=BLOCK, rotate=True) - truth))

# %% tags=["fold"]
from course_kernels.measure import quantity, record

MATMUL, EXPS = 989e12, 3.9e12  # of an H100, as the paper has them
mean = {name: sum(found) / HEADS for name, found in errors.items()}
size = float(np.mean(sizes))
record(
    error={name: quantity(found / size) for name, found in mean.items()},
    better={
        "blocks": quantity(mean["one"] / mean["blocks"]),
        "rotated": quantity(mean["one"] / mean["rotated"]),
    },
    ratio={
        "bf16": quantity((128 * 128 / EXPS) / (4 * 128 * 128 * D / MATMUL)),
        "fp8": quantity((128 * 128 / EXPS) / (4 * 128 * 128 * D / (2 * MATMUL))),
    },
    at_best=quantity((1 / MATMUL) / max(1 / (2 * MATMUL), 1 / (4 * D * EXPS))),
    in_turn={
        "bf16": quantity(
            1 / (1 + (128 * 128 / EXPS) / (4 * 128 * 128 * D / MATMUL))
        ),
        "fp8": quantity(
            1 / (1 + (128 * 128 / EXPS) / (4 * 128 * 128 * D / (2 * MATMUL)))
        ),
    },
)

# %% [markdown]
# /// predict | One scale for each tensor. How far off is the answer, root mean square, of its own size?
# - [error.one < 0.01] Less than a hundredth
# - [0.01 <= error.one < 0.1] Some hundredths
# - [error.one >= 0.1] A tenth or more
# /// reveal
# {{ error.one:.1%}}. With a scale for each block of 64 rows it is {{ error.blocks:.1%}}, and with queries and keys rotated as well {{ error.rotated:.1%}}: {{ better.rotated:.1f}} times less than with one scale. A rotation spreads an outlier over all 128 numbers of its row, and since both sides turn, no score changes.
# The paper reports 2.6 times for both together [^shah2024]; here the values and the weights are rounded as they are, and that part no rotation of queries and keys can mend.
# ///
#
# Now the same on the card. Below is a step of our kernel: the loop of [W1](../workshops/w1_flash_attention.py#the-whole-algorithm-in-numpy), and three things that eight bits ask for.
#
# - **Scales.** A block of 64 rows has its own, as in the better of the two plain ways above. A step takes one block of keys, so both scales are one number there, applied as a product leaves the tensor cores.
# - **Weights.** They are rounded as well. The largest so far is kept as a whole power of two, so that a weight rounds alike whenever it comes by.
# - **V lies transposed.** In FP8, WGMMA takes only operands whose summed dimension lies side by side, and here that is the keys. What rounds V to FP8 turns it on the way, while the tile is on the chip.
#
# /// source | src/course_kernels/attention_fp8/k01_triton.py#step
# title: a step in 8 bits, in src/course_kernels/attention_fp8/k01_triton.py
# ///

# %%
import torch
from course_kernels.attention import k03_flash, k06_wgmma, library
from course_kernels.attention_fp8 import beside, k01_triton, round_blocks
from course_kernels.measure import compare
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload

SHAPE = {"B": 1, "H": 16, "N": 8192, "D": D}
FIELD = {
    "fp8": beside.of_8_bits(k01_triton.attention_fp8),
    "rounding": beside.with_rounding(k01_triton.attention_fp8),
    "triton": beside.of_16_bits(k03_flash.attention),
    "wgmma": beside.of_16_bits(k06_wgmma.attention),
    "flash": beside.of_16_bits(library.sdpa_flash),
    "cudnn": beside.of_16_bits(library.sdpa_cudnn),
}
NAMES = {"fp8": "attention_fp8/k01_triton"}


def raced(causal):
    """All of them in turns, on the same rows: 8 bits or bf16 as each takes them."""
    field = {
        name: Competitor(
            NAMES.get(name, f"attention beside 8 bits, {name}"), beside.BESIDE, way
        )
        for name, way in FIELD.items()
    }
    return compare(
        field, Workload.of("bfloat16", causal=causal, **SHAPE), seconds=0.3
    )


def on_the_card(device="cuda"):
    """Root mean squares of the two kernels' errors on the rows of the cell before, of the answer's size."""
    found = {"fp8": [], "bf16": []}
    for *rows, truth in heads:
        rows = [torch.tensor(x[None, None], device=device).bfloat16() for x in rows]
        answers = {
            "fp8": k01_triton.attention_fp8(*round_blocks.in_8_bits(*rows)),
            "bf16": k03_flash.attention(*rows),
        }
        for name, answer in answers.items():
            found[name].append(rms(answer[0, 0].double().cpu().numpy() - truth))
    return {name: sum(off) / HEADS / size for name, off in found.items()}


record(
    race={"full": raced(causal=False), "causal": raced(causal=True)},
    card={name: quantity(off) for name, off in on_the_card().items()},
)

# %% [markdown]
# On the rows of the experiment the kernel is off by {{ card.fp8:.1%}} of the answer's size; NumPy said {{ error.blocks:.1%}}. In bf16 our kernel in Triton is off by {{ card.bf16:.1%}}.
#
# /// predict | The same loop in Triton, in bf16 and in FP8, whose peak is higher. How long does FP8 take?
# - [race.full.fp8.us < 0.6 * race.full.triton.us] Little more than half as long
# - [0.6 * race.full.triton.us <= race.full.fp8.us < race.full.triton.us] Less, by a part
# - [race.full.fp8.us >= race.full.triton.us] As long, or longer
# /// reveal
# {{ race.full.fp8.us / race.full.triton.us:.2f}} of the time that the same loop takes with twice the bits, on {{ gpu.name }}. Times in milliseconds, 16 heads of 8192 tokens at d = 128, in turns, each on the same rows:
#
# | | not causal | causal |
# | --- | ---: | ---: |
# | FP8, Triton, rows given in 8 bits | {{ race.full.fp8.us / 1000:.2f}} | {{ race.causal.fp8.us / 1000:.2f}} |
# | FP8, Triton, rounding and turning included | {{ race.full.rounding.us / 1000:.2f}} | {{ race.causal.rounding.us / 1000:.2f}} |
# | bf16, [the same loop in Triton](../workshops/w1_flash_attention.py) | {{ race.full.triton.us / 1000:.2f}} | {{ race.causal.triton.us / 1000:.2f}} |
# | bf16, [our kernel for Hopper](../attention_on_hopper.py) | {{ race.full.wgmma.us / 1000:.2f}} | {{ race.causal.wgmma.us / 1000:.2f}} |
# | bf16, FlashAttention-2 in torch's SDPA | {{ race.full.flash.us / 1000:.2f}} | {{ race.causal.flash.us / 1000:.2f}} |
# | bf16, cuDNN in torch's SDPA | {{ race.full.cudnn.us / 1000:.2f}} | {{ race.causal.cudnn.us / 1000:.2f}} |
# ///
#
# Without a mask the FP8 kernel is at {{ race.full.fp8.of_peak:.0%}} of FP8's peak: it is the plain one. Only the products gain. The exponentials are as many as before, each weight is converted once more and changes places between threads, and every step's product with V leaves the tensor cores to be scaled. That also keeps the long sum in fp32: of a sum of 8-bit products, Hopper's tensor cores keep some 14 bits [^deepseek2024]. The milestone puts numbers on the first of these.
#
# ## Milestone
#
# /// exercise | Twice the multiply | 15 minutes
# A step takes 128 queries past 128 keys at d = 128: two products, and an exponential for each pair. An H100 multiplies 989 · 10¹² operations in a second in bf16 and takes 3.9 · 10¹² exponentials [^shah2024]. Which share of the products' time do the exponentials need? And in FP8, with twice the multiply? If one waits for the other, which share of the time
# do the tensor cores work, in each?
# /// answer
# In bf16 the exponentials take {{ ratio.bf16:.2f}} of the products' time, in FP8 {{ ratio.fp8:.2f}}: as long as the products. Taken in turn, the tensor cores work for {{ in_turn.bf16:.0%}} of the time in bf16 and for {{ in_turn.fp8:.0%}} in FP8. So FP8 makes overlap worth more than it was. Under a roofline with bytes alone
# you would not see it: the missing roof is the exponential unit's.
# ///
#
# ## What could not run here
#
# FlashAttention-3's own kernel in FP8, and the rotation on the card: ours has no roles for its warps, so its softmax and its products take turns. With roles you would see the exponentials become the roof at d = 128, and less so at d = 256, where there are more operations for each of them.
#
# ## What next
#
# [Week 18](week_18.py) takes such a kernel apart with a profiler.
