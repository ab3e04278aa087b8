# ---
# id: measured
# title: How every number here is measured
# section: The evidence
# order: 1
# description: The life of a number, the cheats we try on ourselves, and this card beside its own data sheet.
# needs: gpu
# ---

# %% [markdown]
# # How every number here is measured
#
# A number on the web is a plate without a kitchen. You cannot see who cooked it, or on what stove.
#
# When you are through with this page you can
#
# - say what had to happen before a number was allowed onto this site;
# - try fifteen ways to fool us, and read what we answered;
# - tell noise from a difference;
# - take any number here and make it again on your own card.
#
# It is also the page where we weigh our own scales. Everything below ran on the card named under the title.

# %% [markdown]
# ## The life of a number
#
# /// figure | docs/assets/figures/life_of_a_number.svg
# alt: "Two rows of boxes. Upper row, on a GPU: a kernel is checked, and refused if wrong, then timed; the samples go into a record. Lower row, on any machine: the record passes a gate that stops if a file has changed, is rendered into values, charts and tested claims, and becomes the page and the ledger."
# caption: The upper half needs a GPU. The lower half never does.
# ///
#
# Follow one number from the left to the right.
#
# 1. **Check.** The kernel gets fresh random inputs. Its answer is held against a truth worked out in double
#    precision. No right answer, no stopwatch.
# 2. **Time.** It runs many times, in turns with its competitors. We keep the samples, not a verdict. Then
#    its last answer is checked again.
# 3. **Record.** The samples go into a file, with the card, its clocks, its power, the versions, the date,
#    and a fingerprint of every file that ran. Nobody edits that file; a seal shows if somebody did.
# 4. **Render.** Later, on any machine, the page is filled from the record. If one of those files has
#    changed its meaning since, the build stops: those samples belong to a kernel that no longer exists.
# 5. **Speak.** Prose takes its numbers from the record. A sentence that compares two of them carries its
#    condition. When the condition fails, so does the build.
#
# So changing a sentence never needs a GPU, and changing a kernel always does. There is no third road by
# which a number could get here. A small program, a lint, reads every page, caption and comment and refuses a
# speed that somebody typed.

# %% [markdown]
# ## First taste, then time
#
# A wrong kernel is easy to make quick: leave out the work. So before we trust our scales, we try to cheat
# them.
#
# The job is as plain as can be: multiply every row of a matrix by its own number,
# `y[m, n] = s[m] * x[m, n]`. Fifteen dishonest kernels claim to do it. Each fault is of a kind that
# people make, by accident or to win a race.
#
# /// predict | Many checkers ask: is the error greater than the tolerance? Then fail. Which cheat walks straight through?
# - [ ] Half the output is zeros
# - [x] The output is all NaN
# - [ ] One element in many millions is far off
# - [ ] The right answer to another matrix
# /// reveal
# The one that is **all NaN**. Every comparison with NaN is false, so *is the error greater than the
# tolerance?* is answered *no*, and the cheat passes with honours. Ask the other way round: *is the error
# within the tolerance?* Now NaN fails. It is one `not` in the code, and it is easy to get wrong.
# ///
#
# Each cheat is handed to the same `measure` that times every kernel of this course.

# %% tags=["show"]
from course_kernels.measure import record, refusal, text
from course_kernels.problem import Workload
from course_kernels.refusals import cheats

square = Workload.of("float32", M=8192, N=8192)
record(
    refused={
        cheat.__name__: text(refusal(cheat, square)) for cheat in cheats.CHEATS
    }
)

# %% [markdown]
# What each one does, what we said, and what stopped it:
#
# 1. **Half-written** does the upper half; the rest is whatever lay there, often the last right answer.
#
#     > {{ refused.half_written }}
#
#     The memory for the output is **poisoned** with NaN before the kernel runs. What is not written, shows.
#
# 2. **All NaN** writes no number at all.
#
#     > {{ refused.all_nan }}
#
#     The test reads *not error ≤ allowed*, so NaN fails it.
#
# 3. **Wrong axis** scales the columns.
#
#     > {{ refused.wrong_axis }}
#
#     Every element is held against the truth, in its place.
#
# 4. **One element off** has all the others right.
#
#     > {{ refused.one_element_off }}
#
#     The **worst** element is judged, not an average. An average over millions forgives one wrong number.
#     Yours will be that one.
#
# 5. **NaN clamped** tidies up: a NaN becomes 0, an infinity the largest number there is.
#
#     > {{ refused.nan_clamped }}
#
#     Random inputs hold no NaN, so nobody would notice. We **plant** one, at a place drawn at random, beside
#     infinities, zeros and very large numbers. Where the truth is NaN, the answer must be NaN. Not every job
#     can keep that promise: what a problem leaves out, its contract says, with the reason.
#
# 6. **Input modified** works in place, so that a second call would scale twice.
#
#     > {{ refused.input_modified }}
#
#     The inputs are compared **afterwards** with what they were.
#
# 7. **Cached result** answers once, and never looks again.
#
#     > {{ refused.cached_result }}
#
#     The same tensors are filled with **new values**, and we ask again. Yesterday's answer is wrong today.
#
# 8. **Watches versions** knows that trick. A tensor counts how often it was written to, and this one works
#    only when the count has moved.
#
#     > {{ refused.watches_versions }}
#
#     Our new values come in by the **back door**, past the counter.
#
# 9. **Same memory** is right each time, but puts every answer on the same plate.
#
#     > {{ refused.same_memory }}
#
#     The first answer is **still held** when we ask for the second. They must not share memory.
#
# 10. **View returned** stores the answer column by column and renames the axes. It looks right, and whoever
#     reads it next pays for the turning.
#
#     > {{ refused.view_returned }}
#
#     An answer must lie in **row-major order**. Where a problem allows another one, its contract says so.
#
# 11. **Lazy tensor** hands out a promise. The multiplying is done when somebody looks.
#
#     > {{ refused.lazy_tensor }}
#
#     Only a **plain** tensor counts, and we look at its kind before we look at its numbers.
#
# 12. **Truth stolen** cannot multiply at all. In Python a function can read the variables of whoever called
#     it, so it goes through our pockets for the right answer.
#
#     > {{ refused.truth_stolen }}
#
#     The pockets are empty. We work the truth out **after** the call, never before.
#
# 13. **Another stream** works on a queue that nobody waits for.
#
#     > {{ refused.another_stream }}
#
#     The stream is **held back** by other work, and the new values arrive behind it. Who works elsewhere
#     starts too early and cooks the old ones.
#
# 14. **Looks who asks** is right whenever the check calls it. When the clock calls, it serves leftovers.
#
#     > {{ refused.looks_who_asks }}
#
#     At a moment drawn at random, while the timing goes on, the inputs get new values. And when the last
#     sample is taken, the answer that was **timed** is checked, too.
#
# 15. **Faster than the floor** peeks at one number of its input, and works only when that has changed.
#
#     > {{ refused.faster_than_floor }}
#
#     This is the clever one: every check of its answer passes, since it works whenever the inputs are new.
#     Only **physics** catches it. Nobody moves these bytes in less time than the data sheet allows. A result
#     below its *floor* is refused, when it is measured and again when the page is built.
#
# Every line but the last ends with a **seed**. All random numbers of that check came out of it, so a refusal
# can be had again.

# %% [markdown]
# ## A kernel by a stranger
#
# All that protects us from our own mistakes. A contest, or a machine that writes kernels, is another matter: there
# somebody tries. A file that runs in our own process can rewrite the checker, and many have.
#
# So a stranger's kernel gets a kitchen of its own. `nox -s judge -- theirs.py --problem softmax` runs the file in a
# **process of its own**, and the judge stays outside:
#
# - **The judge draws the inputs and keeps the truth.** The other process never sees it. Sizes are among them that nobody
#   announced, and when all seems right it is asked again, nobody knows how often.
# - **The judge compares.** Answers lie in memory that both see, poisoned before each call. What the other process *says*
#   decides nothing: neither a line it prints, nor its exit code, nor a message it makes up.
# - **The judge has a clock of its own.** The process samples itself with events, which it may have patched. So the judge
#   times a batch of calls as well, each on inputs that are new, with every answer handed over. The samples are shown
#   where the two clocks agree. Where they cannot both be true, the file is refused.
# - **The process has limits:** time, memory, processes, what it prints. It may write in one folder, which is gone
#   afterwards, and it has no network. Whatever it starts is ended with it.
#
# More than a hundred cheats lie in `tests/judge/`, ours and those that others have published, each with its source. Our
# tests see each of them refused wherever it shows, without a card and on one, and honest files pass.
#
# The grader of the labs works the same way: your file runs in a process of its own, and the truth stays outside. It is a
# tutor all the same. On the sizes a lab announces it asks with the same numbers each time, so that you can come back to
# a complaint; once those are right, it asks for a size that stands nowhere, with numbers that nobody knows. Where no card
# is, Triton's kernels are watched as they are interpreted: a load past the end is named with its line.
#
# **What it does not stop**, so that you know:
#
# - A file that must do its own work (`--own`) is watched from inside of its own process. Who breaks that watch, by a
#   library of their own in C for example, can have another library do the work. The answer is right then, and the time is
#   true; the work is just not theirs.
# - A kernel may be right for all that we ask and wrong for what we do not. It may be as inexact as the contract allows.
# - Files that anybody may read, a stranger may read too. None of them holds a secret.
# - In a lab done in NumPy, how much a file holds at once is counted in its own process; that it calls nothing which would
#   do its work is watched there.
# - Without `--own` a store past the end of an answer goes unseen on a card. In Triton's interpreter it is seen.
# - Memory of the card has no limit but the card's own. A kernel that never ends holds the card until its time is up.
# - The walls are Linux's (Landlock, a network namespace). Where a system lacks one, the verdict says which.

# %% [markdown]
# ## The clock
#
# The taste was fine. Now the stopwatch. Seven habits, each against one way of fooling yourself.
#
# **A cold cache.** The GPU keeps what it used last in its L2 cache, a shelf that all rooms share. Time
# the same call again and the ingredients are already there. Real programs do other things in between. So
# before every sample we read a buffer several times the size of the shelf, until nothing of yours is left
# in it.
#
# **A warm stove.** The very first call compiles, allocates and wakes the clocks. We warm up by time, not by
# count, and only then start sampling.
#
# **Orders ahead.** A stopwatch in Python would mostly time Python. So we send the orders ahead: first the
# reading that clears the shelf, then a mark, the kernel, and a second mark. While the GPU is still busy
# clearing, Python is long done. The time between the two marks is taken by the GPU itself, and we look
# whether Python really was ahead. If it was not, the sample is taken again.
#
# **In turns.** Cards drift. They heat up, they slow down, they recover. If A runs for a second and then B,
# the second cook gets the hot kitchen. So competitors take turns, round after round, on the very same
# inputs. Whatever drifts, drifts for all of them. The order is drawn anew for every round: who always cooks
# behind the same colleague inherits his mess. A cook far slower than the others is called only every so many
# rounds, so that he does not eat their time.
#
# **In six blocks.** On which shelf a box of numbers ends up is luck, and it stays for as long as the box is
# there. A thousand samples from one shelf know nothing of the others. So the rounds come in six blocks. At
# the head of each all inputs are made anew, and everything lies somewhere else in memory. Samples within a
# block wobble. What differs *between* blocks is the part of the noise that a run can see of itself. The *spread*
# that we state holds this part and another one, which no run can see: how far runs on other days and other cards
# lie apart.
#
# **A last taste.** Somewhere in the last block, at a round drawn at random, the values in the inputs are
# changed without a word. After the last round the answers of the last timed calls are checked once more. Who
# was right as long as somebody looked, and then served the old plate, is caught here.
#
# **A look at the stove.** Clock, power, temperature and whatever holds the card back are read *while* a
# kernel runs, and kept for each kernel apart. The card renews what it tells only some ten times a second, so
# in a race its figures belong to nobody. When all is sampled and tasted, each kernel therefore runs alone, back
# to back, until the figures are its own. Those runs are no samples, and what they heat up no sample pays for.
#
# Sampling stops after a set time, with never fewer than 12 samples and never more than 1000. All that is
# drawn comes from one seed. It stands in the record, and in the refusal of every wrong answer; with it a run can
# be drawn again.

# %% [markdown]
# ## The same thing, twice
#
# How much does a number wobble when nothing at all has changed? Let the same kernel race against itself.

# %% tags=["show"]
from course_kernels.copy import k01_vectorised, library
from course_kernels.measure import compare, measure

GIB = 2**28  # fp32 numbers in one gibibyte

record(
    itself=compare(
        {"left": k01_vectorised, "right": k01_vectorised},
        Workload.of("float32", N=GIB),
    ),
    later=measure(k01_vectorised, Workload.of("float32", N=GIB)),
)

# %% [markdown]
# /// claim | abs(itself.left.us / itself.right.us - 1) < 0.06
# In turns, the kernel differs from itself by {{ abs(itself.left.us / itself.right.us - 1):.2%}}. Do not take that
# for all of the noise: it is one card, on one day. If you race it again, on another card of this model, we
# vouch for no more than that it stays below 6 %. A lead that may be noise gets no sentence from us. Short jobs are noisier:
# [the ledger](numbers.md) has the spread of each.
# /// otherwise
# In turns, the kernel differs from itself by {{ abs(itself.left.us / itself.right.us - 1):.2%}}. That is
# the noise of this card. A difference between two kernels of that size is no difference.
# ///
#
# Measured once more a moment later, on its own, it differs by {{ abs(itself.left.us / later.us - 1):.2%}}. Do
# not count on that. A run on its own carries with it whatever has drifted in between; taking turns leaves it
# out.

# %% [markdown]
# ## Whose time?
#
# The time we show is the card's. But somebody writes the order: Python looks at your tensors, asks for
# memory, and hands the job over. The stopwatch hides that on purpose, and so it would hide it from you. So
# every sample notes as well what its call cost the host. Take a copy so small that it is hardly there:

# %% tags=["show"]
record(small=measure(k01_vectorised, Workload.of("float32", N=2**18), seconds=0.1))

# %% [markdown]
# /// claim | small.host_us > 2.8 * small.us
# One mebibyte is copied in {{ small.us:.1f }} µs. Asking for it takes the host {{ small.host_us:.1f }} µs. Call
# it over and over, and the card waits for Python most of the time. What you can do about it is in
# [L2](lectures/l2_the_cuda_model.py).
# /// otherwise
# One mebibyte is copied in {{ small.us:.1f }} µs. Asking for it takes the host {{ small.host_us:.1f }} µs.
# ///
#
# Where the host cannot hide, because a call waits for the card itself, the sample has timed the host. It is
# taken again. If that does not help, it is counted, and the ledger says how many there were.

# %% [markdown]
# ## What is stored, what is worked out
#
# The record of a run holds the **samples**, in microseconds, at most 200 of each kernel, and the quantiles
# of all of them and the median of every block. It holds the bytes and operations that the problem demands.
# It holds clocks, power, temperature and any reason the card gave for slowing down, while each kernel ran.
#
# It holds no percent, no TFLOP/s and no ratio. Those are worked out when the page is built. If a formula of
# ours is wrong, we mend it without a GPU, and every page is right again.
#
# | word | what it means here |
# |---|---|
# | time | the **median** of the samples: the middle one, which a few hiccups cannot move |
# | spread | how far off the median may be when somebody measures again on another card of the same model: it lies within the spread, up or down, nineteen times of twenty |
# | floor | the least possible time: the larger of *bytes ÷ bandwidth* and *operations ÷ arithmetic peak*, both from the data sheet |
# | % of peak | the problem's bytes or operations, divided by the time, as a share of that peak: the one headline of this course |
# | *computed* bytes | what the problem must move at the very least, from its shapes |
# | *counted* bytes | what the memory chips really moved, read from the card's own counters |
#
# Mind the last two. A kernel that fetches the same number ten times moves ten times the bytes, but the
# problem still needs it once. *Computed* bytes make the yardstick; *counted* bytes explain the gap. A page
# always says which one it shows. The counters need the tool `ncu` and the permission to use it; where they
# are missing you see no counted number at all, rather than a guess.
#
# One fine point. The last writes may still sit in the L2 cache when the clock stops. So the floor that
# *refuses* a number forgives as many written bytes as the L2 can hold: it must never turn an honest kernel
# away. The *percent* counts every byte. For jobs not much larger than the cache it can therefore flatter a
# little, which is why our headlines use sizes far beyond it.

# %% [markdown]
# ## When a sentence fails
#
# Here is how a comparing sentence is written in the source of a page:
#
# ````
# /// claim | ours.us < theirs.us
# Ours needs {{ ours.us }} µs, theirs {{ theirs.us }}.
# /// otherwise
# Theirs is quicker on this card, and here is why.
# ///
# ````
#
# On the page such a sentence carries a mark, *tested*. Tap it and you read its condition, in words and as it is written.
#
# The build asks: if this were measured again, on another card of the same model, would the sentence still be
# true? It draws a thousand such runs. Each moves the medians as far as the blocks of this run lie apart, and
# then as far as runs made apart lie apart. What slowed both competitors in one block, or all of a card,
# moves both, and falls out of their ratio.
#
# - True in 99 of 100 of them: the sentence stands.
# - True in 1 of 100 or fewer: it is false. The build stops and names it.
# - Between the two: **too close to call**. In the records that we publish that stops the build as well. A
#   margin inside the spread is no sentence. If you measure again on a card of this model, it does not stop
#   you: your page shows the *otherwise*, or says that it was too close to call on your run.
#
# Most pages are of one model of card, and so their numbers may be held against each other. A page that this card has not seen yet is
# shown as another one measured it. It says so at its head, and no sum of ours mixes the two.
#
# On another model no sentence stops the build; the page shows the *otherwise*.
#
# How far do runs made apart lie apart? No run can know that of itself. So every measuring of a page is kept,
# with the number of its card, and [the ledger](numbers.md) says what they have taught us so far.
#
# A condition can also be too easy. So the build halves and doubles every name in it, one at a time. If
# nothing makes it false, the sentence says nothing, and that fails as well.
#
# It cuts both ways, and that is the point. When a library gets better, our proud sentence turns false and
# somebody has to take it down.

# %% [markdown]
# ## The card against its own data sheet
#
# The percent of peak you read everywhere on this site is a percent of the *data sheet*: dense arithmetic,
# and main memory [^nvidia-h200]. It is a promise for a card that never gets hot and a memory that never
# pauses. How much of it can anyone have? Let us see what two plain jobs reach: a copy, and the library's
# own matrix multiply. What all the others reach stands on a page of its own,
# [every kernel on one roofline](all_kernels.md).

# %% tags=["show"]
from course_kernels.gemm import library as tensor_cores
from course_kernels.sgemm import library as cuda_cores

copies = {}
for gib in (1, 4):
    copies[f"gib{gib}"] = compare(
        {"ours": k01_vectorised, "torch": library.torch_copy},
        Workload.of("float32", N=gib * GIB),
    )
record(copy=copies)

# %% tags=["show"]
multiply = {"bf16": {}, "fp16": {}, "tf32": {}, "fp32": {}}
for size in (4096, 8192):
    dims = {"M": size, "N": size, "K": size}
    for math, dtype in {
        "bf16": "bfloat16",
        "fp16": "float16",
        "tf32": "float32",
    }.items():
        multiply[math][f"n{size}"] = measure(
            tensor_cores.cublas, Workload.of(dtype, **dims)
        )
    multiply["fp32"][f"n{size}"] = measure(
        cuda_cores.cublas, Workload.of("float32", **dims)
    )
record(multiply=multiply)

# %% [markdown]
# /// chart | bars
# title: What plain jobs reach of the data sheet
# x_label: "% of the data sheet's peak"
# bars:
#   - {name: 100 * copy.gib4.ours.of_peak, label: "copy, 4 GiB, ours"}
#   - {name: 100 * copy.gib4.torch.of_peak, label: "copy, 4 GiB, PyTorch"}
#   - {name: 100 * multiply.bf16.n4096.of_peak, label: "bf16 multiply, 4096"}
#   - {name: 100 * multiply.bf16.n8192.of_peak, label: "bf16 multiply, 8192"}
#   - {name: 100 * multiply.fp16.n8192.of_peak, label: "fp16 multiply, 8192"}
#   - {name: 100 * multiply.tf32.n8192.of_peak, label: "TF32 multiply, 8192"}
#   - {name: 100 * multiply.fp32.n8192.of_peak, label: "fp32 multiply, 8192"}
# references:
#   - {label: data sheet, value: 100}
# alt: "Bars of percent of peak. Copying four gibibytes reaches {{ copy.gib4.ours.of_peak:.0%}} with our kernel and {{ copy.gib4.torch.of_peak:.0%}} with PyTorch. Multiplying 8192 square matrices by cuBLAS reaches {{ multiply.bf16.n8192.of_peak:.0%}} in bf16, {{ multiply.fp16.n8192.of_peak:.0%}} in fp16, {{ multiply.tf32.n8192.of_peak:.0%}} in TF32 and {{ multiply.fp32.n8192.of_peak:.0%}} in fp32."
# caption: All multiplies by cuBLAS, called through PyTorch.
# ///
#
# /// table
# columns: [job, "% of data sheet", measured]
# rows:
#   - ["copy 1 GiB, our kernel", "{{ copy.gib1.ours.of_peak:.1%}}", "{{ copy.gib1.ours.gb_per_s:.0f }} GB/s"]
#   - ["copy 1 GiB, PyTorch", "{{ copy.gib1.torch.of_peak:.1%}}", "{{ copy.gib1.torch.gb_per_s:.0f }} GB/s"]
#   - ["copy 4 GiB, our kernel", "{{ copy.gib4.ours.of_peak:.1%}}", "{{ copy.gib4.ours.gb_per_s:.0f }} GB/s"]
#   - ["copy 4 GiB, PyTorch", "{{ copy.gib4.torch.of_peak:.1%}}", "{{ copy.gib4.torch.gb_per_s:.0f }} GB/s"]
#   - ["bf16 multiply, 4096", "{{ multiply.bf16.n4096.of_peak:.1%}}", "{{ multiply.bf16.n4096.tflops:.0f }} TFLOP/s"]
#   - ["bf16 multiply, 8192", "{{ multiply.bf16.n8192.of_peak:.1%}}", "{{ multiply.bf16.n8192.tflops:.0f }} TFLOP/s"]
#   - ["fp16 multiply, 4096", "{{ multiply.fp16.n4096.of_peak:.1%}}", "{{ multiply.fp16.n4096.tflops:.0f }} TFLOP/s"]
#   - ["fp16 multiply, 8192", "{{ multiply.fp16.n8192.of_peak:.1%}}", "{{ multiply.fp16.n8192.tflops:.0f }} TFLOP/s"]
#   - ["TF32 multiply, 4096", "{{ multiply.tf32.n4096.of_peak:.1%}}", "{{ multiply.tf32.n4096.tflops:.0f }} TFLOP/s"]
#   - ["TF32 multiply, 8192", "{{ multiply.tf32.n8192.of_peak:.1%}}", "{{ multiply.tf32.n8192.tflops:.0f }} TFLOP/s"]
#   - ["fp32 multiply, 4096", "{{ multiply.fp32.n4096.of_peak:.1%}}", "{{ multiply.fp32.n4096.tflops:.1f }} TFLOP/s"]
#   - ["fp32 multiply, 8192", "{{ multiply.fp32.n8192.of_peak:.1%}}", "{{ multiply.fp32.n8192.tflops:.1f }} TFLOP/s"]
# ///
#
# /// claim | max(copy.gib4.ours.of_peak, copy.gib4.torch.of_peak) < 0.98
# Even the better of two copies, the plainest job of all, stays at
# {{ max(copy.gib4.ours.of_peak, copy.gib4.torch.of_peak):.0%}}. Most likely memory stops to refresh, to open
# rows, to turn around between reading and writing; how much each of these takes, we have not measured. But when a
# kernel of yours that lives on bytes reaches as much as the best copy, look for your next gain elsewhere.
# /// otherwise
# The better copy reaches {{ max(copy.gib4.ours.of_peak, copy.gib4.torch.of_peak):.0%}}: on this card the data
# sheet's bandwidth can very nearly be had.
# ///
#
# /// claim | copy.gib4.torch.us < 1.03 * copy.gib4.ours.us
# Whose copy is the better one? PyTorch hands the job to the driver's own, and that needs
# {{ copy.gib4.torch.us / copy.gib4.ours.us:.1%}} of our time. On another card the two may stand otherwise, so we
# give no prize. Only one thing we do rule out: that ours leads by more than 3 %.
# /// otherwise
# Our copy and PyTorch's, which is the driver's own, are close here:
# {{ copy.gib4.torch.us / copy.gib4.ours.us:.1%}} of our time.
# ///
#
# /// claim | multiply.bf16.n8192.of_peak < 0.85
# The bf16 multiply stays at {{ multiply.bf16.n8192.of_peak:.0%}}, in the hands of people who do nothing
# else. Memory is hardly to blame: a multiply of this size uses every number it fetches thousands of times.
# A part of what is missing, you can watch going missing.
# /// otherwise
# The bf16 multiply reaches {{ multiply.bf16.n8192.of_peak:.0%}}. What keeps it from more on most cards, you
# can watch next.
# ///

# %% [markdown]
# ## The card has a limit
#
# Every card has a power limit, and it enforces it itself: when it draws too much, it lowers its own clock.
# A short job can be over before that happens. A long one cannot.
#
# Let the card rest. Then multiply bf16 matrices of 8192 × 8192, one right after the other, for six seconds.
# Meanwhile, read the card's power and its clock.

# %% tags=["fold"]
import statistics
import time

import torch
from course_kernels.measure import quantity, trace
from course_kernels.measure.sensors import snapshot

SIZE, PER_BURST = 8192, 24
a, b = (torch.randn(SIZE, SIZE, device="cuda").bfloat16() for _ in range(2))
c = torch.empty_like(a)
flops = 2 * SIZE**3 * PER_BURST


def mark():
    """A mark in the GPU's own queue."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def bursts(seconds):
    """Multiply without a pause; one row per burst: end in s, TFLOP/s, W, MHz."""
    rows, marks = [], [mark()]
    while not rows or rows[-1][0] < seconds:
        for _ in range(PER_BURST):
            torch.mm(a, b, out=c)
        marks.append(mark())
        if (
            len(marks) > 2
        ):  # one burst is always queued behind, so the card never idles
            marks[-2].synchronize()
            burst_s = marks[-3].elapsed_time(marks[-2]) / 1e3
            end_s = marks[0].elapsed_time(marks[-2]) / 1e3
            card = snapshot()
            rows.append(
                (end_s, flops / burst_s / 1e12, card["power_w"], card["sm_mhz"])
            )
    torch.cuda.synchronize()
    return rows


def rested():
    """TFLOP/s of a few multiplies after a second of rest."""
    time.sleep(1)
    few = 8
    before = mark()
    for _ in range(few):
        torch.mm(a, b, out=c)
    after = mark()
    after.synchronize()
    return flops / PER_BURST * few / (before.elapsed_time(after) / 1e3) / 1e12


bursts(0.1)  # warm up: load the library, wake the clocks
fresh = [rested() for _ in range(5)]
time.sleep(2)
long_run = bursts(6)
t_s, tflops, power_w, sm_mhz = (
    list(column) for column in zip(*long_run, strict=True)
)
record(
    long_run=trace(
        {"t_s": t_s, "tflops": tflops, "power_w": power_w, "sm_mhz": sm_mhz},
        of={"tflops": "tensor:bf16"},
    ),
    rested=quantity(statistics.median(fresh), "TFLOP/s", "timed", of="tensor:bf16"),
    steady=quantity(
        statistics.median(speed for end, speed, _, _ in long_run if end > 4),
        "TFLOP/s",
        "timed",
        of="tensor:bf16",
    ),
)

# %% [markdown]
# /// chart | trace
# title: Six seconds of bf16 multiplies, without a pause
# trace: long_run
# x: t_s
# x_label: seconds since the first multiply
# panels:
#   - {column: tflops, y_label: TFLOP/s, label: speed}
#   - {column: power_w, y_label: W, label: power}
#   - {column: sm_mhz, y_label: MHz, label: SM clock}
# alt: "Three traces over six seconds. Speed starts at {{ long_run.tflops.first:.0f }} TFLOP/s and ends at {{ long_run.tflops.last:.0f }}. Power reaches {{ long_run.power_w.max:.0f }} W. The clock goes from {{ long_run.sm_mhz.max:.0f }} MHz at its highest to {{ long_run.sm_mhz.min:.0f }} MHz at its lowest."
# caption: One point for every burst of 24 multiplies. Power and clock are read when a burst ends.
# ///
#
# /// claim | long_run.sm_mhz.last < 0.9 * long_run.sm_mhz.first
# Read it from the bottom up. The clock starts at {{ long_run.sm_mhz.first:.0f }} MHz and ends at
# {{ long_run.sm_mhz.last:.0f }} MHz, and the speed goes down with it. Where a curve dips now and then, we have
# not traced why.
# /// otherwise
# The clock starts at {{ long_run.sm_mhz.first:.0f }} MHz and ends at {{ long_run.sm_mhz.last:.0f }} MHz: on this
# card it hardly gives way.
# ///
#
# /// claim | rested > 1.05 * steady
# After a second of rest a few multiplies run at {{ rested:.0f }} TFLOP/s. In the long run it is
# {{ steady:.0f }} TFLOP/s. Same kernel, same matrices, same card: {{ rested / steady:.2f }} times. Both
# numbers are honest. Only they answer different questions.
# /// otherwise
# After a second of rest a few multiplies run at {{ rested:.0f }} TFLOP/s, in the long run at
# {{ steady:.0f }} TFLOP/s: {{ rested / steady:.2f }} times. On this card the power limit hardly bites.
# ///
#
# So be careful with a headline such as *so many TFLOP/s*. Ask: after how long? We clear the cache between
# two samples, and that gives the card a short breath.
#
# Our own number for this multiply is {{ multiply.bf16.n8192.tflops:.0f }} TFLOP/s. A number like that belongs to
# its run. It is one more reason to compare only what ran side by side.

# %% [markdown]
# ### Does it matter what you multiply?
#
# A tensor core does the same work whatever the numbers are. There is no shortcut for zero. So here is a
# question that sounds silly.
#
# /// predict | The same multiply, the same kernel, but both matrices are all zeros. Is it quicker?
# - [zeros.tflops >= 1.1 * multiply.bf16.n8192.tflops] Yes, a lot: a tenth or more
# - [1.03 * multiply.bf16.n8192.tflops <= zeros.tflops < 1.1 * multiply.bf16.n8192.tflops] Yes, a little
# - [zeros.tflops < 1.03 * multiply.bf16.n8192.tflops] No, work is work
# /// reveal
# Zeros: {{ zeros.tflops:.0f }} TFLOP/s. Random numbers: {{ multiply.bf16.n8192.tflops:.0f }} TFLOP/s. That
# is {{ zeros.tflops / multiply.bf16.n8192.tflops:.2f }} times, for the same instructions.
#
# /// claim | zeros.us < 0.95 * multiply.bf16.n8192.us
# A wire costs power when it changes from 0 to 1 or back. Zeros never change, so the card draws less, so it
# need not lower its clock as far. That is the usual explanation, and it fits: [the ledger](numbers.md) has the
# clock and the power of both runs. (It may name the power limit beside the zeros as well, though they draw far
# less. Why, we do not know.) The lesson is for your own benchmarks: time zeros, and you get
# {{ zeros.of_peak:.0%}} of peak that no real model will ever see.
# /// otherwise
# On this card the data make little difference: {{ zeros.of_peak:.0%}} of peak with zeros,
# {{ multiply.bf16.n8192.of_peak:.0%}} with random numbers. Where the power limit bites, they do.
# ///
# ///

# %% tags=["show"]
record(
    zeros=measure(
        tensor_cores.cublas,
        Workload.of("bfloat16", M=8192, N=8192, K=8192, zeros=True),
    )
)

# %% [markdown]
# bf16 and fp16 share one peak. At 8192 they reach {{ multiply.bf16.n8192.of_peak:.0%}} and
# {{ multiply.fp16.n8192.of_peak:.0%}} of it here. They ran one after the
# other and not in turns, so we make no sentence of the difference.
#
# All other timings on this site use random inputs, never zeros. Most are drawn from a normal distribution; where a
# problem wants others, such as colours between 0 and 1, its `problem.py` says which.

# %% [markdown]
# ## What we do not know
#
# - **A forger.** A record is sealed, and what stands in it several times must agree: samples and quantiles, errors and
#   what is allowed, its date, and its commit, which must hold every file as it ran. So must what was kept beside it
#   when it was made. That keeps accidents out. Somebody who knows this project and means it can still write a record
#   that agrees with itself. Against that there is one remedy, and it is yours: run the command beside a number again.
# - **Few cards.** These are the numbers of one card of its kind, in one machine. Another one of the same
#   model may be a little better or worse. How much, we learn with every run; [the ledger](numbers.md) says what
#   we know so far.
# - **One day.** A new driver or a new library moves numbers. We write versions and dates beside them, and
#   [what moved](numbers.md#what-moved-since-the-last-records) after every run.
# - **The clock is not locked.** We let the card choose its clock, as yours does, and write down what it
#   chose. A locked clock would give a quieter number, for a card that nobody uses.
# - **The power meter is slow.** So clock and power in the ledger are those of a kernel that runs back to back. In
#   the race it takes turns with others, and with the reading that clears the shelf; there it may run at
#   another clock.
# - **Alone at the power limit.** A card at its limit lowers its clock when it chooses to. In a race that meets all.
#   The blocks of a kernel that runs alone may then lie further apart than they would below the limit. The stated
#   spread is wider for it, and we did not even it out.
# - **Below the floor of our clock.** For jobs of a few microseconds, the two marks and the start of the
#   kernel are a good part of the time. Small numbers are right as *what you would see between two marks*,
#   not as the time of the arithmetic. One such kernel, raced against itself under another name, does not always
#   come out level; we do not know why. So we draw no conclusion from small differences between small numbers.
# - **Counters look at one run.** Counted bytes come from a separate run under the profiler, not from the
#   timed one.
# - **A check is not a proof.** We check random inputs, awkward sizes and a few hard values. A kernel can
#   still be wrong where we did not look.

# %% [markdown]
# ## Make it again on your own card
#
# **One number.** Rest on it with the pointer and you see its name and where it came from. Follow it, and you
# stand on its row of [the ledger](numbers.md), which holds the command. The copy above, for example:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.measure \
#     copy/k01_vectorised copy/library.torch_copy \
#     --workload dtype=float32,N=268435456
# ```
#
# It checks, then times, then prints the medians, how far the blocks lie apart, what a call costs the host, and
# the clocks while each one ran. With `--seed` it draws what an earlier run drew.
#
# **One page.** `nox -s docs -- --page docs/how_we_measure.py`
#
# **The whole site.** On a machine with a GPU, `nox -s docs` runs every page and builds the site from your
# records. With `nox -s docs -- --plan` it only says what it would run, and how long that takes. The first
# steps, from an empty folder, are in `README.md`.

# %% [markdown]
# ## The minutes at a page's head
#
# They are no measurement. They are worked out from the page's text when the site is built, by one rule, for a reader whose
# first language this need not be:
#
# - prose at 150 words a minute, captions and tables too;
# - code at ten lines a minute, empty lines left out;
# - half a minute for a chart or a picture;
# - one minute for a prediction and four for an exercise, unless its head says otherwise;
# - a lab takes what stands at its head.
#
# The *core* is what stands open on the page, with what your predictions reveal. Whatever is folded counts apart: answers,
# hints, code, tables behind charts, and the sections beyond the core. The core of a page for a session is never longer than
# the session.

# %% [markdown]
# ## Now you
#
# /// exercise | Invent one more cheat
# Think of a kernel that passes all of this and is still dishonest. What would it need to know?
# /// answer
# Take the last one and make it patient. It skips its work while it is timed, but first it dawdles, just long
# enough to stay above the floor. Our scales let it pass: a floor is a coarse sieve. What catches it is a
# person who reads the kernel, and that is one reason why every kernel here is short.
#
# Or do the work in lower precision, just within the tolerance. No checker can settle this one, because *how
# exact is exact enough?* is a question for the problem, not for the clock. So every problem states its
# tolerance and its reason, and we race only against libraries of the same precision.
#
# Or replace the clock itself, from inside Python. That needs code that reaches into ours. A review sees it.
# ///
#
# /// exercise | Noise or news?
# Your new kernel's median is half a percent lower than the old one's. What do you do before you tell
# anyone?
# /// answer
# Race the old one against itself, as above. If that already differs by as much, you have measured the
# weather.
#
# If it does not, run old and new *in turns*, look at the spread of each, and repeat another day. Then write
# the claim with a margin that your noise cannot jump over. If it still holds, you have news, even if it is
# small.
# ///
#
# Next: [Your first kernel](start_here.py), if you have not cooked it yet, or
# [FlashAttention from scratch](workshops/w1_flash_attention.py).
