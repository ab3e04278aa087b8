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

// The same, right behind a barrier. A warp runs on past a barrier as far as it needs nothing that the barrier guards,
// and a look at the clock needs nothing. So read 4 bytes of shared memory first, and look only with these in hand: twice,
// and they say which look counts.
// region behind
__device__ inline long long clock_behind_barrier(unsigned shared) {
  long long now;
  asm volatile(
      "{\n.reg .pred odd;\n.reg .u32 read;\nld.volatile.shared.u32 read, [%1];\nand.b32 read, read, 1;\n"
      "setp.ne.u32 odd, read, 0;\n@odd mov.u64 %0, %%clock64;\n@!odd mov.u64 %0, %%clock64;\n}"
      : "=l"(now)
      : "r"(shared)
      : "memory");
  return now;
}
// endregion

__device__ inline unsigned multiprocessor() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}
