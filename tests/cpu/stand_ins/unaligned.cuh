// The CPU's version of src/course_kernels/mla_decode/unaligned.cuh: it asks nobody from where in the code he comes.
#pragma once

#include <hopper/warpgroup.cuh>

inline void named_barrier_wait_unaligned(int id, int threads) { hopper::named_barrier(id, threads, true); }
