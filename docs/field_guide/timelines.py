# ---
# id: field_timelines
# title: "Events and timelines: when did the card do what?"
# nav: Events and timelines
# description: "What a pair of CUDA events measures and what it does not, how one stream waits for another, and which profiler draws the timeline: Nsight Systems, Nsight Compute, PyTorch's own."
# ---

# %% [markdown]
# # Events and timelines: when did the card do what?
#
# By the end of this page you can
#
# - time a piece of work with two events, and name two things that are in that time beside the work;
# - make one stream wait for another, without the host;
# - choose a profiler by your question.
#
# **In one sentence:** an event is a mark that the card stamps with its own clock when it has done all that stands before it in the
# stream, and a timeline is what you get when every kernel has two such stamps.
#
# /// figure | docs/assets/figures/two_marks.svg
# alt: "Two lanes over time. Above, the host writes four short orders: mark, kernel A, and after a pause kernel B and another mark. Below, the card stamps the first mark, runs A, stands idle in a gap, runs B, and stamps the second mark. The time between the two stamps includes the gap."
# caption: "The host's clock sees the upper lane. The two marks see the lower one, with its gap."
# ///
#
# /// callout | trip
# *Cited*: a manual says so. *Measured here*: on our own card, {{ gpu.name }}, by the lessons. We ran no Nsight Systems: its commands are
# cited, and the timeline is PyTorch's.
# ///

# %% tags=["fold"]
from course_kernels.measure import quantity, record

KERNELS, ORDER_US, KERNEL_US = 100, 10, 4
record(
    drill={
        "kernels": quantity(KERNELS, how="given"),
        "order": quantity(ORDER_US, "µs", how="given"),
        "kernel": quantity(KERNEL_US, "µs", how="given"),
        "apart": quantity(((KERNELS - 1) * ORDER_US + KERNEL_US) / 1e3, "ms"),
        "together": quantity(KERNELS * KERNEL_US / 1e3, "ms"),
    },
)

# %% [markdown]
# ## The host's clock and the card's
#
# A launch is an order. The host writes it down and goes on; the card works later.
#
# /// predict | A copy of 256 MiB from pinned memory takes the bus {{ l2.transfer.pinned_in.ms:.1f}} ms. You read Python's clock before and behind the call, and wait for nothing. What does it say?
# - [l2.transfer_order.pinned_in.us > 0.5 * l2.transfer.pinned_in.us] About as long
# - [0.1 * l2.transfer.pinned_in.us <= l2.transfer_order.pinned_in.us <= 0.5 * l2.transfer.pinned_in.us] A tenth of that to a half
# - [l2.transfer_order.pinned_in.us < 0.1 * l2.transfer.pinned_in.us] Less than a tenth
# /// reveal
# {{ l2.transfer_order.pinned_in.us:.0f}} µs. That is what it costs to write the order. The copy has hardly begun.
# ///
#
# So let the card read its own clock:
#
# ```python
# begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
# begin.record()          # an order like any other: stamp me when you come by
# work()
# end.record()
# end.synchronize()       # now the host waits, for this mark alone
# ms = begin.elapsed_time(end)
# ```
#
# An event without `enable_timing` has no time [^torch-event]. The stamps are about half a microsecond fine [^cuda-event-time].
#
# **What is in that time beside the work?**
#
# - *Gaps.* If the host is late with its next order, the card waits, and the marks count it.
# - *Neighbours.* What other streams do between the two marks is not yours, and slows yours down; NVIDIA warns of it [^cuda-event-time].
#
# So to time a kernel, give its orders ahead: [how we measure](../how_we_measure.py#the-clock) keeps the card busy until all marks are
# written.
#
# ### And in a whole step? {.beyond}
#
# /// predict | One token of our plain model takes the card {{ l7.step.plain.us / 1e3:.0f}} ms, from its first kernel to its last, while a profiler watches. That is what two events around it would say. In how much of that time does the card work?
# - [l7.step.plain.share > 0.7] In most of it
# - [0.3 <= l7.step.plain.share <= 0.7] In about half
# - [l7.step.plain.share < 0.3] In less than a third
# /// reveal
# {{ l7.step.plain.share:.0%}}. The rest are gaps, in which the host writes orders. No pair of events shows that. [A timeline does](../lectures/l7_profiling.py#gaps-between-the-kernels): with one
# sheet of orders, a CUDA graph, as many kernels were done in {{ l7.step.graph.us / 1e3:.0f}} ms.
# ///

# %% [markdown]
# ## One stream waits for another
#
# The second use of an event needs no clock. In [double buffering](../lectures/l2_the_cuda_model.py#in-grey-out) a kernel may begin when its copy has arrived:
#
# ```python
# with torch.cuda.stream(copies):
#     frame.copy_(pinned, non_blocking=True)
#     arrived.record()
# with torch.cuda.stream(kernels):
#     kernels.wait_event(arrived)     # the card waits, not the host
#     grey(frame)
# ```
#
# Without that line it is a race, and often a right answer: the worst kind. The way back needs one, too: the next copy must wait until `grey` has
# read.

# %% [markdown]
# ## When it wins, when it trips
#
# - **Two events win** for a piece of work that you know.
# - **A timeline wins** when you do not know where the time goes.
# - **Counters win** when one kernel is slow, and you ask why. Nsight Compute runs it several times to read them all.
# - **It trips** over the first call, which compiles, and over a cache that is still warm.
# - **It trips** over the watcher. A profiler makes each order dearer: take times with events.

# %% [markdown]
# ## The numbers that matter
#
# | you ask | take | you see |
# | --- | --- | --- |
# | how long does this take? | `torch.cuda.Event` | one time |
# | where are the gaps, over all of the program? | Nsight Systems, `nsys` | the host's threads, orders, kernels, copies, over time |
# | the same, by PyTorch's operators | `torch.profiler` | operators and the kernels behind them |
# | what does this kernel wait for? | Nsight Compute, `ncu` | counters, stall reasons, a roofline |
#
# *Measured here*, on {{ gpu.name }}: an order costs {{ l2.order.torch.us:.1f}} µs in a bare loop of PyTorch, and {{ l2.chain_order.replayed.us:.2f}} µs from a graph.
#
# ## What to type
#
# ```
# nsys profile -t cuda,nvtx,osrt --delay=30 --duration=5 --kill=none -o step python train.py
# nsys stats step.nsys-rep
# ```
#
# The first traces CUDA's orders, your marks and the system [^carilli-nsys]; the second prints sums [^nsys-analysis]. Watch a few steps, not
# an hour: `--delay` waits so many seconds from the start, past compiling and warming up, and `--duration` ends after so many more. Without `--kill=none` your program ends with it [^nsys-guide].
#
# Name your regions with `torch.cuda.nvtx.range_push("attention")` and `range_pop()`. If seconds are too coarse a cut, let the program itself
# say where: with `--capture-range=cudaProfilerApi` nothing is traced before `torch.cuda.profiler.start()` and after `stop()` [^nsys-guide].
#
# **Where the course teaches it:** [two things at once](../lectures/l2_the_cuda_model.py#two-things-at-once-streams), [gaps between the
# kernels](../lectures/l7_profiling.py#gaps-between-the-kernels), and [the clock](../how_we_measure.py#the-clock).
#
# /// exercise | A hundred small kernels | 5 minutes
# A loop launches {{ drill.kernels:.0f}} kernels into one stream. Assume {{ drill.kernel:.0f}} µs for each on the card, and {{ drill.order:.0f}} µs for an order of the host.
#
# 1. The host has just begun when the card stamps the first mark. What do two events around the loop say?
# 2. The card is busy with something else until all orders are written, and only then comes to the first mark. What do they say now?
# 3. Which of the two is *the time of the kernels*, and which is what your program will feel?
# /// answer
# 1. Each kernel waits for its order: {{ drill.apart:.2f}} ms.
# 2. They run one behind the other, {{ drill.together:.1f}} ms, if nothing is between them.
# 3. The second, and the first. Write both down: the gap between them is what a graph, or fewer and larger kernels, could give you.
# ///
