# ---
# id: week_12
# title: "Week 12: first capstone"
# search: {rank: 2}
# nav: "12 · Capstone I"
# description: "Three tracks, each as a short worked report: a server made faster step by step, an attention kernel, an audit of training on four cards; and a checklist to print."
# ---

# %% [markdown]
# # Week 12: first capstone
#
# /// week
# ///
#
# By the end of this week you can
#
# - take one piece of work from a baseline to a report that another person can check;
# - say for each step what it brought, and by which roof you knew that it would;
# - say what is left, and what the next step could bring at most.
#
# ## Why this week
#
# Eleven weeks gave you single answers to one question: what percent of peak, and why not more? A report must ask it again after every step, of another roof each time. This week you choose a track, and write one; below are three,
# worked out from this course's records, so that you can see how little a report needs.
#
# ## Before you begin
#
# - How is a report of five lines written, and how is it marked? [The capstone](../capstone.py#five-lines).
# - Track A: what is in a step of a server? [Week 6](week_06.py), and [one token](../one_token.py#the-floor-of-a-step-by-hand).
# - Track B: can you write the loop without looking? [Week 4](week_04.py#do), and [Week 9](week_09.py) for Triton.
# - Track C: who sends what to whom? [Week 8](week_08.py), and [a ring by hand](../field_guide/clusters.py#a-ring-by-hand).
#
# ## Read
#
# Nothing new. Read again the one page of your track that you understood least, and one report by somebody else: `capstone/examples/explained_loss/worklog.md` lies in the course's folder, and is a page long.
#
# ## Ideas
#
# /// idea | What is a track?
# *A, serving*: make one model answer faster on one card, by shorter weights (quantization), continuous batching and drafts (speculative decoding), one after the other. *B, a kernel*: attention in Triton, from 512 to 8192 tokens, against PyTorch's, under its roofline. *C, an audit*: train a model of a billion parameters on four
# cards with DDP, and with ZeRO-2 and ZeRO-3, which PyTorch calls FSDP, and find the dominant bottleneck of the links.
# ///
#
# /// idea | Why a baseline before anything else?
# A gain is a gain over something. Profile first, with PyTorch's profiler or Nsight: it says *which* roof you are under, and so which steps can help at all. A step that raises a roof under which you do not stand brings nothing, however clever it is.
# ///
#
# /// idea | In which order?
# What was measured alone need not add up: shorter weights help least where many rows share them, and drafts sell arithmetic that a full batch has sold already. So measure each step on top of the one before, or say, as below, that you did not.
# ///
#
# ## Do
#
# Choose a track, and keep a worklog with five headings from the first day. Here they are filled in three times. The first two are made from what {{ gpu.name }} has on record; the third has no cards, and says what can be said without them.
#
# ### Track A: a server, step by step
#
# /// when | engine.queue.seats > 0
# /// predict | Weights of four bits for one reader, continuous batches for a queue, or a draft model for one reader: which brought most, as a factor of tokens in a second?
# - [w4.faster >= engine.gain_last and w4.faster >= w6.paid.b1] The weights
# - [engine.gain_last > w4.faster and engine.gain_last >= w6.paid.b1] The batches
# - [w6.paid.b1 > w4.faster and w6.paid.b1 > engine.gain_last] The drafts
# /// reveal
# Weights {{ w4.faster:.1f}} times, batches {{ engine.gain_last:.1f}} times, drafts {{ w6.paid.b1:.2f}} times.
# ///
# /// otherwise
# Nobody has taken all of these steps on this card yet: weights of four bits for one reader are in [W4](../workshops/w4_serving.py#shorter-weights), continuous batches for a queue in [the engine](../an_engine.py#the-race), a draft model in [W6](../workshops/w6_frontier.py#from-which-batch-on-is-it-a-loss). Which will bring most, as a factor of tokens in a second? Write it down before you run one.
# ///
#
# **Right?** Each kernel was checked against float64 before its clock ran. The engine's tokens were compared with the plain model's on a small trained model: [are they the right tokens?](../an_engine.py#are-they-the-right-tokens) Four bits change the answers, and [what they cost](../workshops/w4_serving.py#what-the-bits-cost) is a question that no clock answers.
#
# **Of what peak?** One reader waits for bytes, so it is bandwidth. The baseline's profile, by PyTorch's profiler:
#
# /// part | docs/one_token.py#where-the-time-goes | table
# ///
#
# /// when | engine.queue.seats > 0
# So it was no roof at all that held it, but the host. What followed:
#
# | step, one reader, 8B shape | tokens in a second | of the byte peak | why it helped |
# | --- | ---: | ---: | --- |
# | baseline, PyTorch | {{ one_token.rate.plain:.0f}} | {{ one_token.decode.plain.of_peak:.0%}} | |
# | all orders in a CUDA graph | {{ one_token.rate.graph:.0f}} | {{ one_token.decode.graph.of_peak:.0%}} | the host is out of the way |
# | `torch.compile` of the layers | {{ one_token.rate.compiled:.0f}} | {{ one_token.decode.compiled.of_peak:.0%}} | fewer kernels, fewer trips |
# | five kernels a layer | {{ one_token.rate.our_step:.0f}} | {{ one_token.decode.our_step.of_peak:.0%}} | each begins while another ends |
# | weights of four bits | {{ w4.rate.whole:.0f}} | {{ w4.short.of_peak:.0%}} | fewer bytes: the roof itself moves |
#
# For a queue of {{ engine.queue.count:.0f}} requests on {{ engine.queue.seats:.0f}} seats, continuous batching brought {{ engine.rate.coach:,.0f}} tokens in a second to {{ engine.rate.bus:,.0f}}: more rows for each weight that is fetched.
#
# **Against whom?** PyTorch as it is, `torch.compile`, and the floor by the bytes for one reader in 16 bits: {{ one_token.floor.rate:.0f}} tokens in a second at the rate of a copy, {{ one_token.sheet.rate:.0f}} at the data sheet's, which is the peak of the table. The baseline moves a lot from run to run, since it is the host's: its spread is in [the ledger](../numbers.md).
# /// otherwise
# What followed, one step after the other: all orders in a CUDA graph, so that the host is out of the way; `torch.compile` of the layers, with fewer kernels and fewer trips; [five kernels a layer](../one_token.py), each of which begins while another ends; and weights of four bits, with which the roof itself moves. Then, for a queue of requests, continuous batching: more rows for each weight that is fetched.
#
# **Against whom?** PyTorch as it is, `torch.compile`, and the floor by the bytes. The baseline moves a lot from run to run, since it is the host's.
# ///
#
# **Who did what?** The last two steps for one reader are the course's own kernels, the others PyTorch's. In your report: what you wrote, what a machine wrote, and what showed whose mistake.
#
# **What lost?** Ask the drafts:
#
# /// part | docs/workshops/w6_frontier.py#from-which-batch-on-is-it-a-loss | claim
# ///
#
# That gain is computed from measured steps; no such pair of models was run. And the steps were not taken on top of each other: our engine has no weights of four bits.
#
# **Next:** the engine runs the plain step, with three kernels swapped. The five kernels a layer cannot handle pages yet.
#
# ### Track B: an attention kernel
#
# /// predict | 8192 tokens, d = 128, bf16. How many times the TFLOP/s of the plain recipe does a simplified FlashAttention in Triton reach?
# - [w1.flash.n8192.tflops / w1.materialised.n8192.tflops < 2] Less than 2 times
# - [2 <= w1.flash.n8192.tflops / w1.materialised.n8192.tflops < 8] 2 to 8 times
# - [w1.flash.n8192.tflops / w1.materialised.n8192.tflops >= 8] 8 times or more
# /// reveal
# {{ w1.flash.n8192.tflops / w1.materialised.n8192.tflops:.1f}} times.
# ///
#
# **Right?** At N = 1000, no multiple of a tile, causal and full, against float64: the worst element is {{ w1.right_bf16.causal.flash.error:.0e}} off in bf16, PyTorch's own {{ w1.right_bf16.causal.sdpa_flash.error:.0e}}.
#
# **Of what peak?** By counted bytes the plain recipe does {{ w1.big.materialised.gflop / w1.counted.materialised.gb:.0f}} operations for each, so bandwidth is its roof; the loop does {{ w1.big.flash.gflop / w1.counted.flash.gb:,.0f}}, so arithmetic is: {{ w1.flash.n8192.of_peak:.0%}} of it at 8192. Why not more? Exponentials and multiplies take turns.
#
# /// part | docs/workshops/w1_flash_attention.py#two-roofs | chart
# ///
#
# **Against whom?** The baseline, and two engines of PyTorch's `scaled_dot_product_attention` (SDPA), in the same rounds, in TFLOP/s:
#
# | N | plain | **our loop** | SDPA flash | SDPA cuDNN |
# | ---: | ---: | ---: | ---: | ---: |
# | 512 | {{ w1.materialised.n512.tflops:.0f}} | {{ w1.flash.n512.tflops:.0f}} | {{ w1.sdpa_flash.n512.tflops:.0f}} | {{ w1.cudnn.n512.tflops:.0f}} |
# | 1024 | {{ w1.materialised.n1024.tflops:.0f}} | {{ w1.flash.n1024.tflops:.0f}} | {{ w1.sdpa_flash.n1024.tflops:.0f}} | {{ w1.cudnn.n1024.tflops:.0f}} |
# | 2048 | {{ w1.materialised.n2048.tflops:.0f}} | {{ w1.flash.n2048.tflops:.0f}} | {{ w1.sdpa_flash.n2048.tflops:.0f}} | {{ w1.cudnn.n2048.tflops:.0f}} |
# | 4096 | {{ w1.materialised.n4096.tflops:.0f}} | {{ w1.flash.n4096.tflops:.0f}} | {{ w1.sdpa_flash.n4096.tflops:.0f}} | {{ w1.cudnn.n4096.tflops:.0f}} |
# | 8192 | {{ w1.materialised.n8192.tflops:.0f}} | {{ w1.flash.n8192.tflops:.0f}} | {{ w1.sdpa_flash.n8192.tflops:.0f}} | {{ w1.cudnn.n8192.tflops:.0f}} |
#
# **Who did what?** You write the loop of [week 4](week_04.py#do); Triton's compiler decides which warp does what, and that is where it stops being yours. The kernel, to compare with your own when you are done:
#
# /// source | src/course_kernels/attention/k03_flash.py
# fold: Attention in Triton, whole
# ///
#
# **What lost?** Against cuDNN it reaches {{ w1.flash_over_cudnn.full:.2f}} of the speed at N = 16384, and {{ w1.flash_over_cudnn.causal:.2f}} if causal. And at d = 64 a score has half the multiplying and the same exponential: {{ w1.d64.flash.of_peak:.0%}} of peak there.
#
# **Next:** warps that only fetch. It was tried, and reaches {{ w1.specialised.n16384.of_peak:.0%}}: [what is still lost](../workshops/w1_flash_attention.py#what-is-still-lost).
#
# ### Track C: an audit of training on four cards
#
# No four cards were here. But an audit begins with books, and books can be kept in NumPy: four cards that are rows of an array, and two operations that count what each card sends. In *DDP* every card has all weights, gradients and Adam's two averages. *ZeRO-2* leaves a card a quarter of gradients and averages. *ZeRO-3* leaves it a quarter of everything.

# %%
import numpy as np
from course_kernels.measure import quantity, record

CARDS, P, STEPS, ROWS = 4, 1200, 20, 64
rng = np.random.default_rng(12)
X = rng.standard_normal((CARDS, ROWS, P)) / P**0.5  # each card has rows of its own
Y = X @ rng.standard_normal(P)
sent = 0  # numbers that each card has sent


def reduce_scatter(parts):
    """Each card has the sum of its quarter; it sent the three others on."""
    global sent
    sent += (CARDS - 1) * P // CARDS
    return parts.sum(0).reshape(CARDS, -1)


def all_gather(quarters):
    """All have all quarters; each card sent as many numbers on."""
    global sent
    sent += (CARDS - 1) * P // CARDS
    return quarters.reshape(-1).copy()


def gradients(w):
    """Of a sum of squares; one row a card."""
    return np.stack([2 * x.T @ (x @ w - y) for x, y in zip(X, Y, strict=True)])


def adam(w, g, m, v, t):
    """One step, in place, of whatever part of the weights."""
    m += 0.1 * (g - m)
    v += 0.001 * (g * g - v)
    w -= 0.01 * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8)


def ddp():
    """An all-reduce is both halves; then every card does the whole step."""
    w, m, v = np.zeros((3, P))
    for t in range(1, STEPS + 1):
        adam(w, all_gather(reduce_scatter(gradients(w))), m, v, t)
    return w, 4 * P


def zero_2():
    """A card updates its quarter, and then all get the new weights."""
    w, (m, v) = np.zeros(P), np.zeros((2, CARDS, P // CARDS))
    for t in range(1, STEPS + 1):
        g, mine = reduce_scatter(gradients(w)), w.reshape(CARDS, -1).copy()
        adam(mine, g, m, v, t)
        w = all_gather(mine)
    return w, P + 3 * P // CARDS


def zero_3():
    """A card holds a quarter of everything, and gathers what it is about to use."""
    w, m, v = np.zeros((3, CARDS, P // CARDS))
    for t in range(1, STEPS + 1):
        all_gather(w)  # forward
        adam(w, reduce_scatter(gradients(all_gather(w))), m, v, t)
    return w.reshape(-1), 4 * P // CARDS


books, ends = {}, []
for way in (ddp, zero_2, zero_3):
    sent = 0
    weights, keeps = way()
    ends.append(weights)
    books[way.__name__] = {
        "sent": quantity(sent / STEPS / P, how="counted"),
        "keeps": quantity(keeps / P),
    }

# %% tags=["fold"]
PSI, EACH, PEAK, MFU = 1e9, 4096, 989.4e12, 0.4  # a billion; tokens of a card
OF_MODEL = {"ddp": 16, "zero_2": 2 + 14 / CARDS, "zero_3": 16 / CARDS}  # bytes each
ROADS = {"nvlink": 450e9, "pcie": 63e9}  # bytes in a second, one way
work = 6 * PSI * EACH / (PEAK * MFU)
moved = {way: 2 * PSI * float(of["sent"].value) for way, of in books.items()}
record(
    books=books,
    steps=quantity(STEPS),
    apart=quantity(float(max(np.abs(end - ends[0]).max() for end in ends))),
    model={way: quantity(size * PSI / 1e9, "GB") for way, size in OF_MODEL.items()},
    moved={way: quantity(size / 1e9, "GB") for way, size in moved.items()},
    work=quantity(1e3 * work, "ms"),
    peak=quantity(PEAK / 1e12, "TFLOP/s", how="given"),
    tokens=quantity(EACH, how="given"),
    share=quantity(MFU, how="given"),
    road={
        name: quantity(rate / 1e9, "GB/s", "given") for name, rate in ROADS.items()
    },
    over={
        name: {
            way: quantity(1e3 * size / rate, "ms") for way, size in moved.items()
        }
        for name, rate in ROADS.items()
    },
    even={
        name: quantity(moved["zero_3"] / rate / (work / EACH))
        for name, rate in ROADS.items()
    },
)

# %% [markdown]
# /// predict | How many times as many numbers as DDP does ZeRO-3 send in a step?
# - [books.zero_3.sent / books.ddp.sent < 0.9] Fewer: everything is a quarter
# - [0.9 <= books.zero_3.sent / books.ddp.sent < 1.2] As many
# - [1.2 <= books.zero_3.sent / books.ddp.sent < 1.8] About one and a half times as many
# - [books.zero_3.sent / books.ddp.sent >= 1.8] Twice as many, or more
# /// reveal
# {{ books.zero_3.sent / books.ddp.sent:.1f}} times. Lists often say *all-gather before the forward pass, reduce-scatter after the backward pass*, which would be as many as DDP. But weights that were dropped after the forward pass must come once more for the backward pass.
# ///
#
# **Right?** After {{ steps:.0f}} steps the weights of the three ways are {{ apart:g}} apart. Adam works on each number alone, so it does not matter who holds it. With a norm of all gradients, to clip them, that would end: it needs one more sum over all cards.
#
# **Of what peak?** Two peaks: arithmetic for the work, the links for what is sent. For a billion parameters, 16 bytes each: weights and gradients in bf16, and for Adam weights and two averages in fp32:
#
# | way | a card keeps, GB | a card sends in a step, GB | over NVLink, ms | over PCIe, ms |
# | --- | ---: | ---: | ---: | ---: |
# | DDP | {{ model.ddp:.1f}} | {{ moved.ddp:.1f}} | {{ over.nvlink.ddp:.1f}} | {{ over.pcie.ddp:.0f}} |
# | ZeRO-2 | {{ model.zero_2:.1f}} | {{ moved.zero_2:.1f}} | {{ over.nvlink.zero_2:.1f}} | {{ over.pcie.zero_2:.0f}} |
# | ZeRO-3 | {{ model.zero_3:.1f}} | {{ moved.zero_3:.1f}} | {{ over.nvlink.zero_3:.1f}} | {{ over.pcie.zero_3:.0f}} |
#
# That is without activations, at {{ road.nvlink:.0f}} and {{ road.pcie:.0f}} GB/s one way, as the sheets of an H100's roads say [^bekman-links]. The work of {{ tokens:,.0f}} tokens on each card is 6 · 10⁹ operations for each: {{ work:.0f}} ms, at an assumed {{ share:.0%}} of the {{ peak:.0f}} TFLOP/s that are an H100's dense peak [^lockwood-h100].
#
# **Against whom?** Against the work, since what is sent can hide behind it. ZeRO-3 sends for as long as it works at {{ even.nvlink:,.0f}} tokens a card over NVLink, and at {{ even.pcie:,.0f}} over PCIe. So the dominant bottleneck is the gather of weights, and only where batches are small or the road is PCIe.
#
# **Who did what?** NumPy kept the books, and no card was asked.
#
# **What lost?** Whatever does not grow with bytes: each layer of ZeRO-3 is gathered by itself, and every message has a beginning. [Clusters](../field_guide/clusters.py#a-ring-by-hand) has the rounds. No hiding was measured, and no activations counted.
#
# **Next:** two cards, one trace: does the gather of the next layer lie beside the work of this one?
#
# ## Milestone
#
# /// exercise | What could the next step bring? | 4 minutes
# Take track A. There are two next steps: a faster version of the five kernels for one reader in 16 bits, or those five kernels for the engine's pages. What can each bring at most, by its floor? Which do you take, and which number do you look at before you begin?
# /// answer
# /// when | engine.queue.seats > 0
# For one reader the step reaches {{ w4.one.our_step.of_peak:.0%}} of the byte peak, so a perfect one would be {{ 1 / w4.one.our_step.of_peak:.2f}} times as fast, by the data sheet. Measured against the speed of a copy, which is what a kernel can hope for, only {{ 1 / w4.decode_of_floor.b1:.2f}} times is left.
#
# The engine's step takes {{ engine.took.bus.decode:.1f}} ms, and its weights need {{ engine.step_floor_ms:.1f}} ms by the data sheet: {{ engine.took.bus.decode / engine.step_floor_ms:.1f}} times is left. So take the engine. Before you begin, look at how much of its step is the host's: a faster kernel does not shorten that.
# /// otherwise
# Read two numbers first: which share of the byte peak does the step for one reader reach, and how long does the engine's step take over its floor? One over the share is all that a perfect step can bring; against the rate of a copy, which is what a kernel can hope for, it is less. Take the one with more left. Before you begin, look at how much of that step is the host's: a faster kernel does not shorten that.
# ///
# ///
#
# ## A checklist to print
#
# Print this page, or copy the list. A report is done when each box is ticked.
#
# | | in the report |
# | --- | --- |
# | ☐ | A baseline, with its profile: PyTorch's profiler, or Nsight. |
# | ☐ | Which roof binds, and what percent of it, before the first step. |
# | ☐ | The answer is right: on which sizes, against which truth, worst element. |
# | ☐ | Each step with a number before and a number after, in the same conditions. |
# | ☐ | For each step a sentence: why it helped, by the roofline. |
# | ☐ | At least one step that did not help, and why. |
# | ☐ | Against whom: the first draft, the library, the floor. |
# | ☐ | Who did what, and whose mistake showed how. |
# | ☐ | The command that runs it again, on which card, with which versions. |
# | ☐ | One thing that you would do next with more time or hardware, and what it can bring at most. |
#
# ## What could not run here
#
# Track C: with four cards you would see memory near the table plus activations, and in a trace the gathers of ZeRO-3 beside the work, or between it where batches are small. Track A's drafts need a pair of models; with a pair that agrees less than ours, you would see a loss sooner.
#
# ## What next
#
# [Week 13](week_13.py) goes below Triton: what 32 lanes can say to each other.
