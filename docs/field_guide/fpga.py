# ---
# id: field_fpga
# title: "FPGAs: your multiply becomes the circuit"
# nav: FPGAs
# description: "What hls4ml makes of our multiply and our attention for an FPGA, run bit by bit on a CPU: numbers that wrap, multipliers that are shared, a softmax from tables; HLS and Vitis AI."
# ---

# %% [markdown]
# # FPGAs: your multiply becomes the circuit
#
# By the end of this page you can
#
# - say what you choose on an FPGA that a GPU has chosen for you;
# - count the multipliers of a multiply, and trade them for time;
# - find out, without an FPGA, where a number of fixed point goes wrong.
#
# **In one sentence:** an FPGA has no instructions: it is a field of small parts whose wires you choose, so each product can have a
# multiplier of its own, and each number as many bits as you pay for.
#
# /// figure | docs/assets/figures/reuse_factor.svg
# alt: "Above, four multipliers side by side feed one adder, and the next sum may begin in the next cycle. Below, one multiplier takes the four products in turn, and the next sum may begin four cycles on."
# caption: "A sum of four products, twice. The reuse factor says how many turns a multiplier takes."
# ///
#
# /// callout | trip
# **Nothing on this page has run on an FPGA.** *Run here on a CPU*: the C++ that hls4ml writes for the circuit, which computes the
# circuit's bits; no clock is in it. *Estimated*: a time that was asked for, and that no tool has met. *Cited*: somebody else
# says so. *Measured here*: on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import quantity, record

record(
    fpga=told("fpga", products="nnet::einsum", softmaxes="nnet::softmax"),
    larger={"multipliers": quantity(32**3)},  # of the exercise
)

# %% [markdown]
# ## What hls4ml makes of our multiply
#
# **HLS**, high-level synthesis, turns C++ into a circuit: where a loop is unrolled, each pass of it becomes parts of its own.
# hls4ml writes such C++ from a module of PyTorch:
#
# /// source | src/course_chips/fpga_circuits.py#circuits
# fold: The modules
# size: true
# ///
#
# All sizes are part of it: 16 × 16 times 16 × 16. The top of what it writes is short. `#pragma HLS` are orders to the tool.
# `PIPELINE` says: begin the next multiply before this one is done.
#
# /// text | fpga.multiply_hls.excerpt
# ///
#
# That one call of `einsum` has {{ fpga.multiply_hls.multipliers:.0f}} products, and hls4ml allows as many multipliers. A *reuse
# factor* shares them:
#
# /// table
# turned: true
# columns: [reuse factor, multipliers, "next multiply, ns (estimated)", "answers that change"]
# rows:
#   - ["1", "{{ fpga.ran.reuse.by_1.multipliers:.0f}}", "{{ fpga.ran.reuse.by_1.estimated_ns:.0f}}", "{{ fpga.ran.reuse.by_1.different:.0f}}"]
#   - ["4", "{{ fpga.ran.reuse.by_4.multipliers:.0f}}", "{{ fpga.ran.reuse.by_4.estimated_ns:.0f}}", "{{ fpga.ran.reuse.by_4.different:.0f}}"]
#   - ["16", "{{ fpga.ran.reuse.by_16.multipliers:.0f}}", "{{ fpga.ran.reuse.by_16.estimated_ns:.0f}}", "{{ fpga.ran.reuse.by_16.different:.0f}}"]
# caption: "The time is the factor times the clock that hls4ml asks for: an estimate of when the next one may begin, not of when this one ends. Answers were run here on a CPU."
# ///
#
# ## Sixteen bits, six of them before the point
#
# hls4ml's default type is `ap_fixed<16,6>`: fixed point, from −32 up to a step below 32, in steps of 1/1024.
#
# /// predict | A row of A is 1, 1, 1, 1, and a column of B is 10, 10, 10, 2. What does the circuit answer?
# - [fpga.ran.fits.default > 31] Just below 32, the largest number that it has
# - [0 <= fpga.ran.fits.default <= 31] Something between 0 and 31
# - [fpga.ran.fits.default < 0] Something negative
# /// reveal
# {{ fpga.ran.fits.default:.0f}}. What does not fit **wraps** around, and nothing warns. With `ap_fixed<16,6,AP_RND_CONV,AP_SAT>` it stays
# at the end of the scale: {{ fpga.ran.fits.saturating:.3f}}. That costs parts, so it is not the default.
# ///
#
# ### Cutting off always goes down {.beyond}
#
# Now random numbers, and none of the {{ fpga.ran.types.default.answers:.0f}} sums is near 32. The default type also **truncates**: it cuts off the bits that do
# not fit, behind each of 16 products.
#
# /// predict | How many of the {{ fpga.ran.types.default.answers:.0f}} answers are too low?
# - [fpga.ran.types.default.too_low < 0.25 * fpga.ran.types.default.answers] A few: such errors cancel
# - [0.25 * fpga.ran.types.default.answers <= fpga.ran.types.default.too_low <= 0.75 * fpga.ran.types.default.answers] About half of them
# - [fpga.ran.types.default.too_low > 0.75 * fpga.ran.types.default.answers] Nearly all of them
# /// reveal
# {{ fpga.ran.types.default.too_low:.0f}}. Cutting off always goes down, so errors add up: the mean error is {{ fpga.ran.types.default.mean:.4f}}, or
# {{ abs(1024 * fpga.ran.types.default.mean):.1f}} steps: about half a step for each product.
#
# /// table
# turned: true
# columns: [type, worst error, mean error, too low, off by more than 1]
# rows:
#   - ["<code>&lt;16,6&gt;</code>", "{{ fpga.ran.types.default.worst:.4f}}", "{{ fpga.ran.types.default.mean:.4f}}", "{{ fpga.ran.types.default.too_low:.0f}}", "{{ fpga.ran.types.default.far_off:.0f}}"]
#   - ["<code>&lt;16,6&gt;</code>, rounds, saturates", "{{ fpga.ran.types.saturating.worst:.4f}}", "{{ fpga.ran.types.saturating.mean:.4f}}", "{{ fpga.ran.types.saturating.too_low:.0f}}", "{{ fpga.ran.types.saturating.far_off:.0f}}"]
#   - ["<code>&lt;10,6&gt;</code>", "{{ fpga.ran.types.short.worst:.2f}}", "{{ fpga.ran.types.short.mean:.2f}}", "{{ fpga.ran.types.short.too_low:.0f}}", "{{ fpga.ran.types.short.far_off:.0f}}"]
#   - ["<code>&lt;16,4&gt;</code>", "{{ fpga.ran.types.narrow.worst:.2f}}", "{{ fpga.ran.types.narrow.mean:.2f}}", "{{ fpga.ran.types.narrow.too_low:.0f}}", "{{ fpga.ran.types.narrow.far_off:.0f}}"]
#   - ["<code>&lt;16,4&gt;</code>, rounds, saturates", "{{ fpga.ran.types.narrow_saturating.worst:.2f}}", "{{ fpga.ran.types.narrow_saturating.mean:.2f}}", "{{ fpga.ran.types.narrow_saturating.too_low:.0f}}", "{{ fpga.ran.types.narrow_saturating.far_off:.0f}}"]
# caption: "Run here on a CPU, against float64. With four bits before the point the scale ends at 8."
# ///
# ///

# %% [markdown]
# ## And of our attention {.beyond}
#
# One query passes at a time, through {{ fpga.attention_hls.products:.0f}} products of matrices and a softmax. There is no unit for an exponential: a
# table of 1024 entries has it, and another has 1/x. The second has four entries for each whole number. So a sum just below 1.25 is
# read as 1, and all of this query's weights are too large.
#
# /// table
# turned: true
# columns: [entries of a table, "largest sum of one query's weights", "worst error of the answer"]
# rows:
#   - ["1024, the default", "{{ fpga.ran.softmax.of_1024.largest_sum:.3f}}", "{{ fpga.ran.softmax.of_1024.worst:.3f}}"]
#   - ["4096", "{{ fpga.ran.softmax.of_4096.largest_sum:.3f}}", "{{ fpga.ran.softmax.of_4096.worst:.3f}}"]
#   - ["16384", "{{ fpga.ran.softmax.of_16384.largest_sum:.3f}}", "{{ fpga.ran.softmax.of_16384.worst:.3f}}"]
# caption: "Run here on a CPU. Weights ought to sum to 1."
# ///
#
# We had a worse surprise. Given all 16 queries at once, hls4ml 1.3.0 takes the module, builds it, and its softmax goes over all
# {{ fpga.ran.all_rows.softmax_over:.0f}} scores together: the weights of *all* queries sum to {{ fpga.ran.all_rows.all_sums:.2f}}. `Softmax(dim=-1)` of a matrix loses its
# `dim` on the way from PyTorch. Our check against float64 saw it; no message did.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where an answer must come within a microsecond, and always after the same time. A small transformer that sorts
#   particle collisions answers in about 100 ns [^laatu2025]; an earlier one took less than 2 µs [^jiang2024].
# - **"FPGAs enable sub-microsecond inference"** is true of *that*: small networks of few bits, wholly on the chip. It is not true of a
#   large language model, whose weights must come from memory for each token, on an FPGA as anywhere.
# - **It trips** over large matrices: a product for each multiplier is soon more multipliers than there are.
# - **It trips** over time: yours. A change of one line is a new circuit, whose parts and wires a tool must place anew.
# - **Vitis AI** is AMD's other way: you lay no wires, but load a finished engine, the DPU, and compile your network for it
#   [^vitis-ai]. Its quantiser makes weights and activations integers of 8 bits [^vitis-ai-quantizer].

# %% [markdown]
# ## The numbers that matter
#
# | | |
# | --- | --- |
# | multipliers (*DSP slices*) of a platform in AMD's guide | 5880 [^amd-ug1702] |
# | of a DPU with 4 engines, for networks of convolutions | 2080 [^amd-pg367] |
# | of our multiply of 16 × 16 × 16, reuse factor 1 | {{ fpga.multiply_hls.multipliers:.0f}}, *allowed by hls4ml* |
# | a whole small transformer, first bit in to last bit out | of the order of 100 ns [^laatu2025] |
# | {{ gpu.name }}: the host writes one order for a kernel, by PyTorch | {{ l2.order.torch.us * 1000:.0f}} ns, *measured here* |
# | {{ gpu.name }}: a tiny kernel, in a graph | {{ l2.chain.replayed.us * 1000:.0f}} ns, *measured here* |
#
# Read the last two beside the one above them: a GPU has not begun when such a circuit is done. *Measured here* as well: the same
# card's multiply of 8192 × 8192 × 8192 reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and a circuit with a part for each
# of those products fits on no chip.
#
# The guide of hls4ml names what you steer: size, precision, and how far multipliers are reused [^hls4ml-concepts].
#
# ## What to type
#
# ```
# nox -s chips -- fpga
# ```
#
# That writes, compiles and runs all circuits of this page with the `g++` of your machine. These made them:
#
# /// text | fpga.compilers
# fold: "Compilers and their versions"
# ///
#
# **Where the course teaches it:** what a shorter number costs, [shorter numbers](../lectures/l6_tensor_cores.py#shorter-numbers); what
# an order costs, [two things at once](../lectures/l2_the_cuda_model.py#two-things-at-once-streams); why softmax subtracts the
# largest score first, [softmax, one crate at a time](../workshops/w1_flash_attention.py#softmax-one-crate-at-a-time).
#
# /// exercise | Twice as large in each direction | 4 minutes
# You want 32 × 32 times 32 × 32 on the platform of the table, each product with a slice of its own. Does it fit? If not, which reuse factor
# is the least, and which is the least power of two?
# /// answer
# There are {{ larger.multipliers:.0f}} products, and 5880 slices [^amd-ug1702]: it does not fit. With each
# slice used 6 times there are {{ larger.multipliers / 6:.0f}}, and that fits on paper, with little left for anything else. 8 is the power of two,
# {{ larger.multipliers / 8:.0f}} slices. Then a new multiply begins only every 8 cycles.
# ///
