// A named barrier at which warps wait that come from several places in the code.
//
// Contract  as `named_barrier_wait` of hopper/warpgroup.cuh; who waits there and who waits here may meet at one barrier.
//           bar.sync is barrier.sync.aligned: a promise that all who wait do so at one instruction. Of code that is
//           compiled once for each role there are several. The machine waits the same way for both
// Source    PTX ISA, barrier
#pragma once

__device__ inline void named_barrier_wait_unaligned(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
