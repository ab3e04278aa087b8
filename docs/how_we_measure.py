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
# At the end of this page you can
#
# - say what had to happen before a number was allowed onto this site;
# - try fifteen ways to fool us, and read our answers;
# - tell noise from a difference;
# - take any number here and make it again on your own card.
#
# This page also tests our own scales. Everything below ran on the card named under the title.

# %% [markdown]
# ## The life of a number
#
# /// figure | docs/assets/figures/life_of_a_number.svg
# alt: "Two rows of boxes. Upper row, on a GPU: a kernel is checked, and refused if wrong, then timed; the samples go into a record. Lower row, on any machine: the record passes a gate that stops if a file has changed, is rendered into values, charts and tested claims, and becomes the page and the ledger."
# caption: The upper half needs a GPU. The lower half never does.
# ///
#
# Follow one number from left to right.
#
# 1. **Check.** The kernel gets fresh random inputs. Its answer is compared with a truth worked out in double precision.
#    Without a right answer, nothing is timed.
# 2. **Time.** The kernel runs many times, taking turns with its competitors. We keep the samples, not a verdict. Then its last
#    answer is checked again.
# 3. **Record.** The samples go into a file, with the card, its clocks, its power, the versions, the date,
#    and a fingerprint of every file that ran. Nobody edits that file; a seal shows if somebody has edited it anyway.
# 4. **Render.** Later, on any machine, the page is filled from the record. If the meaning of one of those files has changed
#    since then, the build stops: those samples belong to a kernel that no longer exists.
# 5. **Speak.** Prose takes its numbers from the record. A sentence that compares two of them carries its
#    condition. When the condition fails, so does the build.
#
# So changing a sentence never needs a GPU, and changing a kernel always does. No number gets onto a page in any other
# way. A small program, a lint, reads every page, caption and comment and refuses a speed that somebody typed.

# %% [markdown]
# ## First taste, then time
#
# A wrong kernel is easy to make fast: leave out the work. So before we trust our scales, we try to cheat them.
#
# The job is as simple as can be: multiply every row of a matrix by its own number,
# `y[m, n] = s[m] * x[m, n]`. Fifteen dishonest kernels claim to do it. Each fault is one that people really make, by accident
# or to win a race.
#
# /// predict | Many checkers ask: is the error greater than the tolerance? Then fail. Which cheat walks straight through?
# - [ ] Half the output is zeros
# - [x] The output is all NaN
# - [ ] One element in many millions is far off
# - [ ] The right answer to another matrix
# /// reveal
# The output that is **all NaN**. Every comparison with NaN is false, so *is the error greater than the
# tolerance?* is answered *no*, and the cheat passes with honours. Ask the other way round: *is the error
# within the tolerance?* Now NaN fails. The difference is one `not` in the code, and easy to get wrong.
# ///
#
# We give each cheat to the same `measure` that times every kernel of this course.

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
# Here is each cheat, our answer, and what stopped it:
#
# 1. **Half-written** computes the upper half; the rest is whatever was in memory, often the last right answer.
#
#     > {{ refused.half_written }}
#
#     The memory for the output is **poisoned** with NaN before the kernel runs. Anything left unwritten shows.
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
#     Every element is compared with the truth, in its place.
#
# 4. **One element off** gets all other elements right.
#
#     > {{ refused.one_element_off }}
#
#     The **worst** element is judged, not an average. An average over millions forgives one wrong number, and that
#     may be the one you need.
#
# 5. **NaN clamped** tidies up: a NaN becomes 0, an infinity becomes the largest number there is.
#
#     > {{ refused.nan_clamped }}
#
#     Random inputs hold no NaN, so nobody would notice. We **plant** a NaN, at a place drawn at random, beside
#     infinities, zeros and very large numbers. Where the truth is NaN, the answer must be NaN. Not every problem can
#     promise that: a problem's contract says what it leaves out, with the reason.
#
# 6. **Input modified** works in place, so a second call would scale twice.
#
#     > {{ refused.input_modified }}
#
#     We check **afterwards** that the inputs have not changed.
#
# 7. **Cached result** answers once, and never looks again.
#
#     > {{ refused.cached_result }}
#
#     The same tensors are filled with **new values**, and we ask again. Yesterday's answer is wrong today.
#
# 8. **Watches versions** knows that trick. A tensor counts how often it has been written to, and this cheat works only
#    when that count has changed.
#
#     > {{ refused.watches_versions }}
#
#     Our new values come in by the **back door**, and the counter does not notice.
#
# 9. **Same memory** is right each time, but serves every answer on the same plate.
#
#     > {{ refused.same_memory }}
#
#     The first answer is **still held** when we ask for the second. The two answers must not share memory.
#
# 10. **View returned** stores the answer column by column and renames the axes. The answer looks right, and whoever
#     reads it next pays for the reordering.
#
#     > {{ refused.view_returned }}
#
#     An answer must be in **row-major order**. Where a problem allows a different one, its contract says so.
#
# 11. **Lazy tensor** hands out a promise. It multiplies only when somebody looks at the answer.
#
#     > {{ refused.lazy_tensor }}
#
#     We accept only a **plain** tensor, and we check the type before we look at the numbers.
#
# 12. **Truth stolen** cannot multiply at all. In Python a function can read its caller's variables, so this cheat goes through
#     our pockets for the right answer.
#
#     > {{ refused.truth_stolen }}
#
#     The pockets are empty. We work the truth out **after** the call, never before.
#
# 13. **Another stream** works on a queue that nobody waits for.
#
#     > {{ refused.another_stream }}
#
#     We **hold the stream back** with other work, and the new values arrive only after that work. A kernel on another
#     stream starts too early and cooks the old values.
#
# 14. **Looks who asks** is right whenever the check calls it. When the clock calls, it serves leftovers.
#
#     > {{ refused.looks_who_asks }}
#
#     At a moment drawn at random, in the middle of the timing, the inputs get new values. And after the last sample,
#     the answer that was **timed** is checked, too.
#
# 15. **Faster than the floor** peeks at one number of its input, and does the work only when that number has changed.
#
#     > {{ refused.faster_than_floor }}
#
#     This is the clever one: it passes every check of its answer, since it works whenever the inputs are new. Only **physics**
#     catches it. Nobody moves these bytes in less time than the data sheet allows. A result below its *floor* is
#     refused, when it is measured and again when the page is built.
#
# Every line but the last ends with a **seed**. All the random numbers of that check came from it, so you can repeat a
# refusal.

# %% [markdown]
# ## A stranger's kernel
#
# All of this protects us from our own mistakes. A contest, or a machine that writes kernels, is a different matter:
# there, somebody may be trying to cheat. A file that runs in our own process can rewrite the checker, and many such
# files have.
#
# So a stranger's kernel gets a kitchen of its own. `nox -s judge -- theirs.py --problem softmax` runs the file in a
# **process of its own**, and the judge stays outside:
#
# - **The judge draws the inputs and keeps the truth.** The other process never sees the truth. Some sizes are never
#   announced, and when every answer seems right, the process is asked again, without knowing how often.
# - **The judge compares.** Answers are written to memory that both processes see, and that we poison before each call.
#   What the other process *says* decides nothing: not a line that it prints, not its exit code, not a message that it
#   makes up.
# - **The judge has a clock of its own.** The process times itself with events, which it may have patched. So the judge
#   also times a batch of calls, each on new inputs, with every answer handed over. The samples are shown where the two
#   clocks agree. If the two cannot both be right, the file is refused.
# - **The verdict states what was judged.** Its last line names the file and the judge by a hash. The verdict also names
#   the card, or says that there was none. With `--json` it lists every question that was asked, under a seal. If one of
#   the two hashes is no longer the same, the verdict belongs to a different file or a different judge: judge again.
# - **Without a card** a Triton kernel runs in Triton's interpreter, with [a card's
#   arithmetic](triton_for_numpy_people.py#what-judge-and-grader-add). A file that needs a card is *not judged*, and the exit
#   code is 2.
# - **The process has limits** on its time, its memory, its processes and what it prints. It may write in one folder,
#   which is deleted afterwards, and it has no network. Anything that the process starts ends with it.
#
# There are more than a hundred cheats in `tests/judge/`, some of our own and some published by others, each with its
# source. Our tests check that each of them is refused wherever it can be detected, with a card or without one, and that
# honest files pass.
#
# We also let the judge be attacked in public: a hacker has its source in hand and writes files that are meant to be called
# right while they are wrong. They lie in `proposals/`, as they were written; `nox -s harness -- all --attack` judges
# them again. What came of the latest attack, by the journals that it left:
#
# /// attacks
# ///
#
# Many of these files got through when they were written. For each of them the judge now asks something more:
#
# - *Sizes*: whole blocks, where a kernel has a way of its own; sizes that are long two ways; special values on long rows, and
#   on few; NaN in large answers, too.
# - *Values*: one sign alone, a diagonal, NaN among weights and scales, numbers close to the ends of the type, one token of
#   thousands that shows, sequences that end where a tile does, pages and positions past what sixteen bits count.
# - *Later*: large answers are held and looked at again, as small ones are; so are the inputs; and an answer that is
#   kept under a part of the input, or under the sums of its rows and columns, meets an input of which just those are the same.
#
# You can attack one yourself, and mend it: the judge of [a lab](workshops/w6_frontier.py#a-judge-to-cheat-and-to-mend) is weak on purpose, in five places.
#
# The labs' grader works the same way: your file runs in a process of its own, and the truth stays outside. Yet the
# grader remains a tutor. For the sizes that a lab announces, the grader uses the same inputs each time, so that you can
# reproduce a complaint; once those answers are right, it tries a size that is announced nowhere, with inputs that
# nobody knows. Without a card, Triton kernels are watched as they are interpreted: a load past the end is reported with
# its line.
#
# You should know **what the judge does not stop**:
#
# - A file that must do its own work (`--own`) is watched from inside its own process. If its author breaks that watch,
#   for example with a C library of their own, another library can do the work. The answer is then right, and so is the
#   time; only the work is not theirs.
# - A kernel may be right on every input that we try and wrong on others: on sizes that no machine without a card bears, say.
#   It may be as inexact as the contract allows.
# - A file may see that it is judged, by its process or by the thread that calls it; it may count its calls, or wait for
#   ten minutes, and be wrong only then. What it says of the memory of earlier answers is its own word.
# - A stranger's file may read any file that anybody may read. None of those files holds a secret.
# - In a lab done in NumPy, the file's own process counts how many numbers it holds at once, and watches for calls that
#   would do its work.
# - Without `--own`, a store past the end of an answer goes undetected on a card. Triton's interpreter detects it.
# - Memory on the card has no limit but the card's own. A kernel that never ends holds the card until its time is up.
# - The walls are features of Linux (Landlock, a network namespace). Where a system lacks one of them, the verdict says
#   which one.

# %% [markdown]
# ## The clock
#
# It tasted right. Now take the stopwatch. We have seven habits, each a defence against one way of fooling yourself.
#
# **A cold cache.** The GPU keeps whatever it used last in its L2 cache, a shelf that all rooms share. Time the same
# call again, and the ingredients are already on the shelf. Real programs do other things between two calls. So before
# every sample we read a buffer several times the size of the shelf, until nothing of yours is left on it.
#
# **A warm stove.** The very first call compiles, allocates and wakes the clocks. We warm up by time, not by
# count, and only then start sampling.
#
# **Orders ahead.** A stopwatch in Python would mostly time Python. So we send all the orders ahead: first the read that
# clears the shelf, then a mark, the kernel, and a second mark. While the GPU is still busy clearing, Python has long
# finished. The GPU itself measures the time between the two marks, and we check that Python really was ahead. If Python
# was late, the sample is taken again.
#
# **In turns.** Cards drift. They heat up, they slow down, they recover. If A runs for a second and then B, the second
# cook gets the hot kitchen. So competitors take turns, round after round, on the very same inputs. Whatever drifts,
# drifts for all of them. The order is drawn anew for every round, because a cook who always follows the same colleague
# inherits his mess. A cook who is far slower than the others is called only once in several rounds, so that he does not
# use up their time.
#
# **In six blocks.** Where in memory a tensor ends up is a matter of luck, and that luck lasts as long as the tensor
# does. A thousand samples from one place tell you nothing about other places. So the rounds come in six blocks. At the
# start of each block all inputs are made anew, and all of them are somewhere else in memory. Samples within a block
# wobble. The difference *between* blocks is the part of the noise that a single run can show. The *spread* that we
# state includes this part and a second one, which no single run can show: how much runs on other days and other cards
# differ.
#
# **A last taste.** Somewhere in the last block, at a round drawn at random, the values in the inputs are silently
# changed. After the last round the answers of the last timed calls are checked once more. A kernel that was right while
# somebody looked, and then served the old plate, is caught here.
#
# **A look at the stove.** We read the clock, the power, the temperature and whatever holds the card back *while* a
# kernel runs, and keep the readings of each kernel separate. The card updates these figures only about ten times a
# second, so during a race they belong to no single kernel. When all samples are taken and checked, each kernel
# therefore runs alone, back to back, until the figures describe that kernel alone. Those runs are not samples, and they
# come last, so that no sample suffers from their heat.
#
# Sampling stops after a set time, with never fewer than 12 samples and never more than 1000. Everything drawn at random
# comes from one seed. That seed is in the record, and in the refusal of every wrong answer; with it you can repeat
# every random draw of a run.

# %% [markdown]
# ## The same thing, twice
#
# How much does a number wobble when nothing at all has changed? Race the same kernel against itself.

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
# In turns, the kernel differs from itself by {{ abs(itself.left.us / itself.right.us - 1):.2%}}. That is not all of the
# noise: it is one card, on one day. If you race the kernel against itself on another card of this model, we vouch only
# that the difference stays below 6 %. We write no sentence about a lead that may be noise. Short jobs are noisier: [the
# ledger](numbers.md) lists the spread of each.
# /// otherwise
# In turns, the kernel differs from itself by {{ abs(itself.left.us / itself.right.us - 1):.2%}}. That is the noise of
# this card. If two kernels differ by as little as that, they do not differ.
# ///
#
# Measured once more a moment later, on its own, the kernel differs by {{ abs(itself.left.us / later.us - 1):.2%}}. Do
# not count on that. A separate run includes whatever has drifted since the first one; taking turns leaves the drift
# out.

# %% [markdown]
# ## Whose time?
#
# The time that we show is the card's. But somebody has to write the order: Python looks at your tensors, asks for
# memory, and hands the job over. Our stopwatch leaves this work out on purpose, and so would hide the host's time from
# you. Therefore every sample also notes what its call cost the host. Take a copy that is almost too small to notice:

# %% tags=["show"]
record(small=measure(k01_vectorised, Workload.of("float32", N=2**18), seconds=0.1))

# %% [markdown]
# /// claim | small.host_us > 2.8 * small.us
# One mebibyte is copied in {{ small.us:.1f }} µs. Asking for that copy takes the host {{ small.host_us:.1f }} µs. If
# you call the copy over and over, the card waits for Python most of the time. [L2](lectures/l2_the_cuda_model.py)
# explains what you can do about it.
# /// otherwise
# One mebibyte is copied in {{ small.us:.1f }} µs. Asking for that copy takes the host {{ small.host_us:.1f }} µs.
# ///
#
# If a call itself waits for the card, the orders cannot be sent ahead, and the sample includes the host's time. Such a
# sample is taken again. If that does not help, the sample is kept and counted, and the ledger says how many such
# samples there were.

# %% [markdown]
# ## What is stored, what is worked out
#
# The record of a run holds the **samples**, in microseconds, at most 200 for each kernel, with the quantiles of all of
# them and the median of every block. The record holds the numbers of bytes and operations that the problem demands. It
# also holds the clocks, the power, the temperature and any reason that the card gave for slowing down while each kernel
# ran.
#
# The record holds no percentage, no TFLOP/s and no ratio. Those are worked out when the page is built. If a formula of
# ours is wrong, we fix it without a GPU, and every page is right again.
#
# | word | what it means here |
# |---|---|
# | time | the **median** of the samples: the middle one, which a few hiccups cannot move |
# | spread | how far off the median may be when somebody measures again on another card of the same model: it is within the spread, up or down, nineteen times in twenty |
# | floor | the least possible time: the larger of *bytes ÷ bandwidth* and *operations ÷ arithmetic peak*, both from the data sheet |
# | % of peak | the problem's bytes or operations, divided by the time, as a share of that peak: the one headline of this course |
# | *computed* bytes | the least that the problem must move, worked out from its shapes |
# | *counted* bytes | the bytes that the memory chips really moved, read from the card's own counters |
#
# Note the last two rows. A kernel that fetches the same number ten times moves ten times the bytes, but the
# problem still needs it once. *Computed* bytes make the yardstick; *counted* bytes explain the gap. A page
# always says which one it shows. The counters need the tool `ncu` and permission to use it; where they are missing you
# see no counted number at all, rather than a guess.
#
# There is one fine point. The last writes may still sit in the L2 cache when the clock stops. So the floor below which
# we *refuse* a number leaves out as many written bytes as the L2 can hold: it must never turn an honest kernel away.
# The *percentage* counts every byte. For jobs not much larger than the cache, the percentage can therefore be a little
# too high, which is why our headlines use far larger sizes.

# %% [markdown]
# ## When a sentence fails
#
# Here is how a comparison is written in the source of a page:
#
# ````
# /// claim | ours.us < theirs.us
# Ours needs {{ ours.us }} µs, theirs {{ theirs.us }}.
# /// otherwise
# Theirs is quicker on this card, and here is why.
# ///
# ````
#
# On the page such a sentence carries a mark, *tested*. Tap the mark to read the condition, in words and as it is
# written in the source.
#
# The build asks: if this were measured again, on another card of the same model, would the sentence still be true? The
# build draws a thousand such runs at random. In each of them the medians shift by as much as the blocks of this run
# differ, and then by as much as separate runs differ. Whatever slowed both competitors in one block, or slowed a whole
# card, shifts both medians and cancels out of their ratio.
#
# - True in 99 of 100 of these runs: the sentence stays.
# - True in 1 of 100 or fewer: it is false. The build stops and names it.
# - Between the two: **too close to call**. In the records that we publish, that stops the build as well: we write
#   no sentence about a margin that lies within the spread. If you measure again on a card of this model, a close call does not stop your
#   build: your page shows the *otherwise*, or says that it was too close to call on your run.
#
# A page is of one card, whole: every number on it, quoted ones too, was measured on the same model, so you may compare
# them. The site holds an **edition** for each model that we have measured, and the switch at the head of a page leads
# to the same page of another one. What a card has not measured its edition leaves out. It says so, and leads to the
# edition that has it.
#
# Only in the reference edition, the one that opens first, does a false sentence stop the build. On any other model the
# page shows the sentence's *otherwise* text, or says that it does not hold on this card.
#
# How far apart are separate runs? No single run can tell. So we keep every measurement of a page, with the unique ID of
# its card, and [the ledger](numbers.md) says what these measurements have taught us so far.
#
# A condition can also be too easy to meet. So the build halves and doubles every value in the condition, one at a time.
# If none of these changes makes the condition false, the sentence says nothing, and the build fails as well.
#
# The test cuts both ways, and that is the point. When a library gets better, our proud sentence becomes false, and
# somebody has to take it down.

# %% [markdown]
# ## The card against its own data sheet
#
# The percentage of peak that you read everywhere on this site is a percentage of the *data sheet*: dense arithmetic,
# and main memory [^nvidia-h200]. The data sheet assumes a card that never gets hot and a memory that never pauses. How
# much of its promise can anyone get? See what two plain jobs reach: a copy, and the library's own matrix multiply. All
# other jobs are on a page of their own, [every kernel on one roofline](all_kernels.md).

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
# caption: All multiplies were done by cuBLAS, called through PyTorch.
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
# A copy is the plainest job of all, and even the better of our two copies reaches only
# {{ max(copy.gib4.ours.of_peak, copy.gib4.torch.of_peak):.0%}}. Most likely the memory pauses to refresh, to open rows,
# and to turn around between reading and writing; we have not measured how much each of these takes. But when a
# memory-bound kernel of yours reaches as much as the best copy, look for your next gain elsewhere.
# /// otherwise
# The better copy reaches {{ max(copy.gib4.ours.of_peak, copy.gib4.torch.of_peak):.0%}}: on this card you can have very nearly
# all of the data sheet's bandwidth.
# ///
#
# /// claim | copy.gib4.torch.us < 1.03 * copy.gib4.ours.us
# Whose copy is the better one? PyTorch hands the job to the driver's own copy, which takes
# {{ copy.gib4.torch.us / copy.gib4.ours.us:.1%}} of our time. On another card the order may differ, so we name no
# winner. We rule out only one thing: that our copy leads by more than 3 %.
# /// otherwise
# Our copy and PyTorch's, which is the driver's own, are close here:
# {{ copy.gib4.torch.us / copy.gib4.ours.us:.1%}} of our time.
# ///
#
# /// claim | multiply.bf16.n8192.of_peak < 0.85
# The bf16 multiply reaches only {{ multiply.bf16.n8192.of_peak:.0%}}, although its authors work on nothing else. Memory
# is hardly to blame: a multiply of this size uses every number that it fetches thousands of times. You can watch how
# part of the rest is lost.
# /// otherwise
# The bf16 multiply reaches {{ multiply.bf16.n8192.of_peak:.0%}}. Next you can watch what keeps it from reaching more
# on most cards.
# ///

# %% [markdown]
# ## The card has a limit
#
# Every card has a power limit, and enforces the limit itself: a card that draws too much power lowers its own clock. A
# short job can be over before that happens. A long job cannot.
#
# Let the card rest. Then multiply bf16 matrices of 8192 × 8192, one straight after the other, for six seconds.
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
# caption: There is one point for every burst of 24 multiplies. Power and clock are read when a burst ends.
# ///
#
# /// claim | long_run.sm_mhz.last < 0.9 * long_run.sm_mhz.first
# Read the chart from the bottom up. The clock starts at {{ long_run.sm_mhz.first:.0f }} MHz and ends at
# {{ long_run.sm_mhz.last:.0f }} MHz, and the speed goes down with it. The curves dip now and then; we have not found
# out why.
# /// otherwise
# The clock starts at {{ long_run.sm_mhz.first:.0f }} MHz and ends at {{ long_run.sm_mhz.last:.0f }} MHz: on this
# card it hardly gives way.
# ///
#
# /// claim | rested > 1.05 * steady
# After a second of rest a few multiplies run at {{ rested:.0f }} TFLOP/s. In the long run the speed is {{ steady:.0f }}
# TFLOP/s. The kernel, the matrices and the card are the same, and yet the first rate is {{ rested / steady:.2f }} times
# the second. Both numbers are honest. They just answer different questions.
# /// otherwise
# After a second of rest a few multiplies run at {{ rested:.0f }} TFLOP/s. In a long run they reach {{ steady:.0f }}
# TFLOP/s, and the first rate is {{ rested / steady:.2f }} times the second. On this card the power limit hardly bites.
# ///
#
# So be careful with a headline that gives TFLOP/s and nothing else. Ask: after how long? We clear the cache between
# two samples, and the clearing gives the card a short rest.
#
# Our own number for this multiply is {{ multiply.bf16.n8192.tflops:.0f }} TFLOP/s. A number like that is valid only for
# its own run. That is one more reason to compare only kernels that ran side by side.

# %% [markdown]
# ### Does it matter what you multiply?
#
# A tensor core does the same work whatever the numbers are. There is no shortcut for zero. So here is a
# question that sounds silly.
#
# /// predict | Run the same multiply with the same kernel, but with matrices of zeros. Is it faster?
# - [zeros.tflops >= 1.1 * multiply.bf16.n8192.tflops] Yes, a lot: a tenth or more
# - [1.03 * multiply.bf16.n8192.tflops <= zeros.tflops < 1.1 * multiply.bf16.n8192.tflops] Yes, a little
# - [zeros.tflops < 1.03 * multiply.bf16.n8192.tflops] No, work is work
# /// reveal
# Zeros: {{ zeros.tflops:.0f }} TFLOP/s. Random numbers: {{ multiply.bf16.n8192.tflops:.0f }} TFLOP/s. That is
# {{ zeros.tflops / multiply.bf16.n8192.tflops:.2f }} times the speed, for the same instructions.
#
# /// claim | zeros.us < 0.95 * multiply.bf16.n8192.us
# A wire costs power when it changes from 0 to 1 or back. Zeros never change, so the card draws less power and need not
# lower its clock as far. That is the usual explanation, and it fits: [the ledger](numbers.md) shows the clock and the
# power of both runs. (The ledger may name the power limit for the zeros as well, though they draw far less. We do not
# know why.) The lesson is for your own benchmarks: time zeros, and you get {{ zeros.of_peak:.0%}} of peak that no real
# model will ever see.
# /// otherwise
# On this card the data make little difference: {{ zeros.of_peak:.0%}} of peak with zeros,
# {{ multiply.bf16.n8192.of_peak:.0%}} with random numbers. Where the power limit bites, they make a large one.
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
# bf16 and fp16 share one peak. At 8192 the two types reach {{ multiply.bf16.n8192.of_peak:.0%}} and
# {{ multiply.fp16.n8192.of_peak:.0%}} of that peak here. The two ran one after the other and not in turns, so we say
# nothing about the difference.
#
# All other timings on this site use random inputs, never zeros. Most are drawn from a normal distribution; where a
# problem needs others, such as colours between 0 and 1, its `problem.py` says which.

# %% [markdown]
# ## What we do not know
#
# - **A forger.** A record is sealed, and whatever it states more than once must agree: samples and quantiles, errors
#   and their limits, its date, and its commit, which must contain every file as it ran. The files that were kept beside
#   the record when it was made must agree with it, too. The seal keeps accidents out. A determined forger who knows
#   this project can still write a record that agrees with itself. There is one remedy against such a forger, and only
#   you can apply it: run the command beside a number again.
# - **Few cards.** These numbers come from one card of its kind, in one machine. A different card of the same model may
#   be a little better or worse. Every run teaches us how much cards differ; [the ledger](numbers.md) says what we know
#   so far.
# - **One day.** A new driver or a new library changes the numbers. We write versions and dates beside the numbers, and
#   list [what moved](numbers.md#what-has-changed-since-the-last-records) after every run.
# - **The clock is not locked.** We let the card choose its clock, as yours does, and write down what it
#   chose. A locked clock would give a steadier number, for a card that nobody uses.
# - **The power meter is slow.** So the clock and the power in the ledger are those of a kernel that runs back to back.
#   In the race, a kernel takes turns with others, and with the read that clears the shelf, so its clock may be
#   different there.
# - **Alone at the power limit.** A card at its limit lowers its clock when it chooses to. In a race, the lower clock
#   affects all competitors. But the blocks of a kernel that runs alone may then be further apart than they would be
#   below the limit. This makes the stated spread wider, and we do not correct for it.
# - **Below the floor of our clock.** For jobs of a few microseconds, the two marks and the start of the kernel are a
#   good part of the time. A small number is right as *what you would see between two marks*, but not as the time of the
#   arithmetic alone. One such kernel, raced against itself under a second name, does not always come out level; we do
#   not know why. So we draw no conclusion from small differences between small numbers.
# - **Counters look at one run.** Counted bytes come from a separate run under the profiler, not from the
#   timed one.
# - **A check is not a proof.** We check random inputs, awkward sizes and a few hard values. A kernel can
#   still be wrong where we did not look.

# %% [markdown]
# ## Make it again on your own card
#
# **One number.** Rest the pointer on a number, and you see its name and where it came from. Follow the link to the
# number's row in [the ledger](numbers.md), which holds the command. The copy above, for example:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.measure \
#     copy/k01_vectorised copy/library.torch_copy \
#     --workload dtype=float32,N=268435456
# ```
#
# The command checks, then times, then prints the medians, how far apart the blocks are, what a call costs the host, and
# the clocks while each kernel ran. With `--seed` the command repeats the random draws of an earlier run.
#
# **One page.** `nox -s docs -- --page docs/how_we_measure.py`
#
# **The whole site.** On a machine with a GPU, `nox -s docs` runs every page and builds the site from your
# records. If your card is of another model than ours, its edition stands beside ours in the switch, and is the one that
# opens first. With `nox -s docs -- --plan` it only says what it would run, and how long that takes. The first
# steps, from an empty folder, are in `README.md`.

# %% [markdown]
# ## The minutes at the top of a page
#
# These minutes are not measured. They are worked out from the page's text when the site is built, by one rule, for a reader
# whose first language may not be English:
#
# - prose at 150 words a minute, captions and tables too;
# - code at ten lines a minute, empty lines left out; of two kernels side by side, the first;
# - half a minute for a chart or a picture;
# - one minute for a prediction and four for an exercise, unless its head says otherwise;
# - a lab takes the minutes at its head.
#
# The *core* is everything that is open on the page, including what your predictions reveal. Folded parts are counted
# separately: answers, hints, code, tables behind charts, and the sections beyond the core. On a page for a session, the core is never longer than the session.

# %% [markdown]
# ## Now you
#
# /// exercise | Invent one more cheat
# Think of a kernel that passes all of this and is still dishonest. What would it need to know?
# /// answer
# Take the last cheat and make it patient. It skips its work while it is timed, but waits just long enough to stay above
# the floor. Our scales let such a kernel pass: a floor is a coarse sieve. Only a person who reads the kernel can catch
# it, and that is one reason why every kernel here is short.
#
# Or do the work in lower precision, just within the tolerance. No checker can settle this case, because *how exact is
# exact enough?* is a question about the problem, not about the time. So every problem states its tolerance and the
# reason for it, and we race only against libraries of the same precision.
#
# Or replace the clock itself, from inside Python. That takes code that reaches into ours. A review would notice such
# code.
# ///
#
# /// exercise | Noise or news?
# Your new kernel's median is half a percent lower than the old one's. What do you do before you tell
# anyone?
# /// answer
# Race the old kernel against itself, as above. If its two medians already differ by as much, you have measured the
# weather.
#
# If they do not, run the old and the new kernel *in turns*, look at the spread of each, and repeat on another day. Then
# write the claim with a margin that your noise cannot exceed. If the claim still holds, you have news, however small.
# ///
#
# Next: [Your first kernel](start_here.py), if you have not cooked it yet, or
# [FlashAttention from scratch](workshops/w1_flash_attention.py).
