# ---
# id: week_10
# title: "Week 10: torch.compile and Inductor"
# search: {rank: 2}
# nav: "10 · torch.compile"
# description: "What the compiler behind torch.compile fuses, what it hands to a library, where its graph breaks; and LayerNorm in one pass over memory, against PyTorch's."
# needs: gpu
# ---

# %% [markdown]
# # Week 10: torch.compile and Inductor
#
# /// week
# ///
#
# By the end of this week you can
#
# - name the three stages between your function and a kernel, and say what each can do;
# - read a kernel that the compiler wrote, and find what it did not fuse;
# - say why LayerNorm is a question of how often memory is read, and not of how the variance is written.
#
# ## Why this week
#
# A compiler that fuses is the cheapest percent of peak there is: one line. You have to know which operators it will join, so that you write by hand only what it cannot. And it will write in Triton, which you can read since
# [last week](week_09.py).
#
# ## Before you begin
#
# - How many trips to memory does a fused activation save? [Week 9](week_09.py#do).
# - What does a mask do in a Triton kernel? [Triton for NumPy people](../triton_for_numpy_people.py#masks-keep-off-what-is-not-yours).
# - What does a launch cost the host? [L2](../lectures/l2_the_cuda_model.py#what-a-launch-costs).
#
# ## Read
#
# /// reading
# ansel2024: "Take section 2 to 4: how the bytecode is watched, what a guard is, what makes a graph break. The address that usually goes around with this paper is another paper's: this is the right one."
# torch-compile-tutorial: "Type it, with your own function. Take how it shows the graphs that are traced, and where a graph breaks."
# shah2024: "Here for one correction: FlashAttention-3 is written in CUDA C++ on CUTLASS. There is no Triton version of it to read, whatever lists say. How far it comes is week 17's question."
# triton-tutorials: "The blocked multiply, once more: now look for the order of the programs, and ask what L2 has to do with it. [W3](../workshops/w3_abstraction_ladder.py#one-multiply-on-every-rung) has ours."
# ///
#
# ## Ideas
#
# /// idea | What lies between `torch.compile` and a kernel?
# **Dynamo** watches your function's bytecode, and records the operators on tensors as a graph, with guards: facts such as a shape, under which the graph may be used again. **AOTAutograd** adds the backward graph, and breaks large operators into small ones. **Inductor** takes
# loops apart and joins them anew, and writes a kernel for each group, in Triton on a GPU [^torch-compiler]. Many descriptions leave the middle one out; without it nothing would be trained.
# ///
#
# /// idea | What do the modes `reduce-overhead` and `max-autotune` do?
# `reduce-overhead` records the kernels into a CUDA graph, so that a step is one launch: it helps where kernels are short. `max-autotune` also tries several kernels for each product, Triton's among them, and keeps the best: compiling takes minutes, and the gain is often small. [L2](../lectures/l2_the_cuda_model.py#many-orders-written-once-graphs) has graphs
# from below.
# ///
#
# - What does Inductor fuse by itself? [The guide, fusion](../field_guide/fusion.md), and [what it wrote for us](../workshops/w3_abstraction_ladder.py#what-torchcompile-writes).
#
# /// idea | What is a graph break?
# A place where Dynamo cannot go on: a `print`, `.item()`, a branch on a number that lies on the card, a call into C. The graph ends, Python runs that line, a new graph begins. Nothing is fused across, and the host waits where it
# used to run ahead. `TORCH_LOGS=graph_breaks` names the line; `fullgraph=True` makes of each an error, which is the better way to find them.
# ///
#
# /// idea | When is it that compiling does not pay?
# When the time is in the products: they go to the library, compiled or not. When shapes change, and each new one compiles anew. When the run is shorter than the compiling. And when the kernels are so short that the host is the
# bottleneck, where a CUDA graph does the same work without a compiler.
# ///
#
# - Where does FlashAttention-3 stand? It is CUDA C++: see the reading, and [W1](../workshops/w1_flash_attention.py#flashattention-2-and-3-on-a-napkin).
#
# ## Do
#
# Compile a whole forward pass and look at what came out. Set `TORCH_LOGS=output_code`, run `torch.compile(model)(x)` once on a GPU, and find each `@triton.jit`. (On a processor Inductor writes C++ instead.) `TORCH_COMPILE_DEBUG=1` writes the same into a folder, with all the stages between.
#
# We did it with one feed-forward block of an 8B model, its three products and what stands between them: a block is what repeats, and you can read all of it.

# %% tags=["fold"]
from course_kernels.measure import quantity, record

OPERATORS = 5  # three products, silu, a product number by number

record(operators=quantity(OPERATORS, how="counted"))

# %% [markdown]
# /// predict | A feed-forward block has {{ operators:.0f}} operators: three products, SiLU, and the product number by number. How many kernels in Triton did Inductor write?
# - [w3.inductor.written < 1.5] One
# - [1.5 <= w3.inductor.written < 4.5] Two to four
# - [w3.inductor.written >= 4.5] One for each operator
# /// reveal
# It wrote {{ w3.inductor.written:.0f}}, for what stands between the products, and called the library {{ w3.inductor.products:.0f}} times. Here it is.
#
# /// part | docs/workshops/w3_abstraction_ladder.py#what-torchcompile-writes | text
# which: 2
# ///
# ///
#
# So SiLU and the product by number were joined, and there is no graph break in the block, since nothing in it asks for a number. The products are walls: what comes after one could move into it only if it were a template of the compiler's own, a kernel with a place left open for what follows.
#
# ## Milestone
#
# /// exercise | LayerNorm, in how many passes? | 20 minutes
# LayerNorm gives each row the mean 0 and the variance 1: y = (x − mean) / √(variance + ε) · weight + bias. So it needs the mean of a row, then its variance, and then writes each number. How often does a kernel have to read x from memory, if a row fits into a block's registers, and if it does not? How many trips of the tensor is that, with the write? The tensor has 16384 rows of 4096 numbers in fp32.
# Then write it in Triton, a row a program. Why is one pass faster: because of a cleverer formula for the variance?
# /// answer
# The tensor is 268 MB. With the row kept it is read once and written once, 2 trips. With a pass of its own for the statistics there are 3 trips; with one more for the variance 4. So the row that stays makes the difference, and not the formula: variance *in one pass* needs
# Welford's way of putting parts together, or a row that is resident, where two passes over registers cost next to nothing.
# ///
#
# And on the card? Four kernels take turns on that tensor, each checked against double precision first: eager, which is `torch.nn.LayerNorm`'s own; what `torch.compile` wrote, as it comes; and two of ours in Triton. `k01_row_a_block` takes a row in steps and reads x twice, the second time from a cache if the row
# is still there. `k03_row_kept` holds it:
#
# /// source | src/course_kernels/layer_norm/k03_row_kept.py#kernel
# ///
#
# `centred` works on registers alone: it takes the mean away and divides by the root of the variance. These are its lines:
#
# ```python
# @triton.jit
# def centred(x, there, N, epsilon):
#     rough = tl.sum(x) / N
#     mean = rough + tl.sum(tl.where(there, x - rough, 0.0)) / N  # what the first sum has rounded away
#     far = tl.where(there, x - mean, 0.0)
#     return far * (1.0 / tl.sqrt(tl.sum(far * far) / N + epsilon))
# ```
#
# So the row is summed three times, and loaded once. `there` is the mask: past the end of the row nothing may count. And how often does the compiler's kernel load x? It is text, so we count.

# %% tags=["fold"]
import torch
from course_kernels.layer_norm import k01_row_a_block, k03_row_kept, library
from course_kernels.layer_norm.problem import PROBLEM
from course_kernels.measure import compare
from torch._inductor.utils import run_and_get_code

JOB = next(w for w in PROBLEM.time_on if w.N == 4096)
FIELD = {
    "eager": library.torch_eager,
    "twice": k01_row_a_block,
    "compiled": library.torch_compile,
    "kept": k03_row_kept,
}


def loads_of_x(device="cuda"):
    """How many times x is loaded in the text that the compiler writes for these rows; its first argument is x."""
    draw = torch.Generator(device).manual_seed(0)
    inputs = PROBLEM.make_inputs(JOB, draw, device)
    with torch.no_grad():  # as it is timed: the compiler asks
        _, written = run_and_get_code(library.torch_compile, *inputs)
    found = "\n".join(written).count("tl.load(in_ptr0")
    if not found:
        raise RuntimeError("no load of x in what the compiler wrote")
    return found


LOADS = loads_of_x("cuda" if torch.cuda.is_available() else "cpu")
TENSOR = JOB.M * JOB.N * JOB.element_bytes

record(
    loads=quantity(LOADS, how="counted"),
    tensor=quantity(TENSOR / 1e6, "MB"),
    race=compare(FIELD, JOB, seconds=0.3),
)

# %% [markdown]
# /// predict | How often does the compiler's kernel load a number of x?
# - [loads < 1.5] Once: it keeps the row
# - [loads >= 1.5] Twice or more: it walks along the row again
# /// reveal
# {{ loads:.0f}} in its text. What it keeps in registers is a question of its rules for the length of a row, and of the version.
# ///
#
# /// predict | Of our two: three trips become two. How much of the time of the one that reads x twice is left?
# - [race.kept.us < 0.9 * race.twice.us] Less than nine tenths
# - [race.kept.us >= 0.9 * race.twice.us] Nearly all of it: the second reading came from a cache
# /// reveal
# {{ race.kept.us / race.twice.us:.0%}}: {{ race.twice.us:.0f}} µs became {{ race.kept.us:.0f}}.
#
# /// table
# columns: ["LayerNorm, fp32", "time, µs", "% of bandwidth"]
# rows:
#   - ["eager", "{{ race.eager.us:.0f}}", "{{ race.eager.of_peak:.0%}}"]
#   - ["ours, in steps: x loaded twice", "{{ race.twice.us:.0f}}", "{{ race.twice.of_peak:.0%}}"]
#   - ["torch.compile", "{{ race.compiled.us:.0f}}", "{{ race.compiled.of_peak:.0%}}"]
#   - ["ours, the row kept: x loaded once", "{{ race.kept.us:.0f}}", "{{ race.kept.of_peak:.0%}}"]
# caption: "16384 rows of 4096 numbers, {{ tensor:.0f}} MB. The percentage counts two trips in each row, the least that the problem needs. {{ gpu.name }}."
# ///
# ///
#
# By bytes one trip of three is gone, if every load comes from memory. But a second load may find its row in a cache, and then it is no trip: loads stand in the text of a kernel, trips do not. [Week 14](week_14.py#milestone) counts them. So a kernel that keeps its row is the one whose trips you know before it runs.
# At other shapes, 16 rows of millions of numbers, [W6](../workshops/w6_frontier.py#what-does-solved-mean) has the same race, and there a row fits into no block.
#
# ## What could not run here
#
# A whole model with its graph breaks: no page has a model that breaks, since ours were written not to. You would see a line for each in the log, and a kernel less fused at each.
#
# ## What next
#
# [Week 11](week_11.py) puts pictures into the prompt. If you came for kernels, [week 13](week_13.py) goes below Triton.
