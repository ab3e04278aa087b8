"""Thresholds of the rules, each with its reason. In doubt a rule keeps silent: a wrong name costs a day."""

from __future__ import annotations

from course_kernels.measure.machine import MACHINES

WARP = 32
SECTOR_BYTES = 32

# From here on a kernel has no cause that is worth a day: what is left lies between the data sheet and what any kernel
# reaches. Our own plain copies, which do nothing but move bytes, are just below and above it.
NEAR_PEAK = 0.9

# Of the card's time, what the host needs for one call. Where the card waits for it, the two are all but the same.
HOST = 0.8
# Of a call's time, what its kernels are busy for: below it the card mostly waits between them.
BETWEEN = 0.5

# Four bytes for each of 32 lanes are 4 sectors, sixteen are 16: what needs more than 16 leaves some of each unused,
# whatever its type. With less, the counter of used bytes must say so too.
MOST_SECTORS = 16.0
MANY_SECTORS = 8.0
HALF_A_SECTOR = SECTOR_BYTES / 2
# Unused bytes, as a share of those that must move: below it they hide behind the others.
WASTED = 0.25

# Of all turns of shared memory, those that conflicts took. The padded transpose has a few of them by chance, the
# one that is not padded nearly all.
EXTRA_TURNS = 0.4
# Turns in each cycle of an SM, whose shared memory serves one: below it nobody notices the queue.
TURNS_A_CYCLE = 0.25

# Local memory is DRAM behind two caches. So many sectors of it, for each sector of global memory.
SPILLED = 0.1

# Lanes of 32 at work in an instruction, on average. A reduction's last steps, and edges, stay well above it.
LANES = 20.0
# Issue slots used: a kernel that hardly issues does not wait for the slots that sleeping lanes take.
ISSUING = 0.25

# One address takes one addition after the other, and the lanes of a warp stand in the same line. So long does each
# take in the record of the sum by trees; a test holds this figure against it.
ADDITION_NS = 1.9
IN_LINE = 0.3  # of the time
# Of all additions, in one of dozens of slices of L2. One that comes from the far half of the card is counted on its
# way as well, so it is not all of them even for one address.
ONE_SLICE = 0.3
# Neither memory nor the multiprocessors are busier: then the line is what is left, however the lanes were counted.
IDLE = 0.3

# The SMs had work for this share of the time. A kernel's ramp at both ends costs a twentieth of a short one.
SMS_AT_WORK = 0.85
# Blocks that do not fill their last wave: so much longer does the kernel take than blocks that divide would.
LAST_WAVE = 1.15

# Device memory below this share of its bandwidth, and no other unit above it, means that nobody asked for more.
ROOM_LEFT = 0.7
# A unit of the card that is busier than this is what the kernel waits for, whatever its warps say.
FULL = 0.8

# Bytes that moved, over those that must. Below it are lines fetched twice at the edges of tiles.
MOVED_AGAIN = 1.5
MOVING = 0.5  # device memory is busy at least so much, else the bytes are not what it waits for

# The largest reason for waiting, as a share of all of it: one that is not half of it is not one cause.
ONE_REASON = 0.5
# Issue slots used, above which the warps hardly wait at all.
ISSUED_ENOUGH = 0.6

# The highest clock of the cards whose data sheet says it: a cycle that is too short makes the rule more silent.
SM_HZ = 1e6 * max(machine.multiprocessors.max_mhz for machine in MACHINES if machine.multiprocessors)
