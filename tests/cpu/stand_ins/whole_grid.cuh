// For CPUs: the same names; a tick of both clocks is a call of one of them, or a load that the test counts.
#pragma once

inline long long ticks = 0;

inline long long clock_now() { return ++ticks; }
inline long long nanoseconds_now() { return ++ticks; }
inline unsigned multiprocessor() { return blockIdx.x; }

inline long long all_blocks_meet(unsigned *arrived) {
  long long now = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    ++*arrived;
    fibers::wait(fibers::Waits::at_grid);
    now = nanoseconds_now();
  }
  __syncthreads();
  return now;
}
