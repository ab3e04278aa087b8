# ---
# id: l1
# title: What a GPU is
# description: Count the work by hand, draw the card from its own answers, race a CPU against a GPU, and plot the first roofline.
# needs: gpu
# ---

# %% [markdown]
# # What a GPU is
#
# At the end of this page you can
#
# - count the work in a matrix multiply, and in one word of a language model, with a pencil;
# - name a job that a GPU wins, a job that it loses, and say why it does, in each case;
# - work out the best that a card can do, from four numbers that it tells you and one that it does not;
# - tell, before you write a line of code, whether arithmetic or memory will hold a job back.
#
# You need to know Python, and enough arithmetic for a shopping list. You do not need to know CUDA.
#
# /// key
# ///

# %% [markdown]
# ## The receipt
#
# Ann and Ben go shopping. Ann wants 2 eggs and 3 lemons, Ben 4 eggs and 1 lemon. There are two shops, and
# each has its own prices. What will each of them pay in each shop?
#
# /// figure | docs/assets/figures/receipt.svg
# alt: "Two grids of two by two. The first says what Ann and Ben buy, the second what two shops ask for an egg and for a lemon. Below them are four receipts. Ann at the market: 2 times 5 is 10, 3 times 2 is 6, to pay 16. The other three receipts come to 15, 22 and 25."
# caption: A row of the first grid and a column of the second make one receipt.
# ///
#
# You have just multiplied two matrices. Four receipts of two lines each make eight lines. Now let the machine print the
# receipts too.

# %%
buys = [[2, 3], [4, 1]]  # a row for Ann, one for Ben: eggs, lemons
asks = [[5, 6], [2, 1]]  # a row for eggs, one for lemons: market, corner

for i, who in enumerate(("Ann", "Ben")):
    for j, shop in enumerate(("market", "corner")):
        total = 0
        for k in range(2):  # eggs, then lemons
            total += buys[i][k] * asks[k][j]  # the one line this course is about
        print(f"{who}, {shop}: {total}")

# %% [markdown] A receipt has a technical name, the *dot product*. Each line of a receipt has a technical name too:
# multiplying two numbers and adding the product to a total is a *multiply-add*. A processor does a multiply-add in a
# single instruction, the FMA. A multiply-add counts as two operations: one multiplication and one addition.
#
# How many lines are there in all? There is one receipt for every pair of a row and a column, and each receipt has one
# line for every item. So an M × K grid times a K × N grid takes M × N × K multiply-adds. Everything else on this page
# starts from this count.
#
# /// predict | You multiply two grids of 1000 by 1000. How many multiply-adds does that take?
# These are modest grids: a photo has more numbers.
#
# - [ ] A thousand
# - [ ] A million
# - [x] A billion
# /// reveal
# 1000 × 1000 receipts of 1000 lines each make {{ square.macs:,.0f}} lines. **A billion**, for one multiply of two
# modest grids. If you wrote one line a second, without sleep, you would need {{ square.years:.0f}} years.
# ///
#
# Now take a language model. A language model speaks in *tokens*, each of which is a word or a piece of a word. For
# every token, a list of numbers runs through the model's grids of weights, layer by layer. We take a model whose
# shapes are public, Llama 3.1 with 70 billion weights [^meta-llama31], and write out its receipt.

# %% tags=["show"]
from course_kernels.measure import quantity, record

WIDTH = 8192  # numbers in the list that runs through the model
KEYS = 1024  # keys are narrower, and so are values: heads share them
INNER = 28672  # the wide part in the middle of a layer
WORDS = 128256  # the last grid has a column for every token there is
LAYERS = 80

one_layer = [
    WIDTH * WIDTH,  # queries
    WIDTH * KEYS,  # keys
    WIDTH * KEYS,  # values
    WIDTH * WIDTH,  # what attention passes on
    WIDTH * INNER,  # two grids that widen the list
    WIDTH * INNER,
    INNER * WIDTH,  # one that narrows it again
]
macs = LAYERS * sum(one_layer) + WIDTH * WORDS

record(
    square={
        "macs": quantity(1000**3),
        "years": quantity(1000**3 / (365.25 * 24 * 3600)),
    },
    token={
        "macs": quantity(macs),
        "multiplies": quantity(LAYERS * len(one_layer) + 1),
        "gb": quantity(2 * macs / 1e9, "GB"),  # two bytes a weight
    },
)

# %% [markdown] One token takes {{ token.multiplies:.0f}} multiplications of a list by a grid, which contain **{{ token.macs / 1e9:.1f}} billion multiply-adds**. Attention adds some more, and its share grows with the
# number of tokens that came before. So there are hundreds of multiplications of a list by a grid, not millions, and
# billions of multiply-adds, not trillions. That is still a lot of arithmetic for one piece of one word.
#
# Look at the calculation once more. Every weight is used exactly once. Remember this rule: *each token takes as many
# multiply-adds as there are weights at work.* We say "at work" because some models let only a few of their weights take
# part in each token.
#
# You do not need to know yet what each of these grids is for. The page [One token](../one_token.py) explains them, at
# the start of the second half of the course.
#
# /// exercise | Three receipts
# Take a pencil.
#
# 1. How many multiply-adds does a 3 × 4 grid times a 4 × 5 grid take?
# 2. You double all three dimensions of a matrix multiply. What happens to the amount of work, and what happens to the
#    amount of data?
# 3. Two grids of 1000 by 1000 in fp32, at four bytes per number, are multiplied. How many operations are there for
#    each byte that has to be read or written?
# /// answer
# 1. 3 × 5 receipts of 4 lines each: 60 lines.
# 2. There is eight times the work, but only four times the data. So a large matrix multiply uses each number more
#    often than a small one does. Remember this: without such reuse, a matrix multiply could not be made fast.
# 3. A billion multiply-adds are two billion operations. Three grids of a million numbers are 12 million bytes. That
#    makes about 167 operations for each byte. You will need this number again at the end of the page.
# ///

# %% [markdown]
# ## A few chefs, or a brigade
#
# Who should cook all this? There are two kinds of kitchen.
#
# /// figure | docs/assets/figures/chefs_and_brigade.svg
# alt: "Left, four chefs with large hats, each of whom knows the next ten moves, beside a large shelf. Right, eighty small cooks in rows; one call moves a whole row. Two sketched timelines below: for one dish the chefs need less time, for a thousand dishes the brigade does."
# caption: This is a sketch, not a measurement. The measurement follows two sections below.
# ///
#
# A **CPU** is like a few very good chefs. A chef starts the next step before the current one is done, guesses which
# way the recipe will turn, and keeps a large shelf within reach. Everything in this kitchen is built to get *one*
# dish ready quickly. The time until one thing is ready is called **latency**.
#
# A **GPU** is like a brigade. The cooks of a brigade do not guess and do not plan. The cooks stand in rows of 32, and
# all the cooks of a row make the same move together. No single cook is quick. But there are thousands of cooks, and
# while one row waits for the pantry, another steps up to the same stove. So the stoves never cool down. Everything in
# this kitchen is built to get *many* dishes done in an evening. That is **throughput**.
#
# Neither kitchen is better. A brigade is a poor choice for an omelette, and a single chef is a poor choice for a
# banquet.
#
# In technical terms, a cook is a *thread*, a row of 32 is a *warp*, the stoves are *lanes*, and the rooms in which the
# cooks stand are *streaming multiprocessors*, or SMs for short.
#
# /// exercise | Omelette or banquet?
# Which matters more for each of these jobs, latency or throughput?
#
# 1. Parse one configuration file.
# 2. Turn a photo of twelve million pixels into shades of grey.
# 3. Follow a linked list of a million entries, each of which says where the next one is.
# 4. Compute the next token of a language model for one reader.
# 5. Compute the next token of the same model for two hundred readers.
# /// answer
# 1. Latency: little work, and one step after another.
# 2. Throughput: each pixel is a dish of its own.
# 3. Latency. The job is long, but every step waits for the step before it, so a whole brigade would stand and watch
#    one cook. Length alone does not make a banquet; *independent* work does.
# 4. This job, with its billions of multiply-adds, looks like a case for throughput. But all the weights are carried
#    in from the pantry and used only once, so the carrying decides.
# 5. Throughput. The weights are carried once and used two hundred times. You will see both of these jobs in the last
#    picture on this page.
# ///

# %% [markdown]
# ## This card, drawn from its own answers
#
# How large is the brigade? Ask it. A GPU's driver answers questions about the card, and the package `cuda.core` asks
# them from Python. `Device().properties.multiprocessor_count` is one of them.

# %% tags=["fold"]
import torch
from cuda.core import Device

torch.cuda.init()
asked = Device(torch.cuda.current_device()).properties

# The driver does not say how many fp32 lanes an SM has. NVIDIA's documents do.
A100 = (8, 0)
lanes = 64 if torch.cuda.get_device_capability() == A100 else 128

bus_bits = asked.global_memory_bus_width
card = {
    "sms": quantity(asked.multiprocessor_count, how="device"),
    "lanes": quantity(lanes, how="given"),
    "threads": quantity(asked.max_threads_per_multiprocessor, how="device"),
    "warps": quantity(
        asked.max_threads_per_multiprocessor // asked.warp_size, how="device"
    ),
    "registers": quantity(asked.max_registers_per_multiprocessor, how="device"),
    "shared_kib": quantity(
        asked.max_shared_memory_per_multiprocessor / 2**10, "KiB", "device"
    ),
    "l2_mib": quantity(asked.l2_cache_size / 2**20, "MiB", "device"),
    "hbm_gib": quantity(
        torch.cuda.get_device_properties().total_memory / 2**30, "GiB", "device"
    ),
    "clock_mhz": quantity(asked.clock_rate / 1e3, "MHz", "device"),
    "memory_mhz": quantity(asked.memory_clock_rate / 1e3, "MHz", "device"),
    "bus_bits": quantity(bus_bits, "bit", "device"),
    # A stack of HBM has 1024 wires, and a card may leave a few of them unused: so we
    # round. Other kinds of memory have far fewer wires, and no stacks.
    "stacks": quantity(
        round(bus_bits / 1024) if bus_bits >= 4096 else 0, how="computed"
    ),
}
record(card=card)

# %% [markdown]
# /// table
# columns: [we asked, the card said, in the kitchen]
# rows:
#   - [streaming multiprocessors (SMs), "{{ card.sms:.0f }}", rooms]
#   - [warps that an SM can hold, "{{ card.warps:.0f }}", rows of cooks in a room]
#   - ["registers in an SM, four bytes each", "{{ card.registers:,.0f }}", what the cooks have in their hands]
#   - [shared memory of an SM, "{{ card.shared_kib:.0f }} KiB", the tray in the middle of the room]
#   - [L2 cache, "{{ card.l2_mib:.0f }} MiB", the shelf that all rooms share]
#   - [HBM, "{{ card.hbm_gib:.0f }} GiB", the pantry]
#   - [highest clock of the SMs, "{{ card.clock_mhz:.0f }} MHz", how quickly the cooks move]
#   - [clock of the memory, "{{ card.memory_mhz:.0f }} MHz", how often somebody walks the hall]
#   - [wires to the memory, "{{ card.bus_bits:.0f }}", how many crates travel side by side]
# caption: "KiB, MiB and GiB go up in steps of 1024, because memory is built in powers of two."
# ///
#
# There is one number that you cannot ask the card for: how many lanes an SM has. In the H200's generation an SM has 128
# lanes
# [^lockwood-h100], in four quarters, each with its own scheduler [^nvidia-partitions]. Do not take that number on trust: a measurement further down this page will confirm it. And do not expect to find everything on a data sheet: the data
# sheet of the H200 does not say how large its L2 cache is [^nvidia-h200]. For the drawing below we ask the card.
#
# /// predict | How many cooks can be inside at the same time, cooking or waiting?
# Multiply the number of rooms by the rows of cooks in a room and by 32.
#
# - [card.sms * card.threads >= 100000] Hundreds of thousands
# - [10000 <= card.sms * card.threads < 100000] Tens of thousands
# - [card.sms * card.threads < 10000] Thousands
# /// reveal
# **{{ card.sms * card.threads:,.0f}}**: {{ card.sms:.0f}} × {{ card.warps:.0f}} × 32. But there are only
# {{ card.sms:.0f}} × {{ card.lanes:.0f}} = {{ card.sms * card.lanes:,.0f}} lanes. So {{ card.threads / card.lanes:.0f}}
# cooks share a stove. This is intended: while {{ card.threads / card.lanes - 1:.0f}} of them wait, one cooks.
# ///
#
# Here is the whole card, drawn to scale from these answers.
#
# /// chart | card
# title: This card, to scale
# sms: card.sms
# lanes: card.lanes
# registers_kib: card.registers * 4 / 1024
# shared_kib: card.shared_kib
# l2_mib: card.l2_mib
# hbm_gib: card.hbm_gib
# stacks: card.stacks
# alt: "Three parts, the nearest to the arithmetic on top. One multiprocessor: four quarters of {{ card.lanes / 4:.0f }} lanes, each over its registers, and shared memory below all four. The chip: {{ card.sms:.0f }} such multiprocessors around an L2 cache of {{ card.l2_mib:.0f }} MiB. Below, a box for {{ card.hbm_gib:.0f }} GiB of HBM, in which everything on the chip is a small square."
# caption: The drawing runs from the hands of the cooks at the top down to the pantry. Each level holds more than the one above it and is farther away.
# ///
#
# Look at the small square in the last box. This square is all the memory that is near the cooks: hands, trays and
# shelf together. Every dish must pass through the square, and the square holds one part in
# {{ card.hbm_gib * 1024 / (card.sms * (card.registers / 256 + card.shared_kib) / 1024 + card.l2_mib):,.0f}} of what
# fits in the pantry. The whole art that this course teaches is to choose well what goes into that square.
#
# /// exercise | Hands
# An SM has {{ card.registers:,.0f}} registers and room for {{ card.threads:,.0f}} threads.
#
# 1. If the SM is full, how many registers does each thread have?
# 2. Your kernel needs 64 registers for each thread. How many threads fit?
# 3. Is that bad?
# /// answer
# 1. {{ card.registers / card.threads:.0f}}
# 2. {{ card.registers / 64:,.0f}}
# 3. Not in itself. Fewer cooks can step in while others wait. But each cook holds more, and so walks less. Only a
#    measurement can show which of the two effects matters more. You will meet the question again under the name
#    *occupancy*.
# ///

# %% [markdown]
# ## Two kitchens, three races
#
# Now the two kitchens compete, on the same machine. First, who is the chef? The CPU may use every core that we have
# on this machine. We try several numbers of cores, and the CPU keeps the number that suits it best. PyTorch's own CPU
# code does the cooking, and it is good code.

# %% tags=["fold"]
import os
import platform
import time

from course_kernels.measure import text

cores = len(os.sched_getaffinity(0))
a, b = torch.rand(2048, 2048), torch.rand(2048, 2048)


def seconds(threads):
    """The best of three multiplies of 2048 by 2048 with this many cores."""
    torch.set_num_threads(threads)
    took = []
    for _ in range(4):  # the first one wakes the cores
        start = time.perf_counter()
        torch.mm(a, b)
        took.append(time.perf_counter() - start)
    return min(took[1:])


tried = sorted({max(1, cores // part) for part in (1, 2, 4, 8)})
best = min(tried, key=seconds)
torch.set_num_threads(best)

name = platform.processor() or platform.machine()
with open("/proc/cpuinfo") as file:
    for line in file:
        if line.startswith("model name"):
            name = line.split(":")[1].strip()
record(
    host={
        "cpu": text(name),
        "cores": quantity(cores, how="device"),
        "used": quantity(best, how="computed"),
    }
)

# %% [markdown] The chef is the {{ host.cpu}}, of which we have {{ host.cores:.0f}} cores (as the operating system
# counts them). The chef did best with {{ host.used:.0f}} cores, and keeps those. The brigade is the card named under
# the title. Each kitchen already has its ingredients: nothing is carried from one kitchen to the other while the
# clock runs. And every race checks its answers. A wrong answer stops the page.
#
# ### One long chain
#
# Each step needs the result of the step before it. A brigade is no help here: in either kitchen, a single cook does
# everything. The GPU's cook does multiply-adds. The chef adds up a running total, once by PyTorch's recipe and once by
# NumPy's. An addition is less work than a multiply-add, and many CPUs finish an addition sooner. We allow for that.

# %%
import numpy as np
from course_kernels.fused_multiply_add import k01_chains
from course_kernels.measure import stopwatch

STEPS = 2**20
numbers = torch.rand(STEPS)
total, numpy_total = torch.empty(STEPS), np.empty(STEPS, dtype=np.float32)
x = torch.full((1, 1), 1.5, device="cuda")
factor = torch.full((1,), 1 / STEPS - 1, device="cuda")


def chain():
    """One thread, one chain, STEPS multiply-adds."""
    return k01_chains.fused_multiply_add(x, factor, chains=1, steps=STEPS)


def must_be(name, right):
    """No time without a right answer."""
    if not right:
        raise RuntimeError(f"{name}: a wrong answer, so its time means nothing")


cpu = stopwatch(
    {
        "cpu": lambda: torch.cumsum(numbers, 0, out=total),
        "numpy": lambda: np.add.accumulate(numbers.numpy(), out=numpy_total),
    },
    wait=False,
)
gpu = stopwatch({"gpu": chain})

exact = numbers.double().cumsum(0)
must_be("CPU", torch.allclose(total.double(), exact, rtol=1e-4))
must_be("NumPy", np.allclose(numpy_total, exact, rtol=1e-4))
# The chain in one formula: each step multiplies the distance to the goal by a.
# A twentieth of the steps left out would miss it by more than 0.01.
a = factor.item()
goal = 1 / (1 - a)
must_be("GPU", abs(chain().item() - (goal + a**STEPS * (1.5 - goal))) < 0.01)
record(
    chain={**cpu, **gpu},
    steps=quantity(STEPS, how="given"),
)

# %% [markdown]
# /// table
# columns: ["2<sup>20</sup> steps, one after the other", "time, µs", "one step, ns"]
# rows:
#   - ["CPU, one core, PyTorch", "{{ chain.cpu:.0f }}", "{{ chain.cpu * 1000 / steps:.2f }}"]
#   - ["CPU, one core, NumPy", "{{ chain.numpy:.0f }}", "{{ chain.numpy * 1000 / steps:.2f }}"]
#   - ["GPU, one thread", "{{ chain.gpu:.0f }}", "{{ chain.gpu * 1000 / steps:.2f }}"]
# ///
#
# /// claim | chain.cpu < 0.85 * chain.gpu
# **The GPU loses.** Its one cook takes {{ chain.gpu / chain.cpu:.1f}} times as long as the chef. A step takes
# {{ chain.gpu * card.clock_mhz / steps:.1f}} ticks, if the clock runs at its highest rate, and nobody can make a step
# shorter. The other {{ card.sms * card.lanes - 1:,.0f}} lanes are idle.
# /// otherwise
# The GPU's cook takes {{ chain.gpu / chain.cpu:.1f}} times as long as the chef. A step takes
# {{ chain.gpu * card.clock_mhz / steps:.1f}} ticks of its clock. The other {{ card.sms * card.lanes - 1:,.0f}} lanes
# are idle: here all the lanes together achieve no more than one lane does.
# ///
#
# /// claim | chain.numpy > 1.5 * chain.cpu and chain.numpy > 0.8 * chain.gpu
# Now look at the row for NumPy. With NumPy's recipe, the same chef with the same total takes
# {{ chain.numpy / chain.cpu:.1f}} times as long, which is {{ chain.numpy / chain.gpu:.1f}} times as long as one cook of
# the GPU needs. NumPy probably puts the total on the shelf after each step and takes it down again for the next step,
# whereas PyTorch keeps it in the hand. Had we timed NumPy alone, we would have blamed the chef for the recipe. Such a
# mistake is easily made, and it can favour either kitchen.
# /// otherwise
# With NumPy's recipe the same chef takes {{ chain.numpy / chain.cpu:.1f}} times as long as with PyTorch's, and
# {{ chain.numpy / chain.gpu:.1f}} times as long as the GPU's cook. Judge a kitchen only by its better recipe.
# ///
#
# ### A list, short or long
#
# Double every number of a list: `y = 2 * x`. Every number is a separate dish, so the brigade can help. But the
# brigade has to be called, and somebody must wait until the last cook is back.
#
# /// predict | The list has 1024 numbers. Who finishes first?
# Both run the same line of PyTorch. We give the GPU the order and wait for its answer.
#
# - [lists.cpu.n1024 < 0.7 * lists.gpu.n1024] The CPU, clearly
# - [0.7 * lists.gpu.n1024 <= lists.cpu.n1024 <= 1.4 * lists.gpu.n1024] About the same
# - [lists.cpu.n1024 > 1.4 * lists.gpu.n1024] The GPU, clearly
# /// reveal
# The CPU takes {{ lists.cpu.n1024:.1f}} µs, the GPU {{ lists.gpu.n1024:.1f}} µs.
# ///


# %%
def doubling(x, times):
    """Work for the stopwatch: double the numbers of x, this many times."""
    y = torch.empty_like(x)

    def work():
        for _ in range(times):
            torch.mul(x, 2, out=y)
        return y

    return work


lists = {"cpu": {}, "gpu": {}}
for power in range(8, 29, 2):
    x = torch.rand(2**power)
    rounds = 30 if power < 26 else 8
    times = 20 if power < 20 else 1  # one short call alone is over too soon
    on_cpu, on_gpu = doubling(x, times), doubling(x.cuda(), 1)
    cpu = stopwatch({"cpu": on_cpu}, n=rounds, per=times, wait=False)
    gpu = stopwatch({"gpu": on_gpu}, n=rounds)
    right = x + x
    must_be("CPU", torch.equal(on_cpu(), right))
    must_be("GPU", torch.equal(on_gpu().cpu(), right))
    lists["cpu"][f"n{2**power}"] = cpu["cpu"]
    lists["gpu"][f"n{2**power}"] = gpu["gpu"]
record(lists=lists)

# %% [markdown] The cell above doubles lists of between 256 numbers and a quarter of a billion. The clock stops when
# the answer is ready, and the CPU may use all its cores. Both axes of the chart below are logarithmic: one step to
# the right means a list that is many times as long.
#
# /// chart | lines
# title: Doubling a list, CPU and GPU
# x: N
# y: us
# x_label: numbers in the list
# y_label: time, µs
# x_scale: log
# y_scale: log
# series:
#   - {name: lists.cpu.*, label: CPU}
#   - {name: lists.gpu.*, label: GPU}
# alt: "Time against the length of the list, both axes logarithmic. For 256 numbers the CPU takes {{ lists.cpu.n256:.1f }} µs and the GPU {{ lists.gpu.n256:.1f }} µs. For 268 million the CPU takes {{ lists.cpu.n268435456:.0f }} µs and the GPU {{ lists.gpu.n268435456:.0f }} µs."
# caption: The bands show the middle nine tenths of the readings. We have not investigated why the CPU's line bends on its way up.
# ///
#
# /// claim | lists.cpu.n1024 < 0.63 * lists.gpu.n1024
# With 1024 numbers **the GPU loses again**: {{ lists.gpu.n1024:.1f}} µs against {{ lists.cpu.n1024:.1f}} µs. The
# doubling itself is hardly worth mentioning. The call is what takes the time: Python writes the order, the driver
# passes it on, the cooks walk in and out again, and somebody reports that they are done.
# /// otherwise
# With 1024 numbers the GPU takes {{ lists.gpu.n1024:.1f}} µs, and the CPU takes {{ lists.cpu.n1024:.1f}} µs. Nearly
# all of the GPU's time is the call, not the doubling.
# ///
#
# /// claim | lists.gpu.n65536 < 3 * lists.gpu.n256
# And a call costs the same for a spoonful as for a barrel. From 256 numbers to 65&nbsp;536 the GPU's time goes
# from {{ lists.gpu.n256:.1f}} µs to {{ lists.gpu.n65536:.1f}} µs.
# /// otherwise
# From 256 numbers to 65&nbsp;536 the GPU's time goes from {{ lists.gpu.n256:.1f}} µs to
# {{ lists.gpu.n65536:.1f}} µs.
# ///
#
# /// claim | lists.gpu.n268435456 < 0.05 * lists.cpu.n268435456
# The long list is a banquet. With 2<sup>28</sup> numbers the GPU wins, {{ lists.gpu.n268435456 / 1000:.1f}} ms
# against {{ lists.cpu.n268435456 / 1000:.0f}} ms: the CPU takes
# **{{ lists.cpu.n268435456 / lists.gpu.n268435456:.0f}} times** as long, with all its cores.
# /// otherwise
# With 2<sup>28</sup> numbers the GPU takes {{ lists.gpu.n268435456 / 1000:.1f}} ms, the CPU
# {{ lists.cpu.n268435456 / 1000:.0f}} ms.
# ///
#
# ### The multiply
#
# Now the job that this course is about: two grids of 4096 by 4096 in fp32. Their product takes 4096<sup>3</sup>, or
# nearly 69 billion, multiply-adds, about as many as one token of the model above takes.

# %%
from course_kernels.sgemm import library as sgemm_library

a, b = torch.rand(4096, 4096), torch.rand(4096, 4096)
there_a, there_b = a.cuda(), b.cuda()
race = {
    **stopwatch({"cpu": lambda: torch.mm(a, b)}, n=5, wait=False),
    **stopwatch({"gpu": lambda: sgemm_library.cublas(there_a, there_b)}, n=30),
}
right = there_a.double() @ there_b.double()
on_gpu = sgemm_library.cublas(there_a, there_b)
must_be("CPU", torch.allclose((a @ b).cuda().double(), right, rtol=1e-4))
must_be("GPU", torch.allclose(on_gpu.double(), right, rtol=1e-4))
record(
    race=race,
    race_flops=quantity(2 * 4096**3, "FLOP"),
)

# %% [markdown]
# /// table
# columns: ["4096 by 4096, fp32", "time, ms", TFLOP/s]
# rows:
#   - ["CPU, {{ host.used:.0f }} cores", "{{ race.cpu / 1000:.1f }}", "{{ race_flops / race.cpu / 1e6:.2f }}"]
#   - ["GPU", "{{ race.gpu / 1000:.2f }}", "{{ race_flops / race.gpu / 1e6:.1f }}"]
# ///
#
# /// claim | race.cpu > 17 * race.gpu
# Here it is no contest: the CPU takes **{{ race.cpu / race.gpu:.0f}} times** as long. Its chefs are not slow: a CPU
# core also multiplies several numbers in one instruction. But there are only {{ host.used:.0f}} of them against
# {{ card.sms * card.lanes:,.0f}} lanes, and each of the 4096 × 4096 receipts can be written without looking at any
# other.
# /// otherwise
# The CPU takes {{ race.cpu / race.gpu:.1f}} times as long. Every one of the 4096 × 4096 receipts can be written
# without looking at any other, so the kitchen with more cooks has the advantage.
# ///
#
# So when there is only one chain, or little work, the chefs win. When there is a lot of independent work, the brigade
# wins. A CPU with more cores would lose by less, and a card with fewer SMs would win by less. Remember the two words,
# latency and throughput, rather than the ratios.
#
# /// exercise | A hundred short steps
# A program doubles a list of 1024 numbers a hundred times in a row, with a separate call each time, and then wants
# the answer.
#
# 1. How long does this take on the GPU if you wait for every call?
# 2. Must you wait for every call?
# 3. What would you do instead?
# /// answer
# 1. It takes a hundred times the reading for 1024 numbers, which is {{ 100 * lists.gpu.n1024 / 1000:.1f}} ms, against
#    {{ 100 * lists.cpu.n1024 / 1000:.2f}} ms on the CPU.
# 2. No. Orders for the GPU wait in a queue, and you can wait just once, at the end. That is better. But someone still
#    has to write a hundred orders, and the brigade walks in and out a hundred times.
# 3. So write *one* kernel that doubles each number a hundred times while it is still in the hand. That is called
#    *fusion*, and the whole second half of this course is built on it.
# ///

# %% [markdown]
# ## The peak, by hand
#
# What could this card do if every lane wrote one line of a receipt at every tick? Multiply:
#
# `lanes × ticks in a second × 2`
#
# The 2 is there because a multiply-add is two operations.

# %%
from course_kernels.measure.machine import machine_for

sheet = machine_for(torch.cuda.get_device_name())
if sheet is None:
    raise RuntimeError("no data sheet of this card in measure/machine.py")

all_lanes = asked.multiprocessor_count * lanes
ticks = asked.clock_rate * 1e3  # the card answers in kilohertz
record(
    peak={
        "by_hand": quantity(all_lanes * ticks * 2 / 1e12, "TFLOP/s", of="fp32"),
        "sheet": quantity(sheet.peak_tflops["fp32"], "TFLOP/s", "given"),
    }
)

# %% [markdown]
# | step | value |
# |---|---|
# | lanes: SMs × lanes in each | {{ card.sms:.0f }} × {{ card.lanes:.0f }} = {{ card.sms * card.lanes:,.0f }} |
# | ticks in a second, at most | {{ card.clock_mhz:.0f }} million |
# | **the peak, by hand** | **{{ peak.by_hand:.1f }} TFLOP/s** |
# | the data sheet of this card | {{ peak.sheet:.0f }} TFLOP/s |
#
# /// claim | abs(peak.by_hand / peak.sheet - 1) < 0.02
# These few multiplications give you the number on the data sheet: {{ peak.by_hand:.1f}} against {{ peak.sheet:.0f}}
# TFLOP/s. A peak is neither a secret nor a measurement. A peak describes something that nobody has ever seen: every
# lane busy at every tick, with the clock at its highest rate.
# /// otherwise
# The data sheet says {{ peak.sheet:.0f}} TFLOP/s, and your pencil says {{ peak.by_hand:.1f}}. The authors of the data
# sheet may have used a different clock rate from the highest one that the card reports.
# ///
#
# For the H200 the sheet says 67 TFLOP/s in fp32 [^nvidia-h200]. The sheet gives a far higher number for the tensor
# cores, which are a different kind of stove and the subject of a later session. The lanes come first.
#
# Can you reach the peak? Give the lanes nothing but multiply-adds, without a list and without the pantry. Every thread
# holds eight totals in its registers and does `total = total * a + 1` on each, thousands of times.
#
# /// predict | A kernel does nothing but multiply-adds in registers. What percentage of peak does it reach?
# The kernel needs hardly any memory. We know of nothing that holds it back.
#
# - [fma.of_peak < 0.65] About a half
# - [0.65 <= fma.of_peak < 0.85] About three quarters
# - [fma.of_peak >= 0.85] Nine tenths or more
# /// reveal
# **{{ fma.of_peak:.1%}}** of the data sheet's peak: {{ fma.tflops:.1f}} TFLOP/s.
# ///
#
# The whole kernel:
#
# /// source | src/course_kernels/fused_multiply_add/k01_chains.cu#chains
# title: src/course_kernels/fused_multiply_add/k01_chains.cu
# ///
#
# `fmaf(x, y, z)` is x × y + z in one instruction. `C` is the number of totals and `K` the number of steps; each pass of
# the outer loop does `UNROLLED` multiply-adds, so counting the passes costs little.
#
# Why eight? A step must wait for the step before it. Eight totals do not wait for each other, so the thread always
# has something to do next.

# %%
from course_kernels.measure import measure
from course_kernels.problem import Workload

# Every SM full: as many threads as it can hold.
full = asked.multiprocessor_count * asked.max_threads_per_multiprocessor
record(
    fma=measure(
        k01_chains,
        Workload.of("float32", N=full, C=8, K=8192),
        seconds=0.5,
    )
)

# %% [markdown]
# /// claim | fma.of_peak > 0.85
# **{{ fma.of_peak:.1%}} of peak.** This is the most important number on this page, close to the best that any kernel
# can do on these lanes. The card reported a clock of {{ fma.sm_mhz:.0f}} MHz while the kernel ran, and a power of
# {{ fma.power_w:.0f}} W.
# /// otherwise
# The kernel reached {{ fma.of_peak:.1%}} of peak, with the clock at {{ fma.sm_mhz:.0f}} MHz while it ran.
# ///
#
# /// define | lanes_found = fma.tflops * 1e6 / (2 * card.sms * fma.sm_mhz)
# unit: "1"
# what: fp32 multiply-adds that one SM finished at each tick of its clock
# ///
#
# Now work backwards. We know the speed, the SMs and the clock. How many lanes must there have been?
#
# /// claim | 0.8 * card.lanes < lanes_found < 1.2 * card.lanes
# Each SM finished {{ lanes_found:.1f}} multiply-adds per tick. An SM with 64 lanes could not have done it, and one with
# 256 lanes would have been idle half of the time. So the {{ card.lanes:.0f}} lanes that the documents promise are
# really there. You have counted the stoves without opening the kitchen door.
# /// otherwise
# Each SM finished {{ lanes_found:.1f}} multiply-adds per tick of the clock, as read while the kernel ran. The
# documents say {{ card.lanes:.0f}} lanes.
# ///
#
# /// exercise | How many cooks for one stove?
# In the race of the chain, one step took {{ chain.gpu * card.clock_mhz / steps:.1f}} ticks. A lane can start a step at
# every tick.
#
# 1. How many independent chains does a lane need to be busy all the time?
# 2. If every thread has one chain, how many warps does an SM with {{ card.lanes:.0f}} lanes need?
# 3. And how many does it need if every thread has eight chains?
# /// answer
# 1. A lane needs as many chains as a step takes ticks: about {{ chain.gpu * card.clock_mhz / steps:.0f}}.
# 2. {{ card.lanes:.0f}} lanes with {{ chain.gpu * card.clock_mhz / steps:.1f}} chains each, in warps of 32, make
#    {{ card.lanes / 32 * chain.gpu * card.clock_mhz / steps:.1f}} warps. Round that up; {{ card.warps:.0f}} warps fit.
# 3. It needs an eighth as many. But each quarter of the SM needs its own warps, so take at least one for each. So there
#    are two ways to keep a stove hot: many cooks, or cooks with several pots each. *Chains in flight = latency ×
#    throughput.* It is a law about queues, named after John Little, and it holds for memory as well.
# ///

# %% [markdown]
# ## The bandwidth, by hand
#
# Now do the same calculation for the pantry. How many bytes come out of the pantry in a second?
#
# `wires ÷ 8 × ticks of the memory × 2`
#
# Eight wires carry a byte. The 2 is there because this kind of memory sends data on both edges of a tick, the rising
# and the falling one. Then we measure the plainest job there is, a copy, which reads a byte for every byte that it
# writes.

# %%
from course_kernels.copy import k01_vectorised
from course_kernels.copy import library as copy_library
from course_kernels.measure import compare

by_hand = bus_bits / 8 * asked.memory_clock_rate * 1e3 * 2
record(
    bandwidth={
        "by_hand": quantity(by_hand / 1e9, "GB/s", of="hbm"),
        "sheet": quantity(sheet.bandwidth_gb_per_s, "GB/s", "given"),
    },
    copy=compare(
        {"ours": k01_vectorised, "torch": copy_library.torch_copy},
        Workload.of("float32", N=2**28),
        seconds=0.3,
    ),
)

# %% [markdown]
# | step | value |
# |---|---|
# | wires, in bytes | {{ card.bus_bits:.0f }} ÷ 8 = {{ card.bus_bits / 8:.0f }} |
# | ticks in a second | {{ card.memory_mhz:.0f }} million |
# | **the bandwidth, by hand** | **{{ bandwidth.by_hand:.0f }} GB/s** |
# | the data sheet of this card | {{ bandwidth.sheet:.0f }} GB/s |
# | a copy of one GiB, our kernel | {{ copy.ours.gb_per_s:.0f }} GB/s, {{ copy.ours.of_peak:.0%}} of the data sheet |
# | the same copy, PyTorch | {{ copy.torch.gb_per_s:.0f }} GB/s, {{ copy.torch.of_peak:.0%}} |
#
# /// claim | abs(bandwidth.by_hand / bandwidth.sheet - 1) < 0.05
# Your pencil and the data sheet agree to within five parts in a hundred. The figure on the data sheet is rounded.
# /// otherwise
# The bandwidth by hand is {{ bandwidth.by_hand / bandwidth.sheet:.2f}} times what the data sheet says.
# ///
#
# /// claim | max(copy.ours.of_peak, copy.torch.of_peak) < 0.97
# A copy does not get all of this bandwidth. Most likely memory pauses now and then, to refresh itself and to turn
# around between reading and writing. We have not measured how long these pauses are;
# [the measuring page](../how_we_measure.py#the-card-against-its-own-data-sheet) says more. What the better copy
# reaches, {{ max(copy.ours.of_peak, copy.torch.of_peak):.0%}}, is a good yardstick for every job that is limited by
# bytes. This percentage is not a hard ceiling: a job that mixes reading and writing differently may end a little
# above or below it.
# /// otherwise
# The better copy reaches {{ max(copy.ours.of_peak, copy.torch.of_peak):.0%}} of this bandwidth: on this card you can
# have very nearly all of it.
# ///
#
# /// exercise | One token, one reader
# The model of the first section, at two bytes per weight, takes {{ token.gb:.0f}} GB. The weights do not fit on the
# shelf, so for every token all of them are fetched from the pantry, once each.
#
# 1. How long does it take to fetch them, at the data sheet's bandwidth?
# 2. The tensor cores of this card reach {{ tensor_tflops:.0f}} TFLOP/s in bf16 at best. How long does the arithmetic
#    take?
# 3. What does the card do most of the time when there is only one reader?
# /// answer
# 1. {{ token.gb:.0f}} GB ÷ {{ bandwidth.sheet:.0f}} GB/s = {{ token.gb / bandwidth.sheet * 1000:.0f}} ms
# 2. Two operations for each of {{ token.macs / 1e9:.1f}} billion weights:
#    {{ 2 * token.macs / tensor_tflops / 1e9:.2f}} ms
# 3. It waits for crates. The arithmetic takes one part in
#    {{ token.gb / bandwidth.sheet * 1000 / (2 * token.macs / tensor_tflops / 1e9):.0f}} of the time. If you serve many
#    readers from the same crates, the rest of the time is no longer wasted. That is what serving a model is about.
# ///

# %% [markdown]
# ## The first roofline
#
# So there are two limits: a limit on arithmetic and a limit on bytes. Which of them stops *your* job? One number decides:
# how many operations the job does for each byte that it moves to or from the pantry. This number is called
# **arithmetic intensity**. The chart that shows both limits is the *roofline* [^williams2009].
#
# The two limits are equal at the **ridge**:
#
# `ridge = peak ÷ bandwidth`

# %%
flop_per_byte = sheet.peak_tflops["fp32"] * 1e12 / (sheet.bandwidth_gb_per_s * 1e9)
record(
    ridge=quantity(flop_per_byte, "FLOP/B"),
    ridge_bf16=quantity(
        sheet.peak_tflops["bf16"] * 1e3 / sheet.bandwidth_gb_per_s, "FLOP/B"
    ),
    tensor_tflops=quantity(sheet.peak_tflops["bf16"], "TFLOP/s", "given"),
    # z = x + y: one addition for twelve bytes
    add_intensity=quantity(1 / 12, "FLOP/B"),
    # n-by-n multiply: 2 n^3 operations, three grids of n^2 numbers
    multiply_intensity=quantity(2 * 4096**3 / (3 * 4 * 4096**2), "FLOP/B"),
)

# %% [markdown]
# | by hand | value |
# |---|---|
# | ridge of this card in fp32: peak ÷ bandwidth | **{{ ridge:.0f }}** operations per byte |
# | vector add: 1 operation, 12 bytes | {{ add_intensity:.2f }} |
# | multiply, 4096: 2 × 4096³ operations, three grids | {{ multiply_intensity:.0f }} |
#
# To the left of the ridge, a kernel waits for bytes: it is *memory-bound*. To the right of the ridge, a kernel waits
# for arithmetic: it is *compute-bound*.
#
# Now put jobs on the picture. The first is vector add, from [your first kernel](../start_here.py). The next two
# multiply a grid of 8192 by 8192 by a single list, as a model does for one token, and by 16 lists, as a model does
# for 16 readers. Then comes the multiply of two grids of 4096 by 4096, once by the naive kernel that a beginner
# writes and once by the library. The last job is the kernel of multiply-adds from two sections back.

# %%
from course_kernels.sgemm import k01_naive
from course_kernels.vector_add import k02_triton

jobs = {
    "add": measure(k02_triton, Workload.of("float32", N=2**28), seconds=0.2),
    **compare(
        {"naive": k01_naive, "library": sgemm_library.cublas},
        Workload.of("float32", M=4096, N=4096, K=4096),
        seconds=0.3,
    ),
}
for readers in (1, 16):
    jobs[f"readers{readers}"] = measure(
        sgemm_library.cublas,
        Workload.of("float32", M=8192, N=readers, K=8192),
        seconds=0.2,
    )
record(jobs=jobs)

# %% [markdown]
# /// chart | roofline
# title: The first roofline, fp32 outside the tensor cores
# math: fp32
# points:
#   - {name: jobs.add, label: vector add}
#   - {name: jobs.readers1, label: one reader}
#   - {name: jobs.readers16, label: 16 readers}
#   - {name: jobs.naive, label: naive}
#   - {name: fma, label: FMA}
#   - {name: jobs.library, label: library}
# alt: "Six jobs under the roof of the card, both axes logarithmic. Vector add at {{ jobs.add.intensity:.2f }} operations per byte, under the slope. One reader at {{ jobs.readers1.intensity:.1f }}, 16 readers at {{ jobs.readers16.intensity:.1f }}. At {{ jobs.library.intensity:.0f }} the naive multiply with {{ jobs.naive.tflops:.2f }} TFLOP/s far below, and the library's with {{ jobs.library.tflops:.0f }} near the flat roof. The multiply-adds at {{ fma.tflops:.0f }} TFLOP/s, the nearest to it."
# caption: The slope is the pantry; the flat part is the lanes. FMA is the kernel that does only multiply-adds. A copy does no arithmetic at all, so it cannot be shown here.
# ///
#
# /// table
# columns: [job, operations per byte, TFLOP/s, "% of peak", the roof over it]
# rows:
#   - [vector add, "{{ jobs.add.intensity:.2f }}", "{{ jobs.add.tflops:.2f }}", "{{ jobs.add.of_peak:.0%}}", bytes]
#   - [one reader, "{{ jobs.readers1.intensity:.2f }}", "{{ jobs.readers1.tflops:.2f }}", "{{ jobs.readers1.of_peak:.0%}}", bytes]
#   - [16 readers, "{{ jobs.readers16.intensity:.1f }}", "{{ jobs.readers16.tflops:.1f }}", "{{ jobs.readers16.of_peak:.0%}}", bytes]
#   - [naive multiply, "{{ jobs.naive.intensity:.0f }}", "{{ jobs.naive.tflops:.2f }}", "{{ jobs.naive.of_peak:.1%}}", arithmetic]
#   - [library multiply, "{{ jobs.library.intensity:.0f }}", "{{ jobs.library.tflops:.1f }}", "{{ jobs.library.of_peak:.0%}}", arithmetic]
#   - ["multiply-adds, hardly any memory", "{{ fma.intensity:.0f }}", "{{ fma.tflops:.1f }}", "{{ fma.of_peak:.0%}}", arithmetic]
# ///
#
# Now drag a job of your own along the roof, and try different cards.
#
# /// explorable | roofline
# ask: "With two operations for each byte, memory holds this job up. How many operations for each byte does it take until arithmetic holds it up? Then try another card, or the tensor cores: which way does the ridge move?"
# alt: "A roof over jobs, both axes logarithmic: it rises with the operations for each byte up to the ridge and is flat from there. The six measured jobs are under it. Yours is on the slope, at two operations for each byte."
# knobs:
#   place: {label: "Operations for each byte:", at: 40}
#   card: {label: Card, at: h200}
#   math: {label: Arithmetic, at: fp32, choices: {fp32: "fp32, outside the tensor cores", bf16: "bf16, on the tensor cores"}}
# data:
#   intensity: {vector add: "jobs.add.intensity:.2f", one reader: "jobs.readers1.intensity:.2f", 16 readers: "jobs.readers16.intensity:.1f", naive multiply: "jobs.naive.intensity:.0f", library multiply: "jobs.library.intensity:.0f", multiply-adds: "fma.intensity:.0f"}
#   rate: {vector add: "jobs.add.tflops:.2f", one reader: "jobs.readers1.tflops:.2f", 16 readers: "jobs.readers16.tflops:.1f", naive multiply: "jobs.naive.tflops:.2f", library multiply: "jobs.library.tflops:.1f", multiply-adds: "fma.tflops:.1f"}
# says:
#   memory: "Bound by memory: {place} operations per byte are left of the ridge at {ridge}. The {card} brings {bandwidth} GB/s by its data sheet, and with that {rate} TFLOP/s, {share} % of its peak of {peak}."
#   arithmetic: "Bound by arithmetic: {place} operations per byte are right of the ridge at {ridge}. The {card} does {peak} TFLOP/s by its data sheet, and the job may have all of it."
#   job: "Measured here: {job0}, {rate0} TFLOP/s."
#   also: "And {job1}, {rate1}."
#   elsewhere: "The measured jobs are not shown: they ran in fp32 on the card named under the title."
# row:
#   card: "{card}"
#   operations per byte: "{place}"
#   "bandwidth, GB/s": "{bandwidth}"
#   "peak, TFLOP/s": "{peak}"
#   ridge: "{ridge}"
#   "at best, TFLOP/s": "{rate}"
# caption: "Peaks and bandwidths are those of the data sheets: H200 [^nvidia-h200], H100 [^nvidia-h100], A100 [^nvidia-a100], L40S [^nvidia-l40s], B200 [^nvidia-b200]."
# ///
#
# Why is the intensity of the kernel of multiply-adds not infinite? It is finite because each thread still reads its
# totals and its factor once, and writes the totals once.
#
# Read the picture from the left.
#
# /// claim | jobs.add.of_peak > 0.8 and jobs.add.of_compute < 0.008
# **Vector add** uses {{ jobs.add.of_compute:.1%}} of the lanes, and has little left to gain: it reaches
# {{ jobs.add.of_peak:.0%}} of what its roof allows. Nearly all the stoves are cold, and no cook could change that. Only
# moving fewer bytes could.
# /// otherwise
# **Vector add** uses {{ jobs.add.of_compute:.1%}} of the lanes and reaches {{ jobs.add.of_peak:.0%}} of what its roof
# allows.
# ///
#
# /// claim | jobs.readers16.us < 1.9 * jobs.readers1.us
# **One reader or 16**: with sixteen times the arithmetic, the time goes from {{ jobs.readers1.us:.0f}} µs to
# {{ jobs.readers16.us:.0f}} µs. The same crates are fetched, and sixteen cooks take from each crate. To the left of the
# ridge, arithmetic is cheap. But cheap does not mean free: the library reaches {{ jobs.readers16.of_peak:.0%}} of its
# roof here. The roofline says that bytes are the limit, but something else slows the library down too. This page does
# not measure what it is.
# /// otherwise
# **One reader or 16**: sixteen times the arithmetic, and the time goes from {{ jobs.readers1.us:.0f}} µs to
# {{ jobs.readers16.us:.0f}} µs. Left of the ridge, the extra arithmetic could be cheap. In the library's kernel it is
# not cheap here.
# ///
#
# **The multiply** is far to the right: {{ multiply_intensity:.0f}} operations per byte, worked out by hand, if every
# number is fetched just once. The roof over this job is flat. Memory is no excuse.
#
# /// claim | jobs.naive.us > 60 * jobs.library.us
# And now look down. The naive kernel does the *same* job, so it is at the same place along the axis, under the same
# roof. The naive kernel reaches {{ jobs.naive.of_peak:.1%}} of this roof, and the library reaches
# {{ jobs.library.of_peak:.0%}}. What holds the naive kernel back is not the hardware but its recipe. Closing that
# gap, from the lower point to the upper one, is the first half of this course.
# /// otherwise
# The naive kernel does the same job under the same roof. The naive kernel reaches {{ jobs.naive.of_peak:.1%}} of this
# roof, and the library reaches {{ jobs.library.of_peak:.0%}}.
# ///
#
# /// claim | jobs.library.of_peak < fma.of_peak
# The library does not reach the top either. The kernel of multiply-adds shows that {{ fma.of_peak:.0%}} can be reached,
# while the library reaches {{ jobs.library.of_peak:.0%}}. Most likely the reason is that the library has to fetch and
# store between its multiply-adds, and the kernel of multiply-adds does not. This page does not count these
# instructions; [the ladder](l4_the_gemm_ladder.py) does.
# /// otherwise
# The library is as near the top as the kernel that does nothing but multiply-adds.
# ///
#
# /// exercise | Left or right?
# The ridge of this card is at {{ ridge:.0f}} in fp32. On which side of the ridge are these jobs?
#
# 1. Multiplying two grids of 1000 by 1000, as in the first exercise.
# 2. Multiplying two grids of 60 by 60.
# 3. Doubling a list.
# 4. The model of the first section in bf16, at two bytes per weight. With the tensor cores the ridge is at
#    {{ ridge_bf16:.0f}}. How many readers must share a card before arithmetic is the limit?
# /// answer
# 1. 167 operations per byte is to the right of the ridge, so this job is bound by arithmetic.
# 2. 2 × 60³ ÷ (3 × 4 × 60²) = 10 is to the left of the ridge. The multiplication of small grids is bound by bytes,
#    unless something else limits it first.
# 3. One operation per eight bytes, or 0.125 operations per byte, is far to the left.
# 4. For one reader each weight costs two operations and two bytes, so the intensity is 1. With R readers the
#    intensity is R, as long as the readers' own lists are small compared with the weights. So it takes about
#    {{ ridge_bf16:.0f}} readers.
# ///

# %% [markdown]
# ## Now type it
#
# You have worked out everything on this page with a pencil. Now write your calculations as seven small functions, and
# have them checked.
#
# /// lab | roofline
# ///

# %% [markdown]
# ## Where this leads
#
# You know the two kitchens, the size of the GPU's kitchen, and the roof over every job in it. You have not yet told a
# single cook what to do.
#
# - How is work shared out among all these threads? The next lecture, [the CUDA model](l2_the_cuda_model.py), answers
#   that: it draws grids, blocks and warps from real launches.
# - How far can you trust the readings on this page? See [how every number here is measured](../how_we_measure.py).
# - Would you rather start cooking at once? In [Your first kernel](../start_here.py) you will be typing within twenty
#   minutes.
# - What are the two roofs of the GPU in front of you? [Your own GPU](../your_gpu.md) measures them in the page, with nothing
#   to install.
# - Where does every number above come from? [The ledger](../numbers.md) lists each of them with its spread and its
#   run.
