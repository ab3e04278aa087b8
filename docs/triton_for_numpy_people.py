# ---
# id: triton
# title: Triton for NumPy people
# section: Beside the road
# order: 3
# description: As much Triton as a lab needs, on one page, for somebody who knows NumPy; every rule is broken once, on purpose.
# needs: gpu
# ---

# %% [markdown]
# # Triton for NumPy people
#
# In NumPy you write one line, and it handles a whole array. In Triton you write one line, and it handles a whole *tile*
# of an array. You choose which tile, and how many tiles are handled at once. Triton is little more than that, and it
# fits on one page. At the end you can
#
# - launch a kernel, and say which of its programs does which part;
# - read and write a tile in one and in two dimensions, and leave alone what is not yours in memory;
# - add up along an axis and across programs without losing anything;
# - say what Triton's interpreter shows you without a card, and what it cannot;
# - understand the message when Triton refuses your code.
#
# You need Python and NumPy. Nine [labs](#where-the-labs-are) ask for little more than you find here.
#
# Each section has something to type and something to break. First say what will come out. Then run the cell.

# %% [markdown]
# ## What you need to type along
#
# Put the cells into a file of your own, such as `mine.py`. You need a file because Triton reads the text of your
# function, and at the Python prompt that text may not be available. A notebook works, too. *Set up* tells you which
# Python has Triton, with [your own card](set_up.md#setup-one-your-own-card) and with [no
# card](set_up.md#setup-four-no-card). Leave out the line that imports from `course_kernels.measure`.
#
# ```bash
# python mine.py                      # with a card
# TRITON_INTERPRET=1 python mine.py   # without one
# ```
#
# The second line runs your kernels in [Triton's interpreter](#the-interpreter). For the interpreter, write `"cpu"`
# wherever this page says `"cuda"`. The variable must be set before Triton is imported. Leave out `record(…)`, too: that
# call only passes this page's numbers to its text.

# %%
import textwrap

import torch
import triton
import triton.language as tl
from course_kernels.measure import quantity, record, text


def said(launch):
    """What Triton says about a wrong launch."""
    try:
        launch()
    except Exception as error:
        for line in f"{type(error).__name__}: {error}".strip().splitlines():
            print(textwrap.fill(line, 88))
    else:
        print("nothing")


# %% [markdown]
# ## One call, many programs
#
# A kernel is written for one **program**. In the kitchen of [the first page](start_here.py), a program is one table of
# cooks. The launch determines how many tables there are, and each table finds out its own number.
#
# /// predict | The list has six places, all −1. Four programs each write ten times their number. What is in the list then?
# Do not forget the places to which no program is sent. Say all six numbers.
#
# - [ ] 0, 10, 20, 30, 40, 50
# - [x] 0, 10, 20, 30, −1, −1
# - [ ] 10, 20, 30, 40, −1, −1
# /// reveal
# 0, 10, 20, 30, and then −1 and −1. The programs are 0, 1, 2 and 3; there is no program 4 or 5.
# ///


# %%
@triton.jit
def sign(out_ptr):
    """Every program writes at its own place."""
    me = tl.program_id(0)
    tl.store(out_ptr + me, 10 * me)


out = torch.full((6,), -1, dtype=torch.int32, device="cuda")
sign[(4,)](out)
print(out.tolist())

# %% [markdown]
# Read the launch from left to right: `kernel[how many](with what)`.
#
# - In the square brackets is the **grid**, a tuple of one to three numbers. `(4,)` means four programs. `(4, 3)` means
#   twelve programs, each with two numbers: `tl.program_id(0)` and `tl.program_id(1)`.
# - In the parentheses are the arguments. All programs get the same arguments. A tensor arrives as a *pointer*: the
#   address of its first number.
# - Nothing is returned. A kernel writes into a tensor that you made for it.
# - `tl.num_programs(0)` is the number of programs.
# - The launch decides what each number counts: `tl.program_id(0)` belongs to the first number of the grid. Read the
#   grid before you use it. In `grey`, number 0 is the row and number 1 the piece of the row; in `transpose` and
#   `sgemm_tiles`, number 0 counts along a row of the matrix and number 1 down a column.
#
# The programs run in no fixed order. Program 3 may have finished before program 0 has begun.
#
# **Break it.** First leave the brackets out, then forget that a grid is a tuple:

# %%
print("sign(out) says:")
said(lambda: sign(out))
print("sign[4](out) says:")
said(lambda: sign[4](out))

# %% [markdown]
# ## A pointer and a row of numbers are a row of places
#
# NumPy cuts a piece out of an array: `x[8:16]`. Triton has no slices. You have an address, and you add a row of numbers
# to it. The result is a row of addresses, and `tl.load` reads from all of them at once. Each place in such a row is a
# *seat*, and the whole row is a *tile*.
#
# /// figure | docs/assets/figures/house_numbers.svg
# alt: "A street of eight houses with the addresses 1000, 1004 and so on to 1028. The first five belong to x and hold 1.5 to 5.5. The arrow x points to the first, x plus 3 to the fourth. The arrow x plus 5 points to the sixth house, which is somebody else's."
# caption: Add one number to the address, and you get one house. Add a row of numbers, and you get a row of houses.
# ///
#
# The number of seats, here `BLOCK`, is fixed when the kernel is compiled. `tl.constexpr` marks it as such a constant;
# there is [more about these constants](#constants-and-powers-of-two) further down.


# %%
@triton.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Every program takes its own piece of BLOCK numbers."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK], as np.arange
    x = tl.load(x_ptr + i)  # [BLOCK], as x[i]
    tl.store(out_ptr + i, 2 * x)  # as out[i] = 2 * x


x = torch.arange(16, device="cuda")
out = torch.full_like(x, -1)
double[(2,)](x, out, BLOCK=8)
print(out.tolist())

# %% [markdown]
# The row `i` does not have to count up in ones. Any whole numbers will do, just as in NumPy's `x[i]` with a list of
# indices. So guess:
#
# /// predict | Every seat reads the place with half its number, rounded down. What comes out for seats 0, 1, 2 … 7?
# `x = tl.load(x_ptr + i // 2)`, then `tl.store(out_ptr + i, x)`.
#
# - [ ] 0, 2, 4, 6 and so on
# - [x] 0, 0, 1, 1, 2, 2, 3, 3
# - [ ] An error, because two seats ask for the same place
# /// reveal
# 0, 0, 1, 1, 2, 2, 3, 3. Seat 5 reads place 2, as `x[np.arange(8) // 2]` does. Many seats may *read* the same place.
# ///
#
# **Break it.** Forget the number of the program; this is the first mistake that the labs look for. Both programs then
# work on the same piece:


# %%
@triton.jit
def pairs(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Every number twice, half as many of them."""
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i // 2))


@triton.jit
def same_piece(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """The program's own number is missing."""
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i))


out = torch.full_like(x, -1)
pairs[(1,)](x, out, BLOCK=8)
print("i // 2:    ", out[:8].tolist())

out = torch.full_like(x, -1)
same_piece[(2,)](x, out, BLOCK=8)
print("same piece:", out.tolist())

# %% [markdown]
# Nothing complains. Half of the output was never written. That is why we filled the output with −1 first, and why the
# labs' grader fills it with NaN.
#
# ## Masks: keep off what is not yours
#
# A tile has a fixed size, and a list rarely ends where a tile ends. An address does not tell you where the list ends.
#
# /// predict | A street has 16 places, and each holds a 7. The list is the first 10 places. Two programs of 8 seats write 0 into the list, without a mask. What is left of the last six sevens?
# - [ ] All six: Triton knows the length of the tensor
# - [ ] None, and an error
# - [x] None, and no error
# /// reveal
# None, and no error. The spare seats wrote into somebody else's numbers. In this cell those numbers are ours, so no
# harm is done. (`MASKED` only chooses between the line with a mask and the line without one.)
# ///


# %%
@triton.jit
def clear(x_ptr, N, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    """Write zeros."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(x_ptr + i, 0, mask=i < N)
    else:
        tl.store(x_ptr + i, 0)


for masked in (False, True):
    street = torch.full((16,), 7, device="cuda")
    mine = street[:10]
    clear[(2,)](mine, 10, BLOCK=8, MASKED=masked)
    print("masked:  " if masked else "unmasked:", street.tolist())

# %% [markdown]
# `mask` is a row of True and False values, as long as the row of places. In NumPy `x[mask]` makes a *shorter* array. In
# Triton the row keeps its length, and a seat whose mask is False sits still: it neither reads nor writes.
#
# But a row that keeps its length must have *something* in those seats. You choose it with `other`. Without `other`,
# Triton promises nothing about those seats [^triton-masked].
#
# /// predict | The list is −3, −2, −5, in a tile of four. The seat without a number gets a zero. What is the largest?
# `tl.max(tl.load(x_ptr + i, mask=i < N, other=0.0), axis=0)`
#
# - [ ] −2
# - [x] 0
# - [ ] −5
# /// reveal
# **0.** The seat without a number holds a zero, and zero is larger than the others. A number that does not exist must
# not win, so here you need `other=-float("inf")`. For a sum you need 0, for a product 1, and for a minimum
# `float("inf")`.
# ///


# %%
@triton.jit
def largest(x_ptr, out_ptr, N, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    """The largest of N numbers, by one program."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=OTHER)
    tl.store(out_ptr, tl.max(x, axis=0))


x = torch.tensor([-3.0, -2.0, -5.0], device="cuda")
for other in (0.0, -float("inf")):
    out = torch.zeros(1, device="cuda")
    largest[(1,)](x, out, 3, BLOCK=4, OTHER=other)
    print(f"other={other}:", out.item())

# %% [markdown]
# ## Tiles in two dimensions
#
# A matrix is stored in memory row after row, so the number in row `m` and column `n` is at place `m * N + n`
# ([why](c_for_python_people.py#a-matrix-is-a-list)). For a whole tile you need a whole rectangle of such places. NumPy
# would make this rectangle by broadcasting a column against a row, and so does Triton:
#
# `m[:, None] * N + n[None, :]`
#
# By hand, with N = 5, `m` = 0, 1 and `n` = 0, 1, 2: the column is 0, 5, the row is 0, 1, 2, and together they give the
# places 0, 1, 2 and 5, 6, 7.
#
# A tile in two dimensions can reach past two edges. So the mask has two parts, joined by `&`, each in parentheses.
#
# /// predict | A kernel sums each row of a 3 × 5 matrix, in a tile of 4 × 8. Somebody masks the rows and forgets the columns. Which sum comes out for row 0, which is 0, 1, 2, 3, 4?
# - [x] 28, the sum of 0 to 7
# - [ ] An error
# - [ ] 10, as it should be
# /// reveal
# **28.** Row 1 begins right after the end of row 0. Three numbers of row 1 are added in, and no access leaves the
# matrix. The sum of row 2 looks right, but only because we put zeros after that row.
# ///


# %%
@triton.jit
def row_sums(
    x_ptr,
    sums_ptr,
    M,
    N,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    BOTH: tl.constexpr,
):
    """The sum of each row of a matrix [M, N] that fits into one tile."""
    m = tl.arange(0, TILE_M)  # [TILE_M]
    n = tl.arange(0, TILE_N)  # [TILE_N]
    places = m[:, None] * N + n[None, :]  # [TILE_M, TILE_N]
    inside = m[:, None] < M
    if BOTH:
        inside = inside & (n[None, :] < N)
    x = tl.load(x_ptr + places, mask=inside, other=0)
    tl.store(sums_ptr + m, tl.sum(x, axis=1), mask=m < M)


room = torch.zeros(
    32, dtype=torch.int64, device="cuda"
)  # the matrix, and zeros after it
matrix = room[:15].view(3, 5)
matrix.copy_(torch.arange(15).view(3, 5))
for both in (True, False):
    sums = torch.zeros(3, dtype=torch.int64, device="cuda")
    row_sums[(1,)](matrix, sums, 3, 5, TILE_M=4, TILE_N=8, BOTH=both)
    print("both edges:" if both else "rows only: ", sums.tolist())
print("torch:     ", matrix.sum(dim=1).tolist())

# %% [markdown]
# `BOTH` is a constant of the kernel. So the `if` is decided while the kernel is compiled, and only one of its two sides
# is kept.
#
# Swap the two axes in `places`, `m[None, :] * N + n[:, None]`, and the tile arrives *transposed*: the numbers are the
# same, but rows and columns have changed places on the way. `tl.trans(tile)` transposes a tile that you already have.
# In [the lecture on memory](lectures/l3_memory.py) you will see that the choice between these two ways makes all the
# difference.
#
# ## Sums, and the axis that goes away
#
# `tl.sum(x, axis=1)` works as in NumPy: axis 1 disappears, and one number for each row is left. `tl.max` and `tl.min`
# work the same way. Without an axis, `tl.sum(x)` returns one number for the whole tile.
#
# Triton also has a trap in common with NumPy. When a row of shape `[T]` meets a tile of shape `[T, T]`, along which
# axis is the row laid?
#
# /// predict | You have the largest number of each row, and want to subtract it from its row. The tile is square. What does a plain minus do?
# `top = tl.max(x, axis=1)`, then `x - top`.
#
# - [ ] Each row loses its own largest
# - [ ] An error
# - [x] Each *column* loses the largest of some row
# /// reveal
# Each column loses the largest of the row with the same number. A missing axis is put in *front*, so `top` is laid
# along the rows. If the tile were not square, you would get an error, and be glad of it. Write
# `top[:, None]`.
# ///


# %%
@triton.jit
def off_the_top(x_ptr, out_ptr, T: tl.constexpr, RIGHT: tl.constexpr):
    """Every row of a tile without its largest number."""
    i = tl.arange(0, T)
    places = i[:, None] * T + i[None, :]
    x = tl.load(x_ptr + places)
    top = tl.max(x, axis=1)  # [T]
    if RIGHT:
        tl.store(out_ptr + places, x - top[:, None])
    else:
        tl.store(out_ptr + places, x - top)


square = torch.arange(16, device="cuda").view(4, 4)
for right in (True, False):
    out = torch.zeros_like(square)
    off_the_top[(1,)](square, out, T=4, RIGHT=right)
    print("top[:, None]:" if right else "top:         ", out.tolist())

# %% [markdown]
# Every softmax begins with this step. In the labs the tiles are not square, so there Triton tells you about the mistake.
#
# ## tl.dot, and the digits it leaves out
#
# `tl.dot(a, b)` multiplies two tiles, like `a @ b`. A tile that is too small is refused; 16 × 16 is always large enough. To
# multiply large matrices, you loop over such dots: `sums += tl.dot(a, b)`, one tile of A and one of B at a time. A loop is
# written as in Python, with `for k in range(…)` or `while`, and its end may be an argument.
#
# The card has special units for such dots, the *tensor cores*. The tensor cores do not accept full fp32 numbers. By
# default Triton gives them **TF32**, which has the range of fp32 but only 10 bits after the point, where fp32 has 23
# [^triton-dot].
#
# /// predict | A is the identity matrix. Every number of B is 1 + 2⁻¹², which a float holds without any rounding. What is A B?
# - [dot.default >= 1.0001 and dot.default < 1.0005] B, since it is multiplied by one
# - [dot.default < 1.0001] 1, everywhere
# - [dot.default >= 1.0005] 1 + 2⁻¹⁰
# /// reveal
# It is {{ dot.default:.9f }} on our card, and {{ dot.ieee:.9f }} with `input_precision="ieee"`. Both numbers come from
# the cell below.
# ///


# %%
@triton.jit
def multiply(a_ptr, b_ptr, c_ptr, T: tl.constexpr, IEEE: tl.constexpr):
    """C = A B for one tile [T, T]."""
    i = tl.arange(0, T)
    places = i[:, None] * T + i[None, :]
    a = tl.load(a_ptr + places)
    b = tl.load(b_ptr + places)
    if IEEE:
        tl.store(c_ptr + places, tl.dot(a, b, input_precision="ieee"))
    else:
        tl.store(c_ptr + places, tl.dot(a, b))


def by_one(ieee):
    """A number of B after it was multiplied by the unit matrix."""
    a = torch.eye(16, device="cuda")
    b = torch.full((16, 16), 1 + 2**-12, device="cuda")
    c = torch.zeros(16, 16, device="cuda")
    multiply[(1,)](a, b, c, T=16, IEEE=ieee)
    return c[0, 0].item()


record(dot={"default": quantity(by_one(False)), "ieee": quantity(by_one(True))})
print("as it is:", by_one(False))
print("ieee:    ", by_one(True))

# %% [markdown]
# /// claim | dot.default == 1 and dot.ieee > dot.default
# The numbers were multiplied by one, and are no longer the same. Ten bits end at 2⁻¹⁰, so the 2⁻¹² is cut off before
# anything is multiplied.
# /// otherwise
# On this card both come out as {{ dot.ieee:.9f }}, or nearly so: a card without tensor cores has no TF32.
# ///
#
# Ten bits are three decimal digits. Whether three digits are enough depends on your problem, but they are not what you
# asked for when you wrote float32. The grader expects fp32 precision from an fp32 lab, so there you write
# `input_precision="ieee"`. Inputs of 16 bits are multiplied as they are, and their products are added up in fp32.
#
# ## Adding up across programs
#
# `tl.sum` adds within one tile. Different programs share nothing but memory. So how can 2000 programs count themselves?
#
# Picture a blackboard. Every cook reads the number on the board, adds one in her head, and writes the new number down.
#
# /// predict | 2000 programs do exactly that, with a load and a store. What does the board say in the end?
# - [board.plain < 1000] Less than half of 2000
# - [1000 <= board.plain < 1999] Less than 2000, and more than half of it
# - [board.plain >= 1999] 2000
# /// reveal
# On our card: **{{ board.plain:.0f }}**. While one cook adds in her head, many others have read the same number. Then
# all of them write the same answer. With `tl.atomic_add` the board says {{ board.atomic:.0f }}: each program reads,
# adds and writes, with nobody in between.
# ///

# %%
PROGRAMS = 2000


@triton.jit
def count(board_ptr, ATOMIC: tl.constexpr):
    """Add one to the number on the board."""
    if ATOMIC:
        tl.atomic_add(board_ptr, 1)
    else:
        tl.store(board_ptr, tl.load(board_ptr) + 1)


def counted(atomic):
    """What the board says when all have added."""
    board = torch.zeros(1, dtype=torch.int32, device="cuda")
    count[(PROGRAMS,)](board, ATOMIC=atomic)
    return board.item()


record(
    board={
        "programs": quantity(PROGRAMS, how="given"),
        "plain": quantity(counted(False), how="counted"),
        "atomic": quantity(counted(True), how="counted"),
    }
)
print("load, add, store:", counted(False))
print("atomic_add:      ", counted(True))

# %% [markdown]
# The two lines above come from a second run. Does the first number of that run differ from the number in the box? That
# is what a *race* looks like: the answer depends on who came first.
#
# Three rules follow.
#
# - A plain store is fine as long as no two programs write to the same place. Most kernels divide the work so that this
#   never happens.
# - `tl.atomic_add` adds to what is already in memory. So begin with `torch.zeros`, not with `torch.empty`.
# - At that place, every program waits for the others. So add up your own tile first, and go to the board once:
#   `tl.atomic_add(board_ptr, tl.sum(x))`.
#
# For floats there is a fourth rule. Sums are rounded, and the order of the additions changes from run to run, so the
# last digits may differ.
#
# ## Whole numbers have a limit
#
# A whole number in Python has no limit. In a kernel a whole number has 32 bits; `tl.program_id`, `tl.arange` and every
# argument that fits into 32 bits have no more. NumPy's `int32` is no better.
#
# /// predict | Row 40 000 of a matrix that is 65 536 wide begins at place 40 000 × 65 536. What does a kernel make of that product?
# - [ ] 2 621 440 000
# - [x] A negative number
# - [ ] An error
# /// reveal
# **−1 673 527 296.** The largest number in 32 bits is 2 147 483 647; after it the count wraps around. Used as a place,
# the negative number is an address far in front of your matrix.
# ///


# %%
@triton.jit
def far(out_ptr, row, N):
    """The place at which a row begins, worked out twice."""
    tl.store(out_ptr, (row * N).to(tl.int64))  # too late: it has wrapped already
    tl.store(out_ptr + 1, row.to(tl.int64) * N)  # made wide first


out = torch.zeros(2, dtype=torch.int64, device="cuda")
far[(1,)](out, 40_000, 65_536)
print("row * N, then wide: ", out[0].item())
print("row made wide first:", out[1].item())
print("Python:             ", 40_000 * 65_536)

# %% [markdown]
# So make the program's number wide before you multiply: `tl.program_id(0).to(tl.int64) * BLOCK`. The labs use this form
# wherever a matrix may be large.
#
# ## Constants, and powers of two
#
# A parameter marked `tl.constexpr` is not an argument but a part of the program, as if you had typed the number itself.
# A different value makes a different kernel, compiled on its first call. The size of a tile must be such a constant,
# and `tl.arange` accepts only powers of two.
#
# **Break it.** There are three ways to get a size wrong:


# %%
@triton.jit
def hundred(out_ptr):
    """No power of two."""
    i = tl.arange(0, 100)
    tl.store(out_ptr + i, i)


@triton.jit
def any_size(out_ptr, N):
    """A size that is an argument."""
    i = tl.arange(0, N)
    tl.store(out_ptr + i, i)


FACTOR = 3


@triton.jit
def from_outside(out_ptr):
    """A variable of the file."""
    i = tl.arange(0, 8)
    tl.store(out_ptr + i, FACTOR * i)


out = torch.zeros(128, dtype=torch.int32, device="cuda")
for wrong in (lambda: hundred[(1,)](out), lambda: any_size[(1,)](out, 8)):
    said(wrong)
    print()
said(lambda: from_outside[(1,)](out))

# %% [markdown]
# What do you do with a row of 100 numbers? Take the next power of two and a mask: `BLOCK=triton.next_power_of_2(100)`
# and `mask=i < 100`. And if you need a global variable, either pass it in as a constant of the kernel, or write it as
# `FACTOR = tl.constexpr(3)`.
#
# ## The interpreter
#
# With `TRITON_INTERPRET=1`, nothing is compiled. NumPy executes every line of a kernel, and the programs run one
# after the other [^triton-debugging]. In the interpreter you can put a `print(x)` into a kernel. The interpreter helps
# you find the wrong index, the forgotten mask, the swapped axis. All of the cells above run in the interpreter, and
# most of them print the same results.
#
# Some cells print something else, and the interpreter's messages are worded differently. Here is a file that shows the
# differences that matter most. It runs in a Python process of its own, because the choice between card and interpreter
# is made when Triton is imported.

# %%
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = "import json, os, signal, torch, triton\nimport triton.language as tl\n\n"
MORE = """
@triton.jit
def add(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


@triton.jit
def until_three(out_ptr):
    for i in range(8):
        if i == 3:
            break
        tl.store(out_ptr + i, 1)


@triton.jit
def one(out_ptr):
    tl.store(out_ptr + 2**42, 1)


@triton.autotune([triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})], key=["N"])
@triton.jit
def tuned(out_ptr, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i, mask=i < N)


def said(launch):
    try:
        launch()
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().splitlines()[-1]
    return "nothing"


found = {}
board = torch.zeros(1, dtype=torch.int32)
count[(2000,)](board, ATOMIC=False)
found["count"] = board.item()

c = torch.zeros(16, 16)
multiply[(1,)](torch.eye(16), torch.full((16, 16), 1 + 2**-12), c, T=16, IEEE=False)
found["dot"] = c[0, 0].item()

x, y = torch.full((4,), 3).bfloat16(), torch.full((4,), 4).bfloat16()
z = torch.zeros_like(x)
refused = said(lambda: add[(1,)](x, y, z, BLOCK=4))
found["bf16"] = f"{z[0].item():.2g}" if refused == "nothing" else refused

small = torch.ones(8, 8)
found["small_dot"] = said(lambda: multiply[(1,)](small, small, small, T=8, IEEE=False))
found["loop"] = said(lambda: until_three[(1,)](torch.zeros(8)))
found["outside"] = said(lambda: from_outside[(1,)](torch.zeros(8, dtype=torch.int32)))
found["tuned"] = said(lambda: tuned[(1,)](torch.zeros(8), 8))

child = os.fork()  # a process that may die
if child == 0:
    one[(1,)](torch.zeros(8))
    os._exit(0)
died = -os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
found["far"] = signal.Signals(died).name if died > 0 else "nothing"
print(json.dumps(found))
"""

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "interpreted.py"
    parts = [
        inspect.getsource(kernel.fn) for kernel in (count, multiply, from_outside)
    ]
    file.write_text(HEAD + "FACTOR = 3\n\n" + "\n\n".join(parts) + MORE)
    environment = os.environ | {
        "TRITON_INTERPRET": "1",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    done = subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True
    )
if done.returncode:
    raise RuntimeError(f"interpreted.py: {done.stderr.strip().splitlines()[-1]}")
interpreted = json.loads(done.stdout.splitlines()[-1])
for name, value in interpreted.items():
    print(f"{name:10}", value)

# %% [markdown]
# Now we run the same cases on the card, all but the last: after an access that far out of bounds, this Python process
# could no longer use the card.


# %%
@triton.jit
def add(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    """z = x + y, in one tile."""
    i = tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


@triton.jit
def until_three(out_ptr):
    """A loop that is left early."""
    for i in range(8):
        if i == 3:
            break
        tl.store(out_ptr + i, 1)


small = torch.ones(8, 8, device="cuda")
x = torch.full((4,), 3, device="cuda").bfloat16()
y = torch.full((4,), 4, device="cuda").bfloat16()
z = torch.zeros_like(x)
add[(1,)](x, y, z, BLOCK=4)
print("bf16: 3 + 4 =", z[0].item())

TRIED = {
    "small_dot": lambda: multiply[(1,)](small, small, small, T=8, IEEE=False),
    "loop": lambda: until_three[(1,)](out),
    "outside": lambda: from_outside[(1,)](out),
}
for wrong in TRIED.values():
    print()
    said(wrong)

# %% tags=["fold"]


def verdict(launch):
    """Whether Triton takes a kernel."""
    try:
        launch()
    except Exception:
        return "refused"
    return "runs"


record(
    on_card={
        "bf16": text(f"{z[0].item():.2g}"),
        **{name: text(verdict(launch)) for name, launch in TRIED.items()},
    },
    interpreter={
        "plain": quantity(interpreted["count"], how="counted"),
        "dot": quantity(interpreted["dot"]),
        "bf16": text(interpreted["bf16"]),
        "tuned": text(interpreted["tuned"].split(".")[0]),
        "far": text(interpreted["far"]),
        **{
            name: text("runs" if interpreted[name] == "nothing" else "refused")
            for name in TRIED
        },
    },
)

# %% [markdown]
# /// table
# columns: [what you try, in the interpreter, on the card]
# rows:
#   - ["{{ board.programs:.0f }} programs count with a plain load and store", "{{ interpreter.plain:.0f }}", "{{ board.plain:.0f }}"]
#   - ["1 + 2<sup>−12</sup>, multiplied by 1 with `tl.dot`", "{{ interpreter.dot:.9f }}", "{{ dot.default:.9f }}"]
#   - ["3 + 4 in bf16", "{{ interpreter.bf16 }}", "{{ on_card.bf16 }}"]
#   - ["`tl.dot` of two tiles of 8 × 8", "{{ interpreter.small_dot }}", "{{ on_card.small_dot }}"]
#   - ["`break` in a loop", "{{ interpreter.loop }}", "{{ on_card.loop }}"]
#   - ["a global variable", "{{ interpreter.outside }}", "{{ on_card.outside }}"]
#   - ["autotuning over two configurations", "{{ interpreter.tuned }}", "tries both, and keeps one"]
#   - ["a store far outside of the tensor", "Python dies: {{ interpreter.far }}", "*illegal memory access*"]
# caption: The same kernels, twice.
# ///
#
# /// claim | interpreter.plain == board.programs and board.plain < board.programs
# Remember the first line. **The interpreter cannot show a race**: its programs run one after the other, so nobody is
# ever in between. A kernel that is right in the interpreter has not been tested for races at all.
# /// otherwise
# Remember the first line. The interpreter cannot show a race: its programs run one after the other. On this card the
# race came out as {{ board.plain:.0f }} of {{ board.programs:.0f }}.
# ///
#
# ### What the interpreter does differently {#what-the-interpreter-does-otherwise}
#
# The interpreter keeps bf16 and fp8 numbers as integers, and even adds bf16 numbers as integers. The interpreter has no
# tensor cores, so it has no TF32. Nor does it have lanes that wait, or fail to wait, for each other. And the
# interpreter lacks everything that needs a card. So a right kernel can be wrong in the interpreter, and a wrong kernel
# can be right. Each line of this table was run in Triton 3.7.1:
#
# | you write | the interpreter gives | a card gives |
# |---|---|---|
# | `tl.sum` of 1, 3, 5 and 7 in bf16 | `3.5e-38`: it adds the bits | `16` |
# | `tl.dot` of two 16 × 16 tiles of ones in bf16 | `4228120576`: it multiplies the bits | `16` |
# | `x * 2.0`, x in bf16 | *no attribute 'get_bf16'* | twice x |
# | `x.to(tl.bfloat16)` of 1.01171875 | `1.0078125`: it cuts | `1.015625`, the nearest, ties to even |
# | `x.to(tl.bfloat16)` of the whole number 3 in int8 | `2.8e-40`: it takes the number for the bits | `3` |
# | `x.to(tl.float8e4nv)` of 1.97 | `1` | `2`, the nearest |
# | `x.to(tl.float8e4nv)` of 500, ∞ and NaN | `256`, `256`, `384` | `448`, `448`, `nan`: past the largest number it stays there [^ptx-conversions] |
# | `x.to(tl.float8e5)` of 480 | `256` | `512` |
# | `x.to(tl.float32)` of a NaN in fp8, `float8e4nv` | `480` | `nan` |
# | `x.to(tl.int32)` of 3·10⁹ and NaN | `-2147483648`, `-2147483648` | `2147483647`, `0` [^ptx-conversions] |
# | `tl.dot` in fp32, of the unit matrix and 1 + 2⁻¹¹ | `1.00048828125`: exact | `1`: TF32 by default [^triton-dot], and the last bits are cut off |
# | `tl.maximum` of NaN and 1 | `nan` | `1`, unless you ask for NaN by `propagate_nan` [^triton-maximum] |
# | `tl.fma(x, x, -(1 + 2**-11))`, x = 1 + 2⁻¹² | `0`: rounded twice | `5.96046447754e-08`, which is 2⁻²⁴: rounded once |
# | `tl.cumsum` of 4,096 ones in fp16 | `2048`: one after the other, and one more leaves 2048 as it is there | `4096`: added in pairs |
# | `k.to(tl.int64)` in `for k in range(tl.program_id(0), 3)` | *'int' object has no attribute 'to'* | `3`, the sum of all k |
# | `x // 0` of whole numbers | `0` | any number [^ptx-conversions] |
# | a load where the mask is False, without `other` | `0` | nothing is promised [^triton-masked] |
# | `tl.store`, then `tl.load` of a place that another lane has stored, without `tl.debug_barrier()` | `what was stored`, always | what was there before, or after: chance |
# | `libdevice.erf(x)` | *cannot convert None* | erf of x |
# | `tl.inline_asm_elementwise` | *inline_asm not supported in interpreter mode* | runs |
# | `tl.dot_scaled` | *'str' object has no attribute 'value'* | runs, where the card has it |
# | `triton.runtime.driver.active.get_active_torch_device()`, the first line of Triton's tutorials | *0 active drivers* | the card |
# | a kernel in Gluon | *0 active drivers* | runs |
#
# More differences:
#
# - **Compile errors.** The interpreter is Python, so it runs much code that the compiler refuses. The interpreter also
#   treats `and` between two masks as Python does, and silently drops one of them; the compiler warns. Write `&`.
# - **Reading past the end.** A little past the end of a tensor, the interpreter reads whatever happens to be there.
#   Often that is a 0, and the sum comes out right. Far past the end, the process dies without a word.
# - **Speed.** The interpreter is slow, and tells you nothing about how fast your kernel is. Keep lists small.
#
# ### What the judge and the grader add {#what-judge-and-grader-add}
#
# Where there is no card, the course's judge, profiler and grader also run your kernel in the interpreter, and say so.
# They replace the interpreter's arithmetic with a card's: bf16, fp8, TF32, NaN, conversions and sums come out as in the
# last column of the table. A lane that reads what another lane has stored is refused, with its line, and so are two
# programs that collide at one place. They do not call a kernel wrong because it needs a card: they say *not judged:
# needs a card*, name the line that needs it, and tell you what to write instead. Your own Python does none of these
# things.
#
# The [grader](start_here.py#type-it-yourself) of the labs runs your file in the interpreter where there is no card. The
# grader puts guard zones around every tensor, so it finds and names a *store* past an end. The grader also fills fresh
# memory with NaN, so anything that you never wrote shows up. It tries a size that no tile size divides. And it compares
# your answer with one worked out in float64, not with what you hoped for.
#
# The grader refuses two things that the bare interpreter accepts. The first is `and`, `or`, `not` or `if` on a row,
# which has no single answer. The second is anything that only a compiler refuses: once your file is right, the grader
# compiles its kernels for a card, which it can do without one.
#
# A `print` in a kernel prints its line several times: once for every program, and again whenever the grader calls your
# function.
#
# Without a card the grader checks every load and store, so it names a load past an end, too. With a card the grader
# does not notice such a load. But it notices most races, because a race gives wrong answers, and wrong answers are what
# the grader looks for.
#
# /// exercise | Right at home, wrong on the card
# Your sum of a long list is *right* at home, in the interpreter. On a card the grader calls it *wrong*, and it is wrong
# by a different amount each time. What do you look for first? And what do you look for when a matrix multiply is wrong
# by the same small amount every time?
# /// answer
# A different amount each time points to a race. Somewhere several programs store to one place, and either an atomic or
# a separate place for each program is missing.
#
# The same small amount every time, in a multiply, points to precision: `tl.dot` used TF32. Check whether the error is
# near one part in a thousand, then write `input_precision="ieee"`.
# ///

# %% [markdown]
# ## What Triton says
#
# Read the compiler's message from the bottom. The last line says *what* is wrong. Above that line is the kernel, up to
# the place where the compiler stopped, with a `^` under that place. The first line, `at 3:26`, counts lines from the
# `def` and columns from 0. Here are four messages that everybody gets on a card. The interpreter has no compiler, so
# its messages are shorter, and often in Python's words:


# %%
@triton.jit
def like_python(x_ptr):
    """A pointer is no array."""
    tl.store(x_ptr, x_ptr[1])


@triton.jit
def two_lengths(x_ptr):
    """Rows that do not fit."""
    i = tl.arange(0, 4) + tl.arange(0, 8)
    tl.store(x_ptr + i, 0.0)


@triton.jit
def first_only(x_ptr):
    """One place, many numbers."""
    tl.store(x_ptr, tl.arange(0, 4).to(tl.float32))


@triton.jit
def changing(x_ptr, out_ptr, N):
    """A variable that begins as one type and goes on as another."""
    total = 0
    for i in range(N):
        total += tl.load(x_ptr + i)
    tl.store(out_ptr, total)


x = torch.ones(8, device="cuda")
for wrong in (
    lambda: like_python[(1,)](x),
    lambda: two_lengths[(1,)](x),
    lambda: first_only[(1,)](x),
    lambda: changing[(1,)](x, x, 8),
):
    said(wrong)
    print()

# %% [markdown]
# | the compiler says | the interpreter says | it means |
# |---|---|---|
# | *Cannot call @triton.jit'd outside of the scope of a kernel* | *no attribute 'grid_idx'*, and after a first launch *no attribute 'scalar'* | the launch brackets are missing |
# | *object of type 'int' has no len()* | the same | a grid is a tuple: `(4,)` |
# | *missing 1 required positional argument: 'BLOCK'* | the same | a constant must be passed to the launch, too |
# | *Pointer argument … cannot be accessed from Triton (cpu tensor?)* | nothing: it works in the host's memory | the tensor is in the host's memory: `.cuda()` |
# | *arange's range must be a power of 2* | the same | take the next power of two, and a mask |
# | *arange's arguments must be of type tl.constexpr* | the same | mark the size `tl.constexpr` |
# | *Cannot access global variable …* | nothing: it takes the variable | pass it in, or make it a `tl.constexpr` |
# | *unsupported tensor index* | *'int' object is not iterable* | `x_ptr[1]` is NumPy; write `tl.load(x_ptr + 1)` |
# | *incompatible dimensions at index 0: 4 and 8* | the same | two shapes that do not broadcast; write the shape after every line |
# | *Value argument cannot be block type if pointer argument is not a block* | the same | many numbers for one place: `+ i` is missing from the store |
# | *Loop-carried variable … has initial type …* | nothing: it goes on with the new type | begin with `0.0`, or with `tl.zeros([BLOCK], dtype=tl.float32)` |
# | *Boolean value of Tensor with more than one value is ambiguous* | nothing: the `if` is taken | `if` needs a single truth value: use a mask, or `tl.where(mask, x, y)` |
# | *K >= 16* | nothing: it multiplies | a tile too small for `tl.dot` |
# | *an illegal memory access was encountered* | nothing: the process dies | an address far outside; [what now](when_it_goes_wrong.py#the-gpu-gives-up) |
#
# The interpreter wraps its errors in another error: `InterpreterError: ValueError("…")`. The words that matter are in
# the parentheses. And where the interpreter reports nothing, the kernel is still wrong: a card will tell you so, on the
# day that you get one.
#
# **Write the shape after every line**, `# [TILE_M, TILE_N]`, as the kernels of this course do. Then most of these
# errors never occur.

# %% [markdown]
# ## NumPy and Triton, side by side
#
# | NumPy | Triton |
# |---|---|
# | `-(-N // BLOCK)`, a division rounded up | `triton.cdiv(N, BLOCK)`, outside the kernel |
# | `for k in range(programs): f(k)` | `kernel[(programs,)](…)`, and `tl.program_id(0)` inside |
# | `np.arange(8)` | `tl.arange(0, 8)`, powers of two only |
# | `x[i]` with a row of indices | `tl.load(x_ptr + i)` |
# | `out[i] = y` | `tl.store(out_ptr + i, y)` |
# | `np.where(i < N, x[i], 0)`, if it were safe | `tl.load(x_ptr + i, mask=i < N, other=0.0)` |
# | `x[m:m + 4, n:n + 8]` | `tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=…)` |
# | `x[:, None]`, broadcasting | the same |
# | `x.sum(axis=1)`, `x.max(axis=1)` | `tl.sum(x, axis=1)`, `tl.max(x, axis=1)` |
# | `np.maximum(x, y)`, `np.where(c, x, y)` | `tl.maximum(x, y)`, `tl.where(c, x, y)` |
# | `np.exp(x)`, `np.sqrt(x)` | `tl.exp(x)`, `tl.sqrt(x)` |
# | `x.T` | `tl.trans(x)` |
# | `a @ b` | `tl.dot(a, b, input_precision="ieee")` for fp32 |
# | `np.zeros((4, 8))` | `tl.zeros([4, 8], dtype=tl.float32)` |
# | `x.astype(np.float16)` | `x.to(tl.float16)` |
# | `total[0] += x` | `tl.atomic_add(total_ptr, x)`, since you are not alone |
# | `x ** 2`, `len(x)`, slices, lists, `break` | not in a kernel: `x * x`, an argument, places, tiles, a `while` |
#
# /// exercise | Turn a list round
# Write a kernel for `out = x[::-1]`, for a list of any length N, with tiles of 256. Which program reads the end of the list?
# Which seats must sit still?
# /// answer
# Only the places change. Number `i` of the output is number `N − 1 − i` of the list.
#
# ```python
# @triton.jit
# def turn(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
#     i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # [BLOCK]
#     mask = i < N
#     tl.store(out_ptr + i, tl.load(x_ptr + N - 1 - i, mask=mask), mask=mask)
#
#
# turn[(triton.cdiv(N, 256),)](x, out, N, BLOCK=256)
# ```
#
# Program 0 reads the end. In the last program, the seats whose `i` is N or more must sit still, for the load as well:
# there `N − 1 − i` is negative, a place in *front* of the list. `triton.cdiv` divides and rounds up.
# ///
#
# /// exercise | Softmax of a row
# One program takes one row of N numbers, where N is at most BLOCK. It subtracts the largest, takes `tl.exp`, and
# divides by the sum. Which `other` does the load need, and why does the sum then need no mask of its own?
# /// answer
# `other=-float("inf")`. This value is never the largest, as long as the row has at least one number. And because
# exp(−∞) is 0, a seat without a number adds nothing to the sum. The store still needs the mask.
# ///

# %% [markdown]
# ## Where the labs are
#
# Nine labs can be typed in Triton, with a card or without:
#
# | lab | what it takes from this page | where |
# |---|---|---|
# | `first_kernel` | launch, places, masks | [Your first kernel](start_here.py#type-it-yourself) |
# | `grey` | a grid of two dimensions, int64 | [The CUDA model](lectures/l2_the_cuda_model.py) |
# | `transpose` | tiles in two dimensions, `tl.trans` | [Memory](lectures/l3_memory.py) |
# | `reduction` | `other`, `tl.sum`, `tl.atomic_add` | [Memory](lectures/l3_memory.py) |
# | `sgemm_tiles` | a loop of `tl.dot`, `input_precision` | [The GEMM ladder](lectures/l4_the_gemm_ladder.py) |
# | `plain_attention` | a softmax in one program, `tl.where` | [Attention](lectures/l8_attention.py) |
# | `add_rmsnorm` | a row in one program, `tl.sum`, 16 bits in and out | [Serving](workshops/w4_serving.py) |
# | `fp4_gemv` | a row in one program, `tl.sum`, `tl.where`, bytes taken apart | [Blackwell and NVFP4](workshops/w5_blackwell.py) |
# | `mla` | `tl.dot` and `tl.trans` in a loop, `tl.where`, a running maximum | [Frontier finale](workshops/w6_frontier.py) |
#
# And in `bottleneck`, the lab of [Profiling](lectures/l7_profiling.py), you write the cures of six slow kernels in
# Triton. Without a card you see whether they are right, but not what they gain.
#
# ```bash
# nox -s lab -- first_kernel
# nox -s grade -- first_kernel
# ```
#
# ## Where this leads
#
# - [Your first kernel](start_here.py), where you now know everything
# - [C for Python people](c_for_python_people.py): the other language, in which you are one cook instead of a whole
#   table
# - [When it goes wrong](when_it_goes_wrong.py): what nobody checks for you, and who does
# - [The words](glossary.md) of the course
