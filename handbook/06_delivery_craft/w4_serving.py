# ---
# id: teach_w4
# title: "Teaching W4: inference-serving kernels"
# nav: W4 · Serving
# description: How to lead a class through prefill and decode, the cache in pages, a fused kernel with its receipt, and short weights.
# ---

# %% [markdown]
# # Teaching W4: inference-serving kernels
#
# After this page you can take a class from two drawings on a board to a kernel that each student has typed, and to a piece of
# paper that says which trips it saves. You will have done every sum of the evening yourself, and you will know two popular
# sentences about serving that are only sometimes true.
#
# You need this page, [the map of the three hours](../05_the_frontier/w4_map.md) and [the page for students](../../docs/workshops/w4_serving.py),
# which has the clock's answers to everything that is done with a pencil here. This page has the full text of the files that you
# hand out.

# %% [markdown]
# ## What it is really about
#
# It is about one number: when a layer multiplies, how many **rows** does it multiply? In *prefill* the whole prompt comes in at once, and there are
# thousands. In *decode* the answer goes out one token at a time, and there is one row for each user. Call that number M. The
# weights are the same, the card is the same, and so is the mathematics of the multiply. M decides who waits for whom. (Attention
# changes its shape as well: a square in prefill, one row against the cache in decode. Its turn comes with the cache.)
#
# All serving kernels follow from that. *More rows*: batches that change at every step, and a cache in pages, so that more users fit.
# *Fewer trips*: fusion. *Shorter numbers*: quantisation. These are three medicines, and your students should leave knowing which
# one to ask for.
#
# /// callout | metaphor
# A restaurant has two rhythms. At the banquet two hundred guests sit down at once, each pot that comes from the pantry fills two
# hundred plates, and the cooks are what you wait for. In the trickle one guest after another orders a single bite, and for every
# bite the whole pantry comes down the hall again. The cooks lean on their stoves.
#
# The cure for the trickle is not a faster cook. The cure is a second guest at the same moment.
# ///
#
# /// figure | docs/assets/figures/banquet_and_trickle.svg
# alt: A restaurant with two rhythms. Prefill is a banquet, many plates from one pot and busy cooks; decode is a trickle, one bite at a time, and the cooks wait for bytes.
# ///

# %% [markdown]
# ## By hand: rows
#
# Take a layer with a grid of 8192 × 8192 weights in bf16, and M rows. Operations: 2·M·N·K. Bytes: rows in, weights, rows out, two
# bytes for each number. Divide. The ridge comes from a data sheet: peak divided by bandwidth. The map and the sheets use the card on which the
# students' page was measured, an {{ w4.gpu.name }}, so that the clock on that page answers what the class has worked out. The cells of
# this chapter print numbers for an H200. Have both ready: the two cards' memories differ, and so do their ridges.
#
# /// predict | At how many rows does this layer begin to wait for the cooks?
# Ask your class, too, and keep the tally.
#
# - [cross < 12] A handful
# - [12 <= cross < 120] Some dozens
# - [120 <= cross < 1200] Some hundreds
# - [cross >= 1200] Thousands
# /// reveal
# With an H200, from {{ cross:.0f}} rows on: its ridge is {{ peak:.0f}} ÷ {{ bandwidth:.1f}} = {{ ridge:.0f}} operations per byte,
# and it takes a few more rows, because the rows have bytes, too. On the page and on the sheets, an
# {{ w4.gpu.name }}, the ridge is {{ w4.sheet.peak:.0f}} ÷ {{ w4.sheet.bandwidth / 1000:.2f}} = {{ w4.ridge:.0f}}, and the layer crosses it at {{ w4.crosses:.0f}} rows.
# ///

# %%
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import machine_for

N = K = 8192
BYTES = 2  # bf16
sheet = machine_for("NVIDIA H200")
ridge = sheet.peak_tflops["bf16"] * 1e12 / (sheet.bandwidth_gb_per_s * 1e9)


def intensity(M):
    """Operations for each byte: M rows times an N × K grid, each number moved once."""
    return 2 * M * N * K / (BYTES * (M * K + N * K + M * N))


def floor(M):
    """Seconds that no kernel can go below: the higher of the two roofs."""
    operations = 2 * M * N * K
    carried = operations / intensity(M)
    return max(
        operations / (sheet.peak_tflops["bf16"] * 1e12),
        carried / (sheet.bandwidth_gb_per_s * 1e9),
    )


for M in (1, 4, 16, 64, 256, 1024, 4096):
    waits = "bytes" if intensity(M) < ridge else "cooks"
    print(
        f"M = {M:5d}   {intensity(M):8.1f} operations per byte   waits for {waits}"
    )

M = 1
while intensity(M) < ridge:  # the first M to the right of the ridge
    M += 1

record(
    peak=quantity(sheet.peak_tflops["bf16"], "TFLOP/s", of="tensor:bf16"),
    bandwidth=quantity(sheet.bandwidth_gb_per_s / 1000, "TB/s", of="hbm"),
    ridge=quantity(ridge, "FLOP/B"),
    cross=quantity(M),
    row={f"m{M}": quantity(intensity(M)) for M in (1, 64, 4096)},
    least={f"m{M}": quantity(1e6 * floor(M), "us") for M in (1, 64, 4096)},
)

# %% [markdown]
# For few rows the answer is nearly M itself: almost all bytes are weights, two bytes each, and each weight is used for 2·M
# operations. For 4096 rows it is {{ row.m4096:.0f}}, a good deal less than 4096, because by then the rows have as many bytes as
# the weights. Let them find that out; it is why the sheet counts rows in and rows out.
#
# ### The cache: what one token weighs
#
# Attention looks back at every earlier token, so the keys and values of all tokens are kept. The shapes are those of Llama 3.1
# 70B, 80 layers and 8 key heads of 128 [^meta-llama31]. Then come six requests, stored the old way and in pages.

# %%
LAYERS, KEY_HEADS, D = 80, 8, 128
token_bytes = 2 * LAYERS * KEY_HEADS * D * BYTES  # keys and values
print(f"one token: {token_bytes} bytes; into 40 GB go {40e9 // token_bytes:.0f}")

LENGTHS = (37, 100, 250, 512, 900, 1500)  # tokens so far, six requests
RESERVED = 2048  # the longest answer anybody may ask for
used = sum(LENGTHS)


def places(page):
    """Places taken by all requests when the cache is handed out a page at a time."""
    return sum(-(-length // page) * page for length in LENGTHS)


taken = {"reserved": len(LENGTHS) * RESERVED}
taken |= {f"page{page}": places(page) for page in (1, 16, 256)}
for how, number in taken.items():
    print(f"{how:9s} {number:6d} places, empty {1 - used / number:6.1%}")

record(
    token=quantity(token_bytes, "B"),
    tokens_in_40_gb=quantity(40e9 // token_bytes),
    used=quantity(used),
    taken={how: quantity(number) for how, number in taken.items()},
    empty={how: quantity(1 - used / n) for how, n in taken.items()},
)

# %% [markdown]
# | six requests, {{ used:.0f}} tokens | places | empty |
# |---|---:|---:|
# | 2048 reserved for each | {{ taken.reserved:.0f}} | {{ empty.reserved:.1%}} |
# | pages of 256 | {{ taken.page256:.0f}} | {{ empty.page256:.1%}} |
# | pages of 16 | {{ taken.page16:.0f}} | {{ empty.page16:.1%}} |
# | pages of 1 | {{ taken.page1:.0f}} | {{ empty.page1:.1%}} |
#
# Our six are made up. In real servers of 2023 only 20.4 to 38.2 % of the cache held tokens [^kwon2023], and the authors of vLLM put the
# waste at 60 to 80 % before and under 4 % with pages [^vllm2023]. What was wasted was *not padding*. The waste was room
# reserved for an answer that never got that long, and gaps between such reservations. And what is saved is **room**. A
# single attention call does not take less time; on the contrary, it now has to follow a
# table. But more users fit, so M grows, so
# each weight that is fetched serves more of them.
#
# A single line makes a kernel *paged*. Here it is, with its trap:

# %%
import numpy as np

PAGE = 16


def keys(pages, table, length):
    """The keys of one request in order, (length, D), though their pages lie anywhere."""
    t = np.arange(length)  # the last page is not full: never go past the length
    return pages[table[t // PAGE], t % PAGE]


rng = np.random.default_rng(0)
plain = rng.standard_normal((37, 4))  # as if they lay in a row
pages = rng.standard_normal((8, PAGE, 4))  # the pool, with old rubbish in it
table = np.array([7, 2, 5])
for t in range(37):
    pages[table[t // PAGE], t % PAGE] = plain[t]

assert (keys(pages, table, 37) == plain).all()
print("37 keys out of three pages, in order")

# %% [markdown]
# Somebody will write `pages[table].reshape(-1, 4)`. That gives 48 rows for 37 tokens, and the last eleven are rubbish from the
# request that had the page before. A softmax does not ignore rubbish.
#
# Students who want to can build the rest of the engine's bookkeeping at home. The lab `paged` is [on the students' page](../../docs/workshops/w4_serving.py#build-it-a-cache-in-pages),
# in plain Python, without a GPU. It asks for the same `keys`, for pages of any size; then for `append`, the allocator `Pages`,
# what two texts share, and the six slips in pages. The file from class has the same name as the lab's: `nox -s lab -- paged --stage 0`
# writes the starter and keeps the other file beside it.
# The two lines above are right in the lab as well, if you add `import numpy as np` and write `pages.shape[1]` for `PAGE`.
#
# ### The receipt of a fused kernel
#
# Between two multiplies, a model adds the residual, which came round the side, divides each row by its own size, and multiplies
# by a weight. In
# class they count trips with a pencil, in units of one tensor. Here a pantry with a doorkeeper counts for us.

# %%


class Pantry:
    """Counts what goes to HBM and back."""

    def __init__(self):
        self.bytes = 0

    def fetch(self, a):
        """An array, from below."""
        self.bytes += a.nbytes
        return a

    put = fetch  # the way down costs the same


def five_operators(x, g, r, hall, eps=1e-5):
    """s = x + r and its RMSNorm, as five operators that each fetch and put."""
    up, down = hall.fetch, hall.put
    s = down(up(x) + up(r))
    squares = down(up(s) ** 2)
    mean = down(up(squares).mean(axis=1, keepdims=True))
    scaled = down(up(s) / np.sqrt(up(mean) + eps))
    return down(up(scaled) * up(g)), s


def fused(x, g, r, hall, eps=1e-5):
    """The same, one row at a time, and s is never fetched again."""
    y, s = np.empty_like(x), np.empty_like(x)
    hall.fetch(g)  # small enough to stay
    for i in range(len(x)):
        row = hall.fetch(x[i]) + hall.fetch(r[i])
        s[i] = hall.put(row)
        y[i] = hall.put(row / np.sqrt((row * row).mean() + eps) * g)
    return y, s


x, r = rng.standard_normal((2, 64, 1000)).astype(np.float32)
g = rng.standard_normal(1000).astype(np.float32)
sum64 = x.astype(np.float64) + r
truth = sum64 / np.sqrt((sum64**2).mean(axis=1, keepdims=True) + 1e-5) * g

trips, worst = {}, {}
for how in (five_operators, fused):
    hall = Pantry()
    y, _ = how(x, g, r, hall)
    trips[how.__name__] = hall.bytes / x.nbytes
    worst[how.__name__] = float(np.abs(y - truth).max())
    print(
        f"{how.__name__:15s} {trips[how.__name__]:6.2f} tensors to or from HBM, "
        f"worst error {worst[how.__name__]:.1e}"
    )

record(
    trips={how: quantity(number) for how, number in trips.items()},
    worst={how: quantity(number) for how, number in worst.items()},
)

# %% [markdown]
# {{ trips.five_operators:.2f}} against {{ trips.fused:.2f}}: the ten and the four of the pencil, plus crumbs (a mean for each
# row, a weight for each column). The quotient is a **forecast of bytes**; write that word beside it. The clock has its own
# opinion.
#
# This is the kernel that your students type. The map splits it into two halves: down to the store of s, and the rest.
#
# ```python
# import torch
# import triton
# import triton.language as tl
#
#
# @triton.jit
# def add_rmsnorm_kernel(x_ptr, g_ptr, r_ptr, y_ptr, s_ptr, N, eps, BLOCK: tl.constexpr):
#     row = tl.program_id(0).to(tl.int64)
#     n = tl.arange(0, BLOCK)
#     mask = n < N
#     x = tl.load(x_ptr + row * N + n, mask=mask, other=0.0)
#     r = tl.load(r_ptr + row * N + n, mask=mask, other=0.0)
#     s = x + r
#     tl.store(s_ptr + row * N + n, s, mask=mask)
#     # --- the first half ends here; s is still in the hand ---
#     s = s.to(tl.float32)  # fp16 ends at 65 504
#     mean = tl.sum(s * s) / N  # by N, not by BLOCK
#     g = tl.load(g_ptr + n, mask=mask, other=0.0)
#     y = s / tl.sqrt(mean + eps) * g
#     tl.store(y_ptr + row * N + n, y, mask=mask)
#
#
# def add_rmsnorm(x, g, r, eps=1e-5):
#     y, s = torch.empty_like(x), torch.empty_like(x)
#     M, N = x.shape
#     BLOCK = triton.next_power_of_2(N)
#     add_rmsnorm_kernel[(M,)](x, g, r, y, s, N, eps, BLOCK=BLOCK)
#     return y, s
#
#
# device = "cuda" if torch.cuda.is_available() else "cpu"
# for dtype, times, N in (
#     (torch.float32, 1, 1000),
#     (torch.float32, 1, 1024),
#     (torch.float16, 1, 1000),
#     (torch.float16, 10, 1000),
# ):
#     x, r = (times * torch.randn(2, 5, N, device=device)).to(dtype)
#     g = torch.randn(N, device=device).to(dtype)
#     y, s = add_rmsnorm(x, g, r)
#     S = s.double()
#     truth = S / torch.sqrt((S * S).mean(1, keepdim=True) + 1e-5) * g.double()
#     worst = ((y - truth).abs().max() / truth.abs().max()).item()
#     print(dtype, "times", times, N, "s is x + r:", torch.equal(s, x + r), "worst error:", worst)
# ```
#
# With a GPU: `python my_labs/add_rmsnorm.py`. Without one: `TRITON_INTERPRET=1 python my_labs/add_rmsnorm.py`, in the environment that the grader
# made (`.nox/grade/bin/python`). On a laptop where Triton does not install, use `fused` from the cell above, which is the same
# kernel with a loop instead of a grid. The course's tests take this text, run it in the interpreter, and compare all four lines
# with float64: in fp32 the errors are in the last digits, in fp16 below a thousandth.
#
# /// callout | teaching
# Two mistakes are waiting for your students. Warn them of neither. `/ BLOCK`: N = 1024 passes and N = 1000
# fails, and the two
# lines on their screen say more about ragged sizes than you can. And the squares in fp16: the third line passes; in the fourth
# the inputs are ten times as large, and every y is 0. Ask: *how large may a sum of a thousand squares be, in fp16?* The square of
# a number near 14 is about 200, and a thousand of those are past 65 504. So: square and add up in fp32, store in fp16. (NVIDIA's norms do that, and so do everybody else's. The bytes in and out stay the same.)
# ///
#
# Students who are behind at minute 110 get this file instead, `add_rmsnorm_planted.py`, and hunt for its bug. The launcher and the check are those from above. The file has one fault, the second of the two.
#
# ```python
# @triton.jit
# def add_rmsnorm_kernel(x_ptr, g_ptr, r_ptr, y_ptr, s_ptr, N, eps, BLOCK: tl.constexpr):
#     row = tl.program_id(0).to(tl.int64)
#     n = tl.arange(0, BLOCK)
#     mask = n < N
#     x = tl.load(x_ptr + row * N + n, mask=mask, other=0.0)
#     r = tl.load(r_ptr + row * N + n, mask=mask, other=0.0)
#     s = x + r
#     tl.store(s_ptr + row * N + n, s, mask=mask)
#     mean = tl.sum(s * s) / N
#     g = tl.load(g_ptr + n, mask=mask, other=0.0)
#     y = s / tl.sqrt(mean.to(tl.float32) + eps) * g
#     tl.store(y_ptr + row * N + n, y, mask=mask)
# ```
#
# There *is* a conversion in it, but one line too late: what has overflowed stays infinite. This is how the mistake is
# usually made.
#
# ### Slips of paper: the coach and the bus
#
# Four seats, six requests. A coach takes four, and takes the next only when everyone on board is done. A bus lets people
# on and off at every stop.

# %% tags=["fold"]
REQUESTS, SEATS = (3, 9, 4, 6, 2, 5), 4  # steps that each request needs


def coach():
    """Busy seats in every step when a batch ends as a whole."""
    steps = []
    for first in range(0, len(REQUESTS), SEATS):
        batch = REQUESTS[first : first + SEATS]
        steps += [
            sum(length > step for length in batch) for step in range(max(batch))
        ]
    return steps


def bus():
    """Busy seats in every step when a free seat is taken at once."""
    waiting, seated, steps = list(REQUESTS), [], []
    while waiting or seated:
        while waiting and len(seated) < SEATS:
            seated.append(waiting.pop(0))
        steps.append(len(seated))
        seated = [left - 1 for left in seated if left > 1]
    return steps


for ride in (coach, bus):
    m = ride()
    print(f"{ride.__name__:5s} {len(m):2d} steps, M = {m}")
    print(f"      empty seats: {len(m) * SEATS - sum(m)}")
record(
    ride={
        ride.__name__: {
            "steps": quantity(len(ride())),
            "empty": quantity(len(ride()) * SEATS - sum(ride())),
        }
        for ride in (coach, bus)
    }
)

# %% [markdown]
# {{ ride.coach.empty:.0f}} empty seats against {{ ride.bus.empty:.0f}}, and {{ ride.coach.steps:.0f}} steps against {{ ride.bus.steps:.0f}}.
# Scheduling at every step came with Orca [^yu2022]. For kernel writers the lesson is in the row of M: it changes all the time. A
# kernel that is good at only one M is not a serving kernel.
#
# ### Short weights, and where they stop helping
#
# A weight of b bytes is used for 2·M operations, so with M rows the intensity is 2·M / b, leaving out the rows' own bytes. Where that intensity meets the ridge of bf16 arithmetic, shorter storage has nothing left to give.

# %%
ends = {bits: ridge * (bits / 8) / 2 for bits in (16, 8, 4)}
for bits, rows in ends.items():
    print(
        f"weights of {bits:2d} bits, arithmetic in bf16: bytes bind up to M = {rows:.0f}"
    )
record(ends={f"bits{bits}": quantity(rows) for bits, rows in ends.items()})

# %% [markdown]
# On the sheets, with an {{ w4.gpu.name }}: {{ w4.ends.bits16:.0f}} rows for 2 bytes, {{ w4.ends.bits16:.0f}} ÷ 2 = about {{ w4.ends.bits8:.0f}} for 1, {{ w4.ends.bits16:.0f}} ÷ 4 = about {{ w4.ends.bits4:.0f}} for ½. With an H200: {{ ends.bits16:.0f}}, {{ ends.bits8:.0f}} and {{ ends.bits4:.0f}}. The authors of MARLIN, a kernel for four-bit weights and 16-bit arithmetic, report close to
# the full factor of four up to 16 or 32 rows; by 64 to 128 rows the gain has shrunk, but is still there [^frantar2025]. A pencil's
# forecast and somebody else's measurement, on a different card, have the same shape. (With 8-bit weights *and* 8-bit arithmetic
# the flat roof rises as well, and the ridge in rows is back where it was.)

# %% [markdown]
# ### Who pays: three kinds of traffic
#
# Minute 67 asks who pays the bill. Have an answer that you have worked out yourself. Take a model of the size in
# [L1](../../docs/lectures/l1_what_a_gpu_is.py#the-receipt), in bf16, on one card as if it fitted, with 32 users in each decode
# step. You pay for four things:
#
# - **prefill, the weights**: 2 operations for each weight and token; or their bytes, once, if the prompt is short;
# - **prefill, attention**: each token looks at all tokens before it, 4 operations for each of 128 numbers of 64 query heads in 80
#   layers: this grows with the *square*;
# - **decode, the weights**: their bytes, once for each step, shared by the 32 users;
# - **decode, the cache**: all that *this* user has said and heard, fetched for every token, and shared with nobody.
#
# These are *floors*, at the roofs of the data sheet: no real server reaches them, but what you need is their order.

# %%
WEIGHTS = 69_501_714_432  # the receipt of L1
USERS, QUERY_HEADS = 32, 64
PEAK, BANDWIDTH = sheet.peak_tflops["bf16"] * 1e12, sheet.bandwidth_gb_per_s * 1e9
PAIR = (
    4 * D * QUERY_HEADS * LAYERS
)  # operations of a token that looks at one: q·k, p·v
TRAFFIC = {  # tokens in the cache already, new ones in, out
    "chat": (0, 300, 500),
    "report": (0, 30_000, 300),
    "agent": (0, 8_200, 400),
    "agent_cached": (8_000, 200, 400),
}


def prefill(cached, new):
    """Seconds at the higher of the two roofs, and those of attention's operations."""
    pairs = new * cached + new * (new + 1) // 2  # back to the first, and to itself
    operations = 2 * WEIGHTS * new + PAIR * pairs
    carried = BYTES * WEIGHTS + token_bytes * (cached + new)
    return max(operations / PEAK, carried / BANDWIDTH), PAIR * pairs / PEAK


def decode(users, first, out):
    """Seconds of one user's share of `out` steps, and those of fetching the cache."""
    whole = of_cache = 0.0
    for length in range(first + 1, first + out + 1):
        operations = users * (2 * WEIGHTS + PAIR * length)
        cache = users * token_bytes * length
        whole += (
            max(operations / PEAK, (BYTES * WEIGHTS + cache) / BANDWIDTH) / users
        )
        of_cache += cache / BANDWIDTH / users
    return whole, of_cache


floors = {}
for kind, (cached, new, out) in TRAFFIC.items():
    of_prompt, attention = prefill(cached, new)
    share, cache = decode(USERS, cached + new, out)
    floors[kind] = {
        "prefill": of_prompt,
        "attention": attention,
        "decode": share,
        "cache": cache,
        "alone": decode(1, cached + new, out)[0],
    }
    print(
        f"{kind:13s} prefill {of_prompt:6.3f}, attention {attention:6.3f}   "
        f"decode, one share {share:6.3f}, its cache {cache:6.3f}"
    )
record(
    floor={
        kind: {part: quantity(time, "s") for part, time in parts.items()}
        for kind, parts in floors.items()
    },
    # what the four sums on the sheet are made of, in milliseconds
    ms={
        "thousand_in": quantity(1e6 * 2 * WEIGHTS / PEAK, "ms"),
        "square": quantity(1e3 * PAIR * 1000**2 / 2 / PEAK, "ms"),
        "share": quantity(1e3 * BYTES * WEIGHTS / BANDWIDTH / USERS, "ms"),
        "thousand_kept": quantity(1e3 * token_bytes * 1000 / BANDWIDTH, "ms"),
    },
    reports=quantity(USERS * token_bytes * (30_000 + 300), "B"),
)

# %% [markdown]
# Those seconds are for an H200. For the pencil, as on the sheets, with an {{ w4.gpu.name }} and T thousand tokens in: prefill takes {{ w4.ms.thousand_in:.0f}}
# ms × T for the weights and {{ w4.ms.square:.1f}} ms × T² for attention. A token of decode takes
# {{ w4.ms.share:.2f}} ms for the weights, one of 32 shares, and {{ w4.ms.thousand_kept:.4f}} ms for each thousand tokens in the cache.
#
# | traffic, {{ w4.gpu.name }} | tokens in | tokens out | prefill, s | attention's part of it, s | decode, one of 32 shares, s | the cache's part of it, s | decode alone, s |
# |---|---:|---:|---:|---:|---:|---:|---:|
# | chat | 300 | 500 | {{ w4.pays.chat.prefill:.2f}} | {{ w4.pays.chat.attention:.2f}} | {{ w4.pays.chat.decode:.2f}} | {{ w4.pays.chat.cache:.2f}} | {{ w4.pays.chat.alone:.1f}} |
# | a question on a long report | 30 000 | 300 | {{ w4.pays.report.prefill:.2f}} | {{ w4.pays.report.attention:.2f}} | {{ w4.pays.report.decode:.2f}} | {{ w4.pays.report.cache:.2f}} | {{ w4.pays.report.alone:.1f}} |
# | an agent with its preface | 8 200 | 400 | {{ w4.pays.agent.prefill:.2f}} | {{ w4.pays.agent.attention:.2f}} | {{ w4.pays.agent.decode:.2f}} | {{ w4.pays.agent.cache:.2f}} | {{ w4.pays.agent.alone:.1f}} |
# | the same, preface still in the cache | 200 | 400 | {{ w4.pays.kept.prefill:.2f}} | {{ w4.pays.kept.attention:.2f}} | {{ w4.pays.kept.decode:.2f}} | {{ w4.pays.kept.cache:.2f}} | {{ w4.pays.kept.alone:.1f}} |
#
# So the chat pays for decode, the report for prefill, and for the agent it depends on one question, *is the preface still there?*
# The other number that decides is how many users share a step: with a single user, even the report pays for decode. More users
# share the weights, but never the cache: look at the report, where the cache is the larger part of each decoded token. And
# the cache of 32 such reports takes {{ reports / 1e9:.0f}} GB, which does not fit on one card: pages decide how many users there can be.

# %% [markdown]
# ## In production today
#
# /// callout | production
# vLLM became known for its pages, and its launch post has the numbers above [^vllm2023]. Scheduling at every step is older [^yu2022].
# Today every large serving engine does both.
#
# What these engines fuse is less romantic than the textbook says. They usually put residual add + RMSNorm into one kernel, sometimes with
# the quantisation for the next multiply, and do Q, K and V as *one* multiply, with their weights side by side. RMSNorm *inside*
# the QKV multiply can be built, but it is unusual. So we teach the usual pair.
# ///
#
# Two sentences are only sometimes true. Have an answer ready for both.
#
# - *"Decode is memory-bound."* For one user, and for the attention of most models, yes. The weights stop being the limit near
#   {{ cross:.0f}} rows on an H200, near {{ w4.crosses:.0f}} on an {{ w4.gpu.name }}. And the
#   attention of DeepSeek's models, MLA, is near the ridge in decode: at 128 query heads it does {{ w4.mla.h128:.0f}} operations per
#   byte. That is to the right of an H200's ridge, {{ ridge:.0f}}. On paper it is to the left of an H100's, 989 ÷ 3.35 = 295
#   [^nvidia-h100]. The
#   makers of MLA have an H800, which throttles under load, to 865 ÷ 3.35 = 258, and they call the decode compute-bound from 128 heads up [^flashmla].
#   So name the card when you say it. [W6](w6_frontier.py) does that sum, and corrects today's board with one word.
# - *"Decode is where the money goes."* For a chat, mostly. For questions on long documents, and for agents that send a long preface each
#   time, prefill can be the larger part. Tokens in, tokens out: count first.

# %% [markdown]
# ## The click
#
# The click happens between minutes 20 and 30, and it needs silence.
#
# /// callout | click
# On the students' page a grid of 8192 × 8192 meets one row, and then 64, in bf16. That is 64 times the arithmetic. On an {{ w4.gpu.name }}
# the time goes from {{ w4.rise.m1.us:.1f }} µs to {{ w4.rise.m64.us:.1f }} µs: a factor of {{ w4.rise.m64.us / w4.rise.m1.us:.2f }}.
# 63 people ate for nothing.
# ///
#
# The demo repeats it live, and adds 4096 rows, so that the class sees the end of the free lunch.
#
# /// callout | demo
# Two demos, both on the map with their waits. *1, 64 and 4096 rows* runs three processes one after the other: take the
# guesses first, then press Enter. *Two kernels, or one* is the pair of
# [L3](../../docs/lectures/l3_memory.py#do-it-while-you-hold-it): there, on an {{ l3.gpu.name }}, eager takes {{ l3.fuse.eager.us / l3.fuse.cuda.us:.1f}}
# times as long as the fused kernel written by hand, with {{ l3.counted.fuse.eager.gb / l3.counted.fuse.cuda.gb:.1f}} times the bytes. The
# lesson is that these are *not* the same number.
# ///
#
# The race has a third line, `torch.compile`, and you will be glad of it.
#
# /// claim | l3.fuse.compiled.us > 1.2 * l3.fuse.cuda.us and l3.counted.fuse.compiled.gb < 1.3 * l3.counted.fuse.cuda.gb
# It moves the same bytes as the fused kernel and takes {{ l3.fuse.compiled.us / l3.fuse.cuda.us:.2f}} times as long on that {{ l3.gpu.name }}.
# Bytes are a forecast. When the arithmetic does not fit into their time, the clock shows it.
# /// otherwise
# It takes {{ l3.fuse.compiled.us / l3.fuse.cuda.us:.2f}} times as long as the fused kernel on that {{ l3.gpu.name }}.
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **"The big prefill multiply is the expensive part."** Or, an hour later: **"decode is the expensive part, always."** Neither answer rests on
# a count. Ask: *how many tokens came in, how many went out?* Then let the sheet decide.
# ///
#
# - *"Decode is slow because its matrix is small."* The grid is the same. It just has few rows.
# - *"Paging makes attention faster."* It makes room. Room makes rows. Rows make use of what was fetched anyway.
# - *"It saves padding."* It saves reservations and gaps, not padding.
# - *"fp16 is fine, it passed."* It passed for one size of input. Make the input ten times as large, and the squares
#   overflow: add up in fp32.
# - *"Query heads."* The cache holds keys and values, so count key heads: eight here, not 64.
# - *"Ten trips to four, so I know the time."* You know the bytes. Say *forecast* every time.
# - *"Four bits, so a quarter of the wait."* True up to some dozens of rows. After that you wait for the cooks.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "You pay the full price to bring the weights down the hall. Then you use each of them once, and let it go. For one bite. And you
# do that for every token of every answer. So do not ask me for a faster cook. Ask me who else is hungry."
# ///
#
# And at the end:
#
# /// callout | say
# "How many rows? How many trips? How many bits? Three questions, and you can walk into any serving team and ask them."
# ///

# %% [markdown]
# ## The sheets, to print
#
# Three sheets for everybody; print *rows* on both sides. Leave room for sums.
#
# ***Rows*, front.** The grid has 8192 × 8192 weights in bf16. Ridge of our card: peak ÷ bandwidth = ____
#
# | M | operations | bytes | operations per byte | left or right | my guess | time | % |
# |---|---|---|---|---|---|---|---|
# | 1 | | | | | | | |
# | 16 | | | | | – | – | – |
# | 64 | | | | | | | |
# | 256 | | | | | – | – | – |
# | 1024 | | | | | – | – | – |
# | 4096 | | | | | | | |
#
# ***Rows*, back.** A weight of 2, of 1 and of ½ byte, arithmetic in bf16: the M at which the roof turns flat = ____, ____, ____
#
# ***Pages*.** Box 1: one token = 2 × ____ × ____ × ____ × 2 bytes = ____; 40 GB hold ____ tokens. Box 2, with pages of 16:
#
# | request | tokens | empty of 2048 | pages | empty in pages |
# |---|---|---|---|---|
# | A | 37 | | | |
# | B | 100 | | | |
# | C | 250 | | | |
# | D | 512 | | | |
# | E | 900 | | | |
# | F | 1500 | | | |
#
# Block tables of A and B, when page numbers 7, 2, 5, 0, 4, 9, 1, 3, 8, 6 are handed out in this order: A ____, B ____.
#
# Box 3, with an {{ w4.gpu.name }}. Prefill: {{ w4.ms.thousand_in:.2f}} ms × thousands in + {{ w4.ms.square:.3f}} ms × their square; decode, for each token out: {{ w4.ms.share:.2f}} ms +
# {{ w4.ms.thousand_kept:.4f}} ms × thousands in the cache; take the middle: those that came in, and half of those that go out.
#
# | traffic | in | out | prefill | decode | which is larger? | which number would reverse it? |
# |---|---|---|---|---|---|---|
# | chat | 300 | 500 | | | | |
# | a long report | 30 000 | 300 | | | | |
# | an agent | 8 200 | 400 | | | | |
#
# ***Receipt*.** In units of one tensor:
#
# | operator | in | out | in my file, line |
# |---|---|---|---|
# | s = x + r | | | |
# | s² | | | |
# | mean of each row | | | |
# | s × 1/√ | | | |
# | × g | | | |
# | **together** | | | |
# | **one kernel** | | | |
#
# At the foot: three guesses for the race, three times, one word on why.
#
# ### The answer key
#
# This key is for you; do not print it with the rest. The course's tests work it out again from what the sheets give.
#
# ***Rows*, front.** The sheets' card is an {{ w4.gpu.name }}: {{ w4.sheet.peak:.0f}} ÷ {{ w4.sheet.bandwidth / 1000:.2f}} = {{ w4.ridge:.0f}}. With the ridge of an H100 the line falls between 256 and 1024, with that of an H200 between 64 and 256.
#
# | M | operations | bytes | operations per byte | of an H200's ridge | of an H100's ridge |
# |---:|---:|---:|---:|---|---|
# | 1 | 134 217 728 | 134 250 496 | 1.0 | left | left |
# | 16 | 2 147 483 648 | 134 742 016 | 15.9 | left | left |
# | 64 | 8 589 934 592 | 136 314 880 | 63.0 | left | left |
# | 256 | 34 359 738 368 | 142 606 336 | 240.9 | right | left |
# | 1024 | 137 438 953 472 | 167 772 160 | 819.2 | right | right |
# | 4096 | 549 755 813 888 | 268 435 456 | 2048.0 | right | right |
#
# ***Rows*, back.** {{ w4.ends.bits16:.0f}}, {{ w4.ends.bits8:.0f}}, {{ w4.ends.bits4:.0f}} with an {{ w4.gpu.name }}.
#
# ***Pages*.** Box 1: 2 × 80 × 8 × 128 × 2 bytes = 327 680 bytes; 40 GB ÷ 327 680 bytes = about 122 000 tokens. Box 2:
#
# | request | tokens | empty of 2048 | pages | empty in pages |
# |---|---:|---:|---:|---:|
# | A | 37 | 2 011 | 3 | 11 |
# | B | 100 | 1 948 | 7 | 12 |
# | C | 250 | 1 798 | 16 | 6 |
# | D | 512 | 1 536 | 32 | 0 |
# | E | 900 | 1 148 | 57 | 12 |
# | F | 1500 | 548 | 94 | 4 |
# | **all** | 3 299 | 8 989 | 209 | 45 |
#
# Empty: {{ empty.reserved:.1%}} of what is reserved, {{ empty.page16:.1%}} of the pages. Block tables: A 7, 2, 5; B 0, 4, 9, 1,
# 3, 8, 6. B's 100 tokens need seven pages, because 6 × 16 = 96; the seventh holds 4. Token 36 of A is on page 5, at place 4;
# token 99 of B on page 6, at place 3.
#
# Box 3: chat, decode; report, prefill; agent, prefill, and decode once its preface is in the cache. [The table](#who-pays-three-kinds-of-traffic) has the
# seconds. These would reverse the answers: a longer prompt or a shorter answer; fewer users in a step, or
# many more tokens out; a preface that is kept.
#
# ***Receipt*.**
#
# | operator | in | out | in the file of the chapter |
# |---|---:|---:|---|
# | s = x + r | 2 | 1 | `tl.load` of x and r; `tl.store` of s |
# | s² | 1 | 1 | gone: s is still in the hand |
# | mean of each row | 1 | 0 | gone; what it writes is a crumb |
# | s × 1/√ | 1 | 1 | gone |
# | × g | 1 | 1 | g is a crumb; `tl.store` of y |
# | **together** | 6 | 4 | 10 |
# | **one kernel** | 2 | 2 | 4 |
#
# The quotient: 10 ÷ 4 = 2.5. *Slips*, at minute 152: coach {{ ride.coach.steps:.0f}} steps and {{ ride.coach.empty:.0f}} empty seats, bus
# {{ ride.bus.steps:.0f}} steps and {{ ride.bus.empty:.0f}}. *Patients*: A pages, B more rows or shorter weights, C fusion.
#
# ### If the card fails
#
# Both demos have something to show without a card. For *1, 64 and 4096 rows* show [the page](../../docs/workshops/w4_serving.py#the-crossing-measured), which ran all three on an {{ w4.gpu.name }}; the floors follow from its data sheet:
#
# | M, {{ w4.gpu.name }} | floor, µs | recorded, µs | it waits for |
# |---:|---:|---:|---|
# | 1 | {{ w4.floor.m1:.2f}} | {{ w4.rise.m1.us:.1f}} | bytes |
# | 64 | {{ w4.floor.m64:.2f}} | {{ w4.rise.m64.us:.1f}} | bytes |
# | 4096 | {{ w4.floor.m4096:.2f}} | {{ w4.rise.m4096.us:.1f}} | cooks |
#
# 64 times the work of the first, and the floor of that {{ w4.gpu.name }} moves from {{ w4.floor.m1:.2f}} µs to {{ w4.floor.m64:.2f}} µs: a factor of {{ w4.floor.m64 / w4.floor.m1:.3f}}. The clock follows. *Two kernels, or one* is recorded
# [in L3](../../docs/lectures/l3_memory.py#do-it-while-you-hold-it), at the size of the demo, with all three lines.

# %% [markdown]
# ## The minutes
#
# [The map](../05_the_frontier/w4_map.md) has every step. The fused kernel, minutes 85 to 140, is the artifact: if you are behind,
# take the minutes from *who pays the bill* or from the last block, but never from the typing.
#
# /// exercise | Rehearse
# A student says: "Our server runs at M = 40 with bf16 weights. Four-bit weights will shrink a step as much as they shrink the weights." Answer with two numbers.
# Another says: "We have 37 tokens in pages of 16, so we waste 16." What do you ask?
# /// answer
# With an H200, at M = 40 bf16 weights are to the left of their ridge ({{ ends.bits16:.0f}} rows), four-bit weights are nearly at
# theirs
# ({{ ends.bits4:.0f}}); with an {{ w4.gpu.name }} it is {{ w4.ends.bits16:.0f}} and {{ w4.ends.bits4:.0f}}. So
# the step may take as little as a quarter of the time, if everything else is free, and MARLIN's authors report nearly the full gain only up to 32 rows
# [^frantar2025].
# Say *as little as*, and say *measure*. To the second: how many pages are there, and how many places? 3 × 16 = 48, so 11 are empty.
# ///

# %% [markdown]
# ## You can now teach
#
# - prefill and decode as one number, M, and where the ridge falls between them;
# - the weight of a token in the cache, and six requests reserved or in pages;
# - the one line that makes a kernel paged, and the rubbish in the last page;
# - a fused add + RMSNorm, in two halves, with its receipt and its two likely mistakes;
# - batches as coach and bus, and short weights with the M at which they stop helping;
# - two sentences about serving that need the word *sometimes*.
#
# **Where this leads.** The board asks *how many bits*; [teaching W5](w5_blackwell.py) has four of them. The fusion builds on the
# lecture on [memory](../../docs/lectures/l3_memory.py), and the loop that follows the table is that of
# [FlashAttention](../../docs/workshops/w1_flash_attention.py).
