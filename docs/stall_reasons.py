# ---
# id: stalls
# title: A dictionary of stall reasons
# nav: What warps wait for
# section: Beside the road
# order: 5
# description: Fourteen reasons why a warp waits, each with a kernel of a few lines that was made to cause it, and what to try.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # A dictionary of stall reasons
#
# At each tick a scheduler picks a warp that can go on. A warp that cannot go on has a reason, and the card keeps count
# of the reasons. Use this page to look things up: what a reason means, a kernel of a few lines that was made to cause
# it, and what to try. [The lecture on profiling](lectures/l7_profiling.py#the-third-turn-what-do-the-warps-wait-for)
# shows how to use it.
#
# Two warnings before you look anything up.
#
# - **A stall is not a fault.** In a kernel at its roof nearly all warps wait. Ask first whether a road is full.
# - **The number counts waiting.** *It is the number of ticks that the warps of a scheduler, all together, wait for this
#   reason, per instruction that the scheduler issues.* It does not count warps: a scheduler has 16 warps at most, and where
#   hardly anything is issued this number runs into the hundreds. Multiplied by the instructions issued per tick, it
#   *is* the number of warps that wait, on average; [the
#   lecture](lectures/l7_profiling.py#the-third-turn-what-do-the-warps-wait-for) does that sum. A kernel with few warps
#   has small numbers, and may still be in deep trouble.
#
# Each kernel below is a copy with a detour: y is x, whatever happens in between, so the answer is checked like any other. All of them are in
# one file, `src/course_kernels/stall_demos/k01_one_reason.cu`, and the counters of each were read three times. The counter's name is
# `smsp__average_warps_issue_stalled_REASON_per_issue_active.ratio`.

# %% tags=["fold"]
from course_kernels.measure import count_many, quantity, record, samples
from course_kernels.stall_demos import k01_one_reason
from course_kernels.stall_demos.problem import NAMES, job

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
ALSO = (
    "dispatch_stall",
    "tex_throttle",
    "misc",
    "gmma",
)  # seen by the card, made by no kernel here
METRICS = [STALL.format(reason) for reason in (*NAMES, *ALSO)]
READINGS = 3
seen = count_many(
    [(k01_one_reason, job(name)) for name in NAMES for _ in range(READINGS)],
    METRICS,
)
readings = {
    name: seen[i * READINGS : (i + 1) * READINGS] for i, name in enumerate(NAMES)
}


def value(counted, reason):
    """Warps that wait for a reason, in one reading of one detour."""
    (kernel,) = counted.kernels
    return kernel["metrics"][STALL.format(reason)]["value"]


def others(counted, name):
    """The same for every reason but one."""
    return [value(counted, other) for other in (*NAMES, *ALSO) if other != name]


def share(counted, name):
    """One reason's part of all that wait."""
    return value(counted, name) / (
        value(counted, name) + sum(others(counted, name))
    )


record(
    own={
        name: samples([value(c, name) for c in readings[name]], "1")
        for name in NAMES
    },
    # Of all that wait, in the reading of the three in which it is least.
    least={
        name: quantity(min(share(c, name) for c in readings[name]), how="counted")
        for name in NAMES
    },
    next={
        name: samples([max(others(c, name)) for c in readings[name]], "1")
        for name in NAMES
    },
)

# %% [markdown]
# ## All at a glance
#
# /// table
# columns: [detour, "its own reason", "the largest other reason", "its own share of all waiting, at least"]
# rows:
#   - ["[long_scoreboard](#long_scoreboard)", "{{ own.long_scoreboard:.2f }}", "{{ next.long_scoreboard:.2f }}", "{{ least.long_scoreboard:.0%}}"]
#   - ["[short_scoreboard](#short_scoreboard)", "{{ own.short_scoreboard:.2f }}", "{{ next.short_scoreboard:.2f }}", "{{ least.short_scoreboard:.0%}}"]
#   - ["[barrier](#barrier)", "{{ own.barrier:.2f }}", "{{ next.barrier:.2f }}", "{{ least.barrier:.0%}}"]
#   - ["[mio_throttle](#mio_throttle)", "{{ own.mio_throttle:.2f }}", "{{ next.mio_throttle:.2f }}", "{{ least.mio_throttle:.0%}}"]
#   - ["[lg_throttle](#lg_throttle)", "{{ own.lg_throttle:.2f }}", "{{ next.lg_throttle:.2f }}", "{{ least.lg_throttle:.0%}}"]
#   - ["[math_pipe_throttle](#math_pipe_throttle)", "{{ own.math_pipe_throttle:.2f }}", "{{ next.math_pipe_throttle:.2f }}", "{{ least.math_pipe_throttle:.0%}}"]
#   - ["[wait](#wait)", "{{ own.wait:.2f }}", "{{ next.wait:.2f }}", "{{ least.wait:.0%}}"]
#   - ["[not_selected](#not_selected)", "{{ own.not_selected:.2f }}", "{{ next.not_selected:.2f }}", "{{ least.not_selected:.0%}}"]
#   - ["[branch_resolving](#branch_resolving)", "{{ own.branch_resolving:.2f }}", "{{ next.branch_resolving:.2f }}", "{{ least.branch_resolving:.0%}}"]
#   - ["[membar](#membar)", "{{ own.membar:.2f }}", "{{ next.membar:.2f }}", "{{ least.membar:.0%}}"]
#   - ["[imc_miss](#imc_miss)", "{{ own.imc_miss:.2f }}", "{{ next.imc_miss:.2f }}", "{{ least.imc_miss:.0%}}"]
#   - ["[no_instruction](#no_instruction)", "{{ own.no_instruction:.2f }}", "{{ next.no_instruction:.2f }}", "{{ least.no_instruction:.0%}}"]
#   - ["[sleeping](#sleeping)", "{{ own.sleeping:.2f }}", "{{ next.sleeping:.2f }}", "{{ least.sleeping:.0%}}"]
#   - ["[drain](#drain)", "{{ own.drain:.2f }}", "{{ next.drain:.2f }}", "{{ least.drain:.0%}}"]
# caption: Ticks that the warps of a scheduler wait, all together, for each instruction that it issues. Medians of three readings. A warp that issues is not counted under any reason.
# ///
#
# /// claim | own.long_scoreboard > 1.05 * next.long_scoreboard and own.short_scoreboard > 1.05 * next.short_scoreboard and own.barrier > 1.05 * next.barrier and own.mio_throttle > 1.05 * next.mio_throttle and own.lg_throttle > 1.05 * next.lg_throttle and own.wait > 1.05 * next.wait and own.not_selected > 1.05 * next.not_selected and own.membar > 1.05 * next.membar and own.imc_miss > 1.05 * next.imc_miss and own.no_instruction > 1.05 * next.no_instruction and own.sleeping > 1.05 * next.sleeping and own.math_pipe_throttle < 1.1 * next.math_pipe_throttle and own.branch_resolving < next.branch_resolving and own.drain < next.drain
# Eleven of the fourteen kernels do what they were made for: their own reason is the largest. Three do not,
# *math_pipe_throttle*, *branch_resolving* and *drain*: a different reason is level with theirs or larger, and their
# entries say so. That, too, is worth knowing: these reasons rarely occur alone.
# /// otherwise
# Where the second column is above the first, a detour does not do what it was made for on this card.
# ///
#
# ## long_scoreboard
#
# A load from global or local memory is in flight, and the next instruction needs its result. The *scoreboard* is the card's list
# of registers that are still to be written; *long*, because such a load takes hundreds of ticks.
#
# **A kernel that does little else.** It is a walk through memory in which each address is known only when the previous load is back.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#long_scoreboard
# ///
#
# /// claim | least.long_scoreboard > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.long_scoreboard:.2f }} against {{ next.long_scoreboard:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.long_scoreboard:.2f }}, and the largest other reason at {{ next.long_scoreboard:.2f }}.
# ///
#
# **To try.** Is HBM full? Then this is what a kernel at its roof looks like. If not, have more loads in flight, from more
# threads or from each thread, or fetch ahead: see [How many must be walking](lectures/l3_memory.py#how-many-must-be-walking).
#
# ## short_scoreboard
#
# A result from shared memory, from a shuffle or from the special-function unit is in flight.
#
# **A kernel that does little else.** It is the same walk, in shared memory.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#short_scoreboard
# ///
#
# /// claim | least.short_scoreboard > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.short_scoreboard:.2f }} against {{ next.short_scoreboard:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.short_scoreboard:.2f }}, and the largest other reason at {{ next.short_scoreboard:.2f }}.
# ///
#
# **To try.** Look for [bank conflicts](lectures/l3_memory.py#thirty-two-windows) first. Then read more per trip, 16 bytes at a time,
# and keep in registers what is used again.
#
# ## barrier
#
# The warp waits at a `__syncthreads()` that others have not reached yet.
#
# **A kernel that does little else.** One warp has work to do before each barrier, and the 31 others wait for it.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#barrier
# ///
#
# /// claim | least.barrier > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.barrier:.2f }} against {{ next.barrier:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.barrier:.2f }}, and the largest other reason at {{ next.barrier:.2f }}.
# ///
#
# **To try.** Use fewer barriers, or smaller blocks: what a warp can settle with
# [shuffles](lectures/l3_memory.py#one-number-from-many) needs no barrier. And spread the work evenly.
#
# ## mio_throttle
#
# The queue for orders to shared memory, shuffles and special functions is full. The warp could go on, but there is no room for
# its order.
#
# **A kernel that does little else.** It stores to shared memory, one store after the other, from 32 warps.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#mio_throttle
# ///
#
# /// claim | least.mio_throttle > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.mio_throttle:.2f }} against {{ next.mio_throttle:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.mio_throttle:.2f }}, and the largest other reason at {{ next.mio_throttle:.2f }}.
# ///
#
# **To try.** Make fewer and wider accesses; see [both hands full](lectures/l4_the_gemm_ladder.py#rung-5-both-hands-full).
#
# ## lg_throttle
#
# The queue for orders to global and local memory is full.
#
# **A kernel that does little else.** It stores to global memory, one store after the other; nothing waits for the stores.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#lg_throttle
# ///
#
# /// claim | least.lg_throttle > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.lg_throttle:.2f }} against {{ next.lg_throttle:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.lg_throttle:.2f }}, and the largest other reason at {{ next.lg_throttle:.2f }}.
# ///
#
# **To try.** Make fewer and wider accesses: [ask for neighbours](lectures/l3_memory.py#ask-for-neighbours), 16 bytes at a time.
# Look for spilled registers, which take the same path.
#
# ## math_pipe_throttle
#
# The arithmetic unit that the warp needs is busy.
#
# **A kernel made to show it.** It runs eight independent chains in fp64, in 32 warps.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#math_pipe_throttle
# ///
#
# /// claim | 0.9 * next.math_pipe_throttle < own.math_pipe_throttle < 1.1 * next.math_pipe_throttle
# Here this reason is level with one other reason: {{ own.math_pipe_throttle:.2f }} against {{ next.math_pipe_throttle:.2f }} for
# the next largest (ticks waited per instruction issued). So this kernel shows the reason, but does not prove it.
# /// otherwise
# Here this reason is at {{ own.math_pipe_throttle:.2f }}, and the largest other reason at {{ next.math_pipe_throttle:.2f }}.
# ///
#
# **To try.** That unit is at its roof. Use a different one, such as [the tensor cores](lectures/l6_tensor_cores.py#the-climb), a
# narrower type, or less arithmetic.
#
# ## wait
#
# The warp waits a short, fixed number of ticks, which the compiler has written into the previous instruction. Every instruction has some.
#
# **A kernel that does little else.** It runs one chain of multiply-adds, in one warp for each scheduler.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#wait
# ///
#
# /// claim | least.wait > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.wait:.2f }} against {{ next.wait:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.wait:.2f }}, and the largest other reason at {{ next.wait:.2f }}.
# ///
#
# **To try.** Find more work that is independent: [more chains in a thread, or more warps](lectures/l1_what_a_gpu_is.py#one-long-chain).
#
# ## not_selected
#
# The warp could go on. A different one was chosen.
#
# **A kernel that does little else.** It runs the same chain in eight warps for each scheduler.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#not_selected
# ///
#
# /// claim | own.not_selected > 1.05 * next.not_selected
# In three readings this was the largest reason: {{ own.not_selected:.2f }} against {{ next.not_selected:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.not_selected:.2f }}, and the largest other reason at {{ next.not_selected:.2f }}.
# ///
#
# **To try.** Nothing. The scheduler has more than enough to choose from; you may even take fewer warps and give each more registers. (Some tools do not count it as waiting.)
#
# ## branch_resolving
#
# A jump was taken, and its target is still being worked out.
#
# **A kernel made to show it.** It is a loop that takes one of eight paths in each round, depending on a number that changes.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#branch_resolving
# ///
#
# /// claim | least.branch_resolving < 0.2
# A different reason is larger here: {{ own.branch_resolving:.2f }} against {{ next.branch_resolving:.2f }} for the largest other one (ticks waited per instruction issued). So this kernel shows the reason, but does not prove it.
# /// otherwise
# Here this reason is at {{ own.branch_resolving:.2f }}, and the largest other reason at {{ next.branch_resolving:.2f }}.
# ///
#
# **To try.** Unroll the loop; turn a short branch into arithmetic: see [A warp at a fork](lectures/l2_the_cuda_model.py#a-warp-at-a-fork).
#
# ## membar
#
# The warp waits until all others can see its writes: a fence.
#
# **A kernel that does little else.** It repeats a store and a `__threadfence()`, again and again.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#membar
# ///
#
# /// claim | least.membar > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.membar:.2f }} against {{ next.membar:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.membar:.2f }}, and the largest other reason at {{ next.membar:.2f }}.
# ///
#
# **To try.** Use fewer fences, such as one after many writes. If the reader is in the same block, a fence for the block is enough: `__threadfence_block()`.
#
# ## imc_miss
#
# Some numbers reach a warp without a load: a kernel's arguments, and a table that is the same for all threads and was declared
# `__constant__`. They are in *constant memory*, and an instruction can name such a number in place of a register. Each SM keeps
# those that it has used in a small cache. Here the number is not in the cache, and the warp waits until it is.
#
# **A kernel that does little else.** It reads a thousand constants, each in a line of its own.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#imc_miss
# ///
#
# /// claim | least.imc_miss > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.imc_miss:.2f }} against {{ next.imc_miss:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.imc_miss:.2f }}, and the largest other reason at {{ next.imc_miss:.2f }}.
# ///
#
# **To try.** Keep constants few and close together; what differs from thread to thread does not belong there.
#
# ## no_instruction
#
# The next instruction has not arrived: an instruction cache missed, or a jump went far away.
#
# **A kernel that does little else.** It runs four thousand instructions in a row, without a loop.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#no_instruction
# ///
#
# /// claim | least.no_instruction > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.no_instruction:.2f }} against {{ next.no_instruction:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.no_instruction:.2f }}, and the largest other reason at {{ next.no_instruction:.2f }}.
# ///
#
# **To try.** Unroll less. A kernel whose inner loop fits into the instruction cache does not wait for this reason.
#
# ## sleeping
#
# The warp asked to sleep: `__nanosleep`.
#
# **A kernel that does little else.** It takes sixteen naps.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#sleeping
# ///
#
# /// claim | least.sleeping > 0.5
# In each of three readings this reason made up more than half of all waiting, so it was the largest: {{ own.sleeping:.2f }} against {{ next.sleeping:.2f }} for the next one (ticks waited per instruction issued).
# /// otherwise
# Here this reason is at {{ own.sleeping:.2f }}, and the largest other reason at {{ next.sleeping:.2f }}.
# ///
#
# **To try.** You find this reason in loops that wait for a flag. Ask whether the flag could be a barrier, or an mbarrier, which
# wakes up the waiting warps.
#
# ## drain
#
# The warp is done, but its last stores have not been accepted yet.
#
# **A kernel made to show it.** It has short blocks, whose last act is a store in which neighbouring threads write eight places apart.
#
# /// source | src/course_kernels/stall_demos/k01_one_reason.cu#drain
# ///
#
# /// claim | least.drain < 0.08
# A different reason is far larger here: {{ own.drain:.2f }} against {{ next.drain:.2f }} for the largest other one (ticks waited per instruction issued). So this kernel shows the reason, but does not prove it.
# /// otherwise
# Here this reason is at {{ own.drain:.2f }}, and the largest other reason at {{ next.drain:.2f }}.
# ///
#
# **To try.** Let neighbours store to neighbouring places, 16 bytes at a time; give each thread more work before it leaves.
#
# ## The other reasons
#
# - *dispatch*: the scheduler chose an instruction, but could not pass it on to the unit that carries it out, because something on
#   the way was busy. We met it on [the ladder](lectures/l5_the_top_of_the_ladder.py), where three registers of one instruction
#   were in one drawer.
# - *tex throttle*: the queue for texture orders is full.
# - *gmma*: on Hopper alone, the warp waits for its warpgroup's `wgmma`. [The page about tensor cores](lectures/l6_tensor_cores.py#what-they-wait-for) shows when that is good.
#   The guide has no reason of that name, and has **warpgroup arrive**, for a warp that waits at `WARPGROUP.ARRIVES` or `WARPGROUP.WAIT` [^nvidia-ncu-guide]. All other names are in both lists, so the two are most likely one reason.
# - *misc*: none of these.
#
# NVIDIA's guide explains what each stall reason means [^nvidia-ncu-guide].
