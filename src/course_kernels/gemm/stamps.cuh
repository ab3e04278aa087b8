// When a warpgroup did what: its first thread notes the clock, four times in a step. For stamped_wide and stamped_roles.
//
// Contract  stamps [blocks, 3 warpgroups, steps + 1, 4], zeros before: of a step the ticks at the four places that the
//           kernel names; in the row behind the last step when C was begun, when it had gone, when the block began, and
//           1 + the number of the multiprocessor. stamped.py has the places' names
// Cost      a look at the clock and a store of 8 bytes, by one thread of 128
#pragma once

#include <ticks.cuh>

struct Stamps {
  long long *own;  // of this warpgroup; nobody's for the other 127 threads

  __device__ Stamps(long long *stamps, int steps)
      : own(threadIdx.x % 128 ? nullptr : stamps + (blockIdx.x * 3ll + threadIdx.x / 128) * (steps + 1) * 4) {
    note(steps, 2);
    if (own) own[steps * 4 + 3] = 1 + multiprocessor();
  }

  __device__ void note(int step, int place) const {
    if (own) own[step * 4 + place] = clock_now();
  }

  // When a barrier for everybody let go. `shared`: where there is something in shared memory that nobody writes now.
  __device__ void note_behind_barrier(int step, int place, unsigned shared) const {
    if (own) own[step * 4 + place] = clock_behind_barrier(shared);
  }
};
