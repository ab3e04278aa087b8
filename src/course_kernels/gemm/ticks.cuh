// What a kernel that watches itself asks of the card: the clock of its multiprocessor, and which one that is.
//
// Source    PTX ISA, chapter on special registers
#pragma once

// Cycles of this multiprocessor; every one counts from a beginning of its own.
__device__ inline long long clock_now() {
  long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

__device__ inline unsigned multiprocessor() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}
