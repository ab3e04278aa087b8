// What a kernel that measures asks of the card: the clock of its multiprocessor, the clock of the whole card, where it
// runs; and a place where all blocks of the grid wait for each other.
//
// Contract  all blocks of the launch fit on the card at once, which the launcher checks: a block that waits for one that
//           cannot begin before it has ended waits for ever
// Source    PTX ISA, chapter on special registers
#pragma once

// Cycles of this multiprocessor; every one counts from a beginning of its own.
__device__ inline long long clock_now() {
  long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

// Nanoseconds, the same for the whole card; they come in steps of up to a microsecond.
__device__ inline long long nanoseconds_now() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__device__ inline unsigned multiprocessor() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

// Nobody leaves before the last block is here. `arrived` is 0 when the launch begins. Thread 0 comes back with the
// card's time just before it lets its own block go: no thread of the grid has left before the earliest of these.
__device__ inline long long all_blocks_meet(unsigned *arrived) {
  long long now = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned *>(arrived) < gridDim.x) {
    }
    now = nanoseconds_now();
  }
  __syncthreads();
  return now;
}
