# ---
# id: week_10
# title: "Week 10: torch.compile and Inductor"
# search: {rank: 2}
# nav: "10 · torch.compile"
# description: "What the compiler behind torch.compile fuses, what it hands to a library, where its graph breaks; and LayerNorm in one pass over memory, against PyTorch's."
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

ROWS, WIDTH, BYTES = 16384, 4096, 4  # of the LayerNorm below, in fp32

record(
    operators=quantity(
        5, how="counted"
    ),  # three products, silu, a product by number
    tensor=quantity(ROWS * WIDTH * BYTES / 1e6, "MB"),
    trips={
        "one": quantity(2, how="counted"),
        "two": quantity(3, how="counted"),
        "three": quantity(4, how="counted"),
    },
)

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
# So SiLU and the product by number were joined, and there is no graph break in the block, since nothing in it asks for a number. The products are walls: what comes after one could move into it only if it were a template of the compiler's own.
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
# And on the card? [W6](../workshops/w6_frontier.py#what-does-solved-mean) times it, 16384 rows of 4096 numbers: eager, which is `torch.nn.LayerNorm`'s own kernel, what the compiler wrote, and a kernel of ours in Triton, `k01_row_a_block`, which reads x twice, the second time from a cache if the row is still there.
#
# /// table
# columns: ["LayerNorm, fp32", "reads of x", "time, µs", "% of bandwidth"]
# rows:
#   - ["eager", "", "{{ w6.record_rows.model.eager.us:,.0f}}", "{{ w6.record_rows.model.eager.of_peak:.0%}}"]
#   - ["ours, a block for each row", "2", "{{ w6.record_rows.model.one.us:,.0f}}", "{{ w6.record_rows.model.one.of_peak:.0%}}"]
#   - ["torch.compile", "1", "{{ w6.record_rows.model.compile.us:,.0f}}", "{{ w6.record_rows.model.compile.of_peak:.0%}}"]
# caption: "The percentage counts two trips in each row, the least that the problem needs."
# ///
#
# /// claim | w6.record_rows.model.compile.us < 0.85 * w6.record_rows.model.one.us and w6.record_rows.model.compile.us < 0.85 * w6.record_rows.model.eager.us
# The kernel that keeps its row is ahead of both of the others: by a factor of {{ w6.record_rows.model.one.us / w6.record_rows.model.compile.us:.2f}} of ours, and by {{ w6.record_rows.model.eager.us / w6.record_rows.model.compile.us:.2f}} of eager. Ours does not lose the whole third trip, since a part of its second reading comes from a cache; nobody counted which.
# /// otherwise
# Here the kernel that keeps its row takes {{ w6.record_rows.model.compile.us:,.0f}} µs, and ours, which reads twice, {{ w6.record_rows.model.one.us:,.0f}}.
# ///
#
# ## What could not run here
#
# A whole model with its graph breaks: no page has a model that breaks, since ours were written not to. You would see a line for each in the log, and a kernel less fused at each. And a LayerNorm written by hand that keeps its row: the one timed here was written by
# the compiler, and yours moves the same bytes.
#
# ## What next
#
# [Week 11](week_11.py) puts pictures into the prompt. If you came for kernels, [week 13](week_13.py) goes below Triton.
