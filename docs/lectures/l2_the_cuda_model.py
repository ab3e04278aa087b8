# ---
# id: l2
# title: The CUDA model
# description: See grid, block, warp and thread in a real launch, turn a picture grey, and learn what launches, branches and copies cost.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # The CUDA model
#
# On [your first day](../start_here.py) thousands of cooks followed one recipe. Here you learn who these cooks are,
# how they are seated, and what it costs to call them.
#
# By the end you can
#
# - say which thread handles which element, in one, two and three dimensions, and check it against the card;
# - write a kernel for a picture, and run a `.cu` file of your own in one line;
# - pick a block size, and say what a bad one costs;
# - see a warp split at a branch, and count how many of its threads still work;
# - say what a launch costs;
# - pay that price once, with a graph;
# - let copies and kernels run at the same time;
# - follow a kernel down to machine code;
# - make a kernel work with autograd.
#
# Graphs, streams, machine code and autograd are beyond the core, and their sections are folded away. Open them when
# you need them.
#
# You need Python and the first page. If you do not understand a line of C, look at
# [C for Python people](../c_for_python_people.py). If you do not understand a line of Triton, look at
# [Triton for NumPy people](../triton_for_numpy_people.py).

# %% [markdown]
# ## Who am I?
#
# A kernel is one recipe for one thread. Its first line always asks the same question: *who am I?* Four words help you
# answer it.
#
# - The **grid** is all the threads that you launch. The grid is divided into **blocks**, the tables of the kitchen.
# - A **block** stays in one room, on one *multiprocessor* (SM), from its first step to its last. Its threads can
#   share the tray in the middle of that room, the *shared memory*, and wait for each other. Threads of different
#   blocks can do neither of these things, unless they are in a cluster, which you will meet later.
# - A **warp** is a row of 32 threads that make the same move at the same time. You never ask for a warp: the card cuts
#   every block into warps.
# - A **thread** is one cook, with registers of its own.
#
# Do not take our word for it. In the next cell every thread of a launch writes down its block, its place in the block,
# its warp, and the SM on which it ran. There are three launches: one over a list, one over a picture and one over a
# solid.

# %%
from course_kernels.microbenchmarks.coordinates import coordinates

line = coordinates(grid=4, block=64)
plane = coordinates(grid=(2, 3), block=(16, 4))
solid = coordinates(grid=(2, 2, 2), block=(4, 4, 4))

for n in range(0, 256, 50):  # every 50th thread of the line
    block, thread = line.block[n, 0], line.thread[n, 0]
    print(
        f"block {block}, thread {thread}: warp {line.warp[n]}, on SM {line.sm[n]}"
    )

# %% tags=["fold"]
import numpy as np
from course_kernels.measure import quantity, record, trace


def as_trace(who):
    """One row for each thread: its block, its place in it, its warp, its SM."""
    columns = {"warp": who.warp, "sm": who.sm}
    for axis, letter in enumerate("xyz"):
        columns[f"block_{letter}"] = who.block[:, axis]
        columns[f"thread_{letter}"] = who.thread[:, axis]
    return trace(columns)


first_warp = plane.thread[:64][plane.warp[:64] == 0]  # of block (0, 0)
record(
    line=as_trace(line),
    plane=as_trace(plane),
    solid=as_trace(solid),
    seen={
        "line_blocks": quantity(4, how="given"),
        "line_sms": quantity(len(np.unique(line.sm)), how="device"),
        "first_warp_rows": quantity(len(np.unique(first_warp[:, 1])), how="device"),
    },
)

# %% [markdown]
# ### One dimension: a list
#
# The list has 200 numbers, and a block has 64 threads. You need four blocks, because three blocks have only 192
# threads.
#
# /// chart | launch
# title: Four blocks of 64 threads over a list of 200 numbers
# trace: line
# size: [200]
# alt: "Four blocks in a row, each of 64 threads in two warps, over a list of 200 numbers. In the first three blocks every thread is at work. In the last one 8 threads have a number and 56 are crossed out. That block is shown large, with its two warps and their lanes."
# caption: "The picture is drawn from what the threads reported. A cell is a thread; a crossed-out cell has no number to work on."
# ///
#
# `i = blockIdx.x * blockDim.x + threadIdx.x` is table × seats per table + seat. The threads whose `i` is 200 or more
# are the spare cooks, and the `if` sends them home.
#
# /// claim | seen.line_sms == seen.line_blocks
# Four blocks ran on {{ seen.line_sms }} different SMs. We did not ask for this distribution, and could not have asked
# for it. *You* say how many blocks there are. *The card* says where and when each of them runs. So a kernel that is
# right only when block 0 runs before block 1 is wrong.
# /// otherwise
# Four blocks ran on {{ seen.line_sms }} different SMs. *You* say how many blocks there are. *The card* says where and
# when each of them runs. So a kernel that is right only when block 0 runs before block 1 is wrong.
# ///

# %% [markdown]
# ### Two dimensions: a picture
#
# A picture has rows and columns, so give the grid rows and columns too. `x` counts along a row. `y` counts rows.
#
# /// predict | A block is 16 threads wide and 4 high. Which 32 of its 64 threads are its first warp?
# - [ ] The left half, all four rows of it
# - [x] The first two rows
# - [ ] Whichever the card picks
# /// reveal
# The first {{ seen.first_warp_rows }} rows. The threads of a block are numbered in the order in which you read a page:
# `x` runs fastest, then `y`, then `z`. Numbers 0 to 31 are warp 0, numbers 32 to 63 are warp 1, and so on. Your number
# modulo 32 is your **lane**.
#
# /// chart | launch
# title: Six blocks of 16 × 4 threads over a picture of 30 × 10 pixels
# trace: plane
# size: [10, 30]
# alt: "A picture 30 pixels wide and 10 high under a grid of two by three blocks, each 16 threads wide and 4 high. The blocks on the right reach two columns past the picture, the lowest ones two rows. Every block is two warps, one above the other, each two rows of 16 threads."
# caption: "The spare threads are on two edges now, so the question has two parts: is the column outside, or the row?"
# ///
# ///
#
# Memory has only one dimension, however many the grid has. The rows of a picture are stored one after the other, so the
# pixel at `row` and `column` is number `row × W + column`.
#
# Work out by hand which pixel one thread handles: thread (5, 2) in block (1, 1). Then ask the card.

# %%
W = 30
block_x, block_y, thread_x, thread_y = 1, 1, 5, 2

column = block_x * 16 + thread_x
row = block_y * 4 + thread_y
number = thread_y * 16 + thread_x  # in its block, x fastest
print(f"by hand:       column {column}, row {row}, pixel {row * W + column}")
print(f"by hand:       thread {number}: warp {number // 32}, lane {number % 32}")

in_block = (plane.block == [block_x, block_y, 0]).all(axis=1)
it = in_block & (plane.thread == [thread_x, thread_y, 0]).all(axis=1)
print(f"the card says: warp {plane.warp[it][0]}, lane {plane.lane[it][0]}")

# %% [markdown]
# ### Three dimensions: a solid
#
# Simulations work on boxes of numbers. The same rule applies with one more letter: `z` counts the layers.
#
# /// chart | launch
# title: Eight blocks of 4 × 4 × 4 threads over a solid of 8 × 7 × 6 cells
# trace: solid
# size: [6, 7, 8]
# alt: "A solid 8 cells wide, 7 high and 6 deep under two by two by two blocks of four by four by four threads, layer by layer. Every block is two warps: layers 0 and 1 are the first, layers 2 and 3 the second. The back blocks reach two layers past the solid, the lower ones one row."
# caption: "A cube of 4 × 4 × 4 is 64 threads as well, so it is two warps, like the blocks above."
# ///
#
# The dimensions are for your convenience. The card numbers the threads of a block in one long row and cuts this row
# after every 32 threads. What matters for speed is which threads run together and which threads read neighbouring
# numbers. You see this only when you number the threads as the card does.
#
# /// exercise | Find the thread
# A picture is 1000 pixels wide and 600 high. You launch blocks of 32 × 8 threads. How many blocks and how many spare
# threads are there? Which thread, in which block, handles the pixel in column 999 of row 599? Which warp of its block
# is it in?
# /// answer
# 1000 / 32 = 31.25, so there are 32 blocks across. 600 / 8 = 75, so there are exactly 75 blocks down. 32 × 75 = 2400
# blocks of 256 threads are 614 400 threads for 600 000 pixels: 14 400 are to spare, all of them at the right edge.
#
# 999 = 31 × 32 + 7 and 599 = 74 × 8 + 7, so it is thread (7, 7) in block (31, 74). Its number is 7 × 32 + 7 = 231, and
# 231 / 32 = 7.2, so it is lane 7 of warp 7. When blocks are 32 threads wide, every warp covers one piece of one row.
# ///

# %% [markdown]
# ## Vector add, once more
#
# You know this job: `z[i] = x[i] + y[i]`. On the first page the plain CUDA kernel, with one number from each list per
# thread, reached {{ start.big.cuda.of_peak:.0%}} of peak, and an exercise asked you to give each thread four numbers.
# Here is such a kernel. It goes one step further: a thread asks for two such groups of four from each list before it
# adds the first two numbers.
#
# /// source | src/course_kernels/vector_add/k03_vectorised.cu
# title: src/course_kernels/vector_add/k03_vectorised.cu
# ///
#
# This kernel does the same sums on the same bytes, but with fewer threads that take larger bites. Here are all four
# kernels side by side, on lists of 2<sup>28</sup> numbers:

# %%
from course_kernels.measure import compare
from course_kernels.problem import Workload
from course_kernels.vector_add import k01_cuda, k02_triton, k03_vectorised
from course_kernels.vector_add import library as add_library

ADDS = {
    "plain": k01_cuda,
    "vectors": k03_vectorised,
    "triton": k02_triton,
    "torch": add_library.torch_add,
}
record(adds=compare(ADDS, Workload.of("float32", N=2**28), seconds=0.3))

# %% [markdown]
# /// table
# columns: ["N&nbsp;=&nbsp;2<sup>28</sup>, fp32", "% of peak", "GB/s"]
# rows:
#   - ["CUDA C++, one number a thread", "{{ adds.plain.of_peak:.1%}}", "{{ adds.plain.gb_per_s:.0f }}"]
#   - ["CUDA C++, 16 bytes at a time", "{{ adds.vectors.of_peak:.1%}}", "{{ adds.vectors.gb_per_s:.0f }}"]
#   - ["Triton", "{{ adds.triton.of_peak:.1%}}", "{{ adds.triton.gb_per_s:.0f }}"]
#   - ["PyTorch, x + y", "{{ adds.torch.of_peak:.1%}}", "{{ adds.torch.gb_per_s:.0f }}"]
# ///
#
# /// claim | adds.vectors.us < 0.97 * adds.plain.us
# With larger bites the kernel needs only {{ adds.vectors.us / adds.plain.us:.0%}} of the time. Most likely the cooks
# were waiting, not
# working: a thread of the plain kernel has 8 bytes in the hall before it adds, and a thread of this kernel has 64 bytes.
# [The lecture on memory](l3_memory.py) turns this observation into a law. But this kernel also needs only an eighth of
# the blocks, and this run cannot separate the two causes. [Further down](#how-large-is-a-block) you will see that
# blocks have a price too.
# /// otherwise
# With larger bites the kernel needs {{ adds.vectors.us / adds.plain.us:.0%}} of the time: on this card one number per
# thread already keeps enough bytes in flight. [The lecture on memory](l3_memory.py) shows how many bytes are enough.
# ///
#
# /// claim | 0.95 < adds.vectors.us / adds.torch.us < 1.05
# This kernel and PyTorch take equally long, to within one part in twenty. Both of them wait for the same memory.
# /// otherwise
# This kernel takes {{ adds.vectors.us / adds.torch.us:.2f }} times as long as PyTorch.
# ///
#
# /// exercise | How many cooks?
# The list has 2<sup>28</sup> numbers. How many blocks of 256 threads does the plain kernel launch? How many threads
# does one SM hold at once, if it can hold 2048? How many times, then, is a card with 132 SMs filled and emptied during
# this launch?
# /// answer
# 2<sup>28</sup> / 256 = 2<sup>20</sup>, a little over a million blocks. One SM holds 2048 / 256 = 8 of these blocks,
# and the card holds 132 × 8 = 1056. A million divided by 1056 is about 993 fillings. Each filling is called a *wave*.
# The blocks do not advance in step, though: whenever one block ends, the next block takes its seats.
# ///

# %% [markdown]
# ## A picture in, a picture out
#
# Now take a job that is two-dimensional by nature. A picture comes in, with three numbers per pixel: how much red, how
# much green and how much blue, each from 0 to 1. A grey picture goes out, with one number per pixel. To the eye, green
# looks bright and blue looks dark, so the colours do not count equally:
#
# `grey = 0.299 red + 0.587 green + 0.114 blue`
#
# One thread handles one pixel:
#
# /// source | src/course_kernels/grey/k01_pixels.cu
# title: src/course_kernels/grey/k01_pixels.cu
# ///
#
# - Two lines ask *who am I?*, one for each dimension.
# - The `if` has two parts, for the two edges.
# - `pixel` is `row × W + column`. The kernel computes this number in 64 bits, because a picture may have more numbers
#   than 32 bits can count.
# - The colours of pixel `p` are at `3p`, `3p + 1`, `3p + 2`. Neighbouring threads read neighbouring groups of three.
#
# The launcher rounds up twice, once across and once down:
#
# /// source | src/course_kernels/grey/k01_pixels.py#launcher
# title: src/course_kernels/grey/k01_pixels.py
# ///
#
# You need something to look at. NumPy paints a bowl of fruit. How NumPy does so does not matter here, so that code
# stays folded.

# %% tags=["fold"]
import base64
import struct
import zlib

import torch
from course_kernels.grey import k01_pixels
from IPython.display import HTML


def bowl_of_fruit(H=200, W=300):
    """A picture (H, W, 3) of numbers from 0 to 1."""
    y, x = np.mgrid[0:H, 0:W] / H
    wall = np.array([0.93, 0.86, 0.70]) * (0.75 + 0.35 * y)[..., None]
    wood = np.array([0.55, 0.36, 0.20]) * (1.0 - 0.25 * (y - 0.62))[..., None]
    picture = np.where((y > 0.62)[..., None], wood, wall)
    fruits = [
        (0.42, 0.42, 0.15, (0.95, 0.75, 0.10)),  # lemon
        (1.08, 0.40, 0.16, (0.98, 0.52, 0.08)),  # orange
        (0.62, 0.36, 0.17, (0.86, 0.13, 0.10)),  # red apple
        (0.88, 0.37, 0.17, (0.13, 0.50, 0.10)),  # green apple
        (0.75, 0.52, 0.13, (0.45, 0.12, 0.42)),  # plum
    ]
    for center_x, center_y, radius, colour in fruits:
        dx, dy = (x - center_x) / radius, (y - center_y) / radius
        height = np.sqrt(np.clip(1 - dx**2 - dy**2, 0, None))
        light = np.clip(0.62 * height - 0.5 * dx - 0.6 * dy, 0, 1)[..., None]
        ball = np.array(colour) * (0.35 + 0.65 * light) + 0.5 * light**12
        inside = dx**2 + dy**2 < 1
        picture[inside] = ball[inside]
    bowl = (((x - 0.75) / 0.62) ** 2 + ((y - 0.55) / 0.33) ** 2 < 1) & (y > 0.55)
    blue = np.array([0.16, 0.36, 0.62]) * (1.25 - 0.9 * np.abs(x - 0.6))[..., None]
    picture[bowl] = blue[bowl]
    return np.clip(picture, 0, 1).astype(np.float32)


def as_png(pixels):
    """A picture (H, W) or (H, W, 3) as the bytes of a PNG file."""
    data = (np.clip(pixels, 0, 1) * 255 + 0.5).astype(np.uint8)
    H, W = data.shape[:2]
    data = data.reshape(H, -1)
    data[1:] -= data[:-1].copy()  # each line as the change from the one above
    lines = np.insert(data, 0, 2, axis=1)  # 2: PNG's name for that

    def part(kind, body):
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + checksum

    head = struct.pack(">IIBBBBB", W, H, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    parts = part(b"IHDR", head) + part(b"IDAT", body) + part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def picture_html(pixels, alt):
    """A picture embedded in the page itself."""
    data = base64.b64encode(as_png(pixels)).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{alt}" width="300" height="200">'


IN = (
    "A blue bowl with a lemon, a red apple, a green apple, an orange and a plum"
    " on a wooden table, in colour."
)
OUT = (
    "The same bowl in grey. The red and the green apple have become the same grey;"
    " the lemon is the brightest fruit."
)


def show(before, after):
    """Both pictures, side by side where there is room."""
    return HTML(
        '<div style="display:flex;flex-wrap:wrap;gap:1rem">'
        + picture_html(before.cpu().numpy(), IN)
        + picture_html(after.cpu().numpy(), OUT)
        + "</div>"
    )


# %%
colour = torch.from_numpy(bowl_of_fruit()).cuda()  # (200, 300, 3)
grey_picture = k01_pixels.grey(colour)  # (200, 300)
show(colour, grey_picture)

# %% [markdown] Colours went into the kernel, and grey came out. Look at the two apples. In colour you would never confuse the two; in grey they are twins. Three numbers became one, and the lost information cannot be
# recovered.

# %% [markdown]
# ### How good is it?
#
# First work out the floor, the shortest possible time, by hand. A pixel costs three numbers read and one number
# written: 16 bytes. A picture of 8192 × 8192 pixels costs 16 × 2<sup>26</sup> bytes, a little over a gigabyte. Compared
# with these bytes, the five operations that a pixel needs are nothing.
#
# There are three rivals. The first rival is a Triton kernel, which treats a picture as one long list of pixels and
# ignores its rows. The second is PyTorch, written the way you would write it,
# `0.299 * red + 0.587 * green + 0.114 * blue`. The third rival is PyTorch with a trick: every pixel is a row of three
# numbers, so grey is a matrix times a vector, `picture @ weights`.

# %%
from course_kernels.grey import k02_triton as grey_triton
from course_kernels.grey import library as grey_library
from course_kernels.measure import count_many

GREYS = {
    "cuda": k01_pixels,
    "triton": grey_triton,
    "product": grey_library.torch_product,
    "written_out": grey_library.torch_grey,
}
large = Workload.of("float32", H=8192, W=8192)
record(grey=compare(GREYS, large, seconds=0.3))

# %% tags=["fold"]
from course_kernels.divergence import k01_branches, k02_sorted

# One visit to the card's counters, for this section and for the one on branches.
ACTIVE = "smsp__thread_inst_executed_per_inst_executed.ratio"
WAYS = (1, 2, 4, 8, 16, 32)
picked = {name: GREYS[name] for name in ("cuda", "product", "written_out")}
jobs = [(kernel, large) for kernel in picked.values()]
jobs += [(k01_branches, Workload.of("float32", N=2**24, W=ways)) for ways in WAYS]
jobs += [(k02_sorted, Workload.of("float32", N=2**24, W=32))]
counted = count_many(jobs, [ACTIVE])


def lanes_at_work(one):
    """Lanes that take part in an instruction, on average."""
    value = one.kernels[0]["metrics"][ACTIVE]["value"]
    return quantity(value, "lanes", how="counted")


record(
    traffic=dict(zip(picked, counted[:3], strict=True)),
    active={
        f"w{ways}": lanes_at_work(one)
        for ways, one in zip(WAYS, counted[3:-1], strict=True)
    },
    active_sorted=lanes_at_work(counted[-1]),
)

# %% [markdown]
# /// table
# columns: ["8192 × 8192 pixels, fp32", "% of peak", "time, µs"]
# rows:
#   - ["CUDA C++, one thread a pixel", "**{{ grey.cuda.of_peak:.1%}}**", "{{ grey.cuda.us:.0f }}"]
#   - ["Triton, a run of pixels a program", "**{{ grey.triton.of_peak:.1%}}**", "{{ grey.triton.us:.0f }}"]
#   - ["PyTorch, `picture @ weights`", "**{{ grey.product.of_peak:.1%}}**", "{{ grey.product.us:.0f }}"]
#   - ["PyTorch, written out", "**{{ grey.written_out.of_peak:.1%}}**", "{{ grey.written_out.us:.0f }}"]
#   - ["*the floor*", "*all of it*", "*{{ grey.cuda.us * grey.cuda.of_peak:.0f }}*"]
# ///
#
# /// claim | grey.cuda.of_peak > 0.6
# **{{ grey.cuda.of_peak:.0%}} of peak** from a dozen lines. The colours of each pixel begin 12 bytes after those of the
# pixel before it, and still nothing is wasted: when one of the three loads leaves part of a piece of memory unused, the
# other two read that part from the cache.
# /// otherwise
# {{ grey.cuda.of_peak:.0%}} of peak. The colours of each pixel
# begin 12 bytes after those of the pixel before it. When one of the three loads leaves part of a piece of memory
# unused, the other two read that part from the cache.
# ///
#
# /// claim | grey.triton.us < 0.97 * grey.cuda.us
# Our kernel is not the best one possible. Triton takes {{ grey.triton.us / grey.cuda.us:.0%}} of our time. The reason
# is probably the same as for the vector add: a Triton program of 1024 pixels has 128 threads, so each thread has eight
# pixels, and the loads of all eight are in flight together. Each of our threads has only one pixel and three loads.
# /// otherwise
# Triton takes {{ grey.triton.us / grey.cuda.us:.2f }} times as long as our kernel.
# ///
#
# /// claim | grey.written_out.us > 3 * grey.cuda.us
# The line that everybody writes takes {{ grey.written_out.us / grey.cuda.us:.1f }} times as long as our kernel. The
# card's counters show why: that line runs {{ traffic.written_out.kernels }} kernels and moves
# {{ traffic.written_out.gb:.1f }} GB through the hall, where ours moves {{ traffic.cuda.gb:.1f }} GB. What are the
# extra bytes? With a pencil you find two causes.
#
# - *Two colours for nothing.* A product needs one colour, 4 bytes of every 12, and memory hands out whole pieces. So
#   each of the three products fetches the whole picture, {{ traffic.cuda.read_gb:.1f }} GB, where one fetch would be
#   enough for all three. That makes {{ 2 * traffic.cuda.read_gb:.1f }} GB too many.
# - *There and back.* What one kernel writes, the next kernel reads: four lists, each a third of the size of the
#   picture, are carried down the hall and back. That makes {{ 8 * traffic.cuda.read_gb / 3:.1f }} GB.
#
# None of those kernels is bad, and none of them can avoid this traffic: each kernel does only its own part of the
# line. Making one kernel out of several is called *fusing*. Fusing saves you both kinds of traffic, and it is the
# subject of half of this course.
# /// otherwise
# PyTorch, written out, takes {{ grey.written_out.us / grey.cuda.us:.1f }} times as long as our kernel. It runs
# {{ traffic.written_out.kernels }} kernels and moves {{ traffic.written_out.gb:.1f }} GB. Our version runs one kernel
# and moves {{ traffic.cuda.gb:.1f }} GB.
# ///
#
# /// claim | grey.product.us > 8 * grey.cuda.us
# The trick with the product moves only {{ traffic.product.gb:.1f }} GB, and yet it is the slowest of all: it takes
# {{ grey.product.us / grey.cuda.us:.0f }} times as long as our kernel. So moving few bytes is not enough: somebody must
# also ask for those bytes quickly. A library's matrix product is built for large matrices. For rows of three numbers it
# is most likely the wrong tool.
# /// otherwise
# The trick with the product moves {{ traffic.product.gb:.1f }} GB and takes {{ grey.product.us / grey.cuda.us:.2f }}
# times as long as our kernel.
# ///
#
# Now it is your turn to type a kernel.
#
# /// lab | grey
# ///
#
# /// exercise | Swap two words
# Somebody writes `row` where `column` should be, and vice versa: `threadIdx.x` now counts rows, and `threadIdx.y`
# columns. The grid is swapped too, so every pixel is still handled once. Is the answer still right? And what happens to
# the time?
# /// answer
# The answer is right: every pixel is done by some thread, and it does not matter which.
#
# The time is a different matter. The 32 threads of a warp differ in `threadIdx.x`. Before the swap these threads sat
# side by side in a row. Now they sit one above the other, in 32 different rows, and a load that used to ask for one
# stretch of memory asks for 32 places that are far apart. The section after next measures exactly this effect.
# ///

# %% [markdown]
# ## A file of your own, in one line {.beyond}
#
# You can do without our launchers. Write a `.cu` file, and run it:

# %%
import tempfile
from pathlib import Path

from course_kernels.cuda.run import run

mine = Path(tempfile.mkdtemp()) / "brighten.cu"
mine.write_text("""
extern "C" __global__ void brighten(const float *x, float *y, float by, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = fminf(x[i] + by, 1.0f);
}
""")

x = torch.rand(1000, device="cuda")
y = torch.empty_like(x)
run(mine, 4, 256, x, y, 0.25, 1000)  # file, blocks, threads of a block, arguments

print("right:", torch.equal(y, (x + 0.25).clamp(max=1.0)))

# %% [markdown] `run` compiles the file, finds the kernel in it, and reads the types from the kernel's first line:
# `float by` needs a 32-bit float, and `int N` needs a whole number. At run time a kernel does not know the types. It
# reads whatever bytes it gets. So `run` checks the arguments before it calls the kernel, and reports in one line what
# does not fit:

# %%
for arguments in [
    (mine, 4, 256, x.double(), y, 0.25, 1000),
    (mine, 4, 256, x, y, 0.25, 1000.0),
    (mine, 4, 256, x[::2], y, 0.25, 500),
    (mine, 4, 256, x, y, 1000),
    (mine, 4, 2048, x, y, 0.25, 1000),
]:
    try:
        run(*arguments)
    except (TypeError, ValueError) as error:
        print(error)

# %% [markdown] But `run` cannot detect that a kernel reads past the end of a list. Such faults have
# [a page of their own](../when_it_goes_wrong.py).
#
# /// exercise | The negative
# Write `negative.cu`: it takes a picture of H × W × 3 numbers and replaces each number `x` by `1 - x`. Do you need
# two dimensions?
# /// answer
# No. Every number is treated the same, so rows, columns and colours do not matter: a picture is a list of 3 × H × W numbers.
# Take the `brighten` kernel without its `by`, and write `y[i] = 1.0f - x[i];`. Use dimensions when the *job* has them.
# ///

# %% [markdown]
# ## How large is a block?
#
# You choose the size of a block, within limits: it has at most 1024 threads, and if the number is not a multiple of 32,
# the last warp has empty seats. What does the choice cost? The grey kernel can be launched with blocks of any size, so
# try some. The first ones have a single row, of 32 threads to 1024.

# %% tags=["fold"]
rows, shapes = {}, {}
for threads in (32, 64, 128, 256, 512, 1024):
    rows[f"t{threads}"] = Workload.of("float32", H=4096, W=4096, X=threads, Y=1)
for wide, high in ((256, 1), (64, 4), (16, 16), (4, 64), (1, 256)):
    shapes[f"w{wide}"] = Workload.of("float32", H=4096, W=4096, X=wide, Y=high)


def timed(workloads):
    """A checked measurement of the grey kernel with every block."""
    return {
        name: compare({"it": k01_pixels}, workload, seconds=0.15)["it"]
        for name, workload in workloads.items()
    }


record(rows=timed(rows), shapes=timed(shapes))

# %% [markdown]
# /// chart | lines
# title: Grey with blocks of one row
# x: X
# y: gb_per_s
# x_label: threads of a block
# y_label: GB/s
# x_scale: log2
# series:
#   - {name: rows.*, label: "4096 × 4096 pixels"}
# references:
#   - {label: data sheet, value: start.by_hand.bandwidth}
# alt: "Bytes per second against the threads of a block, from 32 to 1024: {{ rows.t32.gb_per_s:.0f }} GB/s with 32, {{ rows.t128.gb_per_s:.0f }} with 128, {{ rows.t256.gb_per_s:.0f }} with 256, {{ rows.t1024.gb_per_s:.0f }} with 1024."
# caption: Every point is the same kernel with the same picture and the same bytes.
# ///
#
# /// claim | 1.7 < rows.t32.us / rows.t64.us < 2.3 and 1.7 < rows.t64.us / rows.t128.us < 2.3
# With 32 threads per block the kernel takes {{ rows.t32.us / rows.t256.us:.1f }} times as long as with 256, and with 64
# it takes about half as long as with 32. The bytes are the same, so what causes the difference? Count the blocks. With
# 32 threads per block there are 2<sup>19</sup> blocks, about half a million, which makes
# {{ 1000 * rows.t32.us / 524288:.2f }} ns per block. With 64 threads there are half as many blocks, at
# {{ 1000 * rows.t64.us / 262144:.2f }} ns each, and with 128 threads there are a quarter as many, at
# {{ 1000 * rows.t128.us / 131072:.2f }} ns each. The time follows the number of blocks, not the bytes. Some part of the
# card has to seat all those small tables, and most likely that part cannot work any faster.
# /// otherwise
# With 32 threads per block the kernel takes {{ rows.t32.us / rows.t256.us:.2f }} times as long as with 256, and with 64
# threads it takes {{ rows.t64.us / rows.t256.us:.2f }} times as long. Every block has to be seated, and if blocks are
# small, there are many of them.
# ///
#
# Small tables have a second price. An SM of an H200 seats 2048 threads, but no more than 32 blocks. 32 blocks of 32
# threads are 1024 cooks, so half the seats stay empty. (The empty seats do not explain what you just saw: 16 blocks of
# 128 fill every seat, and each of those blocks still takes just as long.)
#
# /// claim | max(rows.t128.us, rows.t256.us, rows.t512.us, rows.t1024.us) < 1.4 * min(rows.t128.us, rows.t256.us, rows.t512.us, rows.t1024.us)
# From 128 threads on, the size matters less: {{ rows.t128.us:.0f }}, {{ rows.t256.us:.0f }}, {{ rows.t512.us:.0f }} and
# {{ rows.t1024.us:.0f }} µs for 128, 256, 512 and 1024 threads. Such small differences are common for kernels that only
# carry bytes. Start with 256 threads and move on. Reconsider the choice when you have a reason.
# /// otherwise
# From 128 threads on, the kernel takes {{ rows.t128.us:.0f }}, {{ rows.t256.us:.0f }}, {{ rows.t512.us:.0f }} and
# {{ rows.t1024.us:.0f }} µs with 128, 256, 512 and 1024 threads. So try a few, and start with 256.
# ///
#
# Now change the shape of the block: keep its 256 threads, but arrange them in different ways.
#
# /// predict | 256 × 1, 16 × 16 or 1 × 256 threads: is one block much slower than 256 × 1 for this picture?
# - [shapes.w1.us / shapes.w256.us >= 1.5 and shapes.w16.us / shapes.w256.us < 1.5] Yes, 1 × 256
# - [shapes.w1.us / shapes.w256.us >= 1.5 and shapes.w16.us / shapes.w256.us >= 1.5] Yes, both of the others
# - [shapes.w1.us / shapes.w256.us < 1.5] No: they all read the same pixels
# /// reveal
# Blocks of 256 × 1 take {{ shapes.w256.us:.0f }} µs, and blocks of 16 × 16 take {{ shapes.w16.us:.0f }} µs. Blocks of
# 1 × 256 take {{ shapes.w1.us:.0f }} µs, which is {{ shapes.w1.us / shapes.w256.us:.1f }} times as long as the first.
#
# /// chart | bars
# title: 256 threads in five shapes
# x_label: GB/s
# bars:
#   - {name: shapes.w256.gb_per_s, label: "256 wide, 1 high"}
#   - {name: shapes.w64.gb_per_s, label: "64 wide, 4 high"}
#   - {name: shapes.w16.gb_per_s, label: "16 wide, 16 high"}
#   - {name: shapes.w4.gb_per_s, label: "4 wide, 64 high"}
#   - {name: shapes.w1.gb_per_s, label: "1 wide, 256 high"}
# alt: "Bars of bytes per second for five shapes of a block of 256 threads: {{ shapes.w256.gb_per_s:.0f }} GB/s when it is 256 wide, {{ shapes.w64.gb_per_s:.0f }} when 64 wide, {{ shapes.w16.gb_per_s:.0f }} when 16 wide, {{ shapes.w4.gb_per_s:.0f }} when 4 wide, {{ shapes.w1.gb_per_s:.0f }} when one thread wide."
# caption: Every shape handles every pixel once.
# ///
#
# /// claim | shapes.w1.us > 4 * shapes.w256.us
# The tall, thin block is by far the slowest. Draw its first warp: 32 threads, one above the other. In memory their
# pixels are a whole row of the picture apart, so what was one trip for 32 neighbours is now 32 errands. Take this rule
# home: *let `threadIdx.x` walk along memory.* [The lecture on memory](l3_memory.py) works out the reason.
# /// otherwise
# The tall, thin block takes {{ shapes.w1.us / shapes.w256.us:.2f }} times as long as the flat one. Draw its first warp:
# 32 threads, one above the other, whose pixels are a whole row of the picture apart in memory. *Let `threadIdx.x`
# walk along memory.*
# ///
# ///
#
# /// exercise | 33 threads
# What happens with a block of 33 × 1 threads? Is the answer right? What is wasted?
# /// answer
# The answer is right: the launcher rounds up, and the `if` does the rest. But 33 threads need two warps, and the
# second warp has one cook and 31 empty seats. An SM reserves places for the whole warp. So nearly half of the places
# are reserved for nobody.
# ///

# %% [markdown]
# ## A warp at a fork
#
# A warp is 32 threads that all make the same move. What happens when the recipe says *if*, and only half of the
# threads answer yes?
#
# /// figure | docs/assets/figures/warp_at_a_fork.svg
# alt: "On the left, one warp whose cooks answer differently: first those of branch A work and the others stand still, then those of branch B work and the first stand still, then all go on together. On the right, two warps whose cooks agree: one warp does branch A, the other branch B, and nobody stands still."
# caption: The warp walks both ways, one after the other. On each way, the cooks who did not choose it stand still.
# ///
#
# This is called **divergence**. To see what divergence costs we need a job with up to 32 branches of equal length. Each
# element takes one of W branches; a branch is a loop of 256 multiply-adds with its own constants. The work is the same
# for every W. Only the neighbours of each thread change.
#
# /// source | src/course_kernels/divergence/k01_branches.cu
# title: src/course_kernels/divergence/k01_branches.cu
# ///
#
# A second kernel takes the same branches, but gives each warp only elements that take the same branch.

# %%
apart, together = {}, {}
for ways in WAYS:
    workload = Workload.of("float32", N=2**24, W=ways)
    both = {"apart": k01_branches, "together": k02_sorted}
    found = compare(both, workload, seconds=0.1)
    apart[f"w{ways}"], together[f"w{ways}"] = found["apart"], found["together"]
record(apart=apart, together=together)

# %% [markdown]
# /// predict | All 32 lanes of a warp take different branches. How long does that take, compared with all of them taking the same one?
# - [apart.w32.us / apart.w1.us < 1.4] As long
# - [1.4 <= apart.w32.us / apart.w1.us < 6] A few times as long
# - [6 <= apart.w32.us / apart.w1.us < 16] About ten times as long
# - [apart.w32.us / apart.w1.us >= 16] Twenty times as long, or more
# /// reveal
# It takes {{ apart.w32.us / apart.w1.us:.1f }} times as long.
#
# /// chart | lines
# title: The same arithmetic, divided among W branches
# x: W
# y: us
# x_label: W, branches taken within a warp
# y_label: µs
# x_scale: log2
# y_scale: log
# series:
#   - {name: apart.*, label: neighbours differ}
#   - {name: together.*, label: a warp agrees}
# alt: "Time against the number of branches, both on logarithmic scales. With neighbours that differ it goes from {{ apart.w1.us:.0f }} µs for one branch to {{ apart.w32.us:.0f }} µs for 32. With warps that agree it goes from {{ together.w1.us:.0f }} µs to {{ together.w32.us:.0f }} µs."
# caption: N = 2<sup>24</sup> elements, 256 multiply-adds each.
# ///
#
# /// claim | apart.w32.us > 20 * apart.w1.us
# The kernel takes {{ apart.w32.us / apart.w1.us:.0f }} times as long, without a single extra addition. A GPU with 32
# branches in each warp is like a GPU with only one cook in each row.
# /// otherwise
# The kernel takes {{ apart.w32.us / apart.w1.us:.1f }} times as long, without a single extra addition.
# ///
#
# /// claim | 0.75 < (apart.w32.us - apart.w16.us) / (16 * (apart.w2.us - apart.w1.us)) < 1.3
# Why not 32 times? Take two points of the upper line and subtract. The second branch costs
# {{ apart.w2.us - apart.w1.us:.0f }} µs. The last 16 cost {{ (apart.w32.us - apart.w16.us) / 16:.0f }} µs each, about
# the same. You pay the rest, {{ 2 * apart.w1.us - apart.w2.us:.0f }} µs, only once, however many branches there are:
# it is the time for starting, reading and writing.
# /// otherwise
# The second branch costs {{ apart.w2.us - apart.w1.us:.0f }} µs, and the last 16 cost
# {{ (apart.w32.us - apart.w16.us) / 16:.0f }} µs each.
# ///
# ///
#
# /// claim | together.w16.us < 1.25 * together.w1.us
# Where the warps agree, 16 branches take {{ together.w16.us / together.w1.us:.2f }} times as long as one. So *if* is
# not the enemy. Different warps may take different branches at no cost. Only the threads of one warp should agree.
# /// otherwise
# Where the warps agree, 16 branches take {{ together.w16.us / together.w1.us:.2f }} times as long as one. The
# branches themselves are not free on this card, but branches within a warp cost far more.
# ///
#
# /// claim | together.w32.us > 1.15 * together.w16.us
# With 32 branches something else slows the kernel down: it takes {{ together.w32.us / together.w1.us:.2f }} times as
# long, although the threads of each warp still agree, as the last number of the next table shows. We do not know the
# cause.
# /// otherwise
# With 32 branches they take {{ together.w32.us / together.w1.us:.2f }} times as long.
# ///
#
# You can also see divergence in the card's counters. One of them shows how many of the 32 lanes took part in an
# instruction, on average:
#
# | branches in a warp | 1 | 2 | 4 | 8 | 16 | 32 | 32, warps agree |
# |---|---|---|---|---|---|---|---|
# | lanes at work | {{ active.w1:.1f }} | {{ active.w2:.1f }} | {{ active.w4:.1f }} | {{ active.w8:.1f }} | {{ active.w16:.1f }} | {{ active.w32:.1f }} | {{ active_sorted:.1f }} |
#
# The counter shows a little more than 32 divided by the number of branches, because the whole warp still works
# together before and after the branches. When you suspect that a kernel diverges, look at this counter first:
#
# ```bash
# ncu --metrics smsp__thread_inst_executed_per_inst_executed.ratio python mine.py
# ```
#
# The grey kernel has an `if` too. Why does that not matter? In almost every warp all threads agree on the answer. Only
# a warp at the right edge splits, and there the other branch has nothing to do.
#
# /// exercise | Which of these splits a warp?
# The blocks are 256 × 1 threads. (a) `if (threadIdx.x % 2)`, (b) `if (threadIdx.x < 128)`, (c) `if (blockIdx.x % 2)`,
# (d) `if (x[i] > 0)` on random numbers, (e) `for (int k = 0; k < i % 32; k++)`.
# /// answer
# (a) splits every warp: lanes alternate. (b) splits none: 128 is a multiple of 32, so warps 0 to 3 say yes and 4 to 7
# say no. (c) splits none: a warp is in one block. (d) splits nearly every warp. (e) has no `if`, but still splits every
# warp: lane 0 is done at once, lane 31 repeats the loop 31 times, and the warp takes as long as its slowest lane.
# ///

# %% [markdown]
# ## What a launch costs
#
# A launch is an order. The host, your Python program, writes the order and puts it into a queue. The GPU takes the
# order out when its turn comes. Neither side waits for the other, unless you say so. What does an order cost? To find
# out, use the cheapest kernel of all, which does nothing.

# %%
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.measure import stopwatch
from course_kernels.vector_add.k02_triton import vector_add_kernel

EMPTY = mine.with_name("empty.cu")
EMPTY.write_text('extern "C" __global__ void empty() {}')
empty = load_kernel(EMPTY, "empty")
MANY = 500
small = torch.ones(32, device="cuda")
total = torch.empty_like(small)


def ours():
    """Empty kernels, by our own launcher."""
    for _ in range(MANY):
        launch(empty, 1, 1)


def torchs():
    """Tiny sums, by PyTorch."""
    for _ in range(MANY):
        torch.add(small, small, out=total)


def tritons():
    """Tiny sums, by Triton."""
    for _ in range(MANY):
        vector_add_kernel[(1,)](small, small, total, 32, BLOCK=32)


for sums in (torchs, tritons):
    total.zero_()
    sums()
    if not torch.equal(total, small + small):
        raise ValueError(f"{sums.__name__}: wrong sums")

record(
    order=stopwatch(
        {"ours": ours, "torch": torchs, "triton": tritons}, per=MANY, wait=False
    ),
    queue=stopwatch({"ours": ours}, per=MANY),
    alone=stopwatch({"ours": lambda: launch(empty, 1, 1)}, n=200),
)

# %% [markdown]
# /// table
# columns: [what, "µs each"]
# rows:
#   - ["an empty kernel, and wait for it", "{{ alone.ours.us:.1f }}"]
#   - ["500 in a row, and wait once at the end", "{{ queue.ours.us:.1f }}"]
#   - ["the host alone, writing 500 orders: our launcher", "{{ order.ours.us:.1f }}"]
#   - ["the same with PyTorch, `torch.add`", "{{ order.torch.us:.1f }}"]
#   - ["the same with a Triton kernel", "{{ order.triton.us:.1f }}"]
# ///
#
# These times were measured with the host's clock, not with the GPU's, because the host's time is what we want to know.
#
# If you wait after every order, an order costs {{ alone.ours.us:.1f }} µs; in a queue it costs
# {{ queue.ours.us:.1f }} µs. So the rule is: *do not ask for a result until you need it.* `.item()`, `print(tensor)`
# and `torch.cuda.synchronize()` all ask for a result.
#
# /// claim | order.ours.us > 0.5 * queue.ours.us
# And even in the queue, most of the time is the host's: compare the row that waits at the end with the row that never
# waits. (The two are timed separately, so either may come out a little higher.) Between two empty kernels the GPU is
# idle and waits for Python.
# /// otherwise
# The host takes {{ order.ours.us:.1f }} µs to write an order; in the queue an order takes {{ queue.ours.us:.1f }} µs.
# ///
#
# /// claim | order.ours.us > order.torch.us
# Here our own launcher loses the race: it takes {{ order.ours.us / order.torch.us:.1f }} times as long to write an
# order as PyTorch. Most likely the reason is that our launcher is written in Python, while PyTorch's is written in C++.
# On every call our launcher asks for the device and the stream and makes a small object for the shape of the launch.
# This page does not measure what each of these steps costs. We keep our launcher because you can read its code.
# /// otherwise
# Our own launcher takes {{ order.ours.us / order.torch.us:.2f }} times as long to write an order as PyTorch.
# ///
#
# Is that a lot? Compare the cost of an order with the work that the order starts. [The first page](../start_here.py)
# measured a vector add of 2<sup>12</sup> numbers, between two marks on the GPU: {{ start.sweep.cuda.n12.us:.1f }} µs.
# Writing the order takes the host {{ order.ours.us / start.sweep.cuda.n12.us:.1f }} times as long as that. The large
# picture above takes {{ grey.cuda.us:.0f }} µs, and the time to write an order is {{ order.ours.us / grey.cuda.us:.0%}}
# of that. So orders cost too much only when kernels are small.
#
# /// exercise | A word, a thousand orders
# A language model with 80 layers runs 12 small kernels in each layer to produce one word for one reader. With PyTorch's
# time from the table, how long does it take to write the orders for one word? How many words per second are possible at
# most, even if the GPU itself took no time?
# /// answer
# 80 × 12 = 960 orders: 960 × {{ order.torch.us:.2f }} µs = {{ 960 * order.torch.us / 1000:.1f }} ms a word. So at
# most about {{ 1000000 / (960 * order.torch.us):.0f }} words per second are possible, whatever the GPU can do.
# Engines that serve models cut this cost in two ways: they fuse kernels, so that there are fewer kernels, and they
# use graphs, the subject of the next section, so that there are fewer orders.
# ///

# %% [markdown]
# ## Many orders, written once: graphs {.beyond}
#
# If you send the same orders again and again, write them down once and send the whole list. Such a list is a **CUDA
# graph**. First you *capture* the graph: during the capture, launches are recorded, not run. Then you *replay* the
# graph with one order.
#
# Here are 64 small vector adds in a row. Each adds 1 to the same 2<sup>12</sup> numbers, so at the end you can check
# that every add ran.

# %%
LINKS, ROUNDS, WARM_UP = 64, 50, 2
ones = torch.ones(2**12, device="cuda")
count = torch.zeros_like(ones)
add = load_kernel(k01_cuda.SOURCE, "vector_add")
N = np.int64(2**12)


def one_by_one():
    """64 orders."""
    for _ in range(LINKS):
        launch(add, 16, 256, count, ones, count, N)  # count = count + 1


one_by_one()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    one_by_one()  # noted down, not run

works = {"one_by_one": one_by_one, "replayed": graph.replay}
how = {"per": LINKS, "n": ROUNDS, "warm_up": WARM_UP}
count.zero_()
record(
    chain=stopwatch(works, **how),
    chain_order=stopwatch(works, **how, wait=False),
)

runs = 2 * len(works) * (ROUNDS + WARM_UP)  # two stopwatches
if not (count == LINKS * runs).all():
    raise ValueError(f"expected {LINKS * runs} everywhere, got {count.unique()}")
print(f"{runs} runs of {LINKS} adds: every number says {int(count[0])}")

# %% [markdown]
# /// table
# columns: ["64 small kernels, µs for each", "until the GPU is done", "until the host is free"]
# rows:
#   - ["ordered one by one", "{{ chain.one_by_one.us:.2f }}", "{{ chain_order.one_by_one.us:.2f }}"]
#   - ["replayed as a graph", "{{ chain.replayed.us:.2f }}", "{{ chain_order.replayed.us:.2f }}"]
# ///
#
# /// claim | chain.replayed.us < 0.2 * chain.one_by_one.us
# The graph brings the time per kernel down from {{ chain.one_by_one.us:.0f }} µs to {{ chain.replayed.us:.1f }} µs. The
# kernels are the same, and so is the GPU. The only difference is that Python and the driver no longer write 64 orders.
# /// otherwise
# In the graph, a kernel takes {{ chain.replayed.us:.1f }} µs; launched one at a time, it takes
# {{ chain.one_by_one.us:.1f }} µs.
# ///
#
# /// claim | chain_order.one_by_one.us > 0.5 * chain.one_by_one.us
# Now read across the rows (again, the columns are timed separately). When the kernels are ordered one by one, the time
# is the host's: the GPU has little to do but wait for the next order. When the graph is replayed, the host is free
# after {{ 64 * chain_order.replayed.us:.0f }} µs for all 64 kernels, and the GPU works through the graph alone.
# /// otherwise
# When the kernels are replayed, the host is free after {{ 64 * chain_order.replayed.us:.0f }} µs for all 64 kernels,
# and the GPU works through the graph alone.
# ///
#
# The price of a graph is less freedom. A graph holds addresses and sizes, not variables: to compute with different
# numbers, copy the new numbers into the *same* tensors and replay the graph. During a capture, Python may neither ask
# for a result nor branch on a result. That is why engines keep one graph for each batch size.
#
# /// exercise | What may be captured?
# Which of these are allowed inside a capture? (a) `y = torch.relu(x)`, (b) `if x.sum() > 0:`, (c) `x.cpu()`,
# (d) a loop over `range(8)` that launches kernels, (e) a loop over `range(n)` where `n` is a Python number that
# changes between replays.
# /// answer
# (a) yes. (b) no: Python needs the sum *now*, and in a capture nothing runs. (c) no, for the same reason. (d) yes:
# the loop runs once, and eight launches are written down. (e) it can be captured, but the replay uses the value that
# `n` had when you captured the loop. No error message tells you so. This is the mistake to fear.
# ///

# %% [markdown]
# ## Two things at once: streams {.beyond}
#
# Everything so far went into one queue. A queue is called a **stream**: the work in one stream runs in order, and work
# in two streams may overlap. What is worth overlapping? The copies to and from the card are the first candidates,
# because the host's memory is far away.
#
# ### The way in
#
# The host's memory and the card's memory are connected by a single road, the *bus*. How quickly a list crosses the bus
# depends on what kind of host memory it is in. The operating system may move ordinary memory around, but the GPU needs
# memory that stays where it is. So the driver, we assume, first copies each piece to a safe place and then sends it on.
# **Pinned** memory is such a safe place from the start.

# %%
FLOATS = 2**26
numbers = torch.arange(FLOATS, dtype=torch.float32)
ordinary = numbers.clone()
pinned = numbers.pin_memory()
there = torch.empty(FLOATS, device="cuda")

transfers = {
    "ordinary_in": lambda: there.copy_(ordinary, non_blocking=True),
    "pinned_in": lambda: there.copy_(pinned, non_blocking=True),
    "ordinary_out": lambda: ordinary.copy_(there),
    "pinned_out": lambda: pinned.copy_(there, non_blocking=True),
}
record(
    transfer=stopwatch(transfers, n=10),
    transfer_order=stopwatch(
        {name: transfers[name] for name in ("ordinary_in", "pinned_in")},
        n=10,
        wait=False,
    ),
    sent=quantity(4 * FLOATS, "B", how="given"),
)

ends = [there, there, ordinary, pinned]
for (name, copy), end in zip(transfers.items(), ends, strict=True):
    end.zero_()
    copy()
    torch.cuda.synchronize()
    if not torch.equal(end.cpu(), numbers):
        raise ValueError(f"{name}: what arrived is not what was sent")

# %% [markdown]
# /// define | bus.ordinary_in = sent / transfer.ordinary_in.us / 1000
# unit: GB/s
# what: copy from ordinary host memory to the card
# ///
# /// define | bus.pinned_in = sent / transfer.pinned_in.us / 1000
# unit: GB/s
# what: copy from pinned host memory to the card
# ///
# /// define | bus.ordinary_out = sent / transfer.ordinary_out.us / 1000
# unit: GB/s
# what: copy from the card to ordinary host memory
# ///
# /// define | bus.pinned_out = sent / transfer.pinned_out.us / 1000
# unit: GB/s
# what: copy from the card to pinned host memory
# ///
#
# /// table
# columns: ["256 MiB over the bus", "to the card, GB/s", "from the card, GB/s"]
# rows:
#   - ["ordinary memory", "{{ bus.ordinary_in:.1f }}", "{{ bus.ordinary_out:.1f }}"]
#   - ["pinned memory", "{{ bus.pinned_in:.1f }}", "{{ bus.pinned_out:.1f }}"]
# ///
#
# /// claim | transfer.ordinary_in.us > 3.3 * transfer.pinned_in.us
# From pinned memory the bus carries {{ transfer.ordinary_in.us / transfer.pinned_in.us:.1f }} times as much in the
# same time. Compare this with the other end of the scale: the card's own memory carries
# {{ start.by_hand.bandwidth:.0f }} GB/s by its data sheet. Whatever you bring over the bus, use it more than once.
# /// otherwise
# From pinned memory the bus carries {{ transfer.ordinary_in.us / transfer.pinned_in.us:.2f }} times as much in the
# same time. The card's own memory carries {{ start.by_hand.bandwidth:.0f }} GB/s by its data sheet: whatever you
# bring over the bus, use it more than once.
# ///
#
# Pinned memory has a second advantage, and for us it matters more. The host only writes the order; it is free after
# {{ transfer_order.pinned_in.us:.0f }} µs of the {{ transfer.pinned_in.us:.0f }} µs that the copy takes.
#
# /// claim | transfer_order.ordinary_in.us > 0.5 * transfer.ordinary_in.us
# With ordinary memory, even with `non_blocking=True`, the host is blocked for {{ transfer_order.ordinary_in.ms:.0f }}
# ms of the {{ transfer.ordinary_in.ms:.0f }} ms that the copy takes. (The two times are measured separately, so
# either may come out a little higher.)
# /// otherwise
# With ordinary memory the host is free after {{ transfer_order.ordinary_in.us:.0f }} µs of the
# {{ transfer.ordinary_in.us:.0f }} µs that the copy takes.
# ///

# %% [markdown]
# ### In, grey, out
#
# The host holds a film of 24 frames in full HD. Every frame must be copied in, turned grey, and copied out again. With
# one stream each step waits for the step before it. But the bus has two directions: one frame can go out while another
# comes in.
#
# /// figure | docs/assets/figures/two_streams.svg
# alt: "Two time lines for four frames. Above, with one stream, each frame comes in, is turned grey and goes out before the next one comes in. Below, with two streams, the next frame comes in while the last one goes out, so the road in is never idle, and the whole ends earlier."
# caption: The same work with one stream and with two. The kernel is the thin bar.
# ///
#
# How much can two streams gain at best? For every 12 bytes of a frame that come in, 4 bytes go out. If the two copies
# run one after the other, they take 16 units of time. If the copy out is completely hidden behind the copy in, the two
# together take 12 units.

# %%
FRAMES = 24
light = torch.linspace(0.1, 1.0, FRAMES).reshape(FRAMES, 1, 1, 1)  # no two alike
film = (torch.rand(1080, 1920, 3) * light).pin_memory()
grey_film = torch.empty(FRAMES, 1080, 1920).pin_memory()
streams = [torch.cuda.Stream(), torch.cuda.Stream()]


def one_stream():
    """Every step after the one before."""
    for n in range(FRAMES):
        picture = film[n].to("cuda", non_blocking=True)
        grey_film[n].copy_(k01_pixels.grey(picture), non_blocking=True)


def two_streams():
    """Even frames in one stream, odd frames in the other."""
    for n in range(FRAMES):
        with torch.cuda.stream(streams[n % 2]):
            picture = film[n].to("cuda", non_blocking=True)
            grey_film[n].copy_(k01_pixels.grey(picture), non_blocking=True)


right = torch.stack([k01_pixels.grey(frame.cuda()) for frame in film]).cpu()
record(
    film=stopwatch({"one": one_stream, "two": two_streams}, n=10),
    film_limit=quantity((12 + 4) / 12),
)

for work in (one_stream, two_streams):
    grey_film.zero_()
    work()
    torch.cuda.synchronize()
    if not torch.equal(grey_film, right):
        raise ValueError(f"{work.__name__}: wrong frames")
    print(f"{work.__name__}: all {FRAMES} frames are right")

# %% [markdown] One stream takes {{ film.one.ms:.1f }} ms, and two streams take {{ film.two.ms:.1f }} ms. The ratio of
# the two times is {{ film.one.us / film.two.us:.2f }}, and the calculation above allowed {{ film_limit:.2f }}. Each
# stream holds one frame at a time, and the two streams take turns: one frame comes in while the other goes out. This
# trick is called *double buffering*, and you will meet it again inside kernels.
#
# Nothing in `two_streams` looks parallel. There is no thread and no lock. You only specified what must stay in order:
# the steps of one frame. The GPU may arrange everything else as it likes.
#
# /// exercise | A third stream?
# Would three streams be faster than two? What if the kernel took as long as the copy in?
# /// answer
# Three streams would hardly be faster here: the way in is already busy nearly all the time, and there is only one way
# in. Streams can at most hide everything else behind the longest of the three steps: the copy in, the kernel and the
# copy out.
#
# If the kernel took as long as the way in, then at any time one frame would be coming in, one would be worked on and
# one would be going out. Three frames would be in flight, so you would need three streams and three tensors.
# ///

# %% [markdown]
# ## The road to machine code {.beyond}
#
# What does the card run? Not your C++.
#
# /// figure | docs/assets/figures/compile_road.svg
# alt: "Three boxes in a row: k01_cuda.cu, in CUDA C++, is compiled to PTX, a portable assembly with unlimited registers, and assembled to SASS, machine code with real registers for one kind of card. Below, two ways to walk it: NVRTC, a library inside your Python, and nvcc, a program that also compiles the C++ around the kernel."
# caption: The road has two steps, and there are two ways to take them.
# ///
#
# Here is the whole road for the vector add of the first page. The first stop is PTX.

# %%
from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.disassemble import sass
from cuda.core import Program, ProgramOptions

SOURCE_TEXT = k01_cuda.SOURCE.read_text()
ARCH = arch_of(torch.cuda.get_device_capability())


def compiled(target):
    """The kernel as "ptx" (text) or "cubin" (machine code), compiled afresh."""
    options = ProgramOptions(std="c++17", arch=ARCH)
    return Program(SOURCE_TEXT, "c++", options).compile(target).code


ptx = compiled("ptx").decode()
body = ptx[ptx.index("{", ptx.index(".entry")) : ptx.rindex("}")]
ptx_lines = [" ".join(one.split()) for one in body.splitlines()]
ptx_lines = [one for one in ptx_lines if one.endswith((";", ":")) and one[0] != "."]
print("\n".join(ptx_lines))

# %% [markdown] You can read this. `ld.param` fetches the four arguments. `%ctaid.x`, `%ntid.x` and `%tid.x` are
# `blockIdx.x`, `blockDim.x` and `threadIdx.x`, and one multiplication and one addition turn these three into `i`.
# `setp` compares `i` with N, and the `@` before `bra` means *only if*: the spare cooks jump to the end. Then the three
# addresses are computed: `i` times four bytes is added to the start of each list. Two `ld.global`, one `add` and one
# `st.global` do the rest.
#
# PTX uses as many registers as it likes, and writes each of them only once. No card has that many. The second step, the
# assembler, assigns real registers and puts the instructions in an order that keeps the card busy. The result is SASS:

# %%
import re

listing = sass(compiled("cubin"))
instructions = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?;)", listing, re.MULTILINE)
last = max(n for n, one in enumerate(instructions) if re.search(r"\bEXIT\b", one))
sass_lines = [" ".join(one.split()) for one in instructions[: last + 1]]
print("\n".join(sass_lines))  # after the last EXIT there is only padding

record(
    code={
        "sass": quantity(len(sass_lines), how="counted"),
        "sums": quantity(sum("FADD" in one for one in sass_lines), how="counted"),
    }
)

# %% [markdown]
# This table tells the same story in other words:
#
# | you wrote | in PTX | in SASS |
# |---|---|---|
# | `blockIdx.x`, `threadIdx.x` | `%ctaid.x`, `%tid.x` | `SR_CTAID.X`, `SR_TID.X` |
# | the arguments | `ld.param` | `c[0x0][…]`, constant memory |
# | `if (i >= N) return;` | `setp`, then `@%p… bra` | `ISETP`, then `@P… EXIT` |
# | `x[i]`, `y[i]` | `ld.global.f32` | `LDG.E` |
# | `+` | `add.f32` | `FADD` |
# | `z[i] =` | `st.global.f32` | `STG.E` |
#
# The exact names change from card to card and from compiler to compiler, but the pattern stays the same.
#
# /// claim | code.sums == 1
# There are {{ code.sass }} instructions, and only one of them adds. The others find out which thread this is and where
# its numbers are, and carry those numbers. That is what a memory-bound kernel looks like from the inside.
# /// otherwise
# There are {{ code.sass }} instructions, and {{ code.sums }} of them add. The rest find out which thread this is and
# where its numbers are, and carry the numbers.
# ///
#
# Two habits are worth having. To check that you load 16 bytes at a time, look for `LDG.E.128`. And look for `LDL` and
# `STL`: most often they mean that registers ran out, and a thread keeps some of its numbers in memory. (A thread's own
# array ends up there too, when its index is known only at run time.)

# %% [markdown]
# ### The other way: nvcc
#
# All our kernels are compiled by **NVRTC**, a library that turns text into machine code. Most code that you will meet
# is compiled by **nvcc**, a program. PyTorch can call nvcc for you: `load_inline` takes a C++ function that launches
# your kernel, compiles both, and gives you a Python module.

# %%
import time

from course_kernels.measure import samples, text
from torch.utils.cpp_extension import load_inline

PYTHON_SIDE = """
#include <cstdint>
#include <pybind11/pybind11.h>
void add(std::uintptr_t x, std::uintptr_t y, std::uintptr_t z, long long N);
"""
CUDA_SIDE = f"""
#include <cstdint>
{SOURCE_TEXT}
void add(std::uintptr_t x, std::uintptr_t y, std::uintptr_t z, long long N) {{
  const auto blocks = static_cast<unsigned>((N + 255) / 256);
  vector_add<<<blocks, 256>>>((float *)x, (float *)y, (float *)z, N);
}}
"""


def by_nvcc():
    """The vector add as a Python module; compiled, linked and loaded by PyTorch."""
    folder = Path(tempfile.mkdtemp())
    return load_inline(
        "added_by_nvcc",
        PYTHON_SIDE,
        CUDA_SIDE,
        functions=["add"],
        no_implicit_headers=True,  # not all of PyTorch, only what is used
        with_pytorch_error_handling=False,  # that would need its headers
        build_directory=str(folder),
    )


x, y = torch.randn(2, 2**12, device="cuda")
z = torch.zeros_like(x)
made = stopwatch({"nvrtc": lambda: compiled("cubin")}, n=5)
try:
    started = time.perf_counter()
    module = by_nvcc()
    made["nvcc"] = samples(
        [1e6 * (time.perf_counter() - started)], unit="µs", how="timed"
    )
    module.add(x.data_ptr(), y.data_ptr(), z.data_ptr(), len(x))
    if not torch.equal(z, x + y):
        raise ValueError("the module: wrong sums")
    says = "it ran and is right"
except (RuntimeError, OSError, ImportError) as error:
    says = f"not here: {str(error).splitlines()[0].partition(': [')[0]}"
record(made=made, nvcc_road=text(says), nvcc_here=quantity(int("nvcc" in made)))
print("the module:", says)

# %% [markdown]
# /// claim | nvcc_here == 1
# NVRTC takes {{ made.nvrtc.ms:.0f }} ms to turn text into machine code. Nvcc, the C++ compiler and the linker together
# took {{ made.nvcc.s:.1f }} s, once, on a cold start, to turn text into a Python module. The kernel is the same, so
# most likely the extra time goes into the C++ around the kernel, and into starting the programs that compile it. We did
# not time the two separately. We kept the C++ as short as we could: addresses are passed as plain numbers. A module
# that takes tensors includes PyTorch's own headers, and we expect such a module to take longer to compile.
# /// otherwise
# NVRTC takes {{ made.nvrtc.ms:.0f }} ms to turn text into machine code. The way through nvcc was not possible on this machine:
# {{ nvcc_road }}.
# ///
#
# While you learn, what matters is a short wait: with NVRTC you change a line and soon see what it does. When you ship a
# library, nvcc compiles the code once for all your users. The course uses NVRTC, and you lose nothing by it: you get
# the same kind of machine code.
#
# /// exercise | Read a load
# Print the SASS of the kernel that takes 16 bytes at a time, and look for its loads:
#
# ```python
# from course_kernels.cuda.compile import compile_cubin
# from course_kernels.cuda.disassemble import sass
# from course_kernels.vector_add import k03_vectorised
#
# print(sass(compile_cubin(k03_vectorised.SOURCE, "sm_90a")))
# ```
#
# `sm_90a` is the compiler's name for Hopper, the H200's generation. This works without a GPU. What kind of loads do
# you find, and how many additions are there for every two loads and one store?
# /// answer
# The names of loads and stores contain `.128`, which means 128 bits, or four numbers of four bytes. For every pair of
# loads, one of `x` and one of `y`, there are four `FADD` and one store. Look at their order, too: most likely all four
# loads come first, then eight `FADD`, then both stores. So all the loads are in flight before the first addition. Near
# the end you also find loads without `.128`: these fetch the last numbers of the list, which do not fill a vector of
# four.
# ///

# %% [markdown]
# ## Your kernel as a torch operator {.beyond}
#
# Your kernel takes tensors and returns a tensor. Put it into a model and call `loss.backward()`. PyTorch complains, or
# worse: it says nothing, and the layers before your kernel never learn. The reason is that PyTorch knows no gradient for your kernel. To turn a kernel into an operator, you must answer four questions for PyTorch. How is the result computed on a GPU? How is it computed on the CPU? What shape does the result have? And what is its gradient?
#
# /// source | src/course_kernels/grey/operator.py
# title: src/course_kernels/grey/operator.py
# ///
#
# We work out the gradient by hand. `grey = 0.299 red + …`, so if the loss rises by `g` for a little more grey, it rises
# by `0.299 g` for a little more red. That is the whole backward pass.
#
# Does it work? Ask for the gradient of a sum, and let PyTorch's own check examine the operator.

# %%
from course_kernels.grey import operator

picture = torch.rand(90, 160, 3, device="cuda", requires_grad=True)
operator.grey(picture).sum().backward()
print("gradient of one pixel:", [round(g, 3) for g in picture.grad[0, 0].tolist()])

for test, verdict in torch.library.opcheck(operator.grey, (picture,)).items():
    print(f"{test}: {verdict}")

# %% [markdown] Now do something that a plain kernel does not allow: *learn* through the kernel. Take a grey picture,
# and let gradient descent look for colours that turn into this grey.

# %%
target = grey_picture  # the bowl, from above
found = torch.full((200, 300, 3), 0.5, device="cuda", requires_grad=True)
descent = torch.optim.SGD([found], lr=0.5)
for _ in range(60):
    descent.zero_grad()
    (operator.grey(found) - target).square().sum().backward()
    descent.step()

worst = (operator.grey(found) - target).abs().max().item()
print("the grey is met:", worst < 1e-3)
print("the colours came back:", torch.allclose(found, colour, atol=0.1))

# %% tags=["fold"]
tiny = torch.rand(8, 8, 3, device="cuda")
MANY = 200
if not torch.equal(operator.grey(tiny), k01_pixels.grey(tiny)):
    raise ValueError("kernel and operator disagree")


def plain_calls():
    """The kernel by itself."""
    for _ in range(MANY):
        k01_pixels.grey(tiny)


def operator_calls():
    """The kernel as an operator."""
    for _ in range(MANY):
        operator.grey(tiny)


calls = {"plain": plain_calls, "operator": operator_calls}
record(call=stopwatch(calls, per=MANY, wait=False))

# %% [markdown] The grey matches, but the original colours did not come back. Of course they did not: infinitely many
# colours give the same grey, and gradient descent found those nearest to the grey that it began with. The apples
# are still twins.
#
# Is the operator free? A plain call takes the host {{ call.plain.us:.0f }} µs: the host checks the picture, allocates
# memory for the result and writes the order. A call through the operator takes {{ call.operator.us:.0f }} µs. On
# every call, PyTorch has to find its way from the operator's name to your function. For a large picture neither time
# matters. If you have many tiny pictures, remember graphs.
#
# /// exercise | The gradient of a brightening
# Make an operator of the `brighten` kernel above: `y = min(x + by, 1)`. What is its gradient with respect to `x`? What
# must the forward pass save for the backward pass that the grey kernel did not need? (`register_autograd` takes a
# second function, `setup_context`, which saves it.)
# /// answer
# Where `x + by` is below 1, the incoming gradient is passed on unchanged. Where the sum was cut off at 1, a little more
# `x` changes nothing: the gradient is 0. So the backward pass must know *where* the sum was cut off. Pass a
# `setup_context` that saves the output with `ctx.save_for_backward(output)`, and multiply the incoming gradient by
# `output < 1`.
# ///

# %% [markdown]
# ## Where this leads
#
# Now you know the model: which threads run, with which other threads, in what order, and what a launch costs. Two
# questions came up again and again and were put off: *which bytes are neighbours*, and how many bytes are in the hall
# at once. The first decides which block shape suits the memory, and the second is most likely why it paid off to load
# four numbers at a time.
#
# - [The lecture on memory](l3_memory.py) answers both: it shows every level of memory, with its price.
# - What are the rooms and stoves made of? See [What a GPU is](l1_what_a_gpu_is.py).
# - Does your own kernel do something strange? See [When it goes wrong](../when_it_goes_wrong.py).
# - Where does every number on this page come from? [The ledger](../numbers.md) lists each one with the command that
#   reproduces it.
