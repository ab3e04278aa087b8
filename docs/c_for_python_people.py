# ---
# id: c
# title: C for Python people
# section: Beside the road
# order: 2
# description: As much C as a kernel needs, on one page, for somebody who knows Python; every surprise is run on the card.
# needs: gpu
# ---

# %% [markdown]
# # C for Python people
#
# A kernel is written in a small corner of C++: numbers, addresses, loops, `if`. That corner fits on one page. Keep it
# beside you and look things up, or read it once from top to bottom. At the end you can
#
# - read every kernel of this course up to L6 line by line, and look up the words that Hopper adds;
# - say what an address is, and find an element of a matrix by its single index;
# - name four places where a kernel silently gives a different number from Python's;
# - read what the compiler says when it refuses your code;
# - read the five extra language features that the kernels at the top of the ladder use.
#
# Nothing is taken on trust. Each surprise below is compiled and run on the card.

# %% [markdown]
# ## The same thing, twice
#
# | Python | C |
# |---|---|
# | `n = 7` | `int n = 7;` |
# | `x = 0.5` | `float x = 0.5f;` |
# | `if n > 3 and x < 1:` | `if (n > 3 && x < 1.0f) {` … `}` |
# | `not a`, `a or b` | `!a`, <code>a &#124;&#124; b</code> |
# | `elif`, `else` | `else if`, `else` |
# | `for i in range(n):` | `for (int i = 0; i < n; i++) {` … `}`; `i++` is `i += 1` |
# | `for i in range(3, n, 2):` | `for (int i = 3; i < n; i += 2) {` … `}` |
# | `while n > 1:` | `while (n > 1) {` … `}` |
# | `a if n > 3 else b` | `n > 3 ? a : b` |
# | `n // 2` (for n ≥ 0), `n % 2` | `n / 2`, `n % 2` |
# | `x ** 2`, `x ** y` | `x * x`, `powf(x, y)` |
# | `abs(x)`, `max(x, y)`, `math.exp(x)` | `fabsf(x)`, `fmaxf(x, y)`, `expf(x)` |
# | `def square(x): return x * x` | `float square(float x) { return x * x; }` |
# | `x[i]` | `x[i]`, and nobody checks `i` |
# | `len(x)` | there is none: pass the length along |
# | `float(n)`, `int(x)` | `(float)n` or `static_cast<float>(n)`, `(int)x` |
# | `# a comment` | `// a comment`, `/* or this */` |
# | `None`, exceptions, `import` | not in a kernel |
#
# Braces make a block; indentation does not. A semicolon ends a statement; the end of a line does not. Without braces an
# `if` holds exactly one statement, however the next line is indented. And `=` assigns, while `==` compares:
# `if (n = 3)` sets n to 3 and is always true.
#
# The cells below need only this much machinery: it writes a few lines of C into a file, compiles them and runs them.

# %%
import tempfile
from pathlib import Path

import torch
from course_kernels.cuda.compile import CompileError
from course_kernels.cuda.run import run

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "mine.cu"


def c(source, *arguments, threads=1):
    """Compile a kernel and run it in one block."""
    file.write_text(source.strip() + "\n")
    run(file, 1, threads, *arguments)


def room(count, dtype=torch.int32):
    """Memory on the card for a kernel to write into."""
    return torch.zeros(count, dtype=dtype, device="cuda")


# %% [markdown]
# [`run`](lectures/l2_the_cuda_model.py#a-file-of-your-own-in-one-line) is the course's own function: it compiles and
# runs such a file. If you have a card, you can type along.

# %% [markdown]
# ## Everything has a type
#
# In Python a value has a type. In C the *name* has a type: you declare it once, and it never changes.
#
# ```cuda
# int n = 1000;          // declared and set
# float sum = 0.0f;      // a float, and a literal that is one
# const int last = n - 1;   // const: nobody may change it again
# bool inside = n > 3;
# ```
#
# A name that you declare and do not set holds garbage. Not 0, not None: garbage. A name lives until the closing brace
# of the block in which it was declared. The type says how many bytes a value has, and what the bits in them mean:

# %%
sizes = room(7)
c(
    """
extern "C" __global__ void sizes(int *out) {
  out[0] = sizeof(bool);
  out[1] = sizeof(char);
  out[2] = sizeof(int);
  out[3] = sizeof(long long);
  out[4] = sizeof(float);
  out[5] = sizeof(double);
  out[6] = sizeof(float *);
}
""",
    sizes,
)
names = "bool", "char", "int", "long long", "float", "double", "float *"
for name, count in zip(names, sizes.tolist(), strict=True):
    print(f"{name:10} {count} bytes")

# %% [markdown]
# | type | holds | torch calls it |
# |---|---|---|
# | `int` | whole numbers, −2 147 483 648 to 2 147 483 647 | `int32` |
# | `long long` | whole numbers to about 9 × 10<sup>18</sup>, either side of 0 | `int64` |
# | `unsigned int` | 0 to 4 294 967 295 | `uint32` |
# | `float` | about 7 decimal digits, up to about 3.4 × 10<sup>38</sup> | `float32` |
# | `double` | about 16 digits | `float64` |
# | `__half`, `__nv_bfloat16` | 2 bytes; they need an include | `float16`, `bfloat16` |
# | `bool` | true, false | `bool` |
#
# The tensor and the kernel must agree on the type. The kernel gets bytes, and reads them as its own declaration says.

# %% [markdown]
# ## Four quiet surprises
#
# ### 1. Dividing whole numbers drops the fraction
#
# /// predict | What are 7 / 2, −7 / 2, −7 % 2 and 1 / 3 in C?
# In Python 3 the results are 3.5, −3.5, 1 and 0.333… Say all four before you look.
#
# - [ ] 3, −4, 1 and 0
# - [x] 3, −3, −1 and 0
# - [ ] 3.5, −3.5, −1 and 0.333…
# /// reveal
# 3, −3, −1 and 0. Dividing two ints gives an int, and the fraction is cut off *towards zero*. Python's `//` rounds down
# instead: −7 // 2 is −4. The remainder takes the sign of the left number.
# ///

# %%
whole, real = room(4), room(2, torch.float32)
c(
    """
extern "C" __global__ void divide(int *whole, float *real, int seven) {
  whole[0] = seven / 2;
  whole[1] = -seven / 2;
  whole[2] = -seven % 2;
  whole[3] = 1 / 3;
  real[0] = 1 / 3;      // the division is done before the float is looked at
  real[1] = 1.0f / 3;
}
""",
    whole,
    real,
    7,
)
print("C:      ", *whole.tolist(), "and", *real.tolist())
print("Python: ", 7 // 2, -7 // 2, -7 % 2, 1 // 3, "and", 1 / 3)

# %% [markdown]
# So a scale of `1 / N` is 0 for every N above 1, and you get a kernel full of zeros. Write `1.0f / N`.
#
# ### 2. Whole numbers have a limit
#
# An int has 32 bits. A matrix of 65 536 × 65 536 has 2<sup>32</sup> elements. Put the two together:

# %%
far = room(4, torch.int64)
c(
    """
extern "C" __global__ void far(long long *out, int largest, int row, int N) {
  out[0] = largest + 1;
  out[1] = row * N;                   // worked out in 32 bits, then widened
  out[2] = (long long)(row * N);      // too late: the product is already wrong
  out[3] = (long long)row * N;        // row is widened first
}
""",
    far,
    2**31 - 1,
    40_000,
    65_536,
)
print("2147483647 + 1      ", far[0].item())
print("row * N             ", far[1].item())
print("(long long)(row * N)", far[2].item())
print("(long long)row * N  ", far[3].item())
print("Python              ", 40_000 * 65_536)

# %% [markdown]
# On the card an int wraps around: after the largest number comes the smallest. C++ does not even promise that; it
# leaves the overflow of a signed int undefined, and the compiler may assume that it never happens. Used as an index, a
# negative number is an address in front of your tensor. So widen **one factor before** you multiply. That is why
# `vector_add` computes `static_cast<long long>(blockIdx.x) * blockDim.x`.
#
# ### 3. 1.0 is a double
#
# A literal has a type too. `1.5` has 64 bits. `1.5f` has 32. Mix a double into a sum of floats, and the sum is computed
# in double, then rounded back. Look at the instructions that the compiler generates for `x * 1.1` and for `x * 1.1f`:

# %%
import re

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass

arch = arch_of(torch.cuda.get_device_capability())
for literal in ("1.1", "1.1f"):
    file.write_text(
        f'extern "C" __global__ void scale(float *x) {{ x[threadIdx.x] *= {literal}; }}\n'
    )
    found = re.findall(r"\b(?:[DF]MUL|F2F[.\w]*)", sass(compile_cubin(file, arch)))
    print(f"x * {literal:5}", ", ".join(found))

# %% [markdown]
# `FMUL` multiplies floats, `DMUL` multiplies doubles, `F2F` converts. Because one letter is missing, one instruction
# has become three. The middle instruction runs on the double-precision units, and many cards have only a few of those.
# So put `f` after every literal in a kernel, and write `expf`, `fmaxf`, `sqrtf` rather than `exp`, `fmax`, `sqrt`.
#
# ### 4. A float runs out of digits
#
# The last surprise has nothing to do with C, but you meet it here, because Python's float is a double.

# %%
digits, counted = room(2, torch.float64), room(3, torch.float32)
c(
    """
extern "C" __global__ void digits(double *d, float *f, float many) {
  d[0] = 1.0f / 3.0f;
  d[1] = 1.0 / 3.0;
  f[0] = many + 1.0f;
  f[1] = 0.1f + 0.2f == 0.3f ? 1.0f : 0.0f;
  f[2] = 0.1 + 0.2 == 0.3 ? 1.0f : 0.0f;
}
""",
    digits,
    counted,
    2.0**24,
)
print("1/3 as a float: ", digits[0].item())
print("1/3 as a double:", digits[1].item())
print("2**24 + 1 as a float:", int(counted[0].item()), "and 2**24 is", 2**24)
print("0.1 + 0.2 == 0.3 in float: ", bool(counted[1].item()))
print("0.1 + 0.2 == 0.3 in double:", bool(counted[2].item()))

# %% [markdown]
# A float has 24 bits for its digits, so from 2<sup>24</sup> on it can no longer count by ones. A sum that adds 1 at a
# time gets stuck there. And in float, 0.1 + 0.2 came out *equal* to 0.3, while in double it did not: that is lucky
# rounding, not a virtue of float. So do not ask whether the results of two different sums are equal; ask whether they
# are close.
#
# /// exercise | Half of x
# Somebody writes `y[i] = 1 / 2 * x[i];` and gets zeros. Somebody else writes `y[i] = x[i] / 2;` and gets the right answer.
# Why? And what does `y[i] = 0.5 * x[i];` cost?
# /// answer
# `1 / 2 * x[i]` is read from the left: `1 / 2` is a division of ints, so it is 0. Then comes 0 times x. In `x[i] / 2`
# one side is a float, so the 2 becomes a float too. `0.5 * x[i]` gives the right answer. By the rules of C, the product
# is computed in double and rounded back. Half of a float comes out the same either way, so a compiler may notice and
# use a float multiply after all. With 1.1 the compiler could not do so, as you saw above. Write `0.5f`, and you do not
# have to hope that it does.
# ///

# %% [markdown]
# ## Addresses
#
# A kernel does not get your tensor. It gets the **address** of the tensor's first number, that is, where in memory the
# tensor begins. C calls an address a *pointer*, and a pointer has a type: `float *x` is the address of a float.
#
# /// figure | docs/assets/figures/house_numbers.svg
# alt: "A street of eight houses with the addresses 1000, 1004 and so on to 1028. The first five belong to x and hold 1.5 to 5.5. The arrow x points to the first, x plus 3 to the fourth. The arrow x plus 5 points to the sixth house, which is somebody else's."
# caption: The house numbers count bytes. The steps that you take are whole floats.
# ///
#
# - `x[3]` is the fourth float, counted from that address. It is shorthand for `*(x + 3)`: go three floats on, and look
#   inside.
# - `x + 3` is an address, 3 × 4 bytes further on, because the type says that each step is a float.
# - `&y` is the address of `y`.
# - `const float *x`: I promise to read only. `float *__restrict__ z`: I promise that no other pointer leads to the same
#   memory, so the compiler may keep things in registers. Nobody checks that promise.
#
# Nothing in an address says how long the list is. `x[-1]` is not the last number; it is the house in front of yours.
# [When it goes wrong](when_it_goes_wrong.py#nothing-complains) shows what happens then.

# %%
steps, seen = room(3, torch.int64), room(2, torch.float32)
houses = torch.tensor([1.5, 2.5, 3.5, 4.5, 5.5], device="cuda")
c(
    """
extern "C" __global__ void steps(const float *x, long long *step, float *seen) {
  const double *wide = (const double *)x;   // the same house, another type
  step[0] = (long long)(x + 3) - (long long)x;
  step[1] = (long long)(wide + 3) - (long long)wide;
  step[2] = &x[3] == x + 3;
  seen[0] = x[3];
  seen[1] = *(x + 3);
}
""",
    houses,
    steps,
    seen,
)
print("three floats on: ", steps[0].item(), "bytes")
print("three doubles on:", steps[1].item(), "bytes")
print("&x[3] == x + 3:  ", bool(steps[2].item()))
print("x[3], *(x + 3):  ", *seen.tolist())

# %% [markdown]
# ### The same address, a different type
#
# The cell above contains `(const double *)x`: the same house, with a new promise about what lives in it. The long form
# of this cast is `reinterpret_cast<const double *>(x)`. No bit moves, and nothing is converted. But each read now takes a different number of bytes, and so does each step to the next number. Every kernel that loads 16 bytes at once uses such a
# cast:
#
# ```cuda
# float4 v = *reinterpret_cast<const float4 *>(x + 4 * i);   // four floats in one go: v.x, v.y, v.z, v.w
# ```
#
# Read the line from the inside out: take the address of float number 4 i; treat it as the address of a `float4`, four
# floats in a row; and the star looks inside. Nobody checks that four floats are there. Nor does anybody check that the
# address is a multiple of 16, which such a load requires: see [alignas](#alignas-where-a-thing-may-begin).
#
# ### A matrix is a list
#
# Memory is one long street. So a matrix is stored row after row; this order is called **row-major**:
#
# `number = row × columns + column`
#
# Try it by hand with 3 rows and 4 columns. Row 2, column 1 is number 2 × 4 + 1 = **9**. And back again: 9 // 4 gives
# row 2, and 9 % 4 gives column 1. Let the card check:

# %%
M, N = 3, 4
matrix = torch.arange(M * N, dtype=torch.float32, device="cuda").view(M, N) + 100
found = room(2, torch.float32)
c(
    """
extern "C" __global__ void look(const float *m, float *found, int row, int column, int N) {
  found[0] = m[row * N + column];
  found[1] = m[row + column * 3];   // columns first: also inside, also a number
}
""",
    matrix,
    found,
    2,
    1,
    N,
)
print(matrix.int().tolist())
print("row 2, column 1:", int(found[0]), "and in Python", int(matrix[2, 1]))
print("with row and column mixed up:", int(found[1]))

# %% [markdown]
# If you mix up row and column, there is no error. You get a number from somewhere else in the matrix.
#
# Tensors can deceive you here. `matrix.t()` looks transposed in Python, but in memory nothing has moved. Only the steps
# (*strides*) have changed, and the kernel does not get the strides. That is why our launchers insist on *contiguous*
# tensors.
#
# Small lists of your own have a fixed length that is known when you compile: `float row[4];`. With `__shared__` in front, the
# whole block shares one such list.
#
# /// exercise | House number 37
# A matrix has 5 rows and 8 columns. In which row and column is element 37? And what does a kernel read when it asks for
# row 1, column 9?
# /// answer
# 37 // 8 gives row 4, and 37 % 8 gives column 5. Row 1, column 9 is number 1 × 8 + 9 = 17, and that is row 2, column 1.
# That place is inside the matrix, so not even `memcheck` can object. Only a check of the column against N finds the
# mistake.
# ///

# %% [markdown]
# ## Functions, and the words of CUDA
#
# A function declares what it takes and what it returns. `void` means that it returns nothing. Numbers are passed as
# copies, so a function cannot change the caller's numbers, unless it gets their addresses.

# %%
before = torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda")
after = torch.empty_like(before)
c(
    """
#define SCALE 10.0f                       // every SCALE below becomes 10.0f, before compiling

constexpr int N = 4;                      // a constant, known when it is compiled

template <typename T>                     // one function for any type T
__device__ T square(T x) { return x * x; }

extern "C" __global__ void squares(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ float bowl[N];               // one for the whole block
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) bowl[i] = square(x[i]);
  __syncthreads();                        // nobody reads before all have written
  if (i < N) y[i] = SCALE * bowl[N - 1 - i];
}
""",
    before,
    after,
    threads=32,
)
print(after.tolist())

# %% [markdown]
# | word | means |
# |---|---|
# | `__global__` | a kernel: called from outside, run by a whole grid; returns `void` |
# | `__device__` | a function for the GPU, called by kernels |
# | `__shared__` | this variable is shared by the threads of a block |
# | `extern "C"` | keep the name as it is, so that Python can find it; C++ would add the types to it |
# | `threadIdx.x` | my seat in the block; `.y` and `.z` for more dimensions |
# | `blockIdx.x` | the number of my block |
# | `blockDim.x`, `gridDim.x` | how many threads a block has, how many blocks the grid |
# | `__syncthreads()` | wait until the whole block is here |
# | `__syncwarp()`, `__shfl_down_sync(…)` | wait in the same way for a *warp*, 32 neighbouring threads of a block; take a number from a thread further on in the warp |
# | `atomicAdd(&x, 1)` | add, with nobody in between |
# | `__restrict__` | no other pointer leads here |
# | `#include <cuda_fp16.h>` | read in another file; this one is for `__half` |
# | `#pragma unroll` | write out the next loop step by step, if its length is known |
# | `static_cast<int>(x)` | the number, turned into an int |
# | `reinterpret_cast<const float4 *>(x)` | the same address, read as a different type: see [above](#the-same-address-a-different-type) |
# | `float4` | four floats in a row, with `.x .y .z .w`; loaded in one go from an address that 16 divides |
# | `auto` | let the compiler work out the type |

# %% [markdown]
# ## What the compiler says
#
# A compiler is a colleague who reads your whole file before anything runs. Here is the most common mistake of all: a
# missing semicolon.


# %%
def refused(source):
    """What the compiler says about a wrong kernel."""
    try:
        c(source)
    except CompileError as error:
        print(str(error).replace(f"{folder.name}/", "").strip("\n \0"))


refused("""
extern "C" __global__ void scale() {
  int i = blockIdx.x * blockDim.x + threadIdx.x
  float y = 2 * i;
}
""")

# %% [markdown]
# Skip the first lines, which only say that the compiler refused. Then read the message like this: **file(line): error:
# what**, then the line itself, and a `^` under the place where the compiler got stuck. That is the place where it
# *noticed* the error, not the place where you made it. The semicolon is missing at the end of line 2; the compiler
# notices at the first word of line 3. So look at the line before, too. The *warning* below it is a consequence, and
# `177-D` is only its number.
#
# Here are several mistakes at once, all of them Python in C's clothes:

# %%
refused("""
extern "C" __global__ void scale() {
  int n = 4;
  float x[4] = {1, 2, 3, 4};
  float y = x[0] ** 2;
  int *p = x;
  z = len(x);
}
""")

# %% [markdown]
# - *operand of "\*" must be a pointer*: C has no `**`. The compiler read `x[0] * (*2)`: times the thing at address 2.
# - *a value of type "float \*" cannot be used to initialize … "int \*"*: the address of a float is not the address of an int.
# - *identifier "z" is undefined*: the name was never declared. Assigning to a name does not create it.
# - *identifier "len" is undefined*: there is no such function. Python's words are not C's.
#
# **Fix the first error, then compile again.** Later errors often follow from the first. And a file that *compiles* is
# valid C; that does not mean that it is right.
#
# /// exercise | Read one aloud
# Say what each line does for thread 5 of block 2, with blocks of 256 threads and N = 600. Then do the same for thread
# 100 of that block.
#
# ```cuda
# extern "C" __global__ void mystery(const float *x, float *y, int N) {
#   int i = blockIdx.x * blockDim.x + threadIdx.x;
#   if (i >= N) return;
#   float left = i > 0 ? x[i - 1] : 0.0f;
#   y[i] = x[i] - left;
# }
# ```
# /// answer
# Thread 5: i = 2 × 256 + 5 = 517. That is below 600, so the thread stays. 517 is above 0, so left is x[516]. The thread
# writes x[517] − x[516] into y[517].
#
# Thread 100: i = 612. That is not below 600, so the thread goes home. The kernel writes the difference between each
# number and the one before it; in front of the first number the kernel assumes a 0.
# ///
#
# /// exercise | Blocks, rounded up
# How do you compute in C how many blocks of 256 N numbers need? Why is `(N + 255) / 256` right, and for which N does it
# go wrong?
# /// answer
# Division rounds down, so N / 256 forgets the remainder. Adding 255 first makes every remainder, from 1 on, count as
# one more block, and changes nothing for an N that is a multiple of 256. The formula goes wrong when N + 255 passes 2
# 147 483 647: then the sum wraps, and the number of blocks is negative. Python has no such limit, which is one reason
# why our launchers count in Python: `-(-N // 256)`.
# ///

# %% [markdown]
# ## Five more words, for the top of the ladder
#
# The kernels of [L5](lectures/l5_the_top_of_the_ladder.py) and [L6](lectures/l6_tensor_cores.py) use five language
# features that Python does not have. Come back when you meet the first of them.
#
# ### A template: the same function, written twice
#
# `template <bool VECTORS>` before a function turns the function into a stencil with a hole. `load_4<true>` and
# `load_4<false>` are two functions, each compiled with its own value in the hole. `template <int N>` takes a number,
# `template <typename T>` a type.
#
# /// predict | The function below has an if in it, and both kernels call it. How many of the two compiled kernels have a branch?
# - [ ] Both
# - [ ] One
# - [x] None
# /// reveal
# None. In each of the two kernels `WIDE` is a constant, so only one side of the `if` is compiled. The listing shows
# what is left: one load of 16 bytes, or four loads of 4 bytes.
# ///

# %%
file.write_text("""
template <bool WIDE>
__device__ inline float4 four(const float *from) {
  if (WIDE) return *reinterpret_cast<const float4 *>(from);
  return {from[0], from[1], from[2], from[3]};
}

extern "C" __global__ void wide(const float *x, float *sum) {
  float4 v = four<true>(x);
  *sum = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void narrow(const float *x, float *sum) {
  float4 v = four<false>(x);
  *sum = v.x + v.y + v.z + v.w;
}
""")
listing = sass(compile_cubin(file, arch))
for name, code in re.findall(r"^\.text\.(\w+):(.*?)\bEXIT\b", listing, re.M | re.S):
    loads = ", ".join(re.findall(r"\bLDG[.\w]*", code))
    print(f"{name + ':':8}{loads}; branches: {len(re.findall('BRA', code))}")

# %% [markdown]
# So an `if (VECTORS)` in the innermost loop costs nothing. The launcher decides once, in Python, and picks the kernel
# that fits. The value in the hole must be known when you compile: `load_4<K % 4 == 0>` is refused.
#
# ### A reference: a second name for the same thing
#
# A function gets copies of its arguments. Put `&` after the type, and the function gets the caller's variable itself,
# under a name of its own. Arrays set a trap here.
#
# /// predict | An array has 8 floats, 32 bytes. How many bytes does it have inside a function that takes it as an argument?
# The function begins `int as_pointer(float a[8])` and asks for `sizeof(a)`.
#
# - [ ] 32
# - [x] 8
# - [ ] 4
# /// reveal
# **8**, the size of an address. In a list of parameters, `float a[8]` is only another way to write `float *a`; the 8 is ignored.
# The function that takes a reference sees all 32 bytes.
# ///

# %%
second_name = room(5)
c(
    """
__device__ int as_pointer(float a[8]) { return sizeof(a); }
__device__ int as_reference(float (&a)[8]) { return sizeof(a); }
__device__ void copied(int n) { n = 7; }
__device__ void shared(int &n) { n = 7; }

extern "C" __global__ void names(int *out) {
  float a[8] = {};
  out[0] = sizeof(a);
  out[1] = as_pointer(a);
  out[2] = as_reference(a);
  int n = 1;
  copied(n);
  out[3] = n;
  shared(n);
  out[4] = n;
}
""",
    second_name,
)
print("sizeof(a), as a pointer, as a reference:", *second_name[:3].tolist())
print("n after copied(n), after shared(n):     ", *second_name[3:].tolist())

# %% [markdown]
# Read `float (&tile)[8][8]` from the inside out: `&tile`, a second name, for a `float [8][8]`. The parentheses are needed,
# because `float &tile[8]` would be an array of eight references, and C++ does not allow that. The length belongs to the type, so
# the compiler holds you to it:

# %%
refused("""
__device__ void clear(float (&d)[4]) { d[0] = 0.0f; }
extern "C" __global__ void too_long() {
  float d[8] = {};
  clear(d);
}
""")

# %% [markdown]
# That is the point of `load_matrices(unsigned (&held)[4], …)`: the function takes four registers, not three. And they
# *stay* registers. As far as the language is concerned, an address would do just as well. But a register has no
# address, so a compiler that cannot see through the call would have to put `held` into memory.
# `float(&square)[F][F] = squares[warp];` is also a reference, but without a function: a short name for one square of
# many. And in `for (auto &row : sums)` each `row` is the row itself, not a copy of it.
#
# ### alignas: where a thing may begin
#
# A load of 16 bytes needs an address that is a multiple of 16. A float may begin at any multiple of 4, and so may a
# list of floats. `alignas(16)` in front of a list says: begin at a multiple of 16.
#
# /// predict | One char and four floats are 17 bytes. How large is a struct of these, without alignas and with alignas(16) before the floats?
# - [ ] 17 and 17
# - [x] 20 and 32
# - [ ] 20 and 20
# /// reveal
# 20 and 32. Without `alignas`, the floats begin at byte 4, the first multiple of 4 after the char. With `alignas(16)`
# they begin at byte 16, and the whole struct grows to a multiple of 16, so that the next one in an array is aligned
# too.
# ///

# %%
places = room(4)
c(
    """
struct Plain { char first; float four[4]; };
struct Aligned { char first; alignas(16) float four[4]; };

extern "C" __global__ void begin(int *out) {
  Plain p;
  Aligned a;
  out[0] = (char *)&p.four - (char *)&p;
  out[1] = sizeof(Plain);
  out[2] = (char *)&a.four - (char *)&a;
  out[3] = sizeof(Aligned);
}
""",
    places,
)
print(
    "plain:      the floats begin at byte", places[0].item(), "of", places[1].item()
)
print(
    "alignas(16): the floats begin at byte",
    places[2].item(),
    "of",
    places[3].item(),
)

# %% [markdown]
# Without `alignas`, a `float4` load from a tile works only by luck: the compiler places other variables beside the tile
# as it likes. When the luck runs out, the card says *[misaligned
# address](when_it_goes_wrong.py#from-symptom-to-cause)*. `__align__(16)` is CUDA's older word for the same thing.
#
# ### A lambda: a function inside a function
#
# `auto bring = [&](int tile) { … };` is a function without a name of its own, stored in the variable `bring`. Python's
# `lambda` and its inner functions are its cousins. The square brackets say how the lambda sees the variables around it.
#
# /// predict | n is 1. Two lambdas that add n to k are made, and then n becomes 100. What do they return for 5? And what would Python return?
# `seen` is made with `[&]`, `kept` with `[=]`.
#
# - [ ] 6 and 6, and Python 6
# - [ ] 105 and 105, and Python 105
# - [x] 105 and 6, and Python 105
# - [ ] 6 and 105, and Python 6
# /// reveal
# 105 and 6. `[&]` sees the variable itself, as Python does. `[=]` took a copy when the lambda was made.
# ///

# %%
called = room(2)
c(
    """
extern "C" __global__ void closures(int *out) {
  int n = 1;
  auto seen = [&](int k) { return n + k; };
  auto kept = [=](int k) { return n + k; };
  n = 100;
  out[0] = seen(5);
  out[1] = kept(5);
}
""",
    called,
)
n = 1


def in_python(k):
    """Sees n, as [&] does."""
    return n + k


n = 100
print("[&] and [=]:", *called.tolist())
print("Python:     ", in_python(5))

# %% [markdown]
# The kernels use `[&]` throughout. `begin_tile()` in L6 sets `a_from` and `k_left` of the kernel around it, without
# having them passed as arguments. A call costs nothing: the compiler writes out the body wherever the lambda is used.
#
# ### asm volatile: one instruction, by its name
#
# C++ has no word for *copy 16 bytes without waiting* or for *multiply on the tensor core*. PTX has one for each, and
# `asm` puts a line of PTX into your kernel. This line is from `matrix_instructions.cuh`; it rounds two floats to bf16
# and packs them into one register:
#
# ```cuda
# asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
# ```
#
# The colons separate three lists: what comes out, what goes in, and what else the line touches. `%0`, `%1`, `%2` are the items of
# the first two lists, in order.
#
# | written | means |
# |---|---|
# | `"=r"(both)` | an output, in a register of 32 bits |
# | `"f"(first)`, `"r"(n)`, `"l"(address)` | an input: a float, 32 bits, 64 bits |
# | `"+f"(d[0])` | read *and* written: a sum that is added to |
# | `"n"(N)` | a number that is known when you compile, such as a template's |
# | `"memory"` | it reads or writes memory: no other access may be moved across it |
# | `volatile` | do it exactly as often as it is written |
#
# /// predict | 32 threads each add 1 to two numbers, with an atomic of PTX: to the first with plain asm, to the second with asm volatile. Nobody uses the old value that comes out. What are the two numbers?
# - [ ] 32 and 32
# - [x] 0 and 32
# - [ ] 1 and 32
# /// reveal
# **0 and 32.** To the compiler, a plain `asm` is a formula: something goes in, something comes out. If nobody uses what
# comes out, the line is dropped. Only the text in quotes shows that this instruction also changes memory, and the
# compiler does not read that text. `volatile` tells it that the line does more than produce its output.
# ///

# %%
added = room(2)
c(
    """
extern "C" __global__ void by_name(int *added) {
  int before;
  asm("atom.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(added));
  asm volatile("atom.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(added + 1) : "memory");
}
""",
    added,
    threads=32,
)
print("asm, asm volatile:", *added.tolist())

# %% [markdown]
# Now run the line from `matrix_instructions.cuh` on 1 and 2. In bf16 these two numbers are `3f80` and `4000`.

# %%
if torch.cuda.get_device_capability() >= (8, 0):  # older cards have no bf16
    packed = room(1)
    c(
        """
extern "C" __global__ void pair(int *packed, float first, float second) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  packed[0] = both;
}
""",
        packed,
        1.0,
        2.0,
    )
    print("1 and 2 in one register:", hex(packed[0].item()))

# %% [markdown]
# This line needs no `volatile`: its output is its only effect. But look at the order of the two numbers. `first` ends
# up in the lower half, on the right, although it is named last. Nobody checks this order either. The text between the
# quotes is not C++, and the compiler believes what you say about it. So the course wraps each such line in a commented
# function, in one of the `.cuh` files that L5 and L6 show.
#
# You will also meet these:
#
# | word | means |
# |---|---|
# | `constexpr int BM = 128;` | a constant, known when it is compiled |
# | `static_assert(A_ROWS % 8 == 0, "…")` | checked when it is compiled; if it is not true, the file does not compile |
# | `using Half = unsigned short;` | another name for a type |
# | `struct Corner { int m, n; };`, `return {0, 8};` | a small record, and one made on the spot |
# | `extern __shared__ char tiles[];` | shared memory whose size the launch sets |
# | `__launch_bounds__(256, 2)` | at most 256 threads in a block, and two blocks must fit on an SM: that limits the registers |
# | `#ifndef BM` … `#endif` | only if nobody has defined `BM`; the launcher may |
# | `wmma::mma_sync` | the `mma_sync` of the library `wmma` |
# | `a ^ b`, `a << 4`, `a & 7` | exclusive or, bits moved up by four, the lowest three bits |
# | `copy(0), close();` | a comma: first one, then the other |
#
# /// exercise | Read a line of L6
# `template <int N> __device__ inline void wait_for_all_but() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }`.
# What do the two colons side by side mean? Why is N a template parameter and not an argument? And what could go wrong without
# `"memory"`?
# /// answer
# The line has no output, so there is nothing between the first colon and the second. The number is built into the
# instruction, so it must be known when the kernel is compiled. `"n"` requires such a number, but an argument is known
# only at run time.
#
# Without `"memory"`, the compiler does not know that this line has anything to do with memory. It may then read the
# tile *before* the wait, when the copies have not arrived.
# ///

# %% [markdown]
# ## The words that Hopper adds
#
# The kernels of [the workshop on Hopper](workshops/w2_hopper.py) use the words above. Their headers, in
# `src/course_kernels/cuda/hopper/`, need a few more, because there a single name covers many instructions. You can read
# W2 without them; come back here when you open such a header.
#
# | written | means |
# |---|---|
# | `template <class... At>`, and `At... x` | as many types as you like, and an argument of each type: one `load_tile` for tiles of two to five dimensions |
# | `sizeof...(At)` | how many there are |
# | `(hold(d), ...)` | `hold` of each of them, one after the other; it is called a *fold* |
# | `if constexpr (sizeof...(At) == 2) … else …` | decided at compile time: only one side is compiled at all |
# | `template <> struct Product<256> …` | a version of the template written for one value in the hole |
# | `#define PRODUCT(N, …) … "m64n" #N "k16"` | text that is substituted before anything is compiled; `#N` is N in quotes, and `A##N` glues it to a name |
# | `enum class Major { k, mn };` | a type with two values, `Major::k` and `Major::mn` |
# | `const __grid_constant__ TensorMap map` | an argument that stays where the launch has put it, the same for all threads: so it has an address, which the copy engine needs |
# | `extern __shared__ __align__(1024) char memory[];` | shared memory of the size that the launch sets, beginning at a multiple of 1024 |
# | `__launch_bounds__(384, 1)` | one block of 384 threads on an SM is enough: each thread may have as many registers as just fit |

# %% [markdown]
# ## Where this leads
#
# - [Your first kernel](start_here.py), to read again: you now know every word in it
# - [The CUDA model](lectures/l2_the_cuda_model.py): what `threadIdx` and `blockIdx` stand for
# - [When it goes wrong](when_it_goes_wrong.py): what C does not check, and who does
# - [The words](glossary.md) of the course
